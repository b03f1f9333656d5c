"""Kernels for devices, in the C that CUDA and OpenCL share.

A kernel runs one loop nest, or, where its stages fit into the memory that a group of threads shares, all
nests of a sweep. All decisions about values are those of the kernels for the CPU, so that the bits are the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from halocline.compile import strategy as limits
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.pipeline import run
from halocline.compile.passes.branches import branched
from halocline.compile.passes.invariants import invariants, needed
from halocline.compile.passes.order import order
from halocline.compile.passes.scratch import rooms
from halocline.compile.passes.threads import threads
from halocline.compile.passes.tile import GROUP, TILES, fits, tile
from halocline.compile.printers.device import print_device_kernel
from halocline.compile.printers.spelling import Names
from halocline.compile.schedule import NAME, Code, DeviceKernel
from halocline.compile.strategy import Strategy

# ghosts and halos are thin: nothing is gained by marching, and groups are as their boxes are
_THIN = {"reads": "direct", "group": None, "march": 1}


@dataclass(frozen=True)
class Device:
    """The target of programs that run on devices.

    Parameters
    ----------
    strategy : Strategy
    shared : int
        Bytes that threads of a group can share.
    """

    strategy: Strategy
    shared: int
    wraps = False  # all rows are wrapped at once, by a kernel that copies

    def ordered(self, kernel: Kernel) -> Kernel:
        """Nest after nest, each through the whole box."""
        return kernel

    def sweep(self, kernel: Kernel, names: Names, streamed: frozenset[str]) -> Code:
        """A kernel for all nests, or one for each."""
        return self._kernels(kernel, names, self.strategy)

    def halo(self, kernel: Kernel, names: Names) -> Code:
        """The same, for thin boxes."""
        return self._kernels(kernel, names, replace(self.strategy, **_THIN))  # type: ignore[arg-type]

    def wall(self, layers: Sequence[Kernel], names: Names, axis: int, side: int, comment: str) -> Code:
        """A kernel for each layer, the nearest to the wall first.

        Of layers whose ghosts have one formula, each has a kernel all the same: they are short.
        """
        strategy = replace(self.strategy, **_THIN)  # type: ignore[arg-type]
        made = [
            self._nest(replace(layer, name=f"{NAME}_{number}", comment=comment), names, strategy)
            for number, layer in enumerate(layers)
        ]
        return Code("\n".join(text for text, _ in made), tuple(kernel for _, kernel in made))

    def _kernels(self, kernel: Kernel, names: Names, strategy: Strategy) -> Code:
        room = rooms(kernel)
        nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
        apart = len(nests)
        if strategy.stages == "group":
            # the last nests together, as many as have room for their stages
            apart = next((n for n in range(apart) if fits(_of(kernel, nests[n:], ()), self.shared)), apart)
        pairs = [
            self._nest(_of(replace(kernel, name=f"{NAME}_{n}"), [nest], room), names, strategy)
            for n, nest in enumerate(nests[:apart])
        ]
        if apart < len(nests):
            kernel = replace(kernel, name=f"{NAME}_{apart}")
            pairs.append(self._tile(_of(kernel, nests[apart:], room), names))
        return Code("\n".join(text for text, _ in pairs), tuple(each for _, each in pairs))

    def _nest(self, kernel: Kernel, names: Names, strategy: Strategy) -> tuple[str, DeviceKernel]:
        (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
        staged = len(kernel.body) > 1
        slots = tuple(s.slot for s in nest.body if isinstance(s, ir.Reduce))
        if needed(kernel) > limits.REGISTERS:
            kernel = run(kernel, partial(invariants, room=self.shared - bool(slots) * limits.REDUCING_BYTES))
        made = run(kernel, partial(threads, strategy=strategy, shared=self.shared), branched, order)
        planes = any(array.kind == "plane" for array in made.arrays)
        group, layouts = strategy.threads(kernel.ndim), _layouts_are_too_many(made, staged, bool(slots))
        text = print_device_kernel(made, names, strategy, layouts=layouts, group=group if planes else None)
        queues = (array.layers for array in made.arrays if array.kind == "queue")
        ring = max((upper - lower for layers in queues for lower, upper in layers), default=0)
        frame, march = (nest.extent, nest.top, nest.cell), strategy.march
        return text, DeviceKernel(
            kernel.name, _numbers(kernel), *frame, slots, staged, group, planes, march, ring, layouts=layouts
        )

    def _tile(self, kernel: Kernel, names: Names) -> tuple[str, DeviceKernel]:
        nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
        slots = tuple(s.slot for nest in nests for s in nest.body if isinstance(s, ir.Reduce))
        staged = len(kernel.body) > len(nests)
        made, layouts = run(kernel, tile, branched, order), _layouts_are_too_many(kernel, staged, bool(slots))
        none = ((0, 0),) * kernel.ndim
        text = print_device_kernel(made, names, self.strategy, layouts=layouts, group=GROUP)
        return text, DeviceKernel(
            kernel.name,
            _numbers(kernel),
            none,
            (0,) * kernel.ndim,
            reductions=slots,
            scratch=staged,
            group=GROUP,
            fixed=True,
            tile=TILES[kernel.ndim],
            layouts=layouts,
        )


def _of(kernel: Kernel, nests: Sequence[ir.Nest], room: ir.Body) -> Kernel:
    """A kernel of some nests, with the arrays that they touch; with `room` for stages where they read or
    store what others do too."""
    stored = {s.array for nest in nests for s in nest.body if isinstance(s, ir.Store)}
    read = {name for name, _ in kernel.loads(ir.roots(nests))}
    scratch = {name for name in stored | read if kernel.array[name].kind == "scratch"}
    outside = len(nests) == 1 or bool(scratch - stored)
    arrays = tuple(a for a in kernel.arrays if a.name in stored | read)
    room = tuple(
        s for s in room if isinstance(s, ir.Slot) or (isinstance(s, ir.Allocate) and s.array in scratch)
    )
    return replace(kernel, arrays=arrays, body=(*(room if scratch and outside else ()), *nests))


def _numbers(kernel: Kernel) -> tuple[int, ...]:
    return tuple(array.number for array in kernel.arrays if array.kind == "field")


def _layouts_are_too_many(kernel: Kernel, staged: bool, reduces: bool) -> bool:
    """Whether the parameters of a kernel would be too large with the layout of each array."""
    arrays = len(_numbers(kernel))
    pointers = arrays + 2 + staged + reduces  # scalars and control
    return (
        pointers * limits.POINTER_BYTES + arrays * limits.LAYOUT_BYTES + limits.FRAME_BYTES
        > limits.PARAMETER_BYTES
    )
