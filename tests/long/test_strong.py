"""The command of a strong scaling study."""

from __future__ import annotations

import json

from case_measurements import halocline


def test_the_command_runs_a_strong_scaling_study(tmp_path):
    result = halocline(
        "study strong alfven-decay --n 24 --ranks 1,2 --steps 3 --orders 2 --json s.json --csv s.csv "
        "--html s.html",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    study = json.loads((tmp_path / "s.json").read_text())
    kinds = [(m["ranks"], m["order"], m["only"]) for m in study["measurements"]]
    assert kinds == [(1, 6, None), (1, 2, None), (2, 6, None), (2, 2, None), (2, 6, "exchange")]
    assert study["theory"]["measured_on"] == 2
    assert study["theory"]["per_byte"] > 0
    whole = [m for m in study["measurements"] if m["only"] is None]
    assert {(m["steps"], m["warm_up"]) for m in whole} == {(3, 2)}
    for order in (2, 6):
        assert len({m["checksum"] for m in whole if m["order"] == order}) == 1
        assert f"24, order {order}, 3 steps: 2 runs, all with the same bits" in result.stdout
    for title in ("Time per cell and step", "On the most cores or devices", "Orders"):
        assert f"\n{title}\n" in result.stdout
    assert "paper" not in result.stdout
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 6
    page = (tmp_path / "s.html").read_text()
    assert page.count("<svg") == 2
    assert "Strong scaling: alfven-decay" in page
