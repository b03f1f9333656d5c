"""Damaged measurement files: `halocline study report` gives a report or one message about the damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from damaged_measurements import (
    FILES,
    LIKE_STRONG,
    WRONG,
    as_study,
    content,
    damaged_places,
    outcomes,
    with_changed_value,
)


@pytest.mark.parametrize("draw", [False, True])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_damaged_value_gives_a_report_or_a_message(file: Path, draw: bool, tmp_path: Path) -> None:
    whole, path = content(file), tmp_path / "damaged.json"
    places = damaged_places(whole, 0, len(whole["measurements"]) - 1)
    if draw:  # figures take a hundred times as long as tables
        places = places[::12]
    values = WRONG[:6] if draw else WRONG
    studies = LIKE_STRONG if file.stem == "strong-steps" else (whole["measurements"][0]["study"],)
    trees = (
        with_changed_value(as_study(whole, studies[number % len(studies)]), way, value)
        for number, way in enumerate(places)
        for value in values
    )
    reports, messages = outcomes(path, trees, draw=draw)
    assert reports + len(messages) == len(places) * len(values)
    assert reports
    assert messages
