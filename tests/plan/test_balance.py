"""Chains of subdomains, and their division into shares of ranks."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halocline.plan.balance import chain, shares
from halocline.plan.decompose import decompose
from halocline.plan.redistribution import Piece, redistribution

WEIGHTS = st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=60).filter(sum)


@given(weights=WEIGHTS, ranks=st.integers(1, 9))
def test_no_rank_has_more_than_the_mean_and_one_task(weights: list[float], ranks: int) -> None:
    total = sum(weights)
    owners = shares(weights, 0.0, total, ranks)
    assert all(0 <= a <= b < ranks for a, b in pairwise([*owners, ranks - 1]))  # consecutive tasks per rank
    most = max(sum(w for w, r in zip(weights, owners, strict=True) if r == rank) for rank in range(ranks))
    assert most <= (total / ranks + max(weights)) * (1 + 1e-12)


@given(weights=WEIGHTS, ranks=st.integers(1, 9), parts=st.integers(1, 5))
def test_distributed_cuts_of_a_chain_agree_with_the_serial_cut(
    weights: list[float], ranks: int, parts: int
) -> None:
    """Each rank has the weights of its own tasks, and the sum of all earlier ones."""
    whole = [float(round(w)) + 1.0 for w in weights]  # whole numbers, so that sums are exact
    before = [0.0, *accumulate(whole)]
    ends = [len(whole) * n // parts for n in range(parts + 1)]
    cut = [rank for lo, hi in pairwise(ends) for rank in shares(whole[lo:hi], before[lo], before[-1], ranks)]
    assert cut == shares(whole, 0.0, before[-1], ranks)


def test_equal_tasks_are_distributed_evenly() -> None:
    assert shares([1.0] * 12, 0.0, 12.0, 4) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("strategy", ["optimal", "row", "1d-y", "2x8", "bisection"])
def test_a_chain_has_each_subdomain_once_and_keeps_to_blocks(strategy: str) -> None:
    """Each half of the chain is one half of the grid, so that consecutive subdomains are close."""
    cut = decompose((48, 48), 16, strategy=strategy)
    curve = chain(cut)
    places = [curve.rank_of(cut.coordinates(n)) for n in range(cut.count)]
    assert sorted(places) == list(range(16))
    halves = [{curve.coordinates(place) for place in half} for half in (range(8), range(8, 16))]
    boxes = [
        tuple(max(c[axis] for c in half) - min(c[axis] for c in half) + 1 for axis in range(2))
        for half in halves
    ]
    assert [a * b for a, b in boxes] == [8, 8]


def test_subdomains_are_sent_and_received_in_the_same_order() -> None:
    cut = decompose((16,), 8)
    sender = redistribution(cut, [0, 1], {5: 2, 3: 2, 4: 1}, {1: 3})
    assert sender.sends == (Piece(2, 3, cut.box(3)), Piece(1, 4, cut.box(4)), Piece(2, 5, cut.box(5)))
    assert sender.receives == (Piece(3, 1, cut.box(1)),)
    receiver = redistribution(cut, [3, 5], {}, {5: 0, 3: 0})
    assert [piece.subdomain for piece in receiver.receives] == [3, 5]
