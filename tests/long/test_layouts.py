"""Studies of layouts."""

from __future__ import annotations

import json

from case_measurements import halocline


def test_fields_are_equal_for_all_layouts(tmp_path):
    result = halocline(
        "study layouts mhd-benchmark --n 16 --steps 1 --ranks 1,2 --device cpu --json l.json", tmp_path
    )
    assert result.returncode == 0, result.stderr
    measurements = json.loads((tmp_path / "l.json").read_text())["measurements"]
    assert [(m["ranks"], m["decomposition"], m["ulps"]) for m in measurements] == [
        (1, "optimal", 0.0), (2, "optimal", 0.0), (2, "1d", 0.0),
    ]  # fmt: skip
    assert "all with the same bits" in result.stdout
    assert "at most 2 ulps" in result.stdout
