"""How much Python does, counted: on a busy machine it is the same, which seconds are not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(work: Callable[[], Any]) -> int:
    """How many lines of Python this executes, in loops and in all that it calls."""
    count = 0

    def seen(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
