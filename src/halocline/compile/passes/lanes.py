"""What the values of a loop along a row have in common: shifts of one another.

A difference along the row, or across it and another axis, takes values of several places along the row.
Loaded at each place, most of them lie across two cache lines. A loop of vectors loads each row once, does at
each place what needs no other (a *column*), and puts vectors of other places together from those side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Kernel, Table, below, substituted_in

# Operations that vectors have; loads from fields alone, which go on beyond the ends of a row.
OPERATIONS = {"load", "add", "sub", "mul", "neg", "fma"}
BYTES = 32  # of a vector at least


@dataclass(frozen=True)
class Columns:
    """The columns of a loop.

    Parameters
    ----------
    ahead : list of int
        At the place of the loop itself. They are computed a vector ahead, since others are shifts of them.
    shifted : dict
        The values that are ahead's: the number of the column and the step along the row.
    first : int
        Vectors that the loop begins ahead of what it keeps: 2 where shifts reach back, 1 where they reach
        forward alone, 0 where nothing is a shift of another.
    """

    ahead: list[int]
    shifted: dict[int, tuple[int, int]]
    first: int


def lanes(kernel: Kernel) -> Kernel:
    """Each loop that keeps values for others as a loop of vectors, where vectors have what it takes."""
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(strip: ir.Strip) -> ir.Body:
        group = ir.roots(strip.body)
        found = columns(table, group) if keeps(kernel, strip) else None
        if found is None:
            return (strip,)
        shifted = {
            number: table.copy(replace(table.values[number], op="shifted", attribute=at), ())
            for number, at in found.shifted.items()
        }
        dtype = table.values[group[0]].dtype
        body = substituted_in(table, strip.body, shifted)
        return (ir.Lanes(body, tuple(found.ahead), found.first, dtype, span=strip.span),)

    body = ir.replaced(kernel.body, ir.Strip, change)
    return replace(kernel, values=tuple(table.values), body=body)


def keeps(kernel: Kernel, strip: ir.Strip) -> bool:
    """Whether a loop keeps values for others."""
    return all(isinstance(s, ir.Store) and kernel.array[s.array].kind == "kept" for s in strip.body)


def columns(table: Table, group: Sequence[int]) -> Columns | None:
    """The columns of a group of values that are kept; None where vectors do not have what it takes."""

    def kind(number: int) -> str:
        """Of the array that a value is loaded from."""
        value = table.values[number]
        return table.arrays[value.attribute[0]].kind if value.op == "load" else ""

    order = [n for n in below(table.values, group) if table.values[n].depth == POINT]
    dtypes = {table.values[n].dtype for n in order}
    order = [n for n in order if kind(n) not in ("band", "kept")]
    possible = all(table.values[n].op in OPERATIONS and kind(n) in ("", "field") for n in order)
    if not possible or len(dtypes) != 1:
        return None
    steps, bases = _steps(table, order)
    needed = [n for n in group if steps.get(n) is not None]
    for number in order:
        if steps[number] is None:
            needed += [arg for arg in table.values[number].args if steps.get(arg) is not None]
    places: dict[int, set[int]] = {}
    for number in needed:
        places.setdefault(bases[number], set()).add(steps[number] or 0)
    item = 4 if dtypes == {"float32"} else 8
    furthest = max((abs(s) for found in places.values() for s in found), default=0)
    if furthest > BYTES // item:
        return None
    if furthest == 0:
        return Columns([], {}, 0)

    def rows(base: int) -> set[int]:
        return {n for n in below(table.values, (base,)) if table.values[n].op == "load"}

    # what is needed here alone is done ahead too if its rows are loaded there anyway
    loaded = set().union(*(rows(base) for base, at in places.items() if at != {0}))
    ahead = [base for base in places if rows(base) <= loaded]
    shifted = {n: (ahead.index(bases[n]), steps[n] or 0) for n in needed if bases[n] in ahead}
    return Columns(ahead, shifted, 2 if any(step < 0 for _, step in shifted.values()) else 1)


def _steps(table: Table, order: Sequence[int]) -> tuple[dict[int, int | None], dict[int, int]]:
    """Where along the row each value is a column, and the same column at the place of the loop."""
    steps: dict[int, int | None] = {}
    bases: dict[int, int] = {}
    for number in order:
        value = table.values[number]
        if value.op == "load":
            array, offset = value.attribute
            steps[number] = offset[-1]
            bases[number] = table.add("load", (), (array, (*offset[:-1], 0)), value.dtype, value.depth)
            continue
        inner = [arg for arg in value.args if table.values[arg].depth == POINT]
        where = {steps.get(arg) for arg in inner}  # what is kept, for one row or a band, is no column
        step = where.pop() if len(where) == 1 else None
        steps[number] = step
        if step is not None:
            bases[number] = table.like(value, tuple(bases.get(arg, arg) for arg in value.args))
    return steps, bases
