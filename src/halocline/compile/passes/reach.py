"""Reach of reads: the points around a grid point whose values are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel

Places = frozenset[ir.Offset]

# Offsets encoded as integers, for fast sums of millions of offsets. Every axis has fewer than SPAN cells.
Codes = frozenset[int]
SPAN = 1 << 40

# Points at which values are needed: offsets relative to the points of a result, and the axes along which the
# result is staggered. A staggered result has one more point at the upper walls of these axes.
Points = frozenset[tuple[ir.Offset, tuple[bool, ...]]]

Result = ir.Store | ir.Reduce


def sums(a: ir.Offset, b: ir.Offset) -> ir.Offset:
    """Return the sum of two offsets."""
    return tuple(p + q for p, q in zip(a, b, strict=True))


def encoded(offset: ir.Offset) -> int:
    """Return an offset encoded as an integer."""
    code = 0
    for o in offset:
        code = code * SPAN + o
    return code


@cache
def decoded(code: int, ndim: int) -> ir.Offset:
    """Return the offset that an integer encodes."""
    components = []
    for _ in range(ndim):
        o = (code + SPAN // 2) % SPAN - SPAN // 2
        components.append(o)
        code = (code - o) // SPAN
    return tuple(reversed(components))


def add_reads(kernel: Kernel, root: int, at: Codes, reads: dict[str, Codes]) -> None:
    """Add to `reads` the offsets at which arrays are read for a value at the encoded offsets `at`."""
    codes_by_array: dict[str, set[int]] = {}
    for array, offset in kernel.loads((root,)):
        codes_by_array.setdefault(array, set()).add(encoded(offset))
    for array, codes in codes_by_array.items():
        reads[array] = reads.get(array, frozenset()) | _all_sums(at, frozenset(codes))


@lru_cache(maxsize=1024)
def _all_sums(at: Codes, codes: Codes) -> Codes:
    """Return the sums of all pairs of codes.

    The sums are cached, since they recur for every result of a kernel. For example, the components of a flux
    read many arrays at the same places.
    """
    return at if codes == {0} else frozenset({a + b for a in at for b in codes})


def results(kernel: Kernel) -> list[Result]:
    """Return the stores and reductions of a kernel without nests."""
    return [s for s in kernel.body if isinstance(s, (ir.Store, ir.Reduce))]


def staggering(kernel: Kernel, result: ir.Statement) -> tuple[bool, ...]:
    """Return the staggering of the points of a result, per axis."""
    if isinstance(result, ir.Store):
        return kernel.array[result.array].staggered
    assert isinstance(result, ir.Reduce)
    return result.place


@dataclass(frozen=True)
class Reach:
    """Reads of a sweep, relative to one grid point.

    Parameters
    ----------
    points : dict of str to Points
        Points at which each array is read, through all stages.
    per_result : tuple of (Store or Reduce, dict)
        Each result, with the offsets at which it reads each field.
    """

    points: dict[str, Points]
    per_result: tuple[tuple[Result, dict[str, Places]], ...]


def reach(kernel: Kernel) -> Reach:
    """Return the reads of the results of a kernel without nests, including stages."""
    stages = [s for s in kernel.body if isinstance(s, ir.Stage)]
    stage_arrays = {stage.array for stage in stages}
    points: dict[str, Points] = {}
    per_result = []
    for result in results(kernel):
        codes: dict[str, Codes] = {}
        add_reads(kernel, result.value, frozenset({0}), codes)
        for stage in reversed(stages):
            if stage.array in codes:
                add_reads(kernel, stage.value, codes[stage.array], codes)
        places_by_array = {
            array: frozenset(decoded(code, kernel.ndim) for code in array_codes)
            for array, array_codes in codes.items()
        }
        staggered = staggering(kernel, result)
        for array, places in places_by_array.items():
            points[array] = points.get(array, frozenset()) | {(o, staggered) for o in places}
        per_result.append(
            (result, {a: places for a, places in places_by_array.items() if a not in stage_arrays})
        )
    return Reach(points, tuple(per_result))
