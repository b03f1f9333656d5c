"""Which points of a field an output has: all, a slice, a box, block averages, or single points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.grid import AXES, Grid
from halocline.plan.chunks import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Chosen:
    """The points of one field in a region.

    Attributes
    ----------
    selection : Selection
    kept : tuple of int
        The axes that the array has; along others it has one element.
    coordinates : tuple of array
        Along each of these axes.
    at : dict of str to float
        The coordinate along each axis that it lacks.
    """

    selection: Selection
    kept: tuple[int, ...]
    coordinates: tuple[NDArray[np.float64], ...]
    at: Mapping[str, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along the axes that are kept."""
        return tuple(self.selection.shape[axis] for axis in self.kept)


class Region:
    """Part of a grid."""

    block = 1  # cells along each axis that are averaged

    def check(self, grid: Grid) -> None:
        """Raise InputError where it is no part of this grid."""

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> Chosen:
        """The points of a field that lie in it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(Region):
    """All points."""

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> Chosen:
        """See Region."""
        lines = grid.positions(staggered)
        return Chosen(Selection.all(grid.points(staggered)), tuple(range(grid.ndim)), lines, {})


class Slice(Region):
    """The points of a plane, or of a line: ``hc.Slice(z=0.5)``, ``hc.Slice(y=0.0, z=0.5)``.

    Parameters
    ----------
    x, y, z : float
        Where it lies; of the points along that axis the nearest ones count.

    Raises
    ------
    InputError
        No axis, or an unknown one; with a grid: a place outside of it, or along all axes.
    """

    def __init__(self, **at: float) -> None:
        self.at = _given("Slice", at)

    def check(self, grid: Grid) -> None:
        """See Region."""
        for axis, value in self.at.items():
            number = _axis("Slice", axis, grid)
            low, high = grid.origin[number], grid.origin[number] + grid.extent[number]
            if not (isinstance(value, (int, float)) and low <= value <= high):
                raise InputError(f"Slice: {axis} is {value!r}; expected a number from {low:g} to {high:g}")
        if len(self.at) == grid.ndim:
            raise InputError(f"Slice of {grid!r} along all of its axes: use hc.Points for single points")

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> Chosen:
        """See Region."""
        lines, points = grid.positions(staggered), grid.points(staggered)
        first, shape = [0] * grid.ndim, list(points)
        found: dict[str, float] = {}
        for name, value in self.at.items():
            axis = AXES.index(name)
            first[axis], shape[axis] = _nearest(lines[axis], value), 1
            found[name] = float(lines[axis][first[axis]])
        kept = tuple(axis for axis in range(grid.ndim) if AXES[axis] not in self.at)
        selection = Selection(tuple(first), (1,) * grid.ndim, tuple(shape))
        return Chosen(selection, kept, tuple(lines[axis] for axis in kept), found)

    def __repr__(self) -> str:
        return f"Slice({', '.join(f'{axis}={value!r}' for axis, value in self.at.items())})"


class Box(Region):
    """The points of a box: ``hc.Box(x=(0.2, 0.4), z=(0.0, 0.5))``.

    Parameters
    ----------
    x, y, z : (float, float)
        The lower and upper end; along other axes all points.

    Raises
    ------
    InputError
        No axis, or an unknown one; with a grid: ends that no cell lies between.
    """

    def __init__(self, **ends: tuple[float, float]) -> None:
        self.ends = _given("Box", ends)

    def check(self, grid: Grid) -> None:
        """See Region."""
        for axis, ends in self.ends.items():
            number = _axis("Box", axis, grid)
            given = tuple(ends) if isinstance(ends, (tuple, list)) else ()
            if len(given) != 2 or not all(isinstance(e, (int, float)) for e in given) or given[0] >= given[1]:
                raise InputError(
                    f"Box: {axis} is {ends!r}; expected its lower and upper end, such as (0.2, 0.4)"
                )
            if not len(_within(grid.positions()[number], *given)):
                raise InputError(f"Box: {axis} is {ends!r}; no cell of {grid!r} lies there")

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> Chosen:
        """See Region."""
        lines, points = grid.positions(staggered), grid.points(staggered)
        first, shape = [0] * grid.ndim, list(points)
        for name, ends in self.ends.items():
            axis = AXES.index(name)
            inside = _within(lines[axis], *ends)
            first[axis], shape[axis] = int(inside[0]), len(inside)
        chosen = zip(lines, first, shape, strict=True)
        selection = Selection(tuple(first), (1,) * grid.ndim, tuple(shape))
        return Chosen(selection, tuple(range(grid.ndim)), tuple(l[f : f + n] for l, f, n in chosen), {})

    def __repr__(self) -> str:
        return f"Box({', '.join(f'{axis}={ends!r}' for axis, ends in self.ends.items())})"


class Coarsen(Region):
    """Averages of blocks of cells, the same number along each axis: ``hc.Coarsen(4)``.

    Parameters
    ----------
    cells : int
        Of a block along each axis; the grid must be a whole number of blocks.

    Raises
    ------
    InputError
        No whole number from 2; with a grid: one that does not divide its cells, or a stretched axis.
    """

    def __init__(self, cells: int) -> None:
        if isinstance(cells, bool) or not hasattr(cells, "__index__") or int(cells) < 2:
            raise InputError(f"Coarsen: cells is {cells!r}; expected a whole number from 2")
        self.block = int(cells)

    def check(self, grid: Grid) -> None:
        """See Region."""
        for axis, n in enumerate(grid.shape):
            if n % self.block:
                fit = [str(m) for m in range(2, 65) if not any(k % m for k in grid.shape)]
                raise InputError(
                    f"Coarsen({self.block}): axis {AXES[axis]} has {n} cells, no whole number of blocks; "
                    + (f"take {' or '.join(fit)}" if fit else f"no number divides the cells of {grid!r}")
                )
            if grid.maps[axis] is not None:
                raise InputError(
                    f"Coarsen({self.block}): axis {AXES[axis]} is stretched, where cells of a block weigh "
                    "differently; take a slice or a box"
                )

    def choose(self, grid: Grid, staggered: Sequence[bool]) -> Chosen:
        """See Region. Each average stands at the first cell of its block."""
        if any(staggered):
            raise InputError(f"Coarsen({self.block}): averages are of cells; expected fields of cells")
        k = self.block
        shape = tuple(n // k for n in grid.shape)
        lines = tuple(line.reshape(-1, k).mean(axis=1) for line in grid.positions())
        return Chosen(
            Selection((0,) * grid.ndim, (k,) * grid.ndim, shape), tuple(range(grid.ndim)), lines, {}
        )

    def __repr__(self) -> str:
        return f"Coarsen({self.block})"


class Points(Region):
    """Single points, such as receivers: ``hc.Points([(0.1, 0.5), (0.9, 0.5)])``.

    Parameters
    ----------
    places : sequence of tuple of float
        Coordinates, of which the nearest cells count.

    Raises
    ------
    InputError
        There are none; with a grid: one outside of it.
    """

    def __init__(self, places: Sequence[Sequence[float]]) -> None:
        self.places = [tuple(place) for place in places]
        if not self.places:
            raise InputError("Points: there are none; expected coordinates such as [(0.1, 0.5)]")

    def check(self, grid: Grid) -> None:
        """See Region."""
        for place in self.places:
            ends = zip(grid.origin, grid.extent, strict=True)
            inside = len(place) == grid.ndim and all(
                low <= value <= low + length for value, (low, length) in zip(place, ends, strict=True)
            )
            if not inside:
                ranges = ", ".join(
                    f"{o:g} to {o + e:g}" for o, e in zip(grid.origin, grid.extent, strict=True)
                )
                raise InputError(f"Points: {place!r} is no point of {grid!r}; expected {ranges}")

    def cells(self, grid: Grid, staggered: Sequence[bool]) -> list[tuple[int, ...]]:
        """The nearest point of a field to each place."""
        lines = grid.positions(staggered)
        return [tuple(map(_nearest, lines, place)) for place in self.places]

    def __repr__(self) -> str:
        return f"Points({self.places!r})"


def _given(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    for name in values:
        if name not in tuple(AXES):
            raise InputError(f"{kind} has {name!r}; expected some of {', '.join(AXES)}")
    if not values:
        raise InputError(f"{kind} has no axis; expected some of {', '.join(AXES)}")
    return dict(values)


def _axis(kind: str, name: str, grid: Grid) -> int:
    if name not in tuple(AXES[: grid.ndim]):
        raise InputError(f"{kind} has axis {name!r}, which {grid!r} lacks")
    return AXES.index(name)


def _nearest(line: NDArray[np.float64], value: float) -> int:
    """The lower one of two that are as near."""
    import numpy as np

    return int(np.argmin(np.abs(line - value)))


def _within(line: NDArray[np.float64], low: float, high: float) -> NDArray[np.int64]:
    import numpy as np

    return np.flatnonzero((line >= low) & (line <= high))
