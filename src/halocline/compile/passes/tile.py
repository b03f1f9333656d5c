"""One kernel for a sweep with stages on a device.

A thread block computes a tile of cells, stage by stage. Each stage covers the additional cells that later
stages read. The stages are in shared memory. Stages with disjoint lifetimes use the same part of this memory.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, padded, padded_extent
from halocline.compile.passes.scratch import stage_uses
from halocline.compile.passes.threads import lets
from halocline.compile.strategy import REDUCING_BYTES, Split, split_size
from halocline.lang.dtype import ITEMSIZE

# cells and threads of a thread block, by number of axes
SPLITS = {
    ndim: (
        *(Split(axis, "block", cells) for axis, cells in enumerate(shape)),
        Split(2, "thread", 64),
        Split(1, "thread", 4),
    )
    for ndim, shape in {1: (1, 1, 512), 2: (1, 16, 64), 3: (4, 8, 32)}.items()
}


def fits(kernel: Kernel, free_bytes: int) -> bool:
    """Return True if the stages of a tile fit into `free_bytes` bytes of shared memory.

    The result is False for a kernel with a nest of a single cell.
    """
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    if any(nest.cell is not None for nest in nests):
        return False
    slots = _slots(kernel)[1]
    reduces = any(isinstance(s, ir.Reduce) for nest in nests for s in nest.body)
    size = sum(prod(slot.shape) * ITEMSIZE[slot.dtype] for slot in slots)
    return bool(slots) and size + reduces * REDUCING_BYTES <= free_bytes


def _slots(kernel: Kernel) -> tuple[dict[str, Array], list[Array]]:
    """Return the stages that a kernel stores as tiles, and the parts of shared memory that they use."""
    tiles: dict[str, Array] = {}
    cells: dict[int, int] = {}
    # a thread block computes the nests in order, also those that could share a kernel
    in_order = tuple(replace(s, kernel=None) if isinstance(s, ir.Nest) else s for s in kernel.body)
    for use in stage_uses(replace(kernel, body=in_order))[0]:
        extent = padded_extent(use.extent, kernel.ndim)
        top = padded(use.top, kernel.ndim)
        sides = zip(_shape(kernel.ndim), extent, top, strict=True)
        shape = tuple(n + lo + hi + t for n, (lo, hi), t in sides)
        array = kernel.array[use.array]
        tiles[use.array] = replace(
            array, kind="stage_tile", layers=extent, shape=shape, source=f":slot{use.slot}"
        )
        cells[use.slot] = max(cells.get(use.slot, 0), prod(shape))
    types = {tile.source: tile.dtype for tile in tiles.values()}
    slots = [Array(f":slot{n}", types[f":slot{n}"], "shared", shape=(size,)) for n, size in cells.items()]
    return tiles, slots


def _shape(ndim: int) -> tuple[int, ...]:
    """Return the cells of a thread block along three axes."""
    return tuple(split_size(SPLITS[ndim], axis, "block") or 1 for axis in range(3))


def tile(kernel: Kernel) -> Kernel:
    """Convert all nests of a kernel to loops over one tile per thread block.

    The declarations for stages of other kernels remain before the nests.
    """
    tiles, slots = _slots(kernel)
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    results = [s for nest in nests for s in nest.body]
    kinds = tuple(s.kind for s in results if isinstance(s, ir.Reduce))
    written = {s.array for s in results if isinstance(s, ir.Store)}
    body: ir.Body = tuple(s for s in kernel.body if not isinstance(s, ir.Nest))
    body += tuple(ir.ResetPartial(n, kind) for n, kind in enumerate(kinds))
    body += tuple(ir.DeclareShared(slot.name) for slot in slots)
    for nest in nests:
        outside, inside = lets(kernel, nest)
        used_arrays = {name for name, _ in kernel.loads(ir.roots(nest.body))}
        used_arrays |= {s.array for s in nest.body if isinstance(s, ir.Store)}
        points = tuple(
            ir.CellAddress(a.name, a.name in written) for a in kernel.arrays if a.name in used_arrays
        )
        loop: ir.Statement = ir.Axis((0, 1, 2), "thread", 1, (*points, *inside, *nest.body))
        for axis, cells in reversed([*enumerate(_shape(kernel.ndim))]):
            loop = ir.Axis((axis,), "block", cells, (loop,))
        body += (replace(nest, body=(*outside, loop, ir.Barrier())),)
    arrays = (*(tiles.get(array.name, array) for array in kernel.arrays), *slots)
    return replace(kernel, arrays=arrays, body=(*body, *((ir.ReduceBlock(kinds),) if kinds else ())))
