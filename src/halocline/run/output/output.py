"""Declaration of the output of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halocline.archive.arrays import COMPRESSIONS
from halocline.archive.files import as_path, check_text
from halocline.errors import InputError
from halocline.lang.dtype import dtype_name
from halocline.lang.grid import DTYPES, chosen, unknown
from halocline.lang.values import plain
from halocline.ranges import IO_THREADS
from halocline.run.fields.regions import Region, Whole
from halocline.run.output.every import Every
from halocline.words import shown

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
            object.__setattr__(self, "dtype", dtype_name(self.dtype))
            if self.dtype not in DTYPES:
                raise unknown("dtype", self.dtype, DTYPES)
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
