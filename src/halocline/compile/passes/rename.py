"""Statements on other values or arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halocline.compile.ir.kernel import Kernel, Value
from halocline.compile.ir.statements import Body, Mark, Reduce, Stage, Statement, Store, rewritten, roots


def compacted(kernel: Kernel) -> Kernel:
    """A kernel with the values that it uses, and no others."""
    made: dict[int, int] = {}
    values: list[Value] = []
    for number in sorted(kernel.below(roots(kernel.body))):
        value = kernel.values[number]
        made[number] = len(values)
        values.append(replace(value, args=tuple(made[arg] for arg in value.args)))
    return replace(kernel, values=tuple(values), body=renumbered(kernel.body, made))


def renumbered(body: Body, numbers: Mapping[int, int]) -> Body:
    """A body whose results are other values."""

    def change(statement: Statement) -> Body:
        if isinstance(statement, (Store, Reduce, Stage)):
            return (replace(statement, value=numbers[statement.value]),)
        if isinstance(statement, Mark):
            return (replace(statement, condition=numbers[statement.condition]),)
        return (statement,)

    return rewritten(body, change)
