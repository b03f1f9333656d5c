"""Memory for stages: those that are not needed at the same time share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.nests import TYPICAL
from halocline.compile.passes.planes import rings
from halocline.lang.dtype import ITEMSIZE


@dataclass(frozen=True)
class Life:
    """A stage: from the nest that stores it to the last one that loads it, by number; a ring of `planes`, or
    all of them at once."""

    array: str
    item: int  # bytes
    nest: ir.Nest
    first: int
    last: int
    planes: int = 0

    @property
    def extra(self) -> tuple[int, ...]:
        """Points per axis beside those of the patch."""
        return tuple(lo + hi + top for (lo, hi), top in zip(self.nest.extent, self.nest.top, strict=True))


def lives(kernel: Kernel) -> list[Life]:
    """The stages of a kernel, in the order in which they are stored."""
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    last: dict[str, int] = {}
    ring = rings(kernel)
    for number, nest in enumerate(nests):
        last.update((array, number) for array, _ in kernel.loads(ir.roots(nest.body)))
    return [
        Life(s.array, ITEMSIZE[kernel.array[s.array].dtype], nest, number, last.get(s.array, number), planes)
        for number, nest in enumerate(nests)
        for s in nest.body
        if isinstance(s, ir.Store) and (planes := ring.get(s.array)) is not None
    ]


def shared(found: Sequence[Life]) -> tuple[dict[str, int], list[ir.Slot]]:
    """The slot of each stage, and how large slots are: a stage takes one that is free, where it grows least,
    or a new one. Nests run through a patch one after the other, so that a stage must not share with what a
    nest still reads that stores it. A ring of several planes has its slot alone: while nests go plane by
    plane, it is always in use.
    """
    slots: list[ir.Slot] = []
    free_after: list[int] = []  # the last nest that needs what is in a slot
    chosen: dict[str, int] = {}
    for life in found:
        # of one precision: what is double and what is float may not share memory in C++
        alike = [n for n, s in enumerate(slots) if (s.item, s.planes) == (life.item, life.planes)]
        free = [n for n in alike if free_after[n] < life.first and life.planes < 2]
        if free:
            number = min(free, key=lambda n: _size(_grown(slots[n], life)) - _size(slots[n]))
            slots[number] = _grown(slots[number], life)
            free_after[number] = life.last
        else:
            number = len(slots)
            slots.append(ir.Slot(number, life.item, life.extra, life.planes))
            free_after.append(life.last)
        chosen[life.array] = number
    return chosen, slots


def _grown(slot: ir.Slot, life: Life) -> ir.Slot:
    return replace(slot, extra=tuple(map(max, slot.extra, life.extra)))


def _size(slot: ir.Slot) -> int:
    return slot.item * prod(TYPICAL + more for more in slot.extra)


def scratch(kernel: Kernel) -> Kernel:
    """Room for each stage."""
    return replace(kernel, body=(*rooms(kernel), *kernel.body))


def rooms(kernel: Kernel) -> tuple[ir.Slot | ir.Allocate, ...]:
    """What says how much memory there is for stages, and which part of it is whose."""
    found = lives(kernel)
    chosen, slots = shared(found)
    return (
        *slots,
        *(ir.Allocate(s.array, s.nest.extent, s.nest.top, chosen[s.array], s.planes) for s in found),
    )
