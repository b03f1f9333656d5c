"""Convergence studies of copied cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergence_studies import study
from halocline.cli.app import run as command

STEADY = "--n 7,11,17 --set Ra=1e3"


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("heat", "--n 8,16 --dim 2"),
        ("poisson", "--n 8,16"),
        ("cavity-2d", STEADY),
        ("field-loop", "--n 16,32"),
        ("linear-wave", "--n 8,16 --dim 1 --set wave=fast"),
    ],
)
def test_a_copy_of_a_case_has_the_study_of_the_case(
    case: str,
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["new", "copied", "--from", case]) == 0
    capsys.readouterr()
    result, texts = [], []
    for name in (case, "copied.py"):
        result.append(study(tmp_path, f"{name} {options}"))
        tables = capsys.readouterr().out.replace(name, "NAME").replace(name.capitalize(), "NAME")
        texts.append([line for line in tables.splitlines() if line.strip("=─ ")])
    of_case, of_copy = ([part] if isinstance(part, dict) else [{"measurements": part}] for part in result)
    for one, other in zip(of_case[0]["measurements"], of_copy[0]["measurements"], strict=True):
        for key in one.keys() & {"checksum", "error", "error_max", "iterations", "panel", "expected_order"}:
            assert one[key] == other[key], key
    keys = ("orders", "extrapolated")
    assert [of_case[0].get(key) for key in keys] == [of_copy[0].get(key) for key in keys]
    if case != "poisson":  # its table contains times
        assert texts[0] == texts[1]
