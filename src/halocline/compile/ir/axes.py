"""Generated code has three axes; those of a grid are the last of them."""

from __future__ import annotations

from collections.abc import Sequence


def padded(values: Sequence[int], ndim: int, fill: int = 0) -> tuple[int, ...]:
    """What a grid has per axis, on three axes."""
    return (*(fill,) * (3 - ndim), *values)


def padded_extent(extent: Sequence[tuple[int, int]], ndim: int) -> tuple[tuple[int, int], ...]:
    """Extents on three axes."""
    return (*((0, 0),) * (3 - ndim), *extent)
