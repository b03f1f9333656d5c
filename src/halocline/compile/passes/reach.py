"""Where values are needed around a point, and what is read for that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel

Places = frozenset[ir.Offset]

# Offsets as one number each, which add up as these do: there are millions of sums. No axis has as many cells.
Codes = frozenset[int]
SPAN = 1 << 40

# Where values are needed: offsets, each from the points of a result, which has one more of them at the upper
# walls of the axes that it is staggered along.
Points = frozenset[tuple[ir.Offset, tuple[bool, ...]]]

Result = ir.Store | ir.Reduce


def sums(a: ir.Offset, b: ir.Offset) -> ir.Offset:
    """The sum of two offsets."""
    return tuple(p + q for p, q in zip(a, b, strict=True))


def encoded(offset: ir.Offset) -> int:
    """An offset as a number."""
    code = 0
    for o in offset:
        code = code * SPAN + o
    return code


@cache
def decoded(code: int, ndim: int) -> ir.Offset:
    """The offset that a number stands for."""
    found = []
    for _ in range(ndim):
        o = (code + SPAN // 2) % SPAN - SPAN // 2
        found.append(o)
        code = (code - o) // SPAN
    return tuple(reversed(found))


def demanded(kernel: Kernel, root: int, at: Codes, wanted: dict[str, Codes]) -> None:
    """Add where arrays are read if a value is needed at some places, which are encoded offsets."""
    found: dict[str, set[int]] = {}
    for array, offset in kernel.loads((root,)):
        found.setdefault(array, set()).add(encoded(offset))
    for array, codes in found.items():
        wanted[array] = wanted.get(array, frozenset()) | _all_sums(at, frozenset(codes))


@lru_cache(maxsize=1024)
def _all_sums(at: Codes, codes: Codes) -> Codes:
    """Cached: components of a flux read the same places of many arrays, and do so for every result."""
    return at if codes == {0} else frozenset({a + b for a in at for b in codes})


def results(kernel: Kernel) -> list[Result]:
    """What a kernel stores and reduces, where it has no nests yet."""
    return [s for s in kernel.body if isinstance(s, (ir.Store, ir.Reduce))]


def staggering(kernel: Kernel, result: ir.Statement) -> tuple[bool, ...]:
    """The axes that the points of a result are staggered along."""
    if isinstance(result, ir.Store):
        return kernel.array[result.array].staggered
    assert isinstance(result, ir.Reduce)
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
    stages = [s for s in kernel.body if isinstance(s, ir.Stage)]
    kept = {stage.array for stage in stages}
    points: dict[str, Points] = {}
    per_result = []
    for result in results(kernel):
        codes: dict[str, Codes] = {}
        demanded(kernel, result.value, frozenset({0}), codes)
        for stage in reversed(stages):
            if stage.array in codes:
                demanded(kernel, stage.value, codes[stage.array], codes)
        wanted = {
            array: frozenset(decoded(code, kernel.ndim) for code in found) for array, found in codes.items()
        }
        mine = staggering(kernel, result)
        for array, places in wanted.items():
            points[array] = points.get(array, frozenset()) | {(o, mine) for o in places}
        per_result.append((result, {a: places for a, places in wanted.items() if a not in kept}))
    return Reach(points, tuple(per_result))
