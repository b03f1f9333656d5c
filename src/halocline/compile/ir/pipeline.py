"""Passes one after the other; what each leaves is verified, and shown, where that is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial

from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.verify import verify
from halocline.lang.trace import setting

Pass = Callable[[Kernel], Kernel] | partial[Kernel]

# what passes have left: the name of each, and the kernel
Trail = list[tuple[str, Kernel]]

verifies = os.environ.get("HALOCLINE_CHECK") == "1"

_trail: ContextVar[Trail | None] = ContextVar("trail", default=None)


def run(kernel: Kernel, *passes: Pass) -> Kernel:
    """What passes make of a kernel."""
    for each in passes:
        name = each.func.__name__ if isinstance(each, partial) else each.__name__
        made = each(kernel)
        kernel = _recorded(name, kernel) if made is kernel else passed(name, made)
    return kernel


def passed(name: str, kernel: Kernel) -> Kernel:
    """Verify and record what a pass has left."""
    if verifies:
        verify(kernel)
    return _recorded(name, kernel)


def _recorded(name: str, kernel: Kernel) -> Kernel:
    trail = _trail.get()
    if trail is not None:
        trail.append((name, kernel))
    return kernel


def is_recording() -> bool:
    """Return True in a block of `recorded`."""
    return _trail.get() is not None


def recorded() -> AbstractContextManager[Trail]:
    """Record what every pass leaves in a with block, as a list."""
    trail: Trail = []
    return setting(_trail, trail)  # type: ignore[arg-type]
