"""What the program of a case counted: how often, and where first."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from halocline.errors import InputError
from halocline.physics.case import Event, cell_at
from halocline.run.simulation import Simulation
from halocline.study.table import counted

log = logging.getLogger("halocline")


def begin(sim: Simulation, events: Sequence[Event]) -> None:
    """Give the scalars of events their first values.

    Raises
    ------
    InputError
        The program does not set one of them.
    """
    for event in events:
        missing = sorted(event.scalars.keys() - sim.program.scalars_set())
        if missing:
            raise InputError(
                f"event {event.name!r}: the program {sim.program.name!r} does not set {', '.join(missing)}; "
                f"it must set {', '.join(event.scalars)}, made with hc.scalar"
            )
        sim.values |= event.scalars


def found(sim: Simulation, events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """Of each event the count, its share of all cell updates, and the first cell and step of it, or None."""
    told = {}
    for event in events:
        count, cell, step = (sim.values[name] for name in event.scalars)
        updates = sim.grid.size * sim.steps
        told[event.name] = {
            "count": int(count),
            "share": count / updates if updates else 0.0,
            "first_cell": cell_at(cell, sim.grid.shape) if math.isfinite(cell) else None,
            "first_step": int(step) if math.isfinite(step) else None,
        }
    return told


def warn(events: Sequence[Event], told: Mapping[str, Mapping[str, Any]]) -> None:
    """Warn of those that happened too often."""
    for event in events:
        share = told[event.name]["share"]
        if 0 < event.warn_above < share:
            log.warning(
                "%s: acted on %.3g %% of all cell updates, more than %g %%: %s",
                event.name,
                100 * share,
                100 * event.warn_above,
                event.about,
            )


def lines(told: Mapping[str, Mapping[str, Any]], steps: int) -> list[str]:
    """The lines of a summary: one for each event that happened, or one for all that did not."""
    happened = {name: each for name, each in told.items() if each["count"]}
    if told and not happened:
        return [f"{'events':13} none: {', '.join(told)}"]
    return [f"{name:13} {_told(each, steps)}" for name, each in happened.items()]


def _told(each: Mapping[str, Any], steps: int) -> str:
    text = (
        f"acted on {counted(each['count'], 'cell')} in {counted(steps, 'step')} ({each['share']:.2g} of all)"
    )
    if each["first_cell"] is None or each["first_step"] is None:
        return text
    return f"{text}, first at cell {tuple(each['first_cell'])} in step {each['first_step']}"
