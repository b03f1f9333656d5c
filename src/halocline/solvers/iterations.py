"""The iterations of a linear solve, in pieces: what checkpoints are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halocline.lang.clock import Clock, VaryingStepClock
from halocline.lang.program import Program, own_name
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.fields import Fields
from halocline.run.fields.state import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REACHED = "reached"  # the reason of a piece that ends with the tolerance
MOST = own_name("max_iterations")


class Iterations:
    """Iterations that a method does, and what it carries from one to the next. All ranks call its methods.

    Parameters
    ----------
    fields : Fields
    program : Program
        The method: some statements, then a loop.
    prepared : Prepared
        The same, ready to run.
    values : mapping of str to float
        Scalars that it is given: parameters and the tolerance.
    judge : callable, optional
        Called after each piece with its outcome and the iterations done; raises the error that ended it,
        where one did.

    Attributes
    ----------
    step : int
        Iterations done.
    history : array (step, recorded scalars)
    continued : Prepared or None
        What goes on after a pause.
    running : native engine or None
        What runs now; any thread may ask.
    """

    time, timed = 0.0, False

    def __init__(
        self,
        fields: Fields,
        program: Program,
        prepared: Prepared,
        values: Mapping[str, float],
        continued: Prepared | None = None,
        judge: Callable[[Outcome, int], None] | None = None,
    ) -> None:
        import numpy as np

        self.fields, self.program, self.continued = fields, program, continued
        self.state = State(fields.store, fields.values)
        self.ran_with: dict[str, float] = {}
        self.step = 0
        self.running: Any = None
        self.history: NDArray[np.float64] = np.zeros((0, 1))
        self._start, self._values, self._judge = prepared, dict(values), judge
        self._left: dict[str, float] | None = None  # scalars that the last piece left

    @property
    def prepared(self) -> Prepared:
        """What runs now."""
        if self._left is None:
            return self._start
        if self.continued is None:
            names = (*self.fields.values, *self._values, MOST)
            self.continued = prepare(self.fields.store, self.program.continued(), names)
        return self.continued

    @property
    def clock(self) -> Clock:
        """Clock of the iterations, which have no time step."""
        return VaryingStepClock(self.time, self.step, self.time)

    def scalars(self) -> dict[str, float]:
        """All scalars of the method, after a piece of it."""
        own = self.fields.grid.scalar_values()
        return {name: value for name, value in (self._left or {}).items() if name not in own}

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Go on from these."""
        self._left = dict(values)

    def go_on_from(self, history: NDArray[np.float64]) -> None:
        """Take over the history of the iterations before."""
        self.history, self.step = history, len(history)

    def advance(
        self, until: float, pause: float, last: float, on_progress: Callable[[int], None] | None = None
    ) -> Outcome:
        """Iterate to the tolerance, or up to iteration `last`; the reason is "interrupted" where a signal
        ended them."""
        import numpy as np

        done, prepared = self.step, self.prepared
        report = None if on_progress is None else (lambda count: on_progress(done + count))
        values = {**(self._left or {}), **self._values, MOST: float(last - done)}
        self.running = prepared.engine
        try:
            outcome = prepared.run(values, report)
        finally:
            self.running = None
        self._left = outcome.scalars
        self.history = np.concatenate((self.history, outcome.history))
        self.step += len(outcome.history)
        if self._judge is not None:
            self._judge(outcome, self.step)
        reached = outcome.reason == "completed" and outcome.loops[0] == "condition"
        return replace(outcome, reason=REACHED) if reached else outcome

    def notes(self) -> dict[str, Any]:
        """What a checkpoint holds of them, for JSON."""
        return {"history": [[float(value).hex() for value in row] for row in self.history]}


def history_of(facts: Mapping[str, Any]) -> NDArray[np.float64]:
    """What `Iterations.notes` left."""
    import numpy as np

    rows = [[float.fromhex(text) for text in row] for row in facts["history"]]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1) if rows else np.zeros((0, 1))
