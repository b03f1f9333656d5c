"""Comparison of orders of accuracy."""

from __future__ import annotations

from case_measurements import measurement, report_of, sides
from halocline.study.reporting.theory import Theory
from halocline.study.studies.orders import ORDERS


def test_the_table_shows_all_orders():
    theory = Theory({2: sides(), 8: sides(32)}, 1e-12)
    result = [
        measurement(2.0, order=2),
        measurement(1.0, 2, order=2),
        measurement(4.0, order=8),
        measurement(4.0, 2, order=8),
    ]
    (table,) = report_of(ORDERS, result, theory).tables
    assert [row[0] for row in table.rows] == ["2", "8"]
    assert [row[2] for row in table.rows] == ["48", "192"]
    assert [row[4].split() for row in table.rows] == [["1", "100%"], ["4", "50%"]]
    assert report_of(ORDERS, result, theory).sentences == [
        "256³ on 2 cores: efficiency 100% at order 2, 50% at order 8."
    ]
