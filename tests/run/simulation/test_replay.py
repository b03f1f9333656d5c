"""Report of a run with a value that is not finite: its first step and the terms that caused it."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import halocline as hc
from growing_runs import failure, growing
from halocline.errors import InputError
from halocline.run.fields import session
from halocline.run.fields.session import Session
from halocline.run.simulation import replay
from halocline.run.simulation.replay import FailureReplay
from halocline.run.simulation.simulation import Simulation


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "scheme": hc.RK4(),
            "dt": lambda T: 0.02 / (1.0 + 1e-3 * hc.max(abs(T))),
            "time_step": "delayed",
        },
    ],
    ids=["rk3", "delayed"],
)
def test_the_first_step_and_its_terms_are_found_from_the_last_copy(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    done: list[tuple[int, int]] = []
    store_outcome = Session.store_outcome

    def counted(self: Session, *results: Any) -> Any:
        first = self.step
        outcome = store_outcome(self, *results)
        done.append((first, self.step))
        return outcome

    monkeypatch.setattr(Session, "store_outcome", counted)
    sim = growing(**options)
    text = failure(sim)
    step = int(re.search(r"is (?:nan|-?inf) at cell \(\d+, \d+\) after step (\d+) ", text)[1])
    assert f"was finite after step {step - 1};" in text
    assert f"before step {step}: runaway of T" in text
    # the steps since the copy are repeated, and only once
    first = next(n for n, (_, end) in enumerate(done) if end >= step)
    copied = done[first][0]
    assert copied >= session.FIRST_CHECK
    again = done[first + 1 :]
    assert min(begin for begin, _ in again) == copied
    assert sum(end - begin for begin, end in again) <= done[first][1] - copied + 1
    # the fields have the bits of a run that ends there
    alone = growing(**options)
    alone.run(steps=step - 1)
    assert sim.steps == step - 1
    assert [sim.checksum(f.name) for f in sim.program_fields] == [
        alone.checksum(f.name) for f in alone.program_fields
    ]
    assert len(sim.program_fields) > 1  # includes the arrays of the scheme
    assert np.isfinite(sim.evaluate(hc.max(abs(sim.grid.fields["T"]))))


@pytest.mark.ranks(1, 2, long=(1,))
def test_a_copy_in_a_file_has_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    expected = failure(growing())
    monkeypatch.setattr(replay, "IN_MEMORY", 1)
    assert failure(growing()) == expected
    assert failure(growing(), until=100.0, every=0.5, callback=lambda sim: None) == expected
    short = growing()
    while short.steps < int(re.search(r"after step (\d+) ", expected)[1]) - 1:
        short.run(steps=1)
    assert failure(short, steps=1) == expected


@pytest.mark.ranks(1, 2, long=(1,))
def test_changes_between_runs_are_replayed():
    sim = growing()
    sim.run(steps=100)
    sim["T"] = 2.0  # as a new start from there
    sim.parameters["a"] = 0.5
    text = failure(sim)
    step = int(re.search(r"after step (\d+) ", text)[1])
    assert 100 < step < 128
    assert f"before step {step}: runaway of T" in text


@pytest.mark.ranks(1, 2, long=(1,))
def test_without_a_copy_the_error_explains_the_search(monkeypatch: pytest.MonkeyPatch):
    def full(self: FailureReplay) -> None:
        comm = self.store.domain.comm
        if comm.rank == comm.size - 1:  # only this rank has no space
            raise OSError("No space left on device")

    monkeypatch.setattr(FailureReplay, "_write", full)
    text = failure(growing())
    assert re.search(r"but was finite after step 192;", text)
    assert "no copy of the fields could be stored (No space left on device)" in text
    assert "Run again with --every 1" in text
    assert "before step" not in text


def test_a_copy_that_exceeds_memory_is_not_attempted(monkeypatch: pytest.MonkeyPatch):
    sim = growing()
    monkeypatch.setattr(replay, "native", lambda: SimpleNamespace(available_memory=lambda: 100))
    assert "it takes 0.0 GB of memory, and 0.0 GB are available" in failure(sim)


def test_the_interval_of_finiteness_checks_is_bounded(monkeypatch: pytest.MonkeyPatch):
    checked_steps: list[int] = []
    check_after = Session.check_after
    monkeypatch.setattr(
        Session,
        "check_after",
        lambda self, before: (checked_steps.append(self.step), check_after(self, before)),
    )

    def run_with(seconds: float, share: float) -> list[int]:
        monkeypatch.setattr(session, "CHECK_SECONDS", seconds)
        monkeypatch.setattr(session, "CHECK_SHARE", share)
        checked_steps.clear()
        sim = growing()
        sim.parameters["b"] = 0.0
        sim.parameters["a"] = 0.0
        sim.run(steps=1024)
        return list(checked_steps)

    assert run_with(1e-9, 1e9) == list(range(64, 1025, 64))  # checks as often as possible
    assert run_with(1e9, 1e9) == [64, 192, 448, 960, 1024]  # less time has passed than the limit
    assert run_with(1e-9, 1e-9) == [64, 192, 448, 960, 1024]  # checks exceed their share of the time


def test_terms_with_unknown_arguments_are_rejected():
    grid = hc.Grid((8,), periodic=True)
    T = grid.field("T")
    with pytest.raises(InputError, match="argument 'kappa' is unknown"):
        Simulation(
            grid, lambda: {T: hc.laplacian(T)}, terms=lambda kappa: {}, scheme=hc.RK3(), dt=0.1, threads=1
        )


def test_an_invalid_assigned_value_is_reported_with_its_terms():
    sim = growing()
    sim["T"] = np.where(np.arange(72).reshape(12, 6) == 7, np.nan, 1.0)
    with pytest.raises(InputError, match=r"at cell \(1, 1\) before the run.*\n.*in that cell: growth of T"):
        sim.run(steps=1)
