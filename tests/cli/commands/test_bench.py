"""The command `halocline bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halocline.cli.app import run
from halocline.errors import InputError


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "exchange.json"
    line = f"bench exchange --n 24 --fields 2 --repeat 2 --threads 1 --no-corners --json {record}"
    assert run(line.split()) == 0
    assert "Exchange of 2 float32 fields of 24x24x24 cells, radius 3, sides" in capfd.readouterr().out
    told = json.loads(record.read_text())
    assert told["bytes_by_method"] == {"self": 6 * 24 * 24 * 3 * 2 * 4}
    with pytest.raises(InputError, match="scaling 'big' is unknown"):
        run([*line.split(), "--scaling", "big"])
