"""Exchanges without computation: halos contain the cells of their owners."""

from __future__ import annotations

import pytest

from halo_checks import METHODS_IN_TURN, check_exchange
from halocline.run.ranks.mpi import world
from suites import cases


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 3))
@cases(
    "shape, fields, dtype, radius, corners",
    [
        ((12, 13, 14), 4, "float32", 3, True),
        ((12, 8, 9), 2, "float64", 2, False),
        ((17, 12), 3, "float64", 3, True),
        ((19,), 1, "float32", 4, True),
    ],
    lambda case: len(case[0]) != 3 or not case[-1],
)
def test_halos_have_the_values_of_neighbours(
    shape: tuple[int, ...], fields: int, dtype: str, radius: int, corners: bool
) -> None:
    check_exchange(shape, fields, dtype, radius, corners, threads=1)


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 3))
@pytest.mark.parametrize("methods", METHODS_IN_TURN)
@cases("subdomains_per_rank", [1, 2, 3], default=[1, 2])
def test_every_method_fills_the_halos(methods: str, subdomains_per_rank: int) -> None:
    """The halos are correct on one node and on simulated nodes, with one thread and with two."""
    for mailboxes, (threads, ranks_per_node, corners) in enumerate(
        ((1, None, True), (2, 2, False), (2, 1, True)), 1
    ):
        domain = check_exchange(
            (24, 13, 14) if threads == 1 else (25, 26),
            2,
            "float64" if corners else "float32",
            2,
            corners,
            threads=threads,
            methods=methods,
            subdomains_per_rank=subdomains_per_rank,
            ranks_per_node=ranks_per_node,
            mailboxes=mailboxes,
        )
        assert domain.transfers.methods == tuple(methods.split(","))
        assert domain.transfers.layout.nodes == -(-world().size // (ranks_per_node or world().size))


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("methods", ["mpi", "rma,mpi", "self,peer,colocated,rma"])
def test_checked_messages_fill_the_halos(methods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CHECK", "1")
    options = {"threads": 2, "methods": methods, "subdomains_per_rank": 2, "ranks_per_node": 1}
    check_exchange((12, 13), 2, "float64", 2, True, **options)
