"""How much of the exchange is hidden behind computing, from runs of each alone.

The share that is hidden is 1 - (t_step - t_compute) / t_exchange: whole steps, the same without messages, and
the same without kernels. Without messages halos hold what is old, without kernels nothing is computed: such
runs have problems of their own, whose fields nobody sees.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from halocline.io.table import Table
from halocline.lang.grid import unknown
from halocline.physics.heat import Heat
from halocline.plan.transfer import UNFIT_ON_DEVICES
from halocline.problems.step_bench import StepBench
from halocline.ranges import ORDER, REPEATS, Range
from halocline.run.domain.execution import chosen_devices
from halocline.run.engine.pass_timer import KINDS
from halocline.run.engine.prepared import Prepared
from halocline.run.simulation.simulation import Simulation
from halocline.run.tuning.turns import in_turn
from halocline.solvers.schemes import Euler
from halocline.study.measuring.exchange import moved
from halocline.words import amount, duration

# by what crosses ranks; copies within a rank are the same in all
METHODS = {
    "colocated": "self,peer,colocated,mpi",
    "mpi": "self,peer,mpi",
    "rma": "self,peer,rma,mpi",
}


@dataclass(frozen=True)
class Hidden:
    """What the steps of a program took, whole and in parts; seconds are medians on the slowest rank.

    Attributes
    ----------
    name : str
        Of the transfer methods; see METHODS.
    parts : tuple of int
        Subdomains along each axis.
    ranks, threads : int
        Threads are those of one rank.
    messages : int
        That the busiest rank sends in one step.
    bytes_by_method : dict of str to int
        Into the subdomains of the busiest rank.
    step, waiting : float
        A step with overlap; the same where all patches wait until all messages have come.
    compute, exchange, neither : float
        A step without messages; without kernels; without both.
    share, share_waiting : float
        What of the exchange is hidden with overlap, and without. The exchange is what a step without kernels
        takes beyond one without both: loops and reductions of single numbers are none of it. None where that
        is no longer than such differences vary.
    """

    name: str
    parts: tuple[int, ...]
    ranks: int
    threads: int
    messages: int
    bytes_by_method: dict[str, int]
    step: float
    waiting: float
    compute: float
    exchange: float
    neither: float
    share: float | None
    share_waiting: float | None


def heat(
    shape: Sequence[int],
    *,
    radius: int = 1,
    fields: int = 1,
    dtype: str = "float64",
    **execution: Any,
) -> StepBench:
    """Explicit steps of heat, as wide a stencil as the radius says.

    Parameters
    ----------
    shape : sequence of int
        Cells.
    radius, fields, dtype
        Of the stencil; see halocline.physics.heat.Heat.
    **execution
        `communicator`, and see halocline.Execution.

    Raises
    ------
    InputError
    """
    Range(1, ORDER.most // 2).check("radius", radius)
    equations = Heat.in_box(shape, fields=fields, dtype=dtype)
    sim = Simulation(
        equations.grid,
        equations.equations,
        parameters={"kappa": 1.0},
        scheme=Euler(),
        dt=equations.stable_step,
        order=2 * radius,
        **execution,
    )
    return StepBench(sim, sim.program)


def measure(
    make: Callable[..., StepBench],
    *,
    repeats: int = 7,
    methods: Sequence[str] = tuple(METHODS),
    on_progress: Callable[[int], None] | None = None,
    **execution: Any,
) -> list[Hidden]:
    """Time whole steps and parts of them in turn, over and over, by all methods; all ranks call this.

    Parameters
    ----------
    make : callable
        Takes options of `halocline.Execution`, and makes the problem: `heat` or `poisson` of some size.
    repeats : int
        Rounds.
    methods : sequence of str
        Of METHODS.
    on_progress : callable, optional
        Called with the number of rounds done.
    **execution
        Those options, but overlap.

    Raises
    ------
    InputError
    """
    REPEATS.check("repeats", repeats)
    by_transfers: dict[tuple[str, ...], tuple[str, StepBench]] = {}
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, list(METHODS))
        if name in UNFIT_ON_DEVICES and chosen_devices(execution.get("device")).interface != "cpu":
            continue
        bench = make(methods=METHODS[name], **execution)
        transfers = bench.prepared.plan.transfers.methods
        if name in transfers or not bench.prepared.domain.devices:
            # where a method cannot be had, the one that is taken instead is timed once
            by_transfers.setdefault(transfers, (name, bench))
    benches = dict(by_transfers.values())
    for bench in benches.values():
        bench.calibrate()
    times = in_turn(
        {
            (name, kind): partial(bench.run, **options)
            for name, bench in benches.items()
            for kind, options in KINDS.items()
        },
        repeats,
        on_progress,
    )
    return [
        _hidden(name, bench.prepared, {kind: times[name, kind] for kind in KINDS})
        for name, bench in benches.items()
    ]


def _hidden(name: str, prepared: Prepared, times: dict[str, list[float]]) -> Hidden:
    """Differences are taken of runs that were neighbours, since the speed of a machine drifts."""

    def beyond(more: str, less: str) -> float:
        return statistics.median(a - b for a, b in zip(times[more], times[less], strict=True))

    def share(kind: str) -> float | None:
        return 1 - beyond(kind, "compute") / exchange if exchange > scatter else None

    exchange = beyond("exchange", "neither")
    differences = [a - b for a, b in zip(times["exchange"], times["neither"], strict=True)]
    scatter = statistics.median(abs(d - exchange) for d in differences)
    messages, bytes_by_method = moved(prepared)
    return Hidden(
        name,
        prepared.plan.decomposition.parts,
        prepared.domain.comm.size,
        prepared.plan.threads,
        messages,
        bytes_by_method,
        **{kind: statistics.median(own) for kind, own in times.items()},
        share=share("step"),
        share_waiting=share("waiting"),
    )


def table(found: Sequence[Hidden]) -> Table:
    """One row for each method."""
    rows = tuple(
        (
            own.name,
            ", ".join(f"{amount(size)} {method}" for method, size in own.bytes_by_method.items()),
            *(duration(seconds) for seconds in (own.step, own.waiting, own.compute)),
            duration(own.exchange - own.neither),
            _percent(own.share),
            _percent(own.share_waiting),
        )
        for own in found
    )
    heads = ("", "into a rank", "step", "without\noverlap", "compute\nalone", "exchange\nalone", "hidden")
    return Table(
        "How much of the exchange is hidden",
        (*heads, "hidden without\noverlap"),
        rows,
        left=2,
        note="1 - (step - compute alone) / exchange alone; medians of runs in turn.",
    )


def verdict(found: Sequence[Hidden]) -> list[str]:
    """What the study shows, a sentence for each method."""
    said = []
    for own in found:
        gain = own.waiting / own.step
        times = f"{gain:.2f} times as fast" if gain >= 1 else f"{1 / gain:.2f} times as slow"
        hidden = "the exchange is too short to measure what is hidden"
        if own.share is not None:
            hidden = f"{own.share:.0%} of the exchange is hidden"
        said.append(f"{own.name}: {hidden}; steps are {times} with overlap.")
    return said


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
