"""All cases in single precision: checksums on ranks, tiles and devices, accuracy, arithmetic of kernels."""

from __future__ import annotations

from typing import Any

import pytest

import single_precision as single
from halocline._native import Device

ALL = single.recorded(long=True)
ONE_EACH = single.recorded(long=True, once=True)  # compilation for devices takes seconds
TILES: list[dict[str, Any]] = [{"threads": 1}, {"threads": 2, "patch": 3, "subdomains_per_rank": 1}]
RANKS: list[dict[str, Any]] = [
    {"threads": 1},
    {"decomposition": "1d-x", "methods": "mpi", "patch": 4, "threads": 2},
    {"subdomains_per_rank": 2, "overlap": True, "halo": "uniform"},
]


@pytest.mark.parametrize("run", ALL)
def test_a_case_has_its_checksum_on_all_tiles(run: dict[str, Any]) -> None:
    assert single.check_ways(run, TILES) == 2


@pytest.mark.ranks(4)
@pytest.mark.parametrize("run", ALL)
def test_a_case_has_its_checksum_on_ranks(run: dict[str, Any]) -> None:
    single.check_ranks(run, RANKS)


@pytest.mark.parametrize("run", ONE_EACH)
def test_a_case_has_its_checksum_on_a_device(run: dict[str, Any], opencl: list[Device]) -> None:
    assert single.check_ways(run, [{"device": "opencl:0"}]) == 1


@pytest.mark.parametrize("run", ALL)
def test_a_case_is_as_accurate_as_single_precision_allows(run: dict[str, Any]) -> None:
    single.check_difference(run)


@pytest.mark.parametrize("run", ALL)
def test_no_kernel_computes_in_double_precision_at_each_point(run: dict[str, Any]) -> None:
    single.check_kernels(run)


SAMPLE = [run for run in single.RUNS if run["case"] in ("poisson", "wave")][::2]


def test_a_case_has_its_checksum_on_devices(opencl: list[Device]) -> None:
    wave = next(run for run in SAMPLE if run["case"] == "wave")
    assert single.check_ways(wave, [{"device": "opencl:0,1"}]) == 1
