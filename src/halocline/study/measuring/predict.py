"""Predicted scaling of a case on a machine, by a model that executes the plans of all ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.io.table import Table, table_of
from halocline.lang.grid import unknown_name_error
from halocline.model import Rates, execute, memory_of_node, step_time
from halocline.plan.fit import least_thickness
from halocline.plan.growth import grown
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine
from halocline.plan.trace import TraceEvent
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import chosen_methods
from halocline.problems.problem import problem_of
from halocline.ranges import MODELLED_RANKS, NODES, RANKS_PER_NODE, SUBDOMAINS
from halocline.words import counted, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALINGS = ("strong", "weak")


@dataclass(frozen=True)
class ScalingPrediction:
    """Predicted time of a pass on a number of nodes.

    Attributes
    ----------
    nodes, ranks : int
    shape, parts : tuple of int
        Shape of the grid, and number of subdomains along each axis.
    seconds : float
        Time of one pass of the loop of the program, computed by discrete-event simulation, in seconds.
    formula : float
        Time of one pass, computed by the closed formula max(τ_W, τ_Q), in seconds.
    bound : str
        Dominant term of the closed formula: "work", "between nodes" or "within the node".
    efficiency : float
        Efficiency relative to the first number of nodes. For strong scaling, it is the speed-up divided by
        the ratio of the numbers of ranks. For weak scaling, it is the ratio of the times.
    cells_per_second : float
    spans : list of TraceEvent
        Events of the traced ranks on the last number of nodes.
    """

    nodes: int
    ranks: int
    shape: tuple[int, ...]
    parts: tuple[int, ...]
    seconds: float
    formula: float
    bound: str
    efficiency: float
    cells_per_second: float
    spans: list[TraceEvent] = field(default_factory=list, repr=False)


Case = tuple[Schedule, tuple[int, ...]]


def prepare(name: str, n: int, *, halo: str = "read", **options: Any) -> Case:
    """Return the schedule and the shape of a case with n points or cells along the first axis.

    Parameters
    ----------
    halo : str
        See `halocline.compile.compiler.compile_program`.
    **options
        ``settings``, ``dim``, ``order``, ``scheme`` and ``dtype``; see
        `halocline.problems.problem.problem_of`.
    """
    problem = problem_of(name, [n], **options)
    return compile_program(problem.program, problem.grid, halo=halo), problem.shape


def predict(
    schedule: Schedule,
    shape: Sequence[int],
    machine: Machine,
    nodes: Sequence[int],
    *,
    ranks_per_node: int | None = None,
    subdomains_per_rank: int = 1,
    threads: int | None = None,
    scaling: str = "strong",
    strategy: str = "optimal",
    placement: str = "aware",
    methods: Iterable[str] | str | None = None,
    packing: str = "all",
    overlap: bool | str = True,
    passes: int = 3,
    traced: Sequence[int] = (),
    pace: float = 1.0,
    on_progress: Callable[[int], None] | None = None,
) -> list[ScalingPrediction]:
    """Predict the times of a scaling study.

    Parameters
    ----------
    schedule : Schedule
    shape : sequence of int
        Shape of the grid; for weak scaling, the shape on the first number of nodes.
    machine : Machine
    nodes : sequence of int
        Numbers of nodes. The predictions are in ascending order of these numbers.
    ranks_per_node : int, optional
        Number of ranks on a node; by default one for each device.
    subdomains_per_rank : int
        Number of subdomains of a rank. Each subdomain has its own device if the node has enough devices.
    threads : int, optional
        Number of threads of a rank; by default the number of its cores. The memory bandwidth of a rank with
        few threads may be smaller.
    scaling : {"strong", "weak"}
    strategy : str
        Strategy of the decomposition, over the nodes and over the ranks of a node.
    placement : {"aware", "trivial", "random"}
        Assignment of the subdomains of a node to its ranks; see `halocline.plan.place`.
    methods : str or iterable of str, optional
        Allowed transfer methods; see `halocline.plan.chosen_methods`.
    packing : str
        Name of the rule that selects the packed messages; see `halocline.plan.transfer.PACKING`.
    overlap : bool or "auto"
        True for overlap of exchange and computation. "auto" selects the faster choice, as a run does.
    passes : int
        Number of simulated passes. The first pass does not count.
    traced : sequence of int
        Ranks whose events on the last number of nodes are recorded.
    pace : float
        Factor for the times of sweeps that the model predicts from bytes and operations; see
        `halocline.study.measuring.host.measured_pace`.
    on_progress : callable, optional
        Function that is called with the number of completed entries of `nodes`.

    Raises
    ------
    InputError
        An option is invalid.
    """
    if scaling not in SCALINGS:
        raise unknown_name_error("scaling", scaling, SCALINGS)
    per_node = machine.device.count if ranks_per_node is None else ranks_per_node
    RANKS_PER_NODE.check("ranks per node", per_node)
    SUBDOMAINS.check("subdomains per rank", subdomains_per_rank)
    slots = per_node * subdomains_per_rank
    if overlap not in (True, False, "auto"):
        raise InputError(f"overlap is {overlap!r}; expected True, False or 'auto'")
    if not (math.isfinite(pace) and pace > 0):
        raise InputError(f"pace is {pace!r}; expected a positive number")
    counts = sorted(set(nodes))
    if not counts:
        raise InputError("nodes is empty; expected at least one number of nodes")
    for count in counts:
        NODES.check("nodes", count)
        MODELLED_RANKS.check(f"the number of ranks on {counted(count, 'node')}", count * per_node)
    if strategy.replace("x", "").isdigit():
        raise InputError(
            f"decomposition {strategy} has a fixed number of parts, but the prediction decomposes the grid "
            "for each number of nodes. Use a strategy such as optimal."
        )
    if machine.device.kind == "cpu" and "gpu_aware" in chosen_methods(methods):
        raise InputError(
            "transfer method gpu_aware requires devices with separate memory, but the devices of "
            f"{machine.name} are CPUs. Leave gpu_aware out."
        )
    last = counts[-1] * per_node
    for rank in traced:
        if not 0 <= rank < last:
            raise InputError(
                f"traced rank is {rank}; expected 0 to {last - 1}, the ranks on {counted(counts[-1], 'node')}"
            )
    traffic, periodic = Traffic.of_schedule(schedule), schedule.periodic
    cut_options: dict[str, Any] = {"strategy": strategy, "traffic": traffic, "periodic": periodic}
    predictions: list[ScalingPrediction] = []
    for count in counts:
        if scaling == "weak" and count % counts[0]:
            raise InputError(
                f"{count} nodes are not a multiple of {counts[0]} nodes. Weak scaling requires multiples of "
                "the first number of nodes."
            )
        grid_shape = tuple(shape) if scaling == "strong" else grown(shape, count // counts[0])
        layout = lay_out(
            grid_shape,
            count * per_node,
            ranks_per_node=per_node,
            subdomains_per_rank=subdomains_per_rank,
            thickness=least_thickness(schedule),
            placement=placement,
            distance=machine.distance(slots),
            **cut_options,
        )
        decomposition = layout.decomposition
        memory = memory_of_node(schedule, layout)
        rates = Rates.of(machine, per_node, subdomains_per_rank, memory, threads).slowed(pace)
        overlap_choices = (True, False) if overlap == "auto" else (bool(overlap),)
        traced_ranks = traced if count == counts[-1] else ()
        options: dict[str, Any] = {
            "methods": methods,
            "packing": packing,
            "passes": passes,
            "traced": traced_ranks,
        }
        execute_layout = partial(execute, schedule, layout, machine, rates=rates, **options)
        best = min(
            (execute_layout(overlap=choice) for choice in overlap_choices),
            key=lambda prediction: prediction.seconds,
        )
        formula = step_time(
            grid_shape,
            count,
            slots,
            per_cell=subdomains_per_rank
            * sum(
                rates.per_cell(sweep, schedule.dtype_of(sweep)) * sweep.share
                for sweep in schedule.pass_sweeps()
            ),
            per_halo_cell=1.0 / machine.injection,
            per_halo_cell_within=1.0 / rates.packing,
            **cut_options,
        )
        first = predictions[0] if predictions else None
        gain = 1.0 if first is None else first.seconds / best.seconds
        if first is not None and scaling == "strong":
            gain *= first.ranks / decomposition.count
        predictions.append(
            ScalingPrediction(
                count, decomposition.count, grid_shape, decomposition.parts, best.seconds, formula.seconds,
                formula.bound, gain, prod(grid_shape) / best.seconds, best.spans,
            )
        )  # fmt: skip
        if on_progress is not None:
            on_progress(len(predictions))
    return predictions


def table(predictions: Sequence[ScalingPrediction], machine: Machine, scaling: str) -> Table:
    """Return the table of predictions, with a row for each number of nodes."""
    columns: dict[str, Callable[[ScalingPrediction], str]] = {
        "nodes": lambda p: f"{p.nodes:,}",
        "ranks": lambda p: f"{p.ranks:,}",
        "grid": lambda p: "x".join(map(str, p.shape)),
        "subdomains": lambda p: "x".join(map(str, p.parts)),
        "time per\npass": lambda p: duration(p.seconds),
        "closed\nformula": lambda p: duration(p.formula),
        "limited by": lambda p: p.bound,
        "efficiency": lambda p: f"{p.efficiency:.2f}",
        "cells/s": lambda p: f"{p.cells_per_second:.3g}",
    }
    note = (
        f"{machine.title}.\nThe time per pass is the result of a simulation of the plans of all ranks. The "
        "closed\nformula contains no latencies, shared links or reductions, and adds the times of\n"
        "all messages of a node."
    )
    return table_of(f"Predicted {scaling} scaling", predictions, columns, left=0, note=note)


def verdict(predictions: Sequence[ScalingPrediction]) -> str:
    """Return the result of the prediction as one or two sentences."""
    if len(predictions) == 1:
        (prediction,) = predictions
        nodes = counted(prediction.nodes, "node")
        time = duration(prediction.seconds)
        return f"{time} per pass on {nodes}. The dominant term of the closed formula is {prediction.bound}."
    last, last_efficient = predictions[-1], [p for p in predictions if p.efficiency >= 0.8][-1]
    efficiency_text = f"Efficiency stays above 80% up to {counted(last_efficient.nodes, 'node')}"
    if last_efficient is last:
        return f"{efficiency_text}: {last.efficiency:.0%} there."
    return f"{efficiency_text}; on {counted(last.nodes, 'node')} it is {last.efficiency:.0%}."


def plot(predictions: Sequence[ScalingPrediction], scaling: str) -> Figure:
    """Return a figure of the time of a pass and the efficiency over the number of nodes."""
    from halocline.io.style import MUTED, doubling, logarithmic
    from halocline.study.reporting.plots import figure_of

    figure, (left, right) = figure_of(2, 2)
    nodes = [p.nodes for p in predictions]
    left.plot(nodes, [p.seconds for p in predictions], "o-", label="simulation")
    left.plot(nodes, [p.formula for p in predictions], "s--", label="closed formula")
    ideal = [
        predictions[0].seconds * (predictions[0].ranks / p.ranks if scaling == "strong" else 1.0)
        for p in predictions
    ]
    left.plot(nodes, ideal, ":", color=MUTED, label="ideal")
    logarithmic(left, duration)
    right.plot(nodes, [p.efficiency for p in predictions], "o-")
    right.axhline(1.0, color=MUTED, linestyle=":", linewidth=0.9)
    right.set_ylim(0, None)
    for ax, title in ((left, "Time of a pass"), (right, "Efficiency")):
        ax.set(title=title, xlabel="nodes")
        doubling(ax, nodes)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
