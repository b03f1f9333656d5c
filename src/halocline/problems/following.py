"""Runs of a problem file under a command, which adds options, diagnostics, warm-up and measurements."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import trace
from halocline.lang.grid import component_names, unknown_name_error
from halocline.problems.names import checked_mapping
from halocline.problems.place import FACTS, Place, read_resume_point
from halocline.problems.result import NOTHING, Runs, fields_of, time_facts
from halocline.problems.run_options import (
    CommandOutput,
    RunOptions,
    check_warm_up,
    without_end,
)
from halocline.problems.step_bench import part_timing
from halocline.run.engine.prepared import NO_STEP, interruption
from halocline.run.measurements.bandwidth import bandwidth
from halocline.run.measurements.energy import EnergyMeter
from halocline.run.output import restart
from halocline.run.output.every import steps as number_of_steps
from halocline.run.ranks.communicator import Communicator
from halocline.run.simulation import events as counters
from halocline.run.simulation.live import LiveLine
from halocline.run.simulation.observers import Observer, RunArguments
from halocline.run.simulation.simulation import Simulation
from halocline.words import counted

if TYPE_CHECKING:
    from halocline.problems.names import Names

log = logging.getLogger("halocline")

# maximum number of consecutive runs without a step; without a maximum, a file could wait forever
IDLE_RUNS = 10_000


class EndedError(BaseException):
    """Exception that ends a file early, after its first problem or after the timed steps.

    It is not derived from Exception, so handlers in the file do not catch it.
    """


class FileObserver(Observer):
    """Observer of a problem file. It passes the order and the scheme of the command to the problems."""

    def __init__(self, subject: Any, execution: Mapping[str, Any]) -> None:
        super().__init__(execution)
        self.subject = subject

    def replace_options(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        replaced: dict[str, Any] = self.subject.replace_options(function, options)
        return replaced

    def on_created(self, problem: Any) -> None:
        super().on_created(problem)
        self.subject.store_facts(problem)


class Following(FileObserver):
    """Observer that applies the options of a command to each run of a file, and measures the run.

    Parameters
    ----------
    subject : Problem
    options : RunOptions
    comm : Communicator
    execution : mapping
        See Observer.

    Attributes
    ----------
    runs : Runs
        Runs of the last problem that the file has created.
    unused : set of str
        Options of the command that have not applied to any run of the file yet.
    output : CommandOutput

    Notes
    -----
    A file can create several problems, and run each problem several times. A checkpoint stores the number of
    its problem, the number of the run of this problem, and the step at which this run began. After a restart,
    the problems that precede the problem of the checkpoint run as in the file, because later problems may
    need their results. They write no checkpoints and no output of the command.

    Some runs of the problem of the checkpoint may have been complete before the checkpoint was written. After
    a restart, these runs do no step and write nothing. They call no callback, because the checkpoint does not
    contain their states. The incomplete run begins with the state of the checkpoint and does its remaining
    steps. This state replaces all values that the file has set before.
    """

    def __init__(
        self, subject: Any, options: RunOptions, comm: Communicator, execution: Mapping[str, Any]
    ) -> None:
        super().__init__(subject, execution)
        self.options, self.runs = options, Runs()
        self.unused = set(options.option_texts)
        self.output = CommandOutput(options, self.unused)
        self._places: WeakKeyDictionary[Any, Place] = WeakKeyDictionary()
        self._number = self._simulations = 0
        self._idle = 0  # consecutive runs without a step
        self._comm, self._has_warned = comm, False
        self._has_resumed, self._steps = False, 0  # steps since the resume
        self._resume_point = (
            Place() if options.resume is None else read_resume_point(Path(options.resume), comm)
        )
        self._bound: float | None = None  # upper bound of cells per second, from the memory bandwidth

    # --- observer ---

    def on_created(self, problem: Any) -> None:
        super().on_created(problem)
        self.options.series.clear()
        self.runs = Runs(self.options.series)

    def facts(self, problem: Any) -> dict[str, Any]:
        place = self._places.get(problem)
        facts: dict[str, Any] = {}
        if place is not None:
            facts[FACTS] = {"problem": place.number, "run": place.run, "began": place.began}
        if self.subject.has_settings:
            facts |= {"case": self.subject.facts, "series": self.runs.series}
        return facts

    def run(self, problem: Any, file_arguments: RunArguments, proceed: Callable[[RunArguments], Any]) -> Any:
        """Run a problem with the options of the command, and return the result."""
        if problem is self.problem:
            self.runs.arguments = file_arguments
        is_simulation = isinstance(problem, Simulation)
        place = self._place(problem, is_simulation=is_simulation)
        if place.number == place.run == 1:  # a later check could lose results
            self.subject.check_names()
        if self.options.only is not None and self.subject.has_settings:
            ends = (self.options.steps, self.subject.names.steps, file_arguments.steps)
            steps = next((steps for steps in ends if steps is not None), None)
            if steps is not None:
                self.time_part(problem, steps)
                raise EndedError
        return (self._simulate if is_simulation else self._solve)(problem, place, file_arguments, proceed)

    @property
    def finished_step(self) -> int | None:
        """Step or iteration of the resumed checkpoint; None if the file has done more steps or iterations."""
        return self._resume_point.step if self._has_resumed and not self._steps else None

    # --- simulations ---

    def _simulate(
        self,
        sim: Simulation,
        place: Place,
        file_arguments: RunArguments,
        proceed: Callable[[RunArguments], Any],
    ) -> Any:
        names, options, runs = self.subject.names, self.options, self.runs
        if place.run == 1:
            self._prepare(sim, names)
        arguments = self._arguments(sim, place, file_arguments)
        if arguments is NOTHING:
            return proceed(NOTHING)
        has_rows = self.subject.has_settings or names.diagnostics is not None
        if has_rows and not runs.series:
            self._append_row(sim, names)
        if options.every is not None and (file_arguments.callback is not None or has_rows):
            self.unused.discard("--every")
            arguments = arguments._replace(every=number_of_steps(options.every), exact=False)
        last = None if arguments.steps is None else sim.steps + arguments.steps
        begun, outcome = sim.steps, None

        def is_open() -> bool:
            """Return True if the run has not reached its end."""
            is_early = arguments.until is None or sim.time < arguments.until
            return is_early and (last is None or sim.steps < last)

        def run_to(step: int | None, **replaced: Any) -> Any:
            remaining = None if step is None else step - sim.steps
            return self._run_to_end(sim, arguments._replace(steps=remaining, **replaced), names, proceed)

        def append_row_if_due(sim: Simulation) -> None:
            if options.every and sim.steps % options.every == 0:
                self._append_row(sim, names)

        warm_up = options.warm_up if place.run == 1 else 0
        if warm_up:
            self.unused.discard("--warm-up")
        if sim.steps < warm_up and is_open():
            outcome = run_to(
                warm_up if last is None else min(warm_up, last),
                callback=append_row_if_due if has_rows else None,
                output=without_end(arguments.output),
            )
            runs.warm_up = sim.steps - begun
        is_over = outcome is not None and outcome.reason != "completed"
        if not is_over and (is_open() or not self.subject.has_settings):
            started, meter = sim.steps, runs.meter
            assert meter is not None
            with ExitStack() as metered:
                metered.enter_context(meter.on())

                def between(sim: Simulation) -> None:
                    metered.close()
                    if has_rows:
                        self._append_row(sim, names)
                    if file_arguments.callback is not None:
                        file_arguments.callback(sim)
                    if is_open():
                        metered.enter_context(meter.on())

                outcome = run_to(
                    last, callback=between if has_rows or file_arguments.callback is not None else None
                )
            runs.timed_runs.append((sim.steps - started, outcome))
        else:  # the run ended before or during the warm-up, which writes no output
            written = arguments.output if sim.steps > begun else ()
            nothing = proceed(NOTHING._replace(output=written))
            outcome = nothing if outcome is None else outcome
        if has_rows and runs.series[-1]["step"] < sim.steps:
            self._append_row(sim, names)
        steps = sim.steps - begun
        runs.steps += steps
        self._steps += steps
        if steps:
            self._idle = 0
        if options.has_end:
            place.end = (sim.steps, sim.time) if outcome.reason in ("completed", NO_STEP) else None
        return outcome

    def _prepare(self, sim: Simulation, names: Names) -> None:
        """Prepare the first run of a simulation."""
        if names.events:
            counters.begin(sim, names.events)
        if sim.replay is not None:
            sim.replay.begin = names.start
        domain = sim.domain
        self.runs.meter = EnergyMeter(domain.comm, domain.devices)
        if self.subject.has_settings:
            sim.title = self.subject.name
        if self.options.share:
            most = bandwidth(domain.comm, domain.devices, domain.threads, sim.store.memory_bytes)
            self._bound = most / (sim.bytes_per_step / sim.grid.size) if most else None

    def _arguments(self, sim: Simulation, place: Place, file_arguments: RunArguments) -> RunArguments:
        """Return the arguments of a run of a simulation, with the options of the command."""
        options = self.options
        is_resumed = place.number == self._resume_point.number
        if is_resumed and place.run < self._resume_point.first_run:  # complete before the checkpoint
            if place.run == 1 and self._comm.rank == 0:
                skipped = counted(self._resume_point.first_run - 1, "earlier run")
                log.warning(
                    "%s: %s skips %s of this simulation, because the checkpoint was written after it",
                    options.option_texts["--resume"], self.subject.spelling, skipped,
                )  # fmt: skip
            return NOTHING
        if options.has_end and place.end == (sim.steps, sim.time):
            self._count_idle()
            return NOTHING
        place.began = sim.steps
        if is_resumed and place.run == self._resume_point.first_run:
            self._resume(sim)
            place.began = self._resume_point.began
        if options.has_end:
            self.unused.difference_update(("--steps", "--until"))
            remaining = None if options.steps is None else max(0, options.steps - sim.steps)
            file_arguments = file_arguments._replace(until=options.until, steps=remaining)
        elif is_resumed:
            file_arguments = self._remaining(sim, place, file_arguments)
        has_output = place.number >= self._resume_point.number
        return self._writing(file_arguments, place, place.simulation if has_output else 0)

    def _resume(self, sim: Simulation) -> None:
        """Restore the state and the series of the checkpoint."""
        options = self.options
        assert options.resume is not None
        try:
            sim.resume(options.resume, change=tuple(sim.declared_parameters) if options.change else ())
        except restart.OtherProgramError as error:
            if options.change:
                error.args = (
                    f"{error}\n  {', '.join(options.change)}: the changed values may be the reason",
                )
            raise
        assert sim.resumed is not None
        facts, values = sim.resumed.facts, self.subject.values
        if facts.get("case") is not None:
            idle = [name for name in options.change if values[name] != facts["case"]["given"].get(name)]
            changed_parameters = restart.changed_parameters(
                sim.resumed, sim.declared_parameters, tuple(sim.declared_parameters)
            )
            if idle and not changed_parameters and sim.domain.comm.rank == 0:
                log.warning(
                    "%s: the value has no effect, because a restarted run does not depend on it",
                    ", ".join(idle),
                )
        every = options.every
        # omit the row that the interrupted run wrote at its end
        self.runs.series += [
            row for row in facts.get("series", []) if row["step"] == 0 or (every and row["step"] % every == 0)
        ]
        if self.subject.has_settings:
            self.runs.steps = sim.steps
        self._note_resume()

    def _run_to_end(
        self,
        sim: Simulation,
        arguments: RunArguments,
        names: Names,
        proceed: Callable[[RunArguments], Any],
    ) -> Any:
        """Return the outcome of a run that ends successfully.

        Raises
        ------
        RunError
            The run ends for any other reason.
        """
        if self.options.on_progress is not None and arguments.on_progress is None:
            arguments = arguments._replace(on_progress=self._progress_reporter(sim, arguments, names))
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

    def _progress_reporter(
        self, sim: Simulation, arguments: RunArguments, names: Names
    ) -> Callable[[int], None]:
        """Return a function that reports the steps so far, with time, speed and remaining time."""
        on_progress, before = self.options.on_progress, sim.steps
        assert on_progress is not None
        live = LiveLine(
            lambda: {**dict(sim.values), **sim.present_scalars()},
            sim.grid.size,
            until=arguments.until,
            last=None if arguments.steps is None else before + arguments.steps,
            limiter=names.limit,
            progress=names.progress,
            bound_cells_per_second=self._bound,
        )
        return lambda done: on_progress(before + done, live(before + done))

    def _append_row(self, sim: Simulation, names: Names) -> None:
        """Append a row of diagnostics to the series."""
        runs = self.runs
        sim.check_inputs("at the start")
        if runs.numbers is None:
            runs.numbers = self._diagnostics(sim, names)
        try:
            evaluated = sim.evaluate(*runs.numbers.values()) if runs.numbers else ()
        except InputError as error:
            raise InputError(f"{self.subject.spelling}: diagnostics(): {error}") from None
        values = evaluated if isinstance(evaluated, tuple) else (evaluated,)
        row = time_facts(sim, names) | {
            name: value if math.isfinite(value) else None
            for name, value in zip(runs.numbers, values, strict=True)
        }
        runs.series.append(row)
        if self.options.on_row is not None:
            self.options.on_row(row)

    def _diagnostics(self, sim: Simulation, names: Names) -> dict[str, Any]:
        """Return the diagnostics of the file. Raise InputError for names that rows cannot contain."""
        file, returned_numbers = self.subject.spelling, {}
        if names.diagnostics is not None:
            with trace.order(sim.order):
                returned_numbers = checked_mapping(
                    names.diagnostics(), f"{file}: diagnostics()", "{'largest': hc.max(u)}"
                )
        numbers: dict[str, Any] = {}
        for name, value in returned_numbers.items():
            if isinstance(value, (tuple, list)):  # a vector, such as hc.max(w)
                numbers |= zip(component_names(name, len(value)), value, strict=True)
            else:
                numbers[name] = value
        duplicates = [name for name in time_facts(sim, names) if name in numbers]
        if duplicates:
            raise InputError(
                f"{file}: diagnostics() returns {duplicates[0]!r}, but each row already has a value of "
                "this name. Rename the diagnostic."
            )
        extrapolated = () if names.extrapolated is None else names.extrapolated.names
        for kind, required in (("key_diagnostics", names.key_diagnostics), ("extrapolated", extrapolated)):
            for name in required:
                if name not in numbers:
                    raise unknown_name_error(f"{file}: diagnostic in {kind}", name, list(numbers))
        return numbers

    # --- linear problems ---

    def _solve(
        self, problem: Any, place: Place, file_arguments: RunArguments, proceed: Callable[[RunArguments], Any]
    ) -> Any:
        options, is_solve = self.options, self.subject.has_settings and self.subject.is_linear
        if is_solve:
            for name in ("until", "every", "warm_up"):
                value = getattr(options, name)
                if value:
                    raise InputError(
                        f"--{name.replace('_', '-')} {value}: {self.subject.name} is a linear problem, "
                        "whose iterations have no time. Leave the option out."
                    )
            if options.steps is not None:
                self.unused.discard("--steps")
                file_arguments = file_arguments._replace(steps=options.steps)
        if place.number == self._resume_point.number:
            assert options.resume is not None
            file_arguments = file_arguments._replace(resume=options.resume)
            self._note_resume()
        if options.on_progress is not None and file_arguments.on_progress is None:
            file_arguments = file_arguments._replace(on_progress=options.on_progress)
        self.runs.arguments = file_arguments
        solution = proceed(self._writing(file_arguments, place, int(is_solve)))
        if is_solve and solution.reason == "interrupted":
            raise interruption(f"interrupted after {solution.iterations} iterations")
        done = solution.iterations
        if place.number == self._resume_point.number:
            done -= self._resume_point.step
        self.runs.steps += solution.iterations if is_solve else done
        self._steps += done
        self.runs.timed_runs.append((done, solution))
        return solution

    def time_part(self, problem: Any, steps: int) -> None:
        """Time a part of each step, such as the step without messages. The fields are invalid afterwards.

        Raises
        ------
        InputError
            The file did no step, or all steps are warm-up.
        """
        only, warm_up = str(self.options.only), self.options.warm_up
        self.unused.difference_update(("--steps", "--warm-up"))
        if not steps:
            raise InputError(
                f"--only {only}: {self.subject.spelling} did no step, so there is nothing to time"
            )
        check_warm_up(warm_up, steps)
        self.runs.steps, self.runs.warm_up = steps, warm_up
        self.runs.part = part_timing(fields_of(problem), problem.program, only, steps - warm_up, warm_up)

    # --- options ---

    def _writing(self, file_arguments: RunArguments, place: Place, number: int) -> RunArguments:
        """Return the arguments of a run with the output and the checkpoints of the command.

        `number` is the number of the output of the command, or 0 for none; see `CommandOutput.output`.
        """
        checkpoint = None  # checkpoints of earlier problems would replace the checkpoint of the restart
        if place.number >= self._resume_point.number:
            checkpoint = self.output.checkpoint(file_arguments.checkpoint)
        return file_arguments._replace(
            output=self.output.output(file_arguments.output, number), checkpoint=checkpoint
        )

    def _note_resume(self) -> None:
        self.unused.discard("--resume")
        self._has_resumed, self._steps = True, 0

    def _place(self, problem: Any, *, is_simulation: bool) -> Place:
        """Return the position of the next run in the sequence of runs.

        Each solve of a linear problem has a new position.
        """
        if not is_simulation or problem not in self._places:
            self._number += 1
            self._simulations += is_simulation
            self._places[problem] = Place(self._number, self._simulations if is_simulation else 0)
        place = self._places[problem]
        place.run += 1
        option_texts = self.options.option_texts
        options = [option_texts[name] for name in ("--checkpoint", "--resume") if name in option_texts]
        if place.number < self._number and options:
            raise InputError(
                f"{options[0]}: {self.subject.spelling} alternates between two problems, but a checkpoint "
                "holds one problem. Leave the option out, or write checkpoints in the file."
            )
        return place

    def _remaining(self, sim: Simulation, place: Place, file_arguments: RunArguments) -> RunArguments:
        """Return the arguments of a run of the resumed simulation, with the number of remaining steps."""
        steps = 1 if file_arguments.until is None and file_arguments.steps is None else file_arguments.steps
        resume_point = self._resume_point
        if not resume_point.run and place.run > 1 and steps is not None:
            raise InputError(
                f"--resume {self.options.resume}: {self.subject.spelling} runs the simulation several "
                "times, and the checkpoint does not record the run in which it was written. Set the end "
                "with --steps or --until."
            )
        if place.run == resume_point.first_run and steps is not None:
            return file_arguments._replace(steps=max(0, steps - (sim.steps - resume_point.began)))
        return file_arguments

    def _count_idle(self) -> None:
        """Count a run that has no step, because the end set by the command was reached before.

        The first such run causes a warning. After `IDLE_RUNS` of them, RunError is raised, because the file
        would wait forever.
        """
        option_texts = self.options.option_texts
        ends = " ".join(option_texts[name] for name in ("--steps", "--until") if name in option_texts)
        if not self._has_warned and self._comm.rank == 0:
            log.warning(
                "%s: %s runs the simulation again, but it has already reached the end that this option sets. "
                "Such a run does nothing.",
                ends, self.subject.spelling,
            )  # fmt: skip
        self._has_warned = True
        if self._idle >= IDLE_RUNS:
            raise RunError(
                f"{ends}: {self.subject.spelling} has called sim.run {self._idle:,} times after the end "
                f"that this option sets. The file waits for a later step or time. Omit {ends}."
            )
        self._idle += 1


def _advise(error: HaloclineError, sim: Simulation, names: Names) -> HaloclineError:
    """Return the error of a failed run, with the advice from the file in its message."""
    if names.advice is not None:
        error.args = (f"{error}\n{names.advice(sim.values)}",)
    return error
