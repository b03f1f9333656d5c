"""Sequence of passes, with optional verification and recording of the kernel after each pass."""

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

# name of each pass, and the kernel after it
Trail = list[tuple[str, Kernel]]

verifies = os.environ.get("HALOCLINE_CHECK") == "1"

_trail: ContextVar[Trail | None] = ContextVar("trail", default=None)


def run(kernel: Kernel, *passes: Pass) -> Kernel:
    """Return the kernel after a sequence of passes."""
    for step in passes:
        name = step.func.__name__ if isinstance(step, partial) else step.__name__
        result = step(kernel)
        kernel = _record(name, kernel) if result is kernel else complete_pass(name, result)
    return kernel


def complete_pass(name: str, kernel: Kernel) -> Kernel:
    """Verify and record the kernel after a pass, and return it."""
    if verifies:
        verify(kernel)
    return _record(name, kernel)


def _record(name: str, kernel: Kernel) -> Kernel:
    trail = _trail.get()
    if trail is not None:
        trail.append((name, kernel))
    return kernel


def is_recording() -> bool:
    """Return True inside a with block of `recorded`."""
    return _trail.get() is not None


def recorded() -> AbstractContextManager[Trail]:
    """Return a context manager that records the kernel after every pass, as a list."""
    trail: Trail = []
    return setting(_trail, trail)  # type: ignore[arg-type]
