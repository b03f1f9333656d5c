"""Pieces of rows: results that pass through a buffer in the first-level cache.

Summands of reductions, and values before streaming stores, pass through a buffer for a piece of a row. If the
fields exceed the cache, pieces are shorter, down to one cache line (LINE). Software prefetch loads values
that are AHEAD bytes further along the row. Loads, arithmetic and stores of several pieces therefore overlap.
Measurements: docs/performance.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel
from halocline.lang.dtype import ITEMSIZE

PIECE = 512  # elements
STREAMING_PIECE = 256  # bytes
LINE = 64  # bytes
AHEAD = 4096  # bytes
GROUPED_AHEAD = 2048  # bytes, if several loops compute a row; times for 512 to 8192 differ by 3 %


def pieces(kernel: Kernel, streamed: Collection[str] = (), *, streaming: bool = False) -> Kernel:
    """Divide rows into pieces in nests with reductions, and in all nests if `streaming` is True.

    `streaming` is True for fields that exceed the cache. Results in `streamed` arrays bypass the cache.
    """
    arrays = list(kernel.arrays)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        rows = _Rows(kernel, number, frozenset(streamed), streaming)
        result = rows.nest(nest)
        arrays.extend(rows.buffers)
        return result

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(arrays), body=(*body, ir.StoreFence()) if streamed else body)


@dataclass
class _Rows:
    """Rows of one nest."""

    kernel: Kernel
    number: int
    streamed: frozenset[str]
    streaming: bool

    def nest(self, nest: ir.Nest) -> ir.Nest:
        strips = [s for s in ir.flat(_in_rows(nest)) if isinstance(s, (ir.Strip, ir.Lanes))]
        grouped = len(strips) > 1
        results = strips[-1].body
        # results that pass through a buffer, by their number in the nest
        self.buffered = {
            n: s
            for n, s in enumerate(results)
            if isinstance(s, ir.Reduce) or (isinstance(s, ir.Store) and s.array in self.streamed)
        }
        self.sums = {n: s for n, s in self.buffered.items() if isinstance(s, ir.Reduce) and s.kind == "sum"}
        fields = [a for a in self.kernel.arrays if a.kind == "field"]
        self.item = min((ITEMSIZE[a.dtype] for a in fields), default=8)
        self.deposits = {
            n: s for n, s in self.buffered.items() if isinstance(s, ir.Reduce) and s.kind != "sum"
        }
        # if fields exceed the cache, a row is divided into lines, unless a statement needs longer pieces
        lines = self.streaming and bool(self.buffered) and not grouped
        lines = lines and not any(isinstance(s, ir.CheckAngles) for s in ir.flat(_in_rows(nest)))
        length = (LINE if lines else STREAMING_PIECE) // self.item if self.streaming else PIECE
        intermediates = [
            a for a in self.kernel.arrays if a.kind == "intermediate" and a.name.startswith(f"{self.number}:")
        ]
        length = min((a.length for a in intermediates), default=length)
        self.buffers: list[Array] = []
        for n, result in self.buffered.items():
            dtype = self.kernel.array[result.array].dtype if isinstance(result, ir.Store) else "float64"
            reduced = lines and isinstance(result, ir.Reduce)
            size, span = (PIECE, "block") if reduced else (length, "piece")
            self.buffers.append(Array(self.buffer(n), dtype, "result", length=size, span=span))
        rows = [s for s in ir.flat(nest.body) if isinstance(s, ir.Row)]

        def change(loop: ir.Axis) -> ir.Body:
            if loop.axes == (1,):
                work = tuple(
                    s for s in loop.body if isinstance(s, (ir.CheckAngles, ir.Strip, ir.Lanes, ir.IfSelected))
                )
                pointers = tuple(s for s in loop.body if s not in work)
                if lines:
                    return (replace(loop, body=(*pointers, *self.lines(work, rows, length))),)
                if self.buffered or self.streaming or grouped:
                    return (replace(loop, body=(*pointers, self.pieces(work, rows, length, grouped))),)
            return (loop,)

        buffers = tuple(ir.Buffer(a.name) for a in (*intermediates, *self.buffers))
        new_body = ir.replaced(nest.body, ir.Axis, change)
        outside = tuple(s for s in new_body if not isinstance(s, (ir.Bands, ir.Axis)))
        return replace(nest, body=(*outside, *buffers, *new_body[len(outside) :]))

    def buffer(self, result: int) -> str:
        return f"{self.number}:piece{result}"

    def pieces(self, work: ir.Body, rows: list[ir.Row], length: int, grouped: bool) -> ir.Pieces:
        """Return the loop over pieces of a row, with reductions or streaming stores of its results."""
        body: ir.Body = ()
        if self.streaming and not grouped:
            body += self.fetch(self.newest(rows), AHEAD, length)
        angle_tests = tuple(s for s in work if isinstance(s, ir.CheckAngles))
        body += tuple(replace(s, span="piece") for s in angle_tests)
        body += tuple(ir.OpenSum(n, s.slot) for n, s in self.sums.items())
        loops = [s for s in work if not isinstance(s, ir.CheckAngles)]
        newest = self.newest(rows)
        for n, loop in enumerate(loops):
            if self.streaming and grouped:
                # Each loop issues its share of the prefetches of a piece. All prefetches at once would exceed
                # the number of outstanding loads of a core.
                share = newest[n * len(newest) // len(loops) : (n + 1) * len(newest) // len(loops)]
                body += self.fetch(share, GROUPED_AHEAD, length)
            (piece_loop,) = ir.rewritten((loop,), _over_a_piece)
            body += (self.store_to_buffers(piece_loop) if loop is loops[-1] else piece_loop,)
        body += tuple(ir.CloseSum(n, s.slot, self.buffer(n)) for n, s in self.sums.items())
        for n, result in self.buffered.items():
            if isinstance(result, ir.Store):
                body += (ir.StreamingStore(result.array, self.buffer(n)),)
        return ir.Pieces((*body, *self.deposited()), length)

    def deposited(self) -> ir.Body:
        """Return the statements that merge minima, maxima and point values into their reductions."""
        return tuple(ir.ReduceBuffer(s.slot, s.kind, self.buffer(n)) for n, s in self.deposits.items())

    def lines(self, work: ir.Body, rows: list[ir.Row], length: int) -> ir.Body:
        """Return the loop over the cache lines of a row, with streaming stores of whole lines.

        A sum consists of several parts, each with a vector of partial sums. At the end of each block of
        lines, sums are added to their reductions, and the buffers of other reductions are reduced.
        """
        (strip,) = work
        assert isinstance(strip, ir.Strip)
        complete_line: ir.Body = (
            *self.fetch(self.newest(rows), AHEAD, length),
            self.store_to_buffers(replace(strip, span="line"), lanes=True),
        )
        complete_line += tuple(
            ir.StreamingStore(s.array, self.buffer(n), line=True)
            for n, s in self.buffered.items()
            if isinstance(s, ir.Store)
        )
        reduced = {*self.sums, *self.deposits}
        rest = (self.store_to_buffers(replace(strip, span="piece"), only=reduced),)
        if not reduced:
            return (ir.Lines(complete_line, rest, length),)
        body: ir.Body = tuple(ir.OpenSum(n, s.slot) for n, s in self.sums.items())
        body += (ir.LaneSums(tuple(self.sums), length),) if self.sums else ()
        body += (ir.Lines(complete_line, rest, length, "block"),)
        body += tuple(ir.AddLaneSums(n) for n in self.sums)
        body += tuple(ir.CloseSum(n, s.slot, self.buffer(n)) for n, s in self.sums.items())
        return (ir.RowBlocks((*body, *self.deposited()), PIECE),)

    def store_to_buffers(
        self, strip: ir.Statement, *, lanes: bool = False, only: Collection[int] | None = None
    ) -> ir.Strip:
        """Return a loop that stores results to their buffers: all buffered results, or those in `only`."""
        assert isinstance(strip, ir.Strip)
        body: ir.Body = ()
        for n, result in enumerate(strip.body):
            if n in self.buffered and (only is None or n in only):
                assert isinstance(result, (ir.Store, ir.Reduce))
                body += (ir.Store(self.buffer(n), result.value, result.origin),)
                if n in self.sums:
                    body += (ir.AddToSum(n, self.buffer(n), lanes),)
            else:
                body += (result,)
        return replace(strip, body=body, sums=() if lanes else tuple(self.sums))

    def newest(self, rows: list[ir.Row]) -> list[ir.Row]:
        """Return, for each field that is read, the row that is not yet in the cache.

        The row is a sink if the field is also written.
        """
        offsets: dict[str, tuple[int, int]] = {}
        written = {row.array for row in rows if row.sink}
        for row in rows:
            if not row.sink and self.kernel.array[row.array].kind == "field":
                offsets[row.array] = max(offsets.get(row.array, row.offset), row.offset)
        return [ir.Row(array, offset, array in written) for array, offset in offsets.items()]

    def fetch(self, rows: list[ir.Row], distance: int, length: int) -> ir.Body:
        """Return the prefetch of values that are `distance` bytes further along these rows."""
        if not rows:
            return ()
        items = {ITEMSIZE[self.kernel.array[row.array].dtype] for row in rows}
        return (ir.Prefetch(tuple(rows), distance // min(items), length, 64 // max(items)),)


def _in_rows(nest: ir.Nest) -> ir.Body:
    """Return the statements of rows, without the statements that run once per band."""
    return tuple(s for part in nest.body for s in (part.body if isinstance(part, ir.Bands) else (part,)))


def _over_a_piece(statement: ir.Statement) -> ir.Body:
    return (replace(statement, span="piece") if isinstance(statement, (ir.Strip, ir.Lanes)) else statement,)
