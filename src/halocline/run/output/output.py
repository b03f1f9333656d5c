"""Declaration of the output of a run, and statistics over time, accumulated step by step."""

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
from halocline.lang.grid import STATISTIC, Field, Grid, by_component, checked_choice
from halocline.lang.program import Scalar, assign, label_statements, with_current_values
from halocline.lang.values import plain
from halocline.ranges import IO_THREADS
from halocline.run.fields.fields import location_and_dtype
from halocline.run.fields.regions import Region, Whole
from halocline.run.output.every import Every
from halocline.words import short_repr

PREFIX = STATISTIC  # prefix of the names of statistics fields; names of user fields cannot begin with it


@dataclass(frozen=True)
class Statistic:
    """Statistic over time of an expression in each cell, for `halocline.Output`."""

    kind: str
    expression: Any

    def _alone(self, *_: Any) -> Statistic:
        """Raise InputError, because a statistic has no value before it is written."""
        raise InputError(
            f"a {self.kind} over time cannot be part of an expression. Apply it to an expression, such as "
            f"hc.time_{self.kind}(2 * T), or use the written values."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _alone
    __pow__ = __rpow__ = __neg__ = __abs__ = _alone


@by_component
def time_mean(expression: Any) -> Statistic:
    """Return the mean over time, weighted by the time steps.

    Parameters
    ----------
    expression : Field or expression
        Expression of fields of one grid that varies from cell to cell. A vector gives a Vector of statistics.

    Returns
    -------
    Statistic
        Declaration for `halocline.Output`. The statistic has the unit of the expression.
    """
    return Statistic("mean", expression)


@by_component
def time_variance(expression: Any) -> Statistic:
    """Return the population variance over time, weighted by the time steps.

    Parameters
    ----------
    expression : Field or expression
        Expression of fields of one grid that varies from cell to cell. A vector gives a Vector of statistics.

    Returns
    -------
    Statistic
        Declaration for `halocline.Output`. The statistic has the squared unit of the expression.
    """
    return Statistic("variance", expression)


@by_component
def time_min(expression: Any) -> Statistic:
    """Return the minimum of the values after each step.

    Parameters
    ----------
    expression : Field or expression
        Expression of fields of one grid that varies from cell to cell. A vector gives a Vector of statistics.

    Returns
    -------
    Statistic
        Declaration for `halocline.Output`. The statistic has the unit of the expression.
    """
    return Statistic("min", expression)


@by_component
def time_max(expression: Any) -> Statistic:
    """Return the maximum of the values after each step.

    Parameters
    ----------
    expression : Field or expression
        Expression of fields of one grid that varies from cell to cell. A vector gives a Vector of statistics.

    Returns
    -------
    Statistic
        Declaration for `halocline.Output`. The statistic has the unit of the expression.
    """
    return Statistic("max", expression)


# Names of the CF conventions.
CELL_METHODS = {"mean": "mean", "variance": "variance", "min": "minimum", "max": "maximum"}


class Statistics:
    """Statistics over time of one output: their fields, and the statements at the end of each step.

    Means and variances use the weighted algorithm of West (Communications of the ACM 22, 532, 1979), which is
    numerically stable for any number of steps.

    Parameters
    ----------
    grid : Grid
    owner : str
        Unique name of the output; an identifier.
    statistics : mapping of str to Statistic
        Statistics by name of the array.

    Attributes
    ----------
    fields : list of Field
        Fields in which the steps accumulate the statistics.
    weight : Scalar
        Accumulated weight: simulated time, or number of steps if the program has no time step; 0 at
        the start of a window.
    values : dict of str to Expr
        Expressions of the values to write, by name of the array.
    """

    def __init__(self, grid: Grid, owner: str, statistics: Mapping[str, Statistic]) -> None:
        self.weight = Scalar(f"{PREFIX}{owner}_weight", internal=True)
        self.fields: list[Field] = []
        self.values: dict[str, Expr] = {}
        self._items: list[tuple[str, Expr, list[Field]]] = []
        for name, statistic in statistics.items():
            e = as_number(as_expr(statistic.expression, f"output {name!r}"))
            if not e.varies or e.grid is not grid:
                raise InputError(
                    f"output {name!r} is a statistic over time of {e!r}; expected a field of {grid!r}, or an "
                    "expression of such fields"
                )
            count = 2 if statistic.kind == "variance" else 1
            state_fields = [
                self._field(grid, f"{PREFIX}{owner}_{name}_{number}", e) for number in range(count)
            ]
            self._items.append((statistic.kind, e, state_fields))
            self.fields += state_fields
            # the quotient weight / weight is 1, or NaN before the first step
            self.values[name] = (
                state_fields[1] / self.weight if count == 2 else state_fields[0] * (self.weight / self.weight)
            )

    def are_saved_in(self, facts: Mapping[str, Any]) -> bool:
        """Return True if the facts of a checkpoint contain all accumulated values."""
        return self.weight.name in facts["values"] and all(f.name in facts["fields"] for f in self.fields)

    def _field(self, grid: Grid, name: str, e: Expr) -> Field:
        location, dtype = location_and_dtype(e)
        name = f"{name}_{location.replace('-', '_')}_{dtype}"
        existing = grid.fields.get(name)  # a run may continue earlier statistics
        return Field(grid, name, location, dtype, None, internal=True) if existing is None else existing

    def add(self, weight: Expr) -> None:
        """Add statements to the program that accumulate the current fields, multiplied by a weight."""
        begins = self.weight <= 0.0
        total = self.weight + weight
        changes: dict[Field, Expr] = {}
        for kind, expression, state_fields in self._items:
            e = with_current_values(expression)
            if kind in ("min", "max"):
                extremum = (minimum if kind == "min" else maximum)(state_fields[0], e)
                changes[state_fields[0]] = where(begins, e, extremum)
                continue
            mean = where(begins, e, state_fields[0] + (weight / total) * (e - state_fields[0]))
            changes[state_fields[0]] = mean
            if kind == "variance":
                changes[state_fields[1]] = where(
                    begins, 0.0 * e, state_fields[1] + weight * (e - state_fields[0]) * (e - mean)
                )
        with label_statements("statistics over time: " + ", ".join(self.values)):
            assign(changes)
        self.weight.set(total)


WINDOWS = ("output", "run")
_BY_XARRAY = 'xarray.open_zarr("{store}").to_netcdf("{path}")'
_BY_EXPORT = "halocline export {store} fields.pvd"
# Formats that a run cannot write: suffix, name, and instruction for a conversion.
OTHER_FORMATS = {
    **dict.fromkeys((".nc", ".nc4", ".cdf", ".netcdf"), ("NetCDF", _BY_XARRAY)),
    **dict.fromkeys((".h5", ".hdf5", ".he5"), ("HDF5", _BY_XARRAY)),
    **dict.fromkeys((".vtk", ".vti", ".vtr", ".vtu", ".pvd", ".xdmf", ".xmf"), ("VTK or XDMF", _BY_EXPORT)),
    **dict.fromkeys((".npy", ".npz"), ("NumPy", "numpy.save with sim.gather(field)")),
}


@dataclass(frozen=True)
class Output:
    """Output of a run over time in a Zarr store; ``xarray.open_zarr(path)`` opens it.

    Parameters
    ----------
    path : str or path
        Folder of the store; by convention its name ends in .zarr.
    fields : sequence of Field, or mapping of str to expression, optional
        Arrays by name: fields, expressions of fields such as ``{"speed": hc.sqrt(u**2 + v**2)}``, and numbers
        such as ``{"energy": hc.sum(0.5 * u**2)}``. By default, the output contains all fields of the user.
    every : float, hc.steps or str, optional
        Interval between two rows: a float is simulated time, ``hc.steps(5)`` or "5 steps" a number of steps,
        and a text such as "30 min" wall-clock time. If no step ends at a due time, the run writes the row
        after the first step past this time. The run also writes the initial state. Without an interval, it
        writes only the initial and the final state.
    exact : bool
        True to shorten steps so that they end at the due times. This changes the result, and requires an
        interval of simulated time.
    region : Slice, Box, Coarsen or Points, optional
        Part of the grid to write; by default the whole grid.
    window : {"output", "run"}
        Steps that contribute to statistics over time, such as ``hc.time_mean(T)``. "output": the steps since
        the last row. "run": all steps since the start.
    dtype : {"float64", "float32"} or NumPy dtype, optional
        Type of the values on disk; by default that of the fields.
    compression : {"zstd", "none"}
        Lossless compression, or none.
    units : mapping of str to str, optional
        Units of the arrays, and of "time", "x", "y", "z".
    overwrite : bool
        If True, the run may remove a store of another run at this path.
    io_threads : int
        Number of threads per rank that compress and write during computation.

    Raises
    ------
    InputError
        A number or name is invalid.
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
            object.__setattr__(self, "dtype", checked_choice("dtype", dtype_name(self.dtype), DTYPES))
        if not isinstance(self.units, Mapping):
            raise InputError(
                f'units is {short_repr(self.units)}; expected a mapping such as {{"T": "K", "x": "m"}}'
            )
        for name, unit in self.units.items():
            if not (isinstance(name, str) and isinstance(unit, str)):
                raise InputError(
                    f"units has the entry {name!r}: {unit!r}; expected strings as key and value, such as "
                    '{"T": "K"}. Use "1" for a number without a unit.'
                )
        if not isinstance(plain(self.overwrite), bool):
            raise InputError(f"overwrite is {short_repr(self.overwrite)}; expected True or False")
        checked_choice("window", self.window, WINDOWS)
        checked_choice("compression", self.compression, COMPRESSIONS)
        if not isinstance(self.region, Region):
            raise InputError(
                f"region is {short_repr(self.region)}; expected hc.Slice, hc.Box, hc.Coarsen or hc.Points"
            )


def _check_format(path: Path) -> None:
    """Raise InputError for a path with the suffix of another format."""
    if path.suffix.lower() not in OTHER_FORMATS:
        return
    name = path.with_suffix(".zarr")
    kind, text = OTHER_FORMATS[path.suffix.lower()]
    raise InputError(
        f"output {path} has the name of a {kind} file, but a run writes Zarr stores; expected a name such as "
        f"{name}. To convert a store, use {text.format(store=name, path=path)}"
    )
