"""Links between GPUs: bandwidths of known machines, and the reading of links from a stand-in for NVML."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from gpu_nodes import DGX_1, DGX_H100, MACHINES, PCIE_BOX, SUMMIT, Error, StandIn, node
from halocline.plan import place
from halocline.plan.devices import distance_between
from halocline.plan.machine import load_machine
from halocline.run.devices.topology import LANE, SOCKETS, X_BUS, Topology, bandwidths, link, read_topology

GB = 1e9


@pytest.mark.parametrize("topology", MACHINES.values(), ids=MACHINES)
def test_bandwidths_are_symmetric_and_positive(topology: Topology) -> None:
    rates = np.array(bandwidths(topology))
    np.testing.assert_array_equal(rates, rates.T)
    assert (rates > 0).all()
    assert np.isinf(np.diag(rates)).all()
    assert np.isfinite(rates[~np.eye(len(rates), dtype=bool)]).all()
    distance_between(bandwidths(topology))


@pytest.mark.parametrize(("name", "topology"), [("dgx-h100", DGX_H100), ("summit", SUMMIT)])
def test_bandwidths_are_those_of_the_machine_file(name: str, topology: Topology) -> None:
    machine = load_machine(name)
    rates = bandwidths(topology)
    assert len(rates) == machine.device.count
    for a in range(len(rates)):
        for b in range(len(rates)):
            if a != b:
                assert rates[a][b] == pytest.approx(machine.bandwidth(a, b)), (a, b)


def test_links_in_words() -> None:
    assert link(DGX_H100, 0, 7).kind == "18 NVLinks to switches"
    assert link(SUMMIT, 0, 2).kind == "2 NVLinks between them"
    assert link(SUMMIT, 0, 3).kind == "NVLink to processors, from one processor to another"
    assert link(DGX_1, 0, 1).kind == "1 NVLink between them"
    assert link(PCIE_BOX, 0, 1).kind == "PCIe, through one switch"
    assert link(PCIE_BOX, 0, 2).kind == "PCIe, through the processor"


def test_a_cube_mesh_has_links_of_two_widths_and_the_host_for_the_rest() -> None:
    rates = bandwidths(DGX_1)
    assert [rate / GB for rate in rates[0][1:5]] == [25, 25, 50, 50]
    # GPUs 0 and 5 have no link: PCIe 3.0 shared by two below the switch, the processors' link by four
    assert rates[0][5] == min(LANE[3] * 16 / 2, SOCKETS / 4)


def test_a_node_without_nvlink_is_rated_by_shared_links() -> None:
    rates = bandwidths(PCIE_BOX)
    assert rates[0][1] / GB == pytest.approx(31.5, rel=1e-3)  # PCIe 4.0 x16
    assert rates[0][2] == rates[0][1] / 2  # two GPUs share the uplink of the switch
    assert rates[0][4] == SOCKETS / 4  # four GPUs share the link to the other processor
    deeper = replace(
        PCIE_BOX, ancestors=tuple(tuple(n.replace("node", "switches") for n in r) for r in PCIE_BOX.ancestors)
    )
    assert bandwidths(deeper)[0][4] == min(rates[0][1] / 4, SOCKETS / 4)  # all four below one root port


@pytest.mark.parametrize(
    ("capability", "links", "gigabytes"),
    [
        ((6, 0), 4, 80),
        ((7, 0), 6, 150),
        ((8, 0), 12, 300),
        ((8, 6), 4, 56.25),
        ((9, 0), 18, 450),
        ((10, 0), 18, 900),
        ((12, 1), 2, 100),  # unknown generation: the nearest known one
        ((5, 2), 1, 20),
    ],
)
def test_generations_of_nvlink(capability: tuple[int, int], links: int, gigabytes: float) -> None:
    """P100, V100, A100, RTX A6000, H100, B200: one direction has half the bandwidth of their data sheets."""
    pair = node(
        "G", capability, ["0:1", "0:2"], (4, 16), lambda n: {f"0:{2 - n}": links}, lambda a, b: "system"
    )
    assert link(pair, 0, 1).bandwidth / GB == gigabytes


@pytest.mark.parametrize(
    ("pcie", "gigabytes"),
    [((1, 16), 4), ((2, 8), 4), ((3, 16), 15.75), ((5, 16), 63), ((6, 16), 121), ((9, 16), 121)],
)
def test_generations_of_pcie(pcie: tuple[int, int], gigabytes: float) -> None:
    pair = node("G", (8, 9), ["0:1", "0:2"], pcie, lambda n: {}, lambda a, b: "switch")
    assert link(pair, 0, 1).bandwidth / GB == pytest.approx(gigabytes, rel=2e-3)


def test_unknown_links_count_as_pcie_3() -> None:
    pair = node("G", (8, 9), ["0:1", "0:2"], None, lambda n: {}, lambda a, b: "node")
    assert link(pair, 0, 1).bandwidth == LANE[3] * 16


def test_subdomains_with_much_traffic_get_fast_links() -> None:
    """A ring of eight ranks on DGX-1 uses double links, except where the mesh has none."""
    ring = np.zeros((8, 8))
    for n in range(8):
        ring[n, (n + 1) % 8] = ring[(n + 1) % 8, n] = 1e6
    rates = bandwidths(DGX_1)
    places = place(ring, distance_between(rates))
    ring_rates = [rates[places[n]][places[(n + 1) % 8]] for n in range(8)]
    in_order = [rates[n][(n + 1) % 8] for n in range(8)]
    assert min(in_order) < 20 * GB  # 3 to 4 and 7 to 0 through the host
    assert min(ring_rates) == 50 * GB  # the mesh contains a ring of double links


# -- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("topology", MACHINES.values(), ids=MACHINES)
def test_the_topology_is_read_completely(topology: Topology, old: bool) -> None:
    nvml = StandIn(topology, old=old)
    assert read_topology(nvml=nvml) == (topology, "")
    assert nvml.running == 0
    assert json.loads(json.dumps(asdict(topology)))["gpus"][0]["nvlinks"] == topology.gpus[0].nvlinks


def test_gpus_are_found_by_uuid_for_any_numbering() -> None:
    expected = [SUMMIT.gpus[n].uuid for n in (4, 0, 3)]
    for identities in (expected, [uuid.removeprefix("GPU-").replace("-", "").upper() for uuid in expected]):
        topology, reason = read_topology(identities, StandIn(SUMMIT))
        assert reason == ""
        assert topology is not None
        assert [gpu.uuid for gpu in topology.gpus] == expected
        assert topology.ancestors[0] == ("board", "system", "node")
        # two of the GPUs share the link between the processors
        assert bandwidths(topology)[0][1] == X_BUS / 2
        assert bandwidths(topology)[0][2] == 50 * GB


def test_a_gpu_unknown_to_nvml_is_reported() -> None:
    topology, reason = read_topology(["MIG-11111111-aaaa"], StandIn(SUMMIT))
    assert topology is None
    assert reason.startswith("NVML does not report the GPU MIG-11111111-aaaa; ")


def test_links_to_hidden_devices_count_as_links_to_switches() -> None:
    topology, _ = read_topology(nvml=StandIn(DGX_H100, virtual=True))
    assert topology is not None
    assert topology.gpus[0].pcie is None
    assert bandwidths(topology) == bandwidths(DGX_H100)
    box, _ = read_topology(nvml=StandIn(PCIE_BOX, virtual=True))
    assert box is not None
    assert len({rate for row in bandwidths(box) for rate in row}) == 2  # all are equal, except one
    mesh, _ = read_topology(nvml=StandIn(DGX_1, virtual=True))
    assert mesh is not None
    assert bandwidths(mesh)[0][3] == 50 * GB


def test_a_link_to_a_hidden_gpu_is_not_assigned_to_another() -> None:
    pair = replace(SUMMIT, gpus=SUMMIT.gpus[:2], ancestors=tuple(row[:2] for row in SUMMIT.ancestors[:2]))
    topology, _ = read_topology(nvml=StandIn(pair))
    assert topology == pair
    assert bandwidths(pair)[0][1] == 50 * GB


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        ("nvmlInit", r"NVML does not start \(Driver Not Loaded\); install the NVIDIA driver"),
        ("nvmlDeviceGetCount", r"NVML fails \(Driver Not Loaded\); see nvidia-smi"),
        ("nvmlDeviceGetUUID", r"NVML fails \(Driver Not Loaded\); see nvidia-smi"),
    ],
)
def test_the_reason_for_an_unknown_topology_is_reported(
    failing: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise Error("Driver Not Loaded")

    nvml = StandIn(SUMMIT)
    monkeypatch.setattr(nvml, failing, fail)
    topology, reason = read_topology(nvml=nvml)
    assert topology is None
    assert re.search(words, reason)
    assert nvml.running == 0


def test_a_missing_package_is_reported_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_topology() == (
        None,
        "the Python package nvidia-ml-py is not installed; pip install nvidia-ml-py",
    )


def test_the_stand_in_has_the_interface_of_pynvml() -> None:
    real = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    names = [name for name in vars(StandIn) if name.startswith(("nvml", "NVML"))]
    assert len(names) > 15
    for name in names:
        standin_member, real_member = getattr(StandIn, name), getattr(real, name)
        if inspect.isfunction(standin_member):
            assert list(inspect.signature(standin_member).parameters)[1:] == list(
                inspect.signature(real_member).parameters
            ), name
        elif name.startswith("NVML_NVLINK_DEVICE"):
            assert standin_member == real_member
    assert [
        getattr(real, f"NVML_TOPOLOGY_{n}") for n in ("INTERNAL", "SINGLE", "MULTIPLE", "HOSTBRIDGE")
    ] == [10 * n for n in range(4)]
    assert (real.NVML_TOPOLOGY_NODE, real.NVML_TOPOLOGY_SYSTEM) == (40, 50)


def test_pynvml_returns_a_topology_or_a_reason() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    topology, reason = read_topology()
    assert (topology is None) == bool(reason)
    if topology is None:
        assert "; " in reason
        pytest.skip(f"no NVIDIA driver here: {reason}")
    assert topology.gpus
    rates = bandwidths(topology)
    reordered, _ = read_topology([gpu.uuid for gpu in reversed(topology.gpus)])
    assert reordered is not None
    assert bandwidths(reordered)[0][0] == rates[0][0]
    assert [gpu.uuid for gpu in reordered.gpus] == [gpu.uuid for gpu in reversed(topology.gpus)]


def test_nvml_is_imported_only_on_demand() -> None:
    script = "import halocline, halocline.run.devices.topology, sys; print('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
