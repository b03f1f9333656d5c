"""Device target: kernels in the C subset that CUDA and OpenCL share.

A kernel contains one loop nest, or several independent ones. If the stages of a sweep fit into shared memory,
one kernel contains all nests of the sweep. All choices that affect values are the same as for the CPU, so
that the bits are equal.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import prod

from halocline.compile import strategy as limits
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, joint_extent, tile_bytes
from halocline.compile.ir.pipeline import run
from halocline.compile.passes.branches import branch_statements
from halocline.compile.passes.coarsen import coarsen
from halocline.compile.passes.invariants import invariants
from halocline.compile.passes.merge import merge
from halocline.compile.passes.order import order
from halocline.compile.passes.scratch import scratch_declarations
from halocline.compile.passes.threads import number_cells, threads
from halocline.compile.passes.tile import SPLITS, fits, tile
from halocline.compile.printers.device import (
    GhostLayers,
    print_device_kernel,
    print_fill_kernel,
    print_ghost_function,
    print_wall_kernel,
    wall_arrays,
)
from halocline.compile.printers.spelling import Names
from halocline.compile.schedule import INVARIANTS, NAME, Code, DeviceKernel
from halocline.compile.strategy import Splits, Strategy, cells_at_once, split_size, thin_splits
from halocline.compile.targets.splits import splits_of


@dataclass(frozen=True)
class Device:
    """Target of programs that run on devices.

    Parameters
    ----------
    strategy : Strategy
    shared : int
        Maximum shared memory per thread block in bytes. Stages use at most `SHARED_BYTES`.
    """

    strategy: Strategy
    shared: int
    wraps = False  # a copy kernel wraps all rows at once

    def ordered(self, kernel: Kernel) -> Kernel:
        """Return a kernel whose independent nests share a device kernel."""
        return run(kernel, merge)

    def with_invariants(self, kernel: Kernel, changing: Set[str]) -> Kernel:
        """Return a kernel with invariants in constant memory; `changing` are scalars that a run changes."""
        return run(kernel, partial(invariants, changing=changing))

    def sweep(self, kernel: Kernel, names: Names, streamed: frozenset[str]) -> Code:
        """Return the kernels of a sweep.

        The last nests share one kernel if their stages fit into shared memory. Other independent nests also
        share kernels (`halocline.compile.passes.merge`).
        """
        return self._kernels(kernel, names, self.strategy)

    def halo(self, kernel: Kernel, names: Names) -> Code:
        """Return the kernels of a computation in the halo, with the strategy for thin boxes."""
        return self._kernels(kernel, names, self._thin(kernel.ndim))

    def wall(self, layers: Sequence[Kernel], names: Names, axis: int, side: int, comment: str) -> Code:
        """Return a function for each layer, from the wall outward, which `wall_kernel` calls.

        Layers with the same formula also have separate functions, since the functions are short. For the same
        reason, their invariants are in registers.
        """
        named = [replace(layer, name=f"{NAME}_{n}", comment=comment) for n, layer in enumerate(layers)]
        functions = [run(layer, number_cells, branch_statements, order) for layer in named]
        return Code("\n".join(print_ghost_function(function, names) for function in functions))

    def wall_kernel(self, walls: Sequence[GhostLayers], names: Names, ndim: int) -> Code:
        """Return a kernel that fills the ghosts beyond several walls, which do not depend on each other."""
        arrays, boxes = wall_arrays(walls), len(walls) * limits.WALL_BYTES
        layouts = not _fit_parameters(len(arrays), boxes)
        text = print_wall_kernel(NAME, walls, names, layouts=layouts)
        numbers, no_extent = tuple(array.number for array in arrays), ((0, 0),) * ndim
        return Code(text, (DeviceKernel(NAME, numbers, no_extent, (0,) * ndim, layouts=layouts),))

    def parameters_fit(self, walls: Sequence[GhostLayers]) -> bool:
        """Return True if the parameters of a kernel for these walls fit into the parameter space."""
        return _fit_parameters(len(wall_arrays(walls)), len(walls) * limits.WALL_BYTES)

    def _thin(self, ndim: int) -> Strategy:
        """Return the strategy for thin boxes, where 2.5D streaming has no benefit."""
        return Strategy("direct", thin_splits(ndim), self.strategy.stages)

    def _kernels(self, kernel: Kernel, names: Names, strategy: Strategy) -> Code:
        declarations = scratch_declarations(kernel)
        texts = [
            print_fill_kernel(kernel, names, statement)
            for statement in kernel.body
            if isinstance(statement, ir.ComputeInvariants)
        ]
        nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
        separate_count = len(nests)
        if strategy.stages == "shared":
            # one kernel for as many of the last nests as fit into shared memory with their stages
            stage_bytes = min(self.shared, limits.SHARED_BYTES)
            separate_count = next(
                (n for n in range(separate_count) if fits(_of(kernel, nests[n:], ()), stage_bytes)),
                separate_count,
            )
        pairs = [
            self._nests(_of(replace(kernel, name=f"{NAME}_{n}"), [*together], declarations), names, strategy)
            for n, (_, together) in enumerate(groupby(nests[:separate_count], lambda nest: nest.kernel))
        ]
        if separate_count < len(nests):
            kernel = replace(kernel, name=f"{NAME}_{len(pairs)}")
            pairs.append(self._tile(_of(kernel, nests[separate_count:], declarations), names))
        texts += [text for text, _ in pairs]
        return Code("\n".join(texts), tuple(device_kernel for _, device_kernel in pairs))

    def _nests(self, kernel: Kernel, names: Names, strategy: Strategy) -> tuple[str, DeviceKernel]:
        """Return the text of a kernel whose nests are independent, and its description."""
        nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
        staged = len(kernel.body) > len(nests)
        slots = tuple(s.slot for nest in nests for s in nest.body if isinstance(s, ir.Reduce))
        splits, resident = splits_of(kernel, nests, strategy)
        rows, lanes = cells_at_once(splits, 1), cells_at_once(splits, 2)
        shared = self.shared if len(nests) == 1 else 0  # for the tiles of fields
        result = run(
            kernel,
            partial(coarsen, rows=rows, lanes=lanes),
            partial(threads, splits=splits, reads=strategy.reads, shared=shared),
            branch_statements,
            order,
        )
        layouts = _layouts_are_too_many(result, staged, bool(slots))
        block_shape = _block_shape(splits)
        field_tiles = [array for array in result.arrays if array.kind == "field_tile"]
        text = print_device_kernel(
            result,
            names,
            layouts=layouts,
            block_shape=block_shape if field_tiles else None,
            launch_bounds=(prod(block_shape), resident) if resident else None,
        )
        queues = (array.layers for array in result.arrays if array.kind == "queue")
        preloaded_planes = max((upper - lower for layers in queues for lower, upper in layers), default=0)
        extent, top = joint_extent(nests)
        return text, DeviceKernel(
            kernel.name,
            _numbers(kernel),
            extent,
            top,
            nests[0].cell,
            reductions=slots,
            scratch=staged,
            splits=splits,
            has_fixed_block=bool(field_tiles),
            tile_bytes=sum(map(tile_bytes, field_tiles)),
            preloaded_planes=preloaded_planes,
            layouts=layouts,
            invariants=_invariants(kernel),
        )

    def _tile(self, kernel: Kernel, names: Names) -> tuple[str, DeviceKernel]:
        nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
        slots = tuple(s.slot for nest in nests for s in nest.body if isinstance(s, ir.Reduce))
        staged = len(kernel.body) > len(nests)
        result, layouts = (
            run(kernel, tile, branch_statements, order),
            _layouts_are_too_many(kernel, staged, bool(slots)),
        )
        no_extent = ((0, 0),) * kernel.ndim
        splits = SPLITS[kernel.ndim]
        text = print_device_kernel(result, names, layouts=layouts, block_shape=_block_shape(splits))
        return text, DeviceKernel(
            kernel.name,
            _numbers(kernel),
            no_extent,
            (0,) * kernel.ndim,
            reductions=slots,
            scratch=staged,
            splits=splits,
            has_fixed_block=True,
            layouts=layouts,
            invariants=_invariants(kernel),
        )


def _block_shape(splits: Splits) -> tuple[int, int, int]:
    """Return the threads of a block along three axes, the contiguous one first."""
    along, across, slowest = (split_size(splits, axis, "thread") or 1 for axis in (2, 1, 0))
    return along, across, slowest


def _of(kernel: Kernel, nests: Sequence[ir.Nest], declarations: ir.Body) -> Kernel:
    """Return a kernel of some nests, with the arrays that they use.

    If the nests share stages with other nests, the kernel contains the scratch declarations of these stages.
    """
    stored = {s.array for nest in nests for s in nest.body if isinstance(s, ir.Store)}
    read = {name for name, _ in kernel.loads(ir.roots(nests))}
    scratch = {name for name in stored | read if kernel.array[name].kind == "scratch"}
    outside = len({nest.kernel for nest in nests}) == 1 or bool(scratch - stored)
    read |= {
        kernel.values[n].attribute[0]
        for n in kernel.below(ir.roots(nests))
        if kernel.values[n].op == "invariant"
    }
    arrays = tuple(a for a in kernel.arrays if a.name in stored | read)
    scratch_memory = tuple(
        s
        for s in declarations
        if isinstance(s, ir.Slot) or (isinstance(s, ir.Allocate) and s.array in scratch)
    )
    return replace(kernel, arrays=arrays, body=(*(scratch_memory if scratch and outside else ()), *nests))


def _invariants(kernel: Kernel) -> tuple[str, int] | None:
    """Return the symbol and the number of the values in constant memory that a kernel reads."""
    count = sum(a.shape[0] for a in kernel.arrays if a.kind == "invariants")
    return (INVARIANTS, count) if count else None


def _numbers(kernel: Kernel) -> tuple[int, ...]:
    return tuple(array.number for array in kernel.arrays if array.kind == "field")


def _layouts_are_too_many(kernel: Kernel, staged: bool, reduces: bool) -> bool:
    """Return True if the layouts of all arrays would exceed the parameter space of a kernel."""
    more = (staged + reduces + (_invariants(kernel) is not None)) * limits.POINTER_BYTES
    return not _fit_parameters(len(_numbers(kernel)), more)


def _fit_parameters(array_count: int, other_bytes: int) -> bool:
    """Return True if some arrays and other arguments fit into the parameter space of a kernel."""
    pointers = array_count + 2  # 2: scalars and control
    required = (
        pointers * limits.POINTER_BYTES + array_count * limits.LAYOUT_BYTES + limits.FRAME_BYTES + other_bytes
    )
    return required <= limits.PARAMETER_BYTES
