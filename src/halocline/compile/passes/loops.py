"""Loops over the rows of a nest, and what is computed outside of the loop along a row.

The pass `whole` lengthens rows of stages to whole vectors: a few elements beyond their end are computed too,
and nobody reads them. A vector loop would otherwise finish with a part of a vector and single elements: in
rows of 64 cells and a few more that is a tenth of the time, and more than half of the code. Rows of scratch
memory end with a cache line, and fields have lines to spare after their last row, so that there is memory to
read and to write.

The pass `place` decides where along a row each value is computed.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Kernel, padded


def loops(kernel: Kernel) -> Kernel:
    """Every nest as loops over its rows, with a vector loop along each."""
    return replace(kernel, body=ir.replaced(kernel.body, ir.Nest, lambda nest: (_rows(kernel, nest),)))


def _rows(kernel: Kernel, nest: ir.Nest) -> ir.Nest:
    """What varies along the first axes only is computed as far out as can be."""
    wanted = ir.roots(nest.body)
    order = kernel.below(wanted)
    inner = (*_begun(kernel, nest, wanted), *_wraps(kernel, wanted), ir.Strip(nest.body))

    def outside(level: int) -> ir.Body:
        here = tuple(n for n in order if kernel.values[n].depth == level)
        return (ir.Let(here),) if here else ()

    assert POINT == 3  # two loops and the row
    body = (*outside(0), ir.Loop(0, (*outside(1), ir.Loop(1, (*outside(2), *inner)))))
    return replace(nest, body=body)


def _begun(kernel: Kernel, nest: ir.Nest, wanted: list[int]) -> ir.Body:
    """Where the rows begin that are read, then those that are written."""
    read = dict.fromkeys((a, padded(o, kernel.ndim)[:2]) for a, o in kernel.loads(wanted))
    written = dict.fromkeys(s.array for s in nest.body if isinstance(s, ir.Store))
    rows = [ir.Row(array, (offset[0], offset[1])) for array, offset in read]
    return (*rows, *(ir.Row(array, (0, 0), sink=True) for array in written))


def _wraps(kernel: Kernel, wanted: list[int]) -> ir.Body:
    """Fill the ends of the row in the halo from its other end, for fields that are read there."""
    steps: dict[str, list[int]] = {}
    for array, offset in kernel.loads(wanted):
        if array in kernel.wraps and offset[-1]:
            steps.setdefault(array, []).append(offset[-1])
    return tuple(ir.Wrap(array, max(0, -min(found)), max(0, *found)) for array, found in steps.items())


# In nests with these operations, rows end with the patch. A longer row also computes with uninitialised
# memory, which these operations may take for an index of a table. A later pass makes "shifted".
BOUNDED = {"lookup", "shifted", *ELEMENTARY}


def whole(kernel: Kernel) -> Kernel:
    """Mark the nests whose rows may be lengthened."""
    body = (replace(s, whole=True) if isinstance(s, ir.Nest) and _may(kernel, s) else s for s in kernel.body)
    return replace(kernel, body=tuple(body))


def _may(kernel: Kernel, nest: ir.Nest) -> bool:
    stored = _stored(nest)
    if len(stored) < len(nest.body) or any(kernel.array[name].kind != "scratch" for name in stored):
        return False
    values = [kernel.values[n] for n in kernel.below(ir.roots(nest.body))]
    read = {kernel.array[v.attribute[0]] for v in values if v.op == "load"}
    # beyond the patch another thread may be at work on a field
    written = {array for each in kernel.body if isinstance(each, ir.Nest) for array in _stored(each)}
    if any(a.kind not in ("field", "scratch") or (a.kind == "field" and a.name in written) for a in read):
        return False
    precisions = {a.dtype for a in read} | {kernel.array[name].dtype for name in stored}
    precisions |= {v.dtype for v in values if v.args}
    return len(precisions) == 1 and BOUNDED.isdisjoint(v.op for v in values)


def _stored(nest: ir.Nest) -> list[str]:
    return [s.array for s in nest.body if isinstance(s, ir.Store)]


def place(kernel: Kernel) -> Kernel:
    """Every loop along a row computes what it needs and nothing outside of it has: first what earlier loops
    have kept, then all other values, each after those that it is made of."""
    return replace(kernel, body=_placed(kernel, kernel.body, frozenset()))


def _placed(kernel: Kernel, body: ir.Body, known: frozenset[int]) -> ir.Body:
    made: ir.Body = ()
    for statement in body:
        if isinstance(statement, ir.Let):
            known |= frozenset(statement.values)
            made += (statement,)
        elif isinstance(statement, ir.Strip):
            made += (
                replace(statement, body=(*_lets(kernel, ir.roots(statement.body), known), *statement.body)),
            )
        elif isinstance(statement, ir.Far):
            made += (replace(statement, body=_lets(kernel, statement.angles, known)),)
        elif isinstance(statement, ir.Lanes):
            ahead = _lets(kernel, statement.columns, known)
            inside = (*_lets(kernel, ir.roots(statement.body), known), *statement.body)
            made += (replace(statement, ahead=ahead, body=inside),)
        else:
            inner = {name: _placed(kernel, part, known) for name, part in ir.bodies(statement)}
            made += (replace(statement, **inner) if inner else statement,)
    return made


def _lets(
    kernel: Kernel, wanted: list[int] | tuple[int, ...], known: frozenset[int]
) -> tuple[ir.Statement, ...]:
    order = kernel.below(wanted, known)
    kept = [n for n in order if _left(kernel, n)]
    kept.sort(key=lambda n: int(kernel.values[n].attribute[0].partition("kept")[2]))
    found = tuple(kept), tuple(n for n in order if not _left(kernel, n))
    return tuple(ir.Let(numbers) for numbers in found if numbers)


def _left(kernel: Kernel, number: int) -> bool:
    """Return True for a value that is loaded from an array which an earlier loop has kept."""
    value = kernel.values[number]
    return value.op == "load" and kernel.array[value.attribute[0]].kind == "kept"
