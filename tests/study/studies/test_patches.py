"""The study of patches: names of patches, and its figure."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from case_measurements import measurement
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement
from halocline.study.reporting.report import Group
from halocline.study.studies.patches import STUDY, edge, label


@pytest.mark.parametrize(
    ("patch", "schedule", "name", "last"),
    [
        (None, "guided", "by cache size", 0),
        ("16", "guided", "16", 16),
        ("8,32", "static", "8,32, static", 32),
        ("tune", "dynamic", "tune, dynamic", 0),
    ],
)
def test_a_run_is_labelled_by_its_patch(patch: str | None, schedule: str, name: str, last: int) -> None:
    record = Measurement(measurement(10.0, patch=patch, schedule=schedule))
    assert (label(record), edge(record)) == (name, last)


def test_the_study_varies_patches_and_schedules() -> None:
    assert [option.name for option in STUDY.varied_options] == ["patch", "schedule"]


def test_all_splits_use_the_same_number_of_cores() -> None:
    request = SimpleNamespace(layouts=[Layout(1, 4)], study_options={"all_splits": True})
    assert STUDY.layouts(request) == [(1, 4, None), (2, 2, None), (4, 1, None)]  # type: ignore[arg-type]


def test_the_figure_shows_the_rate_of_a_node() -> None:
    runs = [
        measurement(ns, patch=edge, schedule=name)
        for ns, edge, name in ((50.0, "16", "guided"), (40.0, "32", "static"))
    ]
    (part,) = STUDY.contents
    figure = part.figures["patches.png"](Group(runs))
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_ylabel() == "million cells per second and node"
    assert sorted(float(line.get_ydata()[0]) for line in axes.lines) == [20.0, 25.0]
