"""Labels of sweeps: statements of the user's file, or words; never source lines of the framework."""

from __future__ import annotations

from halocline.problems.files import case_names
from sweep_labels import check, check_numbers, framework_text, programs


def test_no_case_shows_a_line_of_the_framework() -> None:
    forbidden = framework_text()
    counts = [check(program, forbidden) for program in programs(tuple(case_names()))]
    assert len(counts) >= 21
    assert all(counts)


def test_explanations_of_all_cases_show_the_constants_of_the_program() -> None:
    counts = [check_numbers(name) for name in case_names()]
    assert len(counts) >= 21
    assert all(counts)
