"""The timeline of a run."""

from __future__ import annotations

import json
from pathlib import Path

from halocline.cli.app import run


def test_the_command_draws_the_timeline(tmp_path: Path) -> None:
    line = f"solve poisson --n 40 --threads 1 --trace {tmp_path / 't.json'} --pictures {tmp_path}"
    assert run(line.split()) == 0
    assert (tmp_path / "timeline.png").stat().st_size > 5000
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
