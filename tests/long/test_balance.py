"""Balances of many random programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import balanced_runs


@pytest.mark.ranks(2, 3, 4)
def test_balance_does_not_change_bits_of_many_programs(shared_tmp_path: Path) -> None:
    balanced_runs.check_bits(range(100, 130), shared_tmp_path)


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(2, 4)
def test_balance_does_not_change_bits_of_many_programs_on_devices(shared_tmp_path: Path) -> None:
    balanced_runs.check_bits(range(300, 308), shared_tmp_path, device="opencl:0")


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(2, 3)
def test_balance_of_devices_does_not_change_bits(shared_tmp_path: Path) -> None:
    balanced_runs.check_bits(range(200, 202), shared_tmp_path, device="opencl:0")
