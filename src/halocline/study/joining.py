"""Joint report of measurement files, which may come from several machines, MPI libraries and commits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.study.engine import build_report
from halocline.study.measurement import Measurement, conditions, join_repeats, ranks_of_node, source
from halocline.study.measuring.command import EXECUTION, RUN, with_common_keys
from halocline.study.records import read
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Column, Group, Report, by_layout, ordered_rows, row_table
from halocline.study.reporting.theory import StepExchanges, Theory
from halocline.study.study import Study, studies
from halocline.study.ways import VARIANT_TEXTS, labels, varied_keys
from halocline.words import counted, joined

Conditions = tuple[tuple[str, str], ...]


def parse_label(text: str) -> tuple[str, Path]:
    """Return the label and the path in a text such as "NewRiver=a.json". A missing label is an empty text."""
    name, separator, path = text.partition("=")
    return (name, Path(path)) if separator and path and not Path(text).exists() else ("", Path(text))


def join_files(files: Mapping[Path, str] | Sequence[Path]) -> tuple[list[Measurement], Report]:
    """Return all measurements of several files, and a joint report.

    Parameters
    ----------
    files : sequence of Path, or mapping of Path to str
        Paths of the files. In a mapping, the values are labels. Files with different labels count as
        different sources.

    Raises
    ------
    InputError
        A file cannot be read, contains no measurements of a study, or occurs twice.
    """
    duplicate = next((path for path, count in Counter(map(Path.resolve, files)).items() if count > 1), None)
    if duplicate is not None:
        raise InputError(
            f"{duplicate} is given twice. Name this file once, because its measurements would count twice."
        )
    by_name, all_measurements = studies(), list[Measurement]()
    exchanges: dict[Conditions, dict[int | None, StepExchanges]] = {}
    for path in files:
        records, exchanged = read(path)
        label = files[path] if isinstance(files, Mapping) else ""
        measurements = [with_common_keys(record) | ({"label": label} if label else {}) for record in records]
        all_measurements += measurements
        for m in measurements:
            if m["study"] not in by_name:
                raise InputError(f"{path}: study {m['study']!r} is unknown; known: {', '.join(by_name)}")
            if exchanged is not None:
                fixed_conditions = fixed_conditions_of(by_name[m["study"]], m)
                exchanges.setdefault(fixed_conditions, {}).update(exchanged)
    if not all_measurements:
        read_files = ", ".join(map(str, files))
        raise InputError(
            f"{read_files}: no measurements of a study. Expected files that the option --json of a study "
            "wrote."
        )
    problems: dict[Conditions, Group] = {
        fixed_conditions_of(by_name[group.first["study"]], group.first): group
        for group in Group(all_measurements).split(lambda m: fixed_conditions_of(by_name[m["study"]], m))
    }
    differing_names = _differing_conditions(problems)
    reports = []
    for fixed_conditions, group in problems.items():
        study = by_name[group.first["study"]]
        report = _problem_report(study, group.members, exchanges.get(fixed_conditions))
        names = differing_names[_kind(group)] - {"order", "scheme", "dtype"}  # `q.case_text` contains them
        values = [
            f"{name.replace('_', ' ')} {_condition_text(value)}"
            for name, value in fixed_conditions
            if name in names
        ]
        prefix = joined(f"{study.title}: {q.case_text(group.first)}", *values)
        if len(problems) > 1:
            tables = [replace(t, heading=t.heading and f"{prefix}: {t.heading}") for t in report.tables]
            report = replace(
                report, tables=tables, sentences=[f"{prefix}: {text}" for text in report.sentences]
            )
        reports.append(report)
    if len(reports) == 1:
        return all_measurements, reports[0]
    return all_measurements, Report(
        [table for report in reports for table in report.tables],
        [text for report in reports for text in report.sentences],
        lambda: _number_figures(reports),
        subject=counted(len(files), "file"),
        footer="\n".join(dict.fromkeys(report.footer for report in reports)),
    )


def fixed_conditions_of(study: Study, measurement: Measurement) -> Conditions:
    """Return the conditions that are constant in each table of a study, as pairs of name and value.

    Measurements that differ in such a condition are in separate tables. For an option that the study varies,
    the result contains the base value, which is the value in runs that do not vary the option.
    """
    varied_options = measurement.get("varied") or {}
    base = {name: RUN.get(name, EXECUTION.get(name)) for name in varied_options} | measurement.get("base", {})
    free_conditions = study.axes | study.determined_conditions(measurement)
    return tuple(conditions(measurement, without=free_conditions, instead=base).items())


def _kind(group: Group) -> tuple[str, str]:
    """Return the study and the case of a group."""
    return group.first["study"], group.first["case"]


def _differing_conditions(problems: Mapping[Conditions, Group]) -> dict[tuple[str, str], set[str]]:
    """Return the names of the conditions that differ between the groups of each study and case."""
    values: dict[tuple[str, str], dict[str, set[str]]] = {}
    for fixed_conditions, group in problems.items():
        for name, value in fixed_conditions:
            values.setdefault(_kind(group), {}).setdefault(name, set()).add(value)
    return {
        kind: {name for name, distinct_values in by_condition.items() if len(distinct_values) > 1}
        for kind, by_condition in values.items()
    }


def _condition_text(value: str) -> str:
    """Return the value of a condition as text for a heading."""
    if value.startswith("{"):
        pairs = (f"{name}={_condition_text(str(item))}" for name, item in json.loads(value).items())
        return " ".join(pairs) or "not set"
    return "not set" if value in ("", "null", "None") else value


def _number_figures(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        f"{number}-{file}": figure
        for number, report in enumerate(reports)
        for file, figure in report.figures().items()
    }


def _problem_report(
    study: Study, measurements: Sequence[Measurement], exchanged: dict[int | None, StepExchanges] | None
) -> Report:
    """Return the report of one problem, with tables of each source and of all sources together."""
    distinct_runs = Group(join_repeats(sorted(measurements, key=q.grid)))
    repeats, parts = _repeat_sentences(distinct_runs.members), distinct_runs.split(source)
    theories = [
        None if exchanged is None else Theory.from_measurements(exchanged, part.members) for part in parts
    ]
    reports = [
        build_report(study, part.members, theory) for part, theory in zip(parts, theories, strict=True)
    ]
    if len(parts) == 1:
        return replace(reports[0], sentences=[*repeats, *reports[0].sentences])
    whole_runs = distinct_runs.select(lambda m: m.get("only") is None)
    tables, sentences = list(_source_tables(whole_runs)), [*repeats, *_source_sentences(whole_runs)]
    for part, report in zip(parts, reports, strict=True):
        origin = source(part.first)
        tables += [replace(t, heading=t.heading and f"{t.heading} ({origin})") for t in report.tables]
        sentences += [f"{origin}: {sentence}" for sentence in report.sentences]
    return Report(
        tables,
        sentences,
        lambda: _number_figures(reports),
        subject=counted(len(parts), "source"),
        footer=study.footer,
    )


def _repeat_sentences(runs: Sequence[Measurement]) -> list[str]:
    """Return sentences on repeated measurements. The list is empty if no measurement was repeated."""
    repeated_runs = [m for m in runs if "repeats" in m]
    if not repeated_runs:
        return []
    count = sum(m["repeats"] for m in repeated_runs)
    spread = max(max(m["times"]) / min(m["times"]) for m in repeated_runs)
    return [
        f"{counted(count, 'measurement')} of {counted(len(repeated_runs), 'run')} are repeats with the same "
        f"bits. Times are medians over the repeats, whose times differ by a factor of up to {spread:.2f}."
    ]


def _case_and_size(measurement: Measurement) -> Any:
    return measurement["case"], measurement["n"]


def _comparison_key(measurement: Measurement) -> Any:
    """Return a key of the problem, the layout and the options. Only runs with equal keys are compared."""
    names = ("study", "order", *(name for name in VARIANT_TEXTS if name != "mpi"))
    texts = (
        VARIANT_TEXTS[name](measurement) if name in VARIANT_TEXTS else str(measurement.get(name))
        for name in names
    )
    return by_layout(measurement), ranks_of_node(measurement), q.grid(measurement), *texts


def _source_tables(group: Group) -> Iterator[Table]:
    """Yield a table of all sources for each case and size."""
    fastest = {_comparison_key(part.first): part.best for part in group.split(_comparison_key)}
    ratio = Column(
        "time relative to\nfastest source",
        lambda m, g: f"{q.pace(m) / q.pace(fastest[_comparison_key(m)]):.2f}",
    )
    names = labels(group)
    variant = (Column("", lambda m, g: names[id(m)]),) if varied_keys(group) else ()
    columns = (Column("", lambda m, g: source(m)), c.LAYOUT, *variant, c.NS, c.SECONDS, ratio, c.SSSPNT)
    for same_size in group.split(_case_and_size):
        rows = ordered_rows(same_size, lambda m: (_comparison_key(m), source(m)))
        heading = f"{same_size.first['case']}, n = {same_size.first['n']}"
        left = 2 + len(variant)
        yield row_table("Machines, MPI libraries and commits", columns, rows, left=left, heading=heading)


def _source_sentences(group: Group) -> Iterator[str]:
    """Yield sentences on the relative speed of each pair of sources, for each case and size."""
    for same_size in group.split(_case_and_size):

        def name(m: Measurement) -> str:
            return str(m.get("label") or source(m))

        times = [{name(m): q.pace(m) for m in part.members} for part in same_size.split(_comparison_key)]
        for first_source, second_source in combinations(sorted(set(map(name, same_size.members))), 2):
            ratios = [
                by_source[second_source] / by_source[first_source]
                for by_source in times
                if first_source in by_source and second_source in by_source
            ]
            if ratios:
                yield (
                    f"{same_size.first['case']}, n = {same_size.first['n']}: {first_source} is "
                    f"{median(ratios):.3g} times as fast as {second_source} (median of "
                    f"{counted(len(ratios), 'run')})."
                )
