"""Statements on other values or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, Table, Value, below


def compacted(kernel: Kernel) -> Kernel:
    """A kernel with the values that it uses, and no others."""
    made: dict[int, int] = {}
    values: list[Value] = []
    for number in sorted(kernel.below(ir.roots(kernel.body))):
        value = kernel.values[number]
        made[number] = len(values)
        values.append(replace(value, args=tuple(made[arg] for arg in value.args)))
    return replace(kernel, values=tuple(values), body=renumbered(kernel.body, made))


def substituted(table: Table, wanted: Iterable[int], instead: Mapping[int, int]) -> list[int]:
    """Values of a table in which some stand for others."""
    heads, made = list(wanted), dict(instead)
    for number in below(table.values, heads, made):
        value = table.values[number]
        made[number] = table.copy(value, tuple(made[arg] for arg in value.args))
    return [made[number] for number in heads]


def renumbered(body: ir.Body, numbers: Mapping[int, int]) -> ir.Body:
    """A body whose statements use other values; before `place`, since those that have been computed are not
    computed again.

    Raises
    ------
    ValueError
        For a `Let` or a `Branch`.
    """

    def change(statement: ir.Statement) -> ir.Body:
        if isinstance(statement, (ir.Let, ir.Branch)):
            raise ValueError(f"values that are computed at a place have other numbers: {statement}")
        if type(statement) not in ir.USES:
            return (statement,)
        name = ir.USES[type(statement)]
        old = getattr(statement, name)
        new = tuple(numbers[n] for n in old) if isinstance(old, tuple) else numbers[old]
        return (replace(statement, **{name: new}),)

    return ir.rewritten(body, change)
