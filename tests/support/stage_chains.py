"""Chains of stages."""

from __future__ import annotations

from typing import Any

import halocline as hc


def chain(u: Any, length: int) -> Any:
    """Return the last of a chain of stages, each of which reads the previous one."""
    value = u
    for n in range(length):
        value = hc.stage(value[1] * value[-1] + 0.1 * value, f"s{n}", storage="patch")
    return value
