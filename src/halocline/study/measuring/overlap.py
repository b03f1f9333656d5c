"""Share of the exchange that overlaps with computation, from separate times of exchange and computation.

The hidden share of the exchange is 1 - (t_step - t_compute) / t_exchange. Here, t_step is the time of a whole
step. The times t_compute and t_exchange are those of a step without messages and of a step without kernels.
Steps without messages read outdated halos, and steps without kernels compute nothing. Therefore the timed
runs have separate problems, whose fields are discarded.
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
from halocline.run.tuning.patches import run_in_turn
from halocline.solvers.schemes import Euler
from halocline.study.measurement import Measurement
from halocline.study.measuring.exchange import busiest_rank_traffic, received_text
from halocline.study.reporting.quantities import text
from halocline.words import duration

# Sets of transfer methods, by the method between ranks. The methods within a rank are the same in all sets.
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
    """Return a benchmark of explicit steps of the heat equation, with a stencil of the given radius.

    Parameters
    ----------
    shape : sequence of int
        Number of cells along each axis.
    radius : int
        Number of halo layers.
    fields : int
        Number of temperatures.
    dtype : str
        Precision of the temperatures.
    **execution
        `communicator`, and options of halocline.Execution.

    Raises
    ------
    InputError
        An option is invalid.
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
    """Time whole steps and their parts in turn, for each set of transfer methods.

    All ranks must call this function.

    Parameters
    ----------
    make : callable
        Function that takes options of `halocline.Execution` and returns the benchmark, such as `heat` for a
        given size.
    repeats : int
        Number of rounds.
    on_progress : callable, optional
        Function that is called with the number of completed rounds.
    **execution
        Options of `halocline.Execution`, except overlap.

    Returns
    -------
    list of dict
        Record of each set of transfer methods. Times are medians on the slowest rank, in seconds. The keys
        are:

        - `name`: name of the set in METHODS.
        - `parts`: number of subdomains along each axis.
        - `ranks`, `threads`: number of ranks, and number of threads of a rank.
        - `messages`: number of messages that the busiest rank sends in a step.
        - `bytes_by_method`: bytes that the subdomains of the busiest rank receive, by transfer method.
        - `step`: time of a step with overlap.
        - `waiting`: time of a step without overlap, in which all patches wait for all messages.
        - `compute`: time of a step without messages.
        - `exchange`: time of a step without kernels.
        - `neither`: time of a step without messages and kernels.
        - `share`, `share_waiting`: hidden share of the exchange with overlap, and without overlap. The time
          of the exchange is `exchange` minus `neither`. The shares are None if this difference is smaller
          than its scatter.

    Raises
    ------
    InputError
        An option is invalid.
    """
    REPEATS.check("repeats", repeats)
    by_transfers: dict[tuple[str, ...], tuple[str, StepBench]] = {}
    for name, methods in METHODS.items():
        if name in UNFIT_ON_DEVICES and chosen_devices(execution.get("device")).interface != "cpu":
            continue
        bench = make(methods=methods, **execution)
        transfers = bench.prepared.plan.transfers.methods
        if name in transfers or not bench.prepared.domain.devices:
            # Fallbacks replace unavailable methods. Sets with the same available methods are timed once.
            by_transfers.setdefault(transfers, (name, bench))
    benches = dict(by_transfers.values())
    for bench in benches.values():
        bench.calibrate()
    timers = {
        (name, kind): partial(bench.run, **options)
        for name, bench in benches.items()
        for kind, options in KINDS.items()
    }
    times = run_in_turn(timers, repeats, on_progress)
    return [
        _overlap_record(name, bench.prepared, {kind: times[name, kind] for kind in KINDS})
        for name, bench in benches.items()
    ]


def _overlap_record(name: str, prepared: Prepared, times: dict[str, list[float]]) -> Measurement:
    """Return the record of one set of transfer methods.

    Differences are taken between successive runs, because the speed of a machine drifts.
    """

    def median_difference(kind: str, subtracted_kind: str) -> float:
        return statistics.median(a - b for a, b in zip(times[kind], times[subtracted_kind], strict=True))

    def share(kind: str) -> float | None:
        return 1 - median_difference(kind, "compute") / exchange if exchange > scatter else None

    exchange = median_difference("exchange", "neither")
    differences = [a - b for a, b in zip(times["exchange"], times["neither"], strict=True)]
    scatter = statistics.median(abs(d - exchange) for d in differences)
    messages, bytes_by_method = busiest_rank_traffic(prepared)
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


def table(records: Sequence[Measurement]) -> Table:
    """Return the table of times and hidden shares, with a row for each set of methods."""
    columns: dict[str, Callable[[Measurement], str]] = {
        "": lambda m: m["name"],
        "bytes into the\nbusiest rank": received_text,
        "step": lambda m: duration(m["step"]),
        "without\noverlap": lambda m: duration(m["waiting"]),
        "compute\nalone": lambda m: duration(m["compute"]),
        "exchange\nalone": lambda m: duration(m["exchange"] - m["neither"]),
        "hidden": lambda m: text(m["share"], ".0%"),
        "hidden without\noverlap": lambda m: text(m["share_waiting"], ".0%"),
    }
    note = (
        "The hidden share is 1 - (step - compute alone) / exchange alone. Times are medians over rounds, in "
        "which all kinds of step run in turn."
    )
    return table_of("Hidden share of the exchange", records, columns, left=2, note=note)


def verdict(records: Sequence[Measurement]) -> list[str]:
    """Return a sentence on the hidden share and the effect of overlap, for each set of methods."""
    sentences = []
    for m in records:
        gain = m["waiting"] / m["step"]
        times = f"{gain:.2f} times as fast" if gain >= 1 else f"{1 / gain:.2f} times as slow"
        share_text = "the exchange is too short for a measurement of the hidden share"
        if m["share"] is not None:
            share_text = f"{m['share']:.0%} of the exchange is hidden"
        sentences.append(f"{m['name']}: {share_text}; steps are {times} with overlap.")
    return sentences
