"""Energy counters of processors and GPUs."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from halocline.problems.problem import Problem
from halocline.run.measurements import energy
from halocline.run.measurements.energy import Counter, EnergyMeter, gpus, processors
from halocline.run.ranks.communicator import Communicator
from hang import HANG


def test_overflows_of_counters_are_detected():
    assert Counter(100, 10**9).until(Counter(2_000_100, 10**9), 0.001) == pytest.approx(2.0)
    assert Counter(999_000_000, 10**9).until(Counter(1_000_000, 10**9), 0.1) == pytest.approx(2.0)
    assert Counter(0, 10**9).until(Counter(5, 10**9), 2.0) is None  # may have wrapped around: 2000 J passed


def test_counters_are_read_before_a_second_overflow(monkeypatch):
    readings = []

    def read() -> list[Counter]:  # one watt, on a counter that wraps around every 0.04 s
        readings.append(15_000 * len(readings))
        return [Counter(readings[-1] % 40_000, 40_000)]

    monkeypatch.setattr(energy, "MOST_POWER", 1.0)
    monkeypatch.setattr(energy, "processors", read)
    monkeypatch.setattr(energy, "perf_counter", lambda: 0.015 * len(readings))  # 15 ms between readings
    meter = EnergyMeter(Communicator())
    with meter.on():
        deadline = time.monotonic() + HANG
        while len(readings) < 12 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert meter.total is not None
    assert len(readings) >= 12
    assert meter.total.joules == pytest.approx(1e-6 * readings[-1])


def zone(folder: Path, number: int, name: str, energy: int | None) -> None:
    (folder / f"intel-rapl:{number}").mkdir()
    (folder / f"intel-rapl:{number}" / "name").write_text(f"{name}\n")
    (folder / f"intel-rapl:{number}" / "max_energy_range_uj").write_text("262143328850\n")
    if energy is not None:
        (folder / f"intel-rapl:{number}" / "energy_uj").write_text(f"{energy}\n")


def test_each_processor_is_read_once(tmp_path):
    zone(tmp_path, 0, "package-0", 5)
    zone(tmp_path, 1, "package-1", 7)
    zone(tmp_path, 2, "psys", 100)  # the whole system includes the packages
    (tmp_path / "intel-rapl:0:0").mkdir()  # cores of a package
    assert [counter.microjoules for counter in processors(tmp_path)] == [5, 7]
    zone(tmp_path, 3, "package-2", None)
    assert processors(tmp_path) == []  # the sum of a part would look like the total
    assert processors(tmp_path / "nothing") == []


class Nvml(SimpleNamespace):
    """NVML of two GPUs."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__(energies={"GPU-a": 1000, "GPU-b": 4000})

    nvmlInit = nvmlShutdown = staticmethod(lambda: None)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.energies:
            raise self.NVMLError
        return uuid

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        self.energies[handle] += 500
        return self.energies[handle]


def test_the_energy_of_gpus_is_measured(monkeypatch):
    assert [counter.microjoules for counter in gpus(["GPU-b"], Nvml())] == [4_500_000]
    assert gpus(["MIG-c"], Nvml()) == []
    monkeypatch.setattr(energy, "processors", lambda: [])
    device = SimpleNamespace(interface="cuda", identity="GPU-a")
    meter = EnergyMeter(Communicator(), [device, device], Nvml())
    with meter.on():
        pass
    assert meter.total == energy.Energy(0.5, ("devices",))
    without = EnergyMeter(Communicator(), [SimpleNamespace(interface="opencl", identity="x")])
    with without.on():
        pass
    assert without.total is None


def test_a_run_reports_its_energy_if_the_host_measures_it(monkeypatch):
    readings = itertools.count(step=3_000_000)
    monkeypatch.setattr(energy, "processors", lambda: [Counter(next(readings), 2**40)])
    record = Problem("alfven-decay", [16]).run(steps=6, every=2, warm_up=2, threads=1).record
    assert record.joules_of == ("processors",)
    assert record.joules_per_cell_step == pytest.approx(2 * 3.0 / (16 * 4))  # two pieces were timed
    monkeypatch.setattr(energy, "processors", lambda: [])
    record = Problem("alfven-decay", [16]).run(steps=2, threads=1).record
    assert (record.joules_per_cell_step, record.joules_of) == (None, ())
