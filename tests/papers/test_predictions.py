"""Predictions beside published values."""

from __future__ import annotations

import pytest

from halocline.papers.astaroth import on_most, on_node
from published_ratios import predicted, quotients, ratios


@pytest.mark.parametrize("name", ["umbc-4.1", "umbc-7.1"])
def test_predicted_solves_take_what_is_published(name: str) -> None:
    """N = 4096; smaller times than 3 s are printed with less than one digit."""
    found = ratios(name, sizes=(4096,), least=3)
    assert len(found) >= 12
    assert sum(1 / 1.5 <= ratio <= 1.5 for ratio in found) >= 0.75 * len(found)
    assert all(0.5 <= ratio <= 2 for ratio in found)


@pytest.mark.parametrize(("name", "count"), [("pearson-fig11", 1), ("pearson-fig12a", 3)])
def test_speedups_of_an_exchange_are_those_of_the_text(name: str, count: int) -> None:
    found = quotients(name)
    assert len(found) == count
    assert all(1 / 1.3 <= ratio <= 1.3 for ratio in found)


@pytest.mark.parametrize("name", ["cavity-table3", "cavity-table4"])
def test_versions_of_the_cavity_are_as_efficient_as_published(name: str) -> None:
    """Efficiencies of all nine rows, to 0.1."""
    rows = predicted(name)
    assert len(rows) == 9
    for row in rows:
        ends = [row[key] / row["single"] / row["devices"] for key in ("predicted", "ssspnt")]
        assert ends[0] == pytest.approx(ends[1], abs=0.1), row["version"]


def test_a_step_of_astaroth_scales_as_published() -> None:
    """One device takes what is published; efficiencies on 64 devices to 0.1; a node of four to 10 %."""
    times = {
        (row["n"], row["devices"]): row["predicted"]
        for row in predicted("astaroth-fig10", devices=(1, 4, 64))
    }
    for n in (256, 512, 1024):
        assert times[n, 1] == pytest.approx(2.2)
        assert times[n, 4] == pytest.approx(on_node(), rel=0.1)
        assert times[n, 1] / times[n, 64] / 64 == pytest.approx(times[n, 1] / on_most(n) / 64, abs=0.1)
