"""The steps of a program, timed whole and in parts: without messages, without kernels, without overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from halocline.compile.schedule import Loop, Operation, Schedule, Stop
from halocline.lang.clock import ENDLESS
from halocline.lang.program import Program, own_name
from halocline.run.engine.prepared import Prepared, prepare
from halocline.run.fields.fields import Fields

KINDS = {
    "step": {"overlap": True},
    "waiting": {"overlap": False},
    "compute": {"messages": False},
    "exchange": {"kernels": False},
    "neither": {"messages": False, "kernels": False},
}
LIMITS = ("steps", own_name("max_iterations"))  # the scalars that say how many passes are made
LEAST = 0.04  # seconds of one run


class StepBench:
    """The steps of a program, ready to be timed whole and in parts; all ranks make it, and call its methods.

    Parameters
    ----------
    fields : Fields
        Of a problem that was made for this alone: they hold nonsense afterwards.
    program : Program
        Its steps or iterations.
    """

    def __init__(self, fields: Fields, program: Program) -> None:
        self.values = {**fields.domain.grid.scalar_values(), **fields.values, **ENDLESS}
        schedule = prepare(fields.store, program, (*self.values, *LIMITS)).schedule
        self.prepared = Prepared(fields.store, endless(schedule), "overlap")
        self.passes = 1

    def calibrate(self) -> None:
        """Find out how many steps make a run that is long enough to be timed."""
        self.run()
        self.passes = max(3, math.ceil(LEAST / self.run()))

    def run(self, **kind: bool) -> float:
        """The seconds of one step on the slowest rank; `kind` as `KINDS` has it, with overlap as the problem
        was asked to run where it says nothing."""
        self.prepared.store.fill(1.0)  # so that no number grows out of bounds from one run to the next
        kind = {"overlap": self.prepared.domain.how.overlap is not False, **kind}
        limits = dict.fromkeys(LIMITS, float(self.passes))
        return self.prepared.timed({**self.values, **limits}, **kind) / self.passes


def endless(schedule: Schedule) -> Schedule:
    """The same sweeps, with no condition that ends them but the limit of passes."""

    def without(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            replace(operation, until=None, body=without(operation.body))
            if isinstance(operation, Loop)
            else operation
            for operation in operations
            if not isinstance(operation, Stop)
        )

    return replace(schedule, operations=without(schedule.operations))
