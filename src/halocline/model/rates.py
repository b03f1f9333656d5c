"""Rates of a rank: bytes and operations a second of its sweeps, and of packing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from halocline.compile.schedule import Schedule, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.layout import Layout
from halocline.plan.machine import Machine, Measured


@dataclass(frozen=True)
class Rates:
    """Rates of one rank, and its time to begin a sweep.

    Attributes
    ----------
    bandwidth : float
        Bytes a second that its sweeps move.
    packing : float
        Bytes a second that it packs, unpacks or copies, or that each of its GPUs does.
    begin : float
        Seconds that each sweep takes beside its patches: kernel launches, waking threads.
    per_flop, per_sum : float
        Measured seconds of an operation, and of a summand of a sum over the grid, beside its bytes.
    copying : float, optional
        Bytes a second that it copies out of another rank's memory; those of packing by default.
    hop : float, optional
        Seconds that a reduction takes from one rank of a node to another and back; from links and overhead
        by default.
    flops : float
        Operations of float64 a second, at most; they are done while bytes are moved.
    """

    bandwidth: float
    packing: float
    begin: float = 0.0
    per_flop: float = 0.0
    per_sum: float = 0.0
    copying: float | None = None
    hop: float | None = None
    flops: float = inf

    @classmethod
    def of(
        cls,
        machine: Machine,
        ranks_per_node: int,
        subdomains_per_rank: int = 1,
        memory: float = inf,
        threads: int | None = None,
    ) -> Rates:
        """Return the rates of a rank with `memory` bytes of fields on its node.

        They are measured ones, where the machine file has some; ranks beyond those measured take turns. Else
        a rank has its share of the devices of a node. On processors `threads` of a rank limit the bandwidth,
        the arithmetic and the caches that it has; by default ranks have all cores.
        """
        if machine.measured is not None:
            return cls._measured(machine.measured, ranks_per_node, memory)
        device = machine.device
        if device.kind == "gpu":
            share = min(ranks_per_node * subdomains_per_rank, device.count) / ranks_per_node
            moved = device.bandwidth * share
            return cls(
                moved, device.bandwidth / 2, device.launch, flops=device.flops * device.sustained * share
            )
        # threads have equally much to do, so that those of the fullest processor set the pace
        part = _fullest(machine, ranks_per_node, threads)
        bandwidth, flops = device.bandwidth, device.flops * device.sustained
        cores: float | None = device.cores
        if threads is not None:
            active = part * ranks_per_node * threads
            cores = active if device.cores is None else min(active, device.cores)
            if device.core_bandwidth is not None:
                bandwidth = min(bandwidth, cores * device.core_bandwidth)
            if device.cores is not None:
                flops *= cores / device.cores
        moved = bandwidth
        if cores is not None and device.cache_bandwidth is not None:
            near = min(1.0, device.cache / (part * memory))  # share of the fields that stays in the cache
            moved = 1.0 / (near / max(bandwidth, cores * device.cache_bandwidth) + (1.0 - near) / bandwidth)
        moved /= part * ranks_per_node
        return cls(moved, moved / 2, device.launch, flops=flops / (part * ranks_per_node))

    @classmethod
    def _measured(cls, found: Measured, ranks_per_node: int, memory: float) -> Rates:
        pace = found.pace(ranks_per_node, memory)
        rates = cls(
            *(pace.bandwidth, found.packing, found.begin, pace.per_flop, pace.per_sum),
            *(found.copying, found.hop),
        )
        return rates.slowed(max(1.0, ranks_per_node / pace.ranks))

    def per_cell(self, sweep: Sweep, dtype: str = "float64") -> float:
        """Return the seconds that a sweep takes for a cell: of its bytes, or of its operations where they
        take longer. Vectors have twice as many numbers of float32, and do as many more operations."""
        sums = sum(reduction.kind == "sum" for reduction in sweep.reductions)
        moved = sweep.bytes / self.bandwidth + sweep.flops * self.per_flop + sums * self.per_sum
        return max(moved, sweep.flops * (ITEMSIZE[dtype] / ITEMSIZE["float64"]) / self.flops)

    def slowed(self, factor: float) -> Rates:
        """Return the rates with sweeps that take `factor` times as long."""
        return replace(
            self,
            bandwidth=self.bandwidth / factor,
            per_flop=self.per_flop * factor,
            per_sum=self.per_sum * factor,
            flops=self.flops / factor,
        )


def _fullest(machine: Machine, ranks_per_node: int, threads: int | None) -> float:
    """Return the share of the threads of a node that the fullest processor has.

    Ranks take turns on the processors. The threads of those on one processor fill its cores before they go to
    the next.
    """
    count, cores = machine.device.count, machine.device.cores
    if threads is None or cores is None:
        return 1.0 / count
    fullest = min(-(-ranks_per_node // count) * threads, cores)
    return max(1.0 / count, fullest / (threads * ranks_per_node))


def memory_of_node(schedule: Schedule, layout: Layout) -> float:
    """Bytes of all fields on a node, without halos."""
    of_cell = sum(ITEMSIZE[field.dtype] for field in schedule.fields)
    return of_cell * prod(layout.decomposition.shape) / layout.nodes
