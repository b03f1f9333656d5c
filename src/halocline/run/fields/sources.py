"""Field values from a store, a NumPy file or an xarray DataArray. Each rank reads only its own part.

The module also detects arrays of other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive.files import is_file
from halocline.archive.reader import GROWING, UNNAMED, array_at
from halocline.errors import HaloclineError, InputError
from halocline.lang.expression import Operators
from halocline.lang.grid import AXES, Field
from halocline.lang.values import real_array
from halocline.run.fields.interpolation import Run, Weights, conservative, polynomial, same
from halocline.run.fields.regions import dimensions

NUMPY_FILES = (".npy", ".npz")
EDGE = 0.01  # maximum distance by which a field may extend beyond its source, in cells of the source


@dataclass(frozen=True)
class Source:
    """Array with named axes.

    Attributes
    ----------
    name : str
    dimensions : tuple of str
        Names of the axes, without time.
    shape : tuple of int
    coordinates : dict of str to array
        Coordinates along an axis, for each axis that has coordinates.
    read : callable
        Function ``read(lo, hi)`` that returns the values in the index range from `lo` to `hi`, without `hi`.
    """

    name: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: dict[str, NDArray[np.float64]]
    read: Callable[[Sequence[int], Sequence[int]], NDArray[Any]]


def is_source(value: Any) -> bool:
    """Return True if field values can be read from a value: if it is a path or a DataArray."""
    if isinstance(value, Operators):  # For these types, hasattr would search for similar names.
        return False
    return isinstance(value, (str, PathLike)) or all(
        hasattr(value, name) for name in ("dims", "coords", "isel")
    )


def is_external_array(value: Any) -> bool:
    """Return True for an array of another library than NumPy, by the methods of its class."""
    if isinstance(value, (np.ndarray, np.generic)):
        return False
    return any(hasattr(type(value), name) for name in ("__dlpack__", "__cuda_array_interface__"))


def last_time(value: Any) -> int | None:
    """Return the index of the last time of an array in a store; None for arrays without times.

    The result is also None for NumPy files and DataArrays. Another program may extend the store meanwhile.
    Therefore one rank calls this function, and all ranks read the data of the returned time.

    Raises
    ------
    InputError
        There is no array at this path, or the array has no times yet.
    """
    if not isinstance(value, (str, PathLike)) or is_numpy_file(value):
        return None
    _, info = array_at(Path(value))
    if not info.is_timed:
        return None
    if not info.times:
        raise InputError(f"{value} does not contain an output time yet")
    return info.times - 1


def source_of(value: Any, field: Field, time: int | None = None) -> Source:
    """Return the source for a path or a DataArray.

    Parameters
    ----------
    value : str, path or DataArray
    field : Field
        Field to set.
    time : int, optional
        Index of the time, for an array in a store; by default the last time.

    Raises
    ------
    InputError
        There is no array at this path, or a DataArray has several times.
    """
    if is_numpy_file(value):
        return _numpy_source(Path(value), field)
    return (
        _store_source(Path(value), time) if isinstance(value, (str, PathLike)) else _dataarray_source(value)
    )


def is_numpy_file(value: Any) -> bool:
    """Return True for the path of a .npy or .npz file."""
    return isinstance(value, (str, PathLike)) and Path(value).suffix.lower() in NUMPY_FILES


def _numpy_source(path: Path, field: Field) -> Source:
    """Return the array of a NumPy file as a source. In a .npz file, the array has the name of the field.

    A .npy file is mapped into memory, so that each rank reads only its own part.

    Raises
    ------
    InputError
        The file or array does not exist, the file is damaged or does not contain real numbers, or array and
        field differ in shape.
    """
    (array,) = numpy_arrays(path, (field.name,))
    if array.shape != field.points:
        raise InputError(
            f"field {field.name!r} has shape {field.points}, but the array of {path} has shape {array.shape}"
        )

    def read(lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        return np.asarray(array[tuple(map(slice, lo, hi))])

    return Source(str(path), dimensions(field.staggered), array.shape, {}, read)


def numpy_arrays(path: Path, *name_choices: Sequence[str]) -> list[NDArray[Any]]:
    """Return arrays of a NumPy file: its single array, or the arrays with the given names.

    Parameters
    ----------
    path : Path
    *name_choices : sequence of str
        Names of the arrays to read from a .npz file. If there are several sequences, the function
        uses the first sequence whose names are all in the file.

    Raises
    ------
    InputError
        The file or array does not exist, or the file is damaged or does not contain real numbers.
    """
    if not is_file(path):
        raise InputError(f"there is no file {path}; expected a file that numpy.save or numpy.savez writes")
    try:
        content = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(content, np.ndarray):
            arrays = [content]
        else:
            with content:
                arrays = [content[name] for name in _array_names(path, name_choices, list(content.files))]
    except HaloclineError:
        raise
    except Exception as error:  # NumPy and zipfile raise many exception types for damaged files
        raise InputError(
            f"{path} cannot be read: {error}; expected a file that numpy.save or numpy.savez writes, with "
            "an array of real numbers"
        ) from None
    for array in arrays:
        real_array(np.empty(0, array.dtype), f"{path} holds")
    return arrays


def _array_names(path: Path, name_choices: Sequence[Sequence[str]], names: Sequence[str]) -> Sequence[str]:
    """Return the names of the arrays to load from a .npz file; see `numpy_arrays`."""
    for choice in name_choices:
        if {*choice} <= {*names}:
            return choice
    if len(names) == 1:
        return names
    expected = " or ".join(" and ".join(map(repr, choice)) for choice in name_choices)
    raise InputError(
        f"{path} holds the arrays {', '.join(names) or 'none'}; expected one named {expected}, or a single "
        "array"
    )


def _store_source(path: Path, time: int | None) -> Source:
    """Return the source of an array in a store, such as "heat.zarr/T"."""
    store, info = array_at(path)
    if any(name.startswith(UNNAMED) for name in info.dimensions):
        raise InputError(f"{path}: its axes have no names; expected x, y, z or x_face, ...")
    axes, read = info.space, partial(store.read, info.name, time)
    lines = {name: store.coordinates(name, info) for name in axes if store.is_coordinate(name)}
    return Source(str(path), axes, tuple(map(info.count, axes)), lines, read)


def _dataarray_source(array: Any) -> Source:
    """Return the source of an xarray DataArray."""
    if hasattr(array, "data_vars"):
        known = [str(key) for key in array.data_vars]
        raise InputError(
            f"the value is a Dataset of {', '.join(known) or 'nothing'}; expected a DataArray. Select one by "
            "dataset[NAME]."
        )
    name = f"DataArray {array.name!r}"
    for axis in (key for key in GROWING if key in array.dims):
        if array.sizes[axis] != 1:
            raise InputError(f"{name} has {array.sizes[axis]} {axis}s; choose one, such as .isel({axis}=-1)")
        array = array.isel({axis: 0})
    dimensions = tuple(str(key) for key in array.dims)
    coordinates = {
        key: real_array(array.coords[key].values, f"coordinate {key} of {name} is").astype(np.float64)
        for key in dimensions
        if key in array.coords
    }

    def read(lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        return np.asarray(array.isel(dict(zip(dimensions, map(slice, lo, hi), strict=True))).values)

    return Source(name, dimensions, tuple(array.shape), coordinates, read)


class Reader:
    """Reader of a field from a source, with interpolation if the points differ.

    Parameters
    ----------
    field : Field
    source : Source

    Raises
    ------
    InputError
        Source and field have different axes, or the source does not cover the field.

    Attributes
    ----------
    description : str
        Description of the interpolation along each interpolated axis; "" without interpolation.
    """

    def __init__(self, field: Field, source: Source) -> None:
        field_axes = dimensions(field.staggered)
        if set(source.dimensions) != set(field_axes):
            raise InputError(
                f"field {field.name!r} has axes {', '.join(field_axes)}, but {source.name} has "
                f"{', '.join(source.dimensions) or 'none'}"
            )
        self.source = source
        self._order = [source.dimensions.index(name) for name in field_axes]
        self._weights: list[Weights | None] = []
        descriptions = []
        for axis, name in enumerate(field_axes):
            weights, description = _axis_weights(field, axis, source, name)
            self._weights.append(weights)
            if description:
                count = source.shape[source.dimensions.index(name)]
                descriptions.append(f"{AXES[axis]} {description} from {count} points")
        self.description = ", ".join(descriptions)

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        """Return the values of the field in the index range from `lo` to `hi`, without `hi`."""
        runs = [
            [(low, high)] if weights is None else weights.runs_read(low, high)
            for weights, low, high in zip(self._weights, lo, hi, strict=True)
        ]
        values = self._read_runs(runs)
        for axis, weights in enumerate(self._weights):
            if weights is not None:
                values = weights.apply(values, axis, runs[axis], lo[axis], hi[axis])
        return values

    def _read_runs(self, runs: Sequence[Sequence[Run]], box: tuple[Run, ...] = ()) -> NDArray[Any]:
        """Return the values of the source in all combinations of runs, concatenated along each axis.

        Parameters
        ----------
        runs : sequence of sequence of (int, int)
            Runs (index ranges) along each axis of the field.
        box : tuple of (int, int)
            Selected run along each of the first axes, in recursive calls.
        """
        axis = len(box)
        if axis == len(runs):
            return self._read_box(box)
        parts = [self._read_runs(runs, (*box, run)) for run in runs[axis]]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)

    def _read_box(self, box: Sequence[Run]) -> NDArray[Any]:
        """Return the values in a box of the source. `box` and result have the axis order of the field."""
        source_box: list[Run] = [(0, 0)] * len(box)
        for run, position in zip(box, self._order, strict=True):
            source_box[position] = run
        return self.source.read([first for first, _ in source_box], [end for _, end in source_box]).transpose(
            self._order
        )


def _axis_weights(field: Field, axis: int, source: Source, name: str) -> tuple[Weights | None, str]:
    """Return the weights and the method of interpolation along an axis, or None and "" if none is needed."""
    grid, new = field.grid, field.positions[axis]
    count, length = source.shape[source.dimensions.index(name)], grid.extent[axis]
    old = source.coordinates.get(name)
    if old is None:
        if count == len(new):
            return None, ""
        raise InputError(
            f"{source.name} has {count} points along {name} but no coordinates along this axis; field "
            f"{field.name!r} has {len(new)} points. Add coordinates to interpolate the source."
        )
    if same(old, new, length):
        return None, ""
    if len(old) > 1 and not np.all(np.diff(old) > 0):
        raise InputError(f"{source.name}: coordinates along {name} do not increase")
    low, high = grid.origin[axis], grid.origin[axis] + length
    averages = not field.staggered[axis] and (grid.periodic[axis] or grid.walls[axis] == "face")
    cell = (old[-1] - old[0]) / max(1, len(old) - 1) if len(old) > 1 else length
    reach = (0.5 if averages or grid.periodic[axis] else 1.0) * cell * (1 + EDGE)
    if old[0] - reach > max(low, new[0]) + EDGE * cell or old[-1] + reach < min(high, new[-1]) - EDGE * cell:
        raise InputError(
            f"{source.name} extends from {old[0]:g} to {old[-1]:g} along {name}, and does not cover field "
            f"{field.name!r}, which extends from {low:g} to {high:g}"
        )
    if not averages:
        return polynomial(old, new, 2, length if grid.periodic[axis] else None), "linearly"
    middle = 0.5 * (old[1:] + old[:-1])
    ends = np.concatenate(([low], middle, [high]))
    faces = grid.positions(tuple(a == axis for a in range(grid.ndim)))[axis]
    edges = np.append(faces, high) if grid.periodic[axis] else faces
    return conservative(ends, edges, periodic=grid.periodic[axis]), "conservatively"
