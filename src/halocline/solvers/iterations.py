"""Iterations of a linear solve, as steps that advance its fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.lang.clock import Clock, VaryingStepClock
from halocline.lang.program import Program, own_name
from halocline.lang.stepping import Stepping
from halocline.run.engine.prepared import Outcome, Prepared
from halocline.run.fields.fields import Fields
from halocline.run.fields.session import Session

REACHED = "reached"  # reason of a run that ends with the tolerance
MOST = own_name("max_iterations")


class Iterations(Session):
    """Iterations of a method, and the vectors and scalars of it. All ranks call its methods.

    Parameters
    ----------
    fields : Fields
    program : Program
        The method: some statements, then a loop.
    prepared : Prepared
        The same, ready to run.
    values : mapping of str to float
        Scalars of the solve: parameters and the tolerance.
    continued : callable
        Returns the program that continues the loop after a pause, ready to run.
    judge : callable
        Called with the outcome of each run and the iterations done; raises the error that ended the run.

    Attributes
    ----------
    history : array (step, recorded scalars)
    """

    def __init__(
        self,
        fields: Fields,
        program: Program,
        prepared: Prepared,
        values: Mapping[str, float],
        continued: Callable[[], Prepared],
        judge: Callable[[Outcome, int], None],
    ) -> None:
        super().__init__(fields, Stepping(program, None, None, False, frozenset()), prepared)
        self.history: NDArray[np.float64] = np.zeros((0, 1))
        self._values, self._continued, self._judge = dict(values), continued, judge
        self._has_begun = False

    @property
    def clock(self) -> Clock:
        """Clock of the iterations, which have no time step."""
        return VaryingStepClock(self.time, self.step, self.time)

    @property
    def time(self) -> float:
        """Time, which iterations do not have."""
        return 0.0

    @property
    def step(self) -> int:
        """Number of iterations done."""
        return len(self.history)

    def go_on_from(self, history: NDArray[np.float64]) -> None:
        """Continue after the iterations of this history."""
        self.history, self._has_begun = history, True
        self.use(self._continued())

    def unchecked(self, until: float) -> float:
        """Return no limit of iterations: the program checks its residual itself."""
        return math.inf

    def inputs(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run; see `Session`."""
        if self._has_begun:
            self.use(self._continued())
        return {**self._values, MOST: steps}

    def take(self, inputs: Mapping[str, float], outcome: Outcome) -> Outcome:
        """Add the history of a run; see `Session`."""
        self._has_begun = True
        self.history = np.concatenate((self.history, outcome.history))
        reached = outcome.reason == "completed" and outcome.loops[0] == "condition"
        return replace(outcome, reason=REACHED) if reached else outcome

    def check(self, before: int, outcome: Outcome) -> None:
        """Raise an error where the method failed; see `Session`."""
        self._judge(outcome, self.step)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a checkpoint, as JSON data."""
        return {"history": [[float(value).hex() for value in row] for row in self.history]}


def history_of(facts: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the history that `Iterations.facts` wrote."""
    rows = [[float.fromhex(text) for text in row] for row in facts["history"]]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1) if rows else np.zeros((0, 1))
