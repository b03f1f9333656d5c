"""The command `halocline study overlap`."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.errors import InputError


def test_the_command_measures_overlap(tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    import json

    from halocline.cli.app import run

    file = tmp_path / "overlap.json"
    line = "study overlap heat --n 12 --dim 2 --fields 2 --repeat 1 --threads 1 --subdomains-per-rank 2"
    assert run([*line.split(), "--json", str(file)]) == 0
    output = capfd.readouterr().out
    assert "Heat: 2 float64 fields of 12x12 cells, radius 1, 1 rank of 1 thread, subdomains " in output
    assert "hidden" in output
    record_data = json.loads(file.read_text())
    assert (record_data["shape"], record_data["repeats"]) == ([12, 12], 1)
    assert set(record_data["methods"][0]["bytes_by_method"]) == {"peer"}
    with pytest.raises(InputError, match="'--repeat': 0; expected"):
        run(["study", "overlap", "poisson", "--n", "8", "--repeat", "0"])
