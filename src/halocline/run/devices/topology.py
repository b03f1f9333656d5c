"""How the devices of a node are linked, as far as that decides which subdomain lies on which."""

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

# What two GPUs have in common on the way through PCIe, nearest first: NVML's levels 0, 10, ... 50
LEVELS = ("board", "switch", "switches", "bridge", "node", "system")
SWITCH, SWITCHES, NODE, SYSTEM = (LEVELS.index(name) for name in ("switch", "switches", "node", "system"))

# Bytes a second of an NVLink in one direction, by the least compute capability that has it. From NVIDIA's
# data sheets, which give both directions of all links of a GPU: P100 160 GB/s of 4, V100 300 of 6, A100 600
# of 12, RTX A6000 112.5 of 4, H100 900 of 18, B200 1800 of 18. The version that NVML gives is no help: it
# is 5 for an A100 (hwloc, issue 658).
NVLINK = {(6, 0): 20e9, (7, 0): 25e9, (8, 0): 25e9, (8, 6): 14.0625e9, (9, 0): 25e9, (10, 0): 50e9}

# Bytes a second of a PCIe lane in one direction, by generation: transfers a second and their coding (8 of 10
# bits, 128 of 130, from 6 on 242 of 256 bytes), as in PCI-SIG's base specifications.
LANE = {
    1: 2.5e9 / 8 * 8 / 10,
    2: 5e9 / 8 * 8 / 10,
    3: 8e9 / 8 * 128 / 130,
    4: 16e9 / 8 * 128 / 130,
    5: 32e9 / 8 * 128 / 130,
    6: 64e9 / 8 * 242 / 256,
}
PCIE = (3, 16)  # generation and lanes, where NVML does not say

# Bytes a second from one processor to another in one direction, all GPUs together, which NVML does not
# report: between Power9, which NVLink joins with GPUs, 4 bytes of 16 GT/s (X-Bus; Vazhkudai et al., SC 2018);
# else a round figure below two UPI links of 10.4 GT/s and 2 bytes, which are 42 GB/s.
X_BUS, SOCKETS = 64e9, 32e9


@dataclass(frozen=True)
class Gpu:
    """One GPU, as NVML describes it.

    Attributes
    ----------
    uuid, name : str
    address : str
        On PCIe: domain, bus and device, in hexadecimal.
    capability : (int, int)
        Compute capability.
    pcie : (int, int) or None
        Generation and lanes of its PCIe link at most; None where NVML does not say.
    nvlinks : mapping of str to int
        How many active NVLinks lead where: to the address of a GPU, to "switch" or to "processor".
    """

    uuid: str
    name: str
    address: str
    capability: tuple[int, int]
    pcie: tuple[int, int] | None
    nvlinks: Mapping[str, int]


@dataclass(frozen=True)
class Topology:
    """The GPUs of a node and how PCIe joins them.

    Attributes
    ----------
    driver : str
        Its version.
    gpus : tuple of Gpu
    ancestors : matrix of str
        For each pair what they have in common, of LEVELS: a board, a PCIe switch, several of them, a host
        bridge, a memory (NUMA) node, nothing but the system.
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
        Bytes a second in one direction where all GPUs send at once.
    kind : str
        In words.
    """

    bandwidth: float
    kind: str


# -- bandwidths ----------------------------------------------------------------------------------------------


def link(topology: Topology, a: int, b: int) -> Link:
    """Return the link between the GPUs at the places a and b.

    It consists of NVLinks from one to the other, else of their NVLinks to switches, else of the way through
    the host.
    """
    one, other = topology.gpus[a], topology.gpus[b]
    rate = min(_nvlink(one), _nvlink(other))
    if count := one.nvlinks.get(other.address, 0):
        return Link(count * rate, f"{counted(count, 'NVLink')} between them")
    if count := min(one.nvlinks.get("switch", 0), other.nvlinks.get("switch", 0)):
        return Link(count * rate, f"{counted(count, 'NVLink')} to switches")
    level = topology.ancestors[a][b]
    rates = []
    for gpu, place in ((one, a), (other, b)):
        if count := gpu.nvlinks.get("processor", 0):
            rates.append(count * _nvlink(gpu))
        else:
            # what lies above a switch is shared by all below it
            above = [at for at in (SWITCH, SWITCHES) if at < LEVELS.index(level)]
            sharing = max((_near(topology, place, at) for at in above), default=1)
            rates.append(_pcie(gpu) / sharing)
        if LEVELS.index(level) == SYSTEM:
            between = X_BUS if gpu.nvlinks.get("processor", 0) else SOCKETS
            rates.append(between / _near(topology, place, NODE))
    both = all("processor" in gpu.nvlinks for gpu in (one, other))
    way = {
        "board": "on one board",
        "switch": "through one switch",
        "switches": "through several switches",
        "bridge": "through the host bridge",
        "node": "through the processor",
        "system": "from one processor to another",
    }[level]
    return Link(min(rates), f"{'NVLink to processors' if both else 'PCIe'}, {way}")


def bandwidths(topology: Topology) -> tuple[tuple[float, ...], ...]:
    """Bytes a second from each GPU to each, as `halocline.plan.devices.distance_between` takes them; within
    one, infinite: no link is in the way."""
    places = range(len(topology.gpus))
    return tuple(
        tuple(float("inf") if a == b else link(topology, a, b).bandwidth for b in places) for a in places
    )


def _nvlink(gpu: Gpu) -> float:
    return NVLINK[max((known for known in NVLINK if known <= gpu.capability), default=min(NVLINK))]


def _pcie(gpu: Gpu) -> float:
    generation, lanes = gpu.pcie or PCIE
    return LANE[min(max(generation, min(LANE)), max(LANE))] * lanes


def _near(topology: Topology, place: int, level: int) -> int:
    """Return the number of GPUs below the level that this one is below, itself included."""
    others = (name for at, name in enumerate(topology.ancestors[place]) if at != place)
    return 1 + sum(LEVELS.index(name) <= level for name in others)


# -- reading -------------------------------------------------------------------------------------------------


def read_topology(identities: Sequence[str] | None = None, nvml: Any = None) -> tuple[Topology | None, str]:
    """Return the GPUs of this node, as NVML describes them.

    Parameters
    ----------
    identities : sequence of str, optional
        UUIDs of the GPUs, in this order; all of them by default.
    nvml : module, optional
        What answers in the place of the module `pynvml`.

    Returns
    -------
    topology : Topology or None
    why : str
        Why there is none, and after a semicolon what to do.
    """
    try:
        with nvml_running(nvml) as running:
            return _read(running, identities)
    except RunError as error:
        return None, str(error)


@contextlib.contextmanager
def nvml_running(nvml: Any = None) -> Iterator[Any]:
    """Yield NVML, which is initialised during the block.

    Parameters
    ----------
    nvml : module, optional
        Replacement for the module `pynvml`.

    Raises
    ------
    RunError
        NVML is not installed, does not start, or fails in the block.
    """
    if nvml is None:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            raise RunError(
                "the Python package nvidia-ml-py is not installed; pip install nvidia-ml-py"
            ) from None
    state, advice = "does not start", "install NVIDIA's driver where there is a GPU"
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
        handles[_bare(_text(nvml.nvmlDeviceGetUUID(handle)))] = handle
    wanted = list(handles) if identities is None else [_bare(identity) for identity in identities]
    for identity, bare in zip(identities or (), wanted, strict=False):
        if bare not in handles:
            return None, f"NVML knows no GPU {identity}; parts of a GPU (MIG) have no links"
    chosen = [handles[bare] for bare in wanted]
    addresses = {_address(nvml.nvmlDeviceGetPciInfo(handle)) for handle in handles.values()}
    return Topology(
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        gpus=tuple(_gpu(nvml, handle, addresses) for handle in chosen),
        ancestors=tuple(tuple(_ancestor(nvml, a, b) for b in chosen) for a in chosen),
    ), ""


def _gpu(nvml: Any, handle: Any, addresses: set[str]) -> Gpu:
    generation = _answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    lanes = _answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
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
    """Yield the far end of each active NVLink of a GPU."""
    for number in range(nvml.NVML_NVLINK_MAX_LINKS):
        if not _answer(nvml, nvml.nvmlDeviceGetNvLinkState, handle, number):
            continue
        kind = _answer(nvml, nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, number)
        if kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield "switch"
        elif kind == nvml.NVML_NVLINK_DEVICE_TYPE_IBMNPU:
            yield "processor"
        else:
            info = _answer(nvml, nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, number)
            address = _address(info) if info is not None else ""
            if kind == nvml.NVML_NVLINK_DEVICE_TYPE_GPU or address in addresses:
                yield address or "unknown"
            else:
                yield "switch"  # virtual machines do not see what it is


def _ancestor(nvml: Any, a: Any, b: Any) -> str:
    if a is b:
        return LEVELS[0]
    level = _answer(nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, a, b)
    return LEVELS[SYSTEM if level is None else min(int(level) // 10, SYSTEM)]


def _answer(nvml: Any, ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer of NVML, or None where it has none for that GPU."""
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None


def _address(info: Any) -> str:
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}"


def _text(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else given


def _bare(uuid: str) -> str:
    """A UUID without what drivers write around it: "GPU-" and dashes."""
    return re.sub(r"[^0-9a-f]", "", uuid.lower())


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
    found = comm.allgather_of_node(found)[0]
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
    names = [identity for own in driven for identity in own]
    identities = tuple(dict.fromkeys(names))
    if len(identities) == 1:
        return DeviceLinks(None, "a node has one device")
    if interface != "cuda":
        return DeviceLinks(None, "OpenCL does not report how devices are linked")
    topology, why = read_topology(identities)
    if topology is None:
        return DeviceLinks(None, f"all links count as equal: {why.partition('; ')[0]}")
    slots = [identities.index(name) for name in names for _ in range(each)]
    distance = tuple(map(tuple, distance_between(bandwidths(topology), slots)))
    if len({rate for a, row in enumerate(distance) for b, rate in enumerate(row) if a != b}) == 1:
        return DeviceLinks(None, "all links are equal")
    return DeviceLinks(distance, f"links as NVML reports them, driver {topology.driver}")
