"""Runs of a case that write output and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kept_runs import run_command_line


def wave(*words: str | Path) -> dict[str, Any]:
    """Return the JSON record of a run of a case, with its messages."""
    done = run_command_line("run", "sound-wave", "--n", "16", "--threads", "1", "--json", "-", *words)
    assert done.returncode == 0, done.stderr
    record_data: dict[str, Any] = json.loads(done.stdout)
    return record_data | {"said": done.stderr}
