"""Predictions of Pekkilä et al. 2022 by the parts of a step."""

from __future__ import annotations

import pytest

from astaroth_rows import rows_of, table
from halocline.papers.astaroth import operations, step
from halocline.study.registry import papers


def test_parts_of_a_step_are_predicted_separately() -> None:
    rows = rows_of("astaroth-fig12", predicted=True, devices=(1, 8))
    result = {(row["part"], row["devices"]): row["predicted"] for row in rows}
    assert result["computing", 1] == pytest.approx(2.2, rel=0.03)
    assert result["computing", 8] == pytest.approx(2.2 / 8, rel=0.03)
    assert result["exchange", 1] < 0.1 < result["exchange", 8]
    assert result["exchange", 8] < result["exchange with corners", 8] < 1.05 * result["exchange", 8]
    assert result["step", 8] > 0.97 * max(result["computing", 8], result["exchange", 8])
    shares = table("astaroth-fig12", "Shares", rows)
    assert shares.rows[-1][-2:] == ("15% to 20%", "0.03% to 10%")
    assert [row[0] for row in shares.rows] == ["1", "8", "paper"]


def test_the_time_of_an_order_follows_from_its_operations() -> None:
    rows = rows_of("astaroth-fig14", predicted=True, order=(2, 6), devices=(1,))
    two, six = (row["predicted"] for row in rows)
    (strong,) = rows_of("astaroth-fig10", predicted=True, n=(256,), devices=(1,))
    assert six == strong["predicted"]
    assert two / six == pytest.approx(operations(2) / operations(6), rel=0.05)
    assert step({"n": 256, "nodes": 2, "ranks_per_node": 4, "order": 8}).bound == "between nodes"
    assert step({"n": 256, "nodes": 1, "ranks_per_node": 4, "order": 8}).bound == "work"
    statements = table("astaroth-fig14", "Statements", rows_of("astaroth-fig14"))
    assert statements.rows[3][2:4] == ("8 devices", "8 devices")
    assert statements.rows[0][2] == "16 devices"


def test_tables_compare_strong_scaling_with_predictions() -> None:
    study = papers()["astaroth-fig10"]
    machine = study.prediction_machine(None)
    rows = rows_of("astaroth-fig10", predicted=True, n=(256,), devices=(1, 4, 64))
    (stated,) = [
        result for result in study.tables(rows, machine) if result.title == "Numbers stated in the text"
    ]
    assert [row[1] for row in stated.rows] == ["0.18", "2.2", "0.53"]
    assert float(stated.rows[0][2]) == pytest.approx(0.19, abs=0.01)
    assert float(stated.rows[1][3]) == pytest.approx(1.0, abs=0.01)
