"""Values with many operands, for tests of the order of operations."""

from __future__ import annotations

import halocline as hc
from halocline.lang.expression import Expr
from kernels_of_devices import MANY


def large(field: hc.Field | Expr) -> Expr:
    """Return a value whose computation needs many other values at one time."""
    parts = [hc.sqrt(field * field + float(n)) for n in range(MANY)]
    one: Expr = parts[0] * 2.0
    other: Expr = parts[0] * 3.0
    for part in parts[1:]:
        one, other = one / part, other / part
    return one - other
