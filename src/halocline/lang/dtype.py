"""The precision in which a value is computed."""

from __future__ import annotations

from halocline.lang.expression import SELECTIONS, Expr, walk

ITEMSIZE = {"float64": 8, "float32": 4}  # bytes


def dtype_of(root: Expr) -> str | None:
    """The precision of a value: that of the fields in it. None for numbers, scalars and coordinates, and for
    stages of these, wherever they are kept: computed in float64, they adapt to what they meet. So do random
    numbers and entries of tables, whatever they are chosen by."""

    return _known(root, {})


def _known(root: Expr, known: dict[Expr, str | None]) -> str | None:
    for current in walk((root,)):
        if current not in known:
            known[current] = _of_node(current, known)
    return known[root]


def _of_node(current: Expr, known: dict[Expr, str | None]) -> str | None:
    if current.op == "read":
        return str(current.attribute[0].dtype)
    if current.op in ("random", "lookup"):
        return None
    if current.op == "cast":
        return str(current.attribute)
    if current.op == "stage":
        return _known(current.attribute[0].definition, known)
    chosen = [known[arg] for arg in current.args[current.op in SELECTIONS :]]
    return max((d for d in chosen if d is not None), default=None)  # "float64" > "float32"


def kept_dtype(root: Expr) -> str:
    """The precision in which a value is computed and kept before it meets others."""
    return dtype_of(root) or "float64"
