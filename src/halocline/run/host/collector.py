"""How often Python's garbage collector runs."""

from __future__ import annotations

import gc

USUAL = gc.get_threshold()
SELDOM = (50_000, 20, 20)


def seldom() -> None:
    """By Python's thresholds it scans modules and expressions, which stay, over and over: a tenth of the time
    of a short run."""
    gc.set_threshold(*SELDOM)


def as_usual() -> None:
    """For a user's program, whose garbage may be large; what was imported before is not scanned any more."""
    gc.freeze()
    gc.set_threshold(*USUAL)
