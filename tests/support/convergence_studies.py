"""Convergence studies in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from halocline.cli.app import run as command


def study(folder: Path, words: str) -> Any:
    """Return the JSON result of a convergence study."""
    file = folder / "result.json"
    assert command(["study", "convergence", *words.split(), "--threads", "1", "--json", str(file)]) == 0
    return json.loads(file.read_text())
