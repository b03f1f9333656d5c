"""What a program counted: how often, and where first."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from halocline.errors import InputError
from halocline.physics.case import Event, cell_at
from halocline.run.simulation.simulation import Simulation

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
    counted = {}
    for event in events:
        count, cell, step = (sim.values[name] for name in event.scalars)
        updates = sim.grid.size * sim.steps
        counted[event.name] = {
            "count": int(count),
            "share": count / updates if updates else 0.0,
            "first_cell": cell_at(cell, sim.grid.shape) if math.isfinite(cell) else None,
            "first_step": int(step) if math.isfinite(step) else None,
        }
    return counted


def too_often(events: Sequence[Event], counted: Mapping[str, Mapping[str, Any]]) -> list[Event]:
    """Those that happened more often than they should."""
    return [event for event in events if 0 < event.warn_above < counted[event.name]["share"]]


def warn(events: Sequence[Event], counted: Mapping[str, Mapping[str, Any]]) -> None:
    """Warn of those that happened too often."""
    for event in too_often(events, counted):
        log.warning(
            "%s: acted on %.3g %% of all cell updates, more than %g %%: %s",
            event.name,
            100 * counted[event.name]["share"],
            100 * event.warn_above,
            event.about,
        )
