"""Patches: boxes of a subdomain, the units of work, of waits for messages and of cache blocking."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, prod
from typing import TYPE_CHECKING, Any

from halocline.compile.footprint import Footprint
from halocline.compile.ir.statements import Slot
from halocline.compile.schedule import Schedule, Sweep
from halocline.errors import InputError
from halocline.lang.axes import is_sequence, per_axis, whole_number
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.subdomain import Subdomain
from halocline.ranges import PATCHES, THREADS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL_2 = 2**20  # default size of the level-2 cache of a core, in bytes
PATCHES_PER_THREAD = 8  # many patches balance the load, since one thread also packs and polls.
MOST_CELLS = 2**22  # maximum cells of a patch; a few milliseconds of work.
POLLED_CELLS = 2**16  # maximum cells of a patch if messages progress only when a thread polls.
FEWEST_CELLS = 2**12  # minimum cells of a patch that is cut only to increase the number of patches.
LONGEST_LAYER = 16  # upper limit of the default thickness of outer patches, in cells.
ROW_LAYER = 32  # default thickness along rows: whole cache lines
SHORTEST_ROW = 512
OVERLAP = 16  # minimum ratio of the length of a patch to the extra points of its stages, from measurements.
STAGED = 4  # maximum working set of sweeps with stages, as a multiple of the level-2 cache.
ROW_ALIGNMENT = 64  # alignment of rows of scratch memory, in bytes.
ROW_ASPECT = 32  # target ratio of the row length to the other edges of a patch
SCRATCH_BYTES = 4 * 2**30  # limit of scratch memory of a subdomain on a device; above it, slabs are computed
SLAB_OVERLAP = 8  # minimum ratio of the planes of a slab to the extra planes of its stages


@dataclass(frozen=True)
class WorkingSet:
    """Memory accesses of one sweep while it processes a patch plane by plane along axis 0.

    Parameters
    ----------
    arrays : tuple of (bytes, layers)
        For each operand, the bytes of an element and the layers (lower, upper) per axis of its reads.
    scratch : tuple of Slot
        Scratch arrays of the sweep.
    """

    arrays: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    scratch: tuple[Slot, ...] = ()

    @classmethod
    def of(cls, schedule: Schedule, sweep: Sweep) -> WorkingSet:
        """Return the working set of a sweep of `schedule`."""
        items = [ITEMSIZE[schedule.fields[field].dtype] for field in sweep.operands]
        layers = [sweep.reads.get(field, Footprint()).layers(schedule.ndim) for field in sweep.operands]
        return cls(tuple(zip(items, layers, strict=True)), sweep.scratch)

    def bytes(self, patch: Sequence[int]) -> int:
        """Return the bytes that should stay in cache: scratch arrays, and the planes that the sweep reads."""
        planes = sum(
            size * (1 + sum(layers[0])) * prod(n + sum(l) for n, l in zip(patch[1:], layers[1:], strict=True))
            for size, layers in self.arrays
        )
        return planes + sum(slot.item * prod(slot.points(patch)) for slot in self.scratch)

    def least(self, axis: int) -> int:
        """Return the minimum length of a patch along an axis at which the halo does not dominate."""
        reach = max((sum(layers[axis]) for _, layers in self.arrays), default=0)
        return max(8, 2 * reach)

    def least_staged(self, axis: int) -> int:
        """Return the minimum length of a patch at which the extra points of stages are a small fraction."""
        return max(self.least(axis), OVERLAP * max((s.extra[axis] for s in self.scratch), default=0))


def patch_shape(shape: Sequence[int], working_sets: Sequence[WorkingSet], cache: int) -> tuple[int, ...]:
    """Return the largest patch whose working set fits in half of the level-2 cache in every sweep.

    For sweeps with stages, the limit is `STAGED` times the level-2 cache if smaller patches would compute
    many stage points twice. Loads from the next cache level then cost less than repeated computation.

    A sweep processes a patch along axis 0. A patch is therefore as long as the subdomain along axis 0, unless
    scratch arrays cover the whole patch. Each cell is then loaded once for all planes that read the cell.

    In three dimensions, axis 1 is shortened before rows. Rows keep at least 512 cells, because short rows
    cost more than a miss in the level-2 cache (docs/performance.md). If no such patch fits, the result is the
    minimum patch. WOMBAT also performs best with patches that exceed the level-2 cache (Mendygral et al.
    2017, Fig. 5).
    """
    patch = list(shape)
    last = len(patch) - 1
    for load in working_sets:
        for limit, bound in ((cache // 2, load.least_staged), (STAGED * cache, load.least)):
            minimum_shape = [bound(axis) for axis in range(last + 1)]
            minimum_shape[last] = max(load.least(last), SHORTEST_ROW)
            patch = _cut(patch, load, limit if load.scratch else cache // 2, minimum_shape)
    return tuple(patch)


def _cut(patch: list[int], load: WorkingSet, limit: int, least: Sequence[int]) -> list[int]:
    """Halve a patch until its working set fits the limit or no axis can be halved; return its shape."""
    last = len(patch) - 1
    while (size := load.bytes(patch)) > limit:
        halves = [[-(-n // 2) if a == axis else n for a, n in enumerate(patch)] for axis in range(last + 1)]
        able = [
            axis for axis, half in enumerate(halves) if half[axis] >= least[axis] and load.bytes(half) < size
        ]
        if not able:
            break
        axis = max(able, key=lambda axis: (patch[axis] / (ROW_ASPECT if axis == last else 1), axis < last))
        patch = halves[axis]
    return patch


@dataclass(frozen=True, eq=False)
class Patches:
    """Patches of one subdomain in row-major order, without the patches of inactive blocks.

    Parameters
    ----------
    edges : tuple of tuple of int
        Positions of the cuts along each axis, both ends included.
    table : array (patches, 3, axes) of int64
        First cell, end and `top` of each patch. The flag `top` is 1 if the patch ends at an upper wall.
        Points that are staggered along the axis then have one more index.
    ranges : tuple of int
        Thread t initialises the patches ``ranges[t]:ranges[t + 1]`` (first touch), and processes them before
        patches of other threads. All ranges have about the same number of cells.
    slabs : int
        Number of slabs along axis 0 that limit the scratch memory of a device; 1 for one inner patch.
    """

    edges: tuple[tuple[int, ...], ...]
    table: NDArray[np.int64]
    ranges: tuple[int, ...]
    slabs: int = 1

    def __len__(self) -> int:
        return len(self.table)

    @property
    def max_extents(self) -> list[int]:
        """Maximum extent of the patches along each axis; scratch memory is sufficient for these extents."""
        extents: list[int] = (self.table[:, 1] - self.table[:, 0]).max(axis=0, initial=0).tolist()
        return extents

    @property
    def owners(self) -> NDArray[np.int32]:
        """Thread of each patch."""
        import numpy as np

        counts = np.diff(self.ranges)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def cut_patches(
    subdomain: Subdomain,
    working_sets: Sequence[WorkingSet],
    received: Sequence[tuple[int, int]],
    *,
    ends: tuple[int, int] = (0, 0),
    patch: int | Sequence[int] | Mapping[str, int] | None = None,
    threads: int = 1,
    cache: int | None = None,
    blocks: Blocks | None = None,
    polled: bool = False,
    device: bool = False,
) -> Patches:
    """Return the patches of a subdomain.

    Parameters
    ----------
    working_sets : sequence of WorkingSet
        Working set of every sweep.
    received : sequence of (int, int)
        Maximum depth per axis of reads from halo cells that arrive by message; 0 for a side without messages.
        Patches along a side with messages are thin, so that the inner patches need not wait for these
        messages.
    ends : (int, int)
        Minimum length of the patches at the lower and upper end of rows. If rows wrap around (`Sweep.wraps`),
        each patch within reach of an end fills the halo at this end. Two patches must not write the same
        cells.
    patch : int, or sequence or mapping of int, optional
        Cells of a patch along all axes or along each axis, as set by the user. Patches at the upper ends are
        smaller if these numbers do not divide the subdomain. By default, `patch_shape` sets the inner
        patches, and outer patches are thin. The default has at least 8 inner patches per thread, as long as
        each of them has at least 4096 cells.
    threads : int
    cache : int, optional
        Bytes of the level-2 cache of a core.
    blocks : Blocks, optional
        Blocks of the grid. The borders of blocks also cut patches; patches of inactive blocks are omitted.
    polled : bool
        True if messages require polling: patches are then short.
    device : bool
        True if a device owns the subdomain. There is then one inner patch, because all threads of the device
        process the same patch. If its scratch arrays exceed `SCRATCH_BYTES`, slabs along axis 0 replace this
        patch; see `slab_count`.

    Raises
    ------
    InputError
        The patch shape is not positive or does not have the dimension of the grid, or there are no threads.
    """
    THREADS.check("threads", threads)
    shape, slabs = subdomain.shape, 1
    if patch is None and device:
        outer = _outer_layers(shape, received)
        inner = [n - sum(layers) for n, layers in zip(shape, outer, strict=True)]
        slabs = _slabs(inner, working_sets, blocks)
        edges = _edges(outer, inner, (slabs, *(1 for _ in inner[1:])))
    elif patch is None:
        edges = _default_edges(
            shape, working_sets, received, threads, cache or LEVEL_2, POLLED_CELLS if polled else MOST_CELLS
        )
    else:
        edges = [[*range(0, n, size), n] for n, size in zip(shape, _explicit(patch, len(shape)), strict=True)]
    lower, upper = ends[0], shape[-1] - ends[1]
    edges[-1] = [0, *(cut for cut in edges[-1][1:-1] if lower <= cut <= upper), shape[-1]]
    if blocks is None:
        return _table(edges, subdomain.walls, threads, slabs)
    box = subdomain.box
    edges = [
        sorted({*cuts, *(cut - lo for cut in borders if lo < cut < hi)})
        for cuts, borders, lo, hi in zip(edges, blocks.borders, box.lo, box.hi, strict=True)
    ]
    return _table(edges, subdomain.walls, threads, slabs, lambda lo: blocks.active_at(lo + box.lo))


def _slabs(inner: Sequence[int], working_sets: Sequence[WorkingSet], blocks: Blocks | None) -> int:
    """Return the number of slabs along axis 0 of the inner cells of a subdomain on a device."""
    patch = list(inner)
    if blocks is not None:  # borders of blocks cut the patches too
        patch = [
            min(n, max(hi - lo for lo, hi in pairwise(borders)))
            for n, borders in zip(inner, blocks.borders, strict=True)
        ]
    count = slab_count(patch, [working_set.scratch for working_set in working_sets])
    return 1 if count == 1 else ceil(count * inner[0] / patch[0])


def _explicit(patch: int | Sequence[int] | Mapping[str, int], ndim: int) -> tuple[int, ...]:
    """Return the patch shape that a user specifies."""
    shape: Any = patch
    if is_sequence(shape):
        if len(shape) not in (1, ndim):
            raise InputError(f"patch {tuple(shape)} has {len(shape)} axes, but the grid has {ndim}")
        shape = tuple(shape) * (ndim if len(shape) == 1 else 1)
    sizes = per_axis(shape, ndim, "patch", whole_number, "whole cells")
    if min(sizes) < 1:
        raise InputError(f"patch {sizes} is empty: every entry must be at least 1")
    return sizes


def _default_edges(
    shape: tuple[int, ...],
    working_sets: Sequence[WorkingSet],
    received: Sequence[tuple[int, int]],
    threads: int,
    cache: int,
    most_cells: int,
) -> list[list[int]]:
    last = len(shape) - 1
    outer = _outer_layers(shape, received)
    inner = [n - sum(layers) for n, layers in zip(shape, outer, strict=True)]

    patch = patch_shape(inner, working_sets, cache)
    pieces = [ceil(n / size) for n, size in zip(inner, patch, strict=True)]
    least = [max((w.least_staged(axis) for w in working_sets), default=8) for axis in range(last + 1)]
    target = max(PATCHES_PER_THREAD * threads, ceil(prod(inner) / most_cells))
    target = min(target, prod(inner) // FEWEST_CELLS)
    # The first cuts give each thread a slab of the grid. Further cuts increase the number of patches. Rows
    # are not cut.
    for axis in range(max(1, last)):
        most = max(pieces[axis], inner[axis] // least[axis])
        enough = ceil(target / prod(pieces[:axis] + pieces[axis + 1 :]))
        pieces[axis] = min(most, max(pieces[axis], enough, min(threads, target) if axis == 0 else 1))

    return _edges(outer, inner, pieces)


def slab_count(patch: Sequence[int], scratch_of_sweeps: Sequence[tuple[Slot, ...]]) -> int:
    """Return the number of slabs along axis 0 that a device computes instead of a patch.

    The scratch arrays of a slab need at most `SCRATCH_BYTES`. However, each slab recomputes stages on planes
    of its neighbours. A slab therefore has at least `SLAB_OVERLAP` times as many planes as it recomputes,
    even if its scratch arrays then exceed the limit.

    Parameters
    ----------
    patch : sequence of int
        Cells along each axis.
    scratch_of_sweeps : sequence of tuple of Slot
        Scratch arrays of every sweep.

    Returns
    -------
    int
        Number of slabs; 1 if the scratch arrays of the patch are within the limit.
    """
    count, overlap = 1, 0
    for slots in scratch_of_sweeps:
        constant, whole = (slot_bytes(slots, (planes, *patch[1:])) for planes in (0, patch[0]))
        if whole > max(constant, SCRATCH_BYTES):
            planes = max(1, (SCRATCH_BYTES - constant) * patch[0] // (whole - constant))
            count = max(count, ceil(patch[0] / planes))
        overlap = max([overlap, *(slot.extra[0] for slot in slots)])
    return max(1, min(count, patch[0] // max(1, SLAB_OVERLAP * overlap)))


def _edges(outer: Sequence[tuple[int, int]], inner: Sequence[int], pieces: Sequence[int]) -> list[list[int]]:
    """Return the cuts of outer patches, and of inner patches that divide the inner cells evenly."""
    return [
        sorted({0, *(lower + i * n // p for i in range(p + 1)), lower + n + upper})
        for (lower, upper), n, p in zip(outer, inner, pieces, strict=True)
    ]


def _outer_layers(shape: tuple[int, ...], received: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the thickness of the patches at both ends of each axis.

    The thickness is 0 at ends without messages, and for short axes.
    """
    layers = []
    for axis, (n, reach) in enumerate(zip(shape, received, strict=True)):
        least = ROW_LAYER if axis == len(shape) - 1 else min(n // 16, LONGEST_LAYER)
        lower, upper = (max(least, layer) if layer else 0 for layer in reach)
        fits = 2 * (lower + upper) <= n and prod(shape) >= 8 * FEWEST_CELLS
        layers.append((lower, upper) if fits else (0, 0))
    return layers


def _table(
    edges: Sequence[Sequence[int]],
    walls: tuple[tuple[bool, bool], ...],
    threads: int,
    slabs: int,
    active: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
) -> Patches:
    """Return all patches between the edges, or only patches with an active first cell."""
    import numpy as np  # functions that plan no patches do not need NumPy

    count = prod(len(e) - 1 for e in edges)
    if count > PATCHES.most:
        shape = " x ".join(f"{e[-1]:,}" for e in edges)
        raise InputError(
            f"a subdomain of {shape} cells has {count:,} patches, but at most {PATCHES.most:,} can be "
            "planned. Use more ranks or larger patches."
        )
    intervals = [list(pairwise(e)) for e in edges]
    grid = np.indices([len(i) for i in intervals]).reshape(len(edges), -1)
    table = np.empty((grid.shape[1], 3, len(edges)), dtype=np.int64)
    for axis, (cuts, (_, wall)) in enumerate(zip(edges, walls, strict=True)):
        cut = np.asarray(cuts, dtype=np.int64)
        table[:, 0, axis] = cut[grid[axis]]
        table[:, 1, axis] = cut[grid[axis] + 1]
        table[:, 2, axis] = wall & (table[:, 1, axis] == cuts[-1])
    if active is not None:
        table = table[active(table[:, 0])]
    table.setflags(write=False)

    cells = list(accumulate((table[:, 1] - table[:, 0]).prod(axis=1).tolist(), initial=0))
    shares = (t * cells[-1] / threads for t in range(1, threads))
    ranges = (0, *(bisect_left(cells, share) for share in shares), len(table))
    return Patches(tuple(tuple(e) for e in edges), table, ranges, slabs)


def scratch_bytes(sweep: Sweep, patches: Patches) -> int:
    """Return the bytes of scratch memory that the kernel of a sweep requires for the largest patch."""
    return slot_bytes(sweep.scratch, patches.max_extents)


def slot_bytes(slots: Sequence[Slot], patch: Sequence[int]) -> int:
    """Return the bytes of scratch arrays for a patch, with padded rows."""
    total = 0
    for slot in slots:
        *outer, row = slot.points(patch)
        total += prod(outer) * -(-slot.item * row // ROW_ALIGNMENT) * ROW_ALIGNMENT
    return total
