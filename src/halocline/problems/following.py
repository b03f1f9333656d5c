"""Runs of a problem file under a command: its options, diagnostics, warm-up and measurements."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import trace
from halocline.lang.expression import Expr
from halocline.lang.grid import unknown
from halocline.problems.live import LiveLine
from halocline.problems.record import Timing
from halocline.problems.result import fields_of
from halocline.problems.step_bench import StepBench
from halocline.ranges import SOME_STEPS, STEPS
from halocline.run.engine.prepared import KINDS, NO_STEP, interruption
from halocline.run.measurements.bandwidth import bandwidth
from halocline.run.measurements.energy import EnergyMeter
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import steps as number_of_steps
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved, newest
from halocline.run.ranks.communicator import Communicator
from halocline.run.simulation import events as counters
from halocline.run.simulation.observers import Observer, RunArguments
from halocline.run.simulation.simulation import Simulation
from halocline.words import counted

if TYPE_CHECKING:
    from halocline.problems.names import Names

log = logging.getLogger("halocline")

FACTS = "file"  # key of a checkpoint's facts: the place in the file at which it was written
IDLE_RUNS = 10_000  # consecutive runs without a step, after which the file is assumed to wait forever
NOTHING = RunArguments(steps=0)  # a run that does no step, writes nothing and calls nothing
# parts of a step that can be timed alone; of KINDS
PARTS = {"compute": "computing alone, no messages", "exchange": "the exchange alone, no kernels"}

NO_EFFECT = {  # reason why an option has no effect, as the predicate of a sentence about the file
    "--steps": "runs no simulation",
    "--until": "runs no simulation",
    "--every": "runs no simulation with a callback or diagnostics",
    "--warm-up": "runs no simulation",
    "--output": "runs no simulation",
    "--checkpoint": "runs no simulation and solves no linear problem",
    "--resume": "does not run the problem that left that checkpoint",
    "--overwrite": "writes no output and no checkpoints",
    "--io-threads": "writes no output and no checkpoints",
    "--io-ranks": "writes no output and no checkpoints",
}


@dataclass(frozen=True)
class RunOptions:
    """Options of a command for the runs of a problem file.

    Parameters
    ----------
    steps : int, optional
        Greatest number of steps, from the start of the simulation. `steps` and `until` replace the end in the
        file.
    until : float, optional
        Time to reach; the last step is shortened to end there.
    every : int, optional
        Steps between diagnostics, and between calls of the file's callback.
    warm_up : int
        Steps at the start that are not timed.
    only : {"compute", "exchange"}, optional
        Time steps without messages, or without kernels. Where their number is known, this replaces the first
        run of a file with settings, which ends there; else it follows the end of the file, for as many steps
        as its last problem has made. The fields then hold nonsense.
    output : Output or sequence of Output
        Output in addition to that of the file.
    checkpoint : Checkpoint, optional
        Checkpoints that replace those of the file.
    resume : path, optional
        Checkpoint of the same problem to continue from.
    change : sequence of str
        Parameters that are set anew and may differ from those of the checkpoint.
    overwrite, io_threads, io_ranks : optional
        Options that apply also to the output and checkpoints in the file.
    series : list, optional
        Receives the diagnostics at once, also of a run that fails.
    on_look : callable, optional
        Called on all ranks with each row of diagnostics.
    on_progress : callable, optional
        Called a few times a second with the steps done and a text on time, step, speed and remaining time.
    share : bool
        Measure the bandwidth of memory first, so that `on_progress` can report the share of it; the same on
        all ranks.
    """

    steps: int | None = None
    until: float | None = None
    every: int | None = None
    warm_up: int = 0
    only: str | None = None
    output: Output | Sequence[Output] = ()
    checkpoint: Checkpoint | None = None
    resume: str | Path | None = None
    change: Sequence[str] = ()
    overwrite: bool = False
    io_threads: int | None = None
    io_ranks: int = 0
    series: list[dict[str, Any]] | None = None
    on_look: Callable[[Mapping[str, Any]], None] | None = None
    on_progress: Callable[..., None] | None = None
    share: bool = False

    def __post_init__(self) -> None:
        if self.only is not None and self.only not in PARTS:
            raise unknown("part of a step", self.only, list(PARTS))
        if self.every is not None:
            SOME_STEPS.check("every", self.every)
        if self.until is not None and not (math.isfinite(self.until) and self.until >= 0):
            raise InputError(f"until is {self.until!r}; expected a finite time from 0 on")
        STEPS.check("warm_up", self.warm_up)
        if self.steps is not None:
            (STEPS if self.only is None else SOME_STEPS).check("steps", self.steps)
            check_warm_up(self.warm_up, self.steps)

    @property
    def outputs(self) -> list[Output]:
        """Output in addition to that of the file, as a list."""
        return listed(self.output)

    @property
    def given(self) -> dict[str, str]:
        """Options that are given, as text, by their names on the command line."""
        outputs = self.outputs
        values = {
            "--steps": self.steps,
            "--until": self.until,
            "--every": self.every,
            "--warm-up": self.warm_up or None,
            "--output": outputs[0].path if outputs else None,
            "--checkpoint": None if self.checkpoint is None else self.checkpoint.path,
            "--resume": self.resume,
            "--overwrite": "" if self.overwrite else None,
            "--io-threads": self.io_threads,
            "--io-ranks": self.io_ranks or None,
        }
        return {name: f"{name} {value}".strip() for name, value in values.items() if value is not None}


def check_warm_up(warm_up: int, steps: int) -> None:
    """Raise InputError where all steps of a run are warm-up."""
    if warm_up and warm_up >= steps:
        raise InputError(
            f"warm_up is {warm_up}; expected a whole number from 0, fewer than the {steps} steps"
        )


def listed(output: Output | Sequence[Output] | None) -> list[Any]:
    """Return one output, several or none as a list."""
    return [output] if isinstance(output, Output) else list(output or ())


class EndedError(BaseException):
    """Ends a file of which a part of the steps has been timed.

    It is no Exception, so that no handler of the file catches it.
    """


@dataclass
class Place:
    """Place of a problem in the sequence of runs of a file.

    Attributes
    ----------
    number : int
        Number of the problem, from 1, in the order in which problems first run. Each solve is a problem.
    simulation : int
        Number of the simulation, from 1, in the same order; 0 for a solve.
    run : int
        Number of the present run of the problem, from 1.
    began : int
        Step at which the present run began.
    is_bounded : bool
        Whether the command gives the end of the present run.
    end : (int, float), optional
        Step and time at which a run reached the end that the command gives.
    """

    number: int
    simulation: int = 0
    run: int = 0
    began: int = 0
    is_bounded: bool = False
    end: tuple[int, float] | None = None


@dataclass(frozen=True)
class ResumePoint:
    """Place in the file at which the checkpoint to resume was written.

    Attributes
    ----------
    number : int
    run : int or None
        Number of the run; None for a checkpoint without this number.
    began : int
    step : int
        Step or iteration of the checkpoint.
    """

    number: int = 0
    run: int | None = None
    began: int = 0
    step: int = 0

    @property
    def first_run(self) -> int:
        """Number of the run that begins with the state of the checkpoint."""
        return self.run or 1


@dataclass
class Course:
    """Runs of the last problem of a file.

    Attributes
    ----------
    series : list of dict
        Rows of diagnostics.
    numbers : dict of str to Expr, optional
        Diagnostics; None before the first row.
    steps : int
        Steps or iterations so far; of a file with settings also those before the checkpoint that was resumed.
    warm_up : int
        Steps that were not timed.
    runs : list of (int, Outcome or Solution)
        Timed steps or iterations of each run, and its result.
    meter : EnergyMeter
        Meter of the timed steps.
    arguments : RunArguments
        Arguments of the last run, as the file gives them.
    part : Timing, optional
        Timing of a part of the steps.
    """

    series: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[str, Expr] | None = None
    steps: int = 0
    warm_up: int = 0
    runs: list[tuple[int, Any]] = field(default_factory=list)
    meter: Any = None
    arguments: RunArguments = NOTHING
    part: Timing | None = None

    @property
    def outcome(self) -> Any:
        """Outcome of all timed runs together, or the last Solution; None where nothing was timed."""
        outcomes = [outcome for _, outcome in self.runs]
        if not outcomes:
            return None
        return (
            reduce(lambda a, b: a.followed_by(b), outcomes) if hasattr(outcomes[0], "loops") else outcomes[-1]
        )

    @property
    def timing(self) -> Timing:
        """Timing of all timed runs together."""
        if self.part is not None:
            return self.part
        loops = (
            outcome.loop_seconds if hasattr(outcome, "loops") else (outcome.seconds_per_iteration or 0.0) * n
            for n, outcome in self.runs
        )
        return Timing(
            seconds=sum(outcome.seconds for _, outcome in self.runs),
            loop_seconds=sum(loops),
            steps=sum(n for n, _ in self.runs),
            energy=None if self.meter is None else self.meter.total,
        )


class Following(Observer):
    """Observer that applies the options of a command to each run of a file, and measures it.

    Parameters
    ----------
    subject : Problem
    options : RunOptions
    comm : Communicator
    replaced : mapping
        See Observer.

    Attributes
    ----------
    course : Course
        Runs of the last problem that was made.
    unused : dict of str to str
        Options that have not applied to any run yet, as text, by name.
    stores : list of Path
        Output stores that the command has added.

    Notes
    -----
    A checkpoint holds the number of its problem, the number of the run of that problem, and the step at
    which this run began. On resume, earlier problems run as in the file, but without checkpoints and without
    the output of the command: only their results are needed. Complete runs of the problem of the checkpoint
    do no step, write nothing and call no callback, because the checkpoint does not hold their states. The
    incomplete run begins with the state of the checkpoint and does its remaining steps. That state replaces
    all values that the file has set before.
    """

    def __init__(
        self, subject: Any, options: RunOptions, comm: Communicator, replaced: Mapping[str, Any]
    ) -> None:
        super().__init__(replaced)
        self.subject, self.options, self.course = subject, options, Course()
        self.unused = options.given
        self.stores: list[Path] = []
        self._places: WeakKeyDictionary[Any, Place] = WeakKeyDictionary()
        self._number = self._simulations = 0
        self._idle = 0  # consecutive runs without a step
        self._comm, self._has_warned = comm, False
        self._has_resumed, self._steps = False, 0  # steps since the resume
        self._has_written = False  # checkpoints of an earlier problem are in the folder
        self._resume_point = (
            ResumePoint() if options.resume is None else _read_resume_point(Path(options.resume), comm)
        )
        self._bound: float | None = None  # cells a second that memory lets pass

    # --- observer ---

    def replaced(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        own: dict[str, Any] = self.subject.replaced(function, options)
        return own

    def made(self, problem: Any) -> None:
        super().made(problem)
        self.subject.know(problem)
        series = [] if self.options.series is None else self.options.series
        series.clear()
        self.course = Course(series)

    def facts(self, problem: Any) -> dict[str, Any]:
        place = self._places.get(problem)
        facts: dict[str, Any] = {}
        if place is not None:
            facts[FACTS] = {"problem": place.number, "run": place.run, "began": place.began}
        if self.subject.has_settings:
            facts |= {"case": self.subject.facts, "series": self.course.series}
        return facts

    def run(self, problem: Any, own: RunArguments, proceed: Callable[[RunArguments], Any]) -> Any:
        """Run a problem with the options of the command, and return the result."""
        if problem is self.problem:
            self.course.arguments = own
        is_simulation = isinstance(problem, Simulation)
        place = self._place(problem) if is_simulation else self._place_of_solve(problem)
        if self.options.only is not None and self.subject.has_settings:
            ends = (self.options.steps, self.subject.names.steps, own.steps)
            steps = next((steps for steps in ends if steps is not None), None)
            if steps is not None:
                self.time_part(problem, steps)
                raise EndedError
        outcome = (self._simulate if is_simulation else self._solve)(problem, place, own, proceed)
        if is_simulation and place.is_bounded:
            is_end = outcome.reason in ("completed", NO_STEP)
            place.end = (problem.steps, problem.time) if is_end else None
        return outcome

    @property
    def finished(self) -> int | None:
        """Step or iteration of the resumed checkpoint if the file has done none since, else None."""
        return self._resume_point.step if self._has_resumed and not self._steps else None

    def check_used(self) -> None:
        """Check that each option has applied to a run of the file.

        Raises
        ------
        InputError
            An option has applied to no run.
        """
        for name, text in self.unused.items():
            raise InputError(
                f"{text}: {self.subject.spelling} {NO_EFFECT[name]}, so the option has no effect: leave it "
                "out"
            )

    # --- simulations ---

    def _simulate(
        self, sim: Simulation, place: Place, own: RunArguments, proceed: Callable[[RunArguments], Any]
    ) -> Any:
        names, options, course = self.subject.names, self.options, self.course
        place.run += 1
        if place.run == 1:
            self._prepare(sim, names)
        arguments = self._arguments(sim, place, own)
        if arguments is NOTHING:
            return proceed(NOTHING)
        looks = self.subject.has_settings or names.diagnostics is not None
        if looks and not course.series:
            self._look(sim)
        if options.every is not None and (own.callback is not None or looks):
            self._used("--every")
            arguments = arguments._replace(every=number_of_steps(options.every), exact=False)
        last = None if arguments.steps is None else sim.steps + arguments.steps
        begun, outcome = sim.steps, None

        def is_open() -> bool:
            """Return True where the run has not reached its end."""
            if arguments.until is None and last is None:
                return True
            is_early = arguments.until is None or sim.time < arguments.until
            return is_early and (last is None or sim.steps < last)

        def run_to(step: int | None, **replaced: Any) -> Any:
            remaining = None if step is None else step - sim.steps
            return self._advanced(sim, arguments._replace(steps=remaining, **replaced), names, proceed)

        def look_on_the_way(sim: Simulation) -> None:
            if options.every and sim.steps % options.every == 0:
                self._look(sim)

        warm_up = options.warm_up if place.run == 1 else 0
        if warm_up:
            self._used("--warm-up")
        if sim.steps < warm_up and is_open():
            outcome = run_to(
                warm_up if last is None else min(warm_up, last),
                callback=look_on_the_way if looks else None,
                output=_without_end(arguments.output),
            )
            course.warm_up = sim.steps - begun
        is_over = outcome is not None and outcome.reason != "completed"
        if not is_over and (is_open() or not self.subject.has_settings):
            started = sim.steps
            with ExitStack() as metered:
                metered.enter_context(course.meter.on())

                def between(sim: Simulation) -> None:
                    metered.close()
                    if looks:
                        self._look(sim)
                    if own.callback is not None:
                        own.callback(sim)
                    if is_open():
                        metered.enter_context(course.meter.on())

                outcome = run_to(last, callback=between if looks or own.callback is not None else None)
            course.runs.append((sim.steps - started, outcome))
        else:  # the run ended in the warm-up, of which output did not know, or before
            written = arguments.output if sim.steps > begun else ()
            nothing = proceed(NOTHING._replace(output=written))
            outcome = nothing if outcome is None else outcome
        if looks and course.series[-1]["step"] < sim.steps:
            self._look(sim)
        steps = sim.steps - begun
        course.steps += steps
        self._steps += steps
        if steps:
            self._idle = 0
        return outcome

    def _prepare(self, sim: Simulation, names: Names) -> None:
        """Prepare the first run of a simulation."""
        counters.begin(sim, names.events)
        if sim.replay is not None:
            sim.replay.begin = names.start
        domain = sim.domain
        self.course.meter = EnergyMeter(domain.comm, domain.devices)
        if self.subject.has_settings:
            sim.title = self.subject.name
        if self.options.share:
            most = bandwidth(domain.comm, domain.devices, domain.threads, sim.store.memory_bytes)
            self._bound = most / (sim.bytes_per_step / sim.grid.size) if most else None

    def _arguments(self, sim: Simulation, place: Place, own: RunArguments) -> RunArguments:
        """Return the arguments of a run of a simulation, with the options of the command."""
        options = self.options
        is_resumed = place.number == self._resume_point.number
        if is_resumed and place.run < self._resume_point.first_run:  # complete before the checkpoint
            if place.run == 1 and self._comm.rank == 0:
                runs = counted(self._resume_point.first_run - 1, "earlier run")
                log.warning(
                    "%s: %s skips %s of this simulation, which the checkpoint follows",
                    options.given["--resume"], self.subject.spelling, runs,
                )  # fmt: skip
            return NOTHING
        ends = options.steps is not None or options.until is not None
        if ends and place.end == (sim.steps, sim.time):
            self._count_idle()
            return NOTHING
        place.is_bounded, place.began = ends, sim.steps
        if is_resumed and place.run == self._resume_point.first_run:
            self._resume(sim)
            place.began = self._resume_point.began
        if ends:
            self._used("--steps", "--until")
            remaining = None if options.steps is None else max(0, options.steps - sim.steps)
            own = own._replace(until=options.until, steps=remaining)
        elif is_resumed:
            own = self._remaining(sim, place, own)
        output = listed(own.output)
        if options.output and place.number >= self._resume_point.number:
            output += [self._output(each, place.simulation) for each in options.outputs]
        return own._replace(
            output=self._with_options(output), checkpoint=self._checkpoint(own.checkpoint, place)
        )

    def _resume(self, sim: Simulation) -> None:
        """Take over the checkpoint, and its series so far."""
        options = self.options
        assert options.resume is not None
        try:
            sim.resume(options.resume, change=tuple(sim.given) if options.change else ())
        except restart.OtherProgramError as error:
            if options.change:
                error.args = (f"{error}\n  {', '.join(options.change)}: set anew, which may be why",)
            raise
        assert sim.resumed is not None
        facts, values = sim.resumed.facts, self.subject.values
        if facts.get("case") is not None:
            idle = [name for name in options.change if values[name] != facts["case"]["given"].get(name)]
            changed = restart.changed(sim.resumed, sim.given, tuple(sim.given))
            if idle and not changed and sim.domain.comm.rank == 0:
                log.warning("%s: set, but a run that goes on does not depend on it", ", ".join(idle))
        every = options.every
        # without the row of the end of that run
        self.course.series += [
            row for row in facts.get("series", []) if row["step"] == 0 or (every and row["step"] % every == 0)
        ]
        if self.subject.has_settings:
            self.course.steps = sim.steps
        self._resumed()

    def _advanced(
        self,
        sim: Simulation,
        arguments: RunArguments,
        names: Names,
        proceed: Callable[[RunArguments], Any],
    ) -> Any:
        """Return the outcome of a run that ends well.

        Raises
        ------
        RunError
            The run ends otherwise.
        """
        if self.options.on_progress is not None and arguments.on_progress is None:
            arguments = arguments._replace(on_progress=self._counting(sim, arguments, names))
        try:
            outcome = proceed(arguments)
        except RunError as error:
            if error.place is not None:
                _advise(error, sim, names)
            raise
        if names.ends is not None and outcome.reason not in ("completed", NO_STEP, *names.ends):
            ended = RunError(f"{outcome.reason}, after step {sim.steps} (time {sim.time:g})")
            raise _advise(sim.explained(ended), sim, names)
        return outcome

    def _counting(self, sim: Simulation, arguments: RunArguments, names: Names) -> Callable[[int], None]:
        """Return a function that reports the steps so far, with time, speed and remaining time."""
        on_progress, before = self.options.on_progress, sim.steps
        assert on_progress is not None
        live = LiveLine(
            lambda: {**dict(sim.values), **sim.present_scalars()},
            sim.grid.size,
            until=arguments.until,
            last=None if arguments.steps is None else before + arguments.steps,
            limiter=names.limit,
            says=names.progress,
            cells_a_second=self._bound,
        )
        return lambda done: on_progress(before + done, live(before + done))

    def _look(self, sim: Simulation) -> None:
        """Append a row of diagnostics to the series."""
        names, course = self.subject.names, self.course
        sim.check_inputs("at the start")
        if course.numbers is None:
            with trace.order(sim.order):
                course.numbers = {} if names.diagnostics is None else dict(names.diagnostics())
        found = sim.evaluate(*course.numbers.values()) if course.numbers else ()
        values = found if isinstance(found, tuple) else (found,)
        row = now(sim, names) | {
            name: value if math.isfinite(value) else None
            for name, value in zip(course.numbers, values, strict=True)
        }
        course.series.append(row)
        if self.options.on_look is not None:
            self.options.on_look(row)

    # --- linear problems ---

    def _place_of_solve(self, problem: Any) -> Place:
        self._number += 1
        place = self._places[problem] = Place(self._number, run=1)
        return place

    def _solve(
        self, problem: Any, place: Place, own: RunArguments, proceed: Callable[[RunArguments], Any]
    ) -> Any:
        options, is_solve = self.options, self.subject.has_settings and self.subject.is_linear
        if is_solve:
            for name in ("until", "every", "warm_up"):
                if getattr(options, name):
                    raise InputError(
                        f"{name}: {self.subject.name} is a linear problem, whose iterations have no time"
                    )
            if options.steps is not None:
                self._used("--steps")
                own = own._replace(steps=options.steps)
        if place.number == self._resume_point.number:
            assert options.resume is not None
            own = own._replace(resume=options.resume)
            self._resumed()
        output = listed(own.output)
        if is_solve:
            output += [self._output(each, 1) for each in options.outputs]
        if options.on_progress is not None and own.on_progress is None:
            own = own._replace(on_progress=options.on_progress)
        self.course.arguments = own
        solution = proceed(
            own._replace(
                output=self._with_options(output), checkpoint=self._checkpoint(own.checkpoint, place)
            )
        )
        if is_solve and solution.reason == "interrupted":
            raise interruption(f"interrupted after {solution.iterations} iterations")
        done = solution.iterations
        if place.number == self._resume_point.number:
            done -= self._resume_point.step
        self.course.steps += solution.iterations if is_solve else done
        self._steps += done
        self.course.runs.append((done, solution))
        return solution

    # --- parts of the steps ---

    def time_part(self, problem: Any, steps: int) -> None:
        """Time steps without messages or without kernels; fields hold nonsense afterwards.

        Raises
        ------
        InputError
            There is no step to time.
        """
        options, course = self.options, self.course
        assert options.only is not None
        self._used("--steps", "--warm-up")
        if not steps:
            raise InputError(
                f"--only {options.only}: {self.subject.spelling} has made no step that could be timed in part"
            )
        check_warm_up(options.warm_up, steps)
        fields = fields_of(problem)
        bench = StepBench(fields, problem.program)
        meter = EnergyMeter(fields.domain.comm, fields.domain.devices)
        bench.passes = max(1, options.warm_up)
        bench.run(**KINDS[options.only])
        bench.passes = steps - options.warm_up
        with meter.on():
            seconds = bench.run(**KINDS[options.only]) * bench.passes
        course.steps, course.warm_up = steps, options.warm_up
        course.part = Timing(seconds, seconds, bench.passes, meter.total)

    # --- options ---

    def _resumed(self) -> None:
        self._used("--resume")
        self._has_resumed, self._steps = True, 0

    def _used(self, *options: str) -> None:
        for option in options:
            self.unused.pop(option, None)

    def _place(self, problem: Any) -> Place:
        """Return the place of a simulation that is about to run."""
        if problem not in self._places:
            self._number += 1
            self._simulations += 1
            self._places[problem] = Place(self._number, self._simulations)
        place = self._places[problem]
        given = self.options.given
        options = [given[name] for name in ("--checkpoint", "--resume") if name in given]
        if place.number < self._number and options:
            raise InputError(
                f"{options[0]}: {self.subject.spelling} runs a simulation, another problem, and that "
                "simulation again, but a checkpoint holds one of them. Leave the option out, or write "
                "checkpoints in the file"
            )
        return place

    def _remaining(self, sim: Simulation, place: Place, own: RunArguments) -> RunArguments:
        """Return the arguments of a run of the resumed simulation, with its remaining steps."""
        steps = 1 if own.until is None and own.steps is None else own.steps
        resume_point = self._resume_point
        if resume_point.run is None and place.run > 1 and steps is not None:
            raise InputError(
                f"--resume {self.options.resume}: {self.subject.spelling} runs the simulation several times, "
                "and the checkpoint does not hold in which run it was written. Give the end with --steps or "
                "--until"
            )
        if place.run == resume_point.first_run and steps is not None:
            return own._replace(steps=max(0, steps - (sim.steps - resume_point.began)))
        return own

    def _output(self, output: Output, number: int) -> Output:
        """Return the output of a simulation: STORE.zarr of the first one, STORE-2.zarr of the second."""
        path = Path(output.path)
        path = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        self._used("--output")
        if path not in self.stores:
            self.stores.append(path)
        return replace(output, path=path)

    def _checkpoint(self, own: Checkpoint | None, place: Place) -> Checkpoint | None:
        """Return the checkpoints of a run: those of the command, or else those of the file."""
        if place.number < self._resume_point.number:
            return None  # its checkpoints would replace the checkpoint to resume
        checkpoint = self.options.checkpoint
        if checkpoint is None:
            return None if own is None else self._with_options([own])[0]
        self._used("--checkpoint", "--overwrite", "--io-threads", "--io-ranks")
        checkpoint = replace(checkpoint, overwrite=checkpoint.overwrite or self._has_written)
        self._has_written = True
        return checkpoint

    def _with_options(self, outputs: Sequence[Any]) -> list[Any]:
        """Return output or checkpoints with the options that apply to all output and checkpoints."""
        changes: dict[str, Any] = {"overwrite": True} if self.options.overwrite else {}
        if self.options.io_threads is not None:
            changes["io_threads"] = self.options.io_threads
        if outputs:
            self._used("--overwrite", "--io-threads", "--io-ranks")
        known = (Output, Checkpoint)
        return [replace(output, **changes) if isinstance(output, known) else output for output in outputs]

    def _count_idle(self) -> None:
        """Count a run that begins at the end that the command gives.

        Warn of the first such run, and raise RunError if the file repeats them without end.
        """
        given = self.options.given
        ends = " ".join(given[name] for name in ("--steps", "--until") if name in given)
        if not self._has_warned and self._comm.rank == 0:
            log.warning(
                "%s: %s runs the simulation again, which is at that end already; such runs do nothing",
                ends, self.subject.spelling,
            )  # fmt: skip
        self._has_warned = True
        if self._idle >= IDLE_RUNS:
            raise RunError(
                f"{ends}: {self.subject.spelling} has called run {self._idle:,} times without a step since "
                "the end was reached. It waits for a step or time beyond that end: leave the option out"
            )
        self._idle += 1


def now(sim: Simulation, names: Names) -> dict[str, Any]:
    """Return step, time and time step of a simulation, and the limit of the time step."""
    stepped = sim.steps > 0
    return {
        "step": sim.steps,
        "time": sim.time,
        "time_step": sim.values.get("dt") if stepped else None,
        "limiter": names.limit(sim.values) if names.limit is not None and stepped else None,
    }


def _advise(error: HaloclineError, sim: Simulation, names: Names) -> HaloclineError:
    """Return the error of a run that failed, with the advice of the file."""
    if names.advice is not None:
        error.args = (f"{error}\n{names.advice(sim.values)}",)
    return error


def _without_end(output: Output | Sequence[Output] | None) -> list[Any]:
    """Return the same output for a run after whose end steps go on."""
    return [
        replace(one, every=number_of_steps(STEPS.most))
        if isinstance(one, Output) and one.every is None
        else one
        for one in listed(output)
    ]


def _read_resume_point(path: Path, comm: Communicator) -> ResumePoint:
    """Return the place in the file at which the newest checkpoint was written; all ranks call this."""
    facts: dict[str, Any] = {}
    with comm.agreement(f"read checkpoint {path}"):
        if comm.rank == 0:
            saved = Saved(newest(path)).facts
            facts = {"step": saved["step"], FACTS: saved.get(FACTS)}
    facts = comm.bcast(facts)
    match facts[FACTS]:
        case None:
            return ResumePoint(1, step=facts["step"])
        case {"problem": int(number), "run": int(run), "began": int(began)}:
            return ResumePoint(number, run, began, facts["step"])
    raise InputError(
        f"checkpoint {path} is damaged: {FACTS!r} is {facts[FACTS]!r}; expected problem, run and began"
    )
