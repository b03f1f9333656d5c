"""Events that a program counts, such as the use of a pressure floor in a cell."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.values import as_name, as_number, identifier

if TYPE_CHECKING:
    from halocline.run.simulation.simulation import Simulation

log = logging.getLogger("halocline")


@dataclass(frozen=True)
class Event:
    """Event that a program counts.

    The program sets three scalars, created with ``hc.scalar``:

    - ``{scalar}_count``: number of cells in which the event occurred; initially 0.
    - ``{scalar}_cell``: index of the first such cell in C order over the grid; initially inf.
    - ``{scalar}_step``: step of the first event; initially inf.

    Parameters
    ----------
    name : str
        Name for messages, such as "pressure floor".
    scalar : str
        Prefix of the names of the scalars.
    about : str
        Effect of the event on the result.
    warn_above : float
        Fraction of all cell updates above which a run warns; 0 for never.

    Raises
    ------
    InputError
        An argument has a wrong type, or `warn_above` is outside 0 to 1.
    """

    name: str
    scalar: str
    about: str
    warn_above: float = 0.0

    def __post_init__(self) -> None:
        as_name(self.name, "name of an event")
        as_name(self.about, f"event {self.name!r}: about")
        scalar = identifier(self.scalar, f"event {self.name!r}: scalar", "floor")
        share = as_number(self.warn_above, f"event {self.name!r}: warn_above")
        if not 0 <= share <= 1:
            raise InputError(f"event {self.name!r}: warn_above is {share:g}; expected a share from 0 to 1")
        object.__setattr__(self, "scalar", scalar)
        object.__setattr__(self, "warn_above", share)

    @property
    def scalars(self) -> dict[str, float]:
        """Scalars that the program sets, by name, with their initial values."""
        return {
            f"{self.scalar}_count": 0.0,
            f"{self.scalar}_cell": math.inf,
            f"{self.scalar}_step": math.inf,
        }


def cell_at(number: float, shape: Sequence[int]) -> list[int]:
    """Return the indices of a cell from its flat index in C order, as returned by `hc.first`."""
    import numpy as np

    return [int(index) for index in np.unravel_index(int(number), tuple(shape))]


def begin(sim: Simulation, events: Sequence[Event]) -> None:
    """Set the scalars of all events to their initial values.

    Raises
    ------
    InputError
        The program does not set one of the scalars.
    """
    for event in events:
        missing = sorted(event.scalars.keys() - sim.program.assigned_scalars())
        if missing:
            raise InputError(
                f"event {event.name!r}: the program {sim.program.name!r} does not set {', '.join(missing)}; "
                f"it must set {', '.join(event.scalars)}, created with hc.scalar"
            )
        sim.values |= event.scalars


def counted(sim: Simulation, events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """Return, for each event, the count, the fraction of all cell updates, and the first cell and step.

    The first cell and step are None if the event did not occur.
    """
    counts = {}
    for event in events:
        count, cell, step = (sim.values[name] for name in event.scalars)
        updates = sim.grid.size * sim.steps
        counts[event.name] = {
            "count": int(count),
            "share": count / updates if updates else 0.0,
            "first_cell": cell_at(cell, sim.grid.shape) if math.isfinite(cell) else None,
            "first_step": int(step) if math.isfinite(step) else None,
        }
    return counts


def too_often(events: Sequence[Event], counts: Mapping[str, Mapping[str, Any]]) -> list[Event]:
    """Return the events whose fraction of cell updates exceeds `warn_above`."""
    return [event for event in events if 0 < event.warn_above < counts[event.name]["share"]]


def warn(events: Sequence[Event], counts: Mapping[str, Mapping[str, Any]]) -> None:
    """Log a warning for each event whose fraction of cell updates exceeds `warn_above`."""
    for event in too_often(events, counts):
        log.warning(
            "%s: active in %.3g %% of all cell updates, above the limit of %g %%: %s",
            event.name, 100 * counts[event.name]["share"], 100 * event.warn_above, event.about,
        )  # fmt: skip


def text(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a line that names the events that have occurred so far; empty if no events are counted."""
    happened = []
    for name, event in counts.items():
        cell, step = event["first_cell"], event["first_step"]
        if event["count"]:
            happened.append(f"{name} in {event['count']} cells, first at {tuple(cell)} in step {step}")
    if not counts:
        return ""
    return f"so far: {'; '.join(happened) or 'no ' + ', no '.join(counts)}"
