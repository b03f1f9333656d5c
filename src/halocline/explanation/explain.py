"""Explanation of a program on one rank, from its schedule and plan, without a run and without fields."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from halocline.compile.compiler import arranged, compile_program
from halocline.compile.driver import library_path
from halocline.compile.ir import pipeline
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import SHARED_BYTES, Strategy
from halocline.errors import CompileError, InputError
from halocline.explanation.device import (
    Labels,
    device_plan,
    planned_devices,
    planned_links,
    ranks_of_node,
    shared_here,
)
from halocline.explanation.facts import UNABLE, Explained
from halocline.explanation.steps import steps_of
from halocline.explanation.text import lines
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.plan.layout import Layout
from halocline.plan.rank import RankPlan, plan_rank
from halocline.plan.transfer import Transfers, methods_without_ranks, needs_ranks
from halocline.run.devices.devices import OnDevice, device_methods
from halocline.run.devices.topology import DeviceLinks
from halocline.run.domain.execution import Execution
from halocline.run.host.machine import exceeds_cache, level_2_cache
from halocline.run.host.streams import say_once
from halocline.run.ranks.mpi import has_ranks
from halocline.run.tuning import patches as tuning
from halocline.run.tuning.kernels import AUTO
from halocline.run.tuning.patches import BY_CACHES, TUNE
from halocline.words import short_repr


class Explanation(Explained):
    """Explanation of a program on one rank, which ``print`` shows as text."""

    def __str__(self) -> str:
        return "\n".join(lines(self, self.bound()))


def explain_program(
    program: Program,
    grid: Grid,
    *,
    ranks: int = 1,
    rank: int | None = None,
    threads: int = 1,
    nodes_of_ranks: tuple[int, ...] = (),
    places: tuple[OnDevice, ...] = (),
    links: DeviceLinks | None = None,
    **execution: Any,
) -> Explanation:
    """Compile and plan a program for one rank.

    Parameters
    ----------
    program : Program
    grid : Grid
    ranks : int
        Number of ranks.
    rank : int, optional
        Rank to explain; by default a rank in the middle of the grid, with neighbours on all sides.
    threads : int
        Threads of a rank.
    nodes_of_ranks : tuple of int
        Node of each rank; empty if consecutive ranks fill one node after the other.
    places : tuple of OnDevice
        Device of each subdomain, from an existing run.
    links : DeviceLinks, optional
        Links between the devices of a node, from an existing run.
    **execution
        See `halocline.run.domain.execution.Execution`.

    Raises
    ------
    InputError
    """
    settings = Execution(threads=threads, **execution)
    uses_devices = settings.devices.interface != "cpu"
    strategy = _strategy(settings.kernels) if uses_devices else None
    labels: Labels = ()
    unknown = ""
    devices = 1
    if places:
        devices = sum(place.rank == 0 for place in places) // settings.subdomains_per_rank
    elif uses_devices:
        labels, unknown = planned_devices(settings.devices, min(settings.ranks_per_node or ranks, ranks))
        devices = len(labels[0])
    graphs = arranged(program, grid, settings.halo)
    names = {place.device for place in places}.union(*labels)
    shared = shared_here(settings.devices.interface, names) if uses_devices else SHARED_BYTES
    with pipeline.recorded() as trail:
        schedule = compile_program(program, grid, halo=settings.halo, device=strategy, shared=shared)
    if links is None:
        links = DeviceLinks()
        if labels:
            links = planned_links(settings.devices.interface, labels, settings.subdomains_per_rank)
    layout = settings.layout(
        schedule, grid, ranks, settings.ranks_per_node, nodes_of_ranks, devices, distance=links.distance
    )
    if rank is None:
        cut = layout.decomposition
        rank = layout.home(cut.rank_of([parts // 2 for parts in cut.parts]))[0]
    if not 0 <= rank < ranks:
        raise InputError(
            f"rank is {rank}; expected a number from 0 to {ranks - 1}, because there are {ranks} ranks"
        )
    methods = _methods(settings, layout)
    transfers = Transfers(layout, methods, settings.packing)
    plan, patches_by = _plan_of_run(schedule, transfers, rank, 1 if uses_devices else threads, settings)
    on_devices = None
    if strategy is not None:
        if not labels:
            node = ranks_of_node(layout, rank)
            labels = tuple(tuple(dict.fromkeys(p.device for p in places if p.rank == r)) for r in node)
        on_devices = device_plan(schedule, plan, settings, strategy, labels, unknown)
    alternative = None
    with contextlib.suppress(InputError):  # too many ranks for slabs
        slabs = replace(settings, decomposition="1d")
        alternative = slabs.layout(
            schedule, grid, ranks, settings.ranks_per_node, devices=devices
        ).decomposition
    steps = steps_of(schedule, plan, graphs, settings.halo)
    return Explanation(
        schedule,
        plan,
        steps,
        alternative,
        settings.overlap,
        patches_by,
        settings.halo,
        on_devices,
        links,
        tuple(trail),
    )


def _strategy(kernels: str) -> Strategy:
    """Return the kernel strategy for a value of `kernels`; for "auto", the initial strategy of a run."""
    if kernels == TUNE:
        raise InputError(
            "kernels is 'tune', but `explain` does not measure kernels; expected 'auto', 'direct', 'queue' "
            "or 'planes'"
        )
    return Strategy() if kernels == AUTO else Strategy(kernels)


def _methods(execution: Execution, layout: Layout) -> tuple[str, ...]:
    """Return the transfer methods that a run would use. Print notices about methods that it could not use."""
    interface, methods = execution.devices.interface, execution.allowed_methods
    notices = list(execution.ignored_options)
    if layout.ranks == 1 and not has_ranks():
        notices.append(needs_ranks(methods, layout.decomposition))
        methods = methods_without_ranks(methods)
    elif interface != "cpu":
        methods = device_methods(execution.methods, interface)
        if layout.ranks > 1:
            notices += [
                f"transfer method {name} is not used between devices: {reason}"
                for name, reason in UNABLE.get(interface, {}).items()
                if name in (execution.methods or ())
            ]
    for notice in filter(None, notices):
        say_once(notice)
    return methods


def _plan_of_run(
    schedule: Schedule, transfers: Transfers, rank: int, threads: int, execution: Execution
) -> tuple[RankPlan, str]:
    """Return the plan that a run on this machine would use, and the origin of its patch shape."""
    plan_with = partial(plan_rank, schedule, transfers, rank, threads=threads, cache=level_2_cache())
    plan = plan_with(patch=execution.patch_shape)
    if execution.patch_shape is not None:
        return plan, "as given"
    if schedule.device is not None:
        in_slabs = any(subdomain.patches.slabs > 1 for subdomain in plan.subdomains)
        return plan, "for a device, in slabs to limit scratch memory" if in_slabs else "for a device"
    if execution.patch != BY_CACHES:
        layout = transfers.layout
        on_node = min(execution.ranks_per_node or layout.ranks, layout.ranks)
        with contextlib.suppress(CompileError):  # without a compiler, no patch shape has been measured
            library = library_path(schedule.source, streaming=exceeds_cache(plan, on_node))
            key = tuning.key(library.stem, transfers, threads, on_node, execution.schedule, schedule.blocks)
            tuned = tuning.recall_patches(key, schedule.ndim)
            if tuned is not None:
                plan = plan if tuned.choice is None else plan_with(patch=tuned.choice)
                return plan, tuned.comparison(tuning.BY_CACHE_SIZE)
    return plan, tuning.BY_CACHE_SIZE


def explain(problem: Any, **options: Any) -> Explanation:
    """Return the explanation of a simulation or a linear problem, for any number of ranks.

    Parameters
    ----------
    problem : Simulation or LinearProblem
    **options
        Options `ranks` and `rank` of explain_program, and options of
        `halocline.run.domain.execution.Execution`. The defaults are the options of the problem. All ranks
        have subdomains, in their initial distribution.

    Returns
    -------
    Explanation
        Fields, halos, exchanges with their reasons, bytes and flops, the bound and the predicted time.
        ``print`` shows the explanation as text.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((64, 64), periodic=True)
    >>> u = grid.field("u")
    >>> sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, scheme=hc.Euler(), dt=1e-5)
    >>> hc.explain(sim, ranks=4).plan.memory < 64 * 64 * 8
    True
    """
    domain = getattr(problem, "domain", None)
    if domain is None:
        raise InputError(
            f"problem is {short_repr(problem)}; expected an hc.Simulation or an hc.LinearProblem"
        )
    defaults = {"ranks": domain.comm.size, **asdict(domain.execution), "threads": domain.threads}
    if domain.execution.kernels == TUNE:
        defaults["kernels"] = AUTO  # an explanation makes no measurements for the choice of kernels
    if "ranks" not in options:  # by default, the ranks of the problem
        defaults["ranks_per_node"] = domain.comm.ranks_per_node
        defaults["nodes_of_ranks"] = () if "ranks_per_node" in options else domain.comm.nodes_of_ranks
        if domain.transfers is not None:
            defaults["methods"] = domain.transfers.methods
        if options.keys().isdisjoint({"device", "ranks_per_node", "subdomains_per_rank"}):
            defaults |= {"places": domain.places, "links": domain.device_links}
    return explain_program(problem.program, domain.grid, **{**defaults, **options})
