"""The statements of device kernels: threads, the memory of a group, marches along an axis."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.compile.ir.statements import Body, Statement


@dataclass(frozen=True)
class Threads(Statement):
    """Each thread is at a cell; along the axis that it marches along, at several."""

    march: int | None


@dataclass(frozen=True)
class Inside(Statement):
    """Only threads whose cells are in the box."""

    body: Body


@dataclass(frozen=True)
class March(Statement):
    """The cells of a thread, one after the other; of `unroll` the instructions follow each other."""

    axis: int
    unroll: int
    body: Body


@dataclass(frozen=True)
class Share(Statement):
    """Room for a plane or tile in the memory that a group shares."""

    array: str


@dataclass(frozen=True)
class Gather(Statement):
    """All threads of a group read planes around them; none goes on before all are there."""

    planes: tuple[str, ...]


@dataclass(frozen=True)
class Point(Statement):
    """The address of the present cell in an array; to be written where it is a sink."""

    array: str
    sink: bool = False


@dataclass(frozen=True)
class Queue(Statement):
    """Registers that hold what an array has along the march."""

    array: str


@dataclass(frozen=True)
class Enter(Statement):
    """The queues of a thread as they are before its first cell, but for their last places."""

    queues: tuple[str, ...]


@dataclass(frozen=True)
class Advance(Statement):
    """Read the last place of a queue."""

    array: str


@dataclass(frozen=True)
class Step(Statement):
    """What is in a queue moves on by a place."""

    array: str


@dataclass(frozen=True)
class Tile(Statement):
    """Each group has a tile; `cells` of it along three axes."""

    cells: tuple[int, int, int]


@dataclass(frozen=True)
class Cells(Statement):
    """The cells of a nest around the tile, shared out among the threads of the group."""

    body: Body


@dataclass(frozen=True)
class Barrier(Statement):
    """No thread of a group goes on before all are here."""


@dataclass(frozen=True)
class Reset(Statement):
    """Each thread begins its part of a reduction."""

    number: int
    kind: str


@dataclass(frozen=True)
class Finish(Statement):
    """Each group leaves its part of the reductions of these kinds."""

    kinds: tuple[str, ...]
