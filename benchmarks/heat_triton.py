"""Triton kernels of the heat equation, for heat_python.py."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def fill_halo(
    field: Any,
    n: Any,
    first: Any,
    stride: Any,
    along: Any,
    across: Any,
    WIDTH: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:
    """Fill one layer of the halo on both sides of an axis; the third program number is the layer."""
    i = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    j = tl.program_id(1) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    layer = tl.program_id(2)
    inside = (i < n) & (j < n)
    line = field + first + j * across + i * along
    last = tl.load(line + (n - 1 - layer) * stride, mask=inside)
    tl.store(line - (1 + layer) * stride, last, mask=inside)
    low = tl.load(line + layer * stride, mask=inside)
    tl.store(line + (n + layer) * stride, low, mask=inside)


@triton.jit
def heat(
    field: Any,
    result: Any,
    n: Any,
    first: Any,
    pitch: Any,
    plane: Any,
    factor: tl.constexpr,
    centre: tl.constexpr,
    weight_1: tl.constexpr,
    weight_2: tl.constexpr,
    weight_3: tl.constexpr,
    weight_4: tl.constexpr,
    RADIUS: tl.constexpr,
    WIDTH: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:
    """Compute one block of a plane; the third program number is the plane."""
    x = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    y = tl.program_id(1) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    inside = (x < n) & (y < n)
    offset = first + tl.program_id(2).to(tl.int64) * plane + y * pitch + x
    at = field + offset
    cell = tl.load(at, mask=inside)
    # tl.full keeps constants in float64, which some versions of Triton round to float32 in products
    laplacian = tl.full((1, 1), centre, cell.dtype) * cell
    for r in tl.static_range(1, RADIUS + 1):
        weight: tl.constexpr = (
            weight_1 if r == 1 else weight_2 if r == 2 else weight_3 if r == 3 else weight_4
        )
        sums = tl.load(at - r, mask=inside) + tl.load(at + r, mask=inside)
        sums += tl.load(at - r * pitch, mask=inside) + tl.load(at + r * pitch, mask=inside)
        sums += tl.load(at - r * plane, mask=inside) + tl.load(at + r * plane, mask=inside)
        laplacian += tl.full((1, 1), weight, cell.dtype) * sums
    tl.store(result + offset, cell + tl.full((1, 1), factor, cell.dtype) * laplacian, mask=inside)
