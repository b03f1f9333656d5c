"""Timer of the steps of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halocline.compile.schedule import Loop, Operation, Schedule, Stop
from halocline.lang.clock import ENDLESS
from halocline.lang.program import Program, internal_name
from halocline.problems.record import Timing
from halocline.run.engine.prepare import prepare, prepare_schedule
from halocline.run.engine.prepared import KINDS, PassTimer
from halocline.run.fields.fields import Fields
from halocline.run.measurements.energy import EnergyMeter

LIMITS = ("steps", internal_name("max_iterations"))  # scalars that set the number of passes of the loop


class StepBench(PassTimer):
    """Timer of the steps or iterations of a program; all ranks construct it and call its methods.

    Parameters
    ----------
    fields : Fields
        Fields of a problem that is used only for the timing; they are invalid afterwards.
    program : Program
        Program of a step or iteration.
    """

    def __init__(self, fields: Fields, program: Program) -> None:
        values = {**fields.values, **ENDLESS}
        schedule = prepare(fields.store, program, (*values, *LIMITS)).schedule
        super().__init__(prepare_schedule(fields.store, endless(schedule), "overlap"), LIMITS, values)

    def seconds(self, passes: int, **kind: bool) -> float:
        """Return the seconds for a number of passes, with fields initially 1; see `PassTimer.seconds`."""
        self.prepared.store.fill(1.0)  # values do not grow over repeated runs
        return super().seconds(passes, **kind)


def part_timing(fields: Fields, program: Program, kind: str, steps: int, warm_up: int) -> Timing:
    """Return the timing of a part of each step (see `KINDS`); all ranks call this."""
    bench = StepBench(fields, program)
    meter = EnergyMeter(fields.domain.comm, fields.domain.devices)
    bench.passes = max(1, warm_up)
    bench.run(**KINDS[kind])
    bench.passes = steps
    with meter.on():
        seconds = bench.run(**KINDS[kind]) * steps
    return Timing(seconds, seconds, steps, meter.total)


def endless(schedule: Schedule) -> Schedule:
    """Return the schedule without stop conditions, except the limit of passes."""

    def without(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            replace(operation, until=None, body=without(operation.body))
            if isinstance(operation, Loop)
            else operation
            for operation in operations
            if not isinstance(operation, Stop)
        )

    return replace(schedule, operations=without(schedule.operations))
