"""Identical bits on all ranks, threads, patches and decompositions, with fused and with streamed kernels."""

from __future__ import annotations

import pytest

from bitwise_checks import WAYS, check_all, variations
from bitwise_programs import DTYPES


# more ranks than cores that do not divide the grid: a minute or two
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.ranks(3)
def test_every_decomposition_gives_the_same_bits_on_an_odd_number_of_ranks(dtype: str) -> None:
    from mpi4py import MPI

    check_all(dtype, lambda ndim: variations(MPI.COMM_WORLD.size, ndim))


@pytest.mark.ranks(2)
def test_some_layouts_give_the_same_bits_in_float32() -> None:
    check_all("float32", lambda ndim: WAYS[::4])
