"""What the options about output and checkpoints mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halocline.cli.options import Keeping
from halocline.cli.output import note
from halocline.errors import InputError
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.output import Output
from halocline.words import amount, counted, duration


@dataclass(frozen=True)
class Kept:
    """What a run is to leave on disk.

    Attributes
    ----------
    output : list of Output
    checkpoint : Checkpoint or None
    resume : path or None
    io_ranks : int
    overwrite : bool
    io_threads : int or None
    """

    output: list[Output]
    checkpoint: Checkpoint | None
    resume: Path | None
    io_ranks: int = 0
    overwrite: bool = False
    io_threads: int | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of `halocline.problems.following.RunOptions`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def given(self) -> dict[str, object]:
        """Which of the options were given, with their values."""
        found = {
            "--output": self.output[0].path if self.output else None,
            "--checkpoint": None if self.checkpoint is None else self.checkpoint.path,
            "--resume": self.resume,
        }
        return {option: value for option, value in found.items() if value is not None}

    @property
    def stores(self) -> list[Path]:
        """Where output is."""
        return [Path(each.path) for each in self.output]

    def note_checkpoints(self) -> None:
        """Say where checkpoints are."""
        if self.checkpoint is not None:
            path = self.checkpoint.path
            note(f"checkpoints are in {path}; go on with --resume {path}")


def kept(*, of_file: bool = False, **values: Any) -> Kept:
    """Return the output and checkpoints that the options ask for.

    Parameters
    ----------
    of_file : bool
        Whether the options are for a file, which may have output and checkpoints of its own.
    **values
        Values of the options of `halocline.cli.options.Keeping`.

    Raises
    ------
    InputError
        A value is out of range, or an option has no effect without another one.
    """
    asked = Keeping(**values)
    _needs("--output STORE.zarr", asked.output, {"--output-every": asked.output_every})
    of_checkpoints = {
        "--checkpoint-every": asked.checkpoint_every,
        "--keep": asked.keep,
        "--time-limit": asked.time_limit,
    }
    _needs("--checkpoint FOLDER", asked.checkpoint, of_checkpoints)
    if not of_file:
        of_both = {
            "--overwrite": "" if asked.overwrite else None,
            "--io-threads": asked.io_threads,
            "--io-ranks": asked.io_ranks or None,
        }
        _needs("--output STORE.zarr or --checkpoint FOLDER", asked.output or asked.checkpoint, of_both)
    threads = {} if asked.io_threads is None else {"io_threads": asked.io_threads}
    how: dict[str, Any] = {"overwrite": asked.overwrite, **threads}
    outputs, checkpoints = [], None
    if asked.output is not None:
        outputs = [_of("--output", asked.output, Output, how | {"every": often(asked.output_every)})]
    if asked.checkpoint is not None:
        how |= {"every": often(asked.checkpoint_every), "time_limit": asked.time_limit}
        how |= {} if asked.keep is None else {"keep": asked.keep}
        checkpoints = _of("--checkpoint", asked.checkpoint, Checkpoint, how)
    return Kept(outputs, checkpoints, asked.resume, asked.io_ranks, asked.overwrite, asked.io_threads)


def writing_lines(record: Any) -> list[str]:
    """What a report says of output and checkpoints."""
    if not record.written_bytes:
        return []
    by = f" by {counted(record.io_ranks, 'I/O rank')}" if record.io_ranks else ""
    return [
        f"{'written':13} {amount(record.written_bytes)} of output and checkpoints{by}; the run paused "
        f"{duration(record.writing_seconds)} for it, {duration(record.waiting_seconds)} of that to wait for "
        "the disk"
    ]


def _needs(other: str, given: Path | None, options: dict[str, Any]) -> None:
    """Raise InputError where options were given without the one that they belong to."""
    for option, value in options.items():
        if given is None and value is not None:
            raise InputError(f"{' '.join([option, *filter(None, [str(value)])])}: give {other} too")


def _of(option: str, path: Path, kind: type[Any], how: dict[str, Any]) -> Any:
    try:
        return kind(path, **how)
    except InputError as error:
        raise InputError(f"{option} {path}: {error}") from None


def often(text: str | None) -> int | float | str | None:
    """Return the interval of an option: "50" and "50 steps" count steps, "0.5" is simulated time.

    Any other text is returned as it is, such as the wall-clock time "30 min".
    """
    if text is None or text.strip().isdecimal():
        return None if text is None else int(text)
    try:
        return float(text)
    except ValueError:
        return text
