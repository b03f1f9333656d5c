"""Random exchanges between devices: every halo that is read holds the current values of its owner."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

import cuda_standin
from device_exchange_fuzz import draw, in_other_processes, run_cases, try_case
from halocline.errors import InputError
from suites import cases


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(1, 2, long=(1,))
def test_random_exchanges_fill_halos() -> None:
    run_cases(1, 10, 2)


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(1)
@pytest.mark.parametrize("packing", ["last", "none"])
def test_a_device_ahead_of_its_host_skips_copies_of_cancelled_passes(packing: str) -> None:
    """A device that runs ahead of the host skips the copies of passes that are not carried out."""
    random = np.random.default_rng(5)
    unpacked_cases = 0
    while unpacked_cases < 3:
        case = draw(random, 1, 1, "opencl")
        case = replace(
            case,
            fields=tuple(replace(q, kind="place") for q in case.fields),
            execution={**case.execution, "methods": "mpi", "packing": packing, "subdomains_per_rank": 1},
        )
        with contextlib.suppress(InputError):
            unpacked_cases += "mpi, not packed" in try_case(case)


@pytest.mark.usefixtures("opencl")
@cases("ranks, count", [(1, 4), (2, 10), (1, 200), (2, 200)], default=[(1, 4)])
def test_random_exchanges_of_three_devices_fill_halos(ranks: int, count: int) -> None:
    environment = {"POCL_DEVICES": "pthread pthread pthread"}
    in_other_processes(environment, ranks, seed=1, devices=3, cases=count)


# enough cases for all methods to occur
@cases(
    "devices, ranks, count",
    [(1, 2, 14), (2, 1, 8), (3, 2, 24), (2, 2, 14), (3, 1, 8)],
    default=[(3, 2, 24)],
)
def test_random_exchanges_on_the_standin_fill_halos(devices: int, ranks: int, count: int) -> None:
    environment = cuda_standin.environment(devices)
    in_other_processes(environment, ranks, interface="cuda", seed=1, devices=devices, cases=count)
