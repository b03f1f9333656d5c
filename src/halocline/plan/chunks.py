"""How an array is stored: in chunks that do not depend on how the grid is cut, each put together and written
by one rank. Pure functions of one rank, at a cost that does not depend on the number of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import add

from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition

CHUNK_BYTES = 4 << 20  # at most; small enough that many ranks share the writing of one field

Index = tuple[int, ...]


def chunk_shape(shape: Sequence[int], itemsize: int, most: int = CHUNK_BYTES) -> Index:
    """The shape of chunks of an array: its longest axis is halved, and halved again, until a chunk has no
    more than `most` bytes.

    Examples
    --------
    >>> chunk_shape((100, 100), 8)
    (100, 100)
    >>> chunk_shape((128, 128, 256), 8)
    (64, 64, 128)
    """
    chunk = list(shape)
    while prod(chunk) * itemsize > most and max(chunk) > 1:
        axis = max(range(len(chunk)), key=lambda a: (chunk[a], -a))
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


@dataclass(frozen=True)
class ChunkGrid:
    """The chunks of an array, the last along an axis perhaps smaller.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    chunk : tuple of int
    """

    shape: Index
    chunk: Index

    def box(self, chunk: Index) -> Box:
        """The elements of a chunk."""
        lo = tuple(i * c for i, c in zip(chunk, self.chunk, strict=True))
        return Box(lo, tuple(map(min, map(add, lo, self.chunk), self.shape)))

    def over(self, box: Box) -> Iterator[Index]:
        """The chunks that share elements with a box, in order."""
        if not box:
            return iter(())
        ends = zip(box.lo, box.hi, self.chunk, strict=True)
        return product(*(range(l // c, -(-h // c)) for l, h, c in ends))

    def starting_in(self, box: Box) -> Iterator[Index]:
        """The chunks whose first element is in a box, in order."""
        return (chunk for chunk in self.over(box) if self.box(chunk).lo in box)


@dataclass(frozen=True)
class Selection:
    """Points of a field that make up an array.

    Parameters
    ----------
    first : tuple of int
        The point that is the first element.
    stride : tuple of int
        Points from one element to the next, along each axis.
    shape : tuple of int
        Elements along each axis.
    """

    first: Index
    stride: Index
    shape: Index

    def elements(self, points: Box) -> Box:
        """The elements that lie in a box of points; perhaps none."""
        low, high = (
            tuple(-((f - p) // s) for p, f, s in zip(ends, self.first, self.stride, strict=True))
            for ends in (points.lo, points.hi)
        )
        return Box(low, high).intersect(Box((0,) * len(low), self.shape))

    def point(self, element: Index) -> Index:
        """The point that an element is."""
        return tuple(f + e * s for e, f, s in zip(element, self.first, self.stride, strict=True))


@dataclass(frozen=True)
class Part:
    """What a subdomain has of a chunk.

    Attributes
    ----------
    chunk : tuple of int
    subdomain : int
        The subdomain that has the part.
    holder : int
        The subdomain with the first element of the chunk: its rank puts the chunk together.
    box : Box
        Elements of the array.
    """

    chunk: Index
    subdomain: int
    holder: int
    box: Box


def plan_chunks(
    cut: Decomposition,
    subdomains: Sequence[int],
    grid: ChunkGrid,
    points: Sequence[int],
    selection: Selection,
) -> tuple[list[Part], list[Part]]:
    """Return the parts of chunks that a rank has, and those of the chunks that it puts together.

    Parameters
    ----------
    cut : Decomposition
    subdomains : sequence of int
        Subdomains of the rank.
    grid : ChunkGrid
        Of the array.
    points : sequence of int
        Of the field along each axis: as many as cells, or one more on an upper wall.
    selection : Selection
        Of the array.

    Returns
    -------
    own : list of Part
        Parts that the subdomains of this rank have, by chunk.
    parts : list of Part
        Parts of the chunks whose first element this rank has, by chunk.
    """
    chunks: list[Index] = []
    own: list[Part] = []
    for number in subdomains:
        mine = selection.elements(_points(cut, number, points))
        chunks += grid.starting_in(mine)
        for chunk in grid.over(mine):
            box = grid.box(chunk)
            own.append(Part(chunk, number, _holder(cut, selection.point(box.lo)), box.intersect(mine)))
    own.sort(key=lambda part: (part.chunk, part.subdomain))
    parts = []
    for chunk in chunks:
        box = grid.box(chunk)
        last = tuple(h - 1 for h in box.hi)
        for number in _holders(cut, selection.point(box.lo), selection.point(last)):
            theirs = selection.elements(_points(cut, number, points)).intersect(box)
            if theirs:  # strides may step over a subdomain
                parts.append(Part(chunk, number, _holder(cut, selection.point(box.lo)), theirs))
    parts.sort(key=lambda part: (part.chunk, part.subdomain))
    return own, parts


def _points(cut: Decomposition, number: int, points: Sequence[int]) -> Box:
    """The points of a field in a subdomain."""
    box = cut.box(number)
    ends = zip(box.hi, cut.shape, points, strict=True)
    return Box(box.lo, tuple(most if h == cells else h for h, cells, most in ends))


def _place(cut: Decomposition, axis: int, point: int) -> int:
    """Along an axis, the place of the subdomain that has a point."""
    cell = min(point, cut.shape[axis] - 1)
    return ((cell + 1) * cut.parts[axis] - 1) // cut.shape[axis]


def _holder(cut: Decomposition, point: Index) -> int:
    """Return the subdomain that has a point."""
    (number,) = _holders(cut, point, point)
    return number


def _holders(cut: Decomposition, first: Index, last: Index) -> Iterator[int]:
    """The subdomains that have points from one to another."""
    places = (
        range(_place(cut, axis, l), _place(cut, axis, h) + 1)
        for axis, (l, h) in enumerate(zip(first, last, strict=True))
    )
    for coordinates in product(*places):
        yield cut.rank_of(coordinates)
