"""Layouts: the rank, node and device of each subdomain."""

from __future__ import annotations

import itertools
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.plan import flow, placement_cost
from halocline.plan.layout import Layout, lay_out, link_time
from halocline.plan.machine import load_machine
from halocline.plan.placement import STRATEGIES
from halocline.plan.traffic import Traffic


@settings(max_examples=80)
@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from(["optimal", "bisection", "row", "1d"]),
    st.sampled_from([None, *STRATEGIES]),
)
def test_every_subdomain_has_one_rank_and_device(
    ranks: int, per_node: int, per_rank: int, strategy: str, placement: str | None
) -> None:
    slots = min(per_node, ranks) * per_rank
    distance = None
    if placement is not None:
        distance = np.random.default_rng(slots).uniform(1, 2, (slots, slots))
    try:
        layout = lay_out(
            (40, 36, 30),
            ranks,
            ranks_per_node=per_node,
            subdomains_per_rank=per_rank,
            strategy=strategy,
            traffic=Traffic.of_radius(1, 3),
            distance=distance,
            placement=placement or "aware",
        )
    except InputError as error:
        if "cut" not in str(error):
            raise
        return
    assert (layout.ranks, layout.nodes) == (ranks, -(-ranks // min(per_node, ranks)))
    owned = [layout.subdomains_of(rank) for rank in range(ranks)]
    assert sorted(s for rank_subdomains in owned for s in rank_subdomains) == list(range(ranks * per_rank))
    for rank, rank_subdomains in enumerate(owned):
        assert len(rank_subdomains) == per_rank
        for local, subdomain in enumerate(rank_subdomains):
            assert layout.home(subdomain) == (rank, local)
        # placement moves subdomains only within their node
        assert {layout.node(rank)} == {subdomain // slots for subdomain in rank_subdomains}


def test_equal_links_keep_the_order_except_for_random_placement() -> None:
    traffic = Traffic.of_radius(1, 3)
    slots = {}
    for placement in STRATEGIES:
        layout = lay_out((16, 16, 16), 4, traffic=traffic, placement=placement)
        slots[placement] = layout.slots
        assert link_time(layout, traffic, None) is None
    assert slots["aware"] == slots["trivial"] == ()
    assert sorted(slots["random"]) == [0, 1, 2, 3]


def test_an_aware_layout_is_the_best_within_a_node() -> None:
    machine, traffic = load_machine("summit"), Traffic.of_radius(3, 3)
    options = {"ranks_per_node": 6, "strategy": "bisection", "traffic": traffic}
    distance = np.array(machine.distance())
    cost = {}
    for placement in STRATEGIES:
        layout = lay_out((1440, 1452, 1400), 12, **options, distance=distance.tolist(), placement=placement)
        slots = tuple(layout.home(subdomain)[0] % 6 for subdomain in range(6))
        cost[placement] = placement_cost(flow(layout.decomposition, traffic, range(6)), distance, slots)
    sent = flow(layout.decomposition, traffic, range(6, 12))
    least = min(placement_cost(sent, distance, f) for f in itertools.permutations(range(6)))
    assert cost["aware"] == pytest.approx(least)
    assert cost["aware"] < cost["random"]


def test_invalid_layouts_are_rejected() -> None:
    for options, words in (
        ({"subdomains_per_rank": 0}, "subdomains per rank is 0; expected a whole number from 1"),
        ({"ranks_per_node": 0}, "ranks per node is 0; expected a whole number from 1"),
        ({"placement": "best"}, "placement 'best' is unknown; known: aware, trivial, random"),
    ):
        with pytest.raises(InputError, match=words):
            lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2), **options)
    layout = lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2))
    with pytest.raises(IndexError):
        layout.subdomains_of(2)


@settings(max_examples=100)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["optimal", "bisection", "row"]),
    st.randoms(use_true_random=False),
)
def test_ranks_may_be_distributed_over_nodes_in_any_order(
    nodes: int, per_node: int, per_rank: int, strategy: str, random: Random
) -> None:
    """A node has the same part of the grid for any order in which a launcher distributes the ranks."""
    options: dict[str, Any] = {
        "ranks_per_node": per_node,
        "subdomains_per_rank": per_rank,
        "strategy": strategy,
        "traffic": Traffic.of_radius(1, 3),
    }
    plain = lay_out((40, 36, 30), nodes * per_node, **options)
    dealt = [node for node in range(nodes) for _ in range(per_node)]
    random.shuffle(dealt)
    layout = lay_out((40, 36, 30), nodes * per_node, **options, nodes_of_ranks=tuple(dealt))
    assert layout.decomposition == plain.decomposition
    assert layout.nodes == nodes
    for node in range(nodes):
        owned, owned_in_order = (
            sorted(
                s
                for rank in range(candidate.ranks)
                if candidate.node(rank) == node
                for s in candidate.subdomains_of(rank)
            )
            for candidate in (layout, plain)
        )
        assert owned == owned_in_order
    for rank in range(layout.ranks):
        assert [layout.home(s) for s in layout.subdomains_of(rank)] == [
            (rank, local) for local in range(per_rank)
        ]


def test_round_robin_nodes_exchange_as_little_as_nodes_in_order() -> None:
    """Ranks in turn exchange as little between nodes as ranks in order, for 4 x 2 ranks on a long grid."""

    def crossing(layout: Layout) -> int:
        cut, total = layout.decomposition, 0
        for number in range(cut.count):
            for axis, d in product(range(2), (-1, 1)):
                peer = cut.neighbour(number, tuple(d if a == axis else 0 for a in range(2)))
                if peer is not None and layout.node(layout.home(peer)[0]) != layout.node(
                    layout.home(number)[0]
                ):
                    shape = cut.box(number).shape
                    total += shape[1 - axis]
        return total

    options: dict[str, Any] = {"ranks_per_node": 2, "traffic": Traffic.of_radius(1, 2), "periodic": False}
    in_order = crossing(lay_out((64, 64), 8, **options))
    in_turn = crossing(lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 2, 3) * 2))
    assert in_turn == in_order == 2 * 2 * 64
    # on nodes of different sizes, each node has consecutive subdomains
    uneven = lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 0, 0, 1, 0, 1, 0))
    assert [uneven.node(uneven.home(number)[0]) for number in range(8)] == [0] * 5 + [1] * 3
