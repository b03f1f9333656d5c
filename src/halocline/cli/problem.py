"""A case or a file, as the options of a command describe it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError

if TYPE_CHECKING:
    from halocline.study.problems.case import CaseRun
    from halocline.study.problems.file import FileProblem


def names_file(target: str) -> bool:
    """Whether a word means a file, and no case: one that exists, or was to."""
    return Path(target).is_file() or target.endswith(".py")


def problem_of(
    name: str, cells: Sequence[int] | None, settings: Sequence[str], also: Sequence[str] = (), **options: Any
) -> CaseRun | FileProblem:
    """The problem of a name: of a file that exists or was to, or else of a case.

    Parameters
    ----------
    cells : sequence of int, optional
        As ``--n`` says.
    settings : sequence of str
        What ``--set`` takes, each.
    also : sequence of str
        What else the command takes in the place of the name.
    **options
        ``dim``, ``order`` and ``scheme`` of a case.

    Raises
    ------
    InputError
        What is unknown, or cannot be.
    """
    from halocline.cli.run_case import parameters_of
    from halocline.cli.script import texts_of
    from halocline.physics.cases import case_named
    from halocline.study.problems.case import CaseRun
    from halocline.study.problems.file import FileProblem

    if not names_file(name):
        return CaseRun(name, cells, parameters_of(settings, name, case_named(name, also)), **options)
    for option, value in options.items():
        if value is not None:
            raise InputError(f"--{option} {value}: {name} is a file, which says that itself: leave it out")
    if cells is not None and len(cells) != 1:
        raise InputError(f"--n {','.join(map(str, cells))}: expected one number for a file")
    return FileProblem(Path(name), None if cells is None else cells[0], texts_of(settings))


def described(ready: CaseRun | FileProblem) -> tuple[str, dict[str, Any]]:
    """What a problem is: a line for people, and facts for JSON."""
    from halocline.study.reporting.table import joined

    shape = " x ".join(f"{each:,}" for each in ready.shape)
    title = f"{joined(ready.name, f'{shape} cells', ready.method)}; a pass is {ready.one_pass}"
    facts = {
        "case": ready.name,
        "shape": ready.shape,
        "order": None if ready.is_program else ready.order,
        "scheme": ready.scheme,
        "parameters": dict(ready.values),
    }
    return title, facts
