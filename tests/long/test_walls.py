"""Ghost formulas that read along a wall, compared with their definition, cell by cell.

A further test has a magnetic field without divergence in the ghost cells.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from halocline.errors import InputError
from random_walls import FIELDS, check_random_cases, expected_fields, induction, random_case, simulated_fields

# --- plans: all inputs of a ghost value are present ---------


def test_the_operands_of_ghosts_are_valid_in_many_programs() -> None:
    assert check_random_cases(range(1000, 2500)) > 400


# --- runs ---


def test_random_ghosts_have_the_values_of_their_definition() -> None:
    count = 0
    for seed in range(5000, 5060):
        case = random_case(seed, 3 if seed % 5 == 4 else 2)
        with suppress(InputError):  # pairs that cannot be computed
            results = [
                simulated_fields(case, subdomains_per_rank=2),
                simulated_fields(case, patch=2, threads=2),
            ]
            want = expected_fields(case, 2)
            for result in results:
                assert all(map(np.array_equal, result, want)), seed
            count += 1
    assert count > 15


# --- a face field without divergence, also beyond walls ---------------


@pytest.mark.usefixtures("opencl")
def test_ghosts_of_a_solenoidal_field_have_no_divergence_on_a_device() -> None:
    shape, periodic = FIELDS[0]
    sims = [induction(shape, periodic, **options) for options in ({}, {"device": "opencl:0,1"})]
    for name in ("B0", "B1", "seen"):
        assert sims[0].checksum(name) == sims[1].checksum(name), name
