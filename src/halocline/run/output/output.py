"""Declaration of the output of a run, with statistics over time that steps add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halocline.archive.arrays import COMPRESSIONS
from halocline.archive.files import as_path, check_text
from halocline.errors import InputError
from halocline.lang.dtype import DTYPES, dtype_name
from halocline.lang.expression import Expr, as_expr, as_number
from halocline.lang.functions import maximum, minimum, where
from halocline.lang.grid import STATISTIC, Field, Grid, by_component, chosen
from halocline.lang.program import Scalar, assign, labelled, present
from halocline.lang.values import plain
from halocline.ranges import IO_THREADS
from halocline.run.fields.fields import location_and_dtype
from halocline.run.fields.regions import Region, Whole
from halocline.run.output.every import Every
from halocline.words import shown

PREFIX = STATISTIC  # start of the names of fields that hold statistics; a user's field cannot have it


@dataclass(frozen=True)
class Statistic:
    """A statistic over time of an expression in each cell, for `halocline.Output`."""

    kind: str
    expression: Any

    def _alone(self, *_: Any) -> Statistic:
        """Raise InputError: a statistic is known when it is written, and not before."""
        raise InputError(
            f"a {self.kind} over time cannot be computed with; take it of an expression instead, such as "
            f"hc.time_{self.kind}(2 * T), or compute with what was written"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _alone
    __pow__ = __rpow__ = __neg__ = __abs__ = _alone


@by_component
def time_mean(expression: Any) -> Statistic:
    """The mean over time, in which each step counts as long as it is.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("mean", expression)


@by_component
def time_variance(expression: Any) -> Statistic:
    """The variance over time, in which each step counts as long as it is; of the whole, not of a sample.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the square of the unit of the expression.
    """
    return Statistic("variance", expression)


@by_component
def time_min(expression: Any) -> Statistic:
    """The least value that any step has left.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("min", expression)


@by_component
def time_max(expression: Any) -> Statistic:
    """The greatest value that any step has left.

    Parameters
    ----------
    expression : Field or expression
        Of fields of one grid; it has a value in each cell. Of a vector the result is a Vector of statistics.

    Returns
    -------
    Statistic
        For `halocline.Output`; in the unit of the expression.
    """
    return Statistic("max", expression)


CELL_METHODS = {"mean": "mean", "variance": "variance", "min": "minimum", "max": "maximum"}  # of CF


class Statistics:
    """Those of one output: the fields that hold them, and the statements that steps end with.

    Means and variances are West's weighted ones (Communications of the ACM 22, 532, 1979), which keep their
    digits however long they go on.

    Parameters
    ----------
    grid : Grid
    owner : str
        A name of the output that no other one has; an identifier.
    wanted : mapping of str to Statistic

    Attributes
    ----------
    fields : list of Field
        State of the run.
    weight : Scalar
        The time, or steps, that they are of so far: 0 where a window begins.
    values : dict of str to Expr
        What is written.
    """

    def __init__(self, grid: Grid, owner: str, wanted: Mapping[str, Statistic]) -> None:
        self.weight = Scalar(f"{PREFIX}{owner}_weight", own=True)
        self.fields: list[Field] = []
        self.values: dict[str, Expr] = {}
        self._items: list[tuple[str, Expr, list[Field]]] = []
        for name, statistic in wanted.items():
            e = as_number(as_expr(statistic.expression, f"output {name!r}"))
            if not e.varies or e.grid is not grid:
                raise InputError(
                    f"output {name!r}: the statistic over time of {e!r}; expected a field of {grid!r} or an "
                    "expression of them"
                )
            count = 2 if statistic.kind == "variance" else 1
            own = [self._field(grid, f"{PREFIX}{owner}_{name}_{number}", e) for number in range(count)]
            self._items.append((statistic.kind, e, own))
            self.fields += own
            # nan where nothing is counted yet; the quotient is 1 else
            self.values[name] = own[1] / self.weight if count == 2 else own[0] * (self.weight / self.weight)

    def known(self, facts: Mapping[str, Any]) -> bool:
        """Return True for the facts of a checkpoint that holds the sums."""
        return self.weight.name in facts["values"] and all(f.name in facts["fields"] for f in self.fields)

    def _field(self, grid: Grid, name: str, e: Expr) -> Field:
        location, dtype = location_and_dtype(e)
        name = f"{name}_{location.replace('-', '_')}_{dtype}"
        known = grid.fields.get(name)  # a run may take up again what it has left
        return Field(grid, name, location, dtype, None, internal=True) if known is None else known

    def add(self, weight: Expr) -> None:
        """Record the statements that count the fields of now in, with a weight."""
        begins = self.weight <= 0.0
        total = self.weight + weight
        changes: dict[Field, Expr] = {}
        for kind, given, own in self._items:
            e = present(given)
            if kind in ("min", "max"):
                further = (minimum if kind == "min" else maximum)(own[0], e)
                changes[own[0]] = where(begins, e, further)
                continue
            mean = where(begins, e, own[0] + (weight / total) * (e - own[0]))
            changes[own[0]] = mean
            if kind == "variance":
                changes[own[1]] = where(begins, 0.0 * e, own[1] + weight * (e - own[0]) * (e - mean))
        with labelled("statistics over time: " + ", ".join(self.values)):
            assign(changes)
        self.weight.set(total)


WINDOWS = ("output", "run")
_BY_XARRAY = 'xarray.open_zarr("{store}").to_netcdf("{path}")'
_BY_EXPORT = "halocline export {store} fields.pvd"
OTHER_FORMATS = {
    **dict.fromkeys((".nc", ".nc4", ".cdf", ".netcdf"), ("NetCDF", _BY_XARRAY)),
    **dict.fromkeys((".h5", ".hdf5", ".he5"), ("HDF5", _BY_XARRAY)),
    **dict.fromkeys((".vtk", ".vti", ".vtr", ".vtu", ".pvd", ".xdmf", ".xmf"), ("VTK or XDMF", _BY_EXPORT)),
    **dict.fromkeys((".npy", ".npz"), ("NumPy", "numpy.save with sim.gather(field)")),
}  # formats that a run does not write, with the way to get them


@dataclass(frozen=True)
class Output:
    """Output of a run over time, in a Zarr store: ``xarray.open_zarr(path)`` opens it.

    Parameters
    ----------
    path : str or path
        Folder of the store; by custom its name ends in .zarr.
    fields : sequence of Field, or mapping of str to expression, optional
        Arrays by name: fields, expressions of them such as ``{"speed": hc.sqrt(u**2 + v**2)}``,
        and numbers such as ``{"energy": hc.sum(0.5 * u**2)}``. All fields of the user by default.
    every : float, hc.steps or str, optional
        Interval between two rows: a float is simulated time, ``hc.steps(5)`` or "5 steps" a number of steps,
        and a text such as "30 min" wall-clock time. At a time that no step meets, the run writes after the
        first step past it. It writes the state at the start too. Without an interval, the run writes the
        start and the end.
    exact : bool
        Shorten steps to meet these times instead, which changes the result; for times only.
    region : Slice, Box, Coarsen or Points, optional
        Part of the grid that the run writes; by default the whole grid.
    window : {"output", "run"}
        Steps that statistics over time, such as ``hc.time_mean(T)``, cover: those since the last output, or
        all steps since the start.
    dtype : {"float64", "float32"} or NumPy dtype, optional
        Type of the values on disk; by default that of the fields.
    compression : {"zstd", "none"}
        Both are lossless.
    units : mapping of str to str, optional
        Units of the arrays, and of "time", "x", "y", "z".
    overwrite : bool
        Whether the run may remove a store that another run left there.
    io_threads : int
        Threads of each rank that compress and write while the run computes.

    Raises
    ------
    InputError
        A number or name is not accepted.
    """

    path: str | Path
    fields: Sequence[Any] | Mapping[str, Any] | None = None
    every: Every | float | str | None = None
    exact: bool = False
    region: Region = field(default_factory=Whole)
    window: str = "output"
    dtype: Any = None
    compression: str = "zstd"
    units: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    io_threads: int = 1

    def __post_init__(self) -> None:
        path = as_path(self.path, "the path of an output")
        check_text(path)
        _check_format(path)
        object.__setattr__(self, "io_threads", IO_THREADS.check("io_threads", self.io_threads))
        if self.every is not None:
            Every.parse("every", self.every)
        if self.dtype is not None:
            object.__setattr__(self, "dtype", chosen("dtype", dtype_name(self.dtype), DTYPES))
        if not isinstance(self.units, Mapping):
            raise InputError(
                f'units is {shown(self.units)}; expected a mapping such as {{"T": "K", "x": "m"}}'
            )
        for name, unit in self.units.items():
            if not (isinstance(name, str) and isinstance(unit, str)):
                raise InputError(
                    f'units has {name!r}: {unit!r}; expected texts on both sides, such as {{"T": "K"}}. Use '
                    '"1" for a number without a unit.'
                )
        if not isinstance(plain(self.overwrite), bool):
            raise InputError(f"overwrite is {shown(self.overwrite)}; expected True or False")
        chosen("window", self.window, WINDOWS)
        chosen("compression", self.compression, COMPRESSIONS)
        if not isinstance(self.region, Region):
            raise InputError(
                f"region is {shown(self.region)}; expected hc.Slice, hc.Box, hc.Coarsen or hc.Points"
            )


def _check_format(path: Path) -> None:
    """Raise InputError for a path whose name is that of another format."""
    if path.suffix.lower() not in OTHER_FORMATS:
        return
    name = path.with_suffix(".zarr")
    kind, text = OTHER_FORMATS[path.suffix.lower()]
    raise InputError(
        f"output {path} has the name of a {kind} file, but a run writes Zarr stores; expected a name such as "
        f"{name}. To convert a store, use {text.format(store=name, path=path)}"
    )
