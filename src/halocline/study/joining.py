"""Measurement files of any machines, MPIs and commits, joined into one report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.plan.traffic import Traffic
from halocline.study.engine import reported
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import common
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Block, Column, Contents, Group, Report, Rows
from halocline.study.reporting.theory import Exchanged, Theory
from halocline.study.study import Study, studies
from halocline.words import counted


def joined(files: Sequence[Path]) -> tuple[list[Measurement], Report]:
    """All measurements of some files, and one report of them.

    Raises
    ------
    InputError
        A file that cannot be read, or holds no measurements of a study.
    """
    known, found = studies(), list[Measurement]()
    formulas: dict[Any, Any] = {}  # what is exchanged, by problem
    for path in files:
        measurements, facts = _read(path)
        found += measurements
        for m in measurements:
            if m["study"] not in known:
                raise InputError(f"{path}: study {m['study']!r} is unknown; known: {', '.join(known)}")
            if "theory" in facts:
                formulas.setdefault(problem(m), {}).update(_exchanged(facts["theory"]))
    reports, several = [], len({problem(m) for m in found}) > 1
    for own in Group(found, None).by(problem):
        exchanged = formulas.get(problem(own.one))
        each = _of_problem(known[own.one["study"]], own.found, exchanged)
        what = f"{known[own.one['study']].title}: {q.named(own.one)}"
        tables = [replace(t, heading=t.heading and f"{what}: {t.heading}") for t in each.tables]
        reports.append(replace(each, tables=tables if several else each.tables))
    if len(reports) == 1:
        return found, reports[0]
    return found, Report(
        [table for each in reports for table in each.tables],
        [text for each in reports for text in each.said],
        lambda: _numbered(reports),
        what=counted(len(files), "file"),
        footer="\n".join(dict.fromkeys(each.footer for each in reports)),
    )


def problem(measurement: Measurement) -> tuple[str, ...]:
    """What is compared with each other: the study, the case and how it is solved."""
    m = measurement
    return (m["study"], *(str(m.get(name) or "") for name in ("case", "settings", "scheme", "method")))


def _numbered(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        f"{number}-{file}": drawn
        for number, each in enumerate(reports)
        for file, drawn in each.figures().items()
    }


def _read(path: Path) -> tuple[list[Measurement], dict[str, Any]]:
    try:
        data = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    measurements = data.get("measurements") if isinstance(data, dict) else data
    if not isinstance(measurements, list) or not all(
        isinstance(m, dict) and "study" in m for m in measurements
    ):
        raise InputError(f"{path} holds no measurements of a study; expected what --json of a study wrote")
    return [common(m) for m in measurements], data if isinstance(data, dict) else {}


def _exchanged(facts: Any) -> dict[int | None, Exchanged]:
    """What is exchanged, as a file has it."""
    return {
        order: Exchanged(
            Traffic(
                tuple((tuple(way), weight) for way, weight in each["traffic"]["weights"]),
                tuple(map(tuple, each["traffic"]["layers"])),
            ),
            tuple(each["thickness"]),
            tuple(each["periodic"]),
        )
        for order, each in facts.get("exchanged", [])
    }


def source(measurement: Measurement) -> str:
    """Where a measurement comes from: processor or device, MPI and commit. Jobs of one cluster start on other
    hosts."""
    machine = measurement["machine"]
    mpi = str(machine["mpi_version"] or "no MPI").partition(",")[0].partition("\n")[0].strip()
    what = measurement["devices"][0]["name"] if measurement["devices"] else machine["cpu"]
    return f"{what}, {mpi}, commit {(machine['commit'] or 'unknown')[:12]}"


def _of_problem(study: Study, found: Sequence[Measurement], exchanged: Any) -> Report:
    """The report of one problem; with several sources its tables for each, and a table of all."""
    parts = Group(found, None).by(source)
    made = [reported(study, part.found, _theory(exchanged, part.found)) for part in parts]
    if len(parts) == 1:
        return made[0]
    tables, said = list(ACROSS.tables(Group(found, None))), list(ACROSS.said(Group(found, None)))
    for part, own in zip(parts, made, strict=True):
        where = source(part.one)
        tables += [replace(t, heading=t.heading and f"{t.heading} ({where})") for t in own.tables]
        said += [f"{where}: {sentence}" for sentence in own.said]
    return Report(
        tables, said, lambda: _numbered(made), what=counted(len(parts), "source"), footer=study.footer
    )


def _theory(exchanged: Any, found: Sequence[Measurement]) -> Theory | None:
    """With the constants of this source."""
    exchanges = [m for m in found if m.get("only") == "exchange"]
    return None if exchanged is None else Theory.of(exchanged, exchanges)


def _fastest(group: Group) -> list[str]:
    said = []
    for own in group.by(lambda m: (m["case"], m["cells"])):
        said.append(
            f"{own.one['case']}, {q.size(own.one)}: fastest on {source(own.best)} with {q.layout(own.best)}."
        )
    return said


ACROSS = Contents(
    (
        Block(
            (
                Rows(
                    "Machines, MPI libraries and commits",
                    (Column("", lambda m, g: source(m)), c.LAYOUT, c.NS, c.SECONDS, c.SLOWER, c.SSSPNT),
                    order=lambda m: (q.units(m), m["ranks"], source(m)),
                    left=2,
                ),
            ),
            by=lambda m: (m["case"], m["cells"]),
            heading=lambda g: f"{g.one['case']}, {q.size(g.one)}",
        ),
    ),
    sentences=(_fastest,),
    of=lambda group: group.those(lambda m: m.get("only") is None),
)
