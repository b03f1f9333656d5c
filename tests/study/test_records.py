"""Damaged measurement files: `halocline study report` gives a report or one message on the damage."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run
from halocline.errors import InputError
from halocline.io.style import styled
from halocline.study import joining
from halocline.study.measuring.command import as_csv
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
    "nodes",
    "orders",
    "affinity",
    "libraries",
    "parts",
    "ablation",
)
NOT_SHOWN = ("series", "checksums", "diagnostics", "events")


def content(file: Path) -> dict[str, Any]:
    """Return the content of a file of measurements, with its records under "measurements"."""
    found = json.loads(file.read_text())
    return found if isinstance(found, dict) else {"measurements": found}


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a JSON tree that a report may read."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if key not in NOT_SHOWN:
            yield (*at, key)
            yield from places(value, (*at, key))


def damaged_places(whole: dict[str, Any], *records: int) -> list[tuple[Any, ...]]:
    """Return the paths of the values of some records, and of the theory."""
    return [
        way
        for way in places(whole)
        if way[0] == "theory" or (way[0] == "measurements" and (len(way) == 1 or way[1] in records))
    ]


def changed(whole: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a copy with one value deleted or replaced."""
    tree = deepcopy(whole)
    inner = tree
    for key in way[:-1]:
        inner = inner[key]
    if value is DELETED:
        del inner[way[-1]]
    else:
        inner[way[-1]] = value
    return tree


def report_of(path: Path, *, draw: bool) -> None:
    """Make everything that `study report` prints and writes."""
    found, made = joining.joined([path])
    assert made.tables or made.said
    for table in made.tables:
        table.text()
    json.dumps({"measurements": found, **made.facts}, allow_nan=False)
    as_csv(found)
    facts_of_measurements(found)
    if draw:
        with styled():
            for figure in made.figures().values():
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


def of_study(whole: dict[str, Any], study: str) -> dict[str, Any]:
    """Return the measurements as those of another study with the same keys."""
    return {**whole, "measurements": [{**m, "study": study} for m in whole["measurements"]]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("draw", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_file_without_damage_has_a_report(file: Path, draw: bool) -> None:
    report_of(file, draw=draw)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_damaged_value_gives_a_report_or_a_message(file: Path, tmp_path: Path) -> None:
    """A third of the values, each with another kind of damage and another study."""
    whole, path = content(file), tmp_path / "damaged.json"
    every = damaged_places(whole, 0)[::3]
    studies = LIKE_STRONG if file.stem == "strong-steps" else (whole["measurements"][0]["study"],)
    trees = (
        changed(of_study(whole, studies[number % len(studies)]), way, WRONG[number % len(WRONG)])
        for number, way in enumerate(every)
    )
    reports, messages = outcomes(path, trees)
    assert reports + len(messages) == len(every) > 20
    assert reports
    assert messages
    for message in messages:
        assert str(path) in message


@pytest.mark.long
@pytest.mark.parametrize("draw", [False, True])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_damaged_value_gives_a_report_or_a_message(file: Path, draw: bool, tmp_path: Path) -> None:
    whole, path = content(file), tmp_path / "damaged.json"
    every = damaged_places(whole, 0, len(whole["measurements"]) - 1)
    if draw:  # figures take a hundred times as long as tables
        every = every[::12]
    values = WRONG[:6] if draw else WRONG
    studies = LIKE_STRONG if file.stem == "strong-steps" else (whole["measurements"][0]["study"],)
    trees = (
        changed(of_study(whole, studies[number % len(studies)]), way, value)
        for number, way in enumerate(every)
        for value in values
    )
    reports, messages = outcomes(path, trees, draw=draw)
    assert reports + len(messages) == len(every) * len(values)
    assert reports
    assert messages


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ranks", "two", "record 2: ranks: Input should be a valid integer, but it is 'two'"),
        ("seconds", DELETED, "record 2: seconds: Field required"),
        (
            "seconds",
            math.nan,
            "record 2: seconds: Input should be a finite number, but it is nan",
        ),
        ("shape", [16, 17], r"record 2: cells is 256; expected 272, as shape is \[16, 17\]"),
        ("times", [], r"record 2: times: List should have at least 1 item"),
        ("note", math.inf, r"measurements\.1\.note is inf; expected a finite number"),
        ("note", "\ud800", r"measurements\.1\.note is '\\ud800'; expected .* valid text"),
        ("study", 3, "record 2 is no measurement of a study"),
        ("study", "storng", "study 'storng' is unknown"),
    ],
)
def test_the_message_names_record_key_and_value(key: str, value: Any, words: str, tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.stem == "strong-steps")
    path = tmp_path / "damaged.json"
    whole = of_study(content(file), "strong")
    path.write_text(json.dumps(changed(whole, ("measurements", 1, key), value)))
    with pytest.raises(InputError, match=rf"damaged\.json.*{words}"):
        run(["study", "report", str(path)])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "3", '{"measurements": []}', "[" * 10**5, "9" * 5000, "\x00", '[{"study": "strong"}]'],
)
def test_a_file_that_is_no_measurement_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"damaged\.json"):
        run(["study", "report", str(path)])


def test_grids_that_were_measured_twice_or_are_too_few_have_no_order(tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.stem == "convergence-steady")
    whole, path = content(file), tmp_path / "few.json"
    for chosen in (
        whole["measurements"][:2],
        [*whole["measurements"][:2], {**whole["measurements"][1], "checksum": "0"}],
    ):
        path.write_text(json.dumps({"measurements": chosen}))
        _, made = joining.joined([path])
        assert any("no order, as there are no 3 grids in a row" in text for text in made.said)
        assert made.figures() == {}
