"""Random exchanges between devices: every halo that is read holds the current values of its owner."""

from __future__ import annotations

import secrets

import pytest

import cuda_standin
from device_exchange_fuzz import CASES, in_other_processes, run_cases
from halocline.run.ranks.mpi import world


@pytest.mark.parametrize(
    ("devices", "ranks", "settings"),
    [
        (1, 1, {}), (2, 1, {"peers": 0}), (3, 1, {"delay": 2000}),
        (1, 2, {"delay": 2000}), (2, 2, {}), (3, 2, {"peers": 0}),
    ],
    ids=str,
)  # fmt: skip
def test_many_random_exchanges_on_the_standin_fill_halos(
    devices: int, ranks: int, settings: dict[str, int]
) -> None:
    """New random exchanges each time; work in streams runs in any order that events allow."""
    environment = cuda_standin.environment(devices, **settings)
    seed = secrets.randbelow(2**31)
    in_other_processes(environment, ranks, interface="cuda", seed=seed, devices=devices, cases=200)


@pytest.mark.usefixtures("opencl")
@pytest.mark.ranks(1, 2, 3, timeout=3000)
def test_a_thousand_random_exchanges_fill_halos() -> None:
    """New random exchanges each time, fewer if ranks share cores."""
    run_cases(world().bcast(secrets.randbelow(2**31)), CASES[world().size], 2)
