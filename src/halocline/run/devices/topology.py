"""Links between the devices of a node, for the placement of subdomains on devices."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from typing import Any

from halocline.errors import RunError
from halocline.plan.devices import distance_between
from halocline.run.ranks.communicator import Communicator
from halocline.words import counted

# Lowest common ancestor of two GPUs in the PCIe tree, nearest first. NVML numbers these levels 0, 10, ... 50.
LEVELS = ("board", "switch", "switches", "bridge", "node", "system")
SWITCH, SWITCHES, NODE, SYSTEM = (LEVELS.index(name) for name in ("switch", "switches", "node", "system"))

# Bandwidth of an NVLink in one direction in bytes per second, by the minimum compute capability. The data
# sheets of NVIDIA give the sum over both directions and all links of a GPU, in GB/s: P100 160 (4 links), V100
# 300 (6), A100 600 (12), RTX A6000 112.5 (4), H100 900 (18), B200 1800 (18). NVML also reports a
# version of NVLink, but this number is unsuitable as a key: it is 5 for an A100 (hwloc, issue 658).
NVLINK = {(6, 0): 20e9, (7, 0): 25e9, (8, 0): 25e9, (8, 6): 14.0625e9, (9, 0): 25e9, (10, 0): 50e9}

# Bandwidth of a PCIe lane in one direction in bytes per second, by generation: transfer rate times coding
# efficiency, from the base specifications of PCI-SIG. Generations 1 and 2 transfer 8 data
# bits in 10 bits, and generations 3 to 5 transfer 128 data bits in 130 bits. Later generations transfer 242
# data bytes in 256 bytes.
LANE = {
    1: 2.5e9 / 8 * 8 / 10,
    2: 5e9 / 8 * 8 / 10,
    3: 8e9 / 8 * 128 / 130,
    4: 16e9 / 8 * 128 / 130,
    5: 32e9 / 8 * 128 / 130,
    6: 64e9 / 8 * 242 / 256,
}
PCIE = (3, 16)  # default generation and number of lanes, if NVML does not report them

# Bandwidth between two processors in one direction in bytes per second, shared by all GPUs of a processor.
# NVML does not report this bandwidth. Power9 processors, which NVLink connects to GPUs, have an X-Bus of 4
# bytes at 16 GT/s (Vazhkudai et al., SC 2018). The value for other processors is a round number below the
# bandwidth of two UPI links of 2 bytes at 10.4 GT/s (42 GB/s).
X_BUS, SOCKETS = 64e9, 32e9


@dataclass(frozen=True)
class Gpu:
    """Properties of one GPU, read from NVML.

    Attributes
    ----------
    uuid : str
        UUID of the GPU.
    name : str
        Name of the model.
    address : str
        PCIe address: domain, bus and device, in hexadecimal.
    capability : (int, int)
        Compute capability.
    pcie : (int, int) or None
        Maximum generation and number of lanes of the PCIe link; None if NVML does not report them.
    nvlinks : mapping of str to int
        Number of active NVLinks by their remote end: the address of a GPU, "switch" or "processor".
    """

    uuid: str
    name: str
    address: str
    capability: tuple[int, int]
    pcie: tuple[int, int] | None
    nvlinks: Mapping[str, int]


@dataclass(frozen=True)
class Topology:
    """GPUs of a node and their connections by PCIe.

    Attributes
    ----------
    driver : str
        Version of the driver.
    gpus : tuple of Gpu
        GPUs, in the order of the rows of `ancestors`.
    ancestors : matrix of str
        Lowest common ancestor of each pair of GPUs, one of LEVELS: a board, one PCIe switch, several PCIe
        switches, a host bridge, a NUMA node, or only the system.
    """

    driver: str
    gpus: tuple[Gpu, ...]
    ancestors: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Link:
    """Link between two GPUs.

    Attributes
    ----------
    bandwidth : float
        Bandwidth in one direction in bytes per second, if all GPUs send at the same time.
    kind : str
        Description of the path between the GPUs.
    """

    bandwidth: float
    kind: str


# -- bandwidths ----------------------------------------------------------------------------------------------


def link(topology: Topology, a: int, b: int) -> Link:
    """Return the link between the GPUs with the indices a and b.

    NVLinks between the two GPUs have priority over NVLinks to switches. If the GPUs have neither, the link is
    the path through the host.
    """
    gpu_a, gpu_b = topology.gpus[a], topology.gpus[b]
    rate = min(_nvlink(gpu_a), _nvlink(gpu_b))
    if count := gpu_a.nvlinks.get(gpu_b.address, 0):
        return Link(count * rate, f"{counted(count, 'NVLink')} between them")
    if count := min(gpu_a.nvlinks.get("switch", 0), gpu_b.nvlinks.get("switch", 0)):
        return Link(count * rate, f"{counted(count, 'NVLink')} to switches")
    level = topology.ancestors[a][b]
    rates = []
    for gpu, index in ((gpu_a, a), (gpu_b, b)):
        if count := gpu.nvlinks.get("processor", 0):
            rates.append(count * _nvlink(gpu))
        else:
            # All GPUs below a switch share the link from this switch to the host.
            levels = [ancestor for ancestor in (SWITCH, SWITCHES) if ancestor < LEVELS.index(level)]
            sharers = max((_gpus_below(topology, index, ancestor) for ancestor in levels), default=1)
            rates.append(_pcie(gpu) / sharers)
        if LEVELS.index(level) == SYSTEM:
            between = X_BUS if gpu.nvlinks.get("processor", 0) else SOCKETS
            rates.append(between / _gpus_below(topology, index, NODE))
    uses_nvlink = all("processor" in gpu.nvlinks for gpu in (gpu_a, gpu_b))
    path = {
        "board": "on one board",
        "switch": "through one switch",
        "switches": "through several switches",
        "bridge": "through the host bridge",
        "node": "through the processor",
        "system": "from one processor to another",
    }[level]
    return Link(min(rates), f"{'NVLink to processors' if uses_nvlink else 'PCIe'}, {path}")


def bandwidths(topology: Topology) -> tuple[tuple[float, ...], ...]:
    """Return the bandwidths between all pairs of GPUs in bytes per second.

    The bandwidth within one GPU is infinite. The result is the input of
    `halocline.plan.devices.distance_between`.
    """
    places = range(len(topology.gpus))
    return tuple(
        tuple(float("inf") if a == b else link(topology, a, b).bandwidth for b in places) for a in places
    )


def _nvlink(gpu: Gpu) -> float:
    return NVLINK[max((known for known in NVLINK if known <= gpu.capability), default=min(NVLINK))]


def _pcie(gpu: Gpu) -> float:
    generation, lanes = gpu.pcie or PCIE
    return LANE[min(max(generation, min(LANE)), max(LANE))] * lanes


def _gpus_below(topology: Topology, place: int, level: int) -> int:
    """Return the number of GPUs that share the PCIe ancestor of one GPU at a level, this GPU included.

    `place` is the index of this GPU.
    """
    other_levels = (name for index, name in enumerate(topology.ancestors[place]) if index != place)
    return 1 + sum(LEVELS.index(name) <= level for name in other_levels)


# -- reading -------------------------------------------------------------------------------------------------


def read_topology(identities: Sequence[str] | None = None, nvml: Any = None) -> tuple[Topology | None, str]:
    """Return the GPUs of this node from NVML.

    Parameters
    ----------
    identities : sequence of str, optional
        UUIDs of the GPUs, in order. Default: all GPUs.
    nvml : module, optional
        Replacement for the module `pynvml`.

    Returns
    -------
    topology : Topology or None
        Topology, or None if it is unavailable.
    why : str
        Reason why the topology is unavailable, a semicolon, and advice. It is "" if the topology is
        available.
    """
    try:
        with nvml_running(nvml) as library:
            return _read(library, identities)
    except RunError as error:
        return None, str(error)


@contextlib.contextmanager
def nvml_running(nvml: Any = None) -> Iterator[Any]:
    """Yield the NVML module, initialised for the duration of the with block.

    Parameters
    ----------
    nvml : module, optional
        Replacement for the module `pynvml`.

    Raises
    ------
    RunError
        NVML is not installed, does not start, or fails inside the block.
    """
    if nvml is None:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            raise RunError(
                "the Python package nvidia-ml-py is not installed; pip install nvidia-ml-py"
            ) from None
    state, advice = "does not start", "install the NVIDIA driver on a machine with a GPU"
    try:
        nvml.nvmlInit()
        state, advice = "fails", "see nvidia-smi"
        try:
            yield nvml
        finally:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise RunError(f"NVML {state} ({str(error) or type(error).__name__}); {advice}") from None


def _read(nvml: Any, identities: Sequence[str] | None) -> tuple[Topology | None, str]:
    handles = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        handles[_hex_digits(_text(nvml.nvmlDeviceGetUUID(handle)))] = handle
    requested = list(handles) if identities is None else [_hex_digits(identity) for identity in identities]
    for identity, bare in zip(identities or (), requested, strict=False):
        if bare not in handles:
            return None, f"NVML does not report the GPU {identity}; parts of a GPU (MIG) have no links"
    selected = [handles[bare] for bare in requested]
    addresses = {_address(nvml.nvmlDeviceGetPciInfo(handle)) for handle in handles.values()}
    return Topology(
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        gpus=tuple(_gpu(nvml, handle, addresses) for handle in selected),
        ancestors=tuple(tuple(_ancestor(nvml, a, b) for b in selected) for a in selected),
    ), ""


def _gpu(nvml: Any, handle: Any, addresses: set[str]) -> Gpu:
    generation = _query(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    lanes = _query(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        address=_address(nvml.nvmlDeviceGetPciInfo(handle)),
        capability=(int(major), int(minor)),
        pcie=(int(generation), int(lanes)) if generation and lanes else None,
        nvlinks=dict(Counter(_ends(nvml, handle, addresses))),
    )


def _ends(nvml: Any, handle: Any, addresses: set[str]) -> Iterator[str]:
    """Yield the remote end of each active NVLink of a GPU."""
    for number in range(nvml.NVML_NVLINK_MAX_LINKS):
        if not _query(nvml, nvml.nvmlDeviceGetNvLinkState, handle, number):
            continue
        kind = _query(nvml, nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, number)
        if kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield "switch"
        elif kind == nvml.NVML_NVLINK_DEVICE_TYPE_IBMNPU:
            yield "processor"
        else:
            info = _query(nvml, nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, number)
            address = _address(info) if info is not None else ""
            if kind == nvml.NVML_NVLINK_DEVICE_TYPE_GPU or address in addresses:
                yield address or "unknown"
            else:
                yield "switch"  # in virtual machines NVML does not report the type


def _ancestor(nvml: Any, a: Any, b: Any) -> str:
    if a is b:
        return LEVELS[0]
    level = _query(nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, a, b)
    return LEVELS[SYSTEM if level is None else min(int(level) // 10, SYSTEM)]


def _query(nvml: Any, query: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer of NVML, or None if the query fails for this GPU."""
    try:
        return query(*arguments)
    except nvml.NVMLError:
        return None


def _address(info: Any) -> str:
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _hex_digits(uuid: str) -> str:
    """Return the hexadecimal digits of a UUID, without "GPU-" and dashes."""
    return re.sub(r"[^0-9a-f]", "", uuid.lower())


@dataclass(frozen=True)
class DeviceLinks:
    """Links between the slots of a node. A slot is the position of one subdomain on a device.

    Attributes
    ----------
    distance : tuple of tuple of float, or None
        Seconds per byte from slot to slot, as an input of `halocline.plan.lay_out`. None means that
        subdomains are assigned to the slots in order.
    reason : str
        Source of the distance, or the reason why `distance` is None; "" on a rank without devices.
    """

    distance: tuple[tuple[float, ...], ...] | None = None
    reason: str = ""


def device_links(devices: Sequence[Any], subdomains_per_device: int, comm: Communicator) -> DeviceLinks:
    """Return the links between the devices of the ranks of a node; collective.

    Parameters
    ----------
    devices : sequence of native Device
        Devices of this rank.
    subdomains_per_device : int
        Number of subdomains per device.
    comm : Communicator
        Communicator of all ranks.

    Returns
    -------
    DeviceLinks
        Links, identical on all ranks, because a layout uses the same placement on all nodes. The distance is
        None if the links of the nodes differ.
    """
    devices_by_rank = comm.allgather_of_node([device.identity for device in devices])
    links = DeviceLinks()
    # Only one process per node queries NVML, because the visible devices of processes may differ.
    with comm.agreement("read the links between devices"):
        if comm.node is None or comm.node.rank == 0:
            links = links_between(devices_by_rank, subdomains_per_device, devices[0].interface)
    links = comm.allgather_of_node(links)[0]
    links_by_rank = comm.allgather((blake2b(repr(links.distance).encode()).digest(), links.reason))
    if any(digest != links_by_rank[0][0] for digest, _ in links_by_rank):
        return DeviceLinks(None, "nodes differ in their links")
    return DeviceLinks(links.distance, links_by_rank[0][1])


def links_between(
    devices_by_rank: Sequence[Sequence[str]], subdomains_per_device: int, interface: str
) -> DeviceLinks:
    """Return the links between the devices of the ranks of a node.

    Parameters
    ----------
    devices_by_rank : sequence of sequence of str
        Identities of the devices of each rank.
    subdomains_per_device : int
        Number of subdomains per device.
    interface : {"cuda", "opencl"}
        Interface of the devices.
    """
    names = [identity for rank_devices in devices_by_rank for identity in rank_devices]
    identities = tuple(dict.fromkeys(names))
    if len(identities) == 1:
        return DeviceLinks(None, "a node has one device")
    if interface != "cuda":
        return DeviceLinks(None, "OpenCL does not report links between devices")
    topology, reason = read_topology(identities)
    if topology is None:
        return DeviceLinks(None, f"all links count as equal: {reason.partition('; ')[0]}")
    slots = [identities.index(name) for name in names for _ in range(subdomains_per_device)]
    distance = tuple(map(tuple, distance_between(bandwidths(topology), slots)))
    if len({rate for a, row in enumerate(distance) for b, rate in enumerate(row) if a != b}) == 1:
        return DeviceLinks(None, "all links are equal")
    return DeviceLinks(distance, f"links as NVML reports them, driver {topology.driver}")
