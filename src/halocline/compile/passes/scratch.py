"""Scratch memory of stages; stages that are live at different times share memory.

The pass `planes` computes the nests of a sweep plane by plane. Stages then need memory for a few planes,
which are still in the cache when they are read.

In each iteration, the loop over planes computes one plane of every nest. Each nest is ahead of the results by
the number of planes that the readers of its stages need. A stage has a ring of planes. Measurements:
docs/performance.md.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.nests import TYPICAL
from halocline.lang.dtype import ITEMSIZE


def stage_uses(kernel: Kernel) -> tuple[list[ir.StageUse], list[ir.Slot]]:
    """Return the stages of a kernel in the order of their stores, and the slots that they share.

    A stage uses the free slot that must grow least, or a new slot. Nests run through a patch one after the
    other. A stage therefore cannot share a slot with a stage that its nest reads, or that another nest of the
    same device kernel reads: these nests may run in any order. A ring of several planes has a separate slot,
    since it is always in use while nests run plane by plane.
    """
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    last: dict[str, int] = {}
    ring = rings(kernel)
    for number, nest in enumerate(nests):
        last.update((array, number) for array, _ in kernel.loads(ir.roots(nest.body)))
    uses: list[ir.StageUse] = []
    slots: list[ir.Slot] = []
    times = [number if nest.kernel is None else nest.kernel for number, nest in enumerate(nests)]
    free_after: list[int] = []  # time of the last nest that needs the content of each slot
    for number, nest in enumerate(nests):
        for s in nest.body:
            if not isinstance(s, ir.Store) or s.array not in ring:
                continue
            item, until = ITEMSIZE[kernel.array[s.array].dtype], last.get(s.array, number)
            use = ir.StageUse(s.array, item, nest.extent, nest.top, number, until, ring[s.array])
            # one precision per slot: in C++, double and float values may not share memory
            compatible = [n for n, slot in enumerate(slots) if (slot.item, slot.planes) == (item, use.planes)]
            free = [n for n in compatible if free_after[n] < times[number] and use.planes < 2]
            if free:
                chosen = min(free, key=lambda n: _size(_grown(slots[n], use)) - _size(slots[n]))
                slots[chosen], free_after[chosen] = _grown(slots[chosen], use), times[until]
            else:
                chosen = len(slots)
                slots.append(ir.Slot(chosen, item, use.extra, use.planes))
                free_after.append(times[until])
            uses.append(replace(use, slot=chosen))
    return uses, slots


def _grown(slot: ir.Slot, use: ir.StageUse) -> ir.Slot:
    return replace(slot, extra=tuple(map(max, slot.extra, use.extra)))


def _size(slot: ir.Slot) -> int:
    return slot.item * prod(TYPICAL + more for more in slot.extra)


def scratch(kernel: Kernel) -> Kernel:
    """Add the memory of each stage to a kernel."""
    return replace(kernel, body=(*scratch_declarations(kernel), *kernel.body))


def scratch_declarations(kernel: Kernel) -> tuple[ir.Slot | ir.Allocate, ...]:
    """Return the declarations of scratch memory, and the assignment of stages to it."""
    uses, slots = stage_uses(kernel)
    return (*slots, *(ir.Allocate(use.array, use.extent, use.top, use.slot, use.planes) for use in uses))


def planes(kernel: Kernel) -> Kernel:
    """Set the minimum number of planes by which each nest is ahead of the results.

    The pass does not change kernels along a single axis, nor kernels without stages.
    """
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    if kernel.ndim == 1 or not any(_stages(kernel, nest) for nest in nests):
        return kernel
    distances: dict[str, int] = {}  # planes by which the farthest read of a stage is ahead
    result: list[ir.Nest] = []
    for nest in reversed(nests):
        ahead = max((distances.get(array, 0) for array in _stages(kernel, nest)), default=0)
        for array, offset in kernel.loads(ir.roots(nest.body)):
            distances[array] = max(distances.get(array, 0), ahead + offset[0])
        result.append(replace(nest, planes_ahead=ahead))
    return replace(kernel, body=tuple(reversed(result)))


def _stages(kernel: Kernel, nest: ir.Nest) -> list[str]:
    """Return the stages that a nest stores."""
    return [s.array for s in nest.body if isinstance(s, ir.Store) and kernel.array[s.array].kind == "scratch"]


def rings(kernel: Kernel) -> dict[str, int]:
    """Return the number of planes in the ring of each stage, a power of two; 0 if all planes are stored.

    The ring extends from the oldest plane that is read to the plane that is stored.
    """
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    newest = {array: nest.planes_ahead for nest in nests for array in _stages(kernel, nest)}
    oldest: dict[str, int] = {}
    for nest in nests:
        for array, offset in kernel.loads(ir.roots(nest.body)):
            if array in newest and nest.planes_ahead is not None:
                oldest[array] = min(oldest.get(array, nest.planes_ahead), nest.planes_ahead + offset[0])
    return {
        array: 0 if ahead is None else _power_of_two(ahead - min(oldest.get(array, ahead), ahead) + 1)
        for array, ahead in newest.items()
    }


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def combine_nests(kernel: Kernel) -> Kernel:
    """Combine all nests of a function into one loop over planes, if its stages have rings of planes."""
    if not any(isinstance(s, ir.Allocate) and s.planes for s in kernel.body):
        return kernel
    nests = tuple(s for s in kernel.body if isinstance(s, ir.Nest))
    rest: ir.Body = tuple(s for s in kernel.body if not isinstance(s, ir.Nest))
    before = max(nest.extent[0][0] + (nest.planes_ahead or 0) for nest in nests)
    after = max(nest.extent[0][1] - (nest.planes_ahead or 0) for nest in nests)
    top = max(nest.extent[0][1] - (nest.planes_ahead or 0) + nest.top[0] for nest in nests) - after
    return replace(kernel, body=(*rest, ir.Planes(nests, before, after, top)))
