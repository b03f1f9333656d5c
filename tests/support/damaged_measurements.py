"""Measurement files with damaged values."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.io.style import styled
from halocline.study import joining
from halocline.study.measuring.command import csv_text
from halocline.study.reporting.page import facts_of_measurements

FILES = sorted((Path(__file__).parents[1] / "data" / "measurements").glob("*.json"))
DELETED = object()
WRONG: tuple[Any, ...] = (DELETED, None, "x", math.nan, -1, 10**30, [], 0, 1e-320, 1e300, True, {}, 3)

# studies whose records have the keys of strong scaling
LIKE_STRONG = (
    "strong",
    "weak",
    "hybrid",
    "patches",
    "orders",
    "parts",
    "ablation",
    "devices",
    "layouts",
    "processes",
    "rma",
    "vectors",
)
NOT_SHOWN = ("series", "checksums", "diagnostics", "events")


def content(file: Path) -> dict[str, Any]:
    """Return the content of a file of measurements, with its records under "measurements"."""
    data = json.loads(file.read_text())
    return data if isinstance(data, dict) else {"measurements": data}


def value_paths(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a JSON tree that a report may read."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if key not in NOT_SHOWN:
            yield (*at, key)
            yield from value_paths(value, (*at, key))


def damaged_places(whole: dict[str, Any], *records: int) -> list[tuple[Any, ...]]:
    """Return the paths of the values of some records, and of the theory."""
    return [
        path
        for path in value_paths(whole)
        if path[0] == "theory" or (path[0] == "measurements" and (len(path) == 1 or path[1] in records))
    ]


def with_changed_value(whole: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a copy with one value deleted or replaced."""
    tree = deepcopy(whole)
    inner = tree
    for key in path[:-1]:
        inner = inner[key]
    if value is DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return tree


def report_of(path: Path, *, draw: bool) -> None:
    """Build everything that `study report` prints and writes."""
    records, report = joining.join_files([path])
    assert report.tables or report.sentences
    for table in report.tables:
        table.text()
    json.dumps({"measurements": records, **report.facts}, allow_nan=False)
    csv_text(records)
    facts_of_measurements(records)
    if draw:
        with styled():
            for figure in report.figures().values():
                figure.savefig("/dev/null", format="svg")


def outcomes(path: Path, trees: Iterator[dict[str, Any]], *, draw: bool = False) -> tuple[int, list[str]]:
    """Return the number of reports, and the messages of the other files."""
    reports, messages = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tree in trees:
            path.write_text(json.dumps(tree))
            try:
                report_of(path, draw=draw)
            except InputError as error:
                messages.append(str(error))
            else:
                reports += 1
    return reports, messages


def as_study(whole: dict[str, Any], study: str) -> dict[str, Any]:
    """Return the measurements, attributed to another study with the same keys."""
    return {**whole, "measurements": [{**m, "study": study} for m in whole["measurements"]]}
