"""Convergence studies of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergence_studies import study
from halocline.errors import InputError

OWN = """
import halocline as hc
n = hc.cells(8)
grid = hc.Grid(n, periodic=True)
u = grid.field("u")
{names}
sim = hc.Simulation(grid, lambda u: {{u: -u}}, scheme=hc.Euler(), dt=0.1)
sim[u] = 1.0
sim.run(until=0.2)
"""


def test_a_file_names_its_error_and_its_families(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = """error_name = "height of the wave"
families = (hc.Family("Waves", 1, (4, 8), order=3),)
def error(sim): return grid.shape[0] ** -3.0"""
    Path("own.py").write_text(OWN.format(names=names))
    (line,) = study(tmp_path, "own.py")["orders"]
    assert (line["panel"], line["cells"]) == ("Waves", [4, 8])
    assert (line["expected_order"], line["order"]) == (3, pytest.approx(3.0))
    assert "Height of the wave" in capsys.readouterr().out


def test_values_of_a_steady_state_need_three_grids(tmp_path: Path) -> None:
    names = """def diagnostics(): return {"mean": hc.sum(u)}
extrapolated = hc.Extrapolated(("mean",))"""
    file = tmp_path / "own.py"
    file.write_text(OWN.format(names=names))
    with pytest.raises(InputError, match="expected at least 3 numbers"):
        study(tmp_path, f"{file} --n 4,8")
