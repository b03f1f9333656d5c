"""Commands and records of runs on two OpenCL devices that compute on the processor."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import halocline as hc
from device_commands import SIDES, Devices, explanation_on, halocline, heat
from halocline import _native as native
from halocline.cli.app import run
from halocline.errors import InputError, RunError
from halocline.run.devices.devices import (
    device_errors,
    devices_in_use,
    summary,
)
from halocline.run.host.streams import say_once
from halocline.run.measurements import bandwidth
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world
from halocline.study.measuring import host
from many_fields import sum_of_fields

SCRIPT = """
import halocline as hc
grid = hc.Grid((24,), periodic=True)
u = grid.field("u")
sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5)
"""


def places(record: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(place["rank"], place["subdomain"], place["device"]) for place in record["devices"]]


# -- runs ----------------------------------------------------------------------------------------------------


def test_a_solve_reports_its_devices_and_has_the_same_bits(tmp_path: Path, opencl: Devices):
    line = "solve poisson --n 16 --dim 1 --json r.json"
    alone = halocline(f"{line} --threads 1", tmp_path)
    assert alone.returncode == 0, alone.stderr
    cpu = json.loads((tmp_path / "r.json").read_text())
    assert cpu["devices"] == []
    result = halocline(f"{line} --device opencl --threads 4", tmp_path)
    assert result.returncode == 0, result.stderr
    name = re.escape(opencl[0].name)
    assert re.search(rf", 1 rank, devices opencl:0, opencl:1 \({name}\)$", result.stdout, re.MULTILINE)
    assert re.search(r"^memory bandwidth .* by copies within the same devices;", result.stdout, re.MULTILINE)
    assert result.stderr.count("threads 4: ignored") == 1
    record = json.loads((tmp_path / "r.json").read_text())
    assert places(record) == [(0, 0, "opencl:0"), (0, 1, "opencl:1")]
    assert record["devices"][0]["driver"] == opencl[0].driver
    assert (record["checksum"], record["threads"]) == (cpu["checksum"], 1)
    assert record["bandwidth_share"] > 0
    assert list(record) == list(cpu)


def test_a_script_runs_on_the_devices_that_the_command_names(tmp_path: Path, opencl: Devices):
    (tmp_path / "s.py").write_text(SCRIPT + "hc.print(*[place.device for place in sim.devices])\n")
    result = halocline("run s.py --device opencl --ranks 2 --json r.json", tmp_path)
    assert (result.returncode, result.stdout) == (0, "opencl:0 opencl:1\n"), result.stderr
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["device"] == "opencl"
    assert places(record) == [(0, 0, "opencl:0"), (1, 1, "opencl:1")]
    # both ranks use one device, which the environment names; threads have no effect
    (tmp_path / "s.py").write_text(SCRIPT.replace("dt=1e-5", "dt=1e-5, threads=3"))
    result = halocline("run s.py --ranks 2 --json r.json", tmp_path, HALOCLINE_DEVICE="opencl:1")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("threads 3: ignored, since one thread of each rank controls its dev") == 1
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["device"], places(record)) == ("opencl:1", [(0, 0, "opencl:1"), (1, 1, "opencl:1")])
    wrong = halocline("run s.py --device gpu", tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "device 'gpu': 'gpu' is not an interface; expected cpu, cuda or opencl" in wrong.stderr


def test_a_simulation_reports_its_devices(opencl: Devices):
    sim = heat(device="opencl")
    assert [(p.rank, p.subdomain, p.device) for p in sim.devices] == [(0, 0, SIDES[0]), (0, 1, SIDES[1])]
    assert summary(sim.devices) == f"devices opencl:0, opencl:1 ({opencl[0].name})"
    assert heat().devices == ()


def test_devices_in_use_are_those_of_runs_within_the_block(opencl: Devices):
    heat(device="opencl")
    with devices_in_use() as all_of_them:
        with devices_in_use() as none:
            heat(device="cpu")
        heat(device="opencl:1")
    heat(device="opencl")
    assert none(world()) == []
    assert [place.device for place in all_of_them(world())] == ["opencl:1"]


def test_a_missing_device_is_an_error_before_a_script_begins(tmp_path: Path, opencl: Devices):
    (tmp_path / "s.py").write_text("print('begun')\n" + SCRIPT)
    for line, environment, first in (
        ("run s.py --device opencl:97", {}, "device 'opencl:97': there is no opencl:97"),
        ("run s.py --device opencl:97 --ranks 2", {}, "device 'opencl:97': there is no opencl:97"),
        ("run s.py", {"HALOCLINE_DEVICE": "opencl:97"}, "HALOCLINE_DEVICE: device 'opencl:97': there is no"),
    ):
        result = halocline(line, tmp_path, **environment)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"halocline: error: {first}")
        assert result.stderr.count("\n") == 1


def test_the_device_of_the_command_replaces_the_device_of_a_file(tmp_path: Path, opencl: Devices):
    (tmp_path / "s.py").write_text(SCRIPT.replace("dt=1e-5", "dt=1e-5, device='cpu'"))
    (tmp_path / "t.py").write_text(SCRIPT.replace("dt=1e-5", "dt=1e-5, device='opencl:1'"))
    for line, ran in (
        ("run s.py --device opencl:1", ["opencl:1"]),
        ("run t.py --device cpu", []),
        ("run t.py --device opencl:0", ["opencl:0"]),
        ("run t.py", ["opencl:1"]),
    ):
        result = halocline(f"{line} --json r.json", tmp_path)
        assert result.returncode == 0, result.stderr
        record = json.loads((tmp_path / "r.json").read_text())
        assert [place["device"] for place in record["devices"]] == ran


def test_a_script_restores_the_process_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HALOCLINE_DEVICE", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    (tmp_path / "s.py").write_text(
        "import json, os, sys\n"
        "names = 'HALOCLINE_DEVICE', 'OMP_NUM_THREADS'\n"
        "open(sys.argv[1], 'w').write(json.dumps([sys.path[0], *map(os.environ.get, names)]))\n"
    )
    before = dict(os.environ), sys.argv, sys.path[:]
    command = [
        "run",
        str(tmp_path / "s.py"),
        "--device",
        "cpu",
        "--threads",
        "1",
        str(tmp_path / "seen.json"),
    ]
    assert run(command) == 0
    assert json.loads((tmp_path / "seen.json").read_text()) == [str(tmp_path), "cpu", "1"]
    assert (dict(os.environ), sys.argv, sys.path[:]) == before


# -- choices -------------------------------------------------------------------------------------------------


def test_the_model_of_this_host_is_measured_on_the_host(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HALOCLINE_DEVICE", "opencl:99")
    case = {"case": "heat", "n": 16, "dim": 1}
    assert 0 < host.run_task(1, {"do": "case", "case": case, "alone": True}) < 1


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "'gpu' is not an interface; expected cpu, cuda or opencl"),
        ("opencl:0,0", "names 0 twice"),
        ("opencl:7", r"there is no opencl:7; expected 0 to 1 \(see `halocline doctor`\)"),
        ("cpu:1", "cpu has no device numbers"),
        ("opencl:x", "'x' is not a device number"),
    ],
)
def test_invalid_devices_are_reported_in_one_line(opencl: Devices, device: str, message: str):
    if len(native.devices("opencl")) != 2:
        pytest.skip("more OpenCL devices than the tests'")
    with pytest.raises(InputError, match=message) as raised:
        heat(device=device)
    assert "\n" not in str(raised.value)


def test_a_grid_too_small_for_all_devices_is_rejected(opencl: Devices):
    grid = hc.Grid((3,), periodic=True)
    grid.field("u")
    with pytest.raises(
        InputError, match=r"cut into 2 subdomains.*\. Select fewer devices than 2, such as open"
    ):
        hc.Simulation(
            grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1.0, order=6, device="opencl:0,1"
        )


@pytest.mark.parametrize(
    ("cells", "options", "advice"),
    [
        (24, {"decomposition": "4"}, "use numbers whose product is 2. Use 2 subdomains per device"),
        (
            24,
            {"decomposition": "1"},
            "use numbers whose product is 2. Select fewer devices than 2, such as opencl:0",
        ),
        (4, {"subdomains_per_rank": 3}, "fits is 4. Use 2 subdomains per device (--subdomains-per-rank 2)"),
        (
            24,
            {"decomposition": "4", "device": "cpu"},
            "is 1. Use 4 subdomains per rank (--subdomains-per-rank 4)",
        ),
    ],
)
def test_advised_numbers_of_subdomains_work(
    opencl: Devices, cells: int, options: dict[str, Any], advice: str
) -> None:
    def run(**options: Any) -> None:
        grid = hc.Grid((cells,), periodic=True)
        grid.field("u")
        hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5, **options)

    options = {"device": "opencl:0,1", **options}
    with pytest.raises(InputError, match=re.escape(advice) + r"($| \(|, or )") as raised:
        run(**options)
    message = str(raised.value)
    if match := re.search(r"--subdomains-per-rank (\d+)", message):
        run(**{**options, "subdomains_per_rank": int(match[1])})
    if match := re.search(r"such as (opencl:[\d,]+)", message):
        run(**{**options, "device": match[1]})


# -- changed requests ----------------------------------------------------------------------------------------


@pytest.fixture
def notices(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return the log of a process that has not printed any notice."""
    say_once.cache_clear()
    return caplog


ALONE = "need{} several ranks, so peer is used instead. Start ranks with mpiexec or --ranks."


@pytest.mark.parametrize("device", ["cpu", "opencl:0,1"])
@pytest.mark.parametrize(
    ("methods", "methods_taken", "notice"),
    [
        (None, ("self", "peer", "mpi"), None),
        ("self,peer", ("self", "peer", "mpi"), None),
        ("peer,colocated", ("peer", "mpi"), None),
        ("mpi", ("peer", "mpi"), "transfer method mpi " + ALONE.format("s")),
        ("self,colocated", ("self", "peer", "mpi"), "transfer methods colocated, mpi " + ALONE.format("")),
    ],
)
def test_one_process_uses_only_available_methods(
    opencl: Devices,
    notices: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    methods: str | None,
    methods_taken: tuple[str, ...],
    notice: str | None,
) -> None:
    # reset the communicator that other tests may have created
    monkeypatch.setattr("halocline.run.ranks.mpi._failure_communicator", None)
    subdomains = 2 if device == "cpu" else 1
    sim = heat(device=device, methods=methods, subdomains_per_rank=subdomains, threads=1)
    assert sim.domain.transfers is not None
    assert sim.domain.transfers.methods == methods_taken
    assert {route["method"] for route in hc.explain(sim).routes} == {"peer"}
    # a program that is only explained selects the same methods and prints the same notice
    planned = explanation_on(device, methods=methods, subdomains_per_rank=subdomains)
    assert planned.plan.transfers.methods == methods_taken
    assert notices.messages == ([notice] if notice else [])


@pytest.mark.parametrize(
    ("options", "notice"),
    [
        ({"kernels": "queue"}, "kernels queue: ignored, since the device is cpu"),
        (
            {"methods": "peer,gpu_aware"},
            "transfer method gpu_aware is not used: fields are in host memory",
        ),
        (
            {"device": "opencl:0", "schedule": "static"},
            "schedule static: ignored, since the work of devices is not distributed",
        ),
        (
            {"device": "opencl:0", "methods": "peer,rma"},
            "method rma is not used between devices: its mailboxes",
        ),
        ({"device": "opencl:0", "schedule": "guided", "kernels": "direct", "threads": 1}, None),
        ({"schedule": "dynamic", "methods": "peer,rma"}, None),
    ],
)
def test_ineffective_options_are_reported_once(
    opencl: Devices, notices: pytest.LogCaptureFixture, options: dict[str, Any], notice: str | None
) -> None:
    sim = heat(**options)
    heat(**options)
    hc.explain(sim)
    assert len(notices.messages) == (notice is not None)
    assert notice is None or notice in notices.messages[0]


@pytest.mark.ranks(2)
@pytest.mark.usefixtures("opencl")
def test_ranks_on_devices_report_missing_mailboxes(caplog: pytest.LogCaptureFixture) -> None:
    say_once.cache_clear()
    sim = heat(device="opencl", methods="rma")
    assert sim.domain.transfers is not None
    assert sim.domain.transfers.methods == ("mpi",)
    first = world().rank == 0
    assert [text for text in caplog.messages if "method rma is not used between devices" in text] == [
        "transfer method rma is not used between devices: its mailboxes are in host memory"
    ] * first


# -- memory and failures -------------------------------------------------------------------------------------


def test_a_kernel_with_too_many_fields_is_reported(opencl: Devices):
    sim = sum_of_fields(110, "opencl:0")
    with pytest.raises(
        RunError, match=r"bytes of parameters, for 110 fields, but opencl:0 .* at most 1024: "
    ):
        sim.run(steps=1)


def test_a_grid_that_does_not_fit_is_rejected_before_allocation(tmp_path: Path, opencl: Devices):
    line = "solve poisson --n 12000 --device opencl:0 --ranks 2"
    result = halocline(line, tmp_path, POCL_MEMORY_LIMIT="1")
    assert result.returncode == 1
    assert re.fullmatch(
        r"halocline: error: device opencl:0 \(.*\): the 2 ranks that share it need 4\.6 GB, but only "
        r"1\.\d GB are free\. Use more devices, .*\n",
        result.stderr.partition("This happened")[0],
    )


def test_a_device_error_is_one_run_error(opencl: Devices):
    with (
        pytest.raises(RunError, match=r"^program 'x': OpenCL device 0 .* does not compile"),
        device_errors("program 'x'"),
    ):
        opencl[0].load("kernel void broken(")
    with (
        pytest.raises(RunError, match=r"^field 'u': a buffer on OpenCL device 0 .* needs \d+ bytes"),
        device_errors("field 'u'"),
    ):
        opencl[0].allocate(2**60)


def test_a_kernel_failure_in_a_run_is_one_clear_error(tmp_path: Path, faults: str):
    (tmp_path / "s.py").write_text(SCRIPT + "sim['u'] = 1.0\nsim.run(steps=2)\n")
    result = halocline("run s.py --device opencl:0", tmp_path, OPENCL_LAYERS=faults, FAULT="kernel")
    assert result.returncode == 1
    first, *rest = result.stderr.splitlines()
    assert first.startswith("halocline: error: program 'initial_values': OpenCL device 0 (")
    assert "kernel sweep_0_0 failed with CL_OUT_OF_RESOURCES (-5): a kernel has failed" in first
    assert [line.strip() for line in rest[1:]] == ["sim.run(steps=2)"]  # only if the user requested it


# -- bandwidth -----------------------------------------------------------------------------------------------


def test_bandwidth_is_summed_over_all_devices(opencl: Devices, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bandwidth, "LEAST_COPIED", 2**20)
    sizes: list[int] = []
    best_rate = bandwidth.best_rate

    def noting(comm: Communicator, make: Any, duration: float) -> float:
        def timed_copy() -> int:
            sizes.append(make())
            return sizes[-1]

        return best_rate(comm, timed_copy, duration)

    monkeypatch.setattr(bandwidth, "best_rate", noting)
    rate = bandwidth.device_bandwidth(Communicator(), opencl[:2], 0)
    assert 1e8 < rate < 1e13
    assert all(size > 0 and size % (2 * 2 * 2**20) == 0 for size in sizes)  # there and back, on both devices
    assert bandwidth.yardstick(opencl) != bandwidth.yardstick(())


def test_bandwidth_is_measured_in_the_available_memory():
    class Small:
        interface, index, name, left = "opencl", 0, "small", 3 * 2**20

        def queue(self) -> None:
            pass

        def allocate(self, size: int) -> Any:
            if 2 * size > self.left:
                raise MemoryError
            return SimpleNamespace(bytes=size)

    device: Any = Small()
    assert bandwidth._Copies(device, 2**25).source.bytes == 2**20
    device.left = 1000
    with pytest.raises(RunError, match=r"device opencl:0 \(small\) has no free memory for a measurement"):
        bandwidth._Copies(device, 2**25)
