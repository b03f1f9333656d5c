"""One nest on a device: one thread per column of cells, with 2.5D streaming.

Each thread has a few cells along the slowest axis of the grid. The thread reduces its partial results once
for all of its cells. Registers keep values along this axis until later cells use them, as a sliding window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, padded, renumbered
from halocline.compile.passes.invariants import required_registers
from halocline.compile.passes.order import REGISTER
from halocline.compile.strategy import REDUCING_BYTES, REGISTERS, Strategy, streaming_axis
from halocline.lang.dtype import ITEMSIZE


def threads(kernel: Kernel, strategy: Strategy, shared: int) -> Kernel:
    """Distribute the only nest of a kernel over threads; `shared` is the shared memory in bytes."""
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    reductions = [s for s in nest.body if isinstance(s, ir.Reduce)]
    free_bytes = shared - bool(reductions) * REDUCING_BYTES
    written = {s.array for s in nest.body if isinstance(s, ir.Store)}
    used_arrays = written | {name for name, _ in kernel.loads(ir.roots(nest.body))}
    neighbours = _NeighbourStorage(kernel, nest, strategy, free_bytes)
    kernel = neighbours.kernel()
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    before = tuple(s for s in kernel.body if s is not nest)
    axis = streaming_axis(kernel.ndim)
    outside, inside = lets(kernel, nest)
    addresses: ir.Body = tuple(
        ir.CellAddress(a.name, a.name in written) for a in kernel.arrays if a.name in used_arrays
    )
    point: ir.Body = (
        *addresses,
        *(ir.LoadQueueEnd(name) for name in neighbours.queues),
        *inside,
        *nest.body,
        *(ir.ShiftQueue(name) for name in neighbours.queues),
    )
    if neighbours.tiles:
        point = (ir.LoadTiles(tuple(neighbours.tiles)), ir.IfInside(point))
    if axis is not None:
        point = (*_queues(neighbours), ir.StreamLoop(axis, strategy.unroll, point))
    body: ir.Body = (
        *(ir.DeclareShared(name) for name in neighbours.tiles),
        ir.Threads(axis),
        *outside,
    )
    body += point if neighbours.tiles else (ir.IfInside(point),)
    resets = tuple(ir.ResetPartial(n, s.kind) for n, s in enumerate(reductions))
    finish = (ir.ReduceBlock(tuple(s.kind for s in reductions)),) if reductions else ()
    return replace(kernel, body=(*before, *resets, replace(nest, body=body), *finish))


def lets(kernel: Kernel, nest: ir.Nest) -> tuple[ir.Body, ir.Body]:
    """Return the `Let` of the values of a nest that are equal in all cells, and the `Let` of all others."""
    order = kernel.below(ir.roots(nest.body))
    invariant = tuple(n for n in order if kernel.values[n].depth == 0)
    varying = tuple(n for n in order if kernel.values[n].depth > 0)
    return (ir.Let(invariant),) if invariant else (), (ir.Let(varying),) if varying else ()


def _queues(neighbours: _NeighbourStorage) -> ir.Body:
    if not neighbours.queues:
        return ()
    return (*(ir.DeclareQueue(name) for name in neighbours.queues), ir.FillQueues(tuple(neighbours.queues)))


@dataclass
class _NeighbourStorage:
    """Selection of the arrays whose values are kept in queues and tiles.

    An array that is read at several positions along the streaming axis has a queue, if enough registers are
    free. An array that is read at neighbours along the other axes has a field tile, if `free_bytes` of shared
    memory suffice.
    """

    source: Kernel
    nest: ir.Nest
    strategy: Strategy
    free_bytes: int

    def __post_init__(self) -> None:
        self.queues: dict[str, Array] = {}
        self.tiles: dict[str, Array] = {}
        self.axis = streaming_axis(self.source.ndim)
        block_shape = self.strategy.threads_per_axis(self.source.ndim)
        if self.axis is not None and block_shape is not None and self.strategy.reads != "direct":
            self._choose(self.axis, block_shape)

    def _choose(self, streaming: int, block_shape: tuple[int, int, int]) -> None:
        ndim = self.source.ndim
        other_axes = [axis for axis in range(3 - ndim, 3) if axis != streaming]
        written = {s.array for s in self.nest.body if isinstance(s, ir.Store)}
        reads: dict[str, list[ir.Offset]] = {}
        for name, offset in self.source.loads(ir.roots(self.nest.body)):
            if self.source.array[name].kind == "field" and name not in written:
                reads.setdefault(name, []).append(padded(offset, ndim))
        free_registers = REGISTERS - required_registers(self.source, self.nest)
        for name, offsets in reads.items():
            dtype = self.source.array[name].dtype
            column = [o[streaming] for o in offsets if not any(o[axis] for axis in other_axes)]
            if len(column) > 1:
                ends = min(column), max(column)
                free_registers -= (ends[1] - ends[0]) * ITEMSIZE[dtype] // REGISTER
            if len(column) > 1 and free_registers >= 0:
                self.queues[f"{name}:queue"] = Array(
                    f"{name}:queue", dtype, "queue", source=name, layers=(ends,)
                )
            plane = [o for o in offsets if not o[streaming]]
            if self.strategy.reads != "planes" or not any(any(o) for o in plane):
                continue
            layers = tuple(
                (max(0, -min(o[a] for o in plane)), max(0, *(o[a] for o in plane))) for a in (1, 2)
            )
            along, across, _ = block_shape
            shape = across + sum(layers[0]), along + sum(layers[1])
            size = shape[0] * shape[1] * ITEMSIZE[dtype]
            if size <= self.free_bytes:
                tile = Array(
                    f"{name}:field_tile", dtype, "field_tile", source=name, layers=layers, shape=shape
                )
                self.tiles[tile.name] = tile
                self.free_bytes -= size

    def kernel(self) -> Kernel:
        """Return the kernel with loads from queues and tiles."""
        source = self.source
        new_arrays = self.queues | self.tiles
        table = Table(source.grid, (*source.arrays, *new_arrays.values()))
        new_numbers: dict[int, int] = {}
        for number in source.below(ir.roots(source.body)):
            value = source.values[number]
            if value.op == "load":
                name, offset = value.attribute
                new_numbers[number] = table.copy(
                    replace(value, attribute=(self._array_of_load(name, offset), offset)), ()
                )
            else:
                new_numbers[number] = table.copy(value, tuple(new_numbers[arg] for arg in value.args))
        arrays = (*source.arrays, *new_arrays.values())
        return replace(
            source, arrays=arrays, values=tuple(table.values), body=renumbered(source.body, new_numbers)
        )

    def _array_of_load(self, name: str, grid_offset: ir.Offset) -> str:
        """Return the name of the array that a load reads."""
        offset = padded(grid_offset, self.source.ndim)
        streaming = self.axis or 0
        along = all(o == 0 for axis, o in enumerate(offset) if axis != streaming)
        if f"{name}:queue" in self.queues and along:
            return f"{name}:queue"
        if f"{name}:field_tile" in self.tiles and not offset[streaming]:
            return f"{name}:field_tile"
        return name
