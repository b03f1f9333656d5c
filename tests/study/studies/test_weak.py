"""Weak scaling."""

from __future__ import annotations

import json

from case_measurements import halocline, report_of, sides, weak
from halocline.study.reporting.theory import Theory
from halocline.study.studies.weak import WEAK

# -- tables --------------------------------------------------------------------------------------------


def test_the_table_shows_weak_scaling():
    (table,) = report_of(WEAK, weak(), Theory({6: sides()}, 1e-12, 2)).tables
    assert [row[:5] for row in table.rows] == [
        ("1 rank of 1 thread", "64³", "8", "8", "100%"),
        ("2 ranks of 1 thread", "128 x 64 x 64", "10", "5", "80%"),
        ("4 ranks of 1 thread", "128 x 128 x 64", "10", "2.5", "80%"),
    ]
    assert report_of(WEAK, weak()).sentences == [
        "64 per rank: the efficiency on 4 ranks of 1 thread is 80%, relative to 1 rank of 1 thread."
    ]


# -- studies -------------------------------------------------------------------------------------------


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
