"""How the devices of a node are linked, as far as that decides which subdomain lies on which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from halocline.plan.devices import distance_between, slots_of_node
from halocline.run.devices.nvml import bandwidths, read_topology
from halocline.run.ranks.communicator import Communicator


@dataclass(frozen=True)
class DeviceLinks:
    """What is known of the links between the slots of a node.

    Attributes
    ----------
    distance : tuple of tuple of float, or None
        Seconds per byte from slot to slot, as `halocline.plan.lay_out` takes them; None where subdomains had
        better stay in order.
    why : str
        Where it comes from, or why there is none; empty without devices.
    """

    distance: tuple[tuple[float, ...], ...] | None = None
    why: str = ""


def device_links(devices: Sequence[Any], each: int, comm: Communicator) -> DeviceLinks:
    """The links between the devices that the ranks of a node drive; all ranks call this.

    Parameters
    ----------
    devices : sequence of native Device
        That this rank drives.
    each : int
        Subdomains of a device.
    comm : Communicator

    Returns
    -------
    DeviceLinks
        The same on all ranks, since a layout places the subdomains of all nodes alike: no distance where
        nodes differ.
    """
    if not devices:
        return DeviceLinks()
    driven = comm.allgather_of_node([device.identity for device in devices])
    found = DeviceLinks()
    # one process asks for all of the node, which may see other devices than the others do
    with comm.agreement("ask how devices are linked"):
        if comm.node is None or comm.node.rank == 0:
            found = links_between(driven, each, devices[0].interface)
    found = comm.bcast_of_node(found)
    found_by_rank = comm.allgather((blake2b(repr(found.distance).encode()).digest(), found.why))
    if any(digest != found_by_rank[0][0] for digest, _ in found_by_rank):
        return DeviceLinks(None, "nodes differ in their links")
    return DeviceLinks(found.distance, found_by_rank[0][1])


def links_between(driven: Sequence[Sequence[str]], each: int, interface: str) -> DeviceLinks:
    """The links between devices that the ranks of a node drive.

    Parameters
    ----------
    driven : sequence of sequence of str
        The identities of the devices of each rank.
    each : int
        Subdomains of a device.
    interface : {"cuda", "opencl"}
    """
    identities, places = slots_of_node(driven, [range(len(own)) for own in driven])
    if len(identities) == 1:
        return DeviceLinks(None, "a node has one device")
    if interface != "cuda":
        return DeviceLinks(None, "OpenCL does not report how devices are linked")
    topology, why = read_topology(identities)
    if topology is None:
        return DeviceLinks(None, f"all links count as equal: {why.partition('; ')[0]}")
    slots = [place for place in places for _ in range(each)]
    distance = tuple(map(tuple, distance_between(bandwidths(topology), slots)))
    if len({rate for a, row in enumerate(distance) for b, rate in enumerate(row) if a != b}) == 1:
        return DeviceLinks(None, "all links are equal")
    return DeviceLinks(distance, f"links as NVML reports them, driver {topology.driver}")
