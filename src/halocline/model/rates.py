"""Rates of a rank: bytes and operations per second in sweeps, and bytes per second in packing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from halocline.compile.schedule import Schedule, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.layout import Layout
from halocline.plan.machine import Machine, Measured


@dataclass(frozen=True)
class Rates:
    """Rates of one rank, and the time that it needs to begin a sweep.

    Attributes
    ----------
    bandwidth : float
        Bytes per second in sweeps.
    packing : float
        Bytes per second in packing, unpacking and copies, for the rank or for each of its GPUs.
    begin : float
        Seconds per sweep in addition to the time of its patches, for kernel launches and for the wake-up of
        threads.
    per_flop, per_sum : float
        Measured seconds per operation, and per summand of a sum over the grid. They are added to the time for
        the bytes.
    copying : float, optional
        Bytes per second in copies from the memory of another rank; `packing` by default.
    hop : float, optional
        Seconds of a reduction for one hop between two ranks of a node and back. The default follows from the
        links and the overhead.
    flops : float
        Maximum number of float64 operations per second. Operations and data movement overlap.
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
        """Return the rates of a rank.

        If the machine file has measured rates, the result is based on them. If a node has more ranks than in
        the measurement, the rates decrease in proportion. Without measured rates, the ranks share the devices
        of a node equally. On CPUs, the number of threads limits the bandwidth, the arithmetic and the caches
        of a rank.

        Parameters
        ----------
        machine : Machine
        ranks_per_node : int
        subdomains_per_rank : int
        memory : float
            Bytes of the fields on a node.
        threads : int, optional
            Number of threads of a rank; by default, the ranks use all cores.
        """
        if machine.measured is not None:
            return cls._measured(machine.measured, ranks_per_node, memory)
        device = machine.device
        if device.kind == "gpu":
            share = min(ranks_per_node * subdomains_per_rank, device.count) / ranks_per_node
            rate = device.bandwidth * share
            return cls(
                rate, device.bandwidth / 2, device.launch, flops=device.flops * device.sustained * share
            )
        # All threads have equal work, so the processor with the most threads determines the time.
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
        rate = bandwidth
        if cores is not None and device.cache_bandwidth is not None:
            cached = min(1.0, device.cache / (part * memory))  # share of the fields that fits into the cache
            rate = 1.0 / (
                cached / max(bandwidth, cores * device.cache_bandwidth) + (1.0 - cached) / bandwidth
            )
        rate /= part * ranks_per_node
        return cls(rate, rate / 2, device.launch, flops=flops / (part * ranks_per_node))

    @classmethod
    def _measured(cls, measured: Measured, ranks_per_node: int, memory: float) -> Rates:
        pace = measured.pace(ranks_per_node, memory)
        rates = cls(
            *(pace.bandwidth, measured.packing, measured.begin, pace.per_flop, pace.per_sum),
            *(measured.copying, measured.hop),
        )
        return rates.slowed(max(1.0, ranks_per_node / pace.ranks))

    def per_cell(self, sweep: Sweep, dtype: str = "float64") -> float:
        """Return the time of a sweep per cell, in seconds.

        The result is the larger of the times for bytes and for operations. Vectors hold twice as many numbers
        of float32 as of float64, which doubles the rate of operations.
        """
        sums = sum(reduction.kind == "sum" for reduction in sweep.reductions)
        memory_time = sweep.bytes / self.bandwidth + sweep.flops * self.per_flop + sums * self.per_sum
        return max(memory_time, sweep.flops * (ITEMSIZE[dtype] / ITEMSIZE["float64"]) / self.flops)

    def slowed(self, factor: float) -> Rates:
        """Return the rates of a rank whose sweeps take `factor` times as long."""
        return replace(
            self,
            bandwidth=self.bandwidth / factor,
            per_flop=self.per_flop * factor,
            per_sum=self.per_sum * factor,
            flops=self.flops / factor,
        )


def _fullest(machine: Machine, ranks_per_node: int, threads: int | None) -> float:
    """Return the fraction of the threads of a node that run on the processor with the most threads.

    Ranks are assigned to the processors in turn. The threads of these ranks fill all cores of the processor
    before they use the next processor.
    """
    count, cores = machine.device.count, machine.device.cores
    if threads is None or cores is None:
        return 1.0 / count
    fullest = min(-(-ranks_per_node // count) * threads, cores)
    return max(1.0 / count, fullest / (threads * ranks_per_node))


def memory_of_node(schedule: Schedule, layout: Layout) -> float:
    """Return the bytes of all fields on a node, without halos."""
    bytes_per_cell = sum(ITEMSIZE[field.dtype] for field in schedule.fields)
    return bytes_per_cell * prod(layout.decomposition.shape) / layout.nodes
