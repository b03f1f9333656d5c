"""Patches: the boxes that a subdomain is cut into, the units of work, readiness and cache blocking."""

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
from halocline.lang.axes import is_sequence, per_axis, whole
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.subdomain import Subdomain
from halocline.ranges import PATCHES, THREADS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL_2 = 2**20  # bytes of the level-2 cache of a core, where that is not known
PATCHES_PER_THREAD = 8  # so that threads end together although one of them also packs and polls
MOST_CELLS = 2**22  # of a patch; a few milliseconds of work
POLLED_CELLS = 2**16  # of a patch where messages progress only while polled, which is between patches
FEWEST_CELLS = 2**12  # of a patch that is made only to have more of them
LONGEST_LAYER = 16  # of outer patches, in cells
ROW_LAYER = 32  # the same along rows: whole cache lines
SHORTEST_ROW = 512
OVERLAP = 16  # times the points that stages have around a patch, it is long at least; measured
STAGED = 4  # times the level-2 cache: what patches of sweeps with stages may take for that
ROW_ALIGNMENT = 64  # bytes, of rows of scratch memory
ROW_ASPECT = 32  # how much longer than the other edges of a patch a row is kept


@dataclass(frozen=True)
class WorkingSet:
    """What one sweep touches while it works through a patch plane by plane along axis 0.

    Parameters
    ----------
    arrays : tuple of (bytes, layers)
        For each operand the bytes of an element and the layers (lower, upper) per axis that it is read at
        around a cell.
    scratch : tuple of Slot
    """

    arrays: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    scratch: tuple[Slot, ...] = ()

    @classmethod
    def of(cls, schedule: Schedule, sweep: Sweep) -> WorkingSet:
        """The working set of a sweep of `schedule`."""
        items = [ITEMSIZE[schedule.fields[field].dtype] for field in sweep.operands]
        layers = [sweep.reads.get(field, Footprint()).layers(schedule.ndim) for field in sweep.operands]
        return cls(tuple(zip(items, layers, strict=True)), sweep.scratch)

    def bytes(self, patch: Sequence[int]) -> int:
        """Bytes that are to stay in cache: of each operand the planes in reach, and the scratch arrays."""
        planes = sum(
            size * (1 + sum(layers[0])) * prod(n + sum(l) for n, l in zip(patch[1:], layers[1:], strict=True))
            for size, layers in self.arrays
        )
        return planes + sum(each.item * prod(each.points(patch)) for each in self.scratch)

    def least(self, axis: int) -> int:
        """How short a patch may become along an axis before its halo outweighs it."""
        reach = max((sum(layers[axis]) for _, layers in self.arrays), default=0)
        return max(8, 2 * reach)

    def least_staged(self, axis: int) -> int:
        """How short it may become before what stages compute around it is more than a part of them."""
        return max(self.least(axis), OVERLAP * max((s.extra[axis] for s in self.scratch), default=0))


def patch_shape(shape: Sequence[int], working_sets: Sequence[WorkingSet], cache: int) -> tuple[int, ...]:
    """The largest patch whose working set takes at most half of the level-2 cache in every sweep.

    Patches of sweeps with stages are not cut as far where that would have the stages computed twice in many
    points: up to `STAGED` times the level-2 cache what comes from the next level costs less.

    A sweep runs through a patch along axis 0, so that a patch is as tall as the subdomain unless scratch
    arrays take its whole volume; a cell is loaded once for all planes that read it. In three dimensions
    it becomes narrower along axis 1 before rows are cut, and rows are never cut below 512 cells: short
    rows cost more than a miss in the level-2 cache (docs/performance.md). Where not even that fits, the
    result is the least patch (the patches of WOMBAT do best above the level-2 cache too: Mendygral et al.
    2017, Fig. 5).
    """
    patch = list(shape)
    last = len(patch) - 1
    for load in working_sets:
        for limit, bound in ((cache // 2, load.least_staged), (STAGED * cache, load.least)):
            least = [bound(axis) for axis in range(last + 1)]
            least[last] = max(load.least(last), SHORTEST_ROW)
            patch = _cut(patch, load, limit if load.scratch else cache // 2, least)
    return tuple(patch)


def _cut(patch: list[int], load: WorkingSet, limit: int, least: Sequence[int]) -> list[int]:
    """A patch that is halved until its working set is no larger than a limit, or it is the least one."""
    last = len(patch) - 1
    while (now := load.bytes(patch)) > limit:
        halves = [[-(-n // 2) if a == axis else n for a, n in enumerate(patch)] for axis in range(last + 1)]
        able = [
            axis for axis, half in enumerate(halves) if half[axis] >= least[axis] and load.bytes(half) < now
        ]
        if not able:
            break
        axis = max(able, key=lambda axis: (patch[axis] / (ROW_ASPECT if axis == last else 1), axis < last))
        patch = halves[axis]
    return patch


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of one subdomain, row by row: axis 0 slowest; those of inactive blocks are left out.

    Parameters
    ----------
    edges : tuple of tuple of int
        Where each axis is cut, both ends included.
    table : array (patches, 3, axes) of int64
        Of each patch the first cell, the end, and `top`: 1 where it ends at an upper wall, so that points
        staggered along the axis have one more index there.
    ranges : tuple of int
        Thread t touches the patches ``ranges[t]:ranges[t + 1]`` first, and takes them before others' patches;
        about equally many cells each.
    """

    edges: tuple[tuple[int, ...], ...]
    table: NDArray[np.int64]
    ranges: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def owners(self) -> NDArray[np.int32]:
        """The thread of each patch."""
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
    """Cuts a subdomain into patches.

    Parameters
    ----------
    working_sets : sequence of WorkingSet
        Of every sweep.
    received : sequence of (int, int)
        Per axis how deep patches read into halo that comes by message (0: nothing comes). Patches
        along such a side are thin, and the others, the inner ones, do not wait for its messages.
    ends : (int, int)
        The least length of the patches at the lower and upper end of rows: each patch within reach of an end
        fills the halo there itself where rows wrap around (`Sweep.wraps`), and two must not write the same
        cells.
    patch : int, or sequence or mapping of int, optional
        Cells of a patch along every axis or along each, as the user wants them; patches at the upper
        ends are smaller where this does not divide the subdomain. Default: `patch_shape`, outer patches
        thin, and at least 8 inner patches per thread of 4096 cells or more.
    threads : int
    cache : int, optional
        Bytes of the level-2 cache of a core.
    blocks : Blocks, optional
        Patches are cut at the borders of blocks too, and those of inactive blocks are left out.
    polled : bool
        Whether messages come that need to be looked after: patches are short then.
    device : bool
        Whether the subdomain is a device's: one inner patch, since all its threads work on one at a time.

    Raises
    ------
    InputError
        A patch shape that is not positive, or not of the grid's dimension; no threads.
    """
    THREADS.check("threads", threads)
    shape = subdomain.shape
    if patch is None and device:
        edges = [
            sorted({0, lower, n - upper, n})
            for n, (lower, upper) in zip(shape, _outer_layers(shape, received), strict=True)
        ]
    elif patch is None:
        edges = _default_edges(
            shape, working_sets, received, threads, cache or LEVEL_2, POLLED_CELLS if polled else MOST_CELLS
        )
    else:
        edges = [[*range(0, n, size), n] for n, size in zip(shape, _explicit(patch, len(shape)), strict=True)]
    lower, upper = ends[0], shape[-1] - ends[1]
    edges[-1] = [0, *(cut for cut in edges[-1][1:-1] if lower <= cut <= upper), shape[-1]]
    if blocks is None:
        return _table(edges, subdomain.walls, threads)
    box = subdomain.box
    edges = [
        sorted({*cuts, *(cut - lo for cut in borders if lo < cut < hi)})
        for cuts, borders, lo, hi in zip(edges, blocks.borders, box.lo, box.hi, strict=True)
    ]
    return _table(edges, subdomain.walls, threads, lambda lo: blocks.active_at(lo + box.lo))


def _explicit(patch: int | Sequence[int] | Mapping[str, int], ndim: int) -> tuple[int, ...]:
    """Return the patch shape that a user specifies."""
    shape: Any = patch
    if is_sequence(shape):
        if len(shape) not in (1, ndim):
            raise InputError(f"patch {tuple(shape)} has {len(shape)} axes, but the grid has {ndim}")
        shape = tuple(shape) * (ndim if len(shape) == 1 else 1)
    sizes = per_axis(shape, ndim, "patch", whole, "whole cells")
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
    wanted = max(PATCHES_PER_THREAD * threads, ceil(prod(inner) / most_cells))
    wanted = min(wanted, prod(inner) // FEWEST_CELLS)
    # a slab of the grid for each thread first, then whatever makes enough patches; rows stay whole
    for axis in range(max(1, last)):
        most = max(pieces[axis], inner[axis] // least[axis])
        enough = ceil(wanted / prod(pieces[:axis] + pieces[axis + 1 :]))
        pieces[axis] = min(most, max(pieces[axis], enough, min(threads, wanted) if axis == 0 else 1))

    return [
        sorted({0, *(lower + i * n // p for i in range(p + 1)), lower + n + upper})
        for (lower, upper), n, p in zip(outer, inner, pieces, strict=True)
    ]


def _outer_layers(shape: tuple[int, ...], received: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return how thick the patches at both ends of each axis are; 0 where nothing comes or it is short."""
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
    active: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
) -> Patches:
    """All patches between the edges, or those whose first cells are active."""
    import numpy as np  # planning without patches does not need it

    count = prod(len(e) - 1 for e in edges)
    if count > PATCHES.most:
        shape = " x ".join(f"{e[-1]:,}" for e in edges)
        raise InputError(
            f"a subdomain of {shape} cells has {count:,} patches, more than the {PATCHES.most:,} that can be "
            "planned: take more ranks, or larger patches"
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
    return Patches(tuple(tuple(e) for e in edges), table, ranges)


def scratch_bytes(sweep: Sweep, patches: Patches) -> int:
    """Scratch memory that the kernel of a sweep needs for the largest patch."""
    extents = (patches.table[:, 1] - patches.table[:, 0]).max(axis=0, initial=0).tolist()
    total = 0
    for each in sweep.scratch:
        *outer, row = each.points(extents)
        total += prod(outer) * -(-each.item * row // ROW_ALIGNMENT) * ROW_ALIGNMENT
    return total
