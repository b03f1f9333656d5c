"""Rows in pieces: results that do not go to their row at once.

Summands of a reduction and values on their way to streaming stores pass through a piece of a row in L1.
Where fields exceed the cache, pieces are shorter, down to a LINE, and what comes AHEAD bytes later is
fetched meanwhile, so that loads, arithmetic and stores of several pieces are under way at once. Measured:
docs/performance.md.
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
GROUPED_AHEAD = 2048  # bytes, where a row is computed group by group; 512 to 8192 differ by 3 %


def pieces(kernel: Kernel, streamed: Collection[str] = (), *, streaming: bool = False) -> Kernel:
    """Rows in pieces where results are reduced, or where fields exceed the cache: `streaming`. Results in
    `streamed` arrays go past it."""
    arrays = list(kernel.arrays)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        rows = _Rows(kernel, number, frozenset(streamed), streaming)
        made = rows.nest(nest)
        arrays.extend(rows.buffers)
        return made

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(arrays), body=(*body, ir.Fence()) if streamed else body)


@dataclass
class _Rows:
    """The rows of one nest."""

    kernel: Kernel
    number: int
    streamed: frozenset[str]
    streaming: bool

    def nest(self, nest: ir.Nest) -> ir.Nest:
        strips = [s for s in ir.flat(_in_rows(nest)) if isinstance(s, (ir.Strip, ir.Lanes))]
        grouped = len(strips) > 1
        results = strips[-1].body
        # by number of the result in its nest
        self.passing = {
            n: s
            for n, s in enumerate(results)
            if isinstance(s, ir.Reduce) or (isinstance(s, ir.Store) and s.array in self.streamed)
        }
        self.sums = {n: s for n, s in self.passing.items() if isinstance(s, ir.Reduce) and s.kind == "sum"}
        fields = [a for a in self.kernel.arrays if a.kind == "field"]
        self.item = min((ITEMSIZE[a.dtype] for a in fields), default=8)
        self.deposits = {
            n: s for n, s in self.passing.items() if isinstance(s, ir.Reduce) and s.kind != "sum"
        }
        # where fields exceed the cache, a row goes line by line, unless something needs more at a time
        lines = self.streaming and bool(self.passing) and not grouped
        lines = lines and not any(isinstance(s, ir.Far) for s in ir.flat(_in_rows(nest)))
        length = (LINE if lines else STREAMING_PIECE) // self.item if self.streaming else PIECE
        kept = [a for a in self.kernel.arrays if a.kind == "kept" and a.name.startswith(f"{self.number}:")]
        length = min((a.length for a in kept), default=length)
        self.buffers: list[Array] = []
        for n, result in self.passing.items():
            dtype = self.kernel.array[result.array].dtype if isinstance(result, ir.Store) else "float64"
            reduced = lines and isinstance(result, ir.Reduce)
            size, span = (PIECE, "block") if reduced else (length, "piece")
            self.buffers.append(Array(self.buffer(n), dtype, "result", length=size, span=span))
        rows = [s for s in ir.flat(nest.body) if isinstance(s, ir.Row)]

        def change(loop: ir.Loop) -> ir.Body:
            if loop.axis == 1:
                work = tuple(s for s in loop.body if isinstance(s, (ir.Far, ir.Strip, ir.Lanes, ir.Needed)))
                begun = tuple(s for s in loop.body if s not in work)
                if lines:
                    return (replace(loop, body=(*begun, *self.lines(work, rows, length))),)
                if self.passing or self.streaming or grouped:
                    return (replace(loop, body=(*begun, self.pieces(work, rows, length, grouped))),)
            return (loop,)

        rooms = tuple(ir.Buffer(a.name) for a in (*kept, *self.buffers))
        made = ir.replaced(nest.body, ir.Loop, change)
        outside = tuple(s for s in made if not isinstance(s, (ir.Bands, ir.Loop)))
        return replace(nest, body=(*outside, *rooms, *made[len(outside) :]))

    def buffer(self, result: int) -> str:
        return f"{self.number}:piece{result}"

    def pieces(self, work: ir.Body, rows: list[ir.Row], length: int, grouped: bool) -> ir.Pieces:
        """A row in pieces that stay in the first-level cache, on their way to sums or past the cache."""
        body: ir.Body = ()
        if self.streaming and not grouped:
            body += self.fetch(self.newest(rows), AHEAD, length)
        far = tuple(s for s in work if isinstance(s, ir.Far))
        body += tuple(replace(s, span="piece") for s in far)
        body += tuple(ir.OpenSum(n, s.slot) for n, s in self.sums.items())
        loops = [s for s in work if not isinstance(s, ir.Far)]
        newest = self.newest(rows)
        for n, loop in enumerate(loops):
            if self.streaming and grouped:
                # one loop's share of what a piece has to fetch: all at once is more than a core can have
                # under way
                share = newest[n * len(newest) // len(loops) : (n + 1) * len(newest) // len(loops)]
                body += self.fetch(share, GROUPED_AHEAD, length)
            (made,) = ir.rewritten((loop,), _over_a_piece)
            body += (self.passed(made) if loop is loops[-1] else made,)
        body += tuple(ir.CloseSum(n, s.slot, self.buffer(n)) for n, s in self.sums.items())
        for n, result in self.passing.items():
            if isinstance(result, ir.Store):
                body += (ir.Stream(result.array, self.buffer(n)),)
        return ir.Pieces((*body, *self.deposited()), length)

    def deposited(self) -> ir.Body:
        """What greatest, least and single values do with what has come of them."""
        return tuple(ir.Deposit(s.slot, s.kind, self.buffer(n)) for n, s in self.deposits.items())

    def lines(self, work: ir.Body, rows: list[ir.Row], length: int) -> ir.Body:
        """A row one line at a time: a vector of results, which goes past the cache as it is. Sums keep a
        vector for each of their parts; they are closed, and others reduced, once for many lines."""
        (strip,) = work
        assert isinstance(strip, ir.Strip)
        whole: ir.Body = (
            *self.fetch(self.newest(rows), AHEAD, length),
            self.passed(replace(strip, span="line"), lanes=True),
        )
        whole += tuple(
            ir.Stream(s.array, self.buffer(n), line=True)
            for n, s in self.passing.items()
            if isinstance(s, ir.Store)
        )
        reduced = {*self.sums, *self.deposits}
        rest = (self.passed(replace(strip, span="piece"), only=reduced),)
        if not reduced:
            return (ir.Lines(whole, rest, length),)
        body: ir.Body = tuple(ir.OpenSum(n, s.slot) for n, s in self.sums.items())
        body += (ir.LaneSums(tuple(self.sums), length),) if self.sums else ()
        body += (ir.Lines(whole, rest, length, "block"),)
        body += tuple(ir.TotalLanes(n) for n in self.sums)
        body += tuple(ir.CloseSum(n, s.slot, self.buffer(n)) for n, s in self.sums.items())
        return (ir.Blocks((*body, *self.deposited()), PIECE),)

    def passed(
        self, strip: ir.Statement, *, lanes: bool = False, only: Collection[int] | None = None
    ) -> ir.Strip:
        """A loop whose results pass through pieces: all that are to, or some."""
        assert isinstance(strip, ir.Strip)
        body: ir.Body = ()
        for n, result in enumerate(strip.body):
            if n in self.passing and (only is None or n in only):
                assert isinstance(result, (ir.Store, ir.Reduce))
                body += (ir.Store(self.buffer(n), result.value, result.origin),)
                if n in self.sums:
                    body += (ir.AddUp(n, self.buffer(n), lanes),)
            else:
                body += (result,)
        return replace(strip, body=body, sums=() if lanes else tuple(self.sums))

    def newest(self, rows: list[ir.Row]) -> list[ir.Row]:
        """Of each operand that is read the row that is new to the cache; a sink where it is written too."""
        found: dict[str, tuple[int, int]] = {}
        written = {row.array for row in rows if row.sink}
        for row in rows:
            if not row.sink and self.kernel.array[row.array].kind == "field":
                found[row.array] = max(found.get(row.array, row.offset), row.offset)
        return [ir.Row(array, offset, array in written) for array, offset in found.items()]

    def fetch(self, rows: list[ir.Row], ahead: int, length: int) -> ir.Body:
        """Fetch what the pieces after the next will read of some rows of operands."""
        if not rows:
            return ()
        items = {ITEMSIZE[self.kernel.array[row.array].dtype] for row in rows}
        return (ir.Fetch(tuple(rows), ahead // min(items), length, 64 // max(items)),)


def _in_rows(nest: ir.Nest) -> ir.Body:
    """What is done in rows, without what is done once for a band of them."""
    return tuple(s for part in nest.body for s in (part.body if isinstance(part, ir.Bands) else (part,)))


def _over_a_piece(statement: ir.Statement) -> ir.Body:
    return (replace(statement, span="piece") if isinstance(statement, (ir.Strip, ir.Lanes)) else statement,)
