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
    """Return all measurements of some files, and one report of them.

    Raises
    ------
    InputError
        A file cannot be read, holds no measurements of a study, or is given twice.
    """
    duplicate = next((path for path, count in Counter(map(Path.resolve, files)).items() if count > 1), None)
    if duplicate is not None:
        raise InputError(f"{duplicate} is given twice: its measurements would count twice; leave one out")
    by_name, all_measurements = studies(), list[Measurement]()
    formulas: dict[Any, Any] = {}  # exchanged data, by the conditions of a problem
    for path in files:
        records, facts = read(path)
        measurements = [common(record) for record in records]
        all_measurements += measurements
        for m in measurements:
            if m["study"] not in by_name:
                raise InputError(f"{path}: study {m['study']!r} is unknown; known: {', '.join(by_name)}")
            if "theory" in facts:
                formulas.setdefault(held_conditions(by_name[m["study"]], m), {}).update(
                    _exchanged(facts["theory"])
                )
    if not all_measurements:
        read_files = ", ".join(map(str, files))
        raise InputError(f"{read_files}: no measurements of a study; expected what --json of a study wrote")
    reports = []
    groups = Group(all_measurements, None).by(lambda m: held_conditions(by_name[m["study"]], m))
    held = [held_conditions(by_name[group.one["study"]], group.one) for group in groups]
    for group, group_conditions in zip(groups, held, strict=True):
        study = by_name[group.one["study"]]
        siblings = [
            dict(other_conditions)
            for other_group, other_conditions in zip(groups, held, strict=True)
            if (other_group.one["study"], other_group.one["case"]) == (group.one["study"], group.one["case"])
        ]
        differences = _differing(dict(group_conditions), siblings)
        exchanged = formulas.get(group_conditions)
        report = _of_problem(study, group.found, exchanged)
        prefix = joined_words(f"{study.title}: {q.named(group.one)}", *differences)
        if len(groups) > 1:
            tables = [replace(t, heading=t.heading and f"{prefix}: {t.heading}") for t in report.tables]
            report = replace(report, tables=tables, said=[f"{prefix}: {text}" for text in report.said])
        reports.append(report)
    if len(reports) == 1:
        return all_measurements, reports[0]
    return all_measurements, Report(
        [table for report in reports for table in report.tables],
        [text for report in reports for text in report.said],
        lambda: _numbered(reports),
        what=counted(len(files), "file"),
        footer="\n".join(dict.fromkeys(report.footer for report in reports)),
    )


def held_conditions(study: Study, measurement: Measurement) -> tuple[tuple[str, str], ...]:
    """Return the conditions that the tables of a study hold fixed, by name.

    Measurements that differ in a condition are not compared with each other. For an option that the study
    varies, the condition is the value of the option in the other runs.
    """
    varied = measurement.get("varied") or {}
    base = {name: RUN.get(name, EXECUTION.get(name)) for name in varied} | measurement.get("base", {})
    return tuple(conditions(measurement, without=study.axes, instead=base).items())


def _differing(own_conditions: Mapping[str, str], siblings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the conditions that differ between the groups of a study and case, as texts."""
    names = [name for name in own_conditions if len({sibling[name] for sibling in siblings}) > 1]
    return [f"{name.replace('_', ' ')} {_in_words(own_conditions[name])}" for name in names]


def _in_words(value: str) -> str:
    """Return the value of a condition as text for a heading."""
    if value.startswith("{"):
        pairs = (f"{name}={_in_words(str(item))}" for name, item in json.loads(value).items())
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
    """Return the report of one problem; with several sources it has tables of each and of all."""
    distinct = joined_repeats(sorted(found, key=q.grid))
    repeats = _repeats(distinct)
    parts = Group(distinct, None).by(source)
    reports = [reported(study, part.found, _theory(exchanged, part.found)) for part in parts]
    if len(parts) == 1:
        return replace(reports[0], said=[*repeats, *reports[0].said])
    group = Group(distinct, None)
    tables, sentences = list(ACROSS.tables(group)), [*repeats, *ACROSS.said(group)]
    for part, report in zip(parts, reports, strict=True):
        origin = source(part.one)
        tables += [replace(t, heading=t.heading and f"{t.heading} ({origin})") for t in report.tables]
        sentences += [f"{origin}: {sentence}" for sentence in report.said]
    return Report(
        tables, sentences, lambda: _numbered(reports), what=counted(len(parts), "source"), footer=study.footer
    )


def _theory(exchanged: Any, found: Sequence[Measurement]) -> Theory | None:
    """With the constants of this source."""
    exchanges = [m for m in found if m.get("only") == "exchange"]
    return None if exchanged is None else Theory.of(exchanged, exchanges)


def _repeats(distinct: Sequence[Measurement]) -> list[str]:
    """Return a sentence about the measurements that are joined as repeats, if there are any."""
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
    sentences = []
    for part in group.by(lambda m: (m["case"], q.grid(m))):
        sentences.append(
            f"{part.one['case']}, {q.size(part.one)}: fastest on {source(part.best)} "
            f"with {q.layout(part.best)}."
        )
    return sentences


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
