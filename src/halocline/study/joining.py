"""Measurement files of any machines, MPIs and commits, joined into one report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.plan.traffic import Traffic
from halocline.study.engine import reported
from halocline.study.measurement import Measurement, conditions, joined_repeats, source
from halocline.study.measuring.command import EXECUTION, RUN, common
from halocline.study.records import read
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Block, Column, Contents, Group, Report, Rows
from halocline.study.reporting.theory import Exchanged, Theory
from halocline.study.study import Study, studies
from halocline.words import counted
from halocline.words import joined as joined_words


def joined(files: Sequence[Path]) -> tuple[list[Measurement], Report]:
    """All measurements of some files, and one report of them.

    Raises
    ------
    InputError
        A file that cannot be read, holds no measurements of a study, or is given twice.
    """
    again = next((path for path, count in Counter(map(Path.resolve, files)).items() if count > 1), None)
    if again is not None:
        raise InputError(f"{again} is given twice: its measurements would count twice; leave one out")
    known, found = studies(), list[Measurement]()
    formulas: dict[Any, Any] = {}  # what is exchanged, by problem
    for path in files:
        records, facts = read(path)
        measurements = [common(record) for record in records]
        found += measurements
        for m in measurements:
            if m["study"] not in known:
                raise InputError(f"{path}: study {m['study']!r} is unknown; known: {', '.join(known)}")
            if "theory" in facts:
                formulas.setdefault(held_conditions(known[m["study"]], m), {}).update(
                    _exchanged(facts["theory"])
                )
    if not found:
        read_files = ", ".join(map(str, files))
        raise InputError(f"{read_files}: no measurements of a study; expected what --json of a study wrote")
    reports = []
    groups = Group(found, None).by(lambda m: held_conditions(known[m["study"]], m))
    held = [held_conditions(known[own.one["study"]], own.one) for own in groups]
    for own, own_conditions in zip(groups, held, strict=True):
        study = known[own.one["study"]]
        siblings = [
            dict(theirs)
            for other, theirs in zip(groups, held, strict=True)
            if (other.one["study"], other.one["case"]) == (own.one["study"], own.one["case"])
        ]
        names = _differing(dict(own_conditions), siblings)
        exchanged = formulas.get(own_conditions)
        each = _of_problem(study, own.found, exchanged)
        what = joined_words(f"{study.title}: {q.named(own.one)}", *names)
        if len(groups) > 1:
            tables = [replace(t, heading=t.heading and f"{what}: {t.heading}") for t in each.tables]
            each = replace(each, tables=tables, said=[f"{what}: {text}" for text in each.said])
        reports.append(each)
    if len(reports) == 1:
        return found, reports[0]
    return found, Report(
        [table for each in reports for table in each.tables],
        [text for each in reports for text in each.said],
        lambda: _numbered(reports),
        what=counted(len(files), "file"),
        footer="\n".join(dict.fromkeys(each.footer for each in reports)),
    )


def held_conditions(study: Study, measurement: Measurement) -> tuple[tuple[str, str], ...]:
    """Return the conditions that the tables of a study do not vary, by name.

    Measurements that differ in one of them are not compared with each other. An option that the study varied
    counts with the value that it has in the other runs.
    """
    varied = measurement.get("varied") or {}
    base = {name: RUN.get(name, EXECUTION.get(name)) for name in varied} | measurement.get("base", {})
    return tuple(conditions(measurement, without=study.axes, instead=base).items())


def _differing(own_conditions: Mapping[str, str], siblings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the conditions that differ among the groups of a study and case, each as text."""
    names = [name for name in own_conditions if len({each[name] for each in siblings}) > 1]
    return [f"{name.replace('_', ' ')} {_in_words(own_conditions[name])}" for name in names]


def _in_words(value: str) -> str:
    """Return the value of a condition in the form of a heading."""
    if value.startswith("{"):
        pairs = (f"{name}={_in_words(str(each))}" for name, each in json.loads(value).items())
        return " ".join(pairs) or "not set"
    return "not set" if value in ("", "null", "None") else value


def _numbered(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        f"{number}-{file}": drawn
        for number, each in enumerate(reports)
        for file, drawn in each.figures().items()
    }


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


def _of_problem(study: Study, found: Sequence[Measurement], exchanged: Any) -> Report:
    """The report of one problem; with several sources its tables for each, and a table of all."""
    distinct = joined_repeats(sorted(found, key=q.grid))
    repeats = _repeats(distinct)
    parts = Group(distinct, None).by(source)
    made = [reported(study, part.found, _theory(exchanged, part.found)) for part in parts]
    if len(parts) == 1:
        return replace(made[0], said=[*repeats, *made[0].said])
    whole = Group(distinct, None)
    tables, said = list(ACROSS.tables(whole)), [*repeats, *ACROSS.said(whole)]
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


def _repeats(distinct: Sequence[Measurement]) -> list[str]:
    """Return a sentence on the measurements that were joined as repeats, if there are any."""
    repeated = [m for m in distinct if "repeats" in m]
    if not repeated:
        return []
    count = sum(m["repeats"] for m in repeated)
    spread = max(max(m["times"]) / min(m["times"]) for m in repeated)
    return [
        f"{counted(count, 'measurement')} of {counted(len(repeated), 'run')} are repeats with the same bits: "
        f"times are medians of all of their runs, which differ by up to a factor of {spread:.2f}."
    ]


def _fastest(group: Group) -> list[str]:
    said = []
    for own in group.by(lambda m: (m["case"], q.grid(m))):
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
            by=lambda m: (m["case"], q.grid(m)),
            heading=lambda g: f"{g.one['case']}, {q.size(g.one)}",
        ),
    ),
    sentences=(_fastest,),
    of=lambda group: group.those(lambda m: m.get("only") is None),
)
