"""Magnetohydrodynamics compared with NumPy: mhd_reference.py, which shares no code with the language."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.problems.problem import Problem
from mhd_programs import OPTION_WAYS, benchmark, with_options


@pytest.mark.parametrize("shape", [(46, 48), (24, 46, 22)])
@pytest.mark.ranks(2, 4)
def test_all_terms_have_the_same_bits_on_any_layout(shape: tuple[int, ...]):
    from mpi4py import MPI

    # four ranks with two threads each share the cores
    ways = OPTION_WAYS if MPI.COMM_WORLD.size == 2 else OPTION_WAYS[:2]
    actual = [with_options(shape, **way) for way in ways]
    expected = with_options(shape, communicator=MPI.COMM_SELF, threads=1)
    assert actual == [expected] * len(ways)


@pytest.mark.ranks(8)
def test_mhd_has_the_same_bits_on_eight_ranks():
    from mpi4py import MPI

    assert benchmark(threads=1) == benchmark(communicator=MPI.COMM_SELF, threads=1)


@pytest.mark.parametrize("shape", [(24, 22), (13, 22, 12)])
def test_all_terms_have_the_same_bits_on_devices(opencl: list[Any], shape: tuple[int, ...]):
    expected = with_options(shape, threads=1)
    assert with_options(shape, device="opencl:0") == expected
    assert with_options(shape, device="opencl", methods="self,mpi") == expected


@pytest.mark.parametrize("options", [
    {"device": "opencl:0"},
    {"device": "opencl", "methods": "self,mpi"},
], ids=["one", "two"])  # fmt: skip
def test_mhd_has_the_same_bits_on_devices(options: dict[str, str], opencl: list[Any]):
    assert benchmark(**options) == benchmark(threads=1)


def test_memory_is_three_values_per_point_and_field():
    """Memory holds a field, its register, and the output of a stage (24 arrays).

    No page is accessed beyond the rows and their alignment.
    """
    sim = Problem("mhd-benchmark", (48, 48, 48)).run(steps=1).simulation
    with_halos = 54**3 * 8
    assert 24 * 48**3 * 8 < sim.store.memory_bytes <= 1.1 * 24 * with_halos
    assert len(sim.store.storages) == 24


@pytest.mark.ranks(2)
def test_all_terms_have_the_same_bits():
    from mpi4py import MPI

    # all ranks first, one of which compiles the cases that the others would compile
    actual = [with_options((16, 15), order=2, **way) for way in OPTION_WAYS[:2]]
    expected = with_options((16, 15), order=2, communicator=MPI.COMM_SELF, threads=1)
    assert len(set(expected.values())) == 8
    assert actual == [expected] * 2
