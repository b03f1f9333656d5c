"""Options of ``halocline run`` for a file, which replace the arguments of the file's own runs and solves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from halocline.errors import InputError, RunError
from halocline.run.engine.prepared import NO_STEP
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import steps as number_of_steps
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved, newest
from halocline.run.ranks.communicator import Communicator
from halocline.run.simulation.observers import Observer, RunArguments, SolveArguments
from halocline.words import counted

log = logging.getLogger("halocline")

FACTS = "file"  # key of a checkpoint's facts: the place in the file at which it was written
IDLE_RUNS = 10_000  # consecutive runs without a step, after which the file is assumed to wait forever
NOTHING = RunArguments(
    until=None, steps=0, every=None, exact=False, callback=None, output=(), checkpoint=None
)  # a run that does no step, writes nothing and calls nothing

NO_EFFECT = {  # reason why an option has no effect, as the predicate of a sentence about the file
    "--steps": "runs no simulation",
    "--until": "runs no simulation",
    "--every": "runs no simulation with a callback",
    "--output": "runs no simulation",
    "--checkpoint": "runs no simulation and solves no linear problem",
    "--resume": "does not run the problem that left that checkpoint",
    "--overwrite": "writes no output and no checkpoints",
    "--io-threads": "writes no output and no checkpoints",
    "--io-ranks": "writes no output and no checkpoints",
}


@dataclass(frozen=True)
class RunOptions:
    """Options of the command for the runs of a file; None or False where they are not given.

    Attributes
    ----------
    steps, until : optional
        End of each run, counted from the start of the simulation. It replaces the end in the file.
    every : int, optional
        Steps between calls of the file's callback.
    output : Output, optional
        Output in addition to that of the file.
    checkpoint : Checkpoint, optional
        Checkpoints that replace those of the file.
    resume : Path, optional
    change : bool
        Whether parameters may differ from those of the checkpoint to resume.
    overwrite, io_threads, io_ranks : optional
        Options that apply also to the output and checkpoints in the file.
    """

    steps: int | None = None
    until: float | None = None
    every: int | None = None
    output: Output | None = None
    checkpoint: Checkpoint | None = None
    resume: Path | None = None
    change: bool = False
    overwrite: bool = False
    io_threads: int | None = None
    io_ranks: int = 0

    @property
    def given(self) -> dict[str, str]:
        """Options that are given, as text, by their names on the command line."""
        values = {
            "--steps": self.steps,
            "--until": self.until,
            "--every": self.every,
            "--output": None if self.output is None else self.output.path,
            "--checkpoint": None if self.checkpoint is None else self.checkpoint.path,
            "--resume": self.resume,
            "--overwrite": "" if self.overwrite else None,
            "--io-threads": self.io_threads,
            "--io-ranks": self.io_ranks or None,
        }
        return {name: f"{name} {value}".strip() for name, value in values.items() if value is not None}


@dataclass
class _Place:
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
class _ResumePoint:
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


class FileRuns(Observer):
    """Observer that applies the options of ``halocline run FILE`` to each run of the file.

    Parameters
    ----------
    file : Path
    options : RunOptions
    comm : Communicator
    execution : mapping, optional
        See Observer.

    Attributes
    ----------
    unused : dict of str to str
        Options that have not applied to any run yet, as text, by name.
    stores : list of Path
        Output stores that the command has added.

    Raises
    ------
    InputError
        There is no checkpoint to resume.

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
        self, file: Path, options: RunOptions, comm: Communicator, execution: dict[str, Any] | None = None
    ) -> None:
        super().__init__(execution)
        self.file, self.options = file, options
        self.unused = options.given
        self.stores: list[Path] = []
        self._places: WeakKeyDictionary[Any, _Place] = WeakKeyDictionary()
        self._number = self._simulations = 0
        self._idle = 0  # consecutive runs without a step
        self._comm, self._has_warned = comm, False
        self._has_resumed, self._steps = False, 0  # steps since the resume
        self._has_written = False  # checkpoints of an earlier problem are in the folder
        self._resume_point = (
            _ResumePoint() if options.resume is None else _read_resume_point(options.resume, comm)
        )

    def run_arguments(self, problem: Any, own: RunArguments) -> RunArguments:
        """Return the arguments of a run of a simulation, with the options of the command."""
        options, place = self.options, self._place(problem)
        place.run += 1
        is_resumed = place.number == self._resume_point.number
        if is_resumed and place.run < self._resume_point.first_run:  # complete before the checkpoint
            if place.run == 1 and self._comm.rank == 0:
                runs = counted(self._resume_point.first_run - 1, "earlier run")
                log.warning(
                    "%s: %s skips %s of this simulation, which the checkpoint follows",
                    options.given["--resume"], self.file, runs,
                )  # fmt: skip
            return NOTHING
        ends = options.steps is not None or options.until is not None
        if ends and place.end == (problem.steps, problem.time):
            self._count_idle()
            return NOTHING
        place.is_bounded, place.began = ends, problem.steps
        if is_resumed and place.run == self._resume_point.first_run:
            assert options.resume is not None
            problem.resume(options.resume, change=tuple(problem.given) if options.change else ())
            place.began = self._resume_point.began
            self._resumed()
        if ends:
            self._used("--steps", "--until")
            remaining = None if options.steps is None else max(0, options.steps - problem.steps)
            own = own._replace(until=options.until, steps=remaining)
        elif is_resumed:
            own = self._remaining(problem, place, own)
        if own.callback is not None and options.every is not None:
            self._used("--every")
            own = own._replace(every=number_of_steps(options.every), exact=False)
        output = [own.output] if isinstance(own.output, Output) else list(own.output or ())
        if options.output is not None and place.number >= self._resume_point.number:
            output.append(self._output(options.output, place.simulation))
        return own._replace(
            output=self._with_options(output), checkpoint=self._checkpoint(own.checkpoint, place)
        )

    def solve_arguments(self, problem: Any, own: SolveArguments) -> SolveArguments:
        """Return the arguments of a solve, with the options of the command that apply to the solve."""
        self._number += 1
        place = self._places[problem] = _Place(self._number, run=1)
        if place.number == self._resume_point.number:
            assert self.options.resume is not None
            own = own._replace(resume=self.options.resume)
            self._resumed()
        output = [own.output] if isinstance(own.output, Output) else list(own.output or ())
        return own._replace(
            output=self._with_options(output), checkpoint=self._checkpoint(own.checkpoint, place)
        )

    def facts(self, problem: Any) -> dict[str, Any]:
        """Return the place of a problem in the file, for its checkpoints."""
        place = self._places.get(problem)
        if place is None:
            return {}
        return {FACTS: {"problem": place.number, "run": place.run, "began": place.began}}

    def ran(self, problem: Any, steps: int, outcome: Any) -> None:
        """Note the end of a run."""
        super().ran(problem, steps, outcome)
        self._steps += steps
        place = self._places.get(problem)
        if steps:
            self._idle = 0
        if place is not None and place.is_bounded:
            is_end = outcome.reason in ("completed", NO_STEP)
            place.end = (problem.steps, problem.time) if is_end else None

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
                f"{text}: {self.file} {NO_EFFECT[name]}, so the option has no effect: leave it out"
            )

    def _resumed(self) -> None:
        self._used("--resume")
        self._has_resumed, self._steps = True, 0

    def _used(self, *options: str) -> None:
        for option in options:
            self.unused.pop(option, None)

    def _place(self, problem: Any) -> _Place:
        """Return the place of a simulation that is about to run."""
        if problem not in self._places:
            self._number += 1
            self._simulations += 1
            self._places[problem] = _Place(self._number, self._simulations)
        place = self._places[problem]
        given = self.options.given
        options = [given[name] for name in ("--checkpoint", "--resume") if name in given]
        if place.number < self._number and options:
            raise InputError(
                f"{options[0]}: {self.file} runs a simulation, another problem, and that simulation again, "
                "but a checkpoint holds one of them. Leave the option out, or write checkpoints in the file"
            )
        return place

    def _remaining(self, problem: Any, place: _Place, own: RunArguments) -> RunArguments:
        """Return the arguments of a run of the resumed simulation, with its remaining steps."""
        steps = 1 if own.until is None and own.steps is None else own.steps
        resume_point = self._resume_point
        if resume_point.run is None and place.run > 1 and steps is not None:
            raise InputError(
                f"--resume {self.options.resume}: {self.file} runs the simulation several times, and the "
                "checkpoint does not hold in which run it was written. Give the end with --steps or --until"
            )
        if place.run == resume_point.first_run and steps is not None:
            return own._replace(steps=max(0, steps - (problem.steps - resume_point.began)))
        return own

    def _output(self, output: Output, number: int) -> Output:
        """Return the output of a simulation: STORE.zarr of the first one, STORE-2.zarr of the second."""
        path = Path(output.path)
        path = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        self._used("--output")
        if path not in self.stores:
            self.stores.append(path)
        return replace(output, path=path)

    def _checkpoint(self, own: Checkpoint | None, place: _Place) -> Checkpoint | None:
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
                ends, self.file,
            )  # fmt: skip
        self._has_warned = True
        if self._idle >= IDLE_RUNS:
            raise RunError(
                f"{ends}: {self.file} has called run {self._idle:,} times without a step since the end was "
                "reached. It waits for a step or time beyond that end: leave the option out"
            )
        self._idle += 1


def _read_resume_point(path: Path, comm: Communicator) -> _ResumePoint:
    """Return the place in the file at which the newest checkpoint was written; all ranks call this."""
    facts: dict[str, Any] = {}
    with comm.agreement(f"read checkpoint {path}"):
        if comm.rank == 0:
            saved = Saved(newest(path)).facts
            facts = {"step": saved["step"], FACTS: saved.get(FACTS)}
    facts = comm.bcast(facts)
    match facts[FACTS]:
        case None:
            return _ResumePoint(1, step=facts["step"])
        case {"problem": int(number), "run": int(run), "began": int(began)}:
            return _ResumePoint(number, run, began, facts["step"])
    raise InputError(
        f"checkpoint {path} is damaged: {FACTS!r} is {facts[FACTS]!r}; expected problem, run and began"
    )
