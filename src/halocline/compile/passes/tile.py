"""A sweep with stages on a device, as one kernel: a group works through a tile of cells, stage by stage, each
over as many cells more as those after it read. The stages stay in memory that the group shares."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from halocline.compile.device import REDUCING_BYTES
from halocline.compile.ir.kernel import Array, Kernel
from halocline.compile.ir.statements import (
    Barrier,
    Body,
    Cells,
    Finish,
    Let,
    Nest,
    Point,
    Reduce,
    Reset,
    Share,
    Store,
    Tile,
    roots,
)
from halocline.compile.printers.text import padded, padded_extent
from halocline.lang.dtype import ITEMSIZE

TILES = {1: (1, 1, 512), 2: (1, 16, 64), 3: (4, 8, 32)}  # cells of a group, by axes of the grid
GROUP = (64, 4, 1)  # threads


def fits(kernel: Kernel, shared: int) -> bool:
    """Whether the stages of a kernel fit into the bytes that a group can share, tile by tile; no nest may be
    of one cell."""
    nests = [s for s in kernel.body if isinstance(s, Nest)]
    if any(nest.cell is not None for nest in nests):
        return False
    tiles = _tiles(kernel)
    reduces = any(isinstance(s, Reduce) for nest in nests for s in nest.body)
    taken = sum(prod(tile.shape) * ITEMSIZE[tile.dtype] for tile in tiles.values())
    return bool(tiles) and taken + reduces * REDUCING_BYTES <= shared


def _tiles(kernel: Kernel) -> dict[str, Array]:
    """The stages as tiles."""
    found = {}
    for nest in kernel.body:
        assert isinstance(nest, Nest)
        extent, top = padded_extent(nest.extent, kernel.ndim), padded(nest.top, kernel.ndim)
        shape = tuple(n + lo + hi + t for n, (lo, hi), t in zip(TILES[kernel.ndim], extent, top, strict=True))
        for s in nest.body:
            if isinstance(s, Store) and kernel.array[s.array].kind == "scratch":
                found[s.array] = replace(kernel.array[s.array], kind="tile", layers=extent, shape=shape)
    return found


def tile(kernel: Kernel) -> Kernel:
    """All nests of a kernel, over a tile of each group."""
    tiles = _tiles(kernel)
    results = [s for nest in kernel.body if isinstance(nest, Nest) for s in nest.body]
    kinds = tuple(s.kind for s in results if isinstance(s, Reduce))
    written = {s.array for s in results if isinstance(s, Store)}
    body: Body = tuple(Reset(n, kind) for n, kind in enumerate(kinds))
    body += (*(Share(name) for name in tiles), Tile(TILES[kernel.ndim]))
    for nest in kernel.body:
        assert isinstance(nest, Nest)
        wanted = roots(nest.body)
        order = kernel.below(wanted)
        outside = tuple(n for n in order if kernel.values[n].depth == 0)
        inside = tuple(n for n in order if n not in outside)
        touched = {name for name, _ in kernel.loads(wanted)}
        touched |= {s.array for s in nest.body if isinstance(s, Store)}
        points = tuple(Point(a.name, a.name in written) for a in kernel.arrays if a.name in touched)
        cells = Cells((*points, *((Let(inside),) if inside else ()), *nest.body))
        body += (replace(nest, body=(*((Let(outside),) if outside else ()), cells, Barrier())),)
    arrays = tuple(tiles.get(array.name, array) for array in kernel.arrays)
    return replace(kernel, arrays=arrays, body=(*body, *((Finish(kinds),) if kinds else ())))
