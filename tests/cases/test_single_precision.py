"""Cases in single precision: checksums on ranks, tiles and devices, accuracy, and arithmetic of kernels."""

from __future__ import annotations

from typing import Any

import pytest

import single_precision as single
from suites import cases

SAMPLE = [run for run in single.RUNS if run["case"] in ("poisson", "wave")][::2]


@pytest.mark.parametrize("run", single.recorded(long=False))
def test_a_case_has_its_checksum_on_all_tiles(run: dict[str, Any]) -> None:
    assert single.check_ways(run, [{"threads": 1}, {"threads": 2, "patch": 3}]) == 2


@pytest.mark.ranks(2)
@cases("run", SAMPLE, default=SAMPLE[:1])
def test_a_case_has_its_checksum_on_ranks(run: dict[str, Any]) -> None:
    assert single.check_ways(run, [{"threads": 1}, {"decomposition": "1d-x", "methods": "mpi", "patch": 4}])


@pytest.mark.parametrize("run", single.recorded(long=False))
def test_a_case_is_as_accurate_as_single_precision_allows(run: dict[str, Any]) -> None:
    single.check_difference(run)


@pytest.mark.parametrize("run", single.recorded(long=False))
def test_no_kernel_computes_in_double_precision_at_each_point(run: dict[str, Any]) -> None:
    single.check_kernels(run)
