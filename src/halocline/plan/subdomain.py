"""Cells, halo segments and neighbours of a subdomain."""

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
    """Subdomain of a decomposition; its methods return boxes in the indices of the subdomain."""

    decomposition: Decomposition
    number: int

    @cached_property
    def box(self) -> Box:
        """Cells of the subdomain in the indices of the grid."""
        return self.decomposition.box(self.number)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return self.box.shape

    @cached_property
    def walls(self) -> tuple[tuple[bool, bool], ...]:
        """Flags per axis: True if the (lower, upper) end is a wall of the grid."""
        cut, box = self.decomposition, self.box
        return tuple(
            (not wraps and lo == 0, not wraps and hi == n)
            for wraps, lo, hi, n in zip(cut.periodic, box.lo, box.hi, cut.shape, strict=True)
        )

    def active(self, blocks: Blocks | None) -> bool:
        """Return True if the subdomain has an active cell."""
        return blocks is None or blocks.has_active_cell(self.box.lo, self.box.hi)

    def pieces(self, box: Box, blocks: Blocks | None) -> Iterator[Box]:
        """Yield the active cells of a box, as boxes.

        A cell beyond the grid is active if the nearest cell of the grid is active.
        """
        if blocks is None:
            yield box
            return
        first = self.box.lo
        lo, hi = tuple(map(add, box.lo, first)), tuple(map(add, box.hi, first))
        for begin, end in blocks.pieces(lo, hi):
            yield Box(tuple(map(sub, begin, first)), tuple(map(sub, end, first)))

    def neighbour(self, direction: Direction) -> int | None:
        """Return the subdomain in `direction`; None behind a wall."""
        return self.decomposition.neighbour(self.number, direction)

    def across(self, direction: Direction) -> Direction:
        """Return `direction` with 0 along the axes that this subdomain spans from end to end.

        Along such an axis, the neighbour is the same subdomain. Segments that differ only along these axes
        come from the same neighbour. If no other axis remains, the neighbour is the subdomain itself.
        """
        return tuple(d if p > 1 else 0 for d, p in zip(direction, self.decomposition.parts, strict=True))

    @cached_property
    def cells(self) -> Box:
        """Cells of the subdomain, with indices from zero."""
        return Box((0,) * len(self.shape), self.shape)

    def owned(self, field: FieldInfo) -> Box:
        """Return the points of `field` that this subdomain computes.

        There is one point per cell, and one more point at an upper wall of a staggered axis.
        """
        upper = zip(field.staggered, self.walls, strict=True)
        return self.cells.grow([(0, staggered and wall) for staggered, (_, wall) in upper])

    def segment(self, points: Box, direction: Direction, width: tuple[int, ...]) -> Box:
        """Return the halo segment that lies in `direction` from the owned `points` (or cells)."""
        along = list(zip(direction, width, self.shape, points.hi, strict=True))
        return Box(
            tuple(-w if d < 0 else n if d > 0 else 0 for d, w, n, _ in along),
            tuple(0 if d < 0 else n + w if d > 0 else end for d, w, n, end in along),
        )

    def source(self, points: Box, direction: Direction, width: tuple[int, ...]) -> Box:
        """Return the owned `points` that fill the halo segment in `direction` of the receiving subdomain."""
        segment = self.segment(points, direction, width)
        return segment.shift([-d * n for d, n in zip(direction, self.shape, strict=True)])
