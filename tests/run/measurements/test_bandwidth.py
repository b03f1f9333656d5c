"""Bandwidth of several ranks: the rate of the slowest rank, in the best of several rounds."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import pytest

from halocline.native import native
from halocline.run.measurements import bandwidth
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world


@dataclass(frozen=True)
class Planted(Communicator):
    """Communicator of two ranks, whose other rank moves 100 bytes per round in the given times."""

    seconds: Any = None

    def allgather(self, value: Any) -> list[Any]:
        return [value, (100, next(self.seconds))]


def rate(
    monkeypatch: pytest.MonkeyPatch, own_seconds: list[float], other_seconds: list[float]
) -> tuple[float, int]:
    """Return the measured rate for the given durations of rounds on each rank, and the number of rounds."""
    clock, rounds, seconds = 0.0, 0, itertools.cycle(own_seconds)

    def make() -> int:
        nonlocal clock, rounds
        clock += next(seconds)
        rounds += 1
        return 300

    monkeypatch.setattr(bandwidth, "perf_counter", lambda: clock)
    return bandwidth.best_rate(Planted(size=2, seconds=itertools.cycle(other_seconds)), make), rounds


def test_a_round_is_as_fast_as_its_slowest_rank(monkeypatch):
    # Each rank once takes 0.01 s, which would make 40 kB/s together; no round is that fast.
    bytes_per_second, _ = rate(monkeypatch, [0.01, 0.04, 0.02, 0.04], [0.04, 0.01, 0.02, 0.04])
    assert bytes_per_second == pytest.approx(400 / 0.02)


def test_the_number_of_rounds_depends_on_their_duration(monkeypatch):
    assert rate(monkeypatch, [0.0015], [0.002])[1] in (50, 51)
    bytes_per_second, rounds = rate(monkeypatch, [2.0], [1.0])
    assert bytes_per_second == pytest.approx(200)
    assert rounds == bandwidth.FEWEST


def test_a_measurement_after_a_short_run_is_short():
    runs = (0.0, 0.05, 7.0)
    assert [bandwidth.duration_beside(seconds) for seconds in runs] == [
        bandwidth.SHORTEST, 0.05, bandwidth.LONGEST
    ]  # fmt: skip
    rounds = itertools.count(1)

    def make() -> int:
        time.sleep(0.002)
        next(rounds)
        return 1

    bandwidth.best_rate(Communicator(), make, bandwidth.SHORTEST)
    assert bandwidth.FEWEST <= next(rounds) - 1 <= 10


@pytest.mark.ranks(1, 2, long=(1,))
def test_all_ranks_find_the_same_rate_and_none_above_that_of_the_slowest():
    comm = world()
    rounds = itertools.count()

    def make() -> int:
        time.sleep(0.03 if next(rounds) % comm.size == comm.rank else 0.001)
        return 1000

    bytes_per_second = bandwidth.best_rate(comm, make)
    assert comm.allgather(bytes_per_second) == [bytes_per_second] * comm.size
    assert 0 < bytes_per_second <= 1000 * comm.size / 0.03 * 1.001
    triad = bandwidth.triad_bandwidth(comm, 1, 2**20)
    assert comm.allgather(triad) == [triad] * comm.size
    assert triad > 0


def test_streams_report_the_moved_bytes():
    streams = native().Streams(2, 2**20)
    assert streams.triad(1) == 3 * 2**19
    assert streams.triad(5) == 5 * streams.triad(1)
    assert streams.copy(4) == 4 * 2 * 2**19
    with pytest.raises(ValueError, match="0 threads"):
        native().Streams(0, 2**20)
    with pytest.raises(MemoryError, match="measuring bandwidth"):
        native().Streams(1, 2**60)
