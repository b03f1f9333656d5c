"""Loops with explicit vectors, which compute values once and shift them along the row.

A derivative along the row, or a mixed derivative along the row and another axis, reads values at several
positions along the row. Most vectors that are loaded at these positions span two cache lines. A loop with
explicit vectors loads each row once. A *column* is a value whose loads all have the same position along the
row. The loop computes each column once, and assembles vectors of this value at other positions from adjacent
vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Kernel, Table, below, substituted_in

# Operations of vectors. Only fields are loaded, since they have memory beyond the ends of a row.
OPERATIONS = {"load", "add", "sub", "mul", "neg", "fma"}
BYTES = 32  # minimum vector length


@dataclass(frozen=True)
class Columns:
    """Columns of a loop.

    Parameters
    ----------
    bases : list of int
        Values at the current position of the loop. They are computed one vector ahead, since other values are
        shifted copies of these values.
    shifted : dict
        Values that are shifts of `bases`, with the index of the column and the step along the row.
    first : int
        Number of vectors by which the loop begins before the first result: 2 if shifts reach back, 1 if they
        only reach forward, 0 without shifts.
    """

    bases: list[int]
    shifted: dict[int, tuple[int, int]]
    first: int


def lanes(kernel: Kernel) -> Kernel:
    """Use explicit vectors in the loops that only store values for later loops.

    A loop is unchanged if explicit vectors do not support one of its operations.
    """
    table = Table(kernel.grid, kernel.arrays, kernel.values)

    def change(strip: ir.Strip) -> ir.Body:
        group = ir.roots(strip.body)
        layout = columns(table, group) if stores_intermediates(kernel, strip) else None
        if layout is None:
            return (strip,)
        shifted = {
            number: table.copy(replace(table.values[number], op="shifted", attribute=at), ())
            for number, at in layout.shifted.items()
        }
        dtype = table.values[group[0]].dtype
        body = substituted_in(table, strip.body, shifted)
        return (ir.Lanes(body, tuple(layout.bases), layout.first, dtype, span=strip.span),)

    body = ir.replaced(kernel.body, ir.Strip, change)
    return replace(kernel, values=tuple(table.values), body=body)


def stores_intermediates(kernel: Kernel, strip: ir.Strip) -> bool:
    """Return True if a loop only stores values for later loops."""
    return all(isinstance(s, ir.Store) and kernel.array[s.array].kind == "intermediate" for s in strip.body)


def columns(table: Table, group: Sequence[int]) -> Columns | None:
    """Return the columns of a group of stored values; None if explicit vectors do not support the group."""

    def kind(number: int) -> str:
        """Return the kind of the array from which a value is loaded; empty for other values."""
        value = table.values[number]
        return table.arrays[value.attribute[0]].kind if value.op == "load" else ""

    order = [n for n in below(table.values, group) if table.values[n].depth == POINT]
    dtypes = {table.values[n].dtype for n in order}
    order = [n for n in order if kind(n) not in ("band", "intermediate")]
    is_supported = all(table.values[n].op in OPERATIONS and kind(n) in ("", "field") for n in order)
    if not is_supported or len(dtypes) != 1:
        return None
    steps, bases = _steps(table, order)
    operands = [n for n in group if steps.get(n) is not None]
    for number in order:
        if steps[number] is None:
            operands += [arg for arg in table.values[number].args if steps.get(arg) is not None]
    places: dict[int, set[int]] = {}
    for number in operands:
        places.setdefault(bases[number], set()).add(steps[number] or 0)
    item = 4 if dtypes == {"float32"} else 8
    furthest = max((abs(s) for steps_of_base in places.values() for s in steps_of_base), default=0)
    if furthest > BYTES // item:
        return None
    if furthest == 0:
        return Columns([], {}, 0)

    def rows(base: int) -> set[int]:
        return {n for n in below(table.values, (base,)) if table.values[n].op == "load"}

    # values without a shift are also computed ahead if the loop loads their rows ahead in any case
    loaded = set().union(*(rows(base) for base, at in places.items() if at != {0}))
    one_ahead = [base for base in places if rows(base) <= loaded]
    shifted = {n: (one_ahead.index(bases[n]), steps[n] or 0) for n in operands if bases[n] in one_ahead}
    return Columns(one_ahead, shifted, 2 if any(step < 0 for _, step in shifted.values()) else 1)


def _steps(table: Table, order: Sequence[int]) -> tuple[dict[int, int | None], dict[int, int]]:
    """Return, for each value, its step along the row (None if it is no column), and its column at step 0."""
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
        argument_steps = {steps.get(arg) for arg in inner}  # stored values of a row or band are not columns
        step = argument_steps.pop() if len(argument_steps) == 1 else None
        steps[number] = step
        if step is not None:
            bases[number] = table.with_arguments(value, tuple(bases.get(arg, arg) for arg in value.args))
    return steps, bases
