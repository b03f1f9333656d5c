"""Intervals: steps, simulated time or wall-clock time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from courses import heat
from halocline.errors import InputError
from halocline.run.host.streams import say_once
from halocline.run.output.every import Every


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (hc.steps(5), Every(steps=5)),
        ("5 steps", Every(steps=5)),
        ("1 step", Every(steps=1)),
        (" 12steps ", Every(steps=12)),
        (5, Every(steps=5)),
        (np.int64(5), Every(steps=5)),
        (5.0, Every(time=5.0)),
        ("5 min", Every(seconds=300.0)),
    ],
)
def test_an_interval_is_steps_simulated_time_or_wall_clock_time(interval: Any, expected: Every) -> None:
    assert Every.parse("every", interval) == expected


@pytest.mark.parametrize(
    "interval",
    [
        *(0, "0 steps", "-1 steps", "2.5 steps", "steps", "5", "", None, True, [5]),
        *(2**60, f"{2**60} steps", "9" * 5000 + " steps"),
    ],
)
def test_invalid_intervals_are_rejected_with_accepted_forms(interval: Any) -> None:
    with pytest.raises(InputError, match=r"^every is .* steps"):
        Every.parse("every", interval)


@pytest.mark.parametrize("count", [0, -1, 2.5, "5", None, True])
def test_a_number_of_steps_is_a_positive_integer(count: Any) -> None:
    with pytest.raises(InputError, match=r"^steps is .*; expected a whole number from 1"):
        hc.steps(count)


@pytest.mark.parametrize("place", ["run", "output", "checkpoint"])
def test_a_bare_number_of_steps_warns_once(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def run(sim: hc.Simulation, every: Any) -> None:
        if place == "run":
            sim.run(steps=4, every=every, callback=calls[-1].append)
        elif place == "output":
            sim.run(steps=4, output=hc.Output(tmp_path / "T.zarr", every=every, overwrite=True))
        else:
            sim.run(steps=4, checkpoint=hc.Checkpoint(tmp_path / "c", every=every, keep=9, overwrite=True))

    sim, calls = heat(), list[Any]()
    say_once.cache_clear()
    caplog.clear()
    for every in (hc.steps(2), "2 steps", 2, 2):
        sim.start_new_run()
        calls.append([])
        run(sim, every)
    assert [len(steps) for steps in calls] == [2 if place == "run" else 0] * 4
    warnings = [
        r.getMessage()
        for r in caplog.records
        if "an integer interval such as 5 counts steps" in r.getMessage()
    ]
    assert len(warnings) == 1
    assert "hc.steps(5)" in warnings[0]
    assert "later release rejects" in warnings[0]
