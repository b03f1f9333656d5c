"""Creation of the problem that wrote a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halocline.archive.reader import Store
from halocline.errors import InputError
from halocline.lang.dtype import DTYPES
from halocline.problems.problem import Problem
from halocline.run.output.restart import Saved, newest


def problem_of_checkpoint(
    name: str,
    path: str | Path,
    n: Sequence[int] | None = None,
    replacements: Mapping[str, float | str] | None = None,
    **options: Any,
) -> Problem:
    """Return the problem that wrote a checkpoint.

    If the caller does not set the cells, parameters, order, scheme or precision, the values come from the
    checkpoint.

    Raises
    ------
    InputError
        There is no checkpoint, or it belongs to another problem; see also `Problem`.
    """
    problem = Problem(name, n, replacements, **options)
    if not problem.has_settings:
        return problem
    saved = Saved(newest(Path(path)))
    facts = saved.facts.get("case")
    if facts is None and problem.is_linear:
        facts = _facts_of_solve(saved, problem.name)
    if facts is None or facts["name"] != problem.name:
        origin = "no case" if facts is None else f"case {facts['name']}"
        raise InputError(f"checkpoint {saved.folder} belongs to {origin}, not to {problem.name}")
    requested = {key: options.get(key) for key in ("order", "scheme", "dtype")}
    saved_values = {"dtype": DTYPES[0], **facts}  # checkpoints of earlier versions lack the precision
    saved_values = {key: saved_values[key] for key in requested}
    if problem.is_linear:  # a simulation may change these; the grid of the checkpoint is compared later
        is_one = n is not None and len(n) == 1
        requested |= {"n": n, "dim": options.get("dim"), "method": (replacements or {}).get("method")}
        saved_values |= {"n": facts["n"][:1] if is_one else facts["n"], "dim": len(facts["n"])}
        saved_values |= {"method": facts["given"].get("method")}
    for key, value in requested.items():
        if value is not None and saved_values[key] is not None and _plain(value) != _plain(saved_values[key]):
            raise InputError(
                f"{key} is {_plain(value)}, but checkpoint {saved.folder} belongs to a run with "
                f"{_plain(saved_values[key])}. Leave {key} out."
            )
    return Problem(
        name,
        facts["n"] if n is None else n,
        {**facts["given"], **(replacements or {})},
        dim=options.get("dim"),
        **{key: facts[key] if options.get(key) is None else options[key] for key in ("order", "scheme")},
        dtype=None
        if saved_values["dtype"] == DTYPES[0]
        else saved_values["dtype"],  # None: fields keep the precision that the file sets
    )


def _plain(value: Any) -> Any:
    """Return a value in the form for messages: a list becomes a text with commas."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _facts_of_solve(saved: Saved, name: str) -> dict[str, Any] | None:
    """Return the facts of a case for the checkpoint of a solve that an earlier version wrote.

    Such a checkpoint lacks these facts. They follow from the method and the array in the checkpoint.
    """
    if "method" not in saved.facts:
        return None
    array = next(iter(Store(saved.folder).variables.values()))
    parameters = {"method": str(saved.facts["method"])}
    facts = {"name": name, "n": list(array.shape), "given": parameters, "dtype": array.dtype}
    return {**facts, "order": None, "scheme": None}
