"""Hook for uncaught exceptions.

This module imports no other module of Halocline, since `import halocline` loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

_before: Any = None  # hook that was active before `install`
_ends: Callable[[BaseException], int | None] | None = None


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    status = None if hasattr(sys, "ps1") or _ends is None else _ends(error)
    if status is None:
        _before(kind, error, trace)
    else:
        raise SystemExit(status)


def install(ends: Callable[[BaseException], int | None]) -> None:
    """Pass uncaught exceptions to `ends`, except at an interactive prompt.

    The function `ends` reports an exception and returns the exit status. If it returns None, the previous
    hook reports the exception.
    """
    global _before, _ends
    _before, _ends = sys.excepthook, ends
    sys.excepthook = _hook


def install_again() -> None:
    """Restore the hook after another library has replaced it."""
    if _ends is not None:
        sys.excepthook = _hook
