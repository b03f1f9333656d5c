"""Options of a command for the runs of a problem file, including added output and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.lang.grid import unknown_name_error
from halocline.ranges import SOME_STEPS, STEPS
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import steps as number_of_steps
from halocline.run.output.output import Output

# parts of a step that can be timed alone, with the keys of KINDS
PARTS = {
    "compute": "computation alone, without messages",
    "exchange": "the exchange alone, without kernels",
    "synchronisation": "synchronisation alone, a barrier of devices and ranks after each sweep",
}


NO_EFFECT = {  # reason why an option has no effect, as the predicate of a sentence about the file
    "--steps": "runs no simulation",
    "--until": "runs no simulation",
    "--every": "runs no simulation with a callback, or with diagnostics of a file that declares settings",
    "--warm-up": "runs no simulation",
    "--output": "runs no simulation",
    "--checkpoint": "runs no simulation and solves no linear problem",
    "--resume": "does not run the problem that wrote the checkpoint",
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
        Maximum number of steps, from the start of the simulation. `steps` and `until` replace the end in
        the file.
    until : float, optional
        Simulated time at the end. The last step is shortened to end at this time.
    every : int, optional
        Number of steps between diagnostics, and between calls of the file's callback.
    warm_up : int
        Number of steps at the start that are not timed.
    only : {"compute", "exchange", "synchronisation"}, optional
        Part of each step to time: "compute" leaves out messages, "exchange" leaves out kernels, and
        "synchronisation" is only a barrier after each sweep. For a file with settings and a known number of
        steps, the timing replaces the first run, and the file ends. Otherwise, the timing follows the end of
        the file, with the number of steps of its last problem. The fields are invalid afterwards.
    output : Output, optional
        Output in addition to the output in the file.
    checkpoint : Checkpoint, optional
        Checkpoints that replace the checkpoints in the file.
    resume : path, optional
        Checkpoint of the same problem for the restart.
    change : sequence of str
        Parameters with new values, which may differ from the values in the checkpoint.
    overwrite, io_threads, io_ranks : optional
        Options of output and checkpoints. They also apply to the output and checkpoints in the file.
    series : list, optional
        List to which each row of diagnostics is appended. It remains available if the run fails.
    on_row : callable, optional
        Function of each row of diagnostics, called on all ranks.
    on_progress : callable, optional
        Function of the number of steps and a progress text, called a few times per second.
    share : bool
        True to measure the bandwidth of memory first, so that `on_progress` can report the achieved share of
        the bandwidth. All ranks must pass the same value.
    """

    steps: int | None = None
    until: float | None = None
    every: int | None = None
    warm_up: int = 0
    only: str | None = None
    output: Output | None = None
    checkpoint: Checkpoint | None = None
    resume: str | Path | None = None
    change: Sequence[str] = ()
    overwrite: bool = False
    io_threads: int | None = None
    io_ranks: int = 0
    series: list[dict[str, Any]] = field(default_factory=list)
    on_row: Callable[[Mapping[str, Any]], None] | None = None
    on_progress: Callable[..., None] | None = None
    share: bool = False

    def __post_init__(self) -> None:
        if self.only is not None and self.only not in PARTS:
            raise unknown_name_error("part of a step", self.only, list(PARTS))
        if self.every is not None:
            SOME_STEPS.check("every", self.every)
        if self.until is not None and not (math.isfinite(self.until) and self.until >= 0):
            raise InputError(f"until is {self.until!r}; expected a finite time of at least 0")
        STEPS.check("warm_up", self.warm_up)
        if self.steps is not None:
            (STEPS if self.only is None else SOME_STEPS).check("steps", self.steps)
            check_warm_up(self.warm_up, self.steps)

    @property
    def has_end(self) -> bool:
        """True if the command sets the end of the runs."""
        return self.steps is not None or self.until is not None

    def check_used(self, unused: Collection[str], spelling: str) -> None:
        """Raise InputError if an option has not applied to any run of a file.

        `unused` contains the names of these options, and `spelling` is the name of the file in messages.
        """
        for name, text in self.option_texts.items():
            if name in unused:
                raise InputError(
                    f"{text}: {spelling} {NO_EFFECT[name]}, so the option has no effect. "
                    "Leave the option out."
                )

    @property
    def option_texts(self) -> dict[str, str]:
        """Options that have a value, as command-line texts such as "--steps 10", by option name."""
        values = {
            "--steps": self.steps,
            "--until": self.until,
            "--every": self.every,
            "--warm-up": self.warm_up or None,
            "--output": None if self.output is None else self.output.path,
            "--checkpoint": None if self.checkpoint is None else self.checkpoint.path,
            "--resume": self.resume,
            "--overwrite": "" if self.overwrite else None,
            "--io-threads": self.io_threads,
            "--io-ranks": self.io_ranks or None,
        }
        return {name: f"{name} {value}".strip() for name, value in values.items() if value is not None}


def check_warm_up(warm_up: int, steps: int) -> None:
    """Raise InputError if all steps of a run are warm-up."""
    if warm_up and warm_up >= steps:
        raise InputError(
            f"warm_up is {warm_up}; expected a whole number from 0, fewer than the {steps} steps"
        )


def as_list(output: Output | Sequence[Output] | None) -> list[Any]:
    """Return one output, several or none as a list."""
    return [output] if isinstance(output, Output) else list(output or ())


class CommandOutput:
    """Output and checkpoints of a command.

    The output is added to the output of the file. The checkpoints replace the checkpoints of the file.

    Parameters
    ----------
    options : RunOptions
    unused : set of str
        Options that have not applied to any run yet. An option is removed when it applies.

    Attributes
    ----------
    stores : list of Path
        Output stores that the command has added.
    """

    def __init__(self, options: RunOptions, unused: set[str]) -> None:
        self.options, self.unused = options, unused
        self.stores: list[Path] = []
        self._has_written = False  # True if an earlier problem has written checkpoints to the folder

    def output(self, file_output: Output | Sequence[Output] | None, number: int) -> list[Any]:
        """Return the output of a run: output of the file, followed by output of the command.

        For simulation `number` 1, the command writes STORE.zarr; for number 2, STORE-2.zarr. For number 0,
        the result is only the output of the file.
        """
        output, added = as_list(file_output), self.options.output
        if added is not None and number:
            path = Path(added.path)
            path = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
            self.unused.discard("--output")
            if path not in self.stores:
                self.stores.append(path)
            output.append(replace(added, path=path))
        return self._with_options(output)

    def checkpoint(self, file_checkpoint: Checkpoint | None) -> Checkpoint | None:
        """Return the checkpoint options of a run: those of the command, if any, or those of the file."""
        checkpoint = self.options.checkpoint
        if checkpoint is None:
            return None if file_checkpoint is None else self._with_options([file_checkpoint])[0]
        self.unused.difference_update(("--checkpoint", "--overwrite", "--io-threads", "--io-ranks"))
        checkpoint = replace(checkpoint, overwrite=checkpoint.overwrite or self._has_written)
        self._has_written = True
        return checkpoint

    def _with_options(self, outputs: Sequence[Any]) -> list[Any]:
        """Return output or checkpoints with --overwrite and --io-threads of the command applied."""
        changes: dict[str, Any] = {"overwrite": True} if self.options.overwrite else {}
        if self.options.io_threads is not None:
            changes["io_threads"] = self.options.io_threads
        if outputs:
            self.unused.difference_update(("--overwrite", "--io-threads", "--io-ranks"))
        known = (Output, Checkpoint)
        return [replace(output, **changes) if isinstance(output, known) else output for output in outputs]


def without_end(output: Output | Sequence[Output] | None) -> list[Any]:
    """Return output that is not written at the end of a run, because another run continues it."""
    return [
        replace(entry, every=number_of_steps(STEPS.most))
        if isinstance(entry, Output) and entry.every is None
        else entry
        for entry in as_list(output)
    ]
