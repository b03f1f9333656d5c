"""`halocline cases`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, say, write_json, written

if TYPE_CHECKING:
    from halocline.physics.case import Case


def cases(name: str | None, json: str | None) -> None:
    """List the cases, or show one with its parameters."""
    from halocline.physics import cases as known

    check_files(json)
    chosen = known.cases() if name is None else {name: known.case_named(name)}
    facts = {each: _facts(case) for each, case in chosen.items()}
    write_json(json, facts if name is None else facts[name])
    if json != "-":
        say(_list(chosen) if name is None else _page(name, chosen[name]))
        written([json])


def _facts(case: Case) -> dict[str, Any]:
    return {
        "about": case.about,
        "origin": case.origin,
        "axes": len(case.shape),
        "shape": case.shape,
        "shapes": case.sizes,
        "steps": case.steps,
        "until": case.until,
        "check": case.check is not None,
        "error": case.error is not None,
        "extrapolated": [] if case.extrapolated is None else case.extrapolated.names,
        "parameters": {name: asdict(own) for name, own in case.parameters.items()},
    }


def _axes(case: Case) -> str:
    counts = list(case.sizes)
    least, most = counts[0], counts[-1]
    if len(counts) == most - least + 1:
        return str(most) if least == most else f"{least}-{most}"
    return ",".join(map(str, counts))


def _list(chosen: Mapping[str, Case]) -> str:
    from halocline.io.table import Table

    rows = tuple((name, _axes(case), case.about) for name, case in chosen.items())
    note = "halocline cases NAME shows the parameters of one, halocline run NAME runs it."
    return Table("Cases", ("name", "axes", "about"), rows, left=3, note=note).text().rstrip()


def _page(name: str, case: Case) -> str:
    from halocline.io.table import Table
    from halocline.words import joined

    rows = tuple(
        (
            key,
            p.default if isinstance(p.default, str) else f"{p.default:g}",
            p.range.removeprefix("a "),
            p.unit,
            p.about,
        )
        for key, p in case.parameters.items()
    )
    shape = " x ".join(map(str, case.shape))
    steps = None if case.steps is None else f"{case.steps} steps"
    end = joined(steps if case.until is None else f"to time {case.until:g}", case.end)
    further = [
        f"{'':9} {' x '.join(map(str, own))} cells with --dim {dim}" for dim, own in case.shapes.items()
    ]
    judged = [f"{'check':9} --check compares the result with what it must satisfy"]
    known = [f"{'error':9} halocline study convergence {name} shows how it falls on finer grids"]
    leads = [f"{'limits':9} halocline study convergence {name} extrapolates its numbers from finer grids"]
    heads = ("name", "default", "range", "unit", "meaning")
    table = Table("Parameters, for --set NAME=VALUE", heads, rows, left=5)
    origins: dict[str, list[str]] = {}
    for key, p in case.parameters.items():
        origins.setdefault(p.origin, []).append(key)
    return "\n".join(
        [
            f"{name}: {case.about}",
            "",
            f"{'origin':9} {case.origin}",
            f"{'axes':9} {_axes(case)}",
            f"{'default':9} {shape} cells, {end}",
            *further,
            *(judged if case.check is not None else []),
            *(known if case.error is not None else []),
            *(leads if case.error is None and case.extrapolated is not None else []),
            "",
            table.text().rstrip(),
            "",
            "Origin of the defaults",
            *(f"  {origin}: {', '.join(keys)}" for origin, keys in origins.items()),
        ]
    )
