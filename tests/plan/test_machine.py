"""Machine files, and this host as a machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

import halocline as hc
from calibrated import measurement
from halocline.errors import InputError
from halocline.plan.machine import Machine, known_machines, load_machine, parse_machine
from halocline.run.host.machine import sockets, this_machine
from halocline.study.measuring import host


@pytest.fixture
def calibrated() -> Machine:
    return host.machine_from_measurements([measurement(1), measurement(2)])


def test_a_machine_is_read_back_unchanged(calibrated: Machine) -> None:
    for name in known_machines():
        loaded = load_machine(name)
        assert parse_machine(host.toml_text(loaded), name) == loaded
    again = parse_machine(host.toml_text(calibrated), "host")
    assert again.measured is not None
    assert [p.memory for p in again.measured.sweeps] == [3.2e7, math.inf] * 2


def test_the_host_is_detected_and_then_as_calibrated(
    calibrated: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    detected = host.machine_named("host")
    assert detected.measured is None
    assert detected.device.count == sockets()
    assert detected.device.memory * sockets() == this_machine().memory_bytes
    assert 1e9 < detected.device.bandwidth < 1e13
    host.calibration_file().parent.mkdir(parents=True)
    host.calibration_file().write_text(host.toml_text(calibrated))
    assert host.machine_named("host").measured is not None
    assert host.machine_named("summit").name == "summit"


def test_an_unknown_machine_is_reported() -> None:
    with pytest.raises(InputError, match="machine 'hots' is unknown"):
        host.machine_named("hots")
    assert "host" not in os.listdir(Path(hc.__file__).parent / "plan" / "machines")
