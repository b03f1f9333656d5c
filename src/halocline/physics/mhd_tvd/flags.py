"""Flags of cells, 1 or 0, as stages, so that neighbouring faces and cells can read them."""

from __future__ import annotations

from halocline.lang.expression import Expr
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.operators import shift
from halocline.lang.program import stage


def flag_stage(condition: Expr, name: str) -> Expr:
    """Return a stage that is 1 where the condition holds, else 0."""
    flag: Expr = stage(where(condition, 1.0, 0.0), name, storage="patch").expr
    return flag


def beside(flag: Expr, axis: int) -> Expr:
    """Return the condition that at least one of the two cells at a face has the flag."""
    sides: Expr = symmetric_sum(shift(flag, axis, -1), flag)
    return sides > 0.0


def around(flag: Expr, axes: int) -> Expr:
    """Return the condition that a cell, or a cell that shares a face with it, has the flag."""
    sums = [symmetric_sum(shift(flag, a, -1), shift(flag, a)) for a in range(axes)]
    number: Expr = symmetric_sum(flag, *sums)
    return number > 0.0
