"""What is said of a program on one rank of many: its steps, what is exchanged, and the bound of a pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from halocline.compile.footprint import Direction
from halocline.compile.ir.kernel import Kernel
from halocline.compile.schedule import Schedule
from halocline.explanation.device import DevicePlan
from halocline.explanation.steps import Step, in_order, side
from halocline.plan.decompose import Decomposition
from halocline.plan.layout import link_time
from halocline.plan.rank import RankPlan
from halocline.plan.traffic import Traffic
from halocline.run.devices.topology import DeviceLinks
from halocline.run.host.machine import exceeds_cache
from halocline.run.host.process import cores
from halocline.run.measurements.bandwidth import device_bandwidth, triad_bandwidth
from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator

LATENCY = 2e-6  # seconds
# By transfer method, how often each byte crosses memory (read and written: copied; packed and unpacked), and
# how many latencies pass: what is fetched waits for a signal, a request and the answer.
CROSSINGS = {"self": 2, "peer": 2, "colocated": 2, "rma": 4, "mpi": 4}
LATENCIES = {"self": 0, "peer": 0, "colocated": 1, "rma": 3, "mpi": 1}
TOTALS = ("messages", "bytes_sent", "bytes_not_packed", "reductions")  # of the steps of one pass
# transfer methods that the devices of an interface never have, and why
UNABLE = {
    "opencl": {
        "colocated": "OpenCL processes share no memory of devices",
        "gpu_aware": "MPI libraries cannot read the memory of OpenCL devices",
    }
}


@dataclass(frozen=True)
class Bound:
    """Bound of a pass by memory or arithmetic, and its predicted time.

    Attributes
    ----------
    bandwidth : float
        Bytes a second of one rank, measured here with a += s * b on as many threads, or with copies within
        its devices.
    threads_measured : int
        How many threads were at work at once; 0 for devices.
    flops : float or None
        Operations a second of one rank: multiply-adds of vectors, measured here, of float32 where all arrays
        are, else of float64; None for devices, or where that kernel cannot be compiled.
    seconds_per_pass : float
        Time of the largest subdomain, without messages and reductions: of its bytes, or of its operations
        where these take longer.
    limit : {"memory", "arithmetic"}
        Whichever takes longer.
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
    flops: float | None
    seconds_per_pass: float
    limit: str
    latency: float | None
    predicted: float | None
    exceeds_cache: bool | None


@dataclass(frozen=True)
class Explained:
    """Facts about a program on one rank.

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
    halo : {"read", "faces", "edges", "uniform"}
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
        """Time of messages on the links of a node, over that of subdomains placed in order; None where these
        are in order."""
        return link_time(self.plan.layout, Traffic.of_schedule(self.schedule), self.links.distance)

    @property
    def inner_patches(self) -> int:
        """Patches that wait for no message in any sweep."""
        return sum(
            not any(needs)
            for subdomain in self.plan.subdomains
            for needs in zip(*(sweep.patch_needs for sweep in subdomain.sweeps), strict=True)
        )

    @property
    def routes(self) -> list[dict[str, Any]]:
        """Arrivals of one pass of the loop: what each subdomain gets from each direction, and how.

        Each has the `subdomain`; the `side` that it comes from, "itself" where several sides of a subdomain
        come together; the source, subdomain `peer` on `rank` and `node`; `method` and `why`, see
        `halocline.plan.transfer.Transfers`; and `bytes`.
        """
        layout, transfers = self.plan.layout, self.plan.transfers
        unable = None if self.on is None else UNABLE.get(self.on.interface)
        sizes: Counter[tuple[int, Direction, int]] = Counter()
        for number, peer, direction, size in self._arrivals():
            sizes[number, direction, peer] += size
        return [
            {
                "subdomain": number,
                "side": side(direction) or "itself",
                "peer": peer,
                "rank": layout.home(peer)[0],
                "node": layout.node(layout.home(peer)[0]),
                "method": transfers.method(number, peer),
                "why": transfers.why(number, peer, unable),
                "bytes": size,
            }
            for (number, direction, peer), size in sorted(
                sizes.items(), key=lambda item: (item[0][0], in_order(item[0][1]), item[0][2])
            )
        ]

    def _arrivals(self) -> Iterator[tuple[int, int, Direction, int]]:
        """Yield the subdomain, and the source, its direction and the bytes, of what arrives in one pass."""
        for subdomain in self.plan.subdomains:
            for arrival in subdomain.arrivals(self.schedule.pass_numbers()):
                yield subdomain.number, *arrival

    @property
    def memory(self) -> int:
        """Bytes that the rank takes of the memory where its fields are."""
        return self.plan.memory if self.on is None else self.on.memory

    def bound(self) -> Bound | None:
        """Measure the bandwidth of this machine, and bound the time of a pass; None where this machine lacks
        the devices."""
        plan, on = self.plan, self.on
        cut, ranks = plan.decomposition, plan.layout.ranks
        largest = math.prod(-(-n // parts) for n, parts in zip(cut.shape, cut.parts, strict=True))
        cells = plan.layout.subdomains_per_rank * largest
        if on is not None:
            if not on.present:
                return None
            share = max(device["ranks"] for device in on.devices)
            bandwidth = device_bandwidth(Communicator(), on.present, plan.memory) / share
            seconds = cells * self.bytes_per_cell / bandwidth
            return Bound(bandwidth, 0, None, seconds, "memory", None, None, None)
        active = min(plan.threads * ranks, len(cores()))
        processes = -(-active // plan.threads)
        bandwidth = triad_bandwidth(Communicator(), active, plan.memory * processes) / active * plan.threads
        dtype = self.schedule.dtype_of(*self.schedule.pass_sweeps())
        flops = multiply_add_peak(Communicator(), plan.threads, dtype=dtype)
        memory, arithmetic = self.bytes_per_cell / bandwidth, self.flops_per_cell / (flops or math.inf)
        seconds, limit = cells * max(memory, arithmetic), "memory" if memory >= arithmetic else "arithmetic"
        moved, waits = 0, math.ceil(math.log2(ranks)) * sum(bool(step.reductions) for step in self.loop)
        for number, peer, _, size in self._arrivals():
            method = plan.transfers.method(number, peer)
            moved += CROSSINGS[method] * size
            waits += LATENCIES[method]
        predicted = seconds + LATENCY * waits + moved / bandwidth
        streams = exceeds_cache(plan, processes)
        return Bound(bandwidth, active, flops, seconds, limit, LATENCY, predicted, streams)

    def total(self, name: str) -> int:
        """Return the sum of a number of the steps of one pass of the loop."""
        return sum(getattr(step, name) for step in self.loop)

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data, ready for JSON."""
        on, layout = self.on, self.plan.layout
        return {
            "plan": self.plan.to_dict(),
            "steps": [asdict(step) for step in self.steps],
            "routes": self.routes,
            "pass": {
                "sweeps": self.sweeps_per_pass,
                **{name: self.total(name) for name in TOTALS},
                "flops_per_cell": self.flops_per_cell,
                "bytes_per_cell": self.bytes_per_cell,
            },
            "inner_patches": self.inner_patches,
            "patches_by": self.patches_by,
            "memory_bytes": self.memory,
            "devices": [] if on is None else on.devices,
            "placement": {
                "strategy": layout.placement,
                "slots": list(layout.slots),
                "why": self.links.why,
                "link_time": self.link_time,
            },
            "devices_unknown": "" if on is None else on.unknown,
            "kernels": [] if on is None else on.kernels,
            "strategy": None if on is None else on.strategy,
            "launches": {} if on is None else dict(on.launches),
        }
