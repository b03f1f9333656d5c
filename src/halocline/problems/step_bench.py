"""Timer of the steps of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halocline.compile.schedule import Loop, Operation, Schedule, Stop
from halocline.lang.clock import ENDLESS
from halocline.lang.program import Program, own_name
from halocline.problems.record import Timing
from halocline.run.engine.prepare import prepare, prepare_schedule
from halocline.run.engine.prepared import KINDS, PassTimer
from halocline.run.fields.fields import Fields
from halocline.run.measurements.energy import EnergyMeter

LIMITS = ("steps", own_name("max_iterations"))  # scalars that limit the number of passes


class StepBench(PassTimer):
    """Timer of the steps or iterations of a program. All ranks make it and call its methods.

    Parameters
    ----------
    fields : Fields
        Fields of a problem that was made for this alone: they hold nonsense afterwards.
    program : Program
        Its steps or iterations.
    """

    def __init__(self, fields: Fields, program: Program) -> None:
        values = {**fields.values, **ENDLESS}
        schedule = prepare(fields.store, program, (*values, *LIMITS)).schedule
        super().__init__(prepare_schedule(fields.store, endless(schedule), "overlap"), LIMITS, values)

    def seconds(self, passes: int, **kind: bool) -> float:
        """Return the seconds of some steps, of fields that begin with ones; see `PassTimer.seconds`."""
        self.prepared.store.fill(1.0)  # so that no number grows out of bounds from one run to the next
        return super().seconds(passes, **kind)


def part_timing(fields: Fields, program: Program, kind: str, steps: int, warm_up: int) -> Timing:
    """Return the timing of steps without messages or without kernels, see `KINDS`; all ranks call this."""
    bench = StepBench(fields, program)
    meter = EnergyMeter(fields.domain.comm, fields.domain.devices)
    bench.passes = max(1, warm_up)
    bench.run(**KINDS[kind])
    bench.passes = steps
    with meter.on():
        seconds = bench.run(**KINDS[kind]) * steps
    return Timing(seconds, seconds, steps, meter.total)


def endless(schedule: Schedule) -> Schedule:
    """Return the same sweeps, with no condition that ends them but the limit of passes."""

    def without(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            replace(operation, until=None, body=without(operation.body))
            if isinstance(operation, Loop)
            else operation
            for operation in operations
            if not isinstance(operation, Stop)
        )

    return replace(schedule, operations=without(schedule.operations))
