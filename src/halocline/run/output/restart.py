"""Restart of a session from a checkpoint.

With the same program, a restarted session computes the same bits as the session that left the checkpoint, on
any number of ranks and devices.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from halocline.errors import InputError
from halocline.lang import equations
from halocline.lang.blocks import Blocks
from halocline.lang.clock import STATE, WANTED_STEP
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.run.fields.fields import Fields
from halocline.run.fields.state import State
from halocline.run.output.saved import Saved
from halocline.run.output.statistics import PREFIX

SHOWN = 8  # lines of a difference between two programs
DT = "dt"  # a parameter too, where it is a number


class OtherProgramError(InputError):
    """Error for a checkpoint of another program."""


class Resumable(Protocol):
    """Session that a checkpoint describes: a state, and the program that advances it.

    Attributes
    ----------
    fields : Fields
    state : State
    ran_with : dict of str to float
        Parameters of the values that the last step left for the next one.
    """

    fields: Fields
    state: State
    ran_with: dict[str, float]

    @property
    def program(self) -> Program:
        """Program that advances the state."""

    @property
    def time(self) -> float:
        """Simulated time that the session has reached."""

    @property
    def step(self) -> int:
        """Number of steps or iterations done."""

    @property
    def timed(self) -> bool:
        """True where the session advances in time, and not in steps alone."""

    def scalars(self) -> dict[str, float]:
        """Return all scalars of the program."""

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, including those that only its statements set."""


def identity(grid: Grid, program: Program) -> dict[str, str]:
    """Return the texts that must be equal for a run to restart."""
    return {
        "grid": equations.grid_text(grid),
        "fields": equations.fields(grid, program),
        "equations": equations.equations(program),
    }


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
    """Yield the lines that differ, shortened."""
    diff = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), lineterm="", n=0)
    lines = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:SHOWN]:
        yield f"  {line}" if len(line) < 200 else f"  {line[:200]}..."
    if len(lines) > SHOWN:
        yield f"  and {len(lines) - SHOWN} more lines"


def changed(
    saved: Saved, parameters: Mapping[str, float], change: Collection[str]
) -> dict[str, tuple[float, float]]:
    """Return the parameters that change, each with its value in the checkpoint and its new value.

    Parameters
    ----------
    parameters : mapping of str to float
        Parameters of this run.
    change : collection of str
        Parameters that may differ from those of the checkpoint.

    Raises
    ------
    InputError
        Another parameter differs.
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
    """Return the fields of a checkpoint except the statistics, which outputs take over."""
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
    """Return the active blocks of a checkpoint; None where the grid has none."""
    blocks = saved.facts.get("blocks")
    if blocks is None:
        return None
    return Blocks(grid.shape, tuple(blocks["counts"]), bytes.fromhex(blocks["active"]))


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}
