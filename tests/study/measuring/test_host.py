"""This host as a machine of the model: detection, measurement, and files."""

from __future__ import annotations

from pathlib import Path

import pytest

import halocline as hc
from calibrated import SEEN, measurement, rows
from halocline.compile.schedule import Schedule
from halocline.model import execute
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import Machine
from halocline.plan.traffic import Traffic
from halocline.run.host.machine import sockets
from halocline.study.measuring import host
from halocline.study.measuring.exchange import exchange_schedule
from halocline.study.measuring.paces import RADIUS, SIDE


@pytest.fixture
def calibrated() -> Machine:
    return host.machine_from_measurements([measurement(1), measurement(2)])


def test_a_roofline_recovers_the_parameters_of_kernels() -> None:
    assert host.roofline(rows(2e-11, 5e-11, 3e-10)) == pytest.approx((2e-11, 5e-11, 3e-10))
    per_byte, per_flop, per_sum = host.roofline(rows(0.0, 5e-11, 3e-10))
    assert (per_flop, per_sum) == pytest.approx((5e-11, 3e-10), rel=1e-2)
    assert 0 < per_byte < 1e-13, "a bandwidth is finite"


def pair(shape: tuple[int, ...], radius: int, *, wraps: bool = False) -> tuple[Schedule, Layout]:
    """Return two ranks that exchange one field along the first axis."""
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
def test_the_model_reproduces_its_calibration(calibrated: Machine, name: str, method: str) -> None:
    large = name.startswith("large")
    shape = (2 * SIDE, SIDE, SIDE) if large else (32, 16)
    schedule, layout = pair(shape, RADIUS if large else 1, wraps=large)
    result = execute(schedule, layout, calibrated, methods=method)
    # the size has no effect on small exchanges; large exchanges overlap by a latency or two
    assert result.seconds == pytest.approx(SEEN[name], rel=0.05)


def test_fields_of_a_device_are_measured_on_one_rank_and_on_all(calibrated: Machine) -> None:
    """One rank computes in the first measurement; caches are four times as fast as memory."""
    device = calibrated.device
    assert device.core_bandwidth == pytest.approx(1 / 4e-11)
    assert device.cache_bandwidth == pytest.approx(1 / 2e-11)
    assert device.flops * device.sustained * device.count == pytest.approx(2 / 3e-11)
    assert device.cache > 0


def test_a_reduction_takes_the_measured_time(calibrated: Machine) -> None:
    assert calibrated.measured is not None
    assert calibrated.measured.hop == pytest.approx(SEEN["sum"] - SEEN["sum alone"])


def test_hosts_without_shared_memory_or_with_one_core_are_calibrated() -> None:
    partial_machine = host.machine_from_measurements(
        [measurement(1), measurement(2, signal=None, **{"large colocated": None})]
    )
    assert partial_machine.measured is not None
    assert partial_machine.measured.copying == partial_machine.measured.packing
    assert partial_machine.device.latency < SEEN["message"]
    only = {name: SEEN[name] for name in ("begin", "sum alone", "copy")}
    single = host.machine_from_measurements([{**measurement(1), "between": only}])
    assert single.measured is not None
    assert single.measured.hop == 0


def test_sockets_agree_with_the_system() -> None:
    text = Path("/proc/cpuinfo").read_text()
    named = {line.split(":")[1].strip() for line in text.splitlines() if line.startswith("physical id")}
    if not named:
        pytest.skip("/proc/cpuinfo names no processors")
    assert 1 <= sockets() <= len(named)
