"""What a checkpoint holds of a session beside its fields, and how a session takes it over.

With the same program, a session that has taken over a state goes on with the same bits as the one that left
it, on whatever ranks and devices.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from halocline import __version__
from halocline.errors import InputError
from halocline.lang import equations
from halocline.lang.blocks import Blocks
from halocline.lang.clock import STATE, WANTED_STEP
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.lang.values import json_value
from halocline.run.fields.fields import Fields
from halocline.run.fields.state import State
from halocline.run.host.command_line import command_line
from halocline.run.output.saved import Saved
from halocline.run.output.statistics import PREFIX

SHOWN = 8  # lines of a difference between two programs
DT = "dt"  # a parameter too, where it is a number


class OtherProgramError(InputError):
    """A checkpoint was left by another program than the one that is to go on from it."""


class Resumable(Protocol):
    """What checkpoints are of: a state, and the program that advances it.

    Attributes
    ----------
    fields : Fields
    state : State
    ran_with : dict of str to float
        The parameters that what is left for the next step is of.
    """

    fields: Fields
    state: State
    ran_with: dict[str, float]

    @property
    def program(self) -> Program:
        """What advances it."""

    @property
    def time(self) -> float:
        """The simulated time reached."""

    @property
    def step(self) -> int:
        """Steps, or iterations, done so far."""

    @property
    def timed(self) -> bool:
        """Whether it advances in time, and not in steps alone."""

    def scalars(self) -> dict[str, float]:
        """All scalars of the program."""

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, those too that only its statements set."""


def identity(grid: Grid, program: Program) -> dict[str, str]:
    """What must be the same for a run to go on, as texts."""
    return {
        "grid": equations.grid_text(grid),
        "fields": equations.fields(grid, program),
        "equations": equations.equations(program),
    }


def facts(session: Resumable, parameters: Mapping[str, float], also: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint of a session holds beside its fields; for JSON.

    Parameters
    ----------
    parameters : mapping of str to float
        As the run was given them; it may have changed them since.
    also : mapping
        Of the user of the session.
    """
    state, blocks = session.state, session.fields.store.blocks
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "command": command_line(),
        "identity": identity(session.fields.grid, session.program),
        "parameters": _exact(parameters),
        "time": session.time.hex(),
        "values": _exact(state.values),
        # what statements leave for the next step, and no other run of the program is given
        "scalars": _exact(session.scalars()),
        "ran_with": _exact(session.ran_with),
        "blocks": None if blocks is None else {"counts": blocks.counts, "active": blocks.active.hex()},
        **_copied(also),  # as it is now: it is written while the run goes on
    }


def _copied(also: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(also), allow_nan=False, default=json_value))
    except (TypeError, ValueError) as error:
        raise InputError(f"notes of a checkpoint cannot be written as JSON: {error}") from None
    return found


def check(saved: Saved, grid: Grid, program: Program) -> None:
    """Raise InputError where another program wrote a checkpoint; the message shows the differences.

    The grid must have all fields of the checkpoint.
    """
    theirs = saved.facts["identity"]
    # earlier versions of Halocline count time with other statements
    is_older = saved.facts["values"].keys().isdisjoint(STATE)
    for what, ours in identity(grid, program).items():
        there, here = str(theirs.get(what)), ours
        if is_older:
            there, here = equations.without_time(there), equations.without_time(here)
        if there != here:
            verb = "differs" if what == "grid" else "differ"
            lines = "\n".join(_difference(there, here))
            raise OtherProgramError(
                f"checkpoint {saved.folder} is of another program: its {what} {verb} (-: there, +: here)\n"
                f"{lines}"
            )
    for name, described in _fields(saved).items():
        field = grid.fields.get(name)
        if field is None or (field.dtype, field.location) != (described["dtype"], described["location"]):
            there = f"{described['dtype']}, {described['location']}"
            here = "none" if field is None else f"{field.dtype}, {field.location}"
            raise InputError(f"checkpoint {saved.folder} has a field {name!r} ({there}); here it is {here}")


def _difference(theirs: str, ours: str) -> Iterator[str]:
    """The lines that differ, shortened."""
    found = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), lineterm="", n=0)
    lines = [line for line in found if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:SHOWN]:
        yield f"  {line}" if len(line) < 200 else f"  {line[:200]}..."
    if len(lines) > SHOWN:
        yield f"  and {len(lines) - SHOWN} more lines"


def changed(
    saved: Saved, parameters: Mapping[str, float], change: Collection[str]
) -> dict[str, tuple[float, float]]:
    """The parameters that are changed on purpose, each with its value then and now.

    Parameters
    ----------
    parameters : mapping of str to float
        As they are given here.
    change : collection of str
        Those that may differ from what the checkpoint was left with.

    Raises
    ------
    InputError
        Others differ.
    """
    then = {name: float.fromhex(text) for name, text in saved.facts["parameters"].items()}
    if unknown := sorted({*then} ^ {*parameters}):
        raise InputError(
            f"checkpoint {saved.folder} is of another program: parameter {unknown[0]} is "
            f"{'only there' if unknown[0] in then else 'only here'}"
        )
    differ = {name: (then[name], now) for name, now in parameters.items() if then[name] != now}
    for name, (before, now) in differ.items():
        if name not in change:
            raise InputError(
                f"parameter {name} is {now!r}, but checkpoint {saved.folder} was left with {before!r}: give "
                f"the same, or change it on purpose (change=[{name!r}], --set {name}={now!r})"
            )
    return differ


def _fields(saved: Saved) -> dict[str, dict[str, str]]:
    """Those of a checkpoint without what outputs count, which is theirs to take over."""
    return {n: d for n, d in saved.facts["fields"].items() if not n.startswith(PREFIX)}


def take_over(session: Resumable, saved: Saved, changes: Mapping[str, tuple[float, float]]) -> None:
    """Set a session to the state of a checkpoint, except for changed parameters; all ranks call this."""
    grid = session.fields.grid
    store = session.fields.store
    fields = [grid.fields[name] for name in _fields(saved)]
    session.fields.load(fields, lambda field: saved.fetch(store, field))
    if changes:
        session.fields.forget_walls()
    values = session.state.values
    saved_values = {name: v for name, v in saved.facts["values"].items() if not name.startswith(PREFIX)}
    for name in STATE:
        values.pop(name, None)
    if DT in changes:  # count steps of the new length from here on
        saved_values = {name: v for name, v in saved_values.items() if name not in STATE}
    values.update(_numbers(saved_values))
    values.update({WANTED_STEP if name == DT else name: now for name, (_, now) in changes.items()})
    session.ran_with = _numbers(saved.facts["ran_with"])
    session.set_scalars(_numbers(saved.facts["scalars"]))


def blocks_of(saved: Saved, grid: Grid) -> Blocks | None:
    """Which blocks were active; None where the grid has none."""
    found = saved.facts.get("blocks")
    if found is None:
        return None
    return Blocks(grid.shape, tuple(found["counts"]), bytes.fromhex(found["active"]))


def _exact(values: Mapping[str, float]) -> dict[str, str]:
    """Numbers as texts that keep every bit."""
    return {name: float(value).hex() for name, value in values.items()}


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}
