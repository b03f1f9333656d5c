"""Replacements for functions of NumPy, methods of arrays and names of other libraries."""

from __future__ import annotations

from collections.abc import Mapping

from halocline.errors import InputError
from halocline.words import suggestion

# Functions that combine the values of several points. The keys are the replacements.
_COMBINING_BY_ADVICE: Mapping[str, str] = {
    "write a shift as a read at a neighbour, such as u[-1, 0], or hc.shift(u, axis, by)": (
        "roll take take_along_axis"
    ),
    "write hc.grad(u), hc.derivative(u, axis) or a difference of neighbours, such as u[1, 0] - u[0, 0]": (
        "gradient diff ediff1d convolve correlate"
    ),
    "write hc.sum(u), which reduces the whole grid over all ranks": (
        "sum nansum trapezoid trapz integrate cumsum cumulative_sum"
    ),
    "write hc.sum(u) / grid.size, which reduces the whole grid over all ranks": "mean average nanmean",
    "write hc.sum(u * u) / grid.size - (hc.sum(u) / grid.size)**2": "var std nanvar nanstd",
    "write hc.max(u) for the whole grid, or hc.maximum(a, b) in each cell": "max amax nanmax ptp",
    "write hc.min(u) for the whole grid, or hc.minimum(a, b) in each cell": "min amin nanmin",
    "write hc.norm(u), which reduces the whole grid over all ranks": "norm",
    "write hc.count(condition), the number of cells of the whole grid": "count_nonzero any all",
    "write hc.first(condition), or search in sim.gather(u)": ("argmax argmin nonzero argwhere searchsorted"),
    "write a formula for one cell: an expression has no axes to rearrange": (
        "reshape ravel flatten transpose swapaxes moveaxis squeeze expand_dims T flip fliplr flipud tile "
        "repeat"
    ),
}
_BY_ADVICE: Mapping[str, str] = {
    **_COMBINING_BY_ADVICE,
    "write hc.dot(a, b) for vectors, or hc.sum(a * b) for the sum over the grid": (
        "dot vdot inner tensordot einsum matmul outer"
    ),
    "write hc.cross(a, b)": "cross",
    "write hc.minimum(hc.maximum(u, low), high)": "clip",
    "write hc.where(condition, a, b) with three arguments": "where select choose piecewise heaviside",
    "give the field a boundary condition, such as boundary=hc.Value(0): halos and ghosts need no padding": (
        "pad"
    ),
    "write the number itself: it applies to every cell": (
        "zeros_like ones_like full_like empty_like broadcast_to"
    ),
    "a field has one value per cell; use grid.shape for the shape of the grid": "shape size ndim",
    "read arrays of values after a run with sim.gather(u) or sim[u]": (
        "copy array asarray tolist item fill save sort percentile quantile median histogram fft"
    ),
    "use a vector, grid.vector(name) or hc.Vector((a, b)), with hc.dot and hc.cross": (
        "stack concatenate hstack vstack dstack block meshgrid"
    ),
    "write hc.lookup(values, index) for a table of numbers": "interp",
    "fields hold real numbers only": "real imag conj conjugate angle iscomplex isreal",
    "set the dtype when the field is created: grid.field(name, dtype='float32')": "astype dtype",
    "write hc.sqrt(a * a + b * b)": "hypot",
    "write hc.log(1 + u)": "log1p",
    "write hc.exp(u) - 1": "expm1",
    "write hc.exp(u * math.log(2))": "exp2",
    "write hc.log(u) / math.log(2)": "log2",
    "write hc.sign(u) * hc.pow(abs(u), 1 / 3)": "cbrt",
    "write u * (math.pi / 180)": "deg2rad radians",
    "write u * (180 / math.pi)": "rad2deg degrees",
    "a run reports the first value that is not finite; u == u is false for NaN": (
        "isnan isfinite isinf nan_to_num"
    ),
}

# A function with one of these names returns different values for a part of the grid and for the whole grid.
COMBINING = {
    *" ".join(_COMBINING_BY_ADVICE.values()).split(),
    *("sort", "argsort", "percentile", "quantile", "median", "histogram", "unwrap"),
}
_ADVICE = {name: advice for advice, names in _BY_ADVICE.items() for name in names.split()}

# Names of other libraries that users may expect in halocline, with their equivalents.
MISSING: Mapping[str, str] = {
    "Dirichlet": "hc.Value(value)",
    "DirichletBC": "hc.Value(value)",
    "Neumann": "hc.Derivative(value), the derivative along the axis",
    "NeumannBC": "hc.Derivative(value), the derivative along the axis",
    "Robin": "hc.BoundaryKernel(function), with a function that returns the ghosts",
    "NoSlip": "hc.Value(0) for each component of the velocity",
    "Outflow": "hc.Extrapolate(1)",
    "Reflective": "hc.Symmetric() or hc.Antisymmetric()",
    "mean": "hc.sum(u) / grid.size; hc.time_mean(u) is the mean over time",
    "average": "hc.sum(u) / grid.size; hc.time_mean(u) is the mean over time",
    "std": "hc.sum(u * u) / grid.size; hc.time_variance(u) is the variance over time",
    "var": "hc.sum(u * u) / grid.size; hc.time_variance(u) is the variance over time",
    "gradient": "hc.grad(u), or hc.derivative(u, axis)",
    "divergence": "hc.div(v)",
    "rot": "hc.curl(v)",
    "laplace": "hc.laplacian(u)",
    "Laplacian": "hc.laplacian(u)",
    "dx": "hc.derivative(u, 'x'); the spacing is grid.h(0)",
    "diff": "hc.derivative(u, axis), or a difference of neighbours such as u[1, 0] - u[0, 0]",
    "roll": "a read at a neighbour such as u[-1, 0], or hc.shift(u, axis, by)",
    "clip": "hc.minimum(hc.maximum(u, low), high)",
    "fabs": "hc.abs(u)",
    "cond": "hc.where(condition, a, b), or hc.branch for an expensive side",
    "if_else": "hc.where(condition, a, b)",
    "tan": "hc.sin(u) / hc.cos(u)",
    "power": "hc.pow(x, y), or x**y",
    "integral": "hc.sum(u) times the volume of a cell",
    "integrate": "hc.sum(u) times the volume of a cell, or hc.Simulation(...).run(until=...) in time",
    "interpolate": "hc.to(u, location), or hc.Points(places) of an output",
    "Function": "grid.field(name)",
    "TimeFunction": "grid.field(name)",
    "VectorFunction": "grid.vector(name)",
    "Constant": "parameters={'kappa': 0.1} of hc.Simulation, and an argument kappa of the equations",
    "field": "grid.field(name)",
    "vector": "grid.vector(name)",
    "Operator": "hc.Simulation(grid, function, ...), or hc.LinearProblem for a linear system",
    "Problem": "hc.Simulation(grid, function, ...), or hc.LinearProblem for a linear system",
    "Solver": "hc.Simulation(grid, function, ...), or hc.LinearProblem for a linear system",
    "Eq": "a function that returns {u: right side}, or u.set(...) in an @hc.program",
    "RK45": "hc.RK4() or hc.RK3(), with a number or a function of the fields as dt=",
    "ForwardEuler": "hc.Euler()",
    "load": "sim[u] = 'values.npy', or a store such as 'heat.zarr/T'",
    "save": "hc.Output(path) of a run, or numpy.save(path, sim.gather(u))",
    "show": "hc.picture(sim, u, 'u.png')",
    "init": "hc.Simulation, which initialises MPI at its first use",
    "rank": "sim.domain.comm.rank, or hc.print, which prints on rank 0",
    "norm2": "hc.norm(u)",
    "amax": "hc.max(u)",
    "amin": "hc.min(u)",
    "inner": "hc.dot(a, b)",
}  # fmt: skip


class CombinesPointsError(InputError, AttributeError):
    """Error for a function of NumPy, or a method of arrays, that combines the values of several points."""


def untraceable(name: str, text: str) -> InputError:
    """Return the error for a function of NumPy that cannot be traced.

    Parameters
    ----------
    name : str
        Name of the function.
    text : str
        Message of the error.
    """
    return (CombinesPointsError if name in COMBINING else InputError)(text)


def numpy_advice(name: str) -> str:
    """Return the advice for a function of NumPy or a method of arrays, or empty text if there is none.

    The advice names the replacement. It begins with a colon, because it is appended to a message.
    """
    advice = _ADVICE.get(name)
    return f": {advice}" if advice else ""


def missing_attribute(kind: str, name: str, known: list[str]) -> AttributeError:
    """Return the error for an attribute that an operand lacks.

    Parameters
    ----------
    kind : str
        Class of the operand.
    name : str
        Name of the attribute.
    known : list of str
        Attributes of the operand.
    """
    advice = numpy_advice(name) or suggestion(name, known)
    error = CombinesPointsError if name in COMBINING else AttributeError
    return error(f"{kind!r} object has no attribute {name!r}{advice}")


def missing_name(name: str, known: list[str]) -> AttributeError:
    """Return the error for a name that halocline lacks."""
    answer = MISSING.get(name)
    text = f"; use {answer}" if answer else suggestion(name, known)
    return AttributeError(f"module 'halocline' has no attribute {name!r}{text}")
