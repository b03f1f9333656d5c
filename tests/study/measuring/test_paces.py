"""Paces of cases on a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrated import measurement
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.model import Rates
from halocline.plan.machine import Machine, Measured, Throughput
from halocline.study.measuring import host


@pytest.fixture
def calibrated() -> Machine:
    return host.machine_from_measurements([measurement(1), measurement(2)])


def test_cell_times_depend_on_ranks_and_memory(calibrated: Machine) -> None:
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


def test_the_command_measures_the_time_of_a_cell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.json"
    words = f"model wave --n 96 --machine host --ranks-per-node 1 --measure 64 --json {record}"
    assert run(words.split()) == 0
    record_data = json.loads(record.read_text())
    assert record_data["pace_measured_at"] == 64
    assert (
        f"Measured sweeps take {record_data['pace']:.2f} times as long as predicted" in capfd.readouterr().out
    )
    assert record_data["runs"][0]["seconds"] > 0
    with pytest.raises(InputError, match=r"--machine is summit\. Use --machine host"):
        run(["model", "wave", "--n", "96", "--machine", "summit", "--measure", "64"])
