"""What is said of a program on one rank of many: its steps, what is exchanged, and the bound of a pass."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from halocline.compile.chains import Chain
from halocline.compile.footprint import Direction
from halocline.compile.ir.kernel import Kernel
from halocline.compile.schedule import Schedule, StageUse
from halocline.explanation.device import DevicePlan, link_time
from halocline.explanation.sides import in_order, side
from halocline.plan.decompose import Decomposition
from halocline.plan.exchange import Copy
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan
from halocline.run.devices.topology import DeviceLinks
from halocline.run.host.caches import exceeds_cache
from halocline.run.measurements.bandwidth import device_bandwidth, triad_bandwidth
from halocline.run.ranks.communicator import Communicator

LATENCY = 2e-6  # seconds
# By transfer method, how often each byte crosses memory (read and written: copied; packed and unpacked), and
# how many latencies pass: what is fetched waits for a signal, a request and the answer.
CROSSINGS = {"self": 2, "peer": 2, "colocated": 2, "rma": 4, "mpi": 4}
LATENCIES = {"self": 0, "peer": 0, "colocated": 1, "rma": 3, "mpi": 1}
# transfer methods that the devices of an interface never have, and why
UNABLE = {
    "opencl": {
        "colocated": "OpenCL processes share no memory of devices",
        "gpu_aware": "MPI knows nothing of OpenCL devices",
    }
}


@dataclass(frozen=True)
class Halo:
    """One field that a sweep reads beyond its subdomain.

    Attributes
    ----------
    field : str
    width : tuple of (str, int)
        The layers that are read on each side ("x-"), edge or corner ("x-y+").
    travels : tuple of str
        Where messages bring them.
    copied : tuple of str
        Where this rank copies them, from another of its subdomains or around a periodic axis.
    walls : tuple of str
        Where boundary conditions make them.
    why : str
        What holds of the rest, or why they are exchanged.
    """

    field: str
    width: tuple[tuple[str, int], ...]
    travels: tuple[str, ...]
    copied: tuple[str, ...]
    walls: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Step:
    """One operation of the schedule.

    Attributes
    ----------
    kind : {"sweep", "exchange", "scalars", "stop", "loop", "when"}
        An exchange alone stands before a loop whose passes then need not repeat it.
    depth : int
        The number of loops around it.
    statements : tuple of str
        As the user wrote them.
    halos : tuple of Halo
    local : tuple of str
        Fields that a sweep touches at the cell itself only.
    walls : tuple of str
        Fields that boundary conditions continue beyond the walls.
    messages, bytes_sent, bytes_not_packed, bytes_copied : int
        Of this rank, each time; `bytes_not_packed` are those of the bytes sent that no rank packs.
    reductions : int
        Numbers over all cells, summed over all ranks in one message.
    flops, bytes : float
        Per cell.
    share : float
        In which part of the passes of the loop a sweep is expected to run.
    stages : tuple of StageUse
        Intermediates of a sweep in scratch memory.
    chains : tuple of Chain
        Which of them lead farthest from a cell, on each side.
    scratch : int
        Bytes that these take at a time, for the largest patch.
    """

    kind: str
    depth: int
    statements: tuple[str, ...]
    halos: tuple[Halo, ...] = ()
    local: tuple[str, ...] = ()
    walls: tuple[str, ...] = ()
    messages: int = 0
    bytes_sent: int = 0
    bytes_not_packed: int = 0
    bytes_copied: int = 0
    reductions: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    share: float = 1.0
    stages: tuple[StageUse, ...] = ()
    chains: tuple[Chain, ...] = ()
    scratch: int = 0


@dataclass(frozen=True)
class Bound:
    """The least time of a pass where memory is the limit, and the time that is to be expected.

    Attributes
    ----------
    bandwidth : float
        Bytes a second of one rank, measured here with a += s * b on as many threads, or with copies within
        its devices.
    threads_measured : int
        How many threads were at work at once; 0 for devices.
    seconds_per_pass : float
        Of the largest subdomain, without messages and reductions.
    latency : float or None
        Seconds from rank to rank that are taken for granted: those of shared memory and of good networks.
    predicted : float or None
        With them, one after the other: the latency for each message and for each of the log2(ranks) hops of a
        reduction, and the bytes of halos at the bandwidth of memory: copied once, or, by the methods "mpi"
        and "rma", in and out of a buffer on both sides. None for devices, whose links are not known.
    exceeds_cache : bool or None
        Whether kernels for fields that exceed the last-level cache are taken; None for devices.
    """

    bandwidth: float
    threads_measured: int
    seconds_per_pass: float
    latency: float | None
    predicted: float | None
    exceeds_cache: bool | None


@dataclass(frozen=True)
class Route:
    """What one subdomain gets from one direction in one pass of the loop, and how.

    Attributes
    ----------
    subdomain : int
    side : str
        Where it comes from; "itself" where several sides of a subdomain come together.
    peer, rank, node : int
        The subdomain that it comes from, and where that is.
    method, why : str
        See `halocline.plan.transfer.Transfers`.
    bytes : int
    """

    subdomain: int
    side: str
    peer: int
    rank: int
    node: int
    method: str
    why: str
    bytes: int


@dataclass(frozen=True)
class Explained:
    """A program on one rank: everything that `halocline explain` prints.

    Attributes
    ----------
    schedule : Schedule
    plan : RankPlan
    steps : tuple of Step
    alternative : Decomposition or None
        Slabs along one axis, to compare the chosen decomposition with.
    overlap : {"auto", True, False}
        Whether patches that need no message run before all have come.
    patches_by : str
        Where the shape of the patches comes from: "as given", "by cache size", "for a device", or what was
        measured.
    halo : {"read", "uniform"}
        Which halos are exchanged; see `halocline.compile.compiler.compile_program`.
    on : DevicePlan or None
        What the rank does on its devices; None where it computes itself.
    links : DeviceLinks
        Between the devices of a node.
    trail : tuple of (str, Kernel)
        What every pass of the compiler has left; see `halocline.compile.ir.show`.
    """

    schedule: Schedule
    plan: RankPlan
    steps: tuple[Step, ...]
    alternative: Decomposition | None
    overlap: bool | str = "auto"
    patches_by: str = "by cache size"
    halo: str = "read"
    on: DevicePlan | None = None
    links: DeviceLinks = field(default_factory=DeviceLinks)
    trail: tuple[tuple[str, Kernel], ...] = ()

    @property
    def loop(self) -> tuple[Step, ...]:
        """The sweeps and exchanges of one pass of the loops, or all where there is none."""
        steps = [step for step in self.steps if step.kind in ("sweep", "exchange")]
        return tuple(step for step in steps if step.depth) or tuple(steps)

    @property
    def sweeps_per_pass(self) -> int:
        """The number of sweeps in `loop`."""
        return sum(step.kind == "sweep" for step in self.loop)

    @property
    def bytes_per_cell(self) -> float:
        """Of one pass of the loop."""
        return sum(step.bytes * step.share for step in self.loop)

    @property
    def flops_per_cell(self) -> float:
        """Of one pass of the loop."""
        return sum(step.flops * step.share for step in self.loop)

    @property
    def link_time(self) -> float | None:
        """What placement by links is worth; see `halocline.explanation.device.link_time`."""
        return link_time(self.schedule, self.plan.layout, self.links)

    @property
    def inner_patches(self) -> int:
        """Patches that wait for no message in any sweep."""
        return sum(
            not any(needs)
            for own in self.plan.subdomains
            for needs in zip(*(sweep.patch_needs for sweep in own.sweeps), strict=True)
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """What this rank receives and copies in one pass of the loop, by subdomain and side."""
        layout, transfers = self.plan.layout, self.plan.transfers
        unable = None if self.on is None else UNABLE.get(self.on.interface)
        found: dict[tuple[int, int, Direction], int] = {}
        for _, key, size in self._brought():
            found[key] = found.get(key, 0) + size
        return tuple(
            Route(
                own,
                side(direction) if any(direction) else "itself",
                peer,
                layout.home(peer)[0],
                layout.node(layout.home(peer)[0]),
                transfers.method(own, peer),
                transfers.why(own, peer, unable),
                size,
            )
            for (own, peer, direction), size in sorted(
                found.items(), key=lambda item: (item[0][0], in_order(item[0][2]), item[0][1])
            )
        )

    def _brought(self) -> Iterator[tuple[str, tuple[int, int, Direction], int]]:
        """What this rank receives and copies in one pass of the loop: the method, to which subdomain, from
        which and where that lies, and bytes."""
        for own in self.plan.subdomains:
            for sweep in self._in_loop(own):
                for message in sweep.receives:
                    yield message.method, (own.number, message.peer, message.direction), message.bytes
                for copy in sweep.copies:
                    method = self.plan.transfers.method(own.number, copy.subdomain)
                    yield method, (own.number, copy.subdomain, _direction_of(copy, own)), copy.bytes

    def _in_loop(self, own: SubdomainPlan) -> tuple[SweepPlan, ...]:
        """The plans of the sweeps of one pass of the loop."""
        return own.sweeps[self.schedule.pass_numbers()]

    @property
    def memory(self) -> int:
        """Bytes that the rank takes of the memory where its fields are."""
        return self.plan.memory if self.on is None else self.on.memory

    def bound(self) -> Bound | None:
        """Measure the bandwidth of this machine, and bound the time of a pass; None where this machine lacks
        the devices."""
        if self.on is not None:
            return self._bound_on(self.on)
        threads, ranks = self.plan.threads, self.plan.layout.ranks
        active = min(threads * ranks, len(os.sched_getaffinity(0)))
        total = triad_bandwidth(Communicator(), active, self.plan.memory * -(-active // threads))
        rank = total / active * threads
        each = self.plan.layout.subdomains_per_rank
        seconds = each * max_cells(self.plan.decomposition) * self.bytes_per_cell / rank
        hops = math.ceil(math.log2(ranks)) * sum(bool(step.reductions) for step in self.loop)
        moved = sum(CROSSINGS[method] * size for method, _, size in self._brought())
        waits = hops + sum(LATENCIES[method] for method, _, _ in self._brought())
        predicted = seconds + LATENCY * waits + moved / rank
        return Bound(
            rank, active, seconds, LATENCY, predicted, exceeds_cache(self.plan, -(-active // threads))
        )

    def _bound_on(self, on: DevicePlan) -> Bound | None:
        found = on.present
        if not found:
            return None
        share = max(device.ranks for device in on.devices)
        rank = device_bandwidth(Communicator(), found, self.plan.memory) / share
        each = self.plan.layout.subdomains_per_rank
        seconds = each * max_cells(self.plan.decomposition) * self.bytes_per_cell / rank
        return Bound(rank, 0, seconds, None, None, None)

    def as_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "plan": self.plan.to_dict(),
            "steps": [asdict(step) for step in self.steps],
            "routes": [asdict(route) for route in self.routes],
            "pass": {
                "sweeps": self.sweeps_per_pass,
                "messages": sum(step.messages for step in self.loop),
                "bytes_sent": sum(step.bytes_sent for step in self.loop),
                "bytes_not_packed": sum(step.bytes_not_packed for step in self.loop),
                "reductions": sum(step.reductions for step in self.loop),
                "flops_per_cell": self.flops_per_cell,
                "bytes_per_cell": self.bytes_per_cell,
            },
            "inner_patches": self.inner_patches,
            "patches_by": self.patches_by,
            "memory_bytes": self.memory,
            "devices": [] if self.on is None else [asdict(device) for device in self.on.devices],
            "placement": {
                "strategy": self.plan.layout.placement,
                "slots": list(self.plan.layout.slots),
                "why": self.links.why,
                "link_time": self.link_time,
            },
            "devices_unknown": "" if self.on is None else self.on.unknown,
            "kernels": [] if self.on is None else [asdict(kernel) for kernel in self.on.kernels],
            "strategy": None if self.on is None else self.on.strategy,
            "launches": {} if self.on is None else dict(self.on.launches),
        }


def max_cells(decomposition: Decomposition) -> int:
    """Cells of the largest subdomain."""
    cells = 1
    for n, parts in zip(decomposition.shape, decomposition.parts, strict=True):
        cells *= -(-n // parts)
    return cells


def _direction_of(copy: Copy, own: SubdomainPlan) -> Direction:
    """On which side of a subdomain the target of a copy lies."""
    return tuple(
        -1 if lo < 0 else int(hi > n and lo >= n)
        for lo, hi, n in zip(copy.target.lo, copy.target.hi, own.box.shape, strict=True)
    )
