"""Values on devices: what the cell of a thread reads from memory, registers and the memory of its group."""

from __future__ import annotations

from dataclasses import dataclass, field

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array
from halocline.compile.printers.spelling import DEVICE, Dialect, ValuePrinter
from halocline.compile.printers.text import suffix


@dataclass(kw_only=True)
class DeviceValues(ValuePrinter):
    """Declares the values of a thread's cell."""

    dialect: Dialect = field(default_factory=lambda: DEVICE)
    march: int | None = None
    inside: str = ""  # the condition that the thread has cells
    partial: int = 0  # the number of the next reduction

    def end(self, axis: int) -> str:
        """Where the box ends along an axis. While kernels skip no result is in it; a group may still march,
        and compute what lies around."""
        return "end" if axis == 2 else f"f.hi[{axis}]"

    def name_of(self, array: Array) -> str:
        if array.kind in ("queue", "plane"):
            return self.names.arrays[array.of]
        return self.stages[array.name] if array.kind == "tile" else super().name_of(array)

    def tile_of(self, array: Array) -> str:
        """The shared memory that a tile lies in."""
        return f"{self.name_of(self.kernel.array[array.of])}_tile"

    def points(self, extra: ir.Offset) -> list[str]:
        """How many points there are along each axis for a box."""
        return [f"(f.box_hi[{a}] - f.box_lo[{a}] + {more})" for a, more in enumerate(extra)]

    def queued(self, array: Array, step: int) -> str:
        """The register that holds what an array has `step` cells along the march."""
        return f"{self.name_of(array)}_queue_{suffix((step,))}"

    def along(self, step: int) -> ir.Offset:
        return tuple(step if axis == self.march else 0 for axis in range(3))

    def spelled_load(self, array: Array, offset: ir.Offset) -> str:
        if array.kind == "queue":
            assert self.march is not None
            return self.queued(array, offset[self.march])
        if array.kind == "plane":
            row = f"(int)hc_thread(1) + {array.layers[0][0] + offset[1]}" if self.march == 0 else "0"
            at = f"({row}) * {array.shape[1]} + (int)hc_thread(0) + {array.layers[1][0] + offset[2]}"
            return f"{self.name_of(array)}_plane[{at}]"
        return self.in_memory(array, offset)

    def in_memory(self, array: Array, offset: ir.Offset) -> str:
        """How an array is read at an offset from the present cell."""
        name = self.name_of(array)
        if array.kind == "tile":
            _, d1, d2 = array.shape
            step = (offset[0] * d1 + offset[1]) * d2 + offset[2]
            more = f" + {step}" if step > 0 else f" - {-step}" if step else ""
            return f"{self.tile_of(array)}[{name}_at{more}]"
        where = name if array.kind == "scratch" else f"{name}_where."
        strides = [f"{name}_s{a}" if array.kind == "scratch" else f"{where}s{a}" for a in (0, 1)]
        terms = [f"{o} * {s}" for o, s in zip(offset[:2], strides, strict=True) if o]
        if offset[2]:
            terms.append(str(offset[2]))
        return f"{name}_here[{' + '.join(terms) or '0'}]"
