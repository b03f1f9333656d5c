"""Which names mean files, and how the fields that a file leaves are named."""

from __future__ import annotations

from pathlib import Path

PLACES = "@"  # behind the name of a field: the axes along which its points lie on faces


def is_file(name: str) -> bool:
    """Whether a problem's name means a file, and no case: one that exists, or was to."""
    return Path(name).is_file() or name.endswith(".py")
