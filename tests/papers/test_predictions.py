"""Predictions next to published values. Rows to which a number is fitted are named, and not counted."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.papers.published import published
from halocline.plan.machine import load_machine
from halocline.study.measuring.predict import predict, prepare
from published_ratios import predicted, quotients
from suites import cases

ONE_CORE = {"n": 4096, "nodes": 1, "ranks_per_node": 1}
FITTED: dict[str, dict[str, Any]] = {  # rows to which machines of UMBC HPCF-2018-10 were fitted
    "umbc-3.1": {"n": 1024},
    "umbc-4.1": ONE_CORE,  # the same run as in Table 5.1
    "umbc-5.1": ONE_CORE,
}
FITTED_VERSIONS = {
    "cavity-table3": ("baseline", "2 x 1 x 1"),
    "cavity-table4": ("baseline, GPUDirect", "1 x 1 x 2"),
}


def _not_fitted(name: str, **options: Any) -> list[float]:
    """Return predicted over published values of the rows without a fitted number."""
    fitted = FITTED.get(name, {"n": None})
    return [
        row["predicted_ratio"]
        for row in predicted(name, **options)
        if "predicted_ratio" in row and any(row[key] != value for key, value in fitted.items())
    ]


@cases("name, count", [("umbc-4.1", 27), ("umbc-7.1", 22)], default=[("umbc-7.1", 22)])
def test_predicted_solves_take_the_published_time(name: str, count: int) -> None:
    """N = 4096 agrees; times below 3 s are printed with less than one digit and do not count."""
    result = _not_fitted(name, sizes=(4096,), least=3)
    assert len(result) == count
    assert sum(1 / 1.5 <= ratio <= 1.5 for ratio in result) >= 0.75 * len(result)
    assert all(0.5 <= ratio <= 2 for ratio in result)


@cases("name, count", [("umbc-3.1", 6), ("umbc-5.1", 2)], default=[("umbc-5.1", 2)])
def test_single_cores_and_complete_machines_take_the_published_time(name: str, count: int) -> None:
    result = _not_fitted(name, least=3)
    assert len(result) == count
    assert all(1 / 1.25 <= ratio <= 1.25 for ratio in result)


@cases("name, count", [("pearson-fig11", 1), ("pearson-fig12a", 3)], default=[("pearson-fig11", 1)])
def test_speedups_of_an_exchange_agree_with_the_paper(name: str, count: int) -> None:
    result = quotients(name)
    assert len(result) == count
    assert all(1 / 1.3 <= ratio <= 1.3 for ratio in result)


@pytest.mark.parametrize("name", ["cavity-table3", "cavity-table4"])
def test_versions_of_the_cavity_are_as_efficient_as_published(name: str) -> None:
    """Efficiencies on two devices agree to 0.1; the row of one device has the published pace."""
    rows = [
        row for row in predicted(name, devices=2) if (row["version"], row["cut"]) != FITTED_VERSIONS[name]
    ]
    assert len(rows) == 7
    for row in rows:
        ends = [row[key] / row["single"] / row["devices"] for key in ("predicted", "ssspnt")]
        assert ends[0] == pytest.approx(ends[1], abs=0.1), row["version"]


def test_one_thread_of_broadwell_takes_the_published_time() -> None:
    """The peak share in the machine files of WOMBAT is that of this row of Table 4."""
    (seconds,) = published("wombat-table4").values("seconds_per_step", compiler="CCE 8.5.4")
    schedule, shape = prepare("rj2a", 64, dim=3)
    (one,) = predict(schedule, shape, load_machine("xcbdw"), [1], ranks_per_node=1, threads=1)
    assert one.seconds == pytest.approx(seconds, rel=0.01)
    shares = {load_machine(name).device.sustained for name in ("xeil", "xcbdw", "xcknl", "blue-waters-xe")}
    assert len(shares) == 1
