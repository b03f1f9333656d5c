"""Large expressions group by group: loops that keep values of short pieces of rows for later ones.

One loop over all of a large right-hand side loads from more rows than there are registers for their
addresses, let alone for the values. The differences of one array at several places come first, array by
array, and of each array those along one axis after those along another; the last loop combines what they
left. It all compiles in a fraction of the time, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from halocline.compile.contract import depth
from halocline.lang.expression import Expr, walk

LOADS = 64  # values that one loop may load; measured: docs/performance.md
ROWS = 12  # that a loop of a group may load from: registers for their addresses; measured there too

# The axes, other than that of the row, along which cells lie away; () for those of the row itself.
Direction = tuple[int, ...]


def split(roots: Sequence[Expr]) -> list[list[Expr]]:
    """What earlier loops keep for later ones, in order: the largest expressions of one array alone that read
    it at several places. Empty where one loop does as well.
    """
    depths: dict[int, int] = {}
    arrays: dict[int, frozenset[int]] = {}  # that each value is made of, by identity
    loads = 0
    for current in walk(roots):
        if current.op in ("read", "stage"):
            loads += 1
            arrays[id(current)] = frozenset((id(current.attribute[0]),))
        else:
            arrays[id(current)] = frozenset().union(*(arrays[id(a)] for a in current.args))
    if loads <= LOADS:
        return []
    groups: dict[int, dict[int, Expr]] = {}
    for current in walk(roots):
        if len(arrays[id(current)]) < 2:
            continue
        for value in current.args:
            if len(arrays[id(value)]) == 1 and depth(value, depths) == 3 and _places((value,)) > 1:
                (array,) = arrays[id(value)]
                groups.setdefault(array, {})[id(value)] = value
    if len(groups) < 2:
        return []
    return [loop for group in groups.values() for loop in _loops(_needed(group, depths), depths)]


def _places(roots: Sequence[Expr]) -> int:
    return sum(leaf.op in ("read", "stage") for leaf in walk(roots))


def _needed(group: dict[int, Expr], depths: dict[int, int]) -> list[Expr]:
    """A group without what is a single operation on others of it: that is done again where it is needed."""
    return [
        value
        for value in group.values()
        if not all(id(arg) in group for arg in value.args if depth(arg, depths) == 3)
    ]


def _loops(group: list[Expr], depths: dict[int, int]) -> list[list[Expr]]:
    """A group of one array as one loop, or, where that would load from many rows, direction by direction. The
    last direction's loop completes what is made of several."""
    found: dict[int, frozenset[Direction]] = {}  # where values of the row come from, by identity
    rows: set[tuple[int, ...]] = set()
    for current in walk(group):
        if current.op in ("read", "stage"):
            row = current.attribute[-1][:-1]
            rows.add(row)
            direction = tuple(axis for axis, step in enumerate(row) if step)
            found[id(current)] = frozenset((direction,) if direction else ())
        else:
            found[id(current)] = frozenset().union(*(found[id(arg)] for arg in current.args))
    if len(rows) <= ROWS:
        return [group]
    # diagonals between others, so that what comes last is loaded from few rows
    directions = sorted(set().union(*found.values()), key=lambda d: (d[-1], -len(d)))
    last = len(directions) - 1

    def loop(value: Expr) -> int:
        """The number of the loop that computes a value."""
        several = found[id(value)]
        return last if len(several) > 1 else directions.index(next(iter(several))) if several else 0

    kept: list[dict[int, Expr]] = [{} for _ in directions]
    for value in group:
        kept[loop(value)][id(value)] = value
    for current in walk(group):
        for arg in current.args:
            here = loop(arg)
            if loop(current) != here and depth(arg, depths) == 3 and arg.op not in ("read", "stage"):
                kept[here][id(arg)] = arg
    return [list(values.values()) for values in kept if values]
