"""Programs of many fields: the work of their compilation grows linearly with their length."""

from __future__ import annotations

import cProfile
import pstats

import pytest

from halocline.compile.ir import pipeline
from halocline.compile.schedule import Schedule
from programs_of_many_fields import Statements, compiled, products, steps, sums


def counted(statements: Statements, count: int) -> tuple[Schedule, int]:
    """Return the schedule for a number of fields, and its number of calls of Python functions."""
    with cProfile.Profile() as profile:
        schedule = compiled(statements, count)
    return schedule, pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


@pytest.mark.parametrize("statements", [sums, products, steps])
def test_compilation_time_is_linear_in_the_number_of_fields(
    statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The differences exclude work that is the same for any number of fields."""
    monkeypatch.setattr(pipeline, "verifies", False)  # the run skips kernels that a smaller count had too
    compiled(statements, 2)  # excludes modules that are imported at the first use
    compilations = [counted(statements, count) for count in (50, 100, 200)]
    calls = [number for _, number in compilations]
    text = [len(schedule.source) for schedule, _ in compilations]
    for lengths in (calls, text):
        assert lengths[2] - lengths[1] <= 2.2 * (lengths[1] - lengths[0])
