"""Steps of a program as text: the schedule and the plan, combined with the statements of the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from halocline.compile.chains import Chain, chains
from halocline.compile.footprint import Direction, Footprint
from halocline.compile.ir.statements import StageUse
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, StopGraph, SweepGraph, sweeps
from halocline.compile.numbering import Sweeps
from halocline.compile.rotation import rotations
from halocline.compile.schedule import Loop, Operation, Schedule, Stop, Sweep, flat
from halocline.lang.expression import SIGNS, Expr, text, unary
from halocline.lang.grid import AXES
from halocline.lang.trace import INTERNAL
from halocline.plan.rank import RankPlan, SweepPlan

MAX_FORMULA = 32  # maximum number of characters of a reduction that is shown with its terms


def side(direction: Direction) -> str:
    """Return the name of a direction: "x-" is the lower side of axis x, "x-y+" an edge."""
    return "".join(AXES[a] + ("-" if d < 0 else "+") for a, d in enumerate(direction) if d)


def in_order(direction: Direction) -> tuple[Any, ...]:
    """Return the sort key of a direction: sides before edges before corners, axis by axis."""
    return (sum(map(abs, direction)), [-abs(d) for d in direction], direction)


def sides(directions: Iterable[Direction]) -> tuple[str, ...]:
    """Return the names of directions, sides first."""
    return tuple(side(d) for d in sorted(directions, key=in_order))


@dataclass(frozen=True)
class Halo:
    """Halo of one field that a sweep reads.

    Attributes
    ----------
    field : str
    width : tuple of (str, int)
        Number of layers that the sweep reads on each side ("x-"), edge or corner ("x-y+").
    travels : tuple of str
        Segments that arrive by message.
    copied : tuple of str
        Segments that this rank copies, from another of its subdomains or across a periodic axis.
    walls : tuple of str
        Segments that boundary conditions fill.
    reason : str
        Reason for the exchange; without an exchange, the reason for its absence.
    """

    field: str
    width: tuple[tuple[str, int], ...]
    travels: tuple[str, ...]
    copied: tuple[str, ...]
    walls: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Step:
    """One operation of the schedule.

    Attributes
    ----------
    kind : {"sweep", "exchange", "scalars", "stop", "loop", "when"}
        Kind of the operation. An "exchange" does not belong to a sweep. It precedes a loop, and the passes of
        the loop need not repeat it.
    depth : int
        Number of enclosing loops.
    statements : tuple of str
        Statements of the user.
    halos : tuple of Halo
    local : tuple of str
        Fields that a sweep accesses only at the computed cell.
    walls : tuple of str
        Fields that boundary conditions extend beyond the walls.
    messages, bytes_sent, bytes_not_packed, bytes_copied : int
        Messages and bytes of this rank in one execution of the step. `bytes_not_packed` is the part of
        `bytes_sent` that is not packed.
    reductions : int
        Number of reductions over all cells, combined over all ranks in one message.
    flops, bytes : float
        Operations and bytes per cell.
    share : float
        Expected fraction of the passes of the loop in which a sweep runs.
    stages : tuple of StageUse
        Stages of a sweep in scratch memory.
    chains : tuple of Chain
        Longest chains of stages on each side of a cell.
    scratch : int
        Bytes of scratch memory for the largest patch.
    new_buffers : tuple of (str, str)
        Fields that take over the buffer of another field after a sweep, and these other fields.
    """

    kind: str
    depth: int
    statements: tuple[str, ...]
    halos: tuple[Halo, ...] = ()
    local: tuple[str, ...] = ()
    walls: tuple[str, ...] = ()
    messages: int = 0
    bytes_sent: int = 0
    bytes_not_packed: int = 0
    bytes_copied: int = 0
    reductions: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    share: float = 1.0
    stages: tuple[StageUse, ...] = ()
    chains: tuple[Chain, ...] = ()
    scratch: int = 0
    new_buffers: tuple[tuple[str, str], ...] = ()


def steps_of(schedule: Schedule, plan: RankPlan, graphs: Sweeps, halo: str) -> tuple[Step, ...]:
    """Return the steps of a program on one rank.

    Parameters
    ----------
    schedule : Schedule
    plan : RankPlan
    graphs : Sweeps
        Operations from which the schedule was compiled, with the loop nests of each sweep.
    halo : {"read", "faces", "edges", "uniform"}
        Exchanged halo segments; see `halocline.compile.compiler.compile_program`.
    """
    return tuple(_Steps(schedule, plan, graphs, halo).steps(graphs.operations, schedule.operations, 0))


class _Steps:
    """Combination of a schedule and a plan with the statements of the user, operation by operation."""

    def __init__(self, schedule: Schedule, plan: RankPlan, graphs: Sweeps, halo: str) -> None:
        self.nests = graphs.nests
        self.schedule, self.plan, self.subdomain, self.halo = schedule, plan, plan.subdomains[0], halo
        self.plans = zip(*(subdomain.sweeps for subdomain in plan.subdomains), strict=True)
        self.names: dict[str, str] = {}  # definitions of names that the compiler generated
        self.sweeps = list(schedule.sweeps())
        self.bodies = list(_bodies(schedule.operations))

    def steps(
        self, graphs: Sequence[OperationGraph], operations: Sequence[Operation], depth: int
    ) -> Iterator[Step]:
        pairs = list(zip(graphs, operations, strict=True))
        for i, (graph, operation) in enumerate(pairs):
            if isinstance(graph, SweepGraph) and isinstance(operation, Sweep):
                self.names |= {name: _sum(root) for root, name in graph.reductions.items()}
                if operation.computes:
                    yield self._sweep(graph, operation, depth)
                else:
                    loop = next(g for g, _ in pairs[i + 1 :] if isinstance(g, LoopGraph))
                    yield from self._exchange(operation, depth, loop)
            elif isinstance(graph, ScalarGraph):
                assignments = tuple(self._assignments(graph))
                if assignments:
                    yield Step("scalars", depth, assignments)
            elif isinstance(graph, StopGraph) and isinstance(operation, Stop):
                if not operation.error:
                    yield Step(
                        "stop", depth, (f"{self._with_definitions(_plain(graph.condition))}: {graph.reason}",)
                    )
            elif isinstance(graph, LoopGraph) and isinstance(operation, Loop):
                ends = [] if graph.until is None else [f"until {_plain(graph.until)}"]
                if graph.limit is not None:
                    ends.append(f"at most {self._with_definitions(graph.limit)} times")
                if graph.often is not None and graph.until is not None:
                    condition = self._with_definitions(_plain(unary("not", graph.until)))
                    part = "" if graph.often == 1 else f" (one time in {1 / graph.often:g})"
                    yield Step("when", depth, (condition + part,))
                else:
                    yield Step("loop", depth, (", ".join(ends),))
                yield from self.steps(graph.body, operation.body, depth + 1)

    def _assignments(self, graph: ScalarGraph) -> Iterator[str]:
        """Yield the assignment of each scalar, except results of reductions, which appear with their sweep.

        The definition of a compiler-generated scalar replaces its name in expressions. If an operand of the
        definition changes before this use, the generator yields the assignment of the scalar.
        """
        sums = {
            n for n, value in graph.statements if value.op == "scalar" and value.attribute[0] in self.names
        }
        definitions: dict[str, str] = {}  # compiler-generated scalars, shown only when an operand changes
        for name, value in graph.statements:
            text = self._with_definitions(_plain(value))
            operand = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            for outdated_name in [
                key for key, definition in self.names.items() if operand.search(definition)
            ]:
                del self.names[outdated_name]
                if outdated_name in definitions:
                    yield f"{outdated_name.lstrip(INTERNAL)} = {definitions[outdated_name]}"
            if name.startswith(INTERNAL):
                self.names[name] = definitions[name] = text
            elif name not in sums:
                yield f"{name.rstrip(INTERNAL)} = {text}"

    def _with_definitions(self, text: str) -> str:
        """Return a text with the definitions of compiler-generated names in place of the names."""
        return re.sub(
            INTERNAL + r"\w+", lambda match: self.names.get(match[0], match[0].lstrip(INTERNAL)), text
        )

    def _sweep(self, graph: SweepGraph, sweep: Sweep, depth: int) -> Step:
        plans = next(self.plans)
        names = [info.name for info in self.schedule.fields]
        local = (names[f] for f in sweep.operands if f not in sweep.reads)
        return Step(
            "sweep",
            depth,
            tuple(dict.fromkeys(line.label for line in sorted(graph.lines, key=lambda line: line.number))),
            tuple(self._halo(sweep, f, footprint) for f, footprint in sorted(sweep.reads.items())),
            tuple(name for name in local if not name.endswith("'")),
            tuple(dict.fromkeys(names[fill.field] for fill in sweep.fills)),
            *_traffic(plans),
            reductions=len(sweep.reductions),
            flops=sweep.flops,
            bytes=sweep.bytes,
            share=sweep.share,
            stages=sweep.stages,
            chains=chains(self.nests[graph].staged),
            scratch=max(plan.scratch_bytes for plan in plans),
            new_buffers=tuple(
                (to.name, source.name)
                for f, followers in rotations(graph.sets).items()
                for source, to in pairwise((f, *followers))
            ),
        )

    def _exchange(self, sweep: Sweep, depth: int, loop: LoopGraph) -> Iterator[Step]:
        """Yield the exchange before a loop; no step if this rank has no neighbours."""
        plans = next(self.plans)
        assigned_fields = {f.name for inside in sweeps(loop.body) for f in inside.sets}
        halos = []
        for field, footprint in sorted(sweep.exchange.items()):
            halo = self._halo(sweep, field, footprint)
            reason = "each pass of the loop reads the field, and no pass assigns the field"
            if self.halo != "read":
                reason = "halos are uniform"
            elif halo.field in assigned_fields:
                reason = "each pass of the loop leaves the halo valid for the next pass"
            width = tuple((place, layers) for place, layers in halo.width if place not in halo.walls)
            if width:
                halos.append(replace(halo, width=width, walls=(), reason=reason))
        if halos:
            yield Step("exchange", depth, (), tuple(halos), (), (), *_traffic(plans))

    def _halo(self, sweep: Sweep, field: int, footprint: Footprint) -> Halo:
        exchanged = {d for d, _ in sweep.exchange.get(field, ())}
        peers = {d: self.plan.decomposition.neighbour(self.subdomain.number, d) for d, _ in footprint}
        neighbours = {d: p for d, p in peers.items() if p is not None}
        copied_directions = {
            d
            for d, p in neighbours.items()
            if d in exchanged and self.plan.transfers.is_copied(self.subdomain.number, p)
        }
        return Halo(
            field=self.schedule.fields[field].name,
            width=tuple((side(d), max(w)) for d, w in sorted(footprint, key=lambda s: in_order(s[0]))),
            travels=sides((exchanged & neighbours.keys()) - copied_directions),
            copied=sides(copied_directions),
            walls=sides(peers.keys() - neighbours.keys()),
            reason=self._exchange_reason(sweep, field, bool(exchanged)),
        )

    def _exchange_reason(self, sweep: Sweep, field: int, is_exchanged: bool) -> str:
        """Return the reason why a field is exchanged before a sweep, or why no exchange is needed."""
        name = self.schedule.fields[field].name
        index = next(i for i, s in enumerate(self.sweeps) if s is sweep)
        if is_exchanged and self.halo != "read":
            return "halos are uniform"
        required = sweep.exchange.get(field, Footprint())
        for i in self._earlier_sweeps(index):
            other = self.sweeps[i]
            earlier = other.exchange.get(field, Footprint())
            before = f"before sweep {self._number(i)}" if other.computes else "before the loop"
            if name in other.names and is_exchanged:
                return "the field has changed since its last exchange"
            if name in other.names and other.halo_kernel is not None:
                sweep_name = "this sweep" if i == index else f"sweep {self._number(i)}"
                return f"{sweep_name} also computes the field in the halo, from valid halo cells"
            if earlier and not is_exchanged:
                return f"the halo is still valid from the exchange {before}"
            if earlier and i != index and required - earlier:
                return f"the sweep reads more halo cells than the exchange {before} filled"
        return (
            "the halo has not been filled before"
            if is_exchanged
            else "only boundary conditions fill the halo"
        )

    def _number(self, i: int) -> int:
        """Return the displayed number of a sweep: its number among the sweeps that compute."""
        return sum(sweep.computes for sweep in self.sweeps[: i + 1])

    def _earlier_sweeps(self, index: int) -> Iterator[int]:
        """Yield the sweeps that precede a given sweep, the latest first.

        In a loop, these include the sweeps of the previous pass.
        """
        body = next((b for b in self.bodies if index in b), range(index, index))
        yield from reversed(range(body.start, index))
        yield from reversed(range(index, body.stop))
        yield from reversed(range(body.start))


def _traffic(plans: Sequence[SweepPlan]) -> tuple[int, int, int, int]:
    """Return the messages, bytes sent, bytes sent without packing, and bytes copied before a sweep."""
    return (
        sum(len(plan.sends) for plan in plans),
        sum(plan.bytes_sent for plan in plans),
        sum(plan.bytes_not_packed for plan in plans),
        sum(plan.bytes_copied for plan in plans),
    )


def _bodies(operations: Iterable[Operation], first: int = 0) -> Iterator[range]:
    """Yield the numbers of the sweeps in each loop, inner loops first."""
    for operation in operations:
        if isinstance(operation, Sweep):
            first += 1
        elif isinstance(operation, Loop):
            yield from _bodies(operation.body, first)
            last = first + sum(isinstance(inner, Sweep) for inner in flat(operation.body))
            yield range(first, last)
            first = last


def _sum(root: Expr) -> str:
    """Return the text of a reduction, without its terms if they are long."""
    formula = text(root)
    return formula if len(formula) <= MAX_FORMULA else f"{root.attribute[0]}(...)"


def _plain(root: Expr) -> str:
    """Return the text of a scalar expression without the outermost brackets."""
    if root.op == "not":
        return f"not {text(root.args[0])}"
    return text(root)[1:-1] if root.op in SIGNS else text(root)
