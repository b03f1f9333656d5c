"""Whether an operator is linear, as far as its formula shows."""

from __future__ import annotations

from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import SELECTIONS, Expr, as_expr, text, walk
from halocline.lang.program import Stage

CONSTANT, LINEAR, EITHER = "constant", "linear", "either"  # in the unknown; 0 and sums may be either

_SUMS = ("add", "sub", "sum2")


def check_linear(result: Any, unknown: Any, name: str) -> Expr:
    """What an operator made of `unknown`, a field or a stage; `name` is what the user calls it.

    Raises
    ------
    InputError
        It is not a linear expression of `unknown`: a product or function of it, a sum with something that
        does not depend on it, or nothing of it at all.
    """
    expression = as_expr(result)
    if _kind(expression, unknown, name, {}) == CONSTANT or not expression.varies:
        raise InputError(
            f"the operator gives {text(expression)}, which does not depend on the unknown {name!r}; expected "
            "a linear expression of its argument"
        )
    return expression


def _kind(root: Expr, unknown: Any, name: str, kinds: dict[Expr, str]) -> str:
    for current in walk([root]):
        if current not in kinds:
            kinds[current] = _one(current, unknown, name, kinds)
    return kinds[root]


def _one(current: Expr, unknown: Any, name: str, kinds: dict[Expr, str]) -> str:
    if current.op in ("scalar", "reduce") or (current.op == "const" and current.attribute == 0):
        return EITHER  # a scalar may be a sum over the unknown
    if current.op in ("read", "stage"):
        thing = current.attribute[0]
        if thing is unknown:
            return LINEAR
        if isinstance(thing, Stage):
            return _kind(thing.definition, unknown, name, kinds)
        return EITHER if thing.grid.is_own(thing) else CONSTANT  # perhaps a stage that is kept in an array
    args = [kinds[arg] for arg in current.args]
    if LINEAR not in args:
        if current.op in ("random", "lookup"):
            return CONSTANT  # not zero where its arguments are
        return EITHER if EITHER in args else CONSTANT
    others = args[1:] if current.op in SELECTIONS else args
    fine = {
        "neg": True,
        "cast": True,
        "mul": args.count(LINEAR) == 1,
        "div": args[-1] != LINEAR,
        **dict.fromkeys(SELECTIONS, args[0] != LINEAR and CONSTANT not in others),
        **dict.fromkeys(_SUMS, CONSTANT not in args),
    }
    if fine.get(current.op, False):
        return LINEAR
    why = "adds what does not depend on it" if current.op in _SUMS else "is not a multiple of it"
    raise InputError(
        f"the operator is not linear in the unknown {name!r}: {text(current)} {why}; move constants to the "
        "right-hand side, and solve nonlinear equations by steps that are linear"
    )
