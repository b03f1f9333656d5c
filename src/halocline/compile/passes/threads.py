"""Threads for the nests of a device kernel: in general, each thread computes a column, with 2.5D streaming.

The thread visits a few planes along the slowest axis of the grid. It reduces its partial results once for all
of its cells. Registers keep values along this axis until later cells use them, as a sliding window. In thin
boxes, each thread computes one cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Table, padded, substituted_in, tile_bytes
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

# Planes of a tile that threads copy in advance, best first; the first number whose tiles fit is used.
AHEAD = (2, 1)


def threads(kernel: Kernel, splits: Splits, reads: str, shared: int) -> Kernel:
    """Distribute the nests of a kernel over threads.

    Parameters
    ----------
    kernel : Kernel
    splits : tuple of Split
    reads : str
        Storage of neighbour values, see `halocline.compile.strategy.Strategy`.
    shared : int
        Shared memory of a thread block in bytes.
    """
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    reductions = _distinct([s for s in ir.flat(nests) if isinstance(s, ir.Reduce)])
    free_bytes = shared - bool(reductions) * REDUCING_BYTES
    body: ir.Body = tuple(ir.ResetPartial(n, s.kind) for n, s in enumerate(reductions))
    for statement in kernel.body:
        if isinstance(statement, ir.Nest):
            kernel, statements = _in_blocks(kernel, statement, splits, reads, free_bytes)
            body += statements
        else:
            body += (statement,)
    finish = (ir.ReduceBlock(tuple(s.kind for s in reductions)),) if reductions else ()
    return replace(kernel, body=(*body, *finish))


def _in_blocks(
    kernel: Kernel, nest: ir.Nest, splits: Splits, reads: str, free_bytes: int
) -> tuple[Kernel, ir.Body]:
    """Distribute a nest over threads; return the kernel with new arrays and values, and the statements."""
    addresses = _addresses(kernel, nest)
    neighbours = _NeighbourStorage(kernel, nest, splits, reads, free_bytes)
    kernel, nest = neighbours.with_loads()
    axis = streaming_axis(splits)
    outside, inside = lets(kernel, nest)
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
        names, ahead = tuple(neighbours.tiles), neighbours.ahead
        plane = (ir.LoadTiles(names, ahead), *_in_threads(splits, cells))
        fill = _in_threads(splits, fill) if fill else ()
        stream = ir.Axis((axis,), "stream", 1, plane)
        body: ir.Body = (ir.FillTiles(names, ahead), *queues, *fill, stream)
    elif axis is not None:
        body = _in_threads(splits, (*queues, *fill, ir.Axis((axis,), "stream", 1, cells)))
    else:
        body = _in_threads(splits, cells)
    body = (*outside, *body)
    for axis in (2, 1, 0):
        in_grid = axis >= 3 - kernel.ndim
        body = (ir.Axis((axis,), "block", 0 if in_grid else 1, body),)
    return kernel, (*map(ir.DeclareShared, neighbours.tiles), replace(nest, body=body))


def number_cells(kernel: Kernel) -> Kernel:
    """Distribute the nests of a kernel over threads that number all cells of a launch, one cell each."""
    body: ir.Body = ()
    for statement in kernel.body:
        if isinstance(statement, ir.Nest):
            outside, inside = lets(kernel, statement)
            cell = (*_addresses(kernel, statement), *inside, *statement.body)
            cells = ir.Axis((0, 1, 2), "thread", 1, cell)
            statement = replace(statement, body=(*outside, cells))
        body += (statement,)
    return replace(kernel, body=body)


def _in_threads(splits: Splits, body: ir.Body) -> ir.Body:
    """Return the loops over the cells of each thread, the contiguous axis outside."""
    for split in reversed(splits):
        if split.kind == "thread":
            body = (ir.Axis((split.axis,), "thread", cells_at_once(splits, split.axis), body),)
    return body


def _addresses(kernel: Kernel, nest: ir.Nest) -> ir.Body:
    """Return the addresses of the current cell in the arrays that a nest uses."""
    written = {s.array for s in ir.flat(nest.body) if isinstance(s, ir.STORES)}
    used_arrays = written | {name for name, _ in kernel.loads(ir.roots(nest.body))}
    return tuple(ir.CellAddress(a.name, a.name in written) for a in kernel.arrays if a.name in used_arrays)


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

    A row of a thread has a queue for an array that it reads at several positions along the streaming axis.
    Queues need free registers. An array that is read at neighbours along the other axes has a field
    tile, if `free_bytes` of shared memory suffice. Threads copy each plane of the tiles `ahead` planes before
    they need it.
    """

    source: Kernel
    nest: ir.Nest
    splits: Splits
    reads: str
    free_bytes: int

    def __post_init__(self) -> None:
        self.queues: dict[str, Array] = {}
        self.tiles: dict[str, Array] = {}
        self.ahead = 0
        self.axis = streaming_axis(self.splits)
        # in the names of queues, since each nest of a kernel has queues of its own
        self.queue_count = sum(array.kind == "queue" for array in self.source.arrays)
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
        planes = {name: [o for o in offsets if not o[streaming]] for name, offsets in reads.items()}
        planes = {name: p for name, p in planes.items() if any(self._row(o) is None for o in p)}
        for ahead in AHEAD if self.reads == "planes" else ():
            self.ahead, self.tiles, free_bytes = ahead, {}, self.free_bytes
            for name, plane in planes.items():
                tile = self._tile(name, plane)
                if tile_bytes(tile) <= free_bytes:
                    self.tiles[tile.name] = tile
                    free_bytes -= tile_bytes(tile)
            if len(self.tiles) == len(planes):
                break

    def _tile(self, name: str, plane: list[ir.Offset]) -> Array:
        """Return the tile of a field that is read at some offsets in the plane.

        The rows of a tile begin and end with complete vectors. The tile also contains the planes up to the
        newest one in the queues of the field, which are loaded from the tile.
        """
        dtype = self.source.array[name].dtype
        (along, lanes), (across, rows) = (
            (split_size(self.splits, axis, "thread") or 1, cells)
            for axis, cells in ((2, self.lanes), (1, self.rows))
        )
        below, before = (max(0, -min(o[axis] for o in plane)) for axis in (1, 2))
        above, behind = (
            max(0, max(o[axis] for o in plane) + 1 - cells) for axis, cells in ((1, rows), (2, lanes))
        )
        before, behind = (-(-n // lanes) * lanes for n in (before, behind))
        last = max(0, *(q.layers[0][1] for q in self.queues.values() if q.source == name), 0)
        layers = (0, last), (below, above), (before, behind)
        shape = last + self.ahead + 1, across * rows + below + above, along * lanes + before + behind
        return Array(
            f"{name}:field_tile", dtype, "field_tile", source=name, length=lanes, layers=layers, shape=shape
        )

    def _row(self, offset: ir.Offset) -> int | None:
        """Return the row of the thread in which an offset lies; None if it lies beside the thread's cells."""
        row = offset[1] if self.axis == 0 else 0
        is_inside = 0 <= row < self.rows and 0 <= offset[2] < self.lanes
        return row if is_inside else None

    def _queue(self, name: str, row: int) -> str:
        return f"{name}:queue{row + self.queue_count or ''}"

    def with_loads(self) -> tuple[Kernel, ir.Nest]:
        """Return the kernel and the nest with loads from queues and tiles."""
        source = self.source
        arrays = (*source.arrays, *self.queues.values(), *self.tiles.values())
        table = Table(source.grid, arrays, source.values)
        loads: dict[int, int] = {}
        for number in source.below(ir.roots(self.nest.body)):
            value = source.values[number]
            if value.op == "load":
                name, offset = value.attribute
                place = self._array_of_load(name, offset)
                if place != name:
                    loads[number] = table.add("load", (), (place, offset), value.dtype, value.depth)
        nest = replace(self.nest, body=substituted_in(table, self.nest.body, loads))
        return replace(source, arrays=arrays, values=tuple(table.values)), nest

    def _array_of_load(self, name: str, grid_offset: ir.Offset) -> str:
        """Return the name of the array that a load reads."""
        offset = padded(grid_offset, self.source.ndim)
        row = self._row(offset)
        if row is not None and self._queue(name, row) in self.queues:
            return self._queue(name, row)
        if f"{name}:field_tile" in self.tiles and not offset[self.axis or 0]:
            return f"{name}:field_tile"
        return name
