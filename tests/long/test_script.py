"""Studies of the problem of a file."""

from __future__ import annotations

from pathlib import Path

from halocline.study.studies.parts import PARTS
from user_files import heat, json_result

__all__ = ["heat"]  # a fixture


def test_studies_of_a_file_vary_its_execution(heat: Path, tmp_path: Path) -> None:
    measurements = json_result("study", "parts", heat, "--ranks", "1", cwd=tmp_path)["measurements"]
    assert [(m["only"], m["halo"]) for m in measurements] == list(PARTS.values())
    words = ["--patches", "8,16;4,8", "--schedules", "static", "--threads", "1"]
    measurements = json_result("study", "patches", heat, *words, cwd=tmp_path)["measurements"]
    assert [(m["patch"], m["schedule"]) for m in measurements] == [("8,16", "static"), ("4,8", "static")]
