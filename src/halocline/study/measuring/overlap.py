"""How much of the exchange is hidden behind computing, from runs of each alone.

The share that is hidden is 1 - (t_step - t_compute) / t_exchange: whole steps, the same without messages, and
the same without kernels. Without messages halos hold what is old, without kernels nothing is computed: such
runs have problems of their own, whose fields nobody sees.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from halocline.io.table import Table, table_of
from halocline.lang.grid import Grid
from halocline.lang.operators import laplacian
from halocline.plan.transfer import UNFIT_ON_DEVICES
from halocline.problems.step_bench import StepBench
from halocline.ranges import FIELDS, ORDER, REPEATS, Range
from halocline.run.domain.execution import chosen_devices
from halocline.run.engine.prepared import KINDS, Prepared
from halocline.run.simulation.simulation import Simulation
from halocline.run.tuning.patches import in_turn
from halocline.solvers.schemes import Euler
from halocline.study.measurement import Measurement
from halocline.study.measuring.exchange import into_a_rank, moved
from halocline.study.reporting.quantities import text
from halocline.words import duration

# by what crosses ranks; copies within a rank are the same in all
METHODS = {
    "colocated": "self,peer,colocated,mpi",
    "mpi": "self,peer,mpi",
    "rma": "self,peer,rma,mpi",
}


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
    radius : int
        Layers of halo.
    fields : int
        Number of temperatures.
    dtype : str
        Precision of the temperatures.
    **execution
        `communicator`, and see halocline.Execution.

    Raises
    ------
    InputError
    """
    Range(1, ORDER.most // 2).check("radius", radius)
    FIELDS.check("fields", fields)
    grid = Grid(tuple(shape), extent=tuple(n / shape[0] for n in shape), periodic=True)
    names = ["T"] if fields == 1 else [f"T{n}" for n in range(fields)]
    temperatures = [grid.field(name, dtype=dtype) for name in names]
    sim = Simulation(
        grid,
        lambda kappa: {T: kappa * laplacian(T) for T in temperatures},
        parameters={"kappa": 1.0},
        scheme=Euler(),
        dt=0.1 / (grid.shape[0] ** 2 * grid.ndim),
        order=2 * radius,
        **execution,
    )
    return StepBench(sim, sim.program)


def measure(
    make: Callable[..., StepBench],
    *,
    repeats: int = 7,
    on_progress: Callable[[int], None] | None = None,
    **execution: Any,
) -> list[Measurement]:
    """Time whole steps and parts of them in turn, over and over, by all methods; all ranks call this.

    Parameters
    ----------
    make : callable
        Takes options of `halocline.Execution`, and makes the problem: `heat` or `poisson` of some size.
    repeats : int
        Rounds.
    on_progress : callable, optional
        Called with the number of rounds done.
    **execution
        Those options, but overlap.

    Returns
    -------
    list of dict
        For each set of transfer methods, by its `name` in METHODS: `parts`, the subdomains along each axis;
        `ranks`; `threads` of a rank; `messages` that the busiest rank sends in a step; `bytes_by_method`, the
        bytes into the subdomains of the busiest rank. All times are medians of seconds on the slowest rank:
        `step`, with overlap; `waiting`, where all patches wait for all messages; `compute`, without messages;
        `exchange`, without kernels; `neither`, without both. `share` and `share_waiting` are the part of the
        exchange that is hidden with and without overlap. The exchange is the difference of `exchange` and
        `neither`; shares are None where such differences vary by more than that.

    Raises
    ------
    InputError
    """
    REPEATS.check("repeats", repeats)
    by_transfers: dict[tuple[str, ...], tuple[str, StepBench]] = {}
    for name, methods in METHODS.items():
        if name in UNFIT_ON_DEVICES and chosen_devices(execution.get("device")).interface != "cpu":
            continue
        bench = make(methods=methods, **execution)
        transfers = bench.prepared.plan.transfers.methods
        if name in transfers or not bench.prepared.domain.devices:
            # where a method cannot be had, the one that is taken instead is timed once
            by_transfers.setdefault(transfers, (name, bench))
    benches = dict(by_transfers.values())
    for bench in benches.values():
        bench.calibrate()
    timers = {
        (name, kind): partial(bench.run, **options)
        for name, bench in benches.items()
        for kind, options in KINDS.items()
    }
    times = in_turn(timers, repeats, on_progress)
    return [
        _hidden(name, bench.prepared, {kind: times[name, kind] for kind in KINDS})
        for name, bench in benches.items()
    ]


def _hidden(name: str, prepared: Prepared, times: dict[str, list[float]]) -> Measurement:
    """Return the record of one set of methods.

    Neighbouring runs are subtracted from each other, because the speed of a machine drifts.
    """

    def beyond(more: str, less: str) -> float:
        return statistics.median(a - b for a, b in zip(times[more], times[less], strict=True))

    def share(kind: str) -> float | None:
        return 1 - beyond(kind, "compute") / exchange if exchange > scatter else None

    exchange = beyond("exchange", "neither")
    differences = [a - b for a, b in zip(times["exchange"], times["neither"], strict=True)]
    scatter = statistics.median(abs(d - exchange) for d in differences)
    messages, bytes_by_method = moved(prepared)
    return {
        "name": name,
        "parts": prepared.plan.decomposition.parts,
        "ranks": prepared.domain.comm.size,
        "threads": prepared.plan.threads,
        "messages": messages,
        "bytes_by_method": bytes_by_method,
        **{kind: statistics.median(seconds) for kind, seconds in times.items()},
        "share": share("step"),
        "share_waiting": share("waiting"),
    }


def table(found: Sequence[Measurement]) -> Table:
    """Return a table with a row for each set of methods."""
    columns: dict[str, Callable[[Measurement], str]] = {
        "": lambda m: m["name"],
        "into a rank": into_a_rank,
        "step": lambda m: duration(m["step"]),
        "without\noverlap": lambda m: duration(m["waiting"]),
        "compute\nalone": lambda m: duration(m["compute"]),
        "exchange\nalone": lambda m: duration(m["exchange"] - m["neither"]),
        "hidden": lambda m: text(m["share"], ".0%"),
        "hidden without\noverlap": lambda m: text(m["share_waiting"], ".0%"),
    }
    note = "1 - (step - compute alone) / exchange alone; medians of runs in turn."
    return table_of("How much of the exchange is hidden", found, columns, left=2, note=note)


def verdict(found: Sequence[Measurement]) -> list[str]:
    """Return a sentence for each set of methods."""
    said = []
    for m in found:
        gain = m["waiting"] / m["step"]
        times = f"{gain:.2f} times as fast" if gain >= 1 else f"{1 / gain:.2f} times as slow"
        hidden = "the exchange is too short to measure what is hidden"
        if m["share"] is not None:
            hidden = f"{m['share']:.0%} of the exchange is hidden"
        said.append(f"{m['name']}: {hidden}; steps are {times} with overlap.")
    return said
