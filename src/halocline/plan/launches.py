"""Kernel launches of a subdomain on a device in a sweep: cells and thread blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import prod

from halocline.compile.schedule import FILL, DeviceKernel, Schedule, Sweep
from halocline.compile.strategy import MAX_THREADS_PER_BLOCK, cells_at_once, split_size, streaming_axis
from halocline.plan.box import Box, three
from halocline.plan.rank import SubdomainPlan, SweepPlan

MAX_PARTIALS = 8192  # approximate limit of thread blocks that reduce; one block merges their results.
MAX_CELLS_PER_REDUCING_THREAD = 128  # cells per thread of a kernel that reduces.
DEFAULT_CELLS_PER_THREAD = 16  # along the streaming axis
MANY_BLOCKS = 8192  # the cells per thread increase only if at least this number of thread blocks remains
CELLS_PER_PRELOADED_PLANE = 8  # minimum of streamed cells per preloaded plane; see docs/performance.md
MAX_BLOCKS_PER_AXIS = 65535  # limit of CUDA along all axes except the contiguous one.
LITERAL_CELLS = 2**20  # minimum cells of a subdomain for which kernels with literal layouts are compiled
WALL_THREADS = 128  # threads of a thread block that fills ghosts beyond a wall
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
    block_cells : tuple of three int
        Cells of each thread block along each axis; the contiguous axis comes last.
    first_block : int
        Index of the first thread block of the launch, counted over all launches of the kernel in the sweep.
    walls : tuple of (Box, int)
        For a kernel that fills ghosts beyond several walls: the cells beyond each wall, and the end of their
        thread blocks. `cells` is the largest of the boxes.
    """

    kernel: DeviceKernel
    cells: Box
    patch: Box
    top: tuple[int, ...]
    block_counts: tuple[int, int, int]
    block_shape: tuple[int, int, int]
    block_cells: tuple[int, int, int]
    first_block: int = 0
    walls: tuple[tuple[Box, int], ...] = ()

    @property
    def total_blocks(self) -> int:
        """Total number of thread blocks."""
        return prod(self.block_counts)

    @property
    def planes(self) -> int:
        """Number of planes that each thread visits along the streaming axis; 1 without 2.5D streaming."""
        axis = streaming_axis(self.kernel.splits)
        return 1 if axis is None else self.block_cells[axis]


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
        Kernels that compute the invariants of the other kernels, before these run. The invariants of
        `constant_launches` are not among them.
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
        boxes_of_fills: dict[int, list[Box]] = {}
        for number, box in boxes:
            boxes_of_fills.setdefault(number, []).append(box)
        for wall_kernel in sweep.wall_kernels:
            (kernel,) = kernels[wall_kernel.kernel]
            fills = [(sweep.fills[number], layers) for number, layers in wall_kernel.parts]
            boxes_of_parts = [
                [_layers(box, fill.axis, fill.side, layers) for box in boxes_of_fills.get(number, ())]
                for (number, _), (fill, layers) in zip(wall_kernel.parts, fills, strict=True)
            ]
            for parts in zip_longest(*boxes_of_parts, fillvalue=_empty(schedule.ndim)):
                axes = [fill.axis for fill, _ in fills]
                if any(parts):
                    yield _wall_launch(kernel, [*zip(parts, axes, strict=True)])

    partials = tuple((k, blocks_of_kernels.get(k, 0)) for k in kernels[sweep.kernel] if k.reductions)
    fills, rims = tuple(fill_launches(sweep_plan.cores)), tuple(fill_launches(sweep_plan.rims))
    launched = chain(fills, rims, *(item.launches for item in items))
    symbols, constants = _symbols(launch.kernel for launch in launched), schedule.device.constants
    invariants = tuple(
        _fill_launch(symbol, schedule.ndim) for symbol in symbols if symbol[0] not in constants
    )
    return SweepLaunches(invariants, fills, rims, tuple(items), partials)


def constant_launches(schedule: Schedule) -> tuple[Launch, ...]:
    """Return the launches at the start of a run: kernels that compute the invariants that do not change."""
    assert schedule.device is not None
    symbols = _symbols(chain.from_iterable(schedule.device.kernels.values()))
    return tuple(
        _fill_launch(symbol, schedule.ndim) for symbol in symbols if symbol[0] in schedule.device.constants
    )


def _symbols(kernels: Iterable[DeviceKernel]) -> dict[tuple[str, int], None]:
    """Return the symbols of the invariants that kernels read, and their numbers of values."""
    return dict.fromkeys(kernel.invariants for kernel in kernels if kernel.invariants is not None)


def _fill_launch(invariants: tuple[str, int], ndim: int) -> Launch:
    """Return the launch of the kernel that computes some invariants, in one thread."""
    zeros = (0,) * ndim
    kernel = DeviceKernel(FILL + invariants[0], (), ((0, 0),) * ndim, zeros, invariants=invariants)
    cell = Box(zeros, (1,) * ndim)
    return Launch(kernel, cell, cell, zeros, (1, 1, 1), (1, 1, 1), (1, 1, 1))


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


def _layers(box: Box, axis: int, side: int, layers: range) -> Box:
    """Return some layers of the ghost cells in a box; layer 0 is next to the wall."""
    lo, hi = list(box.lo), list(box.hi)
    if side < 0:
        lo[axis], hi[axis] = hi[axis] - layers.stop, hi[axis] - layers.start
    else:
        lo[axis], hi[axis] = lo[axis] + layers.start, lo[axis] + layers.stop
    return box.intersect(Box(tuple(lo), tuple(hi)))


def _empty(ndim: int) -> Box:
    """Return a box without cells."""
    return Box((0,) * ndim, (0,) * ndim)


def _wall_launch(kernel: DeviceKernel, parts: Sequence[tuple[Box, int]]) -> Launch:
    """Return the launch of a kernel for the ghosts beyond several walls, with boxes and axes of the walls.

    Each thread computes one ghost of each layer, along the axis of the wall.
    """
    ends, blocks = [], 0
    for box, axis in parts:
        columns = box.size // box.shape[axis] if box else 0
        blocks += -(-columns // WALL_THREADS)
        ends.append(blocks)
    largest = max((box for box, _ in parts if box), key=lambda box: box.size)
    return Launch(
        kernel,
        largest,
        largest,
        (0,) * len(largest.lo),
        (blocks, 1, 1),
        (WALL_THREADS, 1, 1),
        (1, 1, WALL_THREADS),
        walls=tuple((box, end) for (box, _), end in zip(parts, ends, strict=True)),
    )


def _launch(
    kernel: DeviceKernel, cells: Box, patch: Box, top: tuple[int, ...], first_block: int = 0
) -> Launch:
    """Return the launch of a kernel over the cells of a box."""
    lo, shape = three(cells.lo), three(cells.shape, 1)
    at_once = tuple(cells_at_once(kernel.splits, axis) for axis in range(3))
    # cells before the box that complete its first vectors
    shape = [n + (lo[axis] % at_once[axis] if axis == 2 else 0) for axis, n in enumerate(shape)]
    threads = _threads(kernel, [-(-n // c) for n, c in zip(shape, at_once, strict=True)])
    block_cells = [
        split_size(kernel.splits, axis, "block") or threads[axis] * at_once[axis] for axis in range(3)
    ]
    stream_axis = streaming_axis(kernel.splits)
    if stream_axis is not None:
        block_cells[stream_axis] = _planes(kernel, shape, block_cells, stream_axis)
    along, across, slowest = _block_counts(shape, block_cells)[::-1]
    return Launch(
        kernel,
        cells,
        patch,
        top,
        (along, across, slowest),
        (threads[2], threads[1], threads[0]),
        (block_cells[0], block_cells[1], block_cells[2]),
        first_block,
    )


def _threads(kernel: DeviceKernel, counts: Sequence[int]) -> list[int]:
    """Return the threads of a block along three axes, the contiguous one last.

    Blocks of a narrow box have fewer threads along the contiguous axis, and more along the other axes. The
    total number never exceeds that of the splits, for which the kernel is compiled.

    Parameters
    ----------
    kernel : DeviceKernel
    counts : sequence of three int
        Number of threads that the box needs along each axis.
    """
    threads = [1, 1, 1]
    sizes = {axis: split_size(kernel.splits, axis, "thread") for axis in (2, 1, 0)}
    if kernel.has_fixed_block:
        return [sizes[axis] or 1 for axis in range(3)]
    known = [size for size in sizes.values() if size]
    free = prod(known) if known else MAX_THREADS_PER_BLOCK
    # the number of blocks is limited along all axes except the contiguous one
    least = {
        axis: _power_of_two(-(-counts[axis] // MAX_BLOCKS_PER_AXIS), free)
        for axis in (1, 0)
        if sizes[axis] is not None
    }
    has_rows = any(counts[axis] > 1 for axis in least)
    for axis, size in sizes.items():
        if size is None:
            continue
        least.pop(axis, None)
        most = free // prod(least.values())
        if axis == 2:
            most = min(most, size or (ROW_THREADS if has_rows else MAX_THREADS_PER_BLOCK))
        threads[axis] = _power_of_two(counts[axis], most)
        free //= threads[axis]
    return threads


def _planes(kernel: DeviceKernel, shape: Sequence[int], block_cells: Sequence[int], axis: int) -> int:
    """Return the number of cells that each thread visits along the streaming axis."""

    def blocks(planes: int) -> int:
        return prod(_block_counts(shape, [*block_cells[:axis], planes, *block_cells[axis + 1 :]]))

    size = split_size(kernel.splits, axis, "stream")
    planes = max(min(size or DEFAULT_CELLS_PER_THREAD, shape[axis]), -(-shape[axis] // MAX_BLOCKS_PER_AXIS))
    if not size:
        longest = CELLS_PER_PRELOADED_PLANE * kernel.preloaded_planes
        planes = _doubled(planes, longest, lambda length: blocks(2 * length) >= MANY_BLOCKS)
    if kernel.reductions:
        planes = _doubled(planes, MAX_CELLS_PER_REDUCING_THREAD, lambda length: blocks(length) > MAX_PARTIALS)
    return min(planes, shape[axis])


def _doubled(length: int, longest: int, further: Callable[[int], bool]) -> int:
    """Return a streaming length, doubled until it reaches `longest` or the condition `further` fails."""
    while length < longest and further(length):
        length *= 2
    return length


def _block_counts(shape: Sequence[int], block_cells: Sequence[int]) -> list[int]:
    """Return the number of thread blocks along three axes, for cells of a shape."""
    return [-(-n // cells) for n, cells in zip(shape, block_cells, strict=True)]


def _power_of_two(n: int, most: int) -> int:
    """Return the smallest power of two that is at least `n`, but at most `most`."""
    return min(1 << max(0, n - 1).bit_length(), most)
