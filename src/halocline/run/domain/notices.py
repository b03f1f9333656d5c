"""Notices to users that stop nothing."""

from __future__ import annotations

import functools
import logging

log = logging.getLogger("halocline")


@functools.cache
def say_once(text: str) -> None:
    """Warn, once in this process, however many programs are concerned."""
    log.warning("%s", text)
