"""The command of a weak scaling study."""

from __future__ import annotations

import json

from case_measurements import halocline


def test_the_command_runs_a_weak_scaling_study(tmp_path):
    result = halocline(
        "study weak alfven-decay --n 16 --ranks 1,2 --steps 2 --json w.json --pictures p", tmp_path
    )
    assert result.returncode == 0, result.stderr
    measurements = json.loads((tmp_path / "w.json").read_text())["measurements"]
    assert [(m["n"], m["shape"], m["ranks"], m["only"]) for m in measurements] == [
        (16, [16], 1, None),
        (16, [32], 2, None),
        (16, [32], 2, "exchange"),
    ]
    assert "2 ranks of 1 thread  32" in result.stdout
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["weak.png"]
