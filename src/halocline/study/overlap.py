"""How much of the exchange is hidden behind computing, from runs of each alone.

The share that is hidden is 1 - (t_step - t_compute) / t_exchange: whole steps, the same without messages, and
the same without kernels. Without messages halos hold what is old, without kernels nothing is computed: such
runs have problems of their own, whose fields nobody sees.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from halocline.compile.schedule import Loop, Operation, Schedule, Stop
from halocline.lang.grid import unknown
from halocline.lang.program import own_name
from halocline.lang.stepping import PAUSE
from halocline.physics.heat import Heat
from halocline.physics.poisson import Poisson
from halocline.plan.transfer import UNFIT_ON_DEVICES
from halocline.ranges import ORDER, REPEATS, Range
from halocline.run.domain.execution import chosen_devices
from halocline.run.engine.prepared import Prepared
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.linear import LinearProblem
from halocline.solvers.schemes import Euler
from halocline.study.exchange import moved
from halocline.study.table import Table, amount, duration

# by what crosses ranks; copies within a rank are the same in all
METHODS = {
    "colocated": "self,peer,colocated,mpi",
    "mpi": "self,peer,mpi",
    "rma": "self,peer,rma,mpi",
}
KINDS = {
    "step": {"overlap": True},
    "waiting": {"overlap": False},
    "compute": {"messages": False},
    "exchange": {"kernels": False},
    "neither": {"messages": False, "kernels": False},
}
LEAST = 0.04  # seconds of one run


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


class StepBench:
    """The steps of a program, ready to be timed whole and in parts; all ranks make it, and call its methods.

    Parameters
    ----------
    problem : Simulation or LinearProblem
        Made for this alone: its fields hold nonsense afterwards.
    limit : str
        The scalar that says how many steps are made.
    """

    def __init__(self, problem: Simulation | LinearProblem, limit: str) -> None:
        fields = problem.fields if isinstance(problem, LinearProblem) else problem
        self.prepared = Prepared(fields.store, endless(problem.schedule), "overlap")
        never = {"until": math.inf, PAUSE: math.inf}
        self.values = {**problem.domain.grid.scalar_values(), **fields.values, **never}
        self.limit, self.passes = limit, 1

    def calibrate(self) -> None:
        """Find out how many steps make a run that is long enough to be timed."""
        self.run()
        self.passes = max(3, math.ceil(LEAST / self.run()))

    def run(self, **kind: bool) -> float:
        """The seconds of one step on the slowest rank; `kind` as `KINDS` has it, with overlap as the problem
        was asked to run where it says nothing."""
        self.prepared.store.fill(1.0)  # so that no number grows out of bounds from one run to the next
        kind = {"overlap": self.prepared.domain.how.overlap is not False, **kind}
        return self.prepared.timed({**self.values, self.limit: float(self.passes)}, **kind) / self.passes


def endless(schedule: Schedule) -> Schedule:
    """The same sweeps, with no condition that ends them but the limit of passes."""

    def without(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            replace(operation, until=None, body=without(operation.body))
            if isinstance(operation, Loop)
            else operation
            for operation in operations
            if not isinstance(operation, Stop)
        )

    return replace(schedule, operations=without(schedule.operations))


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
    return StepBench(
        Simulation(
            equations.grid,
            equations.equations,
            parameters={"kappa": 1.0},
            scheme=Euler(),
            dt=equations.stable_step,
            order=2 * radius,
            **execution,
        ),
        "steps",
    )


def poisson(n: int, dim: int = 2, *, method: str = "cg-fused", **execution: Any) -> StepBench:
    """Iterations of conjugate gradients; see halocline.physics.poisson.Poisson."""
    equations = Poisson.on(n, dim)
    return StepBench(
        LinearProblem(equations.operator, equations.u, equations.rhs, method=method, **execution),
        own_name("max_iterations"),
    )


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
    benches: dict[str, StepBench] = {}
    taken: set[tuple[str, ...]] = set()
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, list(METHODS))
        if name in UNFIT_ON_DEVICES and chosen_devices(execution.get("device")).interface != "cpu":
            continue
        bench = make(methods=METHODS[name], **execution)
        found = bench.prepared.plan.transfers.methods
        if bench.prepared.domain.devices and name not in found:
            continue
        if found not in taken:  # else the one that it names cannot be had here
            benches[name] = bench
            bench.calibrate()
        taken.add(found)
    times: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in KINDS} for name in benches}
    for turn in range(repeats):
        for name, bench in benches.items():
            order = list(KINDS.items())
            for kind, options in order if turn % 2 == 0 else reversed(order):
                times[name][kind].append(bench.run(**options))
        if on_progress is not None:
            on_progress(turn + 1)
    return [_hidden(name, bench.prepared, times[name]) for name, bench in benches.items()]


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
