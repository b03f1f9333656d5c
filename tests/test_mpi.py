"""Ranks: start, agreement, and how they end."""

from __future__ import annotations

import pytest

from halocline.run import mpi


@pytest.mark.ranks(1, 2, 4)
def test_every_rank_has_its_number(request):
    comm = mpi.world()
    assert comm.allgather(comm.rank) == list(range(comm.size))
