"""Measured times of a case on ranks."""

from __future__ import annotations

import pytest

from halocline.errors import RunError
from halocline.study.measuring import host


def test_ranks_measure_a_case_together_and_separately() -> None:
    case = {"case": "wave", "n": 64}
    for alone in (False, True):
        assert 1e-6 < host.run_task(2, {"do": "case", "case": case, "alone": alone}) < 1e-1
    with pytest.raises(RunError, match="the measurement on 1 rank failed:"):
        host.run_task(1, {"do": "case", "case": {"case": "tea"}, "alone": True})
