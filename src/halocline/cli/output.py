"""Output of a command: text on the first rank, and files that are written atomically."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.run.host.files import not_writable_reason, write_file
from halocline.run.host.streams import complain
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import world
from halocline.words import one_line, printable

STDOUT = "-"


def is_first_rank() -> bool:
    """Return True on the first rank, the only rank that prints and writes."""
    return launcher() is None or world().rank == 0


def say(text: str) -> None:
    """Print a text on the first rank."""
    if is_first_rank():
        print(printable(text), flush=True)


def check_files(*targets: str | Path | None) -> None:
    """Raise InputError if a file cannot be written. All ranks call this function before the computation."""
    paths = [Path(target) for target in targets if target is not None and str(target) != STDOUT]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError(f"{path} is the file of two options. Choose two different files.")
    problem = world().bcast(next(filter(None, map(_write_problem, paths)), None) if is_first_rank() else None)
    if problem:
        raise InputError(problem)


def check_pictures(*targets: Path | None) -> None:
    """Raise InputError if the suffix of a file is not a picture format."""
    from halocline.io.style import picture_file

    for target in filter(None, targets):
        picture_file(target)


def _write_problem(target: Path) -> str | None:
    """Return a message if a file cannot be written; otherwise None."""
    reason = not_writable_reason(target)
    return f"cannot write {target}: {reason}" if reason else None


def write(target: str | Path | None, text: str) -> None:
    """Write a text to a file on the first rank; see `halocline.run.host.files.write_file`."""
    if target is None or not is_first_rank():
        return
    if str(target) == STDOUT:
        print(printable(text), end="", flush=True)
    else:
        write_file(Path(target), text)


def write_json(target: str | None, data: Any) -> None:
    """Write data as JSON on the first rank."""
    if target is not None:
        write(target, json.dumps(data, indent=2, allow_nan=False) + "\n")


def print_results(text: str, target: str | None, data: Any, *files: Path | None) -> None:
    """Print a text unless standard output receives the JSON. Write the JSON, and report the written files."""
    if target != STDOUT:
        say(text)
    write_json(target, data)
    report_written([target, *files])


def note(text: str) -> None:
    """Print a note to the error stream of the first rank."""
    if is_first_rank():
        complain(text)


def report_written(targets: Iterable[str | Path | None]) -> None:
    """Print the names of the files that were written."""
    names = [one_line(str(target)) for target in targets if target is not None and str(target) != STDOUT]
    if names:
        note("wrote " + ", ".join(names))
