"""The summary of a run on the terminal: numbers, rows, checks and events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from halocline.cli.summary import event_lines, judgement, number, rows_of, table
from halocline.run.simulation.checks import Check


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (3, "3"), (0.1, "0.1"), (-1.23456e-5, "-1.2346e-05"), ("x", "x")]
)
def test_numbers_have_five_digits(value: Any, text: str) -> None:
    assert number(value) == text


def test_diagnostics_are_rows_below_one_head(capsys: pytest.CaptureFixture[str]) -> None:
    row = rows_of(
        SimpleNamespace(names=SimpleNamespace(key_diagnostics=("energy", "a_long_name_of_a_number")))
    )
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
    passed, failed = Check("mass", 0.0, maximum=1.0, about="gas"), Check("energy", 2.0, maximum=1.0)
    text = judgement([passed, failed])
    assert "1 of 2 checks failed." in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(("mass", "energy"))] == [
        "passed", "FAILED",
    ]  # fmt: skip
    assert judgement([passed]).endswith("All checks passed.")


def test_events_are_a_table() -> None:
    none = {"count": 0, "share": 0.0, "first_cell": None, "first_step": None}
    some = {"count": 1234, "share": 0.015, "first_cell": [2, 3], "first_step": 4}
    odd = {"count": 1, "share": 1e-5, "first_cell": None, "first_step": None}
    assert event_lines({}) == event_lines({"floor": none, "ceiling": none}) == []
    assert event_lines({"floor": some, "ceiling": none, "wall": odd}) == [
        "event  cells  share of updates  first cell  first step",
        "floor  1,234             0.015      (2, 3)           4",
        "wall       1             1e-05           -           -",
    ]


def test_quantities_are_a_table() -> None:
    rows = [("time", "3 ms", "in all"), ("bandwidth", "12.5 GB/s", "of memory"), ("checksum", "x" * 32, "")]
    assert table(rows) == [
        "time       3 ms       in all",
        "bandwidth  12.5 GB/s  of memory",
        "checksum   " + "x" * 32,
    ]
