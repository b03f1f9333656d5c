"""Layouts: the home of every subdomain."""

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
def test_every_subdomain_has_one_home(
    ranks: int, per_node: int, per_rank: int, strategy: str, placement: str | None
) -> None:
    slots = min(per_node, ranks) * per_rank
    distance = None
    if placement is not None:
        distance = np.random.default_rng(slots).uniform(1, 2, (slots, slots))
    try:
        made = lay_out(
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
    assert (made.ranks, made.nodes) == (ranks, -(-ranks // min(per_node, ranks)))
    owned = [made.owned(rank) for rank in range(ranks)]
    assert sorted(s for own in owned for s in own) == list(range(ranks * per_rank))
    for rank, own in enumerate(owned):
        assert len(own) == per_rank
        for local, subdomain in enumerate(own):
            assert made.home(subdomain) == (rank, local)
        # placement moves subdomains within their node alone
        assert {made.node(rank)} == {subdomain // slots for subdomain in own}


def test_equal_links_leave_subdomains_in_order_unless_they_are_drawn() -> None:
    traffic = Traffic.of_radius(1, 3)
    slots = {}
    for placement in STRATEGIES:
        made = lay_out((16, 16, 16), 4, traffic=traffic, placement=placement)
        slots[placement] = made.slots
        assert link_time(made, traffic, None) is None
    assert slots["aware"] == slots["trivial"] == ()
    assert sorted(slots["random"]) == [0, 1, 2, 3]


def test_an_aware_layout_is_the_best_within_a_node() -> None:
    machine, traffic = load_machine("summit"), Traffic.of_radius(3, 3)
    options = {"ranks_per_node": 6, "strategy": "bisection", "traffic": traffic}
    distance = np.array(machine.distance())
    cost = {}
    for placement in STRATEGIES:
        made = lay_out((1440, 1452, 1400), 12, **options, distance=distance.tolist(), placement=placement)
        slots = tuple(made.home(subdomain)[0] % 6 for subdomain in range(6))
        cost[placement] = placement_cost(flow(made.decomposition, traffic, range(6)), distance, slots)
    sent = flow(made.decomposition, traffic, range(6, 12))
    least = min(placement_cost(sent, distance, f) for f in itertools.permutations(range(6)))
    assert cost["aware"] == pytest.approx(least)
    assert cost["aware"] < cost["random"]


def test_wrong_layouts() -> None:
    for options, words in (
        ({"subdomains_per_rank": 0}, "subdomains per rank is 0; expected a whole number from 1"),
        ({"ranks_per_node": 0}, "ranks per node is 0; expected a whole number from 1"),
        ({"placement": "best"}, "placement 'best' is unknown; known: aware, trivial, random"),
    ):
        with pytest.raises(InputError, match=words):
            lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2), **options)
    made = lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2))
    with pytest.raises(IndexError):
        made.owned(2)


@settings(max_examples=100)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["optimal", "bisection", "row"]),
    st.randoms(use_true_random=False),
)
def test_ranks_that_do_not_follow_each_other_node_by_node(
    nodes: int, per_node: int, per_rank: int, strategy: str, random: Random
) -> None:
    """Whatever order a launcher deals them out in, a node has the part of the grid that it would have had."""
    options: dict[str, Any] = {
        "ranks_per_node": per_node,
        "subdomains_per_rank": per_rank,
        "strategy": strategy,
        "traffic": Traffic.of_radius(1, 3),
    }
    plain = lay_out((40, 36, 30), nodes * per_node, **options)
    dealt = [node for node in range(nodes) for _ in range(per_node)]
    random.shuffle(dealt)
    made = lay_out((40, 36, 30), nodes * per_node, **options, nodes_of_ranks=tuple(dealt))
    assert made.decomposition == plain.decomposition
    assert made.nodes == nodes
    for node in range(nodes):
        ours, theirs = (
            sorted(s for rank in range(of.ranks) if of.node(rank) == node for s in of.owned(rank))
            for of in (made, plain)
        )
        assert ours == theirs
    for rank in range(made.ranks):
        assert [made.home(s) for s in made.owned(rank)] == [(rank, local) for local in range(per_rank)]


def test_nodes_in_turn_exchange_as_little_as_nodes_in_order() -> None:
    """What crosses nodes, of 4 x 2 ranks on a long grid; in one level every neighbour would be elsewhere."""

    def crossing(made: Layout) -> int:
        cut, total = made.decomposition, 0
        for number in range(cut.count):
            for axis, d in product(range(2), (-1, 1)):
                peer = cut.neighbour(number, tuple(d if a == axis else 0 for a in range(2)))
                if peer is not None and made.node(made.home(peer)[0]) != made.node(made.home(number)[0]):
                    shape = cut.box(number).shape
                    total += shape[1 - axis]
        return total

    options: dict[str, Any] = {"ranks_per_node": 2, "traffic": Traffic.of_radius(1, 2), "periodic": False}
    in_order = crossing(lay_out((64, 64), 8, **options))
    in_turn = crossing(lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 2, 3) * 2))
    assert in_turn == in_order == 2 * 2 * 64
    # where nodes differ, each has subdomains that follow each other
    uneven = lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 0, 0, 1, 0, 1, 0))
    assert [uneven.node(uneven.home(number)[0]) for number in range(8)] == [0] * 5 + [1] * 3
