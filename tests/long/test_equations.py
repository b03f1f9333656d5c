"""Magnetohydrodynamics compared with NumPy: mhd_reference.py, which shares no code with the language."""

from __future__ import annotations

from typing import Any

import pytest

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
