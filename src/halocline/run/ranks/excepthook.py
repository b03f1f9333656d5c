"""What happens to an exception that nobody catches. Imports nothing: it comes with `import halocline`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

_before: Any = None  # Python's hook, or whose it was at the first install
_ends: Callable[[BaseException], int | None] | None = None


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    status = None if hasattr(sys, "ps1") or _ends is None else _ends(error)
    if status is None:
        _before(kind, error, trace)
    else:
        raise SystemExit(status)


def install(ends: Callable[[BaseException], int | None]) -> None:
    """Let an exception that nobody catches go through `ends`, which reports it and returns the exit status,
    or returns None where it is Python's as before; at a prompt all are."""
    global _before, _ends
    _before, _ends = sys.excepthook, ends
    sys.excepthook = _hook


def install_again() -> None:
    """Where a library has put its own hook in the place since."""
    if _ends is not None:
        sys.excepthook = _hook
