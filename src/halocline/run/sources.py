"""Values for a field out of a store or an xarray DataArray: each rank reads what it needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive import arrays
from halocline.archive.files import read_json
from halocline.errors import InputError
from halocline.lang.grid import AXES, Field
from halocline.run.interpolation import Weights, conservative, linear, same

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("halocline")

TIME = "time"
EDGE = 0.01  # of a cell of the source: how far the field may reach beyond it


@dataclass(frozen=True)
class Source:
    """An array with named axes.

    Attributes
    ----------
    name : str
    dimensions : tuple of str
        Of its axes, without time.
    shape : tuple of int
    coordinates : dict of str to array
        Of those that have some.
    read : callable
        The values from the indices `lo` up to `hi`.
    """

    name: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: dict[str, NDArray[np.float64]]
    read: Callable[[Sequence[int], Sequence[int]], NDArray[Any]]


def is_source(value: Any) -> bool:
    """Whether a field may be read from it: a path, or a DataArray."""
    return isinstance(value, (str, Path)) or all(hasattr(value, name) for name in ("dims", "coords", "isel"))


def source_of(value: Any) -> Source:
    """What a path into a store, or a DataArray, holds.

    Raises
    ------
    InputError
        A path that leads to no array, or an array that has several times.
    """
    return _stored(Path(value)) if isinstance(value, (str, Path)) else _labelled(value)


def _stored(path: Path) -> Source:
    """An array of a store, such as "heat.zarr/T"; of its last time."""
    if not (path / arrays.GROUP).is_file():
        known = ", ".join(sorted(each.parent.name for each in path.parent.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"there is no array {path}" + (f"; {path.parent} has {known}" if known else ""))
    metadata = read_json(path / arrays.GROUP)
    if metadata.get("node_type") != "array":
        known = ", ".join(sorted(each.parent.name for each in path.glob(f"*/{arrays.GROUP}")))
        raise InputError(f"{path} is a store; give the path of one of its arrays, {path}/NAME: {known}")
    array, names = arrays.read(path), tuple(metadata.get("dimension_names") or ())
    if len(names) != len(array.shape):
        raise InputError(f"{path}: its axes have no names; expected x, y, z or x_face, ...")
    coordinates = {}
    for name in names:
        if name != TIME and (path.parent / name / arrays.GROUP).is_file():
            line = arrays.read(path.parent / name)
            coordinates[name] = line.read((0,), line.shape)
    timed = bool(names) and names[0] == TIME
    if not timed:
        return Source(str(path), names, array.shape, coordinates, array.read)
    last = array.shape[0] - 1
    if last < 0:
        raise InputError(f"{path} has no time yet")

    def read(lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        found: NDArray[Any] = array.read((last, *lo), (last + 1, *hi))[0]
        return found

    return Source(str(path), names[1:], array.shape[1:], coordinates, read)


def _labelled(array: Any) -> Source:
    """An xarray DataArray."""
    import numpy as np

    name = f"DataArray {array.name!r}"
    if TIME in array.dims:
        if array.sizes[TIME] != 1:
            raise InputError(f"{name} has {array.sizes[TIME]} times; choose one, such as .isel(time=-1)")
        array = array.isel(time=0)
    dimensions = tuple(str(each) for each in array.dims)
    coordinates = {
        each: np.asarray(array.coords[each].values, dtype=np.float64)
        for each in dimensions
        if each in array.coords
    }

    def read(lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        return np.asarray(array.isel(dict(zip(dimensions, map(slice, lo, hi), strict=True))).values)

    return Source(name, dimensions, tuple(array.shape), coordinates, read)


class Reader:
    """Reads a field from a source: point for point, or interpolated from another resolution.

    Parameters
    ----------
    field : Field
    source : Source

    Raises
    ------
    InputError
        The source has other axes, or does not reach over the whole field.

    Attributes
    ----------
    how : str
        What is done along axes that are interpolated, in words; empty where none is.
    """

    def __init__(self, field: Field, source: Source) -> None:
        grid = field.grid
        wanted = tuple(AXES[a] + ("_face" if field.staggered[a] else "") for a in range(grid.ndim))
        if set(source.dimensions) != set(wanted):
            raise InputError(
                f"field {field.name!r} has axes {', '.join(wanted)}, but {source.name} has "
                f"{', '.join(source.dimensions) or 'none'}"
            )
        self.source = source
        self._order = [source.dimensions.index(name) for name in wanted]
        self._weights: list[Weights | None] = []
        said = []
        for axis, name in enumerate(wanted):
            weights, how = _along(field, axis, source, name)
            self._weights.append(weights)
            if how:
                count = source.shape[source.dimensions.index(name)]
                said.append(f"{AXES[axis]} {how} from {count} points")
        self.how = ", ".join(said)

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> NDArray[Any]:
        """The values of the field's points from the indices `lo` up to `hi`."""
        first, end = list(lo), list(hi)
        for axis, weights in enumerate(self._weights):
            if weights is not None:
                first[axis], end[axis] = weights.needed(lo[axis], hi[axis])
        there = [0] * len(first), [0] * len(first)
        for axis, position in enumerate(self._order):
            there[0][position], there[1][position] = first[axis], end[axis]
        values = self.source.read(*there).transpose(self._order)
        for axis, weights in enumerate(self._weights):
            if weights is not None:
                values = weights.apply(values, axis, first[axis], lo[axis], hi[axis])
        return values


def _along(field: Field, axis: int, source: Source, name: str) -> tuple[Weights | None, str]:
    """How the points of a field along an axis follow from those of a source: None, one from each."""
    import numpy as np

    grid, new = field.grid, field.positions[axis]
    count, length = source.shape[source.dimensions.index(name)], grid.extent[axis]
    old = source.coordinates.get(name)
    if old is None:
        if count == len(new):
            return None, ""
        raise InputError(
            f"{source.name} has {count} points along {name} and no coordinates there; field {field.name!r} "
            f"has {len(new)}: give it coordinates, from which it can be interpolated"
        )
    if same(old, new, length):
        return None, ""
    if len(old) > 1 and not np.all(np.diff(old) > 0):
        raise InputError(f"{source.name}: coordinates along {name} do not rise")
    low, high = grid.origin[axis], grid.origin[axis] + length
    averages = not field.staggered[axis] and (grid.periodic[axis] or grid.walls[axis] == "face")
    cell = (old[-1] - old[0]) / max(1, len(old) - 1) if len(old) > 1 else length
    reach = (0.5 if averages or grid.periodic[axis] else 1.0) * cell * (1 + EDGE)
    if old[0] - reach > max(low, new[0]) + EDGE * cell or old[-1] + reach < min(high, new[-1]) - EDGE * cell:
        raise InputError(
            f"{source.name} reaches from {old[0]:g} to {old[-1]:g} along {name}, which does not cover field "
            f"{field.name!r} from {low:g} to {high:g}"
        )
    if not averages:
        return linear(old, new, length if grid.periodic[axis] else None), "linearly"
    middle = 0.5 * (old[1:] + old[:-1])
    ends = np.concatenate(([low], middle, [high]))
    faces = grid.positions(tuple(a == axis for a in range(grid.ndim)))[axis]
    edges = np.append(faces, high) if grid.periodic[axis] else faces
    return conservative(ends, edges, periodic=grid.periodic[axis]), "conservatively"
