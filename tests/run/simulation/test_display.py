"""Tables of simulations and results, which notebooks show without a measurement."""

from __future__ import annotations

import re
from typing import Any

import pytest

import halocline as hc
from halocline.run.simulation import simulation as module


def facts(html: str) -> dict[str, str]:
    """Return the rows of a table."""
    return dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", html))


def heat() -> tuple[hc.Simulation, hc.Field]:
    grid = hc.Grid((12, 10), periodic=True)
    T = grid.field("T")

    def change(T: Any, kappa: Any) -> Any:
        return {T: kappa * hc.laplacian(T)}

    sim = hc.Simulation(grid, change, parameters={"kappa": 0.1}, scheme=hc.RK3(), dt=1e-4, order=4, threads=1)
    sim[T] = 1.0
    return sim, T


def test_a_simulation_shows_its_sizes_halos_and_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[float] = []

    def share(domain: Any, working_set: int, rate: float) -> float:
        measured.append(rate)
        return 0.25

    monkeypatch.setattr(module, "bandwidth_share", share)
    sim, _ = heat()
    before = facts(sim._repr_html_())
    assert before["grid"] == "12 × 10 = 120"
    assert before["halo widths"] == "T: 2"
    assert before["parameters"] == "kappa = 0.1"
    assert before["parallel"] == "1 rank, 1 thread per rank"
    assert "last run" not in before
    sim.run(steps=3)
    after = facts(sim._repr_html_())
    assert after["time"] == "0.0003, after 3 steps"
    assert after["last run"].startswith("3 steps in ")
    assert after["memory traffic"].startswith("at least ")
    assert not measured, "a table must not measure the bandwidth"
    assert "share of memory bandwidth" not in after
    sim.share_of_bound()
    assert facts(sim._repr_html_())["share of memory bandwidth"] == "25%"
    sim.run(steps=1)
    assert "share of memory bandwidth" not in facts(sim._repr_html_())


def test_an_outcome_shows_the_parts_of_its_time() -> None:
    sim, _ = heat()
    table = facts(sim.run(steps=3)._repr_html_())
    assert table["end"] == "completed"
    assert re.fullmatch(r"\d+% in kernels, \d+% in exchanges, \d+% in reductions", table["of this time"])


def test_a_solution_shows_its_residual() -> None:
    grid = hc.Grid((15, 15), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0, rtol=1e-6)
    table = facts(solution._repr_html_())
    assert table["iterations"] == str(solution.iterations)
    assert table["end"] == "converged"
    assert table["true residual"].endswith(", relative to the right-hand side")
