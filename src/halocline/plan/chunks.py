"""Storage of arrays in chunks that do not depend on the decomposition.

Each chunk is assembled and written by a single rank. The functions are pure, and each call plans for one
rank. The cost of a call does not depend on the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import add

from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition

CHUNK_BYTES = 4 << 20  # upper limit; small enough that many ranks share the writing of one field

Index = tuple[int, ...]


def chunk_shape(shape: Sequence[int], itemsize: int, most: int = CHUNK_BYTES) -> Index:
    """Return the shape of the chunks of an array.

    The longest axis is halved repeatedly until a chunk has at most `most` bytes.

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
    """Chunks of an array; the last chunk along an axis may be smaller.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    chunk : tuple of int
        Shape of a chunk.
    """

    shape: Index
    chunk: Index

    def box(self, chunk: Index) -> Box:
        """Return the box of array elements that a chunk contains."""
        lo = tuple(i * c for i, c in zip(chunk, self.chunk, strict=True))
        return Box(lo, tuple(map(min, map(add, lo, self.chunk), self.shape)))

    def over(self, box: Box) -> Iterator[Index]:
        """Return the chunks that share elements with a box, in row-major order."""
        if not box:
            return iter(())
        ends = zip(box.lo, box.hi, self.chunk, strict=True)
        return product(*(range(l // c, -(-h // c)) for l, h, c in ends))

    def starting_in(self, box: Box) -> Iterator[Index]:
        """Return the chunks whose first element lies in a box, in row-major order."""
        return (chunk for chunk in self.over(box) if self.box(chunk).lo in box)


@dataclass(frozen=True)
class Selection:
    """Selected points of a field, stored as an array.

    Parameters
    ----------
    first : tuple of int
        Point of the first element.
    stride : tuple of int
        Distance in points between adjacent elements, along each axis.
    shape : tuple of int
        Number of elements along each axis.
    """

    first: Index
    stride: Index
    shape: Index

    def elements(self, points: Box) -> Box:
        """Return the elements whose points lie in a box; the result may be empty."""
        low, high = (
            tuple(-((f - p) // s) for p, f, s in zip(ends, self.first, self.stride, strict=True))
            for ends in (points.lo, points.hi)
        )
        return Box(low, high).intersect(Box((0,) * len(low), self.shape))

    def point(self, element: Index) -> Index:
        """Return the point of an element."""
        return tuple(f + e * s for e, f, s in zip(element, self.first, self.stride, strict=True))


@dataclass(frozen=True)
class Part:
    """Part of a chunk that one subdomain owns.

    Attributes
    ----------
    chunk : tuple of int
        Index of the chunk.
    subdomain : int
        Subdomain that owns the part.
    holder : int
        Subdomain that contains the first element of the chunk. The rank of the holder assembles the chunk.
    box : Box
        Elements of the array in the part.
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
    """Return the parts of chunks that a rank owns, and all parts of the chunks that the rank assembles.

    Parameters
    ----------
    cut : Decomposition
    subdomains : sequence of int
        Subdomains of the rank.
    grid : ChunkGrid
        Chunks of the array.
    points : sequence of int
        Points of the field along each axis: the number of cells, plus one along a staggered axis with an
        upper wall.
    selection : Selection
        Points that form the array.

    Returns
    -------
    own : list of Part
        Parts in the subdomains of this rank, by chunk.
    parts : list of Part
        Parts of the chunks whose first element this rank owns, by chunk.
    """
    chunks: list[Index] = []
    owned_parts: list[Part] = []
    for number in subdomains:
        owned_elements = selection.elements(_points(cut, number, points))
        chunks += grid.starting_in(owned_elements)
        for chunk in grid.over(owned_elements):
            box = grid.box(chunk)
            owned_parts.append(
                Part(chunk, number, _holder(cut, selection.point(box.lo)), box.intersect(owned_elements))
            )
    owned_parts.sort(key=lambda part: (part.chunk, part.subdomain))
    parts = []
    for chunk in chunks:
        box = grid.box(chunk)
        last = tuple(h - 1 for h in box.hi)
        for number in _holders(cut, selection.point(box.lo), selection.point(last)):
            held_elements = selection.elements(_points(cut, number, points)).intersect(box)
            if held_elements:  # a stride may skip a whole subdomain
                parts.append(Part(chunk, number, _holder(cut, selection.point(box.lo)), held_elements))
    parts.sort(key=lambda part: (part.chunk, part.subdomain))
    return owned_parts, parts


def _points(cut: Decomposition, number: int, points: Sequence[int]) -> Box:
    """Return the points of a field in a subdomain."""
    box = cut.box(number)
    ends = zip(box.hi, cut.shape, points, strict=True)
    return Box(box.lo, tuple(most if h == cells else h for h, cells, most in ends))


def _place(cut: Decomposition, axis: int, point: int) -> int:
    """Return the coordinate along an axis of the subdomain that contains a point."""
    cell = min(point, cut.shape[axis] - 1)
    return ((cell + 1) * cut.parts[axis] - 1) // cut.shape[axis]


def _holder(cut: Decomposition, point: Index) -> int:
    """Return the subdomain that contains a point."""
    (number,) = _holders(cut, point, point)
    return number


def _holders(cut: Decomposition, first: Index, last: Index) -> Iterator[int]:
    """Yield the subdomains that contain points of the box from `first` to `last`, both included."""
    places = (
        range(_place(cut, axis, l), _place(cut, axis, h) + 1)
        for axis, (l, h) in enumerate(zip(first, last, strict=True))
    )
    for coordinates in product(*places):
        yield cut.rank_of(coordinates)
