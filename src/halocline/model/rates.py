"""What a rank does in a second."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from halocline.compile.schedule import Schedule, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.plan.layout import Layout
from halocline.plan.machine import Machine


@dataclass(frozen=True)
class Rates:
    """What one rank does in a second, and what it costs to begin.

    Attributes
    ----------
    bandwidth : float
        Bytes a second that its sweeps move through memory.
    packing : float
        Bytes a second that it packs, unpacks or copies.
    begin : float
        Seconds that each sweep takes beside its patches: kernel launches, waking threads.
    per_flop, per_sum : float
        Seconds of an operation, and of a summand of a sum over the grid, beside its bytes; 0 where memory
        hides them.
    copying : float, optional
        Bytes a second that it copies out of another rank's memory; those of packing by default.
    hop : float, optional
        Seconds that a reduction takes from one rank of a node to another and back; from links and overhead
        by default.
    """

    bandwidth: float
    packing: float
    begin: float = 0.0
    per_flop: float = 0.0
    per_sum: float = 0.0
    copying: float | None = None
    hop: float | None = None

    @classmethod
    def of(
        cls,
        machine: Machine,
        ranks_per_node: int,
        subdomains_per_rank: int = 1,
        memory: float = inf,
        threads: int | None = None,
    ) -> Rates:
        """As measured, where the machine knows, with `memory` bytes of fields on a node; ranks beyond those
        measured take turns. Else of a rank with its share of the devices of a node, but no more than its
        threads draw from memory, where their number is given; packing reads and writes memory."""
        found = machine.measured
        if found is not None:
            pace = found.pace(ranks_per_node, memory)
            rates = cls(
                pace.bandwidth,
                found.packing,
                found.begin,
                pace.per_flop,
                pace.per_sum,
                found.copying,
                found.hop,
            )
            return rates.slowed(max(1.0, ranks_per_node / pace.ranks))
        taken = min(ranks_per_node * subdomains_per_rank, machine.device.count)
        each = machine.device.bandwidth * taken / ranks_per_node
        core = machine.device.core_bandwidth
        if threads is not None and core is not None:
            each = min(each, threads * core)
        return cls(each, each / 2, machine.device.launch)

    def per_cell(self, sweep: Sweep) -> float:
        """Seconds that a sweep takes for a cell."""
        sums = sum(reduction.kind == "sum" for reduction in sweep.reductions)
        return sweep.bytes / self.bandwidth + sweep.flops * self.per_flop + sums * self.per_sum

    def slowed(self, factor: float) -> Rates:
        """The same with sweeps that take `factor` times as long."""
        return replace(
            self,
            bandwidth=self.bandwidth / factor,
            per_flop=self.per_flop * factor,
            per_sum=self.per_sum * factor,
        )


def memory_of_node(schedule: Schedule, layout: Layout) -> float:
    """Bytes of all fields on a node, without halos."""
    of_cell = sum(ITEMSIZE[field.dtype] for field in schedule.fields)
    return of_cell * prod(layout.decomposition.shape) / layout.nodes
