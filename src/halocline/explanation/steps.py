"""The steps of a program in words: schedule and plan put together with what the user wrote."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from halocline.compile.chains import chains
from halocline.compile.footprint import Footprint
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, StopGraph, SweepGraph, sweeps
from halocline.compile.numbering import Sweeps
from halocline.compile.reading import scalars_in
from halocline.compile.schedule import Loop, Operation, Schedule, Stop, Sweep
from halocline.explanation.facts import Halo, Step
from halocline.explanation.sides import in_order, side, sides
from halocline.lang.expression import Expr, text, unary
from halocline.lang.origin import Line
from halocline.lang.program import AssignScalar, Program
from halocline.lang.trace import OWN
from halocline.plan.rank import RankPlan, SweepPlan

LONG = 32  # characters of a reduction, beyond which its terms are left out


def steps_of(
    program: Program, schedule: Schedule, plan: RankPlan, found: Sweeps, halo: str
) -> tuple[Step, ...]:
    """The steps of a program that one rank takes.

    Parameters
    ----------
    program : Program
        As the user wrote it.
    schedule : Schedule
    plan : RankPlan
    found : Sweeps
        The operations that the schedule was made from, with the nests of sweeps.
    halo : {"read", "uniform"}
        Which halos are exchanged; see `halocline.compile.compiler.compile_program`.
    """
    return tuple(_Steps(program, schedule, plan, found, halo).steps(found.operations, schedule.operations, 0))


class _Steps:
    """Puts schedule, plan and what the user wrote together, operation by operation."""

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        plan: RankPlan,
        found: Sweeps,
        halo: str,
    ) -> None:
        self.nests = found.nests
        self.schedule, self.plan, self.own, self.halo = schedule, plan, plan.subdomains[0], halo
        self.plans = zip(*(own.sweeps for own in plan.subdomains), strict=True)
        self.names: dict[str, str] = {}  # that the compiler made, and what they stand for
        self.sweeps = list(schedule.sweeps())
        self.bodies = _bodies(schedule.operations)
        self.unplaced: dict[str, list[Line]] = {}  # where each scalar is set, in the order of the text
        for statement in program.flat():
            if isinstance(statement, AssignScalar):
                self.unplaced.setdefault(statement.scalar.name, []).append(statement.line)
        self.lines: dict[ScalarGraph, list[Line | None]] = {}  # of the statements of each graph
        self._number_lines(found.operations)

    def steps(
        self, graphs: Sequence[OperationGraph], operations: Sequence[Operation], depth: int
    ) -> Iterator[Step]:
        pairs = list(zip(graphs, operations, strict=True))
        for i, (graph, operation) in enumerate(pairs):
            if isinstance(graph, SweepGraph) and isinstance(operation, Sweep):
                self.names |= {name: _sum(root) for root, name in graph.reductions.items()}
                later = [g for g, _ in pairs[i + 1 :] if isinstance(g, ScalarGraph)]
                lines = [line for g in later for line in self._lines_of(g, graph)]
                if operation.computes:
                    yield self._sweep(graph, operation, depth, [*graph.lines, *lines])
                else:
                    loop = next(g for g, _ in pairs[i + 1 :] if isinstance(g, LoopGraph))
                    yield from self._exchange(operation, depth, loop)
            elif isinstance(graph, ScalarGraph):
                sums = {n for n, value in graph.statements if value.op == "scalar" and self._is_sum(value)}
                said = list(self._assigned(graph, sums))
                if said:
                    yield Step("scalars", depth, tuple(said))
            elif isinstance(graph, StopGraph) and isinstance(operation, Stop):
                if not operation.error:
                    yield Step("stop", depth, (f"{self._named(_plain(graph.condition))}: {graph.reason}",))
            elif isinstance(graph, LoopGraph) and isinstance(operation, Loop):
                ends = [] if graph.until is None else [f"until {_plain(graph.until)}"]
                if graph.limit is not None:
                    ends.append(f"at most {self._named(graph.limit)} times")
                if graph.often is not None and graph.until is not None:
                    condition = self._named(_plain(unary("not", graph.until)))
                    part = "" if graph.often == 1 else f" (one time in {1 / graph.often:g})"
                    yield Step("when", depth, (condition + part,))
                else:
                    yield Step("loop", depth, (", ".join(ends),))
                yield from self.steps(graph.body, operation.body, depth + 1)

    def _assigned(self, graph: ScalarGraph, sums: set[str]) -> Iterator[str]:
        """Each scalar that is set and has a name of its own. One that the compiler made is shown where it is
        read, by what it stands for, or itself where that changes before."""
        own: dict[str, str] = {}  # shown when it is needed
        for name, value in graph.statements:
            text = self._named(_plain(value))
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
                self.lines[graph] = [lines.pop(0) if lines else None for lines in known]
            elif isinstance(graph, LoopGraph):
                self._number_lines(graph.body)

    def _lines_of(self, graph: ScalarGraph, sweep: SweepGraph) -> Iterator[Line]:
        """Where the scalars are set that take a number which the sweep sums up: they belong to it."""
        for (_, value), line in zip(graph.statements, self.lines[graph], strict=True):
            if line is not None and not set(scalars_in([value])).isdisjoint(sweep.reductions.values()):
                yield line

    def _is_sum(self, value: Expr) -> bool:
        """Whether a scalar is what a sweep has summed up; it is shown with the sweep."""
        return str(value.attribute[0]).startswith(OWN) and value.attribute[0] in self.names

    def _named(self, said: str) -> str:
        """A text in which names that the compiler made are replaced by what they stand for."""
        return re.sub(OWN + r"\w+", lambda match: self.names.get(match[0], match[0].lstrip(OWN)), said)

    def _sweep(self, graph: SweepGraph, sweep: Sweep, depth: int, lines: list[Line]) -> Step:
        plans = list(next(self.plans))
        fields = self.schedule.fields
        moved = _moved(plans)
        return replace(
            moved,
            kind="sweep",
            depth=depth,
            statements=tuple(
                dict.fromkeys(line.label for line in sorted(lines, key=lambda line: line.number))
            ),
            halos=tuple(self._halo(sweep, f, footprint) for f, footprint in sorted(sweep.reads.items())),
            local=tuple(
                fields[f].name
                for f in sweep.operands
                if f not in sweep.reads and not fields[f].name.endswith("'")
            ),
            walls=tuple(dict.fromkeys(fields[fill.field].name for fill in sweep.fills)),
            reductions=len(sweep.reductions),
            flops=sweep.flops,
            bytes=sweep.bytes,
            share=sweep.share,
            stages=sweep.stages,
            chains=chains(self.nests[graph].staged),
            scratch=max((plan.scratch_bytes for plan in plans), default=0),
        )

    def _exchange(self, sweep: Sweep, depth: int, loop: LoopGraph) -> Iterator[Step]:
        """The exchange before a loop; none where this rank has no neighbour there."""
        moved = _moved(next(self.plans))
        assigned = {f.name for inside in sweeps(loop.body) for f in inside.sets}
        halos = []
        for field, footprint in sorted(sweep.exchange.items()):
            halo = self._halo(sweep, field, footprint)
            why = "the loop reads it in each pass and never assigns it"
            if self.halo == "uniform":
                why = "halos are uniform"
            elif halo.field in assigned:
                why = "each pass of the loop leaves it valid for the next one"
            width = tuple((place, layers) for place, layers in halo.width if place not in halo.walls)
            if width:
                halos.append(replace(halo, width=width, walls=(), why=why))
        if halos:
            yield replace(moved, kind="exchange", depth=depth, halos=tuple(halos))

    def _halo(self, sweep: Sweep, field: int, footprint: Footprint) -> Halo:
        moved = dict(sweep.exchange.get(field, Footprint()))
        own, copied = self.own.number, self.plan.transfers.copied
        widths = dict(footprint)
        peers = {d: self.plan.decomposition.neighbour(own, d) for d in widths}
        name = self.schedule.fields[field].name

        def where(*wanted: bool) -> tuple[str, ...]:
            return sides(d for d, chosen in zip(peers, wanted, strict=True) if chosen)

        return Halo(
            field=name,
            width=tuple(
                (side(d), max(width)) for d, width in sorted(footprint, key=lambda each: in_order(each[0]))
            ),
            travels=where(*(d in moved and p is not None and not copied(own, p) for d, p in peers.items())),
            copied=where(*(d in moved and p is not None and copied(own, p) for d, p in peers.items())),
            walls=where(*(p is None for p in peers.values())),
            why=self._why(sweep, name, bool(moved)),
        )

    def _why(self, sweep: Sweep, name: str, moved: bool) -> str:
        """Why a field is exchanged before a sweep, or why it need not be."""
        here = next(i for i, s in enumerate(self.sweeps) if s is sweep)
        if moved and self.halo == "uniform":
            return "halos are uniform"
        needed = self._exchanged(sweep, name)
        for i in self._before(here):
            other = self.sweeps[i]
            there = self._exchanged(other, name)
            before = f"before sweep {self._number(i)}" if other.computes else "before the loop"
            if name in other.names and moved:
                return "its values have changed since they were last in the halo"
            if name in other.names and other.halo_kernel is not None:
                who = "this sweep" if i == here else f"sweep {self._number(i)}"
                return f"{who} computes it in the halo too, from what is there already"
            if there and not moved:
                return f"it is still there from the exchange {before}"
            if there and i != here and needed - there:
                return f"it is read farther away than the exchange {before} reaches"
        return "nothing has filled its halo before" if moved else "boundary conditions alone fill it"

    def _exchanged(self, sweep: Sweep, name: str) -> Footprint:
        """The segments of a field that are exchanged before a sweep."""
        names = self.schedule.fields
        return next((p for f, p in sweep.exchange.items() if names[f].name == name), Footprint())

    def _number(self, i: int) -> int:
        """The number of a sweep among those that compute, as they are listed."""
        return sum(sweep.computes for sweep in self.sweeps[: i + 1])

    def _before(self, here: int) -> Iterator[int]:
        """The sweeps that run before one, the latest first: in a loop, those of the pass before too."""
        body = next((b for b in self.bodies if here in b), [])
        yield from (i for i in reversed(body) if i < here)
        yield from (i for i in reversed(body) if i >= here)
        yield from (i for i in reversed(range(here)) if i not in body)


def _moved(plans: Iterable[SweepPlan]) -> Step:
    """A step with the messages and copies of a rank before a sweep."""
    own = list(plans)
    return Step(
        kind="sweep",
        depth=0,
        statements=(),
        messages=sum(len(plan.sends) for plan in own),
        bytes_sent=sum(plan.bytes_sent for plan in own),
        bytes_not_packed=sum(plan.bytes_not_packed for plan in own),
        bytes_copied=sum(plan.bytes_copied for plan in own),
    )


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


def _sum(root: Expr) -> str:
    """A reduction, without its terms where they are long."""
    said = text(root)
    return said if len(said) <= LONG else f"{root.attribute[0]}(...)"


def _plain(root: Expr) -> str:
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
