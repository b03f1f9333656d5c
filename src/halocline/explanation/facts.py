"""Facts about a program on one rank: its steps, its exchanges, and the bound of a pass."""

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
# Memory accesses per byte of a halo, by transfer method. Each copy, packing or unpacking has two accesses.
CROSSINGS = {"self": 2, "peer": 2, "colocated": 2, "rma": 4, "mpi": 4}
# Number of latencies per message, by transfer method. With `rma`, a message needs a signal, a request and
# the answer.
LATENCIES = {"self": 0, "peer": 0, "colocated": 1, "rma": 3, "mpi": 1}
TOTALS = ("messages", "bytes_sent", "bytes_not_packed", "reductions")  # totals over the steps of one pass
# transfer methods that are unavailable for an interface of devices, with the reason
UNABLE = {
    "opencl": {
        "colocated": "OpenCL processes cannot share device memory",
        "gpu_aware": "MPI libraries cannot read the memory of OpenCL devices",
    }
}


@dataclass(frozen=True)
class Bound:
    """Bound of a pass by memory or arithmetic, and its predicted time.

    Attributes
    ----------
    bandwidth : float
        Bytes per second of one rank, measured on this machine. The measurement uses a += s * b on all cores
        or on the threads of all ranks, whichever are fewer. For devices, it uses copies within the devices of
        the rank.
    threads_measured : int
        Number of threads that were active at the same time; 0 for devices.
    flops : float or None
        Operations per second of one rank, measured on this machine with multiply-adds of vectors. The type is
        float32 if all arrays have this type, else float64. None for devices, or if the kernel cannot be
        compiled.
    seconds_per_pass : float
        Time of the largest subdomain without messages and reductions: the maximum of the memory time and the
        arithmetic time.
    limit : {"memory", "arithmetic"}
        Resource whose time is longer. This time is `seconds_per_pass`.
    latency : float or None
        Assumed latency of a message in seconds, typical of shared memory and of fast networks.
    predicted : float or None
        Sum of `seconds_per_pass` and the times of messages and reductions, without overlap. Each message and
        each of the log2(ranks) hops of a reduction takes one latency. The memory bandwidth limits the
        transfer of halos. The methods "mpi" and "rma" pack and unpack halos; other methods copy halos once.
        None for devices, because their links are unknown.
    exceeds_cache : bool or None
        True if the fields exceed the last-level cache. The kernels then use prefetches and streaming stores.
        None for devices.
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
        Slabs along one axis, for comparison with the selected decomposition.
    overlap : {"auto", True, False}
        True if patches that need no message are computed while messages are in transit; "auto" if a run
        decides by measurement.
    patches_by : str
        Origin of the patch shape: "as given", "by cache size", "for a device", "for a device, in slabs to
        limit scratch memory", or the result of a measurement.
    halo : {"read", "faces", "edges", "uniform"}
        Exchanged halo segments; see `halocline.compile.compiler.compile_program`.
    on : DevicePlan or None
        Work of the rank on its devices; None on the CPU.
    links : DeviceLinks
        Links between the devices of a node.
    trail : tuple of (str, Kernel)
        Kernels after every pass of the compiler; see `halocline.compile.ir.show`.
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
        """Sweeps and exchanges of one pass of the loops; without loops, all sweeps and exchanges."""
        steps = [step for step in self.steps if step.kind in ("sweep", "exchange")]
        return tuple(step for step in steps if step.depth) or tuple(steps)

    @property
    def sweeps_per_pass(self) -> int:
        """Number of sweeps in `loop`."""
        return sum(step.kind == "sweep" for step in self.loop)

    @property
    def bytes_per_cell(self) -> float:
        """Bytes per cell of one pass of the loop."""
        return sum(step.bytes * step.share for step in self.loop)

    @property
    def flops_per_cell(self) -> float:
        """Operations per cell of one pass of the loop."""
        return sum(step.flops * step.share for step in self.loop)

    @property
    def link_time(self) -> float | None:
        """Message time on the links of a node, divided by the message time of placement in order.

        The value is None if the subdomains are placed in order, or if the links are unknown.
        """
        return link_time(self.plan.layout, Traffic.of_schedule(self.schedule), self.links.distance)

    @property
    def inner_patches(self) -> int:
        """Number of patches that wait for no message in any sweep."""
        return sum(
            not any(needs)
            for subdomain in self.plan.subdomains
            for needs in zip(*(sweep.patch_needs for sweep in subdomain.sweeps), strict=True)
        )

    @property
    def routes(self) -> list[dict[str, Any]]:
        """Halo data that each subdomain receives from each direction in one pass of the loop.

        Each entry has these keys. `subdomain`: receiving subdomain. `side`: direction of the source, or
        "itself" if cells of several sides arrive together. `peer`, `rank` and `node`: source. `method` and
        `why`: see `halocline.plan.transfer.Transfers`. `bytes`: size.
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
                "why": transfers.reason(number, peer, unable),
                "bytes": size,
            }
            for (number, direction, peer), size in sorted(
                sizes.items(), key=lambda item: (item[0][0], in_order(item[0][1]), item[0][2])
            )
        ]

    def _arrivals(self) -> Iterator[tuple[int, int, Direction, int]]:
        """Yield the subdomain, source, direction and bytes of each arrival in one pass."""
        for subdomain in self.plan.subdomains:
            for arrival in subdomain.arrivals(self.schedule.pass_numbers()):
                yield subdomain.number, *arrival

    @property
    def memory(self) -> int:
        """Memory of this rank in bytes: its fields on the CPU, or all of its memory on devices."""
        return self.plan.memory if self.on is None else self.on.memory

    def bound(self) -> Bound | None:
        """Measure the bandwidth of this machine, and return the bound of a pass.

        The result is None if this machine does not have the devices.
        """
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
        volume = 0
        waits = math.ceil(math.log2(ranks)) * sum(bool(step.reductions) for step in self.loop)
        for number, peer, _, size in self._arrivals():
            method = plan.transfers.method(number, peer)
            volume += CROSSINGS[method] * size
            waits += LATENCIES[method]
        predicted = seconds + LATENCY * waits + volume / bandwidth
        streams = exceeds_cache(plan, processes)
        return Bound(bandwidth, active, flops, seconds, limit, LATENCY, predicted, streams)

    def total(self, name: str) -> int:
        """Return the sum of one quantity over the steps of one pass of the loop."""
        return sum(getattr(step, name) for step in self.loop)

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data for JSON."""
        on, layout = self.on, self.plan.layout
        return {
            "plan": self.plan.to_dict(),
            "steps": [_step_record(step) for step in self.steps],
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
                "why": self.links.reason,
                "link_time": self.link_time,
            },
            "devices_unknown": "" if on is None else on.unknown,
            "kernels": [] if on is None else on.kernels,
            "strategy": None if on is None else on.strategy,
            "launches": {} if on is None else dict(on.launches),
        }


def _step_record(step: Step) -> dict[str, Any]:
    """Return a step as plain data for JSON."""
    record = asdict(step)
    record["halos"] = [
        {"why" if key == "reason" else key: value for key, value in halo.items()} for halo in record["halos"]
    ]
    return record
