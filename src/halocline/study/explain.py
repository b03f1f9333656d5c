"""What a program does on one rank of many, told from its schedule and plan: no rank is started, no field
allocated."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from halocline.compile.compiler import arranged, compile_program
from halocline.compile.device import Strategy
from halocline.compile.driver import library_key
from halocline.compile.footprint import Direction, Footprint
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, StopGraph, SweepGraph
from halocline.compile.results import scalars_in
from halocline.compile.schedule import Loop, Operation, Schedule, Stop, Sweep
from halocline.errors import CompileError, InputError
from halocline.lang.expression import Expr, text
from halocline.lang.grid import Grid
from halocline.lang.program import AssignScalar, Line, Program
from halocline.lang.trace import OWN
from halocline.plan.decompose import Decomposition
from halocline.plan.exchange import Copy
from halocline.plan.layout import Layout
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan, plan_rank
from halocline.plan.transfer import Transfers, methods_without_ranks, needs_ranks
from halocline.run import tuning
from halocline.run.bandwidth import device_bandwidth, triad_bandwidth
from halocline.run.devices import OnDevice, device_methods
from halocline.run.domain import Domain
from halocline.run.execution import Execution
from halocline.run.kernels import AUTO
from halocline.run.mpi import Communicator, has_ranks
from halocline.run.notices import say_once
from halocline.run.prepared import caches, exceeds_cache
from halocline.run.topology import DeviceLinks
from halocline.run.tuning import BY_CACHES, TUNE
from halocline.study.explain_device import (
    Dealt,
    DevicePlan,
    device_plan,
    link_time,
    planned_links,
    ranks_of_node,
)
from halocline.study.explain_text import lines, side

LATENCY = 2e-6  # seconds
# By transfer method, how often each byte crosses memory (read and written: copied; packed and unpacked), and
# how many latencies pass: what is fetched waits for a signal, a request and the answer.
CROSSINGS = {"self": 2, "peer": 2, "colocated": 2, "rma": 4, "mpi": 4}
LATENCIES = {"self": 0, "peer": 0, "colocated": 1, "rma": 3, "mpi": 1}
# transfer methods that the devices of an interface never have, and why
UNABLE = {
    "opencl": {
        "colocated": "OpenCL processes share no memory of devices",
        "gpu_aware": "MPI knows nothing of OpenCL devices",
    }
}
LONG = 32  # characters of a reduction, beyond which its terms are left out


@dataclass(frozen=True)
class Halo:
    """One field that a sweep reads beyond its subdomain.

    Attributes
    ----------
    field : str
    width : tuple of (str, int)
        The layers that are read on each side ("x-"), edge or corner ("x-y+").
    travels : tuple of str
        Where messages bring them.
    copied : tuple of str
        Where this rank copies them, from another of its subdomains or around a periodic axis.
    walls : tuple of str
        Where boundary conditions make them.
    why : str
        What holds of the rest, or why they travel.
    """

    field: str
    width: tuple[tuple[str, int], ...]
    travels: tuple[str, ...]
    copied: tuple[str, ...]
    walls: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Step:
    """One operation of the schedule.

    Attributes
    ----------
    kind : {"sweep", "scalars", "stop", "loop"}
    depth : int
        The number of loops around it.
    statements : tuple of str
        As the user wrote them.
    halos : tuple of Halo
    local : tuple of str
        Fields that a sweep touches at the cell itself only.
    walls : tuple of str
        Fields that boundary conditions continue beyond the walls.
    messages, bytes_sent, bytes_copied : int
        Of this rank, each time.
    reductions : int
        Numbers over all cells, summed over all ranks in one message.
    flops, bytes : float
        Per cell.
    """

    kind: str
    depth: int
    statements: tuple[str, ...]
    halos: tuple[Halo, ...] = ()
    local: tuple[str, ...] = ()
    walls: tuple[str, ...] = ()
    messages: int = 0
    bytes_sent: int = 0
    bytes_copied: int = 0
    reductions: int = 0
    flops: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True)
class Bound:
    """The least time of a pass where memory is the limit, and the time that is to be expected.

    Attributes
    ----------
    bandwidth : float
        Bytes a second of one rank, measured here with a += s * b on as many threads, or with copies within
        its devices.
    threads_measured : int
        How many threads were at work at once; 0 for devices.
    seconds_per_pass : float
        Of the largest subdomain, without messages and reductions.
    latency : float or None
        Seconds from rank to rank that are taken for granted: those of shared memory and of good networks.
    predicted : float or None
        With them, one after the other: the latency for each message and for each of the log2(ranks) hops of a
        reduction, and the bytes of halos at the bandwidth of memory: copied once, or, by the methods "mpi"
        and "rma", in and out of a buffer on both sides. None for devices, whose links are not known.
    exceeds_cache : bool or None
        Whether kernels for fields that exceed the last-level cache are taken; None for devices.
    """

    bandwidth: float
    threads_measured: int
    seconds_per_pass: float
    latency: float | None
    predicted: float | None
    exceeds_cache: bool | None


@dataclass(frozen=True)
class Route:
    """What one subdomain gets from one direction in one pass of the loop, and how.

    Attributes
    ----------
    subdomain : int
    side : str
        Where it comes from; "itself" where several sides of a subdomain come together.
    peer, rank, node : int
        The subdomain that it comes from, and where that is.
    method, why : str
        See `halocline.plan.transfer.Transfers`.
    bytes : int
    """

    subdomain: int
    side: str
    peer: int
    rank: int
    node: int
    method: str
    why: str
    bytes: int


@dataclass(frozen=True)
class Explanation:
    """A program on one rank: everything that `halocline explain` prints.

    Attributes
    ----------
    schedule : Schedule
    plan : RankPlan
    steps : tuple of Step
    alternative : Decomposition or None
        Slabs along one axis, to compare the chosen decomposition with.
    overlap : {"auto", True, False}
        Whether patches that need no message run before all have come.
    patches_by : str
        Where the shape of the patches comes from: "as given", "by cache size", "for a device", or what was
        measured.
    halo : {"read", "uniform"}
        What travels; see `halocline.compile.compiler.compile_program`.
    on : DevicePlan or None
        What the rank does on its devices; None where it computes itself.
    links : DeviceLinks
        Between the devices of a node.
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

    def __str__(self) -> str:
        return "\n".join(lines(self, self.bound()))

    @property
    def loop(self) -> tuple[Step, ...]:
        """The sweeps of one pass of the loops, or all where there is none."""
        sweeps = [step for step in self.steps if step.kind == "sweep"]
        return tuple(s for s in sweeps if s.depth) or tuple(sweeps)

    @property
    def bytes_per_cell(self) -> float:
        """Of one pass of the loop."""
        return sum(step.bytes for step in self.loop)

    @property
    def flops_per_cell(self) -> float:
        """Of one pass of the loop."""
        return sum(step.flops for step in self.loop)

    @property
    def link_time(self) -> float | None:
        """What placement by links is worth; see `halocline.study.explain_device.link_time`."""
        return link_time(self.schedule, self.plan.layout, self.links)

    @property
    def inner_patches(self) -> int:
        """Patches that wait for no message in any sweep."""
        return sum(
            not any(needs)
            for own in self.plan.subdomains
            for needs in zip(*(sweep.patch_needs for sweep in own.sweeps), strict=True)
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """What this rank receives and copies in one pass of the loop, by subdomain and side."""
        layout, transfers = self.plan.layout, self.plan.transfers
        unable = None if self.on is None else UNABLE.get(self.on.interface)
        found: dict[tuple[int, int, Direction], int] = {}
        for _, key, size in self._brought():
            found[key] = found.get(key, 0) + size
        return tuple(
            Route(
                own,
                side(direction) if any(direction) else "itself",
                peer,
                layout.home(peer)[0],
                layout.node(layout.home(peer)[0]),
                transfers.method(own, peer),
                transfers.why(own, peer, unable),
                size,
            )
            for (own, peer, direction), size in sorted(
                found.items(), key=lambda item: (item[0][0], _place(item[0][2]), item[0][1])
            )
        )

    def _brought(self) -> Iterator[tuple[str, tuple[int, int, Direction], int]]:
        """What this rank receives and copies in one pass of the loop: the method, to which subdomain, from
        which and where that lies, and bytes."""
        for own in self.plan.subdomains:
            for sweep in self._in_loop(own):
                for message in sweep.receives:
                    yield message.method, (own.number, message.peer, message.direction), message.bytes
                for copy in sweep.copies:
                    method = self.plan.transfers.method(own.number, copy.subdomain)
                    yield method, (own.number, copy.subdomain, _direction_of(copy, own)), copy.bytes

    def _in_loop(self, own: SubdomainPlan) -> Iterator[SweepPlan]:
        """The plans of the sweeps of one pass of the loop."""
        inside = {id(sweep) for sweep in self.schedule.pass_sweeps()}
        for sweep, plan in zip(self.schedule.sweeps(), own.sweeps, strict=True):
            if id(sweep) in inside:
                yield plan

    @property
    def memory(self) -> int:
        """Bytes that the rank takes of the memory where its fields are."""
        return self.plan.memory if self.on is None else self.on.memory

    def bound(self) -> Bound | None:
        """Measure the bandwidth of this machine, and bound the time of a pass; None where this machine lacks
        the devices."""
        if self.on is not None:
            return self._bound_on(self.on)
        threads, ranks = self.plan.threads, self.plan.layout.ranks
        active = min(threads * ranks, len(os.sched_getaffinity(0)))
        total = triad_bandwidth(Communicator(), active, self.plan.memory * -(-active // threads))
        rank = total / active * threads
        each = self.plan.layout.subdomains_per_rank
        seconds = each * max_cells(self.plan.decomposition) * self.bytes_per_cell / rank
        hops = math.ceil(math.log2(ranks)) * sum(bool(step.reductions) for step in self.loop)
        moved = sum(CROSSINGS[method] * size for method, _, size in self._brought())
        waits = hops + sum(LATENCIES[method] for method, _, _ in self._brought())
        predicted = seconds + LATENCY * waits + moved / rank
        return Bound(
            rank, active, seconds, LATENCY, predicted, exceeds_cache(self.plan, -(-active // threads))
        )

    def _bound_on(self, on: DevicePlan) -> Bound | None:
        found = on.present
        if not found:
            return None
        share = max(device.ranks for device in on.devices)
        rank = device_bandwidth(Communicator(), found, self.plan.memory) / share
        each = self.plan.layout.subdomains_per_rank
        seconds = each * max_cells(self.plan.decomposition) * self.bytes_per_cell / rank
        return Bound(rank, 0, seconds, None, None, None)

    def as_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "plan": self.plan.to_dict(),
            "steps": [asdict(step) for step in self.steps],
            "routes": [asdict(route) for route in self.routes],
            "pass": {
                "sweeps": len(self.loop),
                "messages": sum(step.messages for step in self.loop),
                "bytes_sent": sum(step.bytes_sent for step in self.loop),
                "reductions": sum(step.reductions for step in self.loop),
                "flops_per_cell": self.flops_per_cell,
                "bytes_per_cell": self.bytes_per_cell,
            },
            "inner_patches": self.inner_patches,
            "patches_by": self.patches_by,
            "memory_bytes": self.memory,
            "devices": [] if self.on is None else [asdict(device) for device in self.on.devices],
            "placement": {
                "strategy": self.plan.layout.placement,
                "slots": list(self.plan.layout.slots),
                "why": self.links.why,
                "link_time": self.link_time,
            },
            "devices_unknown": "" if self.on is None else self.on.unknown,
            "kernels": [] if self.on is None else [asdict(kernel) for kernel in self.on.kernels],
            "strategy": None if self.on is None else self.on.strategy,
            "launches": {} if self.on is None else dict(self.on.launches),
        }


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
    """Compile and plan a program for one rank of many.

    Parameters
    ----------
    program : Program
    grid : Grid
    ranks : int
    rank : int, optional
        Which of them; by default one in the middle, which has neighbours on all sides.
    threads : int
        Of a rank.
    nodes_of_ranks : tuple of int
        The node of each rank, where they do not follow each other node by node.
    places : tuple of OnDevice
        The device of each subdomain, of a run that there is.
    links : DeviceLinks, optional
        Between the devices of a node, of a run that there is.
    **execution
        See `halocline.run.execution.Execution`.

    Raises
    ------
    InputError
    """
    how = Execution(threads=threads, **execution)
    on = how.devices.interface != "cpu"
    strategy = _strategy(how.kernels) if on else None
    graphs, *_ = arranged(program, grid, how.halo)
    schedule = compile_program(program, grid, halo=how.halo, device=strategy)
    dealt, devices = None, 1
    if places:
        devices = sum(place.rank == 0 for place in places) // how.subdomains_per_rank
    elif on:
        dealt = Dealt.planned(how.devices, min(how.ranks_per_node or ranks, ranks))
        devices = len(dealt.labels[0])
    if links is None:
        links = DeviceLinks()
        if dealt is not None:
            links = planned_links(how.devices.interface, dealt, how.subdomains_per_rank)
    layout = how.layout(
        schedule, grid, ranks, how.ranks_per_node, nodes_of_ranks, devices, distance=links.distance
    )
    if rank is None:
        cut = layout.decomposition
        rank = layout.home(cut.rank_of([parts // 2 for parts in cut.parts]))[0]
    if not 0 <= rank < ranks:
        raise InputError(f"rank {rank} of {ranks}: expected one from 0 to {ranks - 1}")
    methods = _methods(how, layout)
    transfers = Transfers(layout, methods)
    plan, patches_by = _planned(schedule, transfers, rank, 1 if on else threads, how)
    there = None
    if strategy is not None:
        dealt = dealt or Dealt.of_run(places, ranks_of_node(layout, rank))
        there = device_plan(schedule, plan, how, strategy, dealt)
    alternative = None
    with contextlib.suppress(InputError):  # too many ranks for slabs
        slabs = replace(how, decomposition="1d")
        alternative = slabs.layout(schedule, grid, ranks, how.ranks_per_node, devices=devices).decomposition
    steps = tuple(_Teller(program, schedule, plan, graphs, how.halo).tell(graphs, schedule.operations, 0))
    return Explanation(schedule, plan, steps, alternative, how.overlap, patches_by, how.halo, there, links)


def _strategy(kernels: str) -> Strategy:
    """How kernels go through cells, as a user says; the default where a run would see."""
    if kernels == TUNE:
        raise InputError("kernels tune: nothing is measured here; expected auto, direct, queue or planes")
    return Strategy() if kernels == AUTO else Strategy(kernels)


def _methods(how: Execution, layout: Layout) -> tuple[str, ...]:
    """The transfer methods that a run would find; what it would say of others is said here too."""
    interface, notices, methods = how.devices.interface, list(how.ignored), how.allowed_methods
    if layout.ranks == 1 and not has_ranks():
        notices.append(needs_ranks(methods, layout.decomposition))
        methods = methods_without_ranks(methods)
    elif interface != "cpu":
        methods = device_methods(how.methods, interface)
        if layout.ranks > 1:
            notices += [
                f"transfer method {name} is not taken between devices: {why}"
                for name, why in UNABLE.get(interface, {}).items()
                if name in (how.methods or ())
            ]
    for notice in filter(None, notices):
        say_once(notice)
    return methods


def _planned(
    schedule: Schedule, transfers: Transfers, rank: int, threads: int, how: Execution
) -> tuple[RankPlan, str]:
    """A plan as a run would make it here, and where the shape of its patches comes from."""
    planned = partial(plan_rank, schedule, transfers, rank, threads=threads, caches=caches())
    plan = planned(patch=how.patch_shape)
    if how.patch_shape is not None:
        return plan, "as given"
    if schedule.device is not None:
        return plan, "for a device"
    if how.patch != BY_CACHES:
        layout = transfers.layout
        on_node = min(how.ranks_per_node or layout.ranks, layout.ranks)
        with contextlib.suppress(CompileError):  # without a compiler nothing was measured
            library = library_key(schedule.source, streaming=exceeds_cache(plan, on_node))
            key = tuning.key(library, transfers, threads, on_node, how.schedule, schedule.blocks)
            known = tuning.recall(key, schedule.ndim)
            if known is not None:
                return plan if known.patch is None else planned(patch=known.patch), known.why
    return plan, "by cache size"


class Problem(Protocol):
    """A Simulation or LinearProblem."""

    program: Program

    @property
    def domain(self) -> Domain:
        """Its share of the grid, and how that was asked for."""


def explain(problem: Problem, **options: Any) -> Explanation:
    """What is made of a simulation or a linear problem, also on ranks that there are not.

    Parameters
    ----------
    problem : Simulation or LinearProblem
    **options
        `ranks` and `rank` of explain_program, and those of `halocline.run.execution.Execution`; where not
        given, those that the problem runs with.

    Returns
    -------
    Explanation
        ``print`` shows it: fields, halos, what travels and why, bytes and flops, the bound and the predicted
        time.

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
    domain = problem.domain
    own = {"ranks": domain.comm.size, **asdict(domain.how), "threads": domain.threads}
    if domain.how.kernels == TUNE:
        own["kernels"] = AUTO  # nothing is measured here
    if "ranks" not in options:  # as it runs
        own["ranks_per_node"] = domain.comm.ranks_per_node
        own["nodes_of_ranks"] = () if "ranks_per_node" in options else domain.comm.nodes_of_ranks
        if domain.transfers is not None:
            own["methods"] = domain.transfers.methods
        if options.keys().isdisjoint({"device", "ranks_per_node", "subdomains_per_rank"}):
            own |= {"places": domain.places, "links": domain.device_links}
    return explain_program(problem.program, domain.grid, **{**own, **options})


def max_cells(decomposition: Decomposition) -> int:
    """Cells of the largest subdomain."""
    cells = 1
    for n, parts in zip(decomposition.shape, decomposition.parts, strict=True):
        cells *= -(-n // parts)
    return cells


def _direction_of(copy: Copy, own: SubdomainPlan) -> Direction:
    """On which side of a subdomain the target of a copy lies."""
    return tuple(
        -1 if lo < 0 else int(hi > n and lo >= n)
        for lo, hi, n in zip(copy.target.lo, copy.target.hi, own.box.shape, strict=True)
    )


def _place(direction: Direction) -> tuple[Any, ...]:
    """Sorts sides before edges before corners, axis by axis."""
    return (sum(map(abs, direction)), [-abs(d) for d in direction], direction)


def _sides(directions: Iterable[Direction]) -> tuple[str, ...]:
    return tuple(side(d) for d in sorted(directions, key=_place))


class _Teller:
    """Puts schedule, plan and what the user wrote together, operation by operation."""

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        plan: RankPlan,
        graphs: Sequence[OperationGraph],
        halo: str,
    ) -> None:
        self.schedule, self.plan, self.own, self.halo = schedule, plan, plan.subdomains[0], halo
        self.plans = zip(*(own.sweeps for own in plan.subdomains), strict=True)
        self.names: dict[str, str] = {}  # that the compiler made, and what they stand for
        self.sweeps = list(schedule.sweeps())
        self.bodies = _bodies(schedule.operations)
        self.unplaced: dict[str, list[Line]] = {}  # where each scalar is set, in the order of the text
        for statement in program.flat():
            if isinstance(statement, AssignScalar):
                self.unplaced.setdefault(statement.scalar.name, []).append(statement.line)
        self.lines: dict[int, list[Line | None]] = {}  # of the statements of each graph, by its identity
        self._number_lines(graphs)

    def tell(
        self, graphs: Sequence[OperationGraph], operations: Sequence[Operation], depth: int
    ) -> Iterator[Step]:
        pairs = list(zip(graphs, operations, strict=True))
        for i, (graph, operation) in enumerate(pairs):
            if isinstance(graph, SweepGraph) and isinstance(operation, Sweep):
                self.names |= {name: _sum(root) for root, name in graph.reductions.items()}
                later = [g for g, _ in pairs[i + 1 :] if isinstance(g, ScalarGraph)]
                lines = [line for g in later for line in self._lines_of(g, graph)]
                yield self._sweep(graph, operation, depth, [*graph.lines, *lines])
            elif isinstance(graph, ScalarGraph):
                sums = {n for n, value in graph.statements if value.op == "scalar" and self._is_sum(value)}
                said = list(self._assigned(graph, sums))
                if said:
                    yield Step("scalars", depth, tuple(said))
            elif isinstance(graph, StopGraph) and isinstance(operation, Stop):
                if not operation.error:
                    yield Step("stop", depth, (f"{self._named(plain(graph.condition))}: {graph.reason}",))
            elif isinstance(graph, LoopGraph) and isinstance(operation, Loop):
                ends = [] if graph.until is None else [f"until {plain(graph.until)}"]
                if graph.limit is not None:
                    ends.append(f"at most {self._named(graph.limit)} times")
                yield Step("loop", depth, (", ".join(ends),))
                yield from self.tell(graph.body, operation.body, depth + 1)

    def _assigned(self, graph: ScalarGraph, sums: set[str]) -> Iterator[str]:
        """Each scalar that is set and has a name of its own. One that the compiler made is told where it is
        read, by what it stands for, or itself where that changes before."""
        own: dict[str, str] = {}  # told when it is needed
        for name, value in graph.statements:
            text = self._named(plain(value))
            changed = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            for made in [each for each, says in self.names.items() if changed.search(says)]:
                del self.names[made]
                if made in own:
                    yield f"{made.lstrip(OWN)} = {own[made]}"
            if name.startswith(OWN):
                self.names[name] = own[name] = text
            elif name not in sums:
                yield f"{name.rstrip(OWN)} = {text}"

    def _number_lines(self, graphs: Sequence[OperationGraph]) -> None:
        for graph in graphs:
            if isinstance(graph, ScalarGraph):
                known = (self.unplaced.get(name) for name, _ in graph.statements)
                self.lines[id(graph)] = [lines.pop(0) if lines else None for lines in known]
            elif isinstance(graph, LoopGraph):
                self._number_lines(graph.body)

    def _lines_of(self, graph: ScalarGraph, sweep: SweepGraph) -> Iterator[Line]:
        """Where the scalars are set that take a number which the sweep sums up: they belong to it."""
        for (_, value), line in zip(graph.statements, self.lines[id(graph)], strict=True):
            if line is not None and not scalars_in([value]).isdisjoint(sweep.reductions.values()):
                yield line

    def _is_sum(self, value: Expr) -> bool:
        """Whether a scalar is what a sweep has summed up; it is told with the sweep."""
        return str(value.attribute[0]).startswith(OWN) and value.attribute[0] in self.names

    def _named(self, said: str) -> str:
        """A text in which names that the compiler made are replaced by what they stand for."""
        return re.sub(OWN + r"\w+", lambda match: self.names.get(match[0], match[0].lstrip(OWN)), said)

    def _sweep(self, graph: SweepGraph, sweep: Sweep, depth: int, lines: list[Line]) -> Step:
        plans = next(self.plans)
        fields = self.schedule.fields
        return Step(
            kind="sweep",
            depth=depth,
            statements=tuple(
                dict.fromkeys(filter(None, map(_written, sorted(lines, key=lambda l: l.number))))
            ),
            halos=tuple(self._halo(sweep, f, footprint) for f, footprint in sorted(sweep.reads.items())),
            local=tuple(
                fields[f].name
                for f in sweep.operands
                if f not in sweep.reads and not fields[f].name.endswith("'")
            ),
            walls=tuple(dict.fromkeys(fields[fill.field].name for fill in sweep.fills)),
            messages=sum(len(plan.sends) for plan in plans),
            bytes_sent=sum(plan.bytes_sent for plan in plans),
            bytes_copied=sum(plan.bytes_copied for plan in plans),
            reductions=len(sweep.reductions),
            flops=sweep.flops,
            bytes=sweep.bytes,
        )

    def _halo(self, sweep: Sweep, field: int, footprint: Footprint) -> Halo:
        moved = dict(sweep.exchange.get(field, Footprint()))
        own, copied = self.own.number, self.plan.transfers.copied
        peers = {d: self.plan.decomposition.neighbour(own, d) for d, _ in footprint}
        name = self.schedule.fields[field].name

        def where(*wanted: bool) -> tuple[str, ...]:
            return _sides(d for d, chosen in zip(peers, wanted, strict=True) if chosen)

        return Halo(
            field=name,
            width=tuple((side(d), max(width)) for d, width in sorted(footprint, key=lambda s: _place(s[0]))),
            travels=where(*(d in moved and p is not None and not copied(own, p) for d, p in peers.items())),
            copied=where(*(d in moved and p is not None and copied(own, p) for d, p in peers.items())),
            walls=where(*(p is None for p in peers.values())),
            why=self._why(sweep, name, bool(moved)),
        )

    def _why(self, sweep: Sweep, name: str, moved: bool) -> str:
        """Why a field travels before a sweep, or why it need not."""
        here = next(i for i, s in enumerate(self.sweeps) if s is sweep)
        if moved and self.halo == "uniform":
            return "halos are uniform"
        if moved:
            return "its values have changed since they were last in the halo"
        for i in self._before(here):
            other = self.sweeps[i]
            if name in other.names and other.halo_kernel is not None:
                who = "this sweep" if i == here else f"sweep {i + 1}"
                return f"{who} computes it in the halo too, from what is there already"
            if any(self.schedule.fields[f].name == name for f in other.exchange):
                return f"it is still there from the exchange before sweep {i + 1}"
        return "boundary conditions alone fill it"

    def _before(self, here: int) -> Iterator[int]:
        """The sweeps that run before one, the latest first: in a loop, those of the pass before too."""
        body = next((b for b in self.bodies if here in b), [])
        yield from (i for i in reversed(body) if i < here)
        yield from (i for i in reversed(body) if i >= here)
        yield from (i for i in reversed(range(here)) if i not in body)


def _bodies(operations: Iterable[Operation]) -> list[list[int]]:
    """The numbers of the sweeps in each loop, inner loops first."""
    bodies: list[list[int]] = []
    numbers = itertools.count()

    def visit(operations: Iterable[Operation]) -> list[int]:
        inside = []
        for operation in operations:
            if isinstance(operation, Sweep):
                inside.append(next(numbers))
            elif isinstance(operation, Loop):
                bodies.append(visit(operation.body))
                inside += bodies[-1]
        return inside

    visit(operations)
    return bodies


def _written(line: Line) -> str:
    """A statement as it stands in its file."""
    return linecache.getline(line.file, line.number).strip()


def _sum(root: Expr) -> str:
    """A reduction, without its terms where they are long."""
    said = text(root)
    return said if len(said) <= LONG else f"{root.attribute[0]}(...)"


def plain(root: Expr) -> str:
    """A scalar expression without the outermost brackets."""
    said = text(root).replace("not((", "not (").removesuffix(")") if root.op == "not" else text(root)
    return said[1:-1] if said.startswith("(") and _closes_last(said) else said


def _closes_last(said: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for i, character in enumerate(said):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return i == len(said) - 1
    return False
