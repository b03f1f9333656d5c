"""Statements on other values or arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halocline.compile.ir.statements import Body, Mark, Reduce, Stage, Statement, Store, rewritten


def renumbered(body: Body, numbers: Mapping[int, int]) -> Body:
    """A body whose results are other values."""

    def change(statement: Statement) -> Body:
        if isinstance(statement, (Store, Reduce, Stage)):
            return (replace(statement, value=numbers[statement.value]),)
        if isinstance(statement, Mark):
            return (replace(statement, condition=numbers[statement.condition]),)
        return (statement,)

    return rewritten(body, change)
