"""Shares of activities in a trace."""

from __future__ import annotations

import pytest

from halocline.plan.trace import TraceEvent, TraceShares, covered, lanes_of_host


def event(kind: str, begin: float, end: float, rank: int = 0, lane: int = 0) -> TraceEvent:
    return TraceEvent(rank, lane, kind, kind, begin, end)


def test_overlapping_events_are_counted_once() -> None:
    events = [
        event("pack", 0.0, 2.0),
        event("pack", 1.0, 3.0),
        event("pack", 1.2, 1.4),
        event("pack", 5.0, 6.0),
    ]
    assert covered(events) == 4.0
    assert covered([]) == 0.0


def test_shares_of_a_rank_are_computed() -> None:
    events = [
        event("launch", 0.0, 1.0),
        event("pack", 1.0, 3.0, lane=2),
        event("copy", 2.0, 4.0, lane=3),
        event("send", 3.0, 9.0, lane=1),
        event("unpack", 9.0, 10.0, lane=4),
        event("patch", 0.0, 20.0, rank=1),
    ]
    shares = TraceShares.of(events)
    assert (shares.packing, shares.launching) == pytest.approx((0.3, 0.1))
    assert shares.at_once == pytest.approx(5 / 4)  # 5 seconds of work in 4
    assert TraceShares.of([]) == TraceShares(0, 0, 0)


def test_a_rank_has_a_lane_for_each_thread_and_one_for_messages() -> None:
    assert [lane.name for lane in lanes_of_host(2)] == ["thread 0", "thread 1", "messages"]
