"""Blocks of a grid: boxes of nearly equal size, each active or inactive."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import groupby, product
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.words import short_repr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cells = tuple[tuple[int, ...], tuple[int, ...]]  # first cell and end (exclusive) of a box


@dataclass(frozen=True)
class Blocks:
    """Division of a grid into blocks, each active or inactive.

    The sizes of the blocks along an axis differ by at most one cell.

    Parameters
    ----------
    shape : tuple of int
        Number of cells of the grid along each axis.
    counts : tuple of int
        Number of blocks along each axis.
    active : bytes
        One byte for each block, in C order: 1 if the block is active.
    """

    shape: tuple[int, ...]
    counts: tuple[int, ...]
    active: bytes = field(repr=False)
    digest: str = field(init=False)  # short form of `active`, for the plan texts, which ranks compare

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", blake2b(self.active, digest_size=8).hexdigest())

    @classmethod
    def of(cls, mask: Any, shape: Sequence[int]) -> Blocks:
        """Return the blocks of a grid, from a mask with one entry for each block.

        Raises
        ------
        InputError
            The mask does not have as many axes as the grid, or it has more blocks than the grid has cells
            along an axis. An entry is neither true nor false, or no block is active.
        """
        import numpy as np

        if np.ma.is_masked(mask):
            raise InputError("active has masked values; expected True or False for each block")
        try:
            array = np.asarray(mask)
        except ValueError:
            raise InputError(f"active is {short_repr(mask)}; expected an array of True or False") from None
        if array.ndim != len(shape):
            raise InputError(
                f"active has {array.ndim} axes; expected {len(shape)}, one entry for each block of a grid of "
                f"shape {tuple(shape)}"
            )
        for axis, (count, n) in enumerate(zip(array.shape, shape, strict=True)):
            if not 1 <= count <= n:
                raise InputError(
                    f"active has {count} blocks along axis {'xyz'[axis]} of {n} cells; expected 1 to {n}"
                )
        if array.dtype != np.bool_:
            raise InputError(f"active has entries of dtype {array.dtype}; expected True or False")
        if not array.any():
            raise InputError("active has no active block; expected at least one")
        return cls(tuple(shape), array.shape, array.tobytes())

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Mask of the active blocks: an array with one entry per block."""
        import numpy as np

        return np.frombuffer(self.active, dtype=np.bool_).reshape(self.counts)

    @cached_property
    def borders(self) -> tuple[tuple[int, ...], ...]:
        """First cell of each block along each axis, followed by the number of cells along the axis."""
        return tuple(
            tuple(i * n // count for i in range(count + 1))
            for n, count in zip(self.shape, self.counts, strict=True)
        )

    @cached_property
    def cells(self) -> int:
        """Number of active cells."""
        return sum(
            prod(map(int.__sub__, hi, lo)) for lo, hi in self.pieces((0,) * len(self.shape), self.shape)
        )

    def block(self, cell: Sequence[int]) -> tuple[int, ...]:
        """Return the index of the block of a cell; a cell beyond the grid belongs to the nearest block."""
        return tuple(
            min(max(bisect_right(border, i), 1), count) - 1
            for border, count, i in zip(self.borders, self.counts, cell, strict=True)
        )

    def is_active(self, cell: Sequence[int]) -> bool:
        """Return True if a cell is active."""
        return bool(self.mask[self.block(cell)])

    def active_at(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for each active cell of an array of cells with the shape (cells, axes)."""
        import numpy as np

        place = (
            np.searchsorted(border, cells[:, axis], side="right") - 1
            for axis, border in enumerate(self.borders)
        )
        return self.mask[tuple(place)]

    def with_neighbours(self, reach: Sequence[int], periodic: Sequence[bool]) -> Blocks:
        """Return a copy in which the blocks within `reach` cells of an active block are active too.

        Parameters
        ----------
        reach : sequence of int
            Number of cells along each axis.
        periodic : sequence of bool
            True for each periodic axis.
        """
        import numpy as np

        mask = self.mask
        for axis, (cells, wraps) in enumerate(zip(reach, periodic, strict=True)):
            block_size = self.shape[axis] // self.counts[axis]
            for _ in range(-(-cells // block_size)):
                sides = [np.roll(mask, step, axis) for step in (-1, 1)]
                if not wraps:
                    for side, end in zip(sides, (-1, 0), strict=True):
                        side[(slice(None),) * axis + (end,)] = False
                mask = mask | sides[0] | sides[1]
        return Blocks(self.shape, self.counts, mask.tobytes())

    def has_active_cell(self, lo: Sequence[int], hi: Sequence[int]) -> bool:
        """Return True if any cell of a box is active."""
        first, last = self.block(lo), self.block([i - 1 for i in hi])
        return bool(self.mask[tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))].any())

    def pieces(self, lo: Sequence[int], hi: Sequence[int]) -> Iterator[Cells]:
        """Yield boxes that together contain the active cells of a box.

        Each of these boxes covers adjacent active blocks along the last axis.
        """
        first, last = self.block(lo), self.block([i - 1 for i in hi])
        *outer, row = (range(a, b + 1) for a, b in zip(first, last, strict=True))

        def clipped(begin: Sequence[int], end: Sequence[int]) -> Cells:
            borders = self.borders
            return (
                tuple(max(l, border[b]) if b else l for l, border, b in zip(lo, borders, begin, strict=True)),
                tuple(
                    min(h, border[e + 1]) if e + 1 < count else h
                    for h, border, e, count in zip(hi, borders, end, self.counts, strict=True)
                ),
            )

        for place in product(*outer):
            for active, run in groupby(row, key=lambda n: bool(self.mask[(*place, n)])):
                if active:
                    blocks = list(run)
                    yield clipped((*place, blocks[0]), (*place, blocks[-1]))
