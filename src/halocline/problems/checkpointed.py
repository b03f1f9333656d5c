"""Problems that a checkpoint describes."""

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
    given: Mapping[str, float | str] | None = None,
    **options: Any,
) -> Problem:
    """Return the problem that left a checkpoint.

    The cells, parameters, order, scheme and precision are those of the checkpoint where others are not given.

    Raises
    ------
    InputError
        There is no checkpoint, or it is of another problem; and see `Problem`.
    """
    problem = Problem(name, n, given, **options)
    if not problem.has_settings:
        return problem
    saved = Saved(newest(Path(path)))
    facts = saved.facts.get("case")
    if facts is None and problem.is_linear:
        facts = _facts_of_solve(saved, problem.name)
    if facts is None or facts["name"] != problem.name:
        whose = "no case" if facts is None else f"case {facts['name']}"
        raise InputError(f"checkpoint {saved.folder} is of {whose}, not of {problem.name}")
    asked = {key: options.get(key) for key in ("order", "scheme", "dtype")}
    left = {"dtype": DTYPES[0], **facts}  # checkpoints of earlier versions lack the precision
    left = {key: left[key] for key in asked}
    if problem.is_linear:  # a simulation may have others; the grid of the checkpoint is compared later
        is_one = n is not None and len(n) == 1
        asked |= {"n": n, "dim": options.get("dim"), "method": (given or {}).get("method")}
        left |= {"n": facts["n"][:1] if is_one else facts["n"], "dim": len(facts["n"])}
        left |= {"method": facts["given"].get("method")}
    for key, value in asked.items():
        if value is not None and left[key] is not None and _plain(value) != _plain(left[key]):
            raise InputError(
                f"{key} is {_plain(value)}, but checkpoint {saved.folder} is of a run with "
                f"{_plain(left[key])}: leave it out"
            )
    return Problem(
        name,
        facts["n"] if n is None else n,
        {**facts["given"], **(given or {})},
        dim=options.get("dim"),
        **{key: facts[key] if options.get(key) is None else options[key] for key in ("order", "scheme")},
        dtype=None if left["dtype"] == DTYPES[0] else left["dtype"],  # None: fields that name theirs keep it
    )


def _plain(value: Any) -> Any:
    """Return a value for a message; a list as text with commas."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _facts_of_solve(saved: Saved, name: str) -> dict[str, Any] | None:
    """Return the facts of a case in a checkpoint of a solve that has none of its own, as earlier ones."""
    if "method" not in saved.facts:
        return None
    array = next(iter(Store(saved.folder).variables.values()))
    given = {"method": str(saved.facts["method"])}
    facts = {"name": name, "n": list(array.shape), "given": given, "dtype": array.dtype}
    return {**facts, "order": None, "scheme": None}
