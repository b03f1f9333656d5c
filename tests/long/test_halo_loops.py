"""Halos that remain valid between passes of a loop: they are exchanged once, before the loop."""

from __future__ import annotations

import pytest

from random_loops import check_random_programs


@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("methods", ["self,mpi", "self,colocated", "self,rma"])
def test_more_random_programs_compute_the_bits_of_numpy(methods: str) -> None:
    check_random_programs(range(20), methods=methods)
