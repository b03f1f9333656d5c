"""The loop that advances a state, in steps of time or in iterations of a solve."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

from halocline.compile.schedule import AROUND
from halocline.lang.clock import Clock
from halocline.lang.program import Program
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.fields import Fields
from halocline.run.fields.state import State


class Advancing(ABC):
    """State, and the program that advances it in steps. All ranks call its methods.

    Parameters
    ----------
    fields : Fields
        Fields of the state.
    program : Program
    prepared : Prepared
        The program, ready to run.
    timed : bool
        True where steps lead to a time.

    Attributes
    ----------
    state : State
    ran_with : dict of str to float
        Parameters that belong to the scalars which one step leaves for the next.
    """

    def __init__(self, fields: Fields, program: Program, prepared: Prepared, *, timed: bool = False) -> None:
        self.fields, self.program, self.prepared, self.timed = fields, program, prepared, timed
        self.state = State(fields.store, fields.values)
        self.ran_with: dict[str, float] = {}

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """Clock with the time and step reached; it decides which times count as reached."""

    @property
    def time(self) -> float:
        """Simulated time reached."""
        return 0.0

    @property
    @abstractmethod
    def step(self) -> int:
        """Number of steps done."""

    # --- scalars ---

    @property
    def _machine_scalars(self) -> set[str]:
        """Names of the scalars that the grid and the machine determine."""
        return {*self.fields.grid.scalar_values(), AROUND}

    def scalars(self) -> dict[str, float]:
        """Return all scalars of the program except those of grid and machine.

        Another thread may call this during a run: some scalars may then be of a later step than others.
        """
        left_out = self._machine_scalars
        return {name: value for name, value in self.prepared.scalars().items() if name not in left_out}

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set scalars of the program, also those that only its statements set."""
        left_out = self._machine_scalars
        self.prepared.set_scalars({name: value for name, value in values.items() if name not in left_out})

    def use(self, prepared: Prepared) -> None:
        """Continue with another program that reads and sets the same scalars."""
        scalars = self.scalars()
        self.prepared = prepared
        self.set_scalars(scalars)

    # --- running ---

    def advance(
        self,
        until: float,
        pause: float,
        last: float,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Run until a time or a step, and check the result now and then.

        Parameters
        ----------
        until : float
            The last step is shortened to end at this time.
        pause : float
            No step begins at this time or later, where the time step varies; at most `until`.
        last : float
            The number of steps that is not exceeded.
        on_progress : callable, optional
            Called with the number of steps done, a few times a second, from another thread.

        Raises
        ------
        RunError
            A field is not finite, or the time step is not positive.
        KeyboardInterrupt
        """
        total: Outcome | None = None
        is_over = False
        while not is_over:
            before = self.step
            steps = min(last - before, self.unchecked(until))
            inputs = self.inputs(until, pause, steps)
            report = None if on_progress is None else partial(_report, on_progress, before)
            outcome = self.take(inputs, self.prepared.run(inputs, report))
            total = outcome if total is None else total.followed_by(outcome)
            self.check(before, outcome)
            ended = outcome.reason != "completed" or outcome.loops[0] == "condition"
            is_over = ended or self.step >= last or self.clock.has_reached(until)
        assert total is not None
        return total

    def unchecked(self, until: float) -> float:
        """Return the number of steps, on the way to a time, until the result is checked."""
        return math.inf

    @abstractmethod
    def inputs(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run; see `advance`."""

    @abstractmethod
    def take(self, inputs: Mapping[str, float], outcome: Outcome) -> Outcome:
        """Take over the result of a run with these inputs."""

    @abstractmethod
    def check(self, before: int, outcome: Outcome) -> None:
        """Raise an error where the steps after step `before` failed."""


def _report(on_progress: Callable[[int], None], before: int, done: int) -> None:
    on_progress(before + done)
