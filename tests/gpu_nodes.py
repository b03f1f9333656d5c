"""Nodes with GPUs as NVML would tell of them, from their makers' papers and from `nvidia-smi topo -m`."""

from __future__ import annotations

from collections.abc import Callable

from halocline.run.machine import parse_list
from halocline.run.nvml import Gpu, Topology


def node(
    name: str,
    capability: tuple[int, int],
    addresses: list[str],
    pcie: tuple[int, int] | None,
    nvlinks: Callable[[int], dict[str, int]],
    level: Callable[[int, int], str],
    cpus: Callable[[int], str] = lambda n: "",
) -> Topology:
    every = range(len(addresses))
    gpus = tuple(
        Gpu(
            uuid=f"GPU-{n:08x}-aaaa-bbbb-cccc-0123456789ab",
            name=name,
            address=addresses[n],
            capability=capability,
            pcie=pcie,
            nvlinks=nvlinks(n),
            processors=tuple(sorted(parse_list(cpus(n)))),
        )
        for n in every
    )
    ancestors = tuple(tuple("board" if a == b else level(a, b) for b in every) for a in every)
    return Topology("550.54.15", gpus, ancestors)


DGX_H100 = node(
    "NVIDIA H100 80GB HBM3",
    (9, 0),
    [f"0000:{bus}:00" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")],
    (5, 16),
    lambda n: {"switch": 18},
    lambda a, b: "node" if a // 4 == b // 4 else "system",
    lambda n: "0-55,112-167" if n < 4 else "56-111,168-223",
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
    lambda n: "0-83" if n < 3 else "88-171",
)

# DGX-1: a cube-mesh of single and double links; pairs on a PCIe switch, two switches on a processor
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
    lambda n: "0-19,40-59" if n < 4 else "20-39,60-79",
)

# a box of eight cards: two on each switch, two switches on each processor
PCIE_BOX = node(
    "NVIDIA A40",
    (8, 6),
    [f"0000:{bus:02x}:00" for bus in (0x07, 0x0A, 0x47, 0x4D, 0x87, 0x8D, 0xC7, 0xCA)],
    (4, 16),
    lambda n: {},
    lambda a, b: "switch" if a // 2 == b // 2 else "node" if a // 4 == b // 4 else "system",
)
MACHINES = {"dgx-h100": DGX_H100, "summit": SUMMIT, "dgx-1": DGX_1, "pcie": PCIE_BOX}
