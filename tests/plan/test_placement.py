"""Placement of subdomains on the devices of a node."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.plan import decompose, flow, place, placement_cost
from halocline.plan.machine import load_machine
from halocline.plan.placement import STRATEGIES
from halocline.plan.traffic import Traffic

matrices = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n)] * 2
    )
)


@settings(max_examples=60)
@given(matrices)
def test_aware_placement_has_the_minimum_cost(
    flow_and_distance: tuple[list[list[int]], list[list[int]]],
) -> None:
    w, d = flow_and_distance
    n = len(w)

    def cost(f: tuple[int, ...]) -> int:
        return sum(w[i][j] * d[f[i]][f[j]] for i in range(n) for j in range(n) if i != j)

    placement = place(w, d)
    assert sorted(placement) == list(range(n))
    assert placement_cost(w, d, placement) == cost(placement)
    least = min(map(cost, itertools.permutations(range(n))))
    assert cost(placement) == least
    assert placement == next(f for f in itertools.permutations(range(n)) if cost(f) == least)


def test_the_heuristic_for_large_nodes_is_close_to_optimal() -> None:
    """The placement is close to optimal for two rings, the second shuffled.

    There is a placement on which every message has a link of its own.
    """
    n = 12
    ring = np.zeros((n, n))
    for i in range(n):
        ring[i, (i + 1) % n] = ring[(i + 1) % n, i] = 1.0
    shuffle = np.random.default_rng(5).permutation(n)
    distance = 1.0 + 4.0 * (ring[np.ix_(shuffle, shuffle)] == 0)
    placement = place(ring, distance)
    assert sorted(placement) == list(range(n))
    costs = {s: placement_cost(ring, distance, place(ring, distance, strategy=s)) for s in STRATEGIES}
    assert costs["aware"] <= 0.75 * min(costs["trivial"], costs["random"])
    assert place(ring, distance) == placement, "the same each time"


def test_placement_solves_the_worst_case_of_the_paper() -> None:
    """Node-aware placement makes the exchange 20 % faster, as in Pearson et al. (2020), Section IV.B.

    The case is 1440 x 1452 x 700 on the six GPUs of a Summit node.
    """
    machine, traffic = load_machine("summit"), Traffic.of_radius(3, 3)
    whole = decompose((1440, 1452, 700), 6, strategy="bisection", traffic=traffic)
    assert [n // p for n, p in zip(whole.shape, whole.parts, strict=True)] == [720, 484, 700]
    sent, distance = flow(whole, traffic, range(6)), machine.distance()
    cost = {s: placement_cost(sent, distance, place(sent, distance, strategy=s)) for s in STRATEGIES}
    assert cost["aware"] < cost["random"]
    assert 1.1 < cost["trivial"] / cost["aware"] < 1.3


@pytest.mark.parametrize(
    ("flow_", "distance", "options", "words"),
    [
        ([[0, 1]], [[0]], {}, r"flow has shape \(1, 2\); expected a square matrix"),
        (
            [[0]],
            [[0, 1], [1, 0]],
            {},
            "matrix flow is for 1 subdomains, but matrix distance is for 2 devices",
        ),
        ([[0, -1], [0, 0]], [[0, 1], [1, 0]], {}, "flow contains numbers that are negative or not finite"),
        ([[0]], [[0]], {"strategy": "best"}, "placement 'best' is unknown; known: aware, trivial, random"),
    ],
)
def test_invalid_matrices_are_rejected(
    flow_: list[list[int]], distance: list[list[int]], options: dict, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        place(flow_, distance, **options)
