"""Implementation of `halocline cases`: list and description of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halocline.cli.output import check_files, print_results
from halocline.io.table import Table
from halocline.problems.files import case_names, path_of
from halocline.problems.problem import Problem
from halocline.run.simulation.script import Script
from halocline.words import joined


def cases(name: str | None, json: str | None) -> None:
    """Print the list of cases, or one case with its parameters."""
    check_files(json)
    if name is None:
        text = _list()
        facts = None if json is None else {case: _facts(Problem(case)) for case in case_names()}
    else:
        problem = Problem(name)
        text, facts = _page(problem), _facts(problem)
    print_results(text, json, facts)


def _facts(problem: Problem) -> dict[str, Any]:
    names, defined = problem.known, problem.script.defined
    return {
        "about": problem.script.about,
        "origin": problem.script.origin,
        "axes": len(problem.default_cells()),
        "shape": problem.default_cells(),
        "shapes": problem.sizes,
        "steps": names.steps,
        "until": names.until,
        "check": "check" in defined,
        "error": "error" in defined,
        "extrapolated": [] if names.extrapolated is None else names.extrapolated.names,
        "parameters": {name: setting.facts() for name, setting in problem.declared.items()},
    }


def _axes(sizes: Sequence[tuple[int, ...]]) -> str:
    counts = sorted(map(len, sizes))
    minimum, maximum = counts[0], counts[-1]
    if len(counts) == maximum - minimum + 1:
        return str(maximum) if minimum == maximum else f"{minimum}-{maximum}"
    return ",".join(map(str, counts))


def _list() -> str:
    scripts = ((name, Script(path_of(name))) for name in case_names())
    rows = tuple((name, _axes(script.default_cells), script.about) for name, script in scripts)
    note = "`halocline cases NAME` shows the parameters of a case. `halocline run NAME` runs the case."
    return Table("Cases", ("name", "axes", "about"), rows, left=3, note=note).text().rstrip()


def _page(problem: Problem) -> str:
    names, defined, parameters = problem.known, problem.script.defined, problem.declared
    rows, origins = [], dict[str, list[str]]()
    for key, p in parameters.items():
        value = p.default if isinstance(p.default, str) else f"{p.default:g}"
        rows.append((key, value, p.range.removeprefix("a "), p.unit, p.about))
        origins.setdefault(p.origin, []).append(key)
    default = problem.default_cells()
    steps = None if names.steps is None else f"{names.steps} steps"
    end = joined(steps if names.until is None else f"to time {names.until:g}")
    extra_lines = [
        f"{'':9} {' x '.join(map(str, size))} cells with --dim {dim}"
        for dim, size in problem.sizes.items()
        if size != default
    ]
    study = f"halocline study convergence {problem.name}"
    if "check" in defined:
        extra_lines.append(f"{'check':9} --check compares the result with the conditions of the case")
    if "error" in defined:
        extra_lines.append(f"{'error':9} {study} shows the error on finer grids")
    if names.is_extrapolated:
        extra_lines.append(f"{'limits':9} {study} extrapolates results to grid spacing 0")
    heads = ("name", "default", "range", "unit", "meaning")
    table = Table("Parameters, for --set NAME=VALUE", heads, tuple(rows), left=5)
    return "\n".join(
        [
            f"{problem.name}: {problem.script.about}",
            "",
            f"{'origin':9} {problem.script.origin}",
            f"{'axes':9} {_axes(list(problem.sizes.values()) or [problem.shape])}",
            f"{'default':9} {joined(' x '.join(map(str, default)) + ' cells', end)}",
            *extra_lines,
            "",
            table.text().rstrip(),
            "",
            "Origin of the defaults",
            *(f"  {origin}: {', '.join(keys)}" for origin, keys in origins.items()),
        ]
    )
