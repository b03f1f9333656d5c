"""Output and checkpoints of the runs of a problem file under a command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.problems.run_options import RunOptions, UnusedOptions, listed
from halocline.ranges import STEPS
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import steps as number_of_steps
from halocline.run.output.output import Output


class CommandOutput:
    """Output and checkpoints that a command adds to those of a file, or changes.

    Parameters
    ----------
    options : RunOptions
    unused : UnusedOptions
        Options that apply are discarded.

    Attributes
    ----------
    stores : list of Path
        Output stores that the command has added.
    """

    def __init__(self, options: RunOptions, unused: UnusedOptions) -> None:
        self.options, self.unused = options, unused
        self.stores: list[Path] = []
        self._has_written = False  # checkpoints of an earlier problem are in the folder

    def output(self, own: Output | Sequence[Output] | None, number: int) -> list[Any]:
        """Return the output of a run: that of the file, then that of the command.

        The first simulation has the number 1 and writes STORE.zarr, the second writes STORE-2.zarr. Only the
        output of the file remains where the number is 0.
        """
        output = listed(own)
        for added in listed(self.options.output) if number else ():
            path = Path(added.path)
            path = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
            self.unused.discard("--output")
            if path not in self.stores:
                self.stores.append(path)
            output.append(replace(added, path=path))
        return self._with_options(output)

    def checkpoint(self, own: Checkpoint | None) -> Checkpoint | None:
        """Return the checkpoints of a run: those of the command, or else those of the file."""
        checkpoint = self.options.checkpoint
        if checkpoint is None:
            return None if own is None else self._with_options([own])[0]
        self.unused.discard("--checkpoint", "--overwrite", "--io-threads", "--io-ranks")
        checkpoint = replace(checkpoint, overwrite=checkpoint.overwrite or self._has_written)
        self._has_written = True
        return checkpoint

    def _with_options(self, outputs: Sequence[Any]) -> list[Any]:
        """Return output or checkpoints with the options that apply to all output and checkpoints."""
        changes: dict[str, Any] = {"overwrite": True} if self.options.overwrite else {}
        if self.options.io_threads is not None:
            changes["io_threads"] = self.options.io_threads
        if outputs:
            self.unused.discard("--overwrite", "--io-threads", "--io-ranks")
        known = (Output, Checkpoint)
        return [replace(output, **changes) if isinstance(output, known) else output for output in outputs]


def without_end(output: Output | Sequence[Output] | None) -> list[Any]:
    """Return the same output for a run after whose end steps go on."""
    return [
        replace(one, every=number_of_steps(STEPS.most))
        if isinstance(one, Output) and one.every is None
        else one
        for one in listed(output)
    ]
