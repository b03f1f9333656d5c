"""Nodes with GPUs as NVML describes them, and a stand-in for NVML.

The data are from vendor papers and from `nvidia-smi topo -m`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from halocline.run.devices.topology import LEVELS, Gpu, Topology


def node(
    name: str,
    capability: tuple[int, int],
    addresses: list[str],
    pcie: tuple[int, int] | None,
    nvlinks: Callable[[int], dict[str, int]],
    level: Callable[[int, int], str],
) -> Topology:
    """Return the topology of a node with GPUs of one kind."""
    gpu_range = range(len(addresses))
    gpus = tuple(
        Gpu(
            uuid=f"GPU-{n:08x}-aaaa-bbbb-cccc-0123456789ab",
            name=name,
            address=addresses[n],
            capability=capability,
            pcie=pcie,
            nvlinks=nvlinks(n),
        )
        for n in gpu_range
    )
    ancestors = tuple(tuple("board" if a == b else level(a, b) for b in gpu_range) for a in gpu_range)
    return Topology("550.54.15", gpus, ancestors)


DGX_H100 = node(
    "NVIDIA H100 80GB HBM3",
    (9, 0),
    [f"0000:{bus}:00" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")],
    (5, 16),
    lambda n: {"switch": 18},
    lambda a, b: "node" if a // 4 == b // 4 else "system",
)

SUMMIT_BUSES = ["0004:04:00", "0004:05:00", "0004:06:00", "0035:03:00", "0035:04:00", "0035:05:00"]
SUMMIT = node(
    "Tesla V100-SXM2-16GB",
    (7, 0),
    SUMMIT_BUSES,
    (3, 2),
    lambda n: (
        {bus: 2 for o, bus in enumerate(SUMMIT_BUSES) if o // 3 == n // 3 and o != n} | {"processor": 2}
    ),
    lambda a, b: "node" if a // 3 == b // 3 else "system",
)

# DGX-1: a cube-mesh of single and double links; pairs share a PCIe switch, two switches share a processor
CUBE = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2, (4, 5): 1, (4, 6): 1, (4, 7): 2}
CUBE |= {(5, 6): 2, (5, 7): 1, (6, 7): 2, (0, 4): 2, (1, 5): 2, (2, 6): 1, (3, 7): 1}
DGX_1_BUSES = [f"0000:{bus}:00" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
DGX_1 = node(
    "Tesla V100-SXM2-32GB",
    (7, 0),
    DGX_1_BUSES,
    (3, 16),
    lambda n: {
        DGX_1_BUSES[o]: CUBE[min(n, o), max(n, o)] for o in range(8) if (min(n, o), max(n, o)) in CUBE
    },
    lambda a, b: "switch" if a // 2 == b // 2 else "bridge" if a // 4 == b // 4 else "system",
)

# PCIe box with eight cards: two on each switch, two switches on each processor
PCIE_BOX = node(
    "NVIDIA A40",
    (8, 6),
    [f"0000:{bus:02x}:00" for bus in (0x07, 0x0A, 0x47, 0x4D, 0x87, 0x8D, 0xC7, 0xCA)],
    (4, 16),
    lambda n: {},
    lambda a, b: "switch" if a // 2 == b // 2 else "node" if a // 4 == b // 4 else "system",
)
MACHINES = {"dgx-h100": DGX_H100, "summit": SUMMIT, "dgx-1": DGX_1, "pcie": PCIE_BOX}


class Error(Exception):
    pass


class StandIn:
    """Stand-in for pynvml that answers from a topology: handles, bytes or text, errors."""

    NVMLError = Error
    NVML_NVLINK_MAX_LINKS = 18
    NVML_NVLINK_DEVICE_TYPE_GPU = 0
    NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1
    NVML_NVLINK_DEVICE_TYPE_SWITCH = 2

    def __init__(self, topology: Topology, *, old: bool = False, virtual: bool = False) -> None:
        self.topology = topology
        self.old = old  # returns bytes instead of text
        self.virtual = virtual  # hides the same values as virtual machines
        self.running = 0
        self.handles = [SimpleNamespace(gpu=gpu, place=n) for n, gpu in enumerate(topology.gpus)]

    def text(self, text: str) -> Any:
        assert self.running == 1, "asked before nvmlInit or after nvmlShutdown"
        return text.encode() if self.old else text

    def nvmlInit(self) -> None:
        self.running += 1

    def nvmlShutdown(self) -> None:
        self.running -= 1

    def nvmlSystemGetDriverVersion(self) -> Any:
        return self.text(self.topology.driver)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.handles)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return self.handles[index]

    def nvmlDeviceGetUUID(self, handle: Any) -> Any:
        return self.text(handle.gpu.uuid)

    def nvmlDeviceGetName(self, handle: Any) -> Any:
        return self.text(handle.gpu.name)

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        return self.pci(handle.gpu.address)

    @staticmethod
    def pci(address: str) -> Any:
        domain, bus, device = (int(part, 16) for part in address.split(":"))
        return SimpleNamespace(domain=domain, bus=bus, device=device)

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> tuple[int, int]:
        capability: tuple[int, int] = handle.gpu.capability
        return capability

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: Any) -> int:
        return self.pcie(handle)[0]

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: Any) -> int:
        return self.pcie(handle)[1]

    def pcie(self, handle: Any) -> tuple[int, int]:
        if self.virtual or handle.gpu.pcie is None:
            raise Error("Not Supported")
        link: tuple[int, int] = handle.gpu.pcie
        return link

    def ends(self, device: Any, link: int) -> str:
        links = [end for end, count in device.gpu.nvlinks.items() for _ in range(count)]
        if not links:
            raise Error("Not Supported")
        if link >= len(links):
            raise Error("Invalid Argument")
        return links[link]

    def nvmlDeviceGetNvLinkState(self, device: Any, link: int) -> int:
        self.ends(device, link)
        return 1

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Any, link: int) -> int:
        if self.virtual:
            raise Error("Not Supported")
        return {"switch": 2, "processor": 1}.get(self.ends(handle, link), 0)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: Any, link: int) -> Any:
        end = self.ends(device, link)
        return self.pci("ffff:ff:ff" if end in ("switch", "processor") else end)

    def nvmlDeviceGetTopologyCommonAncestor(self, device1: Any, device2: Any) -> int:
        if self.virtual:
            raise Error("Unknown Error")
        return 10 * LEVELS.index(self.topology.ancestors[device1.place][device2.place])
