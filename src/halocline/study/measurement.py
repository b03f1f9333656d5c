"""What a measurement is: a record of a run, with the command, the machine and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Measurement = dict[str, Any]


def is_file(name: str) -> bool:
    """Whether a problem's name means a file, and no case: one that exists, or was to."""
    return Path(name).is_file() or name.endswith(".py")
