"""The precisions there are."""

from __future__ import annotations

ITEMSIZE = {"float64": 8, "float32": 4}  # bytes
