"""Boxes of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

Layers = Sequence[tuple[int, int]]


def three(values: Sequence[int], fill: int = 0) -> list[int]:
    """Extend per-axis values to three axes: insert `fill` in front for each missing axis."""
    return [fill] * (3 - len(values)) + [int(v) for v in values]


@dataclass(frozen=True, slots=True)
class Box:
    """Box of cells, from `lo` up to, but not including, `hi`.

    In the indices of a subdomain, cell (0, 0, 0) is the first interior cell. Halo cells have negative indices
    or indices beyond the shape of the subdomain.
    """

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(max(0, h - l) for l, h in zip(self.lo, self.hi, strict=True))

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def on_three_axes(self) -> tuple[list[int], list[int]]:
        """Bounds `lo` and `hi` on three axes: missing axes come first and have one cell."""
        return three(self.lo), three(self.hi, 1)

    def __bool__(self) -> bool:
        """Return True if the box has at least one cell."""
        return all(l < h for l, h in zip(self.lo, self.hi, strict=True))

    def __contains__(self, cell: Sequence[int]) -> bool:
        return all(l <= i < h for l, i, h in zip(self.lo, cell, self.hi, strict=True))

    def __le__(self, other: Box) -> bool:
        """Return True if every cell of this box lies in `other`."""
        return not self or self == self.intersect(other)

    def intersect(self, other: Box) -> Box:
        """Return the intersection of two boxes; it may be empty."""
        return Box(
            tuple(map(max, self.lo, other.lo)),
            tuple(map(min, self.hi, other.hi)),
        )

    def shift(self, offset: Sequence[int]) -> Box:
        """Return the box moved by `offset` cells."""
        return Box(
            tuple(l + o for l, o in zip(self.lo, offset, strict=True)),
            tuple(h + o for h, o in zip(self.hi, offset, strict=True)),
        )

    def grow(self, layers: Layers) -> Box:
        """Return the box with `layers` (below, above) added along each axis."""
        return Box(
            tuple(l - below for l, (below, _) in zip(self.lo, layers, strict=True)),
            tuple(h + above for h, (_, above) in zip(self.hi, layers, strict=True)),
        )
