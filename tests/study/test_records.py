"""Damaged measurement files: `halocline study report` gives a report or one message about the damage."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from damaged_measurements import (
    DELETED,
    FILES,
    LIKE_STRONG,
    WRONG,
    as_study,
    content,
    damaged_places,
    outcomes,
    report_of,
    with_changed_value,
)
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.study import joining
from halocline.study.study import studies
from suites import cases


def test_measurements_of_all_studies_exist() -> None:
    assert {content(file)["measurements"][0]["study"] for file in FILES} | {*LIKE_STRONG} == {*studies()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("draw", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_file_without_damage_has_a_report(file: Path, draw: bool) -> None:
    report_of(file, draw=draw)


@cases("file", FILES, default=FILES[::3], ids=lambda file: file.stem)
def test_a_damaged_value_gives_a_report_or_a_message(file: Path, tmp_path: Path) -> None:
    """One of three values, each with another damage and another study, gives a report or a message."""
    whole, path = content(file), tmp_path / "damaged.json"
    places = damaged_places(whole, 0)[::3]
    names = LIKE_STRONG if file.stem == "strong-steps" else (whole["measurements"][0]["study"],)
    trees = (
        with_changed_value(as_study(whole, names[number % len(names)]), way, WRONG[number % len(WRONG)])
        for number, way in enumerate(places)
    )
    reports, messages = outcomes(path, trees)
    assert reports + len(messages) == len(places) > 20
    assert reports
    assert messages
    for message in messages:
        assert str(path) in message


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
        ("study", 3, "record 2 is not a measurement of a study"),
        ("study", "storng", "study 'storng' is unknown"),
    ],
)
def test_the_message_names_record_key_and_value(key: str, value: Any, words: str, tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.stem == "strong-steps")
    path = tmp_path / "damaged.json"
    whole = as_study(content(file), "strong")
    path.write_text(json.dumps(with_changed_value(whole, ("measurements", 1, key), value)))
    with pytest.raises(InputError, match=rf"damaged\.json.*{words}"):
        run(["study", "report", str(path)])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "3", '{"measurements": []}', "[" * 10**5, "9" * 5000, "\x00", '[{"study": "strong"}]'],
)
def test_other_files_are_rejected_as_measurements(text: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"damaged\.json"):
        run(["study", "report", str(path)])


def test_repeated_or_too_few_grids_have_no_order(tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.stem == "convergence-steady")
    whole, path = content(file), tmp_path / "few.json"
    for chosen in (
        whole["measurements"][:2],
        [*whole["measurements"][:2], {**whole["measurements"][1], "checksum": "0"}],
    ):
        path.write_text(json.dumps({"measurements": chosen}))
        _, report = joining.join_files([path])
        assert any(
            "there are no 3 successive grids with different spacings" in text for text in report.sentences
        )
        assert report.figures() == {}
