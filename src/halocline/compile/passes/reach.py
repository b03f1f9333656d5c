"""Where values are needed around a point, and what is read for that."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Offset, Reduce, Stage, Statement, Store

Places = frozenset[Offset]

# Where values are needed: offsets, each from the points of a result, which has one more of them at the upper
# walls of the axes that it is staggered along.
Points = frozenset[tuple[Offset, tuple[bool, ...]]]

Result = Store | Reduce


def sums(a: Offset, b: Offset) -> Offset:
    """The sum of two offsets."""
    return tuple(p + q for p, q in zip(a, b, strict=True))


def demanded(kernel: Kernel, root: int, at: Collection[Offset], wanted: dict[str, Places]) -> None:
    """Add the offsets at which arrays are read where a value is needed at some offsets."""
    found: dict[str, set[Offset]] = {}
    for array, offset in kernel.loads((root,)):
        found.setdefault(array, set()).add(offset)
    for array, offsets in found.items():
        more = {sums(a, b) for a in at for b in offsets}
        wanted[array] = wanted.get(array, frozenset()) | more


def results(kernel: Kernel) -> list[Result]:
    """What a kernel stores and reduces, where it has no nests yet."""
    return [s for s in kernel.body if isinstance(s, (Store, Reduce))]


def staggering(kernel: Kernel, result: Statement) -> tuple[bool, ...]:
    """The axes that the points of a result are staggered along."""
    if isinstance(result, Store):
        return kernel.array[result.array].staggered
    assert isinstance(result, Reduce)
    return result.place


@dataclass(frozen=True)
class Reach:
    """What a sweep reads for one point.

    Parameters
    ----------
    points : dict of str to Points
        By array, through all stages.
    per_result : tuple of (Store or Reduce, dict)
        The offsets of each field that each result reads alone.
    """

    points: dict[str, Points]
    per_result: tuple[tuple[Result, dict[str, Places]], ...]


def reach(kernel: Kernel) -> Reach:
    """What the results of a kernel without nests read, stages included."""
    stages = [s for s in kernel.body if isinstance(s, Stage)]
    kept = {stage.array for stage in stages}
    points: dict[str, Points] = {}
    per_result = []
    for result in results(kernel):
        wanted: dict[str, Places] = {}
        demanded(kernel, result.value, {(0,) * kernel.ndim}, wanted)
        for stage in reversed(stages):
            if stage.array in wanted:
                demanded(kernel, stage.value, wanted[stage.array], wanted)
        mine = staggering(kernel, result)
        for array, offsets in wanted.items():
            points[array] = points.get(array, frozenset()) | {(o, mine) for o in offsets}
        per_result.append((result, {a: offsets for a, offsets in wanted.items() if a not in kept}))
    return Reach(points, tuple(per_result))
