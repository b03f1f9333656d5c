"""The formula for the time of a step: the longer of work and exchange."""

from __future__ import annotations

import pytest

from case_measurements import measurement, report_of, sides
from halocline.errors import InputError
from halocline.plan.layout import lay_out
from halocline.problems.problem import Problem
from halocline.study.reporting.theory import Theory, step_exchanges
from halocline.study.studies.strong import STEPS


def test_the_formula_is_the_maximum_of_work_and_exchange():
    theory = Theory({6: sides()}, per_byte=1e-9)
    one = measurement(2.2)
    # 8 subdomains of 128³: six sides in and out
    exchange = 2 * 6 * 128**2 * 8 * 1e-9
    result = [one, measurement(1.0, ranks=8)]
    assert theory.ns(result[1], result[0]) == pytest.approx(max(2.2 / 8, 1e9 * exchange / 256**3))
    slow = Theory({6: sides()}, per_byte=1e-6)
    assert slow.ns(result[1], one) == pytest.approx(1e12 * exchange / 256**3)
    assert slow.ns(one, one) == pytest.approx(2.2)  # no halo is exchanged between subdomains


def test_the_formula_uses_the_measured_exchange():
    exchange = measurement(0.3, ranks=2, only="exchange")
    parts = [
        measurement(9.0, ranks=4, only="exchange"),
        measurement(0.5, ranks=2, only="exchange", halo="uniform"),
    ]
    small = measurement(7.0, ranks=2, only="exchange", n=32)
    theory = Theory.from_measurements(
        {6: sides()}, [small, *parts, exchange, measurement(0.1, only="exchange")]
    )
    assert theory.measured_on == 2
    # such that the formula gives this time if there is no work
    assert theory.ns(measurement(1.0, ranks=2), measurement(1e-12)) == pytest.approx(0.3)
    assert Theory.from_measurements({6: sides()}, [measurement(0.1, only="exchange")]).per_byte is None


def test_without_an_exchange_measurement_there_is_no_formula():
    theory = Theory({6: sides()}, None)
    result = [measurement(2.0), measurement(1.5, ranks=2)]
    assert theory.ns(result[1], result[0]) is None
    assert theory.ns(result[0], result[0]) == pytest.approx(2.0)
    table, *_ = report_of(STEPS, result, theory).tables
    assert [row[4] for row in table.rows] == ["2", ""]


def test_the_exchanged_bytes_of_the_benchmark_are_known():
    """Three sub-steps exchange eight fields on sides, and two components of u and of A on each edge."""
    exchange = step_exchanges(Problem("mhd-benchmark", [16]))
    weights = dict(exchange.traffic.weights)
    assert {sum(map(abs, direction)) for direction in weights} == {1, 2}
    assert len(weights) == 6 + 12
    for direction, weight in weights.items():
        assert weight == 3 * 8 * (8 * 3 if sum(map(abs, direction)) == 1 else 4 * 3 * 3)
    with pytest.raises(InputError, match="cannot be cut into 100000 subdomains"):
        lay_out(
            (16, 16, 16),
            100000,
            traffic=exchange.traffic,
            thickness=exchange.thickness,
            periodic=exchange.periodic,
        )
