"""Which names mean files."""

from __future__ import annotations

from pathlib import Path


def is_file(name: str) -> bool:
    """Whether a problem's name means a file, and no case: one that exists, or was to."""
    return Path(name).is_file() or name.endswith(".py")
