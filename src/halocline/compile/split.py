"""Large expressions group by group: loops that keep values of short pieces of rows for a last one.

One loop over all of a large right-hand side loads from more rows than there are registers for their
addresses, let alone for the values. The differences of one array at several places come first, array by
array; the last loop combines what they left. It all compiles in a fraction of the time, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from halocline.compile.contract import depth
from halocline.lang.expression import Expr, walk

LOADS = 64  # values that one loop may load; measured: docs/performance.md


def split(roots: Sequence[Expr]) -> list[list[Expr]]:
    """What earlier loops keep for the last: for each array the largest expressions of it alone that read it
    at several places. Empty where one loop does as well.
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
    return [list(group.values()) for group in groups.values()] if len(groups) > 1 else []


def _places(roots: Sequence[Expr]) -> int:
    return sum(leaf.op in ("read", "stage") for leaf in walk(roots))
