"""The precisions there are."""

from __future__ import annotations

from typing import Any

ITEMSIZE = {"float64": 8, "float32": 4}  # bytes


def dtype_name(given: Any) -> str:
    """The name of a precision that is given by name or as a type of NumPy's."""
    return getattr(given, "__name__", None) or str(given)
