"""Why a sweep reads as far around a cell as it does: the stages that lead there, one after another."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.passes.reach import results


@dataclass(frozen=True)
class Link:
    """Something that a sweep sets or reads, by name, and how many layers away from the cell that it sets."""

    name: str
    layers: int


@dataclass(frozen=True)
class Chain:
    """What leads farthest along an axis, in one direction.

    Parameters
    ----------
    axis : int
    side : int
        -1 or 1.
    links : tuple of Link
        First what is set, then stages, each read by what stands before it, and last the field.
    """

    axis: int
    side: int
    links: tuple[Link, ...]


def chains(staged: Kernel) -> tuple[Chain, ...]:
    """The chain of each side of the cell on which a sweep reads other cells through stages; where several are
    as long, one of them. `staged` is the kernel before nests, see `halocline.compile.sweep.SweepNests`."""
    sides = ((axis, side) for axis in range(staged.ndim) for side in (-1, 1))
    found = (_chain(staged, axis, side) for axis, side in sides)
    return tuple(c for c in found if c is not None and len(c.links) > 2 and c.links[-1].layers > 0)


def _chain(staged: Kernel, axis: int, side: int) -> Chain | None:
    """The farthest on one side; None where no field is read."""
    stages = [s for s in staged.body if isinstance(s, ir.Stage)]
    kept = {stage.array for stage in stages}
    far: dict[str, int] = {}  # how far away each array is read
    reader: dict[str, str | None] = {}  # and by which stage
    set_by: dict[str, str] = {}  # what is set, where no stage is between

    def read(value: int, at: int, stage: str | None, name: str) -> None:
        for array, offset in staged.loads((value,)):
            there = at + side * offset[axis]
            if there > far.get(array, there - 1):
                far[array], reader[array], set_by[array] = there, stage, name

    for result in results(staged):
        read(result.value, 0, None, getattr(result, "array", "a reduction"))
    for stage in reversed(stages):
        if stage.array in far:
            read(stage.value, far[stage.array], stage.array, set_by[stage.array])
    at = max((array for array in far if array not in kept), key=far.__getitem__, default=None)
    if at is None:
        return None
    first = Link(_plain(set_by[at]), 0)
    links: list[Link] = []
    while at is not None:
        links.append(Link(_plain(at), far[at]))
        at = reader[at]
    return Chain(axis, side, (first, *reversed(links)))


def _plain(name: str) -> str:
    """The user's name of a stage or field."""
    return name.partition(".")[0]
