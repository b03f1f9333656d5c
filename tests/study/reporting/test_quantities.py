"""Quantities of measurements as text, and energy in tables."""

from __future__ import annotations

from case_measurements import measurement, report_of, sides, strong
from halocline.study.reporting.quantities import nanoseconds, size
from halocline.study.reporting.theory import Theory
from halocline.study.studies.strong import STEPS
from halocline.study.studies.weak import WEAK


def test_energy_is_shown_if_it_was_measured():
    theory = Theory({6: sides()}, 1e-12, 2)
    assert "energy.png" not in report_of(STEPS, strong(), theory).figures()
    known = [measurement(8.0, joules_per_cell_step=2e-6, joules_of=["processors"]), measurement(4.0, ranks=2)]
    table = report_of(STEPS, known, theory).tables[0]
    assert [row[-1] for row in table.rows] == ["0.5", ""]
    assert len(table.heads) == len(strong_heads := report_of(STEPS, strong(), theory).tables[0].heads) + 1
    assert "million cells\nper joule" not in strong_heads
    assert "energy.png" in report_of(STEPS, known, theory).figures()
    assert report_of(WEAK, known, theory).tables[0].heads[-1] == "million cells\nper joule"


def test_tables_show_ssspnt_if_it_was_measured():
    theory = Theory({6: sides()}, 1e-12, 2)
    for speed, is_known in ((1.5, True), (None, False)):
        for case in ("cavity", "mine.py"):
            known = [
                measurement(8.0, case=case, ssspnt=speed),
                measurement(4.0, case=case, ssspnt=speed, ranks=2),
            ]
            assert ("ssspnt" in report_of(STEPS, known, theory).tables[0].heads) == is_known


def test_numbers_are_formatted():
    assert [nanoseconds(t) for t in (0.01234, 1.236, 99.96, 1234.5)] == ["0.0123", "1.24", "100", "1,234"]
    assert [size({"shape": s}) for s in ([64], [8, 8], [8, 8, 8], [8, 4, 4])] == [
        "64",
        "8²",
        "8³",
        "8 x 4 x 4",
    ]
