"""Where along a row each value is computed."""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel


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
    """Whether a value is loaded from what an earlier loop has kept."""
    value = kernel.values[number]
    return value.op == "load" and kernel.array[value.attribute[0]].kind == "kept"
