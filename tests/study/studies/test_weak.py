"""Weak scaling."""

from __future__ import annotations

from case_measurements import report_of, sides, weak
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
