"""A subdomain: its cells, its halo segments and who fills them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import add, sub

from halocline.compile.footprint import Direction
from halocline.compile.schedule import FieldInfo
from halocline.lang.blocks import Blocks
from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition


@dataclass(frozen=True)
class Subdomain:
    """One part of a decomposition. All boxes that its methods return are in the subdomain's own indices."""

    decomposition: Decomposition
    number: int

    @cached_property
    def box(self) -> Box:
        """Its cells in the indices of the grid."""
        return self.decomposition.box(self.number)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Its cells along each axis."""
        return self.box.shape

    @cached_property
    def walls(self) -> tuple[tuple[bool, bool], ...]:
        """Per axis, whether its (lower, upper) end is a wall of the grid."""
        cut, box = self.decomposition, self.box
        return tuple(
            (not wraps and lo == 0, not wraps and hi == n)
            for wraps, lo, hi, n in zip(cut.periodic, box.lo, box.hi, cut.shape, strict=True)
        )

    def active(self, blocks: Blocks | None) -> bool:
        """Whether it has any active cell."""
        return blocks is None or blocks.any(self.box.lo, self.box.hi)

    def pieces(self, box: Box, blocks: Blocks | None) -> Iterator[Box]:
        """The active cells of a box, as boxes; what lies beyond the grid counts with the nearest cells."""
        if blocks is None:
            yield box
            return
        first = self.box.lo
        lo, hi = tuple(map(add, box.lo, first)), tuple(map(add, box.hi, first))
        for begin, end in blocks.pieces(lo, hi):
            yield Box(tuple(map(sub, begin, first)), tuple(map(sub, end, first)))

    def neighbour(self, direction: Direction) -> int | None:
        """The subdomain in `direction`; None beyond a wall."""
        return self.decomposition.neighbour(self.number, direction)

    def across(self, direction: Direction) -> Direction:
        """`direction` without the axes that this subdomain spans alone.

        Along those a step leads back to the same subdomain: segments that differ only there come from
        the same neighbour, and a direction without other axes leads to the subdomain itself.
        """
        return tuple(d if p > 1 else 0 for d, p in zip(direction, self.decomposition.parts, strict=True))

    @cached_property
    def cells(self) -> Box:
        """Its cells, from zero."""
        return Box((0,) * len(self.shape), self.shape)

    def owned(self, field: FieldInfo) -> Box:
        """The points of `field` that this rank computes.

        There are as many as cells, and one more at an upper wall that the points are staggered along.
        """
        upper = zip(field.staggered, self.walls, strict=True)
        return self.cells.grow([(0, staggered and wall) for staggered, (_, wall) in upper])

    def segment(self, points: Box, direction: Direction, width: tuple[int, ...]) -> Box:
        """The halo segment in `direction` of the owned `points` (or cells)."""
        along = list(zip(direction, width, self.shape, points.hi, strict=True))
        return Box(
            tuple(-w if d < 0 else n if d > 0 else 0 for d, w, n, _ in along),
            tuple(0 if d < 0 else n + w if d > 0 else end for d, w, n, end in along),
        )

    def source(self, points: Box, direction: Direction, width: tuple[int, ...]) -> Box:
        """The owned `points` that are the segment in `direction` of the subdomain they go to."""
        segment = self.segment(points, direction, width)
        return segment.shift([-d * n for d, n in zip(direction, self.shape, strict=True)])
