"""Overlap of computation and messages: the automatic choice, and the hidden part of the exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.run.tuning.overlap import LEAST, MOST, ROUNDS, OverlapTrial


def decided(times: dict[bool, list[float]], sweeps: int = 2) -> OverlapTrial:
    """Return a finished choice, given the times of its pieces with and without overlap."""
    trial = OverlapTrial("auto")
    trial.note(LEAST, 1)
    remaining = {kind: list(kind_times) for kind, kind_times in times.items()}
    while trial.open:
        trial.note(remaining[trial.piece()[0]].pop(0), sweeps)
    assert not any(remaining.values())
    return trial


@pytest.mark.parametrize(("slower", "on"), [(1.1, True), (0.9, False)])
def test_the_median_time_determines_the_choice(slower: float, on: bool) -> None:
    """One slow piece of either kind does not change the choice."""
    with_it = [1.0, 50.0, 1.2, 0.8, 1.0]
    choice = decided({True: with_it, False: [slower * t for t in reversed(with_it)]}).choice
    assert choice.on is on
    assert (choice.seconds_on, choice.seconds_off) == (0.5, pytest.approx(0.5 * slower))
    assert str(choice).startswith(
        f"{'on' if on else 'off'}, decided by measurement: 500 ms per sweep with overlap"
    )


def test_measured_parts_alternate_in_both_orders() -> None:
    trial, kinds = OverlapTrial("auto"), []
    assert trial.piece() == (True, 1)
    trial.note(LEAST / 10, 1)
    while trial.open:
        on, passes = trial.piece()
        assert passes == 10
        kinds.append(on)
        trial.note(1.0, 1)
    assert kinds == [True, False, False, True] * 2 + [True, False]
    assert kinds.count(True) == kinds.count(False) == ROUNDS


@pytest.mark.parametrize(("first", "passes"), [(0.0, MOST), (LEAST / 1000, MOST), (LEAST, 1), (60.0, 1)])
def test_the_time_determines_the_passes_of_a_part(first: float, passes: int) -> None:
    trial = OverlapTrial("auto")
    trial.note(first, 1)
    assert trial.piece()[1] == passes


def test_long_inner_loops_are_not_weighted_more() -> None:
    trial = OverlapTrial("auto")
    trial.note(LEAST, 1)
    while trial.open:
        on, _ = trial.piece()
        trial.note(*((3.0, 30) if on else (1.1, 10)))
    assert trial.choice.on


def heat(**options: Any) -> hc.Simulation:
    grid = hc.Grid((24, 20), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(
        grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-4, threads=1, **options
    )
    sim[T] = lambda x, y: np.sin(2 * np.pi * x) + y
    return sim


def test_one_rank_measures_nothing() -> None:
    sim = heat()
    assert str(sim.run(steps=200).overlap) == "on, since there is one rank"
    assert str(heat(overlap=False).run(steps=2).overlap) == "off, as requested"
    with pytest.raises(InputError, match="overlap 'often': expected"):
        heat(overlap="often")


@pytest.mark.ranks(2, 3, long=(3,))
def test_the_choice_is_measured_once_and_the_same_on_all_ranks() -> None:
    from mpi4py import MPI

    sim = heat(methods="mpi")
    first = sim.run(steps=3)
    assert str(first.overlap) == "on, not decided: the run was too short to measure it"
    later = sim.run(steps=1500)
    assert sim.steps == 1503
    assert later.loops == ("limit",)
    assert later.overlap.reason.startswith("decided by measurement")
    assert later.overlap.on == (later.overlap.seconds_on <= later.overlap.seconds_off)
    assert min(later.overlap.seconds_on, later.overlap.seconds_off) > 0
    again = sim.run(steps=5)
    assert again.overlap == later.overlap
    choices = MPI.COMM_WORLD.allgather(later.overlap)
    assert choices == choices[:1] * len(choices)
    same = heat(methods="mpi", overlap=False)
    same.run(steps=1508)
    assert same.checksum("T") == sim.checksum("T")


@pytest.mark.ranks(2)
def test_the_choice_is_made_over_many_short_runs() -> None:
    """The choice is also made over many short runs, as with a callback after every step."""
    sim = heat(methods="mpi")
    for _ in range(40):
        last = sim.run(steps=1)
    assert last.overlap.reason.startswith("decided by measurement")


@pytest.mark.ranks(2)
def test_a_solve_in_parts_has_the_same_history() -> None:
    """The measurement within the single loop of a solve does not change its history."""
    outcomes = []
    for overlap in ("auto", True):
        grid = hc.Grid((255, 255), walls="node")
        u = grid.field("u", boundary=hc.Value(0))
        solution = hc.solve(
            lambda u: -hc.laplacian(u),
            u,
            lambda x, y: hc.sin(3 * x) * (1 - y),
            rtol=1e-12,
            threads=1,
            overlap=overlap,
        )
        norms = [*solution.residuals.tolist(), solution.true_residual]
        outcomes.append((solution.iterations, norms, solution.fields.checksum(u)))
        assert solution.residual_relative <= 1e-12
        assert solution.reason == "rounding limit"  # b - A x stays at 1.6e-11
        assert solution.overlap.reason.startswith("decided" if overlap == "auto" else "as requested")
    assert outcomes[0] == outcomes[1]


@pytest.mark.ranks(2)
def test_a_program_without_messages_measures_nothing() -> None:
    grid = hc.Grid((12, 10), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=1e-3, threads=1)
    sim[T] = 1.0
    assert str(sim.run(steps=5).overlap) == "on, since nothing is exchanged"
