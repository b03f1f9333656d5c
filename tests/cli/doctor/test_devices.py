"""The findings of `halocline doctor` on devices, with stand-ins for absent drivers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import cuda_standin
from gpu_nodes import DGX_H100, SUMMIT
from halocline.cli.doctor import devices as looks
from halocline.cli.doctor import finding
from halocline.cli.doctor.finding import Finding, line, problem_and_advice
from halocline.run.devices import devices as present
from halocline.run.devices import topology
from halocline.run.devices.topology import Gpu, Topology
from halocline.run.host.machine import this_machine
from hang import HANG


def device(interface: str, index: int, gpu: Gpu | None = None, **other: Any) -> Any:
    facts = {
        "interface": interface,
        "index": index,
        "platform": "" if interface == "cuda" else "Made-up platform",
        "name": gpu.name if gpu else "Made-up device",
        "driver": "550.54.15",
        "identity": gpu.uuid if gpu else f"made up #{index}",
        "architecture": "sm_70" if interface == "cuda" else "",
        "memory": 17_000_000_000,
        "local_memory": 49152,
        "max_threads_per_block": 1024,
        "units": 80,
        "doubles": True,
    }
    return SimpleNamespace(**facts | other)


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Replace the drivers by lists of devices or errors (`cuda`, `opencl`), `why`, and `topology`."""
    machine = SimpleNamespace(
        cuda=[], opencl=[], why="no driver here", topology=(None, "no NVML; install it")
    )

    def devices(interface: str) -> list[Any]:
        devices_or_error = getattr(machine, interface)
        if isinstance(devices_or_error, Exception):
            raise devices_or_error
        return list(devices_or_error)

    def read(identities: list[str]) -> tuple[Topology | None, str]:
        machine.identities_read = list(identities)
        topology: tuple[Topology | None, str] = machine.topology
        return topology

    module = SimpleNamespace(devices=devices, why_no_devices=lambda interface: machine.why)
    for home in (looks, finding, present):
        monkeypatch.setattr(home, "native", lambda: module)
    monkeypatch.setattr(topology, "read_topology", read)
    return machine


def findings() -> dict[str, Finding]:
    def every() -> Iterator[Finding]:
        for look in (looks.cuda, looks.opencl, looks.mpi_with_devices):
            yield from look(this_machine())

    by_name = {finding.name: finding for finding in every()}
    json.dumps([finding.as_dict() for finding in by_name.values()], allow_nan=False)
    assert not any(finding.is_required for finding in by_name.values()), "solves run on CPUs too"
    return by_name


def test_without_devices_nothing_is_missing(
    drivers: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        looks, "nvrtc", lambda is_required: Finding("NVRTC", "missing" if is_required else "absent", "")
    )
    by_name = findings()
    assert {finding.state for finding in by_name.values()} == {"absent"}
    assert by_name["CUDA"].text == by_name["OpenCL"].text == "no driver here"
    assert by_name["MPI with devices"].text.startswith("not tested here: at its start, a run")
    assert not hasattr(drivers, "identities_read"), "NVML is for CUDA devices"


def test_devices_are_listed_one_a_line_with_their_facts(drivers: SimpleNamespace) -> None:
    drivers.cuda = [device("cuda", 0, DGX_H100.gpus[0])]
    drivers.opencl = [device("opencl", n, doubles=n > 0) for n in range(2)]
    by_name = findings()
    assert by_name["CUDA"].text == "1 device, --device cuda"
    assert by_name["OpenCL"].text == "2 devices, --device opencl"
    text = "NVIDIA H100 80GB HBM3, 17.0 GB, sm_70, 80 compute units, float64, driver 550.54.15"
    assert sorted(by_name["cuda:0"].text.split(", ")) == sorted(text.split(", "))
    assert ", no float64 with multiply-add (required by all runs), " in by_name["opencl:0"].text
    assert ", float64, " in by_name["opencl:1"].text
    assert by_name["opencl:1"].as_dict()["facts"]["identity"] == "made up #1"
    assert "facts" not in by_name["OpenCL"].as_dict()
    assert "links" not in by_name, "one device has none"


def test_platforms_of_opencl_are_distinguished(drivers: SimpleNamespace) -> None:
    drivers.opencl = [device("opencl", n, platform=name) for n, name in enumerate(("One", "Two", "One"))]
    by_name = findings()
    assert by_name["OpenCL"].text == "3 devices, --device opencl selects the platform One"
    assert "Two" in by_name["opencl:1"].text.split(", ")
    assert by_name["opencl:2"].as_dict()["facts"]["platform"] == "One"


def test_a_driver_failure_is_reported_with_a_remedy(drivers: SimpleNamespace) -> None:
    drivers.cuda = RuntimeError("the driver does not start: 999; reboot")
    by_name = findings()
    assert (by_name["CUDA"].state, by_name["CUDA"].text) == ("missing", "the driver does not start: 999")
    assert by_name["CUDA"].advice == "reboot"


def test_links_without_nvml_count_as_equal(drivers: SimpleNamespace) -> None:
    drivers.cuda = [device("cuda", n, gpu) for n, gpu in enumerate(SUMMIT.gpus)]
    by_name = findings()
    assert drivers.identities_read == [gpu.uuid for gpu in SUMMIT.gpus]
    assert by_name["NVML"].state == "missing"
    assert (by_name["NVML"].text, by_name["NVML"].advice) == (
        "no NVML; all links are treated as equal",
        "install it",
    )
    assert "links" not in by_name


def test_links_are_a_matrix(drivers: SimpleNamespace) -> None:
    drivers.cuda = [device("cuda", n, gpu) for n, gpu in enumerate(SUMMIT.gpus)]
    drivers.topology = (SUMMIT, "")
    by_name = findings()
    assert by_name["NVML"].text == "driver 550.54.15"
    assert by_name["NVML"].as_dict()["facts"]["gpus"][0]["nvlinks"]["processor"] == 2
    _, head, *rows = by_name["links"].text.splitlines()
    assert head.split() == [f"cuda:{n}" for n in range(6)]
    assert rows[1].split() == ["cuda:1", "50.0", "–", "50.0", "21.3", "21.3", "21.3"]
    assert len(rows[1]) == len(head)
    assert rows[6:] == [
        "50.0: 2 NVLinks between them",
        "21.3: NVLink to processors, from one processor to another",
        "subdomains are placed on devices by these links",
    ]
    facts = by_name["links"].as_dict()["facts"]
    assert facts["devices"] == head.split()
    assert facts["bandwidth"][0][:2] == [None, 50e9]
    lines = line(by_name["links"]).splitlines()
    assert lines[0].startswith("✓ links             GB/s in one direction")
    assert all(line.startswith(" " * 20) for line in lines[1:])
    drivers.cuda = [device("cuda", n, gpu) for n, gpu in enumerate(DGX_H100.gpus)]
    drivers.topology = (DGX_H100, "")
    last = findings()["links"].text.splitlines()[-1]
    assert last == "subdomains are placed on devices in order, since all links are equal"


def test_reported_devices_are_those_of_native_code() -> None:
    """The findings agree with native code, on two devices of PoCL, and CUDA devices or their stand-in."""
    script = """if True:
        import json
        from halocline.cli.doctor import CHECKS
        from halocline.cli.doctor.devices import FACTS, cuda, opencl
        from halocline.native import native
        assert {cuda, opencl} < set(CHECKS)
        for look in (cuda, opencl):
            reported = [f.facts for f in look(None) if f.facts and "interface" in f.facts]
            devices = native().devices(look.__name__)
            assert reported == [
                {name: getattr(device, a) for name, a in FACTS.items()} for device in devices
            ]
            print(len(devices))
    """
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | cuda_standin.environment(2) | {"POCL_DEVICES": "pthread pthread"},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 1


@pytest.mark.parametrize("is_needed", [False, True])
def test_nvrtc_is_required_only_with_cuda_devices(is_needed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_NVRTC", "/nonexistent/libnvrtc.so.12")
    finding = looks.nvrtc(is_needed)
    assert finding.state == ("missing" if is_needed else "absent")
    assert ("nvidia-cuda-nvrtc-cu12" in finding.advice) == is_needed
    assert ("/nonexistent/libnvrtc.so.12" in finding.text) == is_needed


def test_nvrtc_is_reported_with_its_architectures() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="nvidia-cuda-nvrtc-cu12 is not installed")
    finding = looks.nvrtc(True)
    assert finding.state == "found"
    assert re.fullmatch(r"\d+\.\d+, compiles for sm_\d+ to sm_\d+", finding.text)


def test_a_check_without_devices_does_not_import_nvml(
    drivers: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # an import would fail
    findings()


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("no compiler 'g++' on PATH. Install g++.", ("no compiler 'g++' on PATH", "Install g++")),
        ("libcuda.so.1 is missing; install the driver", ("libcuda.so.1 is missing", "install the driver")),
        ("the test failed\nat line 3", ("the test failed", "")),
    ],
)
def test_the_last_sentence_of_an_error_is_the_advice(message: str, parts: tuple[str, str]) -> None:
    assert problem_and_advice(RuntimeError(message)) == parts
