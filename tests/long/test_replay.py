"""Failures of runs on devices."""

from __future__ import annotations

import pytest

from growing_runs import failure, growing


@pytest.mark.parametrize("device", ["opencl:0,1"])
@pytest.mark.usefixtures("opencl")
def test_devices_report_the_same_step_and_terms(device: str):
    assert failure(growing(device=device)) == failure(growing())
