"""One nest on a device: one thread per column of cells, with 2.5D streaming.

Each thread has a few cells along the slowest axis of the grid. The thread reduces its partial results once
for all of its cells. Registers keep values along this axis until later cells use them, as a sliding window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, padded, renumbered
from halocline.compile.passes.invariants import needed
from halocline.compile.passes.order import REGISTER
from halocline.compile.strategy import REDUCING_BYTES, REGISTERS, Strategy, march_axis
from halocline.lang.dtype import ITEMSIZE


def threads(kernel: Kernel, strategy: Strategy, shared: int) -> Kernel:
    """Convert the only nest of a kernel to cells of threads; `shared` is the shared memory in bytes."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    reductions = [s for s in nest.body if isinstance(s, ir.Reduce)]
    invariant_bytes = sum(prod(a.shape) * ITEMSIZE[a.dtype] for a in kernel.arrays if a.kind == "invariants")
    room = shared - bool(reductions) * REDUCING_BYTES - invariant_bytes
    written = {s.array for s in nest.body if isinstance(s, ir.Store)}
    used_arrays = written | {name for name, _ in kernel.loads(ir.roots(nest.body))}
    neighbours = _Near(kernel, nest, strategy, room)
    kernel = neighbours.kernel()
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    before = tuple(_placed(kernel, s) for s in kernel.body if s is not nest)
    march = march_axis(kernel.ndim)
    outside, inside = lets(kernel, nest)
    addresses: ir.Body = tuple(
        ir.Point(a.name, a.name in written) for a in kernel.arrays if a.name in used_arrays
    )
    point: ir.Body = (
        *addresses,
        *(ir.Advance(name) for name in neighbours.queues),
        *inside,
        *nest.body,
        *(ir.Step(name) for name in neighbours.queues),
    )
    if neighbours.planes:
        point = (ir.Gather(tuple(neighbours.planes)), ir.Inside(point))
    if march is not None:
        point = (*_queues(neighbours), ir.March(march, strategy.unroll, point))
    body: ir.Body = (
        *(ir.Share(name) for name in neighbours.planes),
        ir.Threads(march),
        *outside,
    )
    body += point if neighbours.planes else (ir.Inside(point),)
    resets = tuple(ir.Reset(n, s.kind) for n, s in enumerate(reductions))
    finish = (ir.Finish(tuple(s.kind for s in reductions)),) if reductions else ()
    return replace(kernel, body=(*before, *resets, replace(nest, body=body), *finish))


def lets(kernel: Kernel, nest: ir.Nest) -> tuple[ir.Body, ir.Body]:
    """Return the `Let` of the values of a nest that are equal in all cells, and the `Let` of all others."""
    order = kernel.below(ir.roots(nest.body))
    invariant = tuple(n for n in order if kernel.values[n].depth == 0)
    varying = tuple(n for n in order if kernel.values[n].depth > 0)
    return (ir.Let(invariant),) if invariant else (), (ir.Let(varying),) if varying else ()


def _placed(kernel: Kernel, statement: ir.Statement) -> ir.Statement:
    """Return a statement before the nest; a statement that computes invariants contains their values."""
    if isinstance(statement, ir.First):
        return replace(statement, body=(ir.Let(tuple(kernel.below(statement.values))),))
    return statement


def _queues(near: _Near) -> ir.Body:
    if not near.queues:
        return ()
    return (*(ir.Queue(name) for name in near.queues), ir.Enter(tuple(near.queues)))


@dataclass
class _Near:
    """Choice of the arrays with queues and planes.

    A queue is for an array that is read at several positions along the streaming axis, while registers are
    available. A plane is for an array that is read at other neighbours of the thread, within `room` bytes of
    shared memory.
    """

    whole: Kernel
    nest: ir.Nest
    strategy: Strategy
    room: int

    def __post_init__(self) -> None:
        self.queues: dict[str, Array] = {}
        self.planes: dict[str, Array] = {}
        self.march = march_axis(self.whole.ndim)
        group = self.strategy.threads(self.whole.ndim)
        if self.march is not None and group is not None and self.strategy.reads != "direct":
            self._choose(self.march, group)

    def _choose(self, march: int, group: tuple[int, int, int]) -> None:
        ndim = self.whole.ndim
        other_axes = [axis for axis in range(3 - ndim, 3) if axis != march]
        written = {s.array for s in self.nest.body if isinstance(s, ir.Store)}
        reads: dict[str, list[ir.Offset]] = {}
        for name, offset in self.whole.loads(ir.roots(self.nest.body)):
            if self.whole.array[name].kind == "field" and name not in written:
                reads.setdefault(name, []).append(padded(offset, ndim))
        free_registers = REGISTERS - needed(self.whole)
        for name, offsets in reads.items():
            dtype = self.whole.array[name].dtype
            column = [o[march] for o in offsets if not any(o[axis] for axis in other_axes)]
            if len(column) > 1:
                ends = min(column), max(column)
                free_registers -= (ends[1] - ends[0]) * ITEMSIZE[dtype] // REGISTER
            if len(column) > 1 and free_registers >= 0:
                self.queues[f"{name}:queue"] = Array(f"{name}:queue", dtype, "queue", of=name, layers=(ends,))
            plane = [o for o in offsets if not o[march]]
            if self.strategy.reads != "planes" or not any(any(o) for o in plane):
                continue
            layers = tuple(
                (max(0, -min(o[a] for o in plane)), max(0, *(o[a] for o in plane))) for a in (1, 2)
            )
            along, across, _ = group
            shape = across + sum(layers[0]), along + sum(layers[1])
            size = shape[0] * shape[1] * ITEMSIZE[dtype]
            if size <= self.room:
                tile = Array(f"{name}:plane", dtype, "plane", of=name, layers=layers, shape=shape)
                self.planes[tile.name] = tile
                self.room -= size

    def kernel(self) -> Kernel:
        """Return the kernel with loads from queues and planes."""
        whole = self.whole
        new_arrays = self.queues | self.planes
        table = Table(whole.grid, (*whole.arrays, *new_arrays.values()))
        new_numbers: dict[int, int] = {}
        for number in whole.below(ir.roots(whole.body)):
            value = whole.values[number]
            if value.op == "load":
                name, offset = value.attribute
                new_numbers[number] = table.copy(
                    replace(value, attribute=(self._place(name, offset), offset)), ()
                )
            else:
                new_numbers[number] = table.copy(value, tuple(new_numbers[arg] for arg in value.args))
        arrays = (*whole.arrays, *new_arrays.values())
        return replace(
            whole, arrays=arrays, values=tuple(table.values), body=renumbered(whole.body, new_numbers)
        )

    def _place(self, name: str, own: ir.Offset) -> str:
        """Return the name of the array that a load reads."""
        offset = padded(own, self.whole.ndim)
        march = self.march or 0
        along = all(o == 0 for axis, o in enumerate(offset) if axis != march)
        if f"{name}:queue" in self.queues and along:
            return f"{name}:queue"
        if f"{name}:plane" in self.planes and not offset[march]:
            return f"{name}:plane"
        return name
