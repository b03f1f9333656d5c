"""Each command of the register of papers, reduced to small runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.papers.register import REGISTER, Entry
from reduced_papers import reduce_papers, words_of
from step_measurements import halocline

COMMANDS = {entry.command: entry for entry in REGISTER if entry.command}


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=lambda entry: f"{entry.paper}-{entry.result}")
def test_each_command_of_the_register_works(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_of(entry, tmp_path)
    if words[0] == "bench":  # its ranks have the command line of the process
        done = halocline(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "t.json").stat().st_size > 0
        return
    reduce_papers(monkeypatch)
    assert command(words) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    if entry.command.startswith("explain "):
        assert re.search(r"48 ranks of 1 thread on 12 nodes: 4 x 12 x 1 subdomains", out)
        return
    if "study paper" not in entry.command:
        assert any(path.suffix in (".png", ".json") for path in tmp_path.iterdir())
        return
    study = json.loads((tmp_path / "found.json").read_text())
    assert study["paper"]["source"].split(",")[0] in (tmp_path / "page.html").read_text()
    for m in study.get("measurements", ()):
        assert m["seconds"] > 0
    if study.get("measurements"):
        assert "Differences from the paper: " in " ".join(out.split())
