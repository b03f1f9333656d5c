"""The summary of a run on the terminal: numbers, rows, checks and events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from halocline.cli.summary import event_lines, judgement, number, rows_of
from halocline.run.simulation.checks import Check


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (3, "3"), (0.1, "0.1"), (-1.23456e-5, "-1.2346e-05"), ("x", "x")]
)
def test_numbers_have_five_digits(value: Any, text: str) -> None:
    assert number(value) == text


def test_diagnostics_are_rows_below_one_head(capsys: pytest.CaptureFixture[str]) -> None:
    row = rows_of(SimpleNamespace(names=SimpleNamespace(shown=("energy", "a_long_name_of_a_number"))))
    row({"step": 1, "time": 0.5, "time_step": 0.5, "energy": 2.0})
    row({"step": 2, "time": 1.0, "time_step": 0.5, "energy": 1.5, "a_long_name_of_a_number": 7.0})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Diagnostics"
    assert lines[2].split() == ["step", "time", "time_step", "energy", "a_long_name_of_a_number"]
    assert [line.split() for line in lines[4:]] == [
        ["1", "0.5", "0.5", "2", "-"],
        ["2", "1", "0.5", "1.5", "7"],
    ]
    assert len({len(line) for line in lines[2:]}) == 1


def test_checks_are_a_table_with_a_verdict() -> None:
    passed, failed = Check("mass", 0.0, most=1.0, about="gas"), Check("energy", 2.0, most=1.0)
    text = judgement([passed, failed])
    assert "1 check of 2 failed." in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(("mass", "energy"))] == [
        "passed", "FAILED",
    ]  # fmt: skip
    assert judgement([passed]).endswith("All checks passed.")


def test_events_have_a_line_each() -> None:
    none = {"count": 0, "share": 0.0, "first_cell": None, "first_step": None}
    some = {"count": 3, "share": 0.015, "first_cell": [2, 3], "first_step": 4}
    assert event_lines({}, 10) == []
    assert event_lines({"floor": none, "ceiling": none}, 10) == [f"{'events':13} none: floor, ceiling"]
    assert event_lines({"floor": some, "ceiling": none}, 10) == [
        f"{'floor':13} acted on 3 cells in 10 steps (0.015 of all), first at cell (2, 3) in step 4"
    ]
