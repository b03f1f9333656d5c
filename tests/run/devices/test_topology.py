"""Placement of subdomains by the links between devices, as NVML reports them for known nodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import halocline as hc
from gpu_nodes import DGX_1, DGX_H100, SUMMIT, StandIn
from halocline.plan.devices import distance_between
from halocline.run.devices import topology
from halocline.run.devices.topology import DeviceLinks, Topology, bandwidths, device_links, links_between
from halocline.run.domain import domain
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world


def devices(topology: Topology, places: Sequence[int], interface: str = "cuda") -> list[Any]:
    return [SimpleNamespace(interface=interface, identity=topology.gpus[n].uuid) for n in places]


def answers(monkeypatch: pytest.MonkeyPatch, topology: Topology) -> StandIn:
    nvml = StandIn(topology)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    return nvml


# -- links from NVML -----------------------------------------------------------------------------------------


def test_the_links_of_a_summit_node(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = answers(monkeypatch, SUMMIT)
    links = device_links(devices(SUMMIT, range(6)), 1, Communicator())
    assert links.distance is not None
    assert [list(row) for row in links.distance] == distance_between(bandwidths(SUMMIT))
    assert links.reason == "links as NVML reports them, driver 550.54.15"
    assert nvml.running == 0


def test_slots_follow_the_devices_of_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots follow the devices of the ranks: 4 and 0 on the first, 1 on the second; two slots per device."""
    answers(monkeypatch, SUMMIT)
    names = [[SUMMIT.gpus[4].uuid, SUMMIT.gpus[0].uuid], [SUMMIT.gpus[1].uuid]]
    distance = links_between(names, 2, "cuda").distance
    assert distance is not None
    at = [4, 4, 0, 0, 1, 1]
    rates = bandwidths(replaced(SUMMIT, (4, 0, 1)))
    order = {4: 0, 0: 1, 1: 2}
    for a in range(6):
        for b in range(6):
            expected = 0.0 if at[a] == at[b] else 1 / rates[order[at[a]]][order[at[b]]]
            assert distance[a][b] == expected


def replaced(topology: Topology, places: Sequence[int]) -> Topology:
    """Return the report of NVML for the given GPUs only."""
    ancestors = tuple(tuple(topology.ancestors[a][b] for b in places) for a in places)
    return Topology(topology.driver, tuple(topology.gpus[n] for n in places), ancestors)


def test_trivial_placements_have_no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, DGX_H100)
    assert device_links(devices(DGX_H100, range(8)), 1, Communicator()) == DeviceLinks(
        None, "all links are equal"
    )
    assert device_links(devices(DGX_H100, [3]), 4, Communicator()).reason == "a node has one device"
    assert (
        "OpenCL does not report"
        in device_links(devices(DGX_H100, [0, 1], "opencl"), 1, Communicator()).reason
    )
    # subdomains that share a device have no link between them, although all other links are equal
    assert device_links(devices(DGX_H100, [0, 1]), 2, Communicator()).distance is not None


def test_an_unknown_topology_keeps_the_order_and_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    reason = "all links count as equal: the Python package nvidia-ml-py is not installed"
    assert device_links(devices(SUMMIT, range(6)), 1, Communicator()) == DeviceLinks(None, reason)


def test_nvml_is_not_used_for_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "read_topology", lambda identities: pytest.fail("NVML was asked"))
    device_links(devices(SUMMIT, [0]), 1, Communicator())
    device_links(devices(SUMMIT, [0, 1], "opencl"), 1, Communicator())


def test_ranks_on_one_device_have_distance_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, DGX_1)
    names = [gpu.uuid for gpu in DGX_1.gpus[:2]]
    shared = links_between([names[:1], names[:1], names[1:], names[1:]], 1, "cuda").distance
    assert shared is not None
    assert [len(row) for row in shared] == [4] * 4
    assert shared[0][1] == 0.0 < shared[0][2]


# -- on several ranks ----------------------------------------------------------------------------------------


@pytest.mark.ranks(2)
def test_ranks_of_a_node_have_the_same_links(monkeypatch: pytest.MonkeyPatch) -> None:
    comm = world()
    nvml = answers(monkeypatch, SUMMIT)
    if comm.rank:  # one rank queries NVML for the whole node
        monkeypatch.setattr(nvml, "nvmlInit", lambda: pytest.fail("NVML was asked twice"))
    links = device_links(devices(SUMMIT, (0, 1, 2) if comm.rank == 0 else (3, 4, 5)), 1, comm)
    assert links.distance is not None
    assert [list(row) for row in links.distance] == distance_between(bandwidths(SUMMIT))
    assert comm.allgather(links) == [links] * 2


@pytest.mark.ranks(2)
def test_different_nodes_keep_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    comm = world()
    split = comm.grouped(1)
    answers(monkeypatch, SUMMIT)
    same = device_links(devices(SUMMIT, (0, 1, 3)), 1, split)
    assert same.distance is not None
    assert comm.allgather(same) == [same] * 2
    differ = device_links(devices(SUMMIT, (0, 1, 3) if comm.rank else (0, 3, 4)), 1, split)
    assert differ == DeviceLinks(None, "nodes differ in their links")


@pytest.mark.ranks(2)
def test_a_topology_error_on_one_rank_is_raised_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(identities: Sequence[str]) -> None:
        raise AttributeError("made up: an NVML that is too old")

    monkeypatch.setattr(topology, "read_topology", fail)
    with pytest.raises((AttributeError, hc.RunError), match=r"too old|read the links between devices"):
        device_links(devices(SUMMIT, range(2)), 1, world())


# -- in runs -------------------------------------------------------------------------------------------------


def run(device: str, **execution: Any) -> tuple[str, Any]:
    grid = hc.Grid((16, 12), periodic=True)
    T = grid.field("T")

    def heat(T: Any, kappa: Any) -> Any:
        return {T: kappa * hc.laplacian(T)}

    sim = hc.Simulation(
        grid,
        heat,
        parameters={"kappa": 1.0},
        scheme=hc.Euler(),
        dt=1e-4,
        device=device,
        decomposition=execution.pop("decomposition", "optimal"),
        **execution,
    )
    sim[T] = lambda x, y: np.sin(6 * x) * y
    sim.run(steps=5)
    return sim.checksum(T), sim.domain.transfers.layout


@pytest.mark.ranks(1, 2, long=(1,))
def test_placement_by_links_does_not_change_bits(opencl: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Subdomains with large halos are placed on close slots, and results do not depend on the placement.

    Slots 0 and 2 are close, and slots 1 and 3. The first and second quarter of the grid exchange most.
    """
    numbers = ",".join(str(device.index) for device in opencl[:2])
    close, distant = 1e-11, 1e-9
    distance = tuple(
        tuple(0.0 if a == b else close if (a - b) % 2 == 0 else distant for b in range(4)) for a in range(4)
    )
    expected, _ = run("cpu")
    in_order, layout = run(f"opencl:{numbers}", subdomains_per_rank=2, decomposition=(2, 2))
    assert layout.placement == "trivial"
    monkeypatch.setattr(domain, "device_links", lambda *arguments: DeviceLinks(distance, "made up"))
    checksum, layout = run(f"opencl:{numbers}", subdomains_per_rank=2, decomposition=(2, 2))
    assert layout.placement == "aware"
    assert layout.slots != (0, 1, 2, 3)
    assert sorted(layout.slots) == [0, 1, 2, 3]
    assert in_order == checksum == expected
    for placement in ("trivial", "random"):
        options = {"subdomains_per_rank": 2, "decomposition": (2, 2), "placement": placement}
        checksum, layout = run(f"opencl:{numbers}", **options)
        assert (layout.placement, checksum) == (placement, expected)
        assert (layout.slots == (0, 1, 2, 3)) == (placement == "trivial")
    per_rank = 4 // world().size
    checksum, layout = run("cpu", subdomains_per_rank=per_rank, decomposition=(2, 2), placement="random")
    assert (layout.placement, checksum) == ("random", expected)
    assert layout.slots not in ((), (0, 1, 2, 3))


# -- explanation of the placement ----------------------------------------------------------------------------


def test_explain_shows_the_placement_with_its_reason(
    opencl: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explanation names the slots of two devices with known links, each shared by two subdomains."""
    choice = "opencl:" + ",".join(str(device.index) for device in opencl[:2])
    grid = hc.Grid((16, 64), periodic=True)
    grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-5)
    in_order = hc.explain(sim, device=choice, decomposition=(2, 2), subdomains_per_rank=2)
    text = " ".join(str(in_order).split())
    assert "are on its devices in order (OpenCL does not report links between devices)." in text
    assert in_order.as_dict()["placement"]["link_time"] is None
    # subdomains 0 and 2, and 1 and 3, share the long side; the default order separates them
    driven = [[gpu.uuid for gpu in SUMMIT.gpus[:2]]]
    answers(monkeypatch, SUMMIT)
    linked = links_between(driven, 2, "cuda")
    placed = hc.explain(sim, device=choice, decomposition=(2, 2), subdomains_per_rank=2, links=linked)
    placement = placed.as_dict()["placement"]
    assert placement["strategy"] == "aware"
    assert placement["why"] == "links as NVML reports them, driver 550.54.15"
    assert 0 < placement["link_time"] < 1
    assert f"slots {', '.join(map(str, placement['slots']))} of its devices (links as NVML" in str(placed)


def test_links_of_another_machine_are_unknown() -> None:
    from halocline.explanation.device import planned_links

    reason = planned_links("cuda", (("cuda:97",), ("cuda:98",)), 1).reason
    assert reason == "the links are unknown, because this machine does not have all of the devices"
