"""Kernel launches of a subdomain on a device in a sweep: cells and thread blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod

from halocline.compile.schedule import FILL, DeviceKernel, Schedule, Sweep
from halocline.compile.strategy import MAX_THREADS_PER_BLOCK, streaming_axis
from halocline.plan.box import Box, three
from halocline.plan.rank import SubdomainPlan, SweepPlan

MAX_PARTIALS = 8192  # approximate limit of thread blocks that reduce; one block merges their results.
MAX_CELLS_PER_REDUCING_THREAD = 128  # cells per thread of a kernel that reduces.
DEFAULT_CELLS_PER_THREAD = 16  # along the streaming axis
MANY_BLOCKS = 8192  # the cells per thread increase only if at least this number of thread blocks remains
CELLS_PER_PRELOADED_PLANE = 8  # minimum of streamed cells per preloaded plane; see docs/performance.md
MAX_BLOCKS_PER_AXIS = 65535  # limit of CUDA along all axes except the contiguous one.
LITERAL_CELLS = 2**20  # minimum cells of a subdomain for which kernels with literal layouts are compiled
ROW_THREADS = 64  # threads of a thread block along the contiguous axis, if several rows are available


@dataclass(frozen=True)
class Launch:
    """Launch of a kernel over one box.

    Parameters
    ----------
    kernel : DeviceKernel
    cells : Box
        Cells that the kernel computes.
    patch : Box
        Patch of these cells; scratch arrays cover the patch.
    top : tuple of int
        Upper-wall flags, as in the table of `Patches`.
    block_counts, block_shape : tuple of three int
        Number of thread blocks, and threads per block, along each axis; the contiguous axis comes first.
    cells_per_thread : int
        Cells of each thread along the axis of largest stride (2.5D streaming).
    first_block : int
        Index of the first thread block of the launch, counted over all launches of the kernel in the sweep.
    """

    kernel: DeviceKernel
    cells: Box
    patch: Box
    top: tuple[int, ...]
    block_counts: tuple[int, int, int]
    block_shape: tuple[int, int, int]
    cells_per_thread: int
    first_block: int = 0

    @property
    def total_blocks(self) -> int:
        """Total number of thread blocks."""
        return self.block_counts[0] * self.block_counts[1] * self.block_counts[2]


@dataclass(frozen=True)
class Item:
    """Launches of a patch or of a box in the halo, which run after their dependencies are complete.

    For `needs` and `rims`, see `patch_needs` and `patch_rims` of `SweepPlan`. The flag `halo` is True for a
    box in the halo.
    """

    needs: int
    rims: bool
    launches: tuple[Launch, ...]
    halo: bool = False


@dataclass(frozen=True)
class SweepLaunches:
    """All launches of a sweep in one subdomain.

    Parameters
    ----------
    invariants : tuple of Launch
        Kernels that compute the invariants of the other kernels, before these run.
    fills : tuple of Launch
        Boundary conditions that run before the patches.
    rims : tuple of Launch
        Boundary conditions that wait for messages.
    items : tuple of Item
    partials : tuple of (kernel, number of thread blocks)
        Each kernel that reduces, with the number of thread blocks of all its launches.
    """

    invariants: tuple[Launch, ...]
    fills: tuple[Launch, ...]
    rims: tuple[Launch, ...]
    items: tuple[Item, ...]
    partials: tuple[tuple[DeviceKernel, int], ...]


def has_literal_layouts(schedule: Schedule, subdomains: Sequence[SubdomainPlan]) -> bool:
    """Return True if the kernels of a device contain the layouts of fields as literals.

    Such kernels compute addresses with fewer instructions and registers, but are compiled for each size of
    the subdomains. Therefore the schedule must have a loop. All `subdomains` of the device must have equal
    layouts, and at least `LITERAL_CELLS` cells.
    """
    cells = min((subdomain.box.size for subdomain in subdomains), default=0)
    are_equal = all(subdomain.fields == subdomains[0].fields for subdomain in subdomains)
    return schedule.has_loop and cells >= LITERAL_CELLS and are_equal


def literal_extents(subdomains: Sequence[SubdomainPlan]) -> list[int] | None:
    """Return upper bounds of the extents of patches on three axes, for the strides of scratch arrays.

    Kernels in the halo have no scratch memory. The result is None if the bounds of the subdomains differ.
    """
    bounds = [subdomain.patches.max_extents for subdomain in subdomains]
    return three(bounds[0], 1) if all(extents == bounds[0] for extents in bounds) else None


def sweep_launches(
    schedule: Schedule, sweep: Sweep, subdomain_plan: SubdomainPlan, sweep_plan: SweepPlan
) -> SweepLaunches:
    """Return the launches of a sweep of a schedule for devices."""
    assert schedule.device is not None
    kernels = schedule.device.kernels
    blocks_of_kernels: dict[DeviceKernel, int] = {}
    items = []
    for row, needs, rims in zip(
        subdomain_plan.patches.table.tolist(),
        sweep_plan.patch_needs.tolist(),
        sweep_plan.patch_rims.tolist(),
        strict=True,
    ):
        lo, hi, top = map(tuple, row)
        launches = _launches_over(
            kernels[sweep.kernel], Box(lo, hi), top, subdomain_plan.box.lo, blocks_of_kernels
        )
        items.append(Item(needs, rims, launches))
    for halo, waits in zip(sweep_plan.halos, sweep_plan.halo_needs, strict=True):
        assert sweep.halo_kernel is not None
        launches = _launches_over(kernels[sweep.halo_kernel], halo.box, halo.top, subdomain_plan.box.lo, {})
        items.append(Item(waits, True, launches, halo=True))

    def fill_launches(boxes: Iterable[tuple[int, Box]]) -> Iterator[Launch]:
        for fill, box in ((sweep.fills[number], box) for number, box in boxes):
            for layer, kernel in enumerate(kernels[fill.kernel]):
                cells = _layer(box, fill.axis, fill.side, layer)
                if cells.size:
                    yield _launch(kernel, cells, cells, (0,) * schedule.ndim)

    partials = tuple((k, blocks_of_kernels.get(k, 0)) for k in kernels[sweep.kernel] if k.reductions)
    fills, rims = tuple(fill_launches(sweep_plan.cores)), tuple(fill_launches(sweep_plan.rims))
    launched = chain(fills, rims, *(item.launches for item in items))
    symbols = dict.fromkeys(launch.kernel.invariants for launch in launched)
    invariants = tuple(_fill_launch(symbol, schedule.ndim) for symbol in symbols if symbol is not None)
    return SweepLaunches(invariants, fills, rims, tuple(items), partials)


def _fill_launch(invariants: tuple[str, int], ndim: int) -> Launch:
    """Return the launch of the kernel that computes some invariants, in one thread."""
    zeros = (0,) * ndim
    kernel = DeviceKernel(FILL + invariants[0], (), ((0, 0),) * ndim, zeros, invariants=invariants)
    cell = Box(zeros, (1,) * ndim)
    return Launch(kernel, cell, cell, zeros, (1, 1, 1), (1, 1, 1), 1)


def _launches_over(
    kernels: Sequence[DeviceKernel],
    patch: Box,
    top: tuple[int, ...],
    origin: tuple[int, ...],
    blocks_of_kernels: dict[DeviceKernel, int],
) -> tuple[Launch, ...]:
    """Return the launches of kernels over a patch in order, and count the blocks of reducing kernels."""
    launches = []
    for kernel in kernels:
        above = [t if extends else 0 for t, extends in zip(top, kernel.top, strict=True)]
        cells = patch.grow([(lo, hi + t) for (lo, hi), t in zip(kernel.extent, above, strict=True)])
        if kernel.cell is not None:
            place = tuple(c - o for c, o in zip(kernel.cell, origin, strict=True))
            cells = cells.intersect(Box(place, tuple(p + 1 for p in place)))
        if not cells.size:
            continue
        launch = _launch(kernel, cells, patch, top, blocks_of_kernels.get(kernel, 0))
        if kernel.reductions:
            blocks_of_kernels[kernel] = launch.first_block + launch.total_blocks
        launches.append(launch)
    return tuple(launches)


def _layer(box: Box, axis: int, side: int, layer: int) -> Box:
    """Return layer number `layer` of the ghost cells in a box; layer 0 is next to the wall."""
    at = box.hi[axis] - 1 - layer if side < 0 else box.lo[axis] + layer
    lo, hi = list(box.lo), list(box.hi)
    lo[axis], hi[axis] = max(at, box.lo[axis]), min(at + 1, box.hi[axis])
    return Box(tuple(lo), tuple(max(a, b) for a, b in zip(lo, hi, strict=True)))


def _launch(
    kernel: DeviceKernel, cells: Box, patch: Box, top: tuple[int, ...], first_block: int = 0
) -> Launch:
    ndim = len(cells.shape)
    shape = (1,) * (3 - ndim) + cells.shape
    if kernel.tile is not None:
        assert kernel.block_shape is not None
        block_counts = tuple(
            -(-n // size) for n, size in zip(reversed(shape), reversed(kernel.tile), strict=True)
        )
        return Launch(kernel, cells, patch, top, block_counts, kernel.block_shape, 1, first_block)  # type: ignore[arg-type]
    stream_axis = streaming_axis(ndim)
    cells_per_thread = 1
    if stream_axis is not None:
        cells_per_thread = max(
            min(kernel.cells_per_thread or DEFAULT_CELLS_PER_THREAD, shape[stream_axis]),
            -(-shape[stream_axis] // MAX_BLOCKS_PER_AXIS),
        )
    rows = shape[1] if stream_axis == 0 else 1
    row_threads = ROW_THREADS if rows > 1 else MAX_THREADS_PER_BLOCK
    max_shape = kernel.block_shape or (row_threads, MAX_THREADS_PER_BLOCK, 1)
    # the launch bounds of the kernel limit the threads; blocks of a narrow box have more rows
    threads = prod(kernel.block_shape or (MAX_THREADS_PER_BLOCK,))
    along = _power_of_two(shape[2], max_shape[0])
    block_shape = (along, _power_of_two(rows, threads // along), 1)
    if kernel.has_fixed_block:
        block_shape = max_shape
    block_counts_for = partial(_block_counts, shape, block_shape, stream_axis)
    if stream_axis is not None:
        if kernel.cells_per_thread is None:
            longest = CELLS_PER_PRELOADED_PLANE * kernel.preloaded_planes
            cells_per_thread = _doubled(
                cells_per_thread, longest, lambda length: prod(block_counts_for(2 * length)) >= MANY_BLOCKS
            )
        if kernel.reductions:
            cells_per_thread = _doubled(
                cells_per_thread,
                MAX_CELLS_PER_REDUCING_THREAD,
                lambda length: prod(block_counts_for(length)) > MAX_PARTIALS,
            )
        cells_per_thread = min(cells_per_thread, shape[stream_axis])
    block_counts = block_counts_for(cells_per_thread)
    return Launch(kernel, cells, patch, top, block_counts, block_shape, cells_per_thread, first_block)


def _doubled(length: int, longest: int, further: Callable[[int], bool]) -> int:
    """Return a streaming length, doubled until it reaches `longest` or the condition `further` fails."""
    while length < longest and further(length):
        length *= 2
    return length


def _block_counts(
    shape: tuple[int, ...], block_shape: tuple[int, int, int], stream_axis: int | None, cells_per_thread: int
) -> tuple[int, int, int]:
    """Return the number of thread blocks along three axes, the contiguous one first, for cells of a shape."""
    cells_per_block = [
        cells_per_thread if axis == stream_axis else block_shape[2 - axis] for axis in (2, 1, 0)
    ]
    along, across, slowest = (-(-n // size) for n, size in zip(reversed(shape), cells_per_block, strict=True))
    return along, across, slowest


def _power_of_two(n: int, most: int) -> int:
    """Return the smallest power of two that is at least `n`, but at most `most`."""
    return min(1 << max(0, n - 1).bit_length(), most)
