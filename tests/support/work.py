"""Amount of Python work, as a count of executed lines: unlike seconds, it is the same on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(work: Callable[[], Any]) -> int:
    """Return the number of lines of Python that a call executes, loops and called functions included."""
    count = 0

    def count_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
