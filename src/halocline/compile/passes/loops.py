"""Loops over the rows of a nest, and the values that are computed outside of the loop along a row.

The pass `whole_vectors` extends rows of stages to whole vectors. The loops then also compute a few elements
beyond the end of a row, but no statement reads these elements. Without this pass, a vector loop ends with a
partial vector and single elements. In rows of slightly more than 64 cells, these last elements take a tenth
of the time and more than half of the code. Rows of scratch memory consist of whole cache lines, and fields
have spare lines after their last row. The extended rows therefore read and write valid memory.

The pass `place` selects the loop along a row in which each value is computed.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Kernel, padded


def loops(kernel: Kernel) -> Kernel:
    """Convert every nest to loops over its rows, with a vector loop along each row."""
    return replace(kernel, body=ir.replaced(kernel.body, ir.Nest, lambda nest: (_rows(kernel, nest),)))


def _rows(kernel: Kernel, nest: ir.Nest) -> ir.Nest:
    """Return a nest with loops; values that vary only along outer axes are computed in the outer loops."""
    results = ir.roots(nest.body)
    order = kernel.below(results)
    inner = (*_row_pointers(kernel, nest, results), *_wraps(kernel, results), ir.Strip(nest.body))

    def outside(level: int) -> ir.Body:
        level_values = tuple(n for n in order if kernel.values[n].depth == level)
        return (ir.Let(level_values),) if level_values else ()

    assert POINT == 3  # two loops and the loop along the row
    rows = ir.Axis((1,), "stream", 1, (*outside(2), *inner))
    body = (*outside(0), ir.Axis((0,), "stream", 1, (*outside(1), rows)))
    return replace(nest, body=body)


def _row_pointers(kernel: Kernel, nest: ir.Nest, results: list[int]) -> ir.Body:
    """Return the pointers to the rows that are read, then to those that are written."""
    read = dict.fromkeys((a, padded(o, kernel.ndim)[:2]) for a, o in kernel.loads(results))
    written = dict.fromkeys(s.array for s in nest.body if isinstance(s, ir.Store))
    rows = [ir.Row(array, (offset[0], offset[1])) for array, offset in read]
    return (*rows, *(ir.Row(array, (0, 0), sink=True) for array in written))


def _wraps(kernel: Kernel, results: list[int]) -> ir.Body:
    """Return the statements that fill the halo of a row from its opposite end, if this halo is read."""
    steps: dict[str, list[int]] = {}
    for array, offset in kernel.loads(results):
        if array in kernel.wraps and offset[-1]:
            steps.setdefault(array, []).append(offset[-1])
    return tuple(
        ir.Wrap(array, max(0, -min(field_steps)), max(0, *field_steps))
        for array, field_steps in steps.items()
    )


# Rows of nests with these operations are not extended. The additional elements would be computed from
# uninitialised memory, which these operations may use as a table index. A later pass creates "shifted".
BOUNDED = {"lookup", "shifted", *ELEMENTARY}


def whole_vectors(kernel: Kernel) -> Kernel:
    """Mark the nests whose rows may be extended to whole vectors."""
    body = (
        replace(s, whole_vectors=True) if isinstance(s, ir.Nest) and _may_extend(kernel, s) else s
        for s in kernel.body
    )
    return replace(kernel, body=tuple(body))


def _may_extend(kernel: Kernel, nest: ir.Nest) -> bool:
    stored = _stored(nest)
    if len(stored) < len(nest.body) or any(kernel.array[name].kind != "scratch" for name in stored):
        return False
    values = [kernel.values[n] for n in kernel.below(ir.roots(nest.body))]
    read = {kernel.array[v.attribute[0]] for v in values if v.op == "load"}
    # no extension, since another thread may write to these fields beyond the patch
    written = {array for s in kernel.body if isinstance(s, ir.Nest) for array in _stored(s)}
    if any(a.kind not in ("field", "scratch") or (a.kind == "field" and a.name in written) for a in read):
        return False
    precisions = {a.dtype for a in read} | {kernel.array[name].dtype for name in stored}
    precisions |= {v.dtype for v in values if v.args}
    return len(precisions) == 1 and BOUNDED.isdisjoint(v.op for v in values)


def _stored(nest: ir.Nest) -> list[str]:
    return [s.array for s in nest.body if isinstance(s, ir.Store)]


def place(kernel: Kernel) -> Kernel:
    """Add a `Let` to every loop along a row, with all values that no outer loop computes.

    Values that earlier loops have stored come first. All other values follow, each after its arguments.
    """
    return replace(kernel, body=_placed(kernel, kernel.body, frozenset()))


def _placed(kernel: Kernel, body: ir.Body, known: frozenset[int]) -> ir.Body:
    result: ir.Body = ()
    for statement in body:
        if isinstance(statement, ir.Let):
            known |= frozenset(statement.values)
            result += (statement,)
        elif isinstance(statement, ir.Strip):
            result += (
                replace(statement, body=(*_lets(kernel, ir.roots(statement.body), known), *statement.body)),
            )
        elif isinstance(statement, ir.CheckAngles):
            result += (replace(statement, body=_lets(kernel, statement.angles, known)),)
        elif isinstance(statement, ir.Lanes):
            next_vector = _lets(kernel, statement.columns, known)
            inside = (*_lets(kernel, ir.roots(statement.body), known), *statement.body)
            result += (replace(statement, next_vector=next_vector, body=inside),)
        else:
            inner = {name: _placed(kernel, part, known) for name, part in ir.bodies(statement)}
            result += (replace(statement, **inner) if inner else statement,)
    return result


def _lets(
    kernel: Kernel, results: list[int] | tuple[int, ...], known: frozenset[int]
) -> tuple[ir.Statement, ...]:
    order = kernel.below(results, known)
    stored = [n for n in order if _is_intermediate(kernel, n)]
    stored.sort(key=lambda n: int(kernel.values[n].attribute[0].partition("intermediate")[2]))
    parts = tuple(stored), tuple(n for n in order if not _is_intermediate(kernel, n))
    return tuple(ir.Let(numbers) for numbers in parts if numbers)


def _is_intermediate(kernel: Kernel, number: int) -> bool:
    """Return True if a value is loaded from an array that an earlier loop has stored."""
    value = kernel.values[number]
    return value.op == "load" and kernel.array[value.attribute[0]].kind == "intermediate"
