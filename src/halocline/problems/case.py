"""Cases run by their name and measured: what `halocline run CASE` reports."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halocline.archive.arrays import Writing
from halocline.compile.schedule import Schedule
from halocline.errors import HaloclineError, InputError, RunError
from halocline.io.figure import Figure
from halocline.lang import trace
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.program import Program, ProgramFunction
from halocline.lang.stepping import program_of
from halocline.physics import events as counters
from halocline.physics.case import Check, Checked, Setup
from halocline.physics.cases import case_named
from halocline.problems.live import LiveLine
from halocline.problems.record import Timing, checksums, recorded
from halocline.problems.result import Result
from halocline.problems.step_bench import StepBench
from halocline.ranges import SOME_STEPS, STEPS
from halocline.run.engine.prepared import KINDS, NO_STEP, Outcome
from halocline.run.fields.fields import Fields
from halocline.run.measurements.bandwidth import bandwidth
from halocline.run.measurements.energy import EnergyMeter
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import steps as number_of_steps
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved, newest
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.linear import Solution
from halocline.solvers.schemes import SCHEMES
from halocline.words import joined, method

log = logging.getLogger("halocline")

# parts of a step that can be timed alone; of KINDS
PARTS = {"compute": "computing alone, no messages", "exchange": "the exchange alone, no kernels"}


@dataclass(frozen=True)
class _Goal:
    """Where a run of a case goes, and what happens on the way."""

    sim: Simulation
    until: float | None
    every: int | None
    output: Output | Sequence[Output]
    checkpoint: Checkpoint | None
    last: int | None
    bound: float | None  # cells a second that memory lets pass

    def open(self, steps: int | None) -> bool:
        """Whether there is something left to do up to a step."""
        return (steps is None or self.sim.steps < steps) and (
            self.until is None or self.sim.time < self.until
        )

    def run(
        self,
        steps: int | None,
        callback: Callable[[Simulation], None],
        on_progress: Callable[[int], None] | None,
    ) -> Outcome:
        """Run up to a step at most."""
        return self.sim.run(
            until=self.until,
            steps=None if steps is None else steps - self.sim.steps,
            every=None if self.every is None else number_of_steps(self.every),
            callback=callback,
            output=self.output,
            checkpoint=self.checkpoint,
            on_progress=on_progress,
        )


class CaseRun:
    """A case ready to run: its numbers are checked, and its fields are known.

    Parameters
    ----------
    name : str
    n : sequence of int, optional
        Cells along the first axis, the others in the case's own proportion; or along each axis.
    given : mapping of str to float or str, optional
        Parameters that are not those by default.
    dim : int, optional
        Axes, for a case that can have several numbers of them.
    order : int, optional
        Of the differences in space; by default that of the case.
    scheme : str, optional
        How time is integrated; "rk3" by default. A case that is a program takes neither order nor scheme.

    Raises
    ------
    InputError
        A case, parameter or scheme that is unknown; numbers that cannot be; axes that the case does not have.

    Examples
    --------
    >>> from halocline.problems.case import CaseRun
    >>> run = CaseRun("alfven-decay", [16], {"nu": 0.1, "eta": 0.1})
    >>> run.run(steps=4).record.cells
    16
    """

    def __init__(
        self,
        name: str,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        *,
        dim: int | None = None,
        order: int | None = None,
        scheme: str | None = None,
    ) -> None:
        self.name, self.case = name, case_named(name)
        if self.case.linear:
            raise InputError(f"case {name} is a linear problem; see halocline.problems.linear.LinearCase")
        if scheme is not None and scheme not in SCHEMES:
            raise unknown("scheme", scheme, list(SCHEMES))
        self.order = self.case.order if order is None else order
        trace.check_order(self.order)
        self.values = self.case.values(given or {})
        self.shape = self.case.shape_of(n, dim)
        with trace.order(self.order):
            setup = self.case.setup(self.shape, self.values)
        assert isinstance(setup, Setup)
        self.setup = setup
        self.is_program = isinstance(self.setup.equations, ProgramFunction)
        self.scheme = self.setup.scheme_name if self.is_program else scheme or "rk3"
        if self.is_program:
            self._refuse("order", order)
            self._refuse("scheme", scheme)

    @classmethod
    def of_checkpoint(
        cls,
        name: str,
        path: str | Path,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        **options: Any,
    ) -> CaseRun:
        """The case that left a checkpoint, with its cells, parameters, order and scheme where others are not
        given.

        Raises
        ------
        InputError
            There is no checkpoint, or that of another case; and as for the case itself.
        """
        saved = Saved(newest(Path(path)))
        left = saved.facts.get("case")
        if left is None or left["name"] != name:
            whose = "no case" if left is None else f"case {left['name']}"
            raise InputError(f"checkpoint {saved.folder} is of {whose}, not of {name}")
        for key in ("order", "scheme"):
            now = options.get(key)
            if now is not None and left[key] is not None and now != left[key]:
                raise InputError(
                    f"{key} is {now}, but checkpoint {saved.folder} is of a run with {left[key]}: leave it "
                    "out"
                )
        same = {key: left[key] for key in ("order", "scheme") if options.get(key) is None}
        return cls(
            name, left["n"] if n is None else n, {**left["given"], **(given or {})}, **{**options, **same}
        )

    def _refuse(self, what: str, given: object) -> None:
        """Raise InputError for what a program does not let one choose."""
        if given is not None:
            own = "" if self.scheme is None else f", {self.scheme}"
            raise InputError(
                f"{what} is {given}, but {self.name} is a program with a scheme of its own{own}: "
                f"leave {what} out"
            )

    unit, one_pass = "step", "a step"  # of its loop

    @property
    def grid(self) -> Grid:
        """Where it runs."""
        return self.setup.grid

    @property
    def fields(self) -> tuple[Field, ...]:
        """Those that the case starts from."""
        return tuple(self.setup.start)

    @property
    def method(self) -> str:
        """Order and scheme, in words."""
        return method(None if self.is_program else self.order, self.scheme)

    @property
    def until(self) -> float | None:
        """The time that a run goes to by default; None where it is steps that end it."""
        return self.case.until if self.setup.until is None else self.setup.until

    @property
    def shown(self) -> dict[str, Any]:
        """What pictures show, by name: quantities that the case derives, or else its fields."""
        with trace.order(self.order):
            derived = dict(self.setup.derived())
        return derived or {f.name: f for f in self.fields}

    @property
    def program(self) -> Program:
        """What its simulation runs, traced without memory."""
        return program_of(self.setup.grid, self.setup.equations, **self._equations)

    @property
    def _equations(self) -> dict[str, Any]:
        """Of a simulation, beside grid and equations."""
        return {
            "parameters": self.setup.parameters,
            "scheme": None if self.is_program else SCHEMES[str(self.scheme)],
            "dt": self.setup.dt,
            "time_step": self.setup.time_step,
            "order": self.order,
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The diagnostics that tell most."""
        return self.setup.shown

    @property
    def ends(self) -> tuple[str, ...]:
        """Reasons for which it may end by itself, and all is well."""
        return self.setup.ends

    @property
    def title(self) -> str:
        """What it is, for a heading."""
        return joined(self.name, f"{' x '.join(f'{n:,}' for n in self.shape)} cells", self.method)

    def bench(self, *, communicator: Any = None, **execution: Any) -> StepBench:
        """Its steps or iterations, to be timed whole and in parts; all ranks call this."""
        return StepBench(*self._prepared(communicator, execution)[:2])

    def _prepared(
        self, communicator: Any, execution: Mapping[str, Any]
    ) -> tuple[Fields, Program, Schedule, float]:
        """Fields and program of a problem made for this alone; its schedule, and the bytes that a step must
        move."""
        sim = self._simulation(communicator, execution)
        return sim, sim.program, sim.schedule, sim.bytes_per_step

    def _simulation(self, communicator: Any, execution: Mapping[str, Any]) -> Simulation:
        grid, equations = self.setup.grid, self.setup.equations
        options = {**self._equations, "communicator": communicator, **execution}
        terms = None if self.setup.terms is dict else self.setup.terms
        sim = Simulation(grid, equations, terms=terms, **options)
        counters.begin(sim, self.setup.events)
        sim.values |= self.setup.scalars
        return sim

    def run(
        self,
        *,
        steps: int | None = None,
        until: float | None = None,
        every: int | None = None,
        warm_up: int = 0,
        series: list[dict[str, Any]] | None = None,
        communicator: Any = None,
        output: Output | Sequence[Output] = (),
        checkpoint: Checkpoint | None = None,
        resume: str | Path | None = None,
        change: Collection[str] = (),
        share: bool = False,
        on_look: Callable[[Mapping[str, Any]], None] | None = None,
        on_progress: Callable[..., None] | None = None,
        **execution: Any,
    ) -> Result:
        """Run from the start, or from a checkpoint on; all ranks call this.

        Parameters
        ----------
        steps : int, optional
            As many at most, from the very start; by default, without `until`, the case's own end: a time or a
            number of steps.
        until : float, optional
            The time to reach; the last step is shortened to end there.
        every : int, optional
            Steps between diagnostics.
        warm_up : int
            Of the steps, so many at the start are not timed.
        series : list, optional
            Where diagnostics are appended as they come, for a run that does not end well.
        output : Output, or sequence of them, optional
            What is written as it goes on.
        checkpoint : Checkpoint, optional
            Where to leave checkpoints.
        resume : str or path, optional
            A checkpoint of the same case to go on from.
        change : collection of str
            Parameters of the case that are set anew; without any, all must be as they were.
        communicator, **execution
            See halocline.Simulation; the result's bits do not depend on them.
        on_look : callable, optional
            Called on all ranks with the diagnostics, each time they are taken.
        share : bool
            Whether memory is measured first, so that `on_progress` can say how much of its speed is reached;
            the same on all ranks.
        on_progress : callable, optional
            Called a few times a second with the steps done, and with a line on time, step, speed and what is
            left.

        Raises
        ------
        InputError
        RunError
            A value is not finite, with field, cell, step and terms; the time step is below its floor.
        """
        if steps is None and until is None:
            until = self.until
            steps = self._steps(None) if until is None else None
        if every is not None:
            SOME_STEPS.check("every", every)
        if until is not None and not (math.isfinite(until) and until >= 0):
            raise InputError(f"until is {until!r}; expected a finite time from 0 on")
        _check_warm_up(warm_up, steps)
        sim = self._simulation(communicator, execution)
        series = [] if series is None else series
        numbers = self._begun(sim) if resume is None else self._resumed(sim, resume, change, every, series)
        sim.title = self.name
        sim.notes = lambda: {"case": self.facts, "series": series}

        def look() -> None:
            series.append(self._look(sim, numbers))
            if on_look is not None:
                on_look(series[-1])

        if not series:
            look()
        meter = EnergyMeter(sim.domain.comm, sim.domain.devices)
        bound = None
        if share:
            domain = sim.domain
            most = bandwidth(domain.comm, domain.devices, domain.threads, sim.store.memory_bytes)
            bound = most and most / (sim.bytes_per_step / self.setup.grid.size)
        goal = _Goal(sim, until, every, output, checkpoint, steps, bound)

        def before(sim: Simulation) -> None:
            if every and sim.steps % every == 0:
                look()

        ended, begun = False, sim.steps
        if sim.steps < warm_up:
            first = replace(goal, output=_without_end(output))
            ended = self._advanced(first, warm_up, before, on_progress).reason != "completed"
        whole: Outcome | None = None
        started = sim.steps
        if not ended and goal.open(steps):
            with ExitStack() as metered:
                metered.enter_context(meter.on())

                def between(_: Simulation) -> None:
                    metered.close()
                    look()
                    if goal.open(steps):
                        metered.enter_context(meter.on())

                whole = self._advanced(goal, steps, between, on_progress)
        elif sim.steps > begun:  # it ended while it warmed up, which output did not know
            sim.run(steps=0, output=output)
        if series[-1]["step"] < sim.steps:
            look()
        measured = Timing(
            seconds=0.0 if whole is None else whole.seconds,
            loop_seconds=0.0 if whole is None else whole.loop_seconds,
            steps=sim.steps - started,
            energy=meter.total,
        )
        facts = self._facts_of(sim, series, warm_up)
        return self._result(sim, measured, whole, facts, sim.schedule, sim.bytes_per_step, sim.writing)

    def _advanced(
        self,
        goal: _Goal,
        steps: int | None,
        callback: Callable[[Simulation], None],
        on_progress: Callable[..., None] | None,
    ) -> Outcome:
        """Run to a step, or to where the case ends by itself.

        Raises
        ------
        RunError
            It ended otherwise.
        """
        sim = goal.sim
        report = None if on_progress is None else self._counting(goal, on_progress, sim.steps)
        try:
            outcome = goal.run(steps, callback, report)
        except RunError as error:
            if error.place is not None:
                self._advise(error, sim)
            raise
        if outcome.reason not in ("completed", NO_STEP, *self.setup.ends):
            ended = RunError(f"{outcome.reason}, after step {sim.steps} (time {sim.time:g})")
            raise self._advise(sim.explained(ended), sim)
        return outcome

    @property
    def facts(self) -> dict[str, Any]:
        """What this case is, for JSON; see `CaseRun.of_checkpoint`."""
        return {
            "name": self.name,
            "n": list(self.shape),
            "given": dict(self.values),
            "order": None if self.is_program else self.order,
            "scheme": None if self.is_program else self.scheme,
        }

    def _counting(self, goal: _Goal, on_progress: Callable[..., None], before: int) -> Callable[[int], None]:
        """Report the steps so far, with how the run goes on."""
        sim = goal.sim
        live = LiveLine(
            lambda: {**dict(sim.values), **sim.present_scalars()},
            self.setup.grid.size,
            until=goal.until,
            last=goal.last,
            limiter=self.setup.limit,
            says=self.setup.progress,
            cells_a_second=goal.bound,
        )
        return lambda done: on_progress(before + done, live(before + done))

    def _advise(self, error: HaloclineError, sim: Simulation) -> HaloclineError:
        """The error of a run whose equations failed, with what the case has to say to that."""
        if self.setup.advice is not None:
            error.args = (f"{error}\n{self.setup.advice(sim.values)}",)
        return error

    def findings(self, result: Result) -> dict[str, Any]:
        """What a reader of this case's results looks for first, by name; nothing of a part of the steps."""
        after = result.record.diagnostics
        if self.case.findings is None or after is None:
            return {}
        return dict(self.case.findings(after, result.record.steps))

    def check(self, result: Result) -> list[Check]:
        """What a run of this case must satisfy, and whether it does, the same on all ranks; all ranks call
        this.

        Raises
        ------
        InputError
            The case has no check; the result is of a part of the steps alone.
        """
        if self.case.check is None:
            raise InputError(f"case {self.name} has no check: it does not say what a run of it must satisfy")
        run, comm = self._checked(result), result.simulation.domain.comm
        with trace.order(self.order), comm.agreement(f"check {self.name}"):
            found = list(self.case.check(run))
        return comm.bcast(found)

    def figures(self, result: Result) -> dict[str, Figure | None]:
        """The figures of a run of this case, by name, on the first rank; None for each on the others. All
        ranks call this.

        Raises
        ------
        InputError
            The result is of a part of the steps alone.
        """
        run, comm = self._checked(result), result.simulation.domain.comm
        found: dict[str, Figure | None] = {}
        for name, described in self.case.figures.items():
            with trace.order(self.order), comm.agreement(f"figure {name} of {self.name}"):
                found[name] = described(run)
        return found

    def _checked(self, result: Result) -> Checked:
        """A finished run, as its case looks at it."""
        r = result.record
        if r.series is None or r.time is None or r.events is None:
            raise InputError(
                f"a run of {r.only} alone leaves fields that hold nonsense: nothing to check or draw"
            )
        assert isinstance(result.simulation, Simulation)
        return Checked(
            result.simulation, self.setup, self.values, self.shape, r.time, r.steps, r.series, r.events
        )

    def time_part(
        self,
        only: str,
        *,
        steps: int | None = None,
        warm_up: int = 0,
        communicator: Any = None,
        **execution: Any,
    ) -> Result:
        """Time so many steps without messages, or without kernels: fields then hold nonsense, and nothing is
        known of them. All ranks call this.

        Parameters
        ----------
        only : {"compute", "exchange"}
            What is left of the steps: kernels, or messages and copies of halos.
        steps : int, optional
            In all; those of the case where not given.
        warm_up : int
            Of these, so many at the start are not timed.
        communicator, **execution
            See halocline.Simulation.

        Raises
        ------
        InputError
        """
        if only not in PARTS:
            raise unknown("part of a step", only, list(PARTS))
        steps = self._steps(steps)
        SOME_STEPS.check("steps", steps)
        _check_warm_up(warm_up, steps)
        fields, program, schedule, bytes_per_step = self._prepared(communicator, execution)
        bench = StepBench(fields, program)
        meter = EnergyMeter(fields.domain.comm, fields.domain.devices)
        if warm_up:
            bench.passes = warm_up
            bench.run(**KINDS[only])
        bench.passes = steps - warm_up
        with meter.on():
            seconds = bench.run(**KINDS[only]) * bench.passes
        measured = Timing(seconds=seconds, loop_seconds=seconds, steps=bench.passes, energy=meter.total)
        nothing = (
            "time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series", "error",
            "events",
        )  # fmt: skip
        facts = {"steps": steps, "warm_up": warm_up, "only": only, **dict.fromkeys(nothing)}
        return self._result(fields, measured, None, facts, schedule, bytes_per_step, Writing())

    def _resumed(
        self,
        sim: Simulation,
        path: str | Path,
        change: Collection[str],
        every: int | None,
        series: list[dict[str, Any]],
    ) -> dict[str, Expr]:
        """Take over a checkpoint of this case and its series so far, and return the diagnostics."""
        try:
            sim.resume(path, change=tuple(sim.given) if change else ())
        except restart.OtherProgramError as error:
            if change:
                error.args = (f"{error}\n  {', '.join(change)}: set anew, which may be why",)
            raise
        assert sim.resumed is not None
        facts = sim.resumed.facts
        idle = [name for name in change if self.values[name] != facts["case"]["given"].get(name)]
        changed = restart.changed(sim.resumed, sim.given, tuple(sim.given))
        if idle and not changed and sim.domain.comm.rank == 0:
            log.warning("%s: set, but a run that goes on does not depend on it", ", ".join(idle))
        rows = facts.get("series", [])
        # without the row of where it ended
        series += [row for row in rows if row["step"] == 0 or (every and row["step"] % every == 0)]
        if sim.replay is not None:
            sim.replay.begin = self._start
        with trace.order(self.order):
            return dict(self.setup.diagnostics())

    def _begun(self, sim: Simulation) -> dict[str, Expr]:
        """Set the fields, check them, and return the diagnostics."""
        if sim.replay is not None:
            sim.replay.begin = self._start
        self._start(sim)
        sim.check_inputs("at the start")
        with trace.order(self.order):
            if self.setup.check_start is not None:
                self.setup.check_start(sim)
            return dict(self.setup.diagnostics())

    def _facts_of(self, sim: Simulation, series: list[dict[str, Any]], warm_up: int) -> dict[str, Any]:
        """What a record holds of the result of whole steps."""
        last, events = series[-1], counters.found(sim, self.setup.events)
        if sim.domain.comm.rank == 0:
            counters.warn(self.setup.events, events)
        return {
            "steps": sim.steps,
            "warm_up": min(warm_up, sim.steps),
            "only": None,
            "time": sim.time,
            "time_step": last["time_step"],
            "limiter": last["limiter"],
            **checksums(sim, self.fields),
            "diagnostics": {name: last[name] for name in list(last)[4:]},
            "series": series,
            "error": self._error(sim, series, events),
            "events": events,
        }

    def _error(
        self, sim: Simulation, series: Sequence[Mapping[str, Any]], events: Mapping[str, Mapping[str, Any]]
    ) -> float | None:
        """How far the end of the case is from what is known of it exactly."""
        at_end = sim.time == self.until if self.until is not None else sim.steps == self.case.steps
        if self.case.error is None or not at_end:
            return None
        done = Checked(sim, self.setup, self.values, self.shape, sim.time, sim.steps, series, events)
        with trace.order(self.order):
            error = self.case.error(done)
        return error if math.isfinite(error) else None

    def _steps(self, steps: int | None) -> int:
        """So many steps, or those of the case."""
        steps = self.case.steps if steps is None else steps
        if steps is None:
            raise InputError(f"case {self.name} has no number of steps by default: give steps")
        return steps

    def _result(
        self,
        fields: Fields,
        measured: Timing,
        whole: Outcome | Solution | None,
        facts: Mapping[str, Any],
        schedule: Schedule,
        bytes_per_step: float,
        writing: Writing,
    ) -> Result:
        """What was measured beside what this machine can do, and what is said of the result."""
        record, reference, peak = recorded(
            fields, measured, facts,
            case=self.name, order=None if self.is_program else self.order, scheme=self.scheme,
            parameters=self.values, schedule=schedule, bytes_per_step=bytes_per_step, writing=writing,
        )  # fmt: skip
        return Result(record, reference, peak, fields, whole, self.fields)

    def _start(self, sim: Fields) -> None:
        for f, at_start in self.setup.start.items():
            sim[f] = at_start

    def _look(self, sim: Simulation, numbers: Mapping[str, Expr]) -> dict[str, Any]:
        """The diagnostics now, with when that is."""
        sim.check_inputs("at the start")
        found = sim.evaluate(*numbers.values()) if numbers else ()
        values = found if isinstance(found, tuple) else (found,)
        limit, stepped = self.setup.limit, sim.steps > 0
        when = {
            "step": sim.steps,
            "time": sim.time,
            "time_step": sim.values.get("dt") if stepped else None,
            "limiter": limit(sim.values) if limit is not None and stepped else None,
        }
        return when | {
            name: each if math.isfinite(each) else None for name, each in zip(numbers, values, strict=True)
        }


def _without_end(output: Output | Sequence[Output]) -> list[Output]:
    """The same output of a run after whose end steps go on."""
    every = [output] if isinstance(output, Output) else list(output or ())
    return [
        replace(each, every=number_of_steps(STEPS.most))
        if isinstance(each, Output) and each.every is None
        else each
        for each in every
    ]


def _check_warm_up(warm_up: int, steps: int | None) -> None:
    STEPS.check("warm_up", warm_up)
    if warm_up and steps is not None and warm_up >= steps:
        raise InputError(
            f"warm_up is {warm_up}; expected a whole number from 0, fewer than the {steps} steps"
        )
