"""Measurement files of any machines, MPIs and commits, joined into one report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.plan.traffic import Traffic
from halocline.study.engine import reported
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Block, Column, Contents, Group, Report, Rows
from halocline.study.reporting.theory import Theory, Travels
from halocline.study.study import Study, studies


def reports(files: Sequence[Path]) -> Iterator[tuple[Study, list[Measurement], Report]]:
    """A report for each study that has measurements in some files.

    Raises
    ------
    InputError
        A file that cannot be read, or holds no measurements of a study.
    """
    known, found, theories = studies(), dict[str, list[Measurement]](), dict[str, Theory]()
    for path in files:
        measurements, facts = _read(path)
        for m in measurements:
            found.setdefault(m["study"], []).append(m)
        if measurements and "theory" in facts:
            theories.setdefault(measurements[0]["study"], _theory(facts["theory"]))
    for name, own in found.items():
        if name not in known:
            raise InputError(f"study {name!r} is unknown; known: {', '.join(known)}")
        yield known[name], own, joined(known[name], own, theories.get(name))


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
    return measurements, data if isinstance(data, dict) else {}


def _theory(facts: Any) -> Theory:
    """The formula as a file has it."""
    travels = {
        order: Travels(
            Traffic(
                tuple((tuple(way), weight) for way, weight in each["traffic"]["weights"]),
                tuple(map(tuple, each["traffic"]["layers"])),
            ),
            tuple(each["thickness"]),
            tuple(each["periodic"]),
        )
        for order, each in facts.get("travels", [])
    }
    return Theory(travels, facts["per_byte"], facts["measured_on"])


def source(measurement: Measurement) -> str:
    """Where a measurement comes from: host, MPI and commit."""
    machine = measurement["machine"]
    mpi = str(machine["mpi_version"] or "no MPI").partition(",")[0].partition("\n")[0].strip()
    return f"{machine['host']}, {mpi}, commit {(machine['commit'] or 'unknown')[:12]}"


def joined(study: Study, found: Sequence[Measurement], theory: Theory | None) -> Report:
    """The report of a study; with several sources its tables for each, and a table of all."""
    parts = Group(found, theory).by(source)
    if len(parts) == 1:
        return reported(study, found, theory)
    tables, said = list(ACROSS.tables(Group(found, theory))), list(ACROSS.said(Group(found, theory)))
    figures: dict[str, Any] = {}
    for number, part in enumerate(parts):
        own = reported(study, part.found, theory)
        where = source(part.one)
        tables += [replace(t, heading=t.heading and f"{t.heading} ({where})") for t in own.tables]
        said += [f"{where}: {sentence}" for sentence in own.said]
        figures |= {f"{number}-{file}": draw for file, draw in _later(own).items()}
    return Report(
        tables,
        said,
        lambda: {file: draw() for file, draw in figures.items()},
        what=f"{len(parts)} sources",
        footer=study.footer,
    )


def _later(report: Report) -> dict[str, Any]:
    """The figures of a report, each drawn when it is called."""
    names = report.figures()
    return {file: (lambda drawn=drawn: drawn) for file, drawn in names.items()}


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
