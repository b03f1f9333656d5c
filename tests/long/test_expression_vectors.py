"""Vectors as fields: assignment, reading, gathering, reduction, drawing and output by component."""

from __future__ import annotations

from pathlib import Path

import halocline as hc
from vector_problem import problem


def test_expressions_and_statistics_of_vectors_are_written_and_drawn(tmp_path: Path) -> None:
    sim, _, w = problem()
    sim[w] = lambda x, y: (x, y)
    outputs = {"m": hc.time_mean(w), "largest": hc.max(w), "v": 2.0 * w}
    sim.run(steps=1, output=hc.Output(tmp_path / "mean.zarr", outputs))
    names = {"m_x", "m_y", "largest_x", "largest_y", "v_x", "v_y"}
    assert names < {path.name for path in (tmp_path / "mean.zarr").iterdir()}
    for number, drawn in enumerate((w, "w", 2.0 * w)):
        hc.picture(sim, drawn, tmp_path / f"{number}.png", title="flow")
        assert (tmp_path / f"{number}.png").stat().st_size > 1000


def test_a_vector_on_a_line_is_drawn_as_lines(tmp_path: Path) -> None:
    sim, _, w = problem((8,))
    sim[w] = 1.0
    hc.plot_lines(sim, {"computed": w}, tmp_path / "b.png")
    hc.picture(sim, w, tmp_path / "c.png")
    hc.plot_lines(sim, [w], tmp_path / "d.png")
    sim.run(steps=1, output=hc.Output(tmp_path / "line.zarr", [w], region=hc.Points([0.5])))
    assert (tmp_path / "line.zarr" / "w_x").is_dir()
