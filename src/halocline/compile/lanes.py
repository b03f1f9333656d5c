"""What the values of a loop along a row have in common: shifts of one another.

A difference along the row, or across it and another axis, takes values of several places along the row.
Loaded at each place, most of them lie across two cache lines. A loop of vectors loads each row once, does at
each place what needs no other (a *column*), and puts vectors of other places together from those side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halocline.compile.contract import depth
from halocline.lang.dtype import kept_dtype
from halocline.lang.expression import Expr, read, walk, with_arguments

# Operations that vectors have.
OPERATIONS = {"read", "add", "sub", "mul", "neg", "fma"}
BYTES = 32  # of a vector at least


@dataclass(frozen=True)
class Columns:
    """The columns of a loop.

    Parameters
    ----------
    ahead : list of Expr
        At the place of the loop itself. They are computed a vector ahead, since others are shifts of them.
    shifted : dict
        The values that are ahead's, by identity: the number of the column and the step along the row.
    first : int
        Vectors that the loop begins ahead of what it keeps: 2 where shifts reach back, 1 where they reach
        forward alone, 0 where nothing is a shift of another.
    """

    ahead: list[Expr]
    shifted: dict[int, tuple[int, int]]
    first: int


def columns(group: Sequence[Expr], known: frozenset[int], types: dict[int, str | None]) -> Columns | None:
    """The columns of a group of values that are kept; None where vectors do not have what it takes.

    Parameters
    ----------
    group : sequence of Expr
        What the loop computes.
    known : frozenset of int
        Values that it need not compute, by identity: no columns.
    types : dict
        What `kept_dtype` remembers.
    """
    depths: dict[int, int] = {}
    values = [v for v in walk(group, known) if depth(v, depths) == 3]
    taken = [arg for v in values for arg in v.args if depth(arg, depths) == 3]  # what is known among them
    dtypes = {kept_dtype(v, types) for v in (*values, *taken)}
    if any(v.op not in OPERATIONS for v in values) or len(dtypes) != 1:
        return None
    steps: dict[int, int | None] = {}  # where along the row a value is a column, by identity
    bases: dict[int, Expr] = {}  # the same at the place of the loop
    for value in values:
        if value.op == "read":
            field, version, offset = value.attribute
            steps[id(value)] = offset[-1]
            bases[id(value)] = read(field, version, (*offset[:-1], 0))
            continue
        inner = [arg for arg in value.args if depth(arg, depths) == 3]
        where = {steps.get(id(arg)) for arg in inner}  # what is known is no column
        step = where.pop() if len(where) == 1 else None
        steps[id(value)] = step
        if step is not None:
            bases[id(value)] = with_arguments(value, tuple(bases.get(id(arg), arg) for arg in value.args))
    needed = [v for v in group if steps.get(id(v)) is not None]
    for value in values:
        if steps[id(value)] is None:
            needed += [arg for arg in value.args if steps.get(id(arg)) is not None]
    places: dict[int, set[int]] = {}
    for value in needed:
        step = steps[id(value)]
        assert step is not None
        places.setdefault(id(bases[id(value)]), set()).add(step)
    item = 4 if dtypes == {"float32"} else 8
    furthest = max((abs(s) for found in places.values() for s in found), default=0)
    if furthest > BYTES // item:
        return None
    if furthest == 0:
        return Columns([], {}, 0)

    def rows(base: Expr) -> set[int]:
        return {id(leaf) for leaf in walk((base,)) if leaf.op == "read"}

    # what is needed here alone is done ahead too if its rows are loaded there anyway
    found = {id(bases[id(value)]): bases[id(value)] for value in needed}
    loaded = set().union(*(rows(base) for n, base in found.items() if places[n] != {0}))
    ahead = [base for base in found.values() if rows(base) <= loaded]
    number = {id(base): n for n, base in enumerate(ahead)}
    shifted = {
        id(value): (number[id(bases[id(value)])], steps[id(value)] or 0)
        for value in needed
        if id(bases[id(value)]) in number
    }
    return Columns(ahead, shifted, 2 if any(step < 0 for _, step in shifted.values()) else 1)
