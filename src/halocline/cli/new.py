"""`halocline new`."""

from __future__ import annotations

from pathlib import Path

from halocline.cli.output import check_files, note, write
from halocline.errors import InputError
from halocline.problems.files import case_names, path_of
from halocline.words import near


def new(name: str, case: str) -> None:
    """Write a problem file to edit: a copy of the file of a case."""
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if path.exists():
        raise InputError(f"{path} exists already: choose another name, or remove it")
    known = case_names()
    if case not in known:
        raise InputError(
            f"--from {case}: there is no such case{near(case, known)}; cases: {', '.join(known)}"
        )
    check_files(path)
    write(path, path_of(case).read_text())
    note(f"wrote {path}; run it with: halocline run {path}")
