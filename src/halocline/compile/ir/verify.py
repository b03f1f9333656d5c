"""Verification of kernels against the rules of the intermediate representation.

With HALOCLINE_CHECK=1, as in all tests, kernels are verified after every pass.

Values: arguments precede their uses, a condition is used exactly where a condition is expected, and the depth
of a value follows from its arguments. Arrays: each has a unique name, and loads and stores refer to existing
arrays. A stage is stored before it is read, with at least the extent of the reads. Only a loop nest that
computes stages may round its rows up to whole vectors. The rows of its scratch memory then have the same
length. Statements: each is nested in a statement of the kind that it requires. After the pass `place`, every
value that a statement uses is computed once, in the statement or around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NoReturn

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Kernel, Value
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.expression import COMPARISONS, SELECTIONS

# operations by number of arguments
ARGUMENTS = {
    0: {"const", "scalar", "index", "load", "shifted", "invariant"},
    1: {"neg", "abs", "sign", "sqrt", "exp", "log", "sin", "cos", "not", "cast", "lookup"},
    2: {
        "add", "sub", "mul", "div", "pow", "min", "max", "sum2", "and", "or", *COMPARISONS,
    },
    3: {"fma", "where", "branch", "random"},
}  # fmt: skip
_COUNT = {op: count for count, ops in ARGUMENTS.items() for op in ops}

_LOGICAL = {"and", "or", "not"}
# depths of operations without arguments
_LEAF = {"const": 0, "scalar": 0, "invariant": 0, "load": POINT, "shifted": POINT}

KINDS = {
    "field",
    "scratch",
    "band",
    "intermediate",
    "result",
    "queue",
    "field_tile",
    "shared",
    "stage_tile",
    "invariants",
}

# statements that must enclose each statement of these kinds, directly or indirectly
_WITHIN: dict[type[ir.Statement], tuple[str, ...]] = {
    **dict.fromkeys((ir.Axis, ir.Branch, ir.Bands, ir.Buffer, ir.CellAddress, ir.DeclareQueue), ("Nest",)),
    **dict.fromkeys((ir.Row, ir.Wrap, ir.Strip, ir.Lanes, ir.CheckAngles, ir.IfSelected), ("Nest", "stream")),
    **dict.fromkeys((ir.OpenSum, ir.CloseSum, ir.StreamingStore), ("Nest", "stream")),
    **dict.fromkeys((ir.AddToSum, ir.MarkSelection), ("Strip",)),
    **dict.fromkeys((ir.LoadQueueEnd, ir.ShiftQueue, ir.LoadTiles), ("Nest", "stream")),
    ir.FillTiles: ("Nest", "block"),
    **dict.fromkeys((ir.Cell, ir.StoreCells), ("Nest",)),
}


# statements that contain a barrier: all threads of a block must reach them
_FOR_ALL_THREADS = (ir.FillTiles, ir.LoadTiles, ir.Barrier, ir.ReduceBlock)

# for each part of a row: a statement over this part must lie in one of these statements
_HOLDERS = {"piece": ("Pieces", "Lines"), "line": ("Lines",), "block": ("RowBlocks",)}


class InvalidKernel(AssertionError):
    """Violation of a rule of the intermediate representation, after an incorrect pass."""


def verify(kernel: Kernel) -> None:
    """Check a kernel against the rules.

    Raises
    ------
    InvalidKernel
        The kernel violates a rule; the message names the rule and the place.
    """

    def fail(message: str) -> NoReturn:
        raise InvalidKernel(f"kernel {kernel.comment!r}: {message}")

    statements = list(ir.flat(kernel.body))
    _values(kernel, statements, fail)
    _arrays(kernel, statements, fail)
    _places(kernel, fail)
    _stages(kernel, statements, fail)
    _kernels(kernel, fail)
    _reductions(statements, fail)
    _invariants(kernel, statements, fail)
    if any(isinstance(s, (ir.Let, ir.Strip)) for s in statements) and _is_placed(kernel, statements):
        _scopes(kernel, kernel.body, set(), fail)


Fail = Callable[[str], NoReturn]


def _values(kernel: Kernel, statements: Sequence[ir.Statement], fail: Fail) -> None:
    values = kernel.values
    for number in kernel.below(ir.used_values(statements)):
        defect = _defect(kernel, number)
        if defect:
            fail(f"value {number}, {values[number].op}: {defect}")
    for statement in statements:
        if isinstance(statement, (ir.Store, ir.Reduce, ir.Stage)) and values[statement.value].condition:
            fail(
                f"{statement}: value {statement.value} is a condition; expected a number, made by a selection"
            )


def _defect(kernel: Kernel, number: int) -> str:
    """Return the defect of a value; empty if the value is valid."""
    values, value = kernel.values, kernel.values[number]
    if value.op not in _COUNT:
        return "unknown operation; add it to ARGUMENTS, or correct the pass that created it"
    if len(value.args) != _COUNT[value.op]:
        return f"{len(value.args)} arguments, expected {_COUNT[value.op]}"
    if value.dtype not in ITEMSIZE:
        return f"unknown precision {value.dtype!r}; expected one of {', '.join(ITEMSIZE)}"
    inner = 0
    for n, arg in enumerate(value.args):
        if not 0 <= arg < number:
            return f"it takes value {arg}; expected one with a smaller number"
        operand = values[arg]
        inner = max(inner, operand.depth)
        logical = value.op in _LOGICAL or (n == 0 and value.op in SELECTIONS)
        if operand.condition != logical and value.op not in ("eq", "ne"):
            is_one, expected = ("a number", "a condition") if logical else ("a condition", "a number")
            return f"argument {n}, value {arg}, is {is_one}; expected {expected}"
    if value.op == "index":
        inner = 1 + value.attribute[0] + 3 - kernel.ndim
    if value.depth != _LEAF.get(value.op, inner):
        return f"varies along {value.depth} axes, expected {_LEAF.get(value.op, inner)}"
    return _wrong_load(kernel, value) if value.op == "load" else ""


def _wrong_load(kernel: Kernel, value: Value) -> str:
    """Return the defect of a load from an array; empty if the load is valid."""
    name, offset = value.attribute
    array = kernel.array.get(name)
    if array is None:
        return f"there is no array {name!r}; the kernel has {', '.join(kernel.array) or 'none'}"
    axes = 0 if array.kind in ("band", "intermediate") else kernel.ndim
    if len(offset) != axes:
        return f"offset {offset} into array {name!r}; expected {axes} numbers, one per axis"
    if array.dtype != value.dtype:
        return f"it is {value.dtype}, but array {name!r} is {array.dtype}; cast the loaded value"
    return ""


def _arrays(kernel: Kernel, statements: Sequence[ir.Statement], fail: Fail) -> None:
    if len(kernel.array) != len(kernel.arrays):
        names = ", ".join(array.name for array in kernel.arrays)
        fail(f"two arrays have the same name: {names}; give each array a unique name")
    for array in kernel.arrays:
        text = f"array {array.name!r}"
        if array.kind not in KINDS:
            fail(f"{text}: unknown kind {array.kind!r}; expected one of {', '.join(sorted(KINDS))}")
        if array.dtype not in ITEMSIZE:
            fail(f"{text}: unknown precision {array.dtype!r}; expected one of {', '.join(ITEMSIZE)}")
        if array.source and array.source not in kernel.array:
            fail(
                f"{text}: it holds values of array {array.source!r}, which the kernel does not have; "
                "add this array"
            )
    for statement in statements:
        name = getattr(statement, "array", "")
        if name and name not in kernel.array:
            fail(f"{statement}: there is no array {name!r}; add it to the kernel's arrays")


def _places(kernel: Kernel, fail: Fail) -> None:
    def visit(body: ir.Body, around: tuple[str, ...]) -> None:
        for statement in body:
            kind = type(statement).__name__
            if isinstance(statement, ir.Axis):
                _axis(statement, around, fail)
                kind = statement.kind
            if isinstance(statement, _FOR_ALL_THREADS) and "thread" in around:
                fail(
                    f"{type(statement).__name__} within the cells of a thread; other threads do not reach it"
                )
            missing = [kind for kind in _WITHIN.get(type(statement), ()) if kind not in around]
            if missing:
                fail(f"{type(statement).__name__} outside of {missing[0]}")
            if isinstance(statement, ir.Nest) and "Nest" in around:
                fail("a nest in a nest")
            span = getattr(statement, "span", "row")
            holder = _HOLDERS.get(span, ("Nest",))
            if span != "row" and not {*holder} & {*around} and not isinstance(statement, ir.Stage):
                fail(f"{type(statement).__name__} over a {span} outside of {' and '.join(holder)}")
            for name, inner in ir.bodies(statement):
                if inner:
                    # the fill of a band runs along a row outside of any loop
                    row = ("stream",) if isinstance(statement, ir.Bands) and name == "fill" else ()
                    axes = [f"{kind} {axis}" for axis in getattr(statement, "axes", ())]
                    visit(inner, (*around, kind, *axes, *row))

    visit(kernel.body, ())


def _axis(loop: ir.Axis, around: Sequence[str], fail: Fail) -> None:
    """Check a loop over an axis: its kind, and that threads divide the cells of a thread block once."""
    if loop.kind not in ("block", "thread", "stream") or loop.step < (loop.kind != "block"):
        fail(f"loop over axes {loop.axes} of kind {loop.kind!r} with step {loop.step}")
    if not loop.axes or not {*loop.axes} <= {0, 1, 2} or (len(loop.axes) > 1 and loop.kind != "thread"):
        fail(f"loop of kind {loop.kind!r} over axes {loop.axes}; expected 0, 1 or 2, or several for threads")
    for axis in loop.axes:
        if f"{loop.kind} {axis}" in around or (loop.kind != "block" and f"thread {axis}" in around):
            fail(f"two loops over axis {axis}, the inner one of kind {loop.kind!r}")
        all_cells = len(loop.axes) == 3 and "block" not in around
        if loop.kind == "thread" and f"block {axis}" not in around and not all_cells:
            fail(f"threads divide axis {axis}, but thread blocks do not")


def _stages(kernel: Kernel, statements: Sequence[ir.Statement], fail: Fail) -> None:
    """Check that each stage is stored once, before it is read, with at least the extent of the reads.

    Another kernel of the sweep may store the stage. In this case, this kernel only contains its allocation.
    """
    staged = {array.name for array in kernel.arrays if array.kind in ("scratch", "stage_tile")}
    writers: dict[str, ir.Nest | ir.Allocate | ir.Stage] = {}
    rings = {s.array: s.planes for s in kernel.body if isinstance(s, ir.Allocate)}
    stored = {s.array for s in statements if isinstance(s, (ir.Store, ir.Stage))}
    for statement in _unrolled(kernel.body):
        if isinstance(statement, ir.Allocate) and statement.array not in stored:
            writers[statement.array] = statement
        if not isinstance(statement, (ir.Nest, ir.Stage)):
            continue
        within = list(ir.flat((statement,)))
        for name, offset in kernel.loads(ir.used_values(within)) if staged else ():
            if name in staged and name not in writers:
                fail(f"stage {name!r} is read before it is stored")
            if name in staged and isinstance(statement, ir.Nest):
                _within(writers[name], statement, name, offset, fail)
                _in_ring(writers[name], statement, name, offset, rings.get(name, 0), fail)
        candidates = [statement] if isinstance(statement, ir.Stage) else within
        if isinstance(statement, ir.Nest) and statement.whole_vectors:
            _fits(kernel, statement, fail)
        for name in {s.array for s in candidates if isinstance(s, (ir.Store, ir.Stage))} & staged:
            if name in writers:
                fail(f"stage {name!r} is stored twice")
            writers[name] = statement


def _fits(kernel: Kernel, nest: ir.Nest, fail: Fail) -> None:
    """Check that rows of whole vectors belong to stages, and that scratch memory has the same rows."""
    allocations = {s.array: s for s in kernel.body if isinstance(s, ir.Allocate)}
    for name in (s.array for s in ir.flat(nest.body) if isinstance(s, ir.Store)):
        if kernel.array[name].kind == "field":
            fail(f"field {name!r} is written in rows of whole vectors, which extend beyond the patch")
        memory = allocations.get(name)
        if memory is not None and (memory.extent[-1], memory.top[-1]) != (
            nest.extent[-1],
            nest.top[-1],
        ):
            fail(f"stage {name!r} has rows of whole vectors, but scratch memory with other rows")


def _unrolled(body: ir.Body) -> Iterator[ir.Statement]:
    """Yield the statements of a body, with the nests of `Planes` in their order."""
    for statement in body:
        yield from statement.body if isinstance(statement, ir.Planes) else (statement,)


def _in_ring(
    writer: ir.Statement, reader: ir.Nest, name: str, offset: ir.Offset, ring: int, fail: Fail
) -> None:
    """Check that a plane of a ring is read only after it is stored and before it is overwritten."""
    if not isinstance(writer, ir.Nest) or writer.planes_ahead is None:
        return
    if reader.planes_ahead is None:
        fail(f"stage {name!r} is stored plane by plane, but the nest that reads it computes all planes")
    behind = writer.planes_ahead - reader.planes_ahead - offset[0]
    if behind < 0 or (ring and behind >= ring):
        fail(f"stage {name!r}, {writer.planes_ahead} planes ahead in a ring of {ring}, is read at {offset}")


def _within(writer: ir.Statement, reader: ir.Nest, name: str, offset: ir.Offset, fail: Fail) -> None:
    assert isinstance(writer, (ir.Nest, ir.Allocate))
    for axis, o in enumerate(offset):
        (lower, upper), (below, above) = reader.extent[axis], writer.extent[axis]
        top = reader.top[axis] + upper + o - writer.top[axis]
        if below < lower - o or above < max(upper + o, top):
            fail(f"stage {name!r} is read at {offset}, beyond {writer.extent} with top {writer.top}")


def _kernels(kernel: Kernel, fail: Fail) -> None:
    """Check that the nests of a device kernel do not depend on each other."""
    nests = [s for s in kernel.body if isinstance(s, ir.Nest) and s.kernel is not None]
    read = [{name for name, _ in kernel.loads(ir.used_values(ir.flat((nest,))))} for nest in nests]
    written = [{s.array for s in ir.flat((nest,)) if isinstance(s, ir.STORES)} for nest in nests]
    for n, m in permutations(range(len(nests)), 2):
        shared = written[n] & (read[m] | written[m])
        if nests[n].kernel == nests[m].kernel and shared:
            fail(f"two nests of device kernel {nests[n].kernel} depend on each other by {sorted(shared)}")


def _reductions(statements: Sequence[ir.Statement], fail: Fail) -> None:
    slots = [s.slot for s in statements if isinstance(s, ir.Reduce)]
    repeated = any(isinstance(s, (ir.CheckAngles, ir.Cell)) for s in statements)
    if len(slots) != len(set(slots)) and not repeated:
        fail(f"two reductions have the same number, in {slots}")


def _invariants(kernel: Kernel, statements: Sequence[ir.Statement], fail: Fail) -> None:
    for statement in statements:
        for n in statement.values if isinstance(statement, ir.ComputeInvariants) else ():
            if kernel.values[n].depth or kernel.values[n].condition:
                fail(f"value {n} of {statement} is a condition, or varies from cell to cell")


def _is_placed(kernel: Kernel, statements: Sequence[ir.Statement]) -> bool:
    """Return True if every loop along a row has the `Let` statements of its values."""
    bodies = [s.body for s in statements if isinstance(s, ir.Strip)]
    unplaced = [body for body in bodies if not any(isinstance(s, ir.Let) for s in body)]
    return not any(kernel.values[n].depth == POINT for body in unplaced for n in ir.roots(body))


def _scopes(kernel: Kernel, body: ir.Body, around: set[int], fail: Fail) -> None:
    known = {*around}
    stored: set[str] = set()
    for statement in body:
        if isinstance(statement, ir.STORES):
            stored.add(statement.array)
        if isinstance(statement, ir.Let):
            for number in statement.values:
                value = kernel.values[number]
                if value.op == "load" and value.attribute[0] in stored:
                    fail(f"value {number} loads {value.attribute[0]!r} after it was stored; load it before")
                missing = [arg for arg in kernel.values[number].args if arg not in known]
                if missing:
                    fail(f"value {number} is computed before value {missing[0]}, its argument")
                if number in known:
                    fail(f"value {number} is computed again")
                known.add(number)
        elif isinstance(statement, (*ir.STORES, ir.Reduce)) and not known.issuperset(ir.roots((statement,))):
            fail(f"{statement} before the value is computed")
        elif isinstance(statement, (ir.MarkSelection, ir.Branch)) and statement.condition not in known:
            fail(f"{statement} before its condition is computed")
        for _, inner in ir.bodies(statement):
            _scopes(kernel, inner, known, fail)
        if isinstance(statement, ir.Branch):
            known |= set(statement.values)
