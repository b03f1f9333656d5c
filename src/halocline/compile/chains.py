"""Chains of stages that determine the halo width of a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.reach import results


@dataclass(frozen=True)
class Link:
    """Array that a sweep sets or reads, and the distance of the read from the computed cell in layers."""

    name: str
    layers: int


@dataclass(frozen=True)
class Chain:
    """Chain of reads that extends farthest along one axis in one direction.

    Parameters
    ----------
    axis : int
    side : int
        -1 or 1.
    links : tuple of Link
        The array that the sweep sets, then stages, and last the field. Each link reads the next one.
    """

    axis: int
    side: int
    links: tuple[Link, ...]


def chains(staged: Kernel) -> tuple[Chain, ...]:
    """Return the longest chain of reads through stages, for each side on which a sweep reads other cells.

    If several chains of a side have the same length, the result contains one of them. `staged` is the kernel
    without nests, see `halocline.compile.sweep.SweepNests`.
    """
    sides = ((axis, side) for axis in range(staged.ndim) for side in (-1, 1))
    longest = (_chain(staged, axis, side) for axis, side in sides)
    return tuple(c for c in longest if c is not None and len(c.links) > 2 and c.links[-1].layers > 0)


def _chain(staged: Kernel, axis: int, side: int) -> Chain | None:
    """Return the longest chain of one side; None if the sweep reads no field."""
    stages = [s for s in staged.body if isinstance(s, ir.Stage)]
    stage_arrays = {stage.array for stage in stages}
    distances: dict[str, int] = {}  # largest distance of the reads of each array
    reader: dict[str, str | None] = {}  # stage with the farthest read of each array; None for a result
    set_by: dict[str, str] = {}  # result that depends on the farthest read of each array

    def read(value: int, at: int, stage: str | None, name: str) -> None:
        for array, offset in staged.loads((value,)):
            distance = at + side * offset[axis]
            if distance > distances.get(array, distance - 1):
                distances[array], reader[array], set_by[array] = distance, stage, name

    for result in results(staged):
        read(result.value, 0, None, getattr(result, "array", "a reduction"))
    for stage in reversed(stages):
        if stage.array in distances:
            read(stage.value, distances[stage.array], stage.array, set_by[stage.array])
    current = max(
        (array for array in distances if array not in stage_arrays), key=distances.__getitem__, default=None
    )
    if current is None:
        return None
    first = Link(_plain(set_by[current]), 0)
    links: list[Link] = []
    while current is not None:
        links.append(Link(_plain(current), distances[current]))
        current = reader[current]
    return Chain(axis, side, (first, *reversed(links)))


def _plain(name: str) -> str:
    """Return the name that the user gave to a stage or field."""
    return name.partition(".")[0]
