"""What the options about output and checkpoints mean."""

from __future__ import annotations

from pathlib import Path

from halocline.cli.output import note
from halocline.errors import InputError
from halocline.run.checkpoint import Checkpoint
from halocline.run.output import Output


def checkpoint_of(
    path: Path | None,
    *,
    every: str | None,
    keep: int,
    overwrite: bool,
    time_limit: str | None,
    io_threads: int,
) -> Checkpoint | None:
    """The checkpoints that the options ask for; None where they ask for none.

    Raises
    ------
    InputError
        One cannot be, or has no --checkpoint.
    """
    if path is None:
        for option, value in (("--checkpoint-every", every), ("--time-limit", time_limit)):
            if value is not None:
                raise InputError(f"{option} {value}: give --checkpoint FOLDER too, where they are to be left")
        return None
    try:
        return Checkpoint(
            path,
            every=often(every),
            keep=keep,
            overwrite=overwrite,
            time_limit=time_limit,
            io_threads=io_threads,
        )
    except InputError as error:
        raise InputError(f"--checkpoint {path}: {error}") from None


def output_of(path: Path | None, *, every: str | None, overwrite: bool, io_threads: int) -> list[Output]:
    """The output that the options ask for.

    Raises
    ------
    InputError
        It cannot be, or has no --output.
    """
    if path is None:
        if every is not None:
            raise InputError(f"--output-every {every}: give --output STORE.zarr too, where it is to be")
        return []
    try:
        return [Output(path, every=often(every), overwrite=overwrite, io_threads=io_threads)]
    except InputError as error:
        raise InputError(f"--output {path}: {error}") from None


def often(text: str | None) -> int | float | str | None:
    """How often: "50" is a number of steps, "0.5" simulated time, and "30 min" wall-clock time."""
    if text is None or text.strip().isdecimal():
        return None if text is None else int(text)
    try:
        return float(text)
    except ValueError:
        return text


def left(path: Path | None) -> None:
    """Say where checkpoints are."""
    if path is not None:
        note(f"checkpoints are in {path}; go on with --resume {path}")
