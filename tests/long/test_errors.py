"""Errors and orders of studies."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.problems.files import CASES
from known_cases import known

__all__ = ["known"]  # a fixture


def test_two_waves_can_be_studied(
    known: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    text, _, rest = (CASES / "linear_wave.py").read_text().partition("families = tuple(")
    waves = 'families = (hc.Family("Two waves", 1, (16, 32), ({"wave": "sound"}, {"wave": "alfven"})),)\n\n\n'
    known(linear_wave=text + waves + rest[rest.index("def exact") :])
    files = "--json c.json --csv c.csv --html c.html --pictures p"
    assert command(f"study convergence linear-wave --threads 1 --set courant=0.4 {files}".split()) == 0
    out, err = capsys.readouterr()
    assert "[4/4] 32 cells, courant=0.4, wave=alfven, ranks 1, threads 1\n      error " in err
    measured, result = (json.loads(Path("c.json").read_text())[key] for key in ("measurements", "orders"))
    assert [(m["line"], m["n"], m["settings"]) for m in measured] == [
        (wave, n, f"courant=0.4 wave={wave}") for wave in ("sound", "alfven") for n in (16, 32)
    ]
    assert [line["line"] for line in result] == ["sound", "alfven"]
    assert all(1.5 < line["order"] < 3.0 for line in result), result
    assert "\nL1 error, relative to the amplitude\n" in out
    for m in measured:
        assert f"{m['error']:.4e}" in out
    assert f"Two waves, alfven: order {result[1]['order']:.2f} from N = 16 to 32; expected 2" in out
    with Path("c.csv").open() as lines_of:
        rows = list(csv.DictReader(lines_of))
    assert [float(row["error"]) for row in rows] == [m["error"] for m in measured]
    assert [path.name for path in Path("p").iterdir()] == ["convergence.png"]
    page = Path("c.html").read_text()
    assert "Convergence: linear-wave" in page
    assert page.count("<svg") == 1
    options = page.partition("<dt>options</dt>")[2].partition("</dd>")[0]
    assert "decomposition optimal" in options
    assert "wave=" not in options  # a warning about some lines only
