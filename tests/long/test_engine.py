"""All runs of a study have the same algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.study.study import studies
from reduced_studies import _check_result, reduced_command
from step_measurements import run_json, runs_of


@pytest.mark.parametrize("name", list(studies()))
def test_every_study_runs_on_its_ranks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = reduced_command(name)
    study = run_json(*words, "--html", "s.html", cwd=tmp_path)
    _check_result(name, study, runs_of(words, monkeypatch))
