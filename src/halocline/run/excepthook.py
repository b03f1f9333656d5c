"""What happens to an exception that nobody catches. Imports nothing: it comes with `import halocline`."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

_before: Any = None  # Python's hook, or whose it was at the first install


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from halocline.errors import HaloclineError
    from halocline.run.mpi import has_ranks, report

    if hasattr(sys, "ps1") or not (isinstance(error, HaloclineError) or has_ranks()):
        _before(kind, error, trace)
    else:
        raise SystemExit(report(error))


def install() -> None:
    """Let an error of ours, and on several ranks any exception, end the process through `mpi.report`: said
    once, with its exit status. Other exceptions, and all at a prompt, are Python's as before."""
    global _before
    if _before is None:
        _before = sys.excepthook
    sys.excepthook = _hook
