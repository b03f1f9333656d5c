"""Communicators: all operations on one process and on several ranks, and nodes of ranks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from halocline.errors import InputError
from halocline.run.ranks.communicator import SHORT, Communicator, nodes_of
from halocline.run.ranks.mpi import world


def test_one_process_has_its_own_values() -> None:
    comm = Communicator()
    assert (comm.rank, comm.size, comm.handle) == (0, 1, None)
    assert comm.allgather("a") == comm.allgather_of_node("a") == comm.gather("a") == ["a"]
    assert (comm.bcast("a"), comm.most(3), comm.has_mailboxes) == ("a", 3, False)
    assert comm.grouped(4) is comm
    comm.barrier()
    comm.exchange([], [])
    comm.check_same("shapes are", (1, 2), "use one")


def test_a_failure_of_one_process_is_raised_unchanged() -> None:
    error = KeyError("x")
    with pytest.raises(KeyError) as caught, Communicator().agreement("compile"):
        raise error
    assert caught.value is error
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize(
    ("nodes", "wide", "numbers"),
    [
        ("aaaa", 4, ()),
        ("aabb", 2, ()),
        ("aaab", 3, ()),
        ("abab", 2, (0, 1, 0, 1)),
        ("abbb", 1, (0, 1, 1, 1)),
    ],
)
def test_ranks_of_nodes_are_consecutive_or_numbered(nodes: str, wide: int, numbers: tuple[int, ...]) -> None:
    """The layout of nodes follows from the first rank of each node, which MPI would gather."""
    first = [nodes.index(name) for name in nodes]
    mpi = SimpleNamespace(rank=0, allgather=lambda value: first)
    node = SimpleNamespace(allgather=lambda value: [value])
    assert nodes_of(mpi, node) == {"ranks_per_node": wide, "nodes_of_ranks": numbers}


@pytest.mark.ranks(2)
def test_ranks_gather_the_values_of_all() -> None:
    comm = world()
    for value in (comm.rank, bytes([comm.rank]) * (2 * SHORT)):  # in one message, and in two
        values = comm.allgather(value)
        assert values[comm.rank] == value
        assert values[0] != values[1]
        assert comm.bcast(value, 1) == values[1]
        assert comm.gather(value) == (values if comm.rank == 0 else None)
    assert comm.most(10 * comm.rank) == 10
    other, received = 1 - comm.rank, np.zeros(3)
    comm.exchange([(other, np.full(3, comm.rank + 1.0))], [(other, received)])
    assert received.tolist() == [other + 1.0] * 3
    assert comm.grouped(1).allgather_of_node(comm.rank) == [comm.rank]
    with pytest.raises(InputError, match="shapes are not the same on ranks 0 and 1: use one"):
        comm.check_same("shapes are", comm.rank, "use one")
