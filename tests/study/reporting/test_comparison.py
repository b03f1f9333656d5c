"""Reports that compare runs of the same problem with different options."""

from __future__ import annotations

from case_measurements import measurement
from halocline.study.reporting.comparison import comparison
from halocline.study.reporting.report import Group, report

RUNS = [
    measurement(8.0, patch="16"),
    measurement(10.0, patch="32"),
    measurement(4.0, ranks=2, patch="16"),
    measurement(3.0, ranks=2, patch="32"),
]


def test_runs_are_compared_with_the_fastest_of_their_layout() -> None:
    result = report((comparison("patch", lambda m: m["patch"]),), Group(RUNS))
    (table,) = result.tables
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("16", "1.00"), ("32", "1.25"), ("16", "1.33"), ("32", "1.00"),
    ]  # fmt: skip
    assert result.sentences == [
        "256³ on 1 rank of 1 thread: fastest with 16; a run with 32 takes 1.25 times as long as with 16.",
        "256³ on 2 ranks of 1 thread: fastest with 32; a run with 16 takes 1.33 times as long as with 32.",
    ]


def test_runs_are_compared_with_a_named_one() -> None:
    contents = comparison("patch", lambda m: m["patch"], base="16", order=lambda m: -int(m["patch"]))
    (table,) = report((contents,), Group(RUNS)).tables
    assert table.heads[table.heads.index("patch")] == "patch"
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("32", "1.25"), ("16", "1.00"), ("32", "0.75"), ("16", "1.00"),
    ]  # fmt: skip


def test_one_run_is_the_fastest() -> None:
    result = report((comparison("patch", lambda m: m["patch"]),), Group(RUNS[:1]))
    assert result.sentences == ["256³ on 1 rank of 1 thread: fastest with 16."]
