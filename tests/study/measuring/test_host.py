"""This host as a machine of the model: detected, measured, written and read again."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.cli.app import run
from halocline.compile.schedule import Schedule
from halocline.errors import InputError, RunError
from halocline.model import Rates, execute
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import Machine, Measured, Throughput, known_machines, load_machine, parse_machine
from halocline.plan.traffic import Traffic
from halocline.run.host.machine import sockets, this_machine
from halocline.study.measuring import host
from halocline.study.measuring.exchange import exchange_schedule
from halocline.study.measuring.paces import RADIUS, SIDE

ROWS = [
    {"bytes": 16.0, "flops": 1.0, "sums": 0},
    {"bytes": 24.0, "flops": 4.0, "sums": 1},
    {"bytes": 16.0, "flops": 39.0, "sums": 0},
    {"bytes": 16.0, "flops": 9.0, "sums": 1},
]


def rows(per_byte: float, per_flop: float, per_sum: float) -> list[dict[str, float]]:
    """What kernels take where these numbers hold."""
    return [
        {**r, "seconds": r["bytes"] * per_byte + r["flops"] * per_flop + r["sums"] * per_sum} for r in ROWS
    ]


SEEN: dict[str, Any] = {
    "begin": 1e-7,
    "sum alone": 2e-7,
    "copy": 2e-5,
    "sum": 1.4e-6,
    "signal": 3e-7,
    "message": 9e-7,
    "large colocated": 2.5e-5,
    "large message": 1.7e-4,
}


def measurement(ranks: int, **between: float | None) -> dict[str, Any]:
    """Of so many ranks; what is outside the cache is four times as slow."""
    inside, outside = rows(1e-11 * ranks, 3e-11, 1e-10), rows(4e-11 * ranks, 3e-11, 1e-10)
    return {
        "cache": 3.2e7,
        "ranks": ranks,
        "kernels": {"inside": inside, "outside": outside},
        "between": {**SEEN, **between},
    }


@pytest.fixture
def calibrated() -> Machine:
    return host.machine_of([measurement(1), measurement(2)])


def test_a_roofline_finds_what_kernels_were_made_of() -> None:
    assert host.roofline(rows(2e-11, 5e-11, 3e-10)) == pytest.approx((2e-11, 5e-11, 3e-10))
    per_byte, per_flop, per_sum = host.roofline(rows(0.0, 5e-11, 3e-10))
    assert (per_flop, per_sum) == pytest.approx((5e-11, 3e-10), rel=1e-2)
    assert 0 < per_byte < 1e-13, "a bandwidth is finite"


def test_paces_by_ranks_and_memory(calibrated: Machine) -> None:
    def bandwidth(ranks: int, memory: float) -> float:
        return Rates.of(calibrated, ranks, memory=memory).bandwidth

    assert [bandwidth(1, 1e6), bandwidth(1, 1e9)] == pytest.approx([1e11, 2.5e10])
    assert [bandwidth(2, 1e6), bandwidth(2, 1e9)] == pytest.approx([5e10, 1.25e10])
    assert bandwidth(8, 1e9) == pytest.approx(1.25e10 / 4), "eight ranks take turns on two cores"
    four = Measured(
        begin=0, packing=1, copying=1, hop=0,
        sweeps=[Throughput(ranks=r, memory=1e6, bandwidth=r, per_flop=0, per_sum=0) for r in (1, 4)],
    )  # fmt: skip
    assert [four.pace(r, 1e9).ranks for r in (1, 2, 4, 5)] == [1, 4, 4, 4]


def pair(shape: tuple[int, ...], radius: int, *, wraps: bool = False) -> tuple[Schedule, Layout]:
    """Two ranks that exchange one field along the first axis."""
    grid = hc.Grid(shape, periodic=(wraps, *(False for _ in shape[1:])))
    schedule = exchange_schedule(grid, 1, "float64", radius, corners=False)
    traffic = Traffic.of_schedule(schedule)
    return schedule, lay_out(shape, 2, strategy="1d-x", traffic=traffic, periodic=grid.periodic)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("signal", "colocated"),
        ("message", "mpi"),
        ("large colocated", "colocated"),
        ("large message", "mpi"),
    ],
)
def test_the_model_predicts_what_it_was_calibrated_by(calibrated: Machine, name: str, method: str) -> None:
    large = name.startswith("large")
    shape = (2 * SIDE, SIDE, SIDE) if large else (32, 16)
    schedule, layout = pair(shape, RADIUS if large else 1, wraps=large)
    found = execute(schedule, layout, calibrated, methods=method)
    # small exchanges count as free of bytes; those of large ones overlap by a latency or two
    assert found.seconds == pytest.approx(SEEN[name], rel=0.05)


def test_a_reduction_takes_what_was_measured(calibrated: Machine) -> None:
    assert calibrated.measured is not None
    assert calibrated.measured.hop == pytest.approx(SEEN["sum"] - SEEN["sum alone"])


def test_a_host_without_shared_memory_and_one_of_one_core() -> None:
    apart = host.machine_of([measurement(1), measurement(2, signal=None, **{"large colocated": None})])
    assert apart.measured is not None
    assert apart.measured.copying == apart.measured.packing
    assert apart.device.latency < SEEN["message"]
    only = {name: SEEN[name] for name in ("begin", "sum alone", "copy")}
    single = host.machine_of([{**measurement(1), "between": only}])
    assert single.measured is not None
    assert single.measured.hop == 0


def test_a_machine_is_written_as_it_is_read(calibrated: Machine) -> None:
    for name in known_machines():
        there = load_machine(name)
        assert parse_machine(host.as_toml(there), name) == there
    again = parse_machine(host.as_toml(calibrated), "host")
    assert again.measured is not None
    assert [p.memory for p in again.measured.sweeps] == [3.2e7, math.inf] * 2


def test_the_host_is_detected_and_then_as_calibrated(
    calibrated: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    there = host.machine_named("host")
    assert there.measured is None
    assert there.device.count == sockets()
    assert there.device.memory * sockets() == this_machine().memory_bytes
    assert 1e9 < there.device.bandwidth < 1e13
    host.calibration_file().parent.mkdir(parents=True)
    host.calibration_file().write_text(host.as_toml(calibrated))
    assert host.machine_named("host").measured is not None
    assert host.machine_named("summit").name == "summit"


def test_sockets_are_those_of_the_system() -> None:
    text = Path("/proc/cpuinfo").read_text()
    named = {line.split(":")[1].strip() for line in text.splitlines() if line.startswith("physical id")}
    if not named:
        pytest.skip("/proc/cpuinfo names no processors")
    assert 1 <= sockets() <= len(named)


def test_ranks_measure_a_case_together_and_each_by_itself() -> None:
    case = {"case": "wave", "n": 64}
    for alone in (False, True):
        assert 1e-6 < host.on_ranks(2, {"do": "case", "case": case, "alone": alone}) < 1e-1
    with pytest.raises(RunError, match="measuring on 1 rank failed:"):
        host.on_ranks(1, {"do": "case", "case": {"case": "tea"}, "alone": True})


def test_the_command_measures_a_pace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.json"
    words = f"model wave --n 96 --machine host --ranks-per-node 1 --measure 64 --json {record}"
    assert run(words.split()) == 0
    told = json.loads(record.read_text())
    assert told["pace_measured_at"] == 64
    assert f"Sweeps take {told['pace']:.2f} times as long" in capfd.readouterr().out
    assert told["runs"][0]["seconds"] > 0
    with pytest.raises(InputError, match="--machine is summit: say host"):
        run(["model", "wave", "--n", "96", "--machine", "summit", "--measure", "64"])


def copy_rate(size: int = 2**25) -> float:
    """Bytes a second of a copy of an array that exceeds the caches."""
    source, target = np.ones(size // 8), np.empty(size // 8)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return size / min(seconds)


@pytest.mark.long
def test_the_command_calibrates(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """How good the predictions are is measured by benchmarks/model.py."""
    file = tmp_path / "node.toml"
    assert run(f"model calibrate --file {file}".split()) == 0
    assert "What sweeps of a rank take" in capfd.readouterr().out
    there = load_machine(file)
    assert there.measured is not None
    assert {p.ranks for p in there.measured.sweeps} == {1, this_machine().cores}
    assert there.measured.begin < 1e-4
    # packing copies memory: its rate is near that of a copy by NumPy, far from it only on a busy machine
    assert 0.05 < there.measured.packing / copy_rate() < 20


def test_a_machine_that_is_not_known() -> None:
    with pytest.raises(InputError, match="machine 'hots' is unknown"):
        host.machine_named("hots")
    assert "host" not in os.listdir(Path(hc.__file__).parent / "plan" / "machines")
