"""The command that started this process, for what it leaves on disk."""

from __future__ import annotations

import sys
from pathlib import Path


def command_line() -> list[str]:
    """Its words, as they can be given again: `shlex.join` makes a line of them."""
    program, *words = sys.argv or [""]
    path = Path(program)
    if path.name == "halocline" or path.parts[-3:] == ("halocline", "cli", "__main__.py"):
        return ["halocline", *words]
    return [program, *words]
