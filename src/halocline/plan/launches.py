"""Kernel launches of a subdomain on a device in a sweep: cells and thread blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from halocline.compile.schedule import DeviceKernel, Schedule, Sweep
from halocline.compile.strategy import LARGEST_GROUP, march_axis
from halocline.plan.box import Box
from halocline.plan.rank import SubdomainPlan, SweepPlan

MOST_PARTIALS = 8192  # approximate limit of thread blocks that reduce; one block merges their results.
LONGEST_MARCH = 128  # cells per thread of a kernel that reduces.
MARCH = 16  # default number of cells per thread.
MANY_GROUPS = 8192  # threads stream through more cells while at least this number of thread blocks remains.
CELLS_A_PLANE = 8  # streamed cells for each plane that is loaded in advance; measured: docs/performance.md.
MOST_GROUPS = 65535  # limit of CUDA along all axes but the contiguous one.
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
    groups, group : tuple of three int
        Number of thread blocks, and threads per block, along each axis; the contiguous axis comes first.
    march : int
        Cells of each thread along the axis of largest stride (2.5D streaming).
    first_group : int
        Number of the first thread block of the launch among all launches of the kernel in the sweep.
    """

    kernel: DeviceKernel
    cells: Box
    patch: Box
    top: tuple[int, ...]
    groups: tuple[int, int, int]
    group: tuple[int, int, int]
    march: int
    first_group: int = 0

    @property
    def number_of_groups(self) -> int:
        """Total number of thread blocks."""
        return self.groups[0] * self.groups[1] * self.groups[2]


@dataclass(frozen=True)
class Item:
    """Launches of a patch or of a box in the halo, which run after their dependencies are complete.

    For `needs` and `rims` see `SweepPlan`. The flag `halo` is True for a box in the halo.
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
    fills : tuple of Launch
        Boundary conditions that run before the patches.
    rims : tuple of Launch
        Boundary conditions that wait for messages.
    items : tuple of Item
    partials : tuple of (kernel, groups)
        Each kernel that reduces, with the number of thread blocks of all its launches.
    """

    fills: tuple[Launch, ...]
    rims: tuple[Launch, ...]
    items: tuple[Item, ...]
    partials: tuple[tuple[DeviceKernel, int], ...]


def sweep_launches(
    schedule: Schedule, sweep: Sweep, subdomain_plan: SubdomainPlan, sweep_plan: SweepPlan
) -> SweepLaunches:
    """Return the launches of a sweep of a schedule for devices."""
    assert schedule.device is not None
    kernels = schedule.device.kernels
    groups: dict[DeviceKernel, int] = {}
    items = []
    for row, needs, rims in zip(
        subdomain_plan.patches.table.tolist(),
        sweep_plan.patch_needs.tolist(),
        sweep_plan.patch_rims.tolist(),
        strict=True,
    ):
        lo, hi, top = map(tuple, row)
        launches = _launches_over(kernels[sweep.kernel], Box(lo, hi), top, subdomain_plan.box.lo, groups)
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

    partials = tuple((k, groups.get(k, 0)) for k in kernels[sweep.kernel] if k.reductions)
    return SweepLaunches(
        tuple(fill_launches(sweep_plan.cores)), tuple(fill_launches(sweep_plan.rims)), tuple(items), partials
    )


def _launches_over(
    kernels: Sequence[DeviceKernel],
    patch: Box,
    top: tuple[int, ...],
    origin: tuple[int, ...],
    groups: dict[DeviceKernel, int],
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
        launch = _launch(kernel, cells, patch, top, groups.get(kernel, 0))
        if kernel.reductions:
            groups[kernel] = launch.first_group + launch.number_of_groups
        launches.append(launch)
    return tuple(launches)


def _layer(box: Box, axis: int, side: int, layer: int) -> Box:
    """Return one layer of ghost cells, counted from the wall."""
    at = box.hi[axis] - 1 - layer if side < 0 else box.lo[axis] + layer
    lo, hi = list(box.lo), list(box.hi)
    lo[axis], hi[axis] = max(at, box.lo[axis]), min(at + 1, box.hi[axis])
    return Box(tuple(lo), tuple(max(a, b) for a, b in zip(lo, hi, strict=True)))


def _launch(
    kernel: DeviceKernel, cells: Box, patch: Box, top: tuple[int, ...], first_group: int = 0
) -> Launch:
    ndim = len(cells.shape)
    shape = (1,) * (3 - ndim) + cells.shape
    if kernel.tile is not None:
        assert kernel.group is not None
        groups = tuple(-(-n // size) for n, size in zip(reversed(shape), reversed(kernel.tile), strict=True))
        return Launch(kernel, cells, patch, top, groups, kernel.group, 1, first_group)  # type: ignore[arg-type]
    marched = march_axis(ndim)
    march = 1
    if marched is not None:
        march = max(min(kernel.march or MARCH, shape[marched]), -(-shape[marched] // MOST_GROUPS))
    rows = shape[1] if marched == 0 else 1
    most = kernel.group or (ROW_THREADS if rows > 1 else LARGEST_GROUP, LARGEST_GROUP, 1)
    # the launch bounds of the kernel limit the threads; blocks of a narrow box have more rows
    threads = prod(kernel.group or (LARGEST_GROUP,))
    along = _power_of_two(shape[2], most[0])
    group = (along, _power_of_two(rows, threads // along), 1)
    if kernel.fixed:
        group = most
    with_march = partial(_groups, shape, group, marched)
    if marched is not None:
        if kernel.march is None:
            longest = CELLS_A_PLANE * kernel.ahead
            march = _doubled(march, longest, lambda length: prod(with_march(2 * length)) >= MANY_GROUPS)
        if kernel.reductions:
            march = _doubled(march, LONGEST_MARCH, lambda length: prod(with_march(length)) > MOST_PARTIALS)
        march = min(march, shape[marched])
    return Launch(kernel, cells, patch, top, with_march(march), group, march, first_group)


def _doubled(march: int, longest: int, further: Callable[[int], bool]) -> int:
    """Return a streaming length, doubled until it reaches `longest` or the condition `further` fails."""
    while march < longest and further(march):
        march *= 2
    return march


def _groups(
    shape: tuple[int, ...], group: tuple[int, int, int], marched: int | None, march: int
) -> tuple[int, int, int]:
    """Return the number of thread blocks along three axes, the contiguous one first, for cells of a shape."""
    per_group = [march if axis == marched else group[2 - axis] for axis in (2, 1, 0)]
    along, across, slowest = (-(-n // size) for n, size in zip(reversed(shape), per_group, strict=True))
    return along, across, slowest


def _power_of_two(n: int, most: int) -> int:
    """Return the smallest power of two that is at least `n`, but at most `most`."""
    return min(1 << max(0, n - 1).bit_length(), most)
