"""Sides of branches that are computed only if a cell needs them.

On a CPU, a loop over a piece of a row computes the values that only one side needs. The loop is skipped if no
cell of the piece selects this side. On a device, only the threads whose cells select the side compute these
values. Values that both sides or other results need are computed before the branch. The selection itself
remains, so that the bits are the same as if both sides were computed.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Array, Kernel, Table, Value, below, substituted, substituted_in
from halocline.compile.passes.inline import EXPENSIVE

PIECE = 128  # elements of a row per decision; in measurements, 64 and 256 are slower
MIN_COST_OF_SIDE = 16  # minimum operations per cell of a side with a separate loop; see docs/performance.md


@dataclass(frozen=True)
class BranchGroup:
    """Selections by one condition.

    Parameters
    ----------
    condition : int
    values : tuple of int
        Numbers of the selections.
    sides : (set, set)
        Values that only the first sides of the selections need, and values that only the second sides need.
    """

    condition: int
    values: tuple[int, ...]
    sides: tuple[frozenset[int], frozenset[int]]


def find_branches(
    values: Sequence[Value], results: Collection[int], known: Container[int] = ()
) -> BranchGroup | None:
    """Return the branches of one condition with an expensive side; None if there are none.

    If several conditions have an expensive side, the result contains the condition that is evaluated last,
    since its sides may contain the other branches.
    """
    order = below(values, results, known)
    conditions: dict[int, list[int]] = {}
    for number in order:
        value = values[number]
        if value.op == "branch" and value.depth == POINT:
            conditions.setdefault(value.args[0], []).append(number)
    for condition, selections in reversed(conditions.items()):
        if set(below(values, (condition,))).isdisjoint(selections):
            sides = [_exclusive_values(values, order, results, selections, side) for side in (1, 2)]
            if max(_cost(values, side) for side in sides) >= MIN_COST_OF_SIDE:
                return BranchGroup(condition, tuple(selections), (sides[0], sides[1]))
    return None


def _exclusive_values(
    values: Sequence[Value], order: list[int], results: Collection[int], selections: list[int], side: int
) -> frozenset[int]:
    """Return the values that only side `side` (1 or 2) of these selections needs."""
    users: dict[int, list[int]] = {}
    for number in order:
        for arg in values[number].args:
            users.setdefault(arg, []).append(number)
    side_values = {values[number].args[side] for number in selections}
    other_arguments = {arg for number in selections for n, arg in enumerate(values[number].args) if n != side}
    exclusive: set[int] = set()
    for number in reversed(order):
        if number in results or number in other_arguments or values[number].depth < POINT:
            continue
        consumers = users.get(number, [])
        if consumers and all(
            user in exclusive or (user in selections and number in side_values) for user in consumers
        ):
            exclusive.add(number)
    return frozenset(exclusive)


def _cost(values: Sequence[Value], numbers: Iterable[int]) -> int:
    return sum(EXPENSIVE.get(values[number].op, 1) for number in numbers if values[number].args)


# -- CPUs --------------------------------------------------------------------------------------------


def branches(kernel: Kernel) -> Kernel:
    """Split every loop along a row that computes an expensive side, so that this side can be skipped."""
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        return replace(nest, body=ir.replaced(nest.body, ir.Strip, _Loops(number, table).split_loop))

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


class _Loops:
    """Loops along the rows of a nest."""

    def __init__(self, nest: int, table: Table) -> None:
        self.nest, self.table = nest, table
        self.branches = 0

    def split_loop(self, strip: ir.Strip) -> ir.Body:
        """Split a loop into loops for the condition and shared values, for each side, and for the rest."""
        results_of_loop = ir.roots(strip.body)
        branch = find_branches(self.table.values, results_of_loop)
        if branch is None:
            return (strip,)
        number, self.branches = self.branches, self.branches + 1
        loads = self._shared(branch, results_of_loop)
        mask, restored = self._mask(branch.condition)
        before = tuple(self._store(load, value) for value, load in loads.items())
        decide = ir.Strip((*before, mask, ir.MarkSelection(number, branch.condition)), marks=(number,))
        loops = self.split_loop(decide)
        side_values: dict[int, int] = {}
        for side, holds in ((0, True), (1, False)):
            ends = dict.fromkeys(self.table.values[n].args[1 + side] for n in branch.values)
            results = {n: self._load(self.table.values[n].dtype) for n in ends if n in branch.sides[side]}
            if results:
                inside = substituted(self.table, results, loads)
                stores = tuple(map(self._store, results.values(), inside))
                loops += (ir.IfSelected(number, holds, self.split_loop(ir.Strip(stores))),)
                side_values |= results
        substitutions = {**loads, **side_values, branch.condition: restored}
        body = substituted_in(self.table, strip.body, substitutions)
        return loops + self.split_loop(replace(strip, body=body))

    def _shared(self, branch: BranchGroup, results: Collection[int]) -> dict[int, int]:
        """Return the values that the loop of the condition stores for later loops, each with its load."""
        values = self.table.values
        within = branch.sides[0] | branch.sides[1]
        frontier = {arg for n in within for arg in values[n].args} - within
        first = set(below(values, {branch.condition, *frontier}))
        order = below(values, results)
        later = {arg for n in order if n not in first for arg in values[n].args}
        return {
            n: self._load(values[n].dtype)
            for n in order
            if n in first
            and n in later | frontier
            and values[n].depth == POINT
            and values[n].op != "load"
            and not values[n].condition
        }

    def _load(self, dtype: str) -> int:
        """Return the number of a load from a new array of stored values."""
        count = sum(name.startswith(f"{self.nest}:intermediate") for name in self.table.arrays)
        name = f"{self.nest}:intermediate{count}"
        self.table.arrays[name] = Array(name, dtype, "intermediate", length=PIECE)
        return self.table.add("load", (), (name, ()), dtype, POINT)

    def _store(self, load: int, value: int) -> ir.Store:
        """Return the statement that stores a value in the array from which the value is loaded later."""
        return ir.Store(self.table.values[load].attribute[0], value)

    def _mask(self, condition: int) -> tuple[ir.Store, int]:
        """Return a statement that stores the condition as a number, and the condition that is read back."""
        dtype, depth = self.table.values[condition].dtype, self.table.values[condition].depth
        one, zero = (self.table.add("const", (), number, "float64", 0) for number in (1.0, 0.0))
        load = self._load(dtype)
        number = self.table.add("where", (condition, one, zero), None, dtype, depth)
        return self._store(load, number), self.table.add("ne", (load, zero), None, dtype, POINT)


# -- devices -----------------------------------------------------------------------------------------


def branch_statements(kernel: Kernel) -> Kernel:
    """Place sides of branches in conditional statements within each cell."""
    if not any(value.op == "branch" for value in kernel.values):
        return kernel
    outside = frozenset(n for s in ir.flat(kernel.body) if isinstance(s, ir.Let) for n in s.values)

    def change(let: ir.Let) -> list[ir.Statement]:
        return _parts(kernel, list(let.values), outside - set(let.values))

    return replace(kernel, body=ir.replaced(kernel.body, ir.Let, change))


def _parts(kernel: Kernel, order: list[int], known: frozenset[int]) -> list[ir.Statement]:
    """Return the statements that compute values in the order `order`, including branches."""
    values = kernel.values
    operands = {arg for n in order for arg in values[n].args}
    branch = find_branches(values, [n for n in order if n not in operands], known)
    if branch is None:
        return [ir.Let(tuple(order))] if order else []
    inner = branch.sides[0] | branch.sides[1]
    inputs = {
        branch.condition,
        *(arg for n in (*inner, *branch.values) for arg in values[n].args),
    } - inner
    required = set(below(values, inputs, known))
    rest = [n for n in order if n not in inner and n not in branch.values]
    before, after = [n for n in rest if n in required], [n for n in rest if n not in required]
    computed = known | set(before)
    sides = [tuple(_parts(kernel, [n for n in order if n in side], computed)) for side in branch.sides]
    statements = _parts(kernel, before, known)
    statements.append(ir.Branch(branch.condition, branch.values, sides[0], sides[1]))
    return statements + _parts(kernel, after, computed | set(branch.values))
