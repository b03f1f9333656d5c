"""Problems by their names: of a file that exists, or was to, or else of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.grid import near
from halocline.lang.values import as_name
from halocline.physics.case import Case, Parameter
from halocline.physics.cases import case_named
from halocline.problems.files import is_file

if TYPE_CHECKING:
    from halocline.problems.case import CaseRun
    from halocline.problems.file import FileProblem


def problem_of(
    name: str,
    cells: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    *,
    method: str | None = None,
    **options: Any,
) -> CaseRun | FileProblem:
    """Return the problem of a name, ready for any verb.

    Parameters
    ----------
    cells : sequence of int, optional
        As ``--n`` says.
    settings : sequence of str
        Values of parameters, each as ``--set`` takes it.
    method : str, optional
        Method of a linear problem.
    **options
        ``dim``, ``order`` and ``scheme`` of a case.

    Raises
    ------
    InputError
        What is unknown, or cannot be.
    """
    if not is_file(name):
        case = case_named(name)
        check_kind(name, case, method=method, scheme=options.get("scheme"))
        if case.linear:
            options["scheme"] = method
        return case_run(name, cells, parameters_of(settings, name, case), **options)
    from halocline.problems.file import FileProblem

    for option, value in {**options, "method": method}.items():
        if value is not None:
            raise InputError(f"--{option} {value}: {name} is a file, which says that itself: leave it out")
    if cells is not None and len(cells) != 1:
        raise InputError(f"--n {','.join(map(str, cells))}: expected one number for a file")
    return FileProblem(Path(name), None if cells is None else cells[0], texts_of(settings))


def check_kind(name: str, case: Case, *, method: str | None = None, scheme: str | None = None) -> None:
    """Raise InputError for the method of a case with time steps, or the scheme of a linear problem."""
    if method is not None and not case.linear:
        raise InputError(f"--method {method}: {name} is no linear problem: leave it out")
    if scheme is not None and case.linear:
        raise InputError(
            f"--scheme {scheme}: {name} is a linear problem, which has no time: leave it out, or choose "
            "the method of the solve with --set method=NAME"
        )


def case_run(
    name: str,
    n: Sequence[int] | None = None,
    given: Mapping[str, float | str] | None = None,
    checkpoint: Path | None = None,
    **options: Any,
) -> CaseRun:
    """A case ready to run, of steps or a linear problem; with a checkpoint, the case that left it."""
    from halocline.problems.case import CaseRun
    from halocline.problems.linear import LinearCase

    kind = LinearCase if case_named(name).linear else CaseRun
    if checkpoint is not None:
        return kind.of_checkpoint(name, checkpoint, n, given, **options)
    return kind(name, n, given, **options)


def parameters_of(settings: Sequence[str], name: str, case: Case) -> dict[str, float | str]:
    """The parameters that --set gives.

    Raises
    ------
    InputError
        One that the case does not have, has no value, or is there twice.
    """
    given: dict[str, float | str] = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        key = as_name(key, "parameter name")
        own = case.parameters.get(key)
        if own is None:
            hint = near(key, case.parameters)
            known = ", ".join(f"{each} [{p.unit}]" for each, p in case.parameters.items())
            raise InputError(f"--set {setting}: {name} has no parameter {key!r}{hint}; known: {known}")
        value = text if own.words else _finite(setting, key, text, own)
        if own.words and text not in own.words:
            hint = near(text, own.words)
            raise InputError(
                f"--set {setting}: expected {own.range}{hint}: {own.about}; by default {own.default}"
            )
        if key in given:
            raise InputError(f"--set {setting}: {key} is given twice")
        given[key] = value
    return given


def _finite(setting: str, key: str, text: str, own: Parameter) -> float:
    """The number that --set gives a parameter."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"--set {setting}: expected {key}=NUMBER, {own.about} [{own.unit}]; by default {own.default:g}"
        )
    return number


def texts_of(settings: Sequence[str]) -> dict[str, str]:
    """The values that --set gives names of a file, as texts."""
    found: dict[str, str] = {}
    for setting in settings:
        name, between, text = setting.partition("=")
        name = as_name(name, "parameter name")
        if not between:
            raise InputError(f"--set {setting}: expected NAME=VALUE")
        if name in found:
            raise InputError(f"--set {setting}: {name} is given twice")
        found[name] = text
    return found


def described(ready: CaseRun | FileProblem) -> tuple[str, dict[str, Any]]:
    """What a problem is: a line for people, and facts for JSON."""
    facts = {
        "case": ready.name,
        "shape": ready.shape,
        "order": None if ready.is_program else ready.order,
        "scheme": ready.scheme,
        "parameters": dict(ready.values),
    }
    return f"{ready.title}; a pass is {ready.one_pass}", facts
