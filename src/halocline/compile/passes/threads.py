"""One nest on a device: each thread computes a column of cells, with 2.5D streaming.

The thread visits a few planes along the slowest axis of the grid. It reduces its partial results once for all
of its cells. Registers keep values along this axis until later cells use them, as a sliding window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, padded, renumbered
from halocline.compile.passes.invariants import required_registers
from halocline.compile.passes.order import REGISTER
from halocline.compile.strategy import (
    REDUCING_BYTES,
    REGISTERS,
    Splits,
    cells_at_once,
    split_size,
    streaming_axis,
)
from halocline.lang.dtype import ITEMSIZE


def threads(kernel: Kernel, splits: Splits, reads: str, shared: int) -> Kernel:
    """Distribute the only nest of a kernel over threads.

    Parameters
    ----------
    kernel : Kernel
    splits : tuple of Split
    reads : str
        Storage of neighbour values, see `halocline.compile.strategy.Strategy`.
    shared : int
        Shared memory of a thread block in bytes.
    """
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    reductions = [s for s in ir.flat(nest.body) if isinstance(s, ir.Reduce)]
    free_bytes = shared - bool(reductions) * REDUCING_BYTES
    written = {s.array for s in ir.flat(nest.body) if isinstance(s, ir.STORES)}
    used_arrays = written | {name for name, _ in kernel.loads(ir.roots(nest.body))}
    neighbours = _NeighbourStorage(kernel, nest, splits, reads, free_bytes)
    kernel = neighbours.kernel()
    (nest,) = (s for s in kernel.body if isinstance(s, ir.Nest))
    before = tuple(s for s in kernel.body if s is not nest)
    axis = streaming_axis(splits)
    outside, inside = lets(kernel, nest)
    addresses: ir.Body = tuple(
        ir.CellAddress(a.name, a.name in written) for a in kernel.arrays if a.name in used_arrays
    )
    cells: ir.Body = (
        *addresses,
        *(ir.LoadQueueEnd(name) for name in neighbours.queues),
        *inside,
        *nest.body,
        *(ir.ShiftQueue(name) for name in neighbours.queues),
    )
    queues: ir.Body = tuple(ir.DeclareQueue(name) for name in neighbours.queues)
    fill: ir.Body = (ir.FillQueues(tuple(neighbours.queues)),) if queues else ()
    if neighbours.tiles:
        # all threads of a block load the tiles, also those without cells
        assert axis is not None
        plane = (ir.LoadTiles(tuple(neighbours.tiles)), *_in_threads(splits, cells))
        fill = _in_threads(splits, fill) if fill else ()
        body: ir.Body = (*queues, *fill, ir.Axis((axis,), "stream", 1, plane))
    elif axis is not None:
        body = _in_threads(splits, (*queues, *fill, ir.Axis((axis,), "stream", 1, cells)))
    else:
        body = _in_threads(splits, cells)
    body = (*outside, *body)
    for axis in (2, 1, 0):
        in_grid = axis >= 3 - kernel.ndim
        body = (ir.Axis((axis,), "block", 0 if in_grid else 1, body),)
    resets = tuple(ir.ResetPartial(n, s.kind) for n, s in enumerate(_distinct(reductions)))
    finish = (ir.ReduceBlock(tuple(s.kind for s in _distinct(reductions))),) if reductions else ()
    tiles = tuple(ir.DeclareShared(name) for name in neighbours.tiles)
    return replace(kernel, body=(*before, *resets, *tiles, replace(nest, body=body), *finish))


def _in_threads(splits: Splits, body: ir.Body) -> ir.Body:
    """Return the loops over the cells of each thread, the contiguous axis outside."""
    for split in reversed(splits):
        if split.kind == "thread":
            body = (ir.Axis((split.axis,), "thread", cells_at_once(splits, split.axis), body),)
    return body


def _distinct(reductions: list[ir.Reduce]) -> list[ir.Reduce]:
    """Return one statement for each reduction; several cells of a thread may contribute to it."""
    return list({statement.slot: statement for statement in reductions}.values())


def lets(kernel: Kernel, nest: ir.Nest) -> tuple[ir.Body, ir.Body]:
    """Return the `Let` of the values of a nest that are equal in all cells, and the `Let` of all others."""
    order = kernel.below(ir.roots(nest.body))
    invariant = tuple(n for n in order if kernel.values[n].depth == 0)
    varying = tuple(n for n in order if kernel.values[n].depth > 0)
    return (ir.Let(invariant),) if invariant else (), (ir.Let(varying),) if varying else ()


@dataclass
class _NeighbourStorage:
    """Selection of the arrays whose values are kept in queues and tiles.

    An array that is read at several positions along the streaming axis has a queue for each row of the
    thread, if enough registers are free. An array that is read at neighbours along the other axes has a field
    tile, if `free_bytes` of shared memory suffice.
    """

    source: Kernel
    nest: ir.Nest
    splits: Splits
    reads: str
    free_bytes: int

    def __post_init__(self) -> None:
        self.queues: dict[str, Array] = {}
        self.tiles: dict[str, Array] = {}
        self.axis = streaming_axis(self.splits)
        self.rows, self.lanes = cells_at_once(self.splits, 1), cells_at_once(self.splits, 2)
        if self.axis is not None and self.reads != "direct":
            self._choose(self.axis)

    def _choose(self, streaming: int) -> None:
        ndim = self.source.ndim
        written = {s.array for s in ir.flat(self.nest.body) if isinstance(s, ir.STORES)}
        reads: dict[str, list[ir.Offset]] = {}
        for name, offset in self.source.loads(ir.roots(self.nest.body)):
            if self.source.array[name].kind == "field" and name not in written:
                reads.setdefault(name, []).append(padded(offset, ndim))
        free_registers = REGISTERS - required_registers(self.source, self.nest)
        for name, offsets in reads.items():
            dtype = self.source.array[name].dtype
            for row in range(self.rows):
                column = {o[streaming] for o in offsets if self._row(o) == row}
                if len(column) < 2:
                    continue
                ends = min(column), max(column)
                free_registers -= (ends[1] - ends[0]) * self.lanes * ITEMSIZE[dtype] // REGISTER
                if free_registers >= 0:
                    queue = self._queue(name, row)
                    self.queues[queue] = Array(
                        queue, dtype, "queue", source=name, length=self.lanes, layers=(ends,), shape=(row,)
                    )
            plane = [o for o in offsets if not o[streaming]]
            if self.reads == "planes" and any(any(o) for o in plane):
                self._choose_tile(name, dtype, plane)

    def _choose_tile(self, name: str, dtype: str, plane: list[ir.Offset]) -> None:
        """Add a tile of a field that is read at some offsets in the plane, if shared memory suffices."""
        layers = tuple(
            (max(0, -min(o[a] for o in plane)), max(0, max(o[a] for o in plane) + 1 - cells))
            for a, cells in ((1, self.rows), (2, self.lanes))
        )
        along, across = (
            (split_size(self.splits, a, "thread") or 1) * cells
            for a, cells in ((2, self.lanes), (1, self.rows))
        )
        shape = across + sum(layers[0]), along + sum(layers[1])
        size = shape[0] * shape[1] * ITEMSIZE[dtype]
        if size <= self.free_bytes:
            tile = Array(f"{name}:field_tile", dtype, "field_tile", source=name, layers=layers, shape=shape)
            self.tiles[tile.name] = tile
            self.free_bytes -= size

    def _row(self, offset: ir.Offset) -> int | None:
        """Return the row of the thread in which an offset lies; None if it lies beside the thread's cells."""
        row = offset[1] if self.axis == 0 else 0
        is_inside = 0 <= row < self.rows and 0 <= offset[2] < self.lanes
        return row if is_inside else None

    def _queue(self, name: str, row: int) -> str:
        return f"{name}:queue{row or ''}"

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
        row = self._row(offset)
        if row is not None and self._queue(name, row) in self.queues:
            return self._queue(name, row)
        if f"{name}:field_tile" in self.tiles and not offset[self.axis or 0]:
            return f"{name}:field_tile"
        return name
