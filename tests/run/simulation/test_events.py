"""Events that programs count: their scalars, shares and warnings."""

from __future__ import annotations

import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest

from halocline.errors import InputError
from halocline.run.simulation.events import Event, begin, cell_at, counted, too_often, warn

FLOOR = Event("pressure floor", "floor", "energy is not conserved", warn_above=0.01)


def simulation(*scalars: str, steps: int = 0, **values: float) -> Any:
    """Return a stand-in for a simulation of 4 by 5 cells whose program sets scalars."""
    return SimpleNamespace(
        program=SimpleNamespace(name="gas", assigned_scalars=lambda: set(scalars)),
        grid=SimpleNamespace(size=20, shape=(4, 5)),
        steps=steps,
        values=values,
    )


def test_scalars_of_events_start_at_zero_events() -> None:
    sim = simulation(*FLOOR.scalars)
    begin(sim, [FLOOR])
    assert sim.values == {"floor_count": 0.0, "floor_cell": math.inf, "floor_step": math.inf}
    assert counted(sim, [FLOOR])["pressure floor"] == {
        "count": 0, "share": 0.0, "first_cell": None, "first_step": None,
    }  # fmt: skip


def test_a_program_that_sets_no_scalar_of_an_event_is_an_error() -> None:
    sim = simulation("floor_count")
    words = "event 'pressure floor': the program 'gas' does not set floor_cell, floor_step; it must set"
    with pytest.raises(InputError, match=words):
        begin(sim, [FLOOR])
    assert sim.values == {}


def test_an_event_has_its_share_and_its_first_cell() -> None:
    sim = simulation(steps=10, floor_count=4.0, floor_cell=13.0, floor_step=2.0)
    assert counted(sim, [FLOOR])["pressure floor"] == {
        "count": 4, "share": 4 / 200, "first_cell": [2, 3], "first_step": 2,
    }  # fmt: skip
    assert cell_at(0.0, (4, 5)) == [0, 0]


@pytest.mark.parametrize(("share", "often"), [(0.0, False), (0.01, False), (0.011, True)])
def test_a_share_above_the_bound_is_a_warning(
    share: float, often: bool, caplog: pytest.LogCaptureFixture
) -> None:
    counts = {"pressure floor": {"share": share}}
    assert too_often([FLOOR], counts) == ([FLOOR] if often else [])
    assert too_often([Event("pressure floor", "floor", "never warns")], counts) == []
    with caplog.at_level(logging.WARNING, "halocline"):
        warn([FLOOR], counts)
    expected = [
        "pressure floor: active in 1.1 % of all cell updates, above the limit of 1 %: energy is not conserved"
    ]
    assert caplog.messages == (expected if often else [])
