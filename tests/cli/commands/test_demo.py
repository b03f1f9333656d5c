"""The first result: a table of two runs with equal checksums, a picture, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.cli.commands import demo
from halocline.errors import InputError, RunError

SHORT = ("--dim", "2", "--n", "16", "--steps", "5")


def test_the_demo_shows_equal_results_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SETTINGS", SHORT)
    monkeypatch.chdir(tmp_path)
    folder = Path("halocline-demo")
    assert command(["demo"]) == 0
    lines = capfd.readouterr().out.splitlines()
    first, second = (line.split() for line in lines if line.split()[:1] in (["1"], ["2"]))
    assert (first[0], second[0]) == ("1", "2")
    assert first[-1] == second[-1]
    results = [json.loads((folder / f"{ranks}.json").read_text()) for ranks in (1, 2)]
    assert [result["ranks"] for result in results] == [1, 2]
    assert {result["checksum"] for result in results} == {first[-1]}
    assert (folder / "s.png").read_bytes().startswith(b"\x89PNG")
    assert "Picture of the entropy: halocline-demo/s.png" in "\n".join(lines)


def test_a_failed_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SETTINGS", ("--dim", "7"))
    with pytest.raises(RunError, match=r"`halocline run convection --dim 7 .*` failed with status 2; "):
        command(["demo", "--to", str(tmp_path)])
    assert "--dim" in capfd.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--to: .*file is a file; expected a folder"):
        command(["demo", "--to", str(tmp_path / "file")])
