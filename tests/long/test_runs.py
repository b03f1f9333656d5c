"""Runs on OpenCL devices have the bits of one rank of the CPU: problems, random programs and user actions.

The devices are those of PoCL, which compiles a kernel for each shape of a thread block. This takes most of
the time. The default test suite cuts a grid such that the same shapes occur.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitwise_programs as bitwise
import random_blocks as holes
import random_programs as programs
from halocline.compile.strategy import READS
from halocline.plan import launches
from halocline.run.ranks.mpi import world
from kernels_of_devices import use_splits
from runs_on_devices import BOTH, check_equal_bits, random_holes, same_bits

pytestmark = pytest.mark.usefixtures("opencl")

WAYS: list[dict[str, Any]] = [
    {"device": "opencl:0"},
    {"device": "opencl:1,0", "overlap": True},
    {"device": BOTH, "overlap": False, "patch": 5},
    {"device": "opencl", "subdomains_per_rank": 2},
    {"device": "opencl:0", "patch": 7, "methods": "self,mpi"},
    {"device": "opencl:0", "methods": "mpi", "subdomains_per_rank": 3},
    {"device": BOTH, "halo": "uniform", "decomposition": "1d-y"},
    {"device": BOTH, "subdomains_per_rank": 2, "methods": "peer,mpi", "decomposition": "1d-x"},
]


@pytest.mark.parametrize("dtype", bitwise.DTYPES)
@pytest.mark.parametrize("problem", bitwise.PROBLEMS, ids=lambda problem: problem.__name__)
@pytest.mark.ranks(1, 2, 3)
def test_every_layout_on_devices_gives_the_bits_of_the_cpu(problem: bitwise.Problem, dtype: str) -> None:
    assert check_equal_bits(problem, dtype, WAYS) >= (4 if world().size < 3 else 2)


# -- random programs ---------------------------------------------------------------------------------


@settings(max_examples=100, **programs.ANY_SPEED)
@given(
    programs.recipes(),
    programs.shapes_to_cut,
    st.none() | st.integers(3, 9),
    st.booleans(),
    st.none() | st.tuples(st.sampled_from(READS), st.integers(1, 3), st.sampled_from([1, 2])),
)
def test_many_random_programs_have_the_bits_of_the_cpu(
    recipe: programs.Recipe,
    shape: tuple[int, ...],
    patch: int | None,
    literal: bool,
    splits: tuple[str, int, int] | None,
) -> None:
    """Subdomains, patches, literal layouts and several cells per thread change no bit."""
    ways = [{"device": BOTH, "patch": patch}, {"device": "opencl:0", "overlap": False}]
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(launches, "LITERAL_CELLS", 1 if literal else launches.LITERAL_CELLS)
        if splits is not None:
            use_splits(changes, *splits)
        same_bits(recipe, shape, [*ways, {"device": BOTH, "subdomains_per_rank": 2}])


@settings(max_examples=60, **programs.ANY_SPEED)
@given(holes.cases())
def test_many_random_holes_have_the_bits_of_the_cpu(case: dict[str, Any]) -> None:
    subdomains = case["subdomains"]
    random_holes(
        case, [{"device": BOTH}, {"device": "opencl:0", "subdomains_per_rank": subdomains, "patch": 3}]
    )
