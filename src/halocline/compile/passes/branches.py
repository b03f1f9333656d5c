"""Sides of branches that are not computed where no cell needs them.

What a side alone needs is computed where some cell takes it: on a processor in a loop of its own over a piece
of a row, which is left out where the condition holds in all cells of the piece, or in none; on a device by
the threads whose cells take it. What both sides need, or others, is computed before. The selection itself
stays, so that the bits are those of computing both.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Array, Kernel, Table, Value, below, substituted, substituted_in
from halocline.compile.passes.inline import EXPENSIVE

PIECE = 128  # elements of a row that are decided at a time: measured, 64 and 256 are slower
WORTH = 16  # operations at a cell from which a side gets a loop of its own; see docs/performance.md


@dataclass(frozen=True)
class Group:
    """Selections of one condition.

    Parameters
    ----------
    condition : int
    values : tuple of int
        The selections.
    sides : (set, set)
        What only their first sides need, and only their second ones.
    """

    condition: int
    values: tuple[int, ...]
    sides: tuple[frozenset[int], frozenset[int]]


def group(values: Sequence[Value], wanted: Collection[int], known: Container[int] = ()) -> Group | None:
    """Of the branches with a side that pays to leave out, the one that is evaluated last: others may be
    inside it."""
    order = below(values, wanted, known)
    conditions: dict[int, list[int]] = {}
    for number in order:
        value = values[number]
        if value.op == "branch" and value.depth == POINT:
            conditions.setdefault(value.args[0], []).append(number)
    for condition, found in reversed(conditions.items()):
        if set(below(values, (condition,))).isdisjoint(found):
            sides = [_alone(values, order, wanted, found, side) for side in (1, 2)]
            if max(_cost(values, side) for side in sides) >= WORTH:
                return Group(condition, tuple(found), (sides[0], sides[1]))
    return None


def _alone(
    values: Sequence[Value], order: list[int], wanted: Collection[int], found: list[int], side: int
) -> frozenset[int]:
    """What nothing but one side of these selections needs."""
    users: dict[int, list[int]] = {}
    for number in order:
        for arg in values[number].args:
            users.setdefault(arg, []).append(number)
    heads = {values[number].args[side] for number in found}
    others = {arg for number in found for n, arg in enumerate(values[number].args) if n != side}
    alone: set[int] = set()
    for number in reversed(order):
        if number in wanted or number in others or values[number].depth < POINT:
            continue
        by = users.get(number, [])
        if by and all(user in alone or (user in found and number in heads) for user in by):
            alone.add(number)
    return frozenset(alone)


def _cost(values: Sequence[Value], found: Iterable[int]) -> int:
    return sum(EXPENSIVE.get(values[number].op, 1) for number in found if values[number].args)


# -- processors --------------------------------------------------------------------------------------


def branches(kernel: Kernel) -> Kernel:
    """Every loop along a row with an expensive side as several, of which some may be left out."""
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(number: int, nest: ir.Nest) -> ir.Nest:
        return replace(nest, body=ir.replaced(nest.body, ir.Strip, _Loops(number, table).several))

    body = ir.with_nests(kernel.body, change)
    return replace(kernel, arrays=tuple(table.arrays.values()), values=tuple(table.values), body=body)


class _Loops:
    """The loops along the rows of a nest."""

    def __init__(self, nest: int, table: Table) -> None:
        self.nest, self.table = nest, table
        self.branches = 0

    def several(self, strip: ir.Strip) -> ir.Body:
        """A loop as several: what decides a branch and what its sides take, each side, and the rest."""
        wanted = ir.roots(strip.body)
        found = group(self.table.values, wanted)
        if found is None:
            return (strip,)
        number, self.branches = self.branches, self.branches + 1
        loads = self._shared(found, wanted)
        mask, again = self._mask(found.condition)
        before = tuple(self._store(load, value) for value, load in loads.items())
        decide = ir.Strip((*before, mask, ir.Mark(number, found.condition)), marks=(number,))
        made = self.several(decide)
        heads: dict[int, int] = {}
        for side, holds in ((0, True), (1, False)):
            ends = dict.fromkeys(self.table.values[n].args[1 + side] for n in found.values)
            results = {n: self._load(self.table.values[n].dtype) for n in ends if n in found.sides[side]}
            if results:
                inside = substituted(self.table, results, loads)
                stores = tuple(map(self._store, results.values(), inside))
                made += (ir.Needed(number, holds, self.several(ir.Strip(stores))),)
                heads |= results
        instead = {**loads, **heads, found.condition: again}
        body = substituted_in(self.table, strip.body, instead)
        return made + self.several(replace(strip, body=body))

    def _shared(self, found: Group, wanted: Collection[int]) -> dict[int, int]:
        """Values that a loop before the branch keeps, since its sides or the rest take them, as loads."""
        values = self.table.values
        within = found.sides[0] | found.sides[1]
        frontier = {arg for n in within for arg in values[n].args} - within
        first = set(below(values, {found.condition, *frontier}))
        order = below(values, wanted)
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
        """A load from a new array that keeps values."""
        count = sum(name.startswith(f"{self.nest}:kept") for name in self.table.arrays)
        name = f"{self.nest}:kept{count}"
        self.table.arrays[name] = Array(name, dtype, "kept", length=PIECE)
        return self.table.add("load", (), (name, ()), dtype, POINT)

    def _store(self, load: int, value: int) -> ir.Store:
        """A value goes where it is loaded from later."""
        return ir.Store(self.table.values[load].attribute[0], value)

    def _mask(self, condition: int) -> tuple[ir.Store, int]:
        """A condition is kept as a number; and as it is made of that number again."""
        dtype, depth = self.table.values[condition].dtype, self.table.values[condition].depth
        one, zero = (self.table.add("const", (), number, "float64", 0) for number in (1.0, 0.0))
        load = self._load(dtype)
        number = self.table.add("where", (condition, one, zero), None, dtype, depth)
        return self._store(load, number), self.table.add("ne", (load, zero), None, dtype, POINT)


# -- devices -----------------------------------------------------------------------------------------


def branched(kernel: Kernel) -> Kernel:
    """The values of each cell, with sides of branches where they are needed."""
    if not any(value.op == "branch" for value in kernel.values):
        return kernel
    outside = frozenset(n for s in ir.flat(kernel.body) if isinstance(s, ir.Let) for n in s.values)

    def change(let: ir.Let) -> list[ir.Statement]:
        return _parts(kernel, list(let.values), outside - set(let.values))

    return replace(kernel, body=ir.replaced(kernel.body, ir.Let, change))


def _parts(kernel: Kernel, order: list[int], known: frozenset[int]) -> list[ir.Statement]:
    """Values in this order, with branches among them."""
    values = kernel.values
    used = {arg for n in order for arg in values[n].args}
    found = group(values, [n for n in order if n not in used], known)
    if found is None:
        return [ir.Let(tuple(order))] if order else []
    within = found.sides[0] | found.sides[1]
    taken = {found.condition, *(arg for n in (*within, *found.values) for arg in values[n].args)} - within
    needed = set(below(values, taken, known))
    rest = [n for n in order if n not in within and n not in found.values]
    before, after = [n for n in rest if n in needed], [n for n in rest if n not in needed]
    have = known | set(before)
    sides = [tuple(_parts(kernel, [n for n in order if n in side], have)) for side in found.sides]
    made = _parts(kernel, before, known)
    made.append(ir.Branch(found.condition, found.values, sides[0], sides[1]))
    return made + _parts(kernel, after, have | set(found.values))
