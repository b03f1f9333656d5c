"""Footprints: the halo segments that a computation reads, with their widths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

Offset = tuple[int, ...]
Direction = tuple[int, ...]


@dataclass(frozen=True)
class Footprint:
    """Halo segments of one field, with their widths.

    Each segment has a different direction. A direction is a tuple with -1, 0 or 1 per axis; at least one
    entry is not zero. One nonzero entry denotes a side, two denote an edge (in 2D, a corner), three denote a
    corner. The width is a tuple with one entry per axis. The entry is the number of layers if the direction
    is not zero along the axis, else 0.

    Parameters
    ----------
    segments : tuple of (direction, width)
        Sorted by direction, without empty segments, so that equal footprints compare equal.
    """

    segments: tuple[tuple[Direction, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, widths: Iterable[tuple[Direction, tuple[int, ...]]]) -> Footprint:
        """Return the union of segments, which may have any order and repeated directions."""
        merged: dict[Direction, tuple[int, ...]] = {}
        for direction, width in widths:
            old = merged.get(direction)
            merged[direction] = width if old is None else tuple(map(max, old, width))
        return cls(tuple(sorted(merged.items())))

    @classmethod
    def from_offsets(cls, offsets: Iterable[Offset]) -> Footprint:
        """Return the segments that a subdomain reads if each of its cells reads at `offsets`.

        An access at (1, -1) shifts the box of the subdomain by one cell along both axes. The shifted box
        covers part of two sides and of the corner between them.
        """
        # the maximum offset to each side, edge or corner
        farthest = cls.of(
            (tuple((o > 0) - (o < 0) for o in offset), tuple(map(abs, offset))) for offset in offsets
        )
        return cls.of(
            (direction, tuple(w if d else 0 for w, d in zip(distance, direction, strict=True)))
            for towards, distance in farthest
            for direction in product(*({0, t} for t in towards))
            if any(direction)
        )

    def __iter__(self) -> Iterator[tuple[Direction, tuple[int, ...]]]:
        return iter(self.segments)

    def __bool__(self) -> bool:
        return bool(self.segments)

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint.of((*self.segments, *other.segments))

    def __le__(self, other: Footprint) -> bool:
        """Return True if `other` contains all segments of this footprint in full."""
        return not self - other

    def __sub__(self, other: Footprint) -> Footprint:
        """Return the segments that `other` does not cover in full."""
        covered = dict(other.segments)
        return Footprint(
            tuple(
                (direction, width)
                for direction, width in self.segments
                if direction not in covered
                or any(w > h for w, h in zip(width, covered[direction], strict=True))
            )
        )

    def layers(self, ndim: int) -> tuple[tuple[int, int], ...]:
        """Return the minimum halo layers (lower, upper) of each axis that contain all segments."""

        def widest(axis: int, side: int) -> int:
            return max((width[axis] for d, width in self.segments if d[axis] * side > 0), default=0)

        return tuple((widest(axis, -1), widest(axis, 1)) for axis in range(ndim))
