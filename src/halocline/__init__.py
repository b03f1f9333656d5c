"""Stencil computing on structured grids, bit-for-bit identical on CPUs, GPUs and any number of ranks.

>>> import halocline as hc
>>> grid = hc.Grid((64, 64), periodic=True)
>>> T = grid.field("T")
>>> def heat(T, kappa):
...     return {T: kappa * hc.laplacian(T)}
>>> sim = hc.Simulation(grid, heat, parameters={"kappa": 0.1}, scheme=hc.RK3(), dt=1e-4)
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from halocline.run.ranks import excepthook

# Names are imported at their first use, so that `import halocline` is fast.
_HOMES = {
    "lang.grid": ("Field", "Grid", "Vector"),
    "lang.expression": ("Expr",),
    "lang.boundary": (
        "Antisymmetric", "BoundaryKernel", "Derivative", "Extrapolate", "Periodic", "Symmetric", "Value",
    ),
    "lang.functions": (
        "abs", "branch", "cos", "exp", "log", "lookup", "maximum", "minimum", "pow", "random", "sign", "sin",
        "sqrt", "symmetric_sum", "tanh", "where",
    ),
    "lang.operators": (
        "cross", "curl", "derivative", "difference", "div", "grad", "grad_div", "hyperdiffusion", "laplacian",
        "mixed", "second", "shift", "to", "traceless_strain", "upwinding",
    ),
    "lang.reductions": ("count", "dot", "first", "max", "min", "norm", "sum", "value"),
    "lang.program": (
        "Scalar", "assign", "every", "loop", "parameter", "program", "scalar", "scalars", "stage", "stop",
        "when",
    ),
    "lang.trace": ("order",),
    "run.simulation.simulation": ("Simulation",),
    "run.simulation.settings": ("cells", "setting"),
    "run.simulation.checks": ("Check",),
    "run.simulation.events": ("Event",),
    "run.engine.prepared": ("Outcome",),
    "run.output.checkpoint": ("Checkpoint",),
    "run.output.every": ("steps",),
    "run.output.output": ("Output", "time_max", "time_mean", "time_min", "time_variance"),
    "run.fields.regions": ("Box", "Coarsen", "Points", "Slice"),
    "run.domain.execution": ("Execution",),
    "run.ranks.mpi": ("print",),
    "solvers.schemes": ("RK2", "RK3", "RK3Previous", "RK4", "SSPRK3", "Euler"),
    "explanation.explain": ("explain",),
    "solvers.linear": ("LinearProblem", "Solution", "solve"),
    "problems.names": ("Extrapolated", "Family"),
    "io.picture": ("picture", "plot_lines"),
    "io.plot": ("plot",),
    "_version": ("__version__",),
    "errors": ("BreakdownError", "CompileError", "HaloclineError", "InputError", "RunError", "Stopped"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        if name.startswith("_") or find_spec(f"halocline.{name}") is not None:  # a submodule
            raise AttributeError(f"module 'halocline' has no attribute {name!r}")
        from halocline.lang.advice import missing_name

        raise missing_name(name, __all__)
    value = getattr(import_module(f"halocline.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _ends(error: BaseException) -> int | None:
    """Return the exit status for an error; see `halocline.run.ranks.abort.ends`."""
    # imported here, because most processes end without an error
    from halocline.run.ranks.abort import ends

    return ends(error)


excepthook.install(_ends)
