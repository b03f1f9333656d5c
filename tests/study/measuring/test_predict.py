"""Predictions of studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import equations
from halocline.cli.app import run
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.plan.trace import TRACE_EVENTS
from halocline.study.measuring import predict
from modelled_machine import machine


def test_weak_scaling_without_a_network_is_ideal() -> None:
    schedule, shape = predict.prepare("poisson", 64)
    result = predict.predict(schedule, shape, machine(4), [1, 2, 8, 12], scaling="weak")
    assert [p.shape for p in result] == [(64, 64), (128, 64), (256, 128), (384, 128)]
    assert [p.ranks for p in result] == [4, 8, 32, 48]
    # the cost of packing depends on the cuts
    assert [p.efficiency for p in result] == pytest.approx([1.0] * 4, rel=0.03)
    assert result[0].seconds == pytest.approx(64 * 64 / 4 * 64 / 1e9, rel=0.1)  # 8 streams of 8 bytes


def test_strong_scaling_is_limited_by_latency() -> None:
    schedule, shape = predict.prepare("poisson", 256)
    result = predict.predict(schedule, shape, machine(1, latency=1e-4), [1, 4, 16])
    assert result[0].efficiency == 1
    assert result[0].efficiency > result[1].efficiency > result[2].efficiency
    # the formula contains no latency
    assert [result[0].formula / p.formula for p in result] == pytest.approx([1, 4, 16], rel=0.01)
    assert all(p.seconds > 0.999999 * p.formula for p in result)
    assert {p.bound for p in result} == {"work"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": [1, 0]}, "nodes is 0; expected a whole number from 1"),
        ({"nodes": [2, 3], "scaling": "weak"}, "3 nodes are not a multiple of 2"),
        ({"nodes": [1], "scaling": "big"}, "scaling 'big' is unknown; known: strong, weak"),
        (
            {"nodes": [1], "strategy": "2x2"},
            "decomposition 2x2 has a fixed number of parts, but the prediction",
        ),
        ({"nodes": [1], "ranks_per_node": 0}, "ranks per node is 0; expected a whole number from 1"),
    ],
)
def test_invalid_studies_are_rejected(options: dict[str, Any], words: str) -> None:
    schedule, shape = predict.prepare("poisson", 64)
    with pytest.raises(InputError, match=words):
        predict.predict(schedule, shape, machine(), **options)


def test_predicted_cases_are_those_of_simulations() -> None:
    """Cases that are traced without memory have the same sweeps as those of a simulation."""

    def sweeps(schedule: Schedule) -> list[Any]:
        names = [field.name for field in schedule.fields]
        return [
            (s.bytes, s.flops, {names[n]: halo for n, halo in s.exchange.items()})
            for s in schedule.pass_sweeps()
        ]

    assert sweeps(predict.prepare("heat", 16)[0]) == sweeps(equations.heat((16, 16, 16)).schedule)
    assert sweeps(predict.prepare("wave", 16)[0]) == sweeps(equations.wave((16, 16)).schedule)


def test_a_prediction_is_traced_as_a_run_is(tmp_path: Path) -> None:
    """The trace of a prediction has the same processes, threads and kinds of events as that of a run."""
    trace, picture = tmp_path / "t.json", tmp_path / "t.png"
    line = "model poisson --n 256 --machine stampede2-skx --ranks-per-node 4 --nodes 1,2 --traced 2,4"
    assert run(f"{line} --trace {trace} --timeline {picture} --json {tmp_path}/r.json".split()) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {"rank 2", "rank 4", "thread 0", "messages"}
    done = [e for e in events if e["ph"] == "X"]
    assert {e["cat"] for e in done} == {"patch", "pack", "unpack", "reduction"}
    assert {e["cat"] for e in done} < set(TRACE_EVENTS)
    assert {e["ph"] for e in events if e["cat" if "cat" in e else "ph"] == "message"} == {"b", "e"}
    assert "spans" not in json.loads((tmp_path / "r.json").read_text())["runs"][0]
    assert picture.stat().st_size > 10_000


def test_fewer_ranks_per_node_have_more_bandwidth_each() -> None:
    schedule, shape = predict.prepare("poisson", 512)
    times = [
        predict.predict(
            schedule, shape, machine(2, latency=1e-7), [8 // ranks_per_node], ranks_per_node=ranks_per_node
        )[0].seconds
        for ranks_per_node in (2, 4, 8)
    ]
    assert times[0] < times[1] < times[2]


@pytest.mark.parametrize(("strategy", "parts"), [("1d-x", (4, 1)), ("1d-y", (1, 4)), ("2d", (2, 2))])
def test_cuts_along_named_axes_are_predicted(strategy: str, parts: tuple[int, ...]) -> None:
    schedule, shape = predict.prepare("poisson", 512)
    (result,) = predict.predict(schedule, shape, machine(2), [2], strategy=strategy)
    assert result.parts == parts
