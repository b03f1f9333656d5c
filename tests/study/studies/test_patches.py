"""The study of patches: names of patches, and its figure."""

from __future__ import annotations

import pytest

from case_measurements import made
from halocline.study.measurement import Measurement
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
def test_a_run_is_named_by_its_patch(patch: str | None, schedule: str, name: str, last: int) -> None:
    measurement = Measurement(made(10.0, patch=patch, schedule=schedule))
    assert (label(measurement), edge(measurement)) == (name, last)


def test_the_study_varies_patches_and_schedules() -> None:
    assert [sweep.option for sweep in STUDY.sweeps] == ["patch", "schedule"]
