"""The precision in which a value is computed."""

from __future__ import annotations

from halocline.lang.expression import SELECTIONS, Expr, fold

ITEMSIZE = {"float64": 8, "float32": 4}  # bytes


def dtype_of(root: Expr, memo: dict[int, str | None]) -> str | None:
    """The precision of a value: that of the fields in it. None for numbers, scalars and coordinates, and for
    stages of these, wherever they are kept: computed in float64, they adapt to what they meet. So do random
    numbers and entries of tables, whatever they are chosen by."""

    def value(current: Expr, inner: list[str | None]) -> str | None:
        if current.op == "read":
            return str(current.attribute[0].dtype)
        if current.op in ("random", "lookup"):
            return None
        if current.op == "cast":
            return str(current.attribute)
        if current.op == "stage":
            return dtype_of(current.attribute[0].definition, memo)
        chosen = inner[1:] if current.op in SELECTIONS else inner
        return max((d for d in chosen if d is not None), default=None)  # "float64" > "float32"

    return fold(root, memo, value)


def kept_dtype(root: Expr, memo: dict[int, str | None]) -> str:
    """The precision in which a value is computed and kept before it meets others."""
    return dtype_of(root, memo) or "float64"
