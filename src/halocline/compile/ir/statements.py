"""Statements of kernels, which have effects and form a tree.

Statements refer to values by number, and to arrays by name. A `Body` contains inner statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, fields, replace
from operator import is_
from typing import Any, ClassVar, TypeVar, dataclass_transform

Offset = tuple[int, ...]


@dataclass_transform(frozen_default=True)
class Statement:
    """Base class of all statements; each is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def name_of(statement: Statement) -> str:
    """Return the name of the kind of a statement in snake case: `open_sum` for `OpenSum`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(statement).__name__).lower()


Body = tuple[Statement, ...]
S = TypeVar("S", bound=Statement)


class Let(Statement):
    """Computation of values, in this order, for the following statements and the statements inside them."""

    values: tuple[int, ...]


class Store(Statement):
    """Store of a value to the current cell of an array; `origin` is the source line of the user."""

    array: str
    value: int
    origin: str = ""


class StoreCells(Statement):
    """Store of the values of adjacent cells of a row to an array, where these cells are in the box.

    `offset` is the position of the first of these cells relative to the first cell of the thread, along three
    axes.
    """

    array: str
    values: tuple[int, ...]
    offset: Offset
    origin: str = ""


STORES = (Store, StoreCells)


class Cell(Statement):
    """Body for one cell of a thread, which runs only if the cell is in the box.

    `offset` is the position of the cell relative to the first cell of the thread, along three axes.
    """

    offset: Offset
    body: Body


class Reduce(Statement):
    """Reduction of one value per cell into the result of reduction number `slot`.

    `place` is True for each axis along which the points are staggered.
    """

    slot: int
    kind: str  # "sum", "min", "max", "count" or "value"
    value: int
    place: tuple[bool, ...] = ()
    cell: Offset | None = None
    origin: str = ""


class Stage(Statement):
    """Named intermediate result; loads from its array read it.

    Passes either store it in a nest, or recompute it at each load. `storage` is the choice of the user:
    "auto", "inline" or "patch".
    """

    array: str
    value: int
    storage: str = "auto"
    origin: str = ""


class Slot(Statement):
    """Scratch memory that several stages use one after the other.

    Attributes
    ----------
    number : int
    item : int
        Bytes of an element.
    extra : tuple of int
        Points along each axis in addition to those of the patch.
    planes : int
        Number of planes of a ring along the first axis; 0 if the slot contains all planes of the patch.
    """

    number: int
    item: int
    extra: tuple[int, ...]
    planes: int = 0

    def points(self, patch: Sequence[int]) -> tuple[int, ...]:
        """Return the number of points along each axis for a patch."""
        first, *rest = (n + e for n, e in zip(patch, self.extra, strict=True))
        return (self.planes or first, *rest)


class Allocate(Statement):
    """Assignment of a stage to a slot.

    The memory covers the points of a patch. It also covers `extent` (lower, upper) additional points per
    axis, and `top` additional points at the upper walls. With `planes` > 0, it is a ring of this number of
    planes.
    """

    array: str
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    slot: int = 0
    planes: int = 0


@dataclass(frozen=True)
class StageUse:
    """Intermediate of a sweep in scratch memory.

    Parameters
    ----------
    array : str
        Array of the kernel: the name of the stage and a number.
    item : int
        Bytes of an element.
    extent : tuple of (int, int)
        Per axis, number of points below and above the patch.
    top : tuple of int
        Number of additional points at upper walls, per axis.
    first, last : int
        Indices of two loop nests of the sweep, from 0: the nest that stores the stage, and the last nest that
        reads it.
    planes : int
        Number of planes in the ring of the stage, if nests run plane by plane; 0 if all planes are stored at
        once.
    slot : int
        Index of the scratch array that contains the stage, see `Sweep.scratch`.
    """

    array: str
    item: int
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    first: int
    last: int
    planes: int = 0
    slot: int = 0

    @property
    def name(self) -> str:
        """Name of the stage in the program."""
        return self.array.partition(".")[0]

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Number of points below and above the patch per axis, including the points at upper walls."""
        return tuple((lo, hi + top) for (lo, hi), top in zip(self.extent, self.top, strict=True))

    @property
    def extra(self) -> tuple[int, ...]:
        """Points per axis in addition to those of the patch."""
        return tuple(map(sum, self.layers))


class Planes(Statement):
    """Loop along the first axis over all nests of a patch, plane by plane.

    In iteration k, every nest computes plane k + `Nest.planes_ahead`. The loop begins `before` planes below
    the patch. It ends `after` planes above the patch, or `after` + `top` planes at an upper wall.
    """

    body: Body
    before: int
    after: int
    top: int = 0


class Nest(Statement):
    """Loop nest over the points of a patch, and over additional points around it.

    `extent` is the number of additional points (lower, upper) per axis, and `top` the number at upper walls.

    `cell` is the global index of a single cell to compute; None for all cells. `planes_ahead` is the number
    of planes by which the nest is ahead of the results, if nests run plane by plane. If `whole_vectors` is
    True, the row length is rounded up to whole vectors. `kernel` is the number of the device kernel that
    computes the nest; the nests of one kernel may run in any order.
    """

    body: Body
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    cell: Offset | None = None
    planes_ahead: int | None = None
    whole_vectors: bool = False
    kernel: int | None = None


class Axis(Statement):
    """Loop over the cells of a nest along an axis of the generated code.

    Attributes
    ----------
    axes : tuple of int
        The axis. A loop of kind "thread" may have all axes. It then numbers the cells of the thread block row
        by row; without loops over thread blocks around it, those of the launch.
    kind : {"stream", "block", "thread"}
        "stream": one cell after the other. The other kinds exist only on devices. "block": each thread block
        computes `step` cells. "thread": each thread computes `step` adjacent cells of its block. The body
        runs only if the first of these cells is in the box of the kernel.
    step : int
        Number of cells; 0 if each launch determines it.
    """

    axes: tuple[int, ...]
    kind: str
    step: int
    body: Body


class Row(Statement):
    """Pointer to the current row of an array, or to the row at an offset along axes 0 and 1.

    `sink` is True for a row that the nest writes.
    """

    array: str
    offset: tuple[int, int]
    sink: bool = False


class Wrap(Statement):
    """Copy of the ends of a row to its halo at the opposite end, if a subdomain spans the last axis."""

    array: str
    lower: int
    upper: int


class Strip(Statement):
    """Vector loop over a stretch of the row.

    `span` names the stretch: "row" is the whole row, "piece", "line" and "block" are the current piece, line
    and block of `Pieces`, `Lines` and `RowBlocks`. `small_angles` is True if all angles of its sines and
    cosines are known to be small. `sums` are the numbers of the sums to which the loop adds. `marks` are the
    numbers of the branches whose conditions the loop records, see `MarkSelection`.
    """

    body: Body
    span: str = "row"
    small_angles: bool = False
    sums: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()


class Lanes(Statement):
    """Loop with explicit vectors over a stretch of the row, see `Strip`.

    The body `next_vector` computes `columns` one vector further along the row. The loop begins `first`
    vectors before the stretch, so that "shifted" values can be assembled from adjacent vectors.
    """

    body: Body
    columns: tuple[int, ...]
    first: int
    dtype: str
    next_vector: Body = ()
    span: str = "row"


class CheckAngles(Statement):
    """Loop that tests whether an angle of a stretch is outside the range of the fast functions."""

    angles: tuple[int, ...]
    body: Body = ()
    span: str = "row"


class ComputeInvariants(Statement):
    """Computation of values, and their storage in `array`, by a separate kernel."""

    array: str
    values: tuple[int, ...]


class SelectByAngles(Statement):
    """Selection of the body `small_angles` if `CheckAngles` found no large angle, else of `all_angles`."""

    small_angles: Body
    all_angles: Body


class MarkSelection(Statement):
    """Test of the condition of branch `number` in the cells of a stretch.

    The test sets one flag if the condition is true in any cell, and another flag if it is false in any cell.
    """

    number: int
    condition: int


class IfSelected(Statement):
    """Body that runs only if a cell of the stretch selects one side of branch `number`.

    The side is the first one if `holds` is True, else the second one.
    """

    number: int
    holds: bool
    body: Body


class Branch(Statement):
    """Selections by one condition; each side is computed only if the condition selects it."""

    condition: int
    values: tuple[int, ...]
    then: Body
    otherwise: Body


class Pieces(Statement):
    """Loop over pieces of `length` elements of a row."""

    body: Body
    length: int


class RowBlocks(Statement):
    """Loop over blocks of `length` elements of a row; blocks begin at multiples of `length`."""

    body: Body
    length: int


class Bands(Statement):
    """Loop over bands of `length` cells along the rows of a nest; `fill` runs once per band, then `body`.

    Bands begin at indices that are multiples of `length`.
    """

    fill: Body
    body: Body
    length: int


class Lines(Statement):
    """Loop over the cache lines of a stretch, with `length` elements each.

    `complete` runs for complete lines, `partial` for the incomplete lines at both ends.
    """

    complete: Body
    partial: Body
    length: int
    span: str = "row"


class Buffer(Statement):
    """Declaration of a "band", "intermediate" or "result" array."""

    array: str


class OpenSum(Statement):
    """Start of the summation for reduction `slot`, as sum `number` of the nest."""

    number: int
    slot: int


class LaneSums(Statement):
    """Declaration of sums with `length` partial sums each."""

    numbers: tuple[int, ...]
    length: int


class AddToSum(Statement):
    """Addition of the current element of `array` to a sum; `lanes` is True for a sum with partial sums."""

    number: int
    array: str
    lanes: bool = False


class AddLaneSums(Statement):
    """Addition of the partial sums of a sum to the sum itself."""

    number: int


class CloseSum(Statement):
    """Addition of a sum to its reduction; `array` contains the summands of the stretch."""

    number: int
    slot: int
    array: str


class ReduceBuffer(Statement):
    """Reduction of the values of a piece, or of a block of lines, into reduction `slot`."""

    slot: int
    kind: str
    array: str


class StreamingStore(Statement):
    """Streaming store of a piece to its row of an array; `line` is True for a single cache line."""

    array: str
    piece: str
    line: bool = False


class Prefetch(Statement):
    """Prefetch of every `step`-th element further along rows, from distance `first` to `first` + `length`."""

    rows: tuple[Row, ...]
    first: int
    length: int
    step: int


class StoreFence(Statement):
    """Wait for the completion of streaming stores."""


# -- devices: threads, shared memory, 2.5D streaming -------------------------------------------------------


class DeclareShared(Statement):
    """Declaration of a plane or tile in shared memory."""

    array: str


class FillTiles(Statement):
    """Copies of the first planes to the tiles of a thread block, before its threads stream."""

    arrays: tuple[str, ...]
    ahead: int


class LoadTiles(Statement):
    """Wait for the newest plane of each tile, and copy of the plane that is `ahead` planes further.

    All threads of the block wait for each other here. After this wait, no thread reads the plane that the new
    one replaces.
    """

    arrays: tuple[str, ...]
    ahead: int


class CellAddress(Statement):
    """Address of the current cell in an array; `sink` is True if the cell is written."""

    array: str
    sink: bool = False


class DeclareQueue(Statement):
    """Declaration of the registers of a queue."""

    array: str


class FillQueues(Statement):
    """Initial values of the queues of a thread before its first cell, except for their last entries."""

    queues: tuple[str, ...]


class LoadQueueEnd(Statement):
    """Load of the last entry of a queue."""

    array: str


class ShiftQueue(Statement):
    """Shift of the values of a queue by one entry."""

    array: str


class Barrier(Statement):
    """Barrier of all threads of a block."""


class ResetPartial(Statement):
    """Initialisation of the partial result of each thread for a reduction."""

    number: int
    kind: str


class ReduceBlock(Statement):
    """Merge of the partial results of the threads of a block; `kinds` has the kind of each reduction."""

    kinds: tuple[str, ...]


# -- trees of statements ---------------------------------------------------------------------------------


_body_names: dict[type[Statement], tuple[str, ...]] = {}


def _names_of_bodies(kind: type[Statement]) -> tuple[str, ...]:
    """Return the names of the attributes that contain bodies, for a kind of statement."""
    if kind not in _body_names:
        _body_names[kind] = tuple(attribute.name for attribute in fields(kind) if attribute.type == "Body")
    return _body_names[kind]


def bodies(statement: Statement) -> Iterator[tuple[str, Body]]:
    """Yield the bodies of a statement with the names of their attributes."""
    for name in _names_of_bodies(type(statement)):
        yield name, getattr(statement, name)


def flat(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements in order, including inner ones."""
    waiting = [*body][::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        for name in _names_of_bodies(type(statement))[::-1]:
            waiting += getattr(statement, name)[::-1]


def rewritten(body: Body, change: Callable[[Statement], Iterable[Statement]]) -> Body:
    """Return a body with each statement replaced by `change(statement)`, inner statements first."""
    result: list[Statement] = []
    for statement in body:
        inner = {}
        for name, part in bodies(statement):
            new = rewritten(part, change)
            if new is not part:
                inner[name] = new
        result += change(replace(statement, **inner) if inner else statement)
    is_unchanged = len(result) == len(body) and all(map(is_, result, body))
    return body if is_unchanged else tuple(result)


def replaced(body: Body, kind: type[S], change: Callable[[S], Iterable[Statement]]) -> Body:
    """Replace each statement of one kind in a body by `change(statement)`, inner statements first."""

    def of_kind(statement: Statement) -> Iterable[Statement]:
        return change(statement) if isinstance(statement, kind) else (statement,)

    return rewritten(body, of_kind)


def with_nests(body: Body, change: Callable[[int, Nest], Statement]) -> Body:
    """Return a body with each nest replaced by `change(position, nest)`."""
    return tuple(change(n, s) if isinstance(s, Nest) else s for n, s in enumerate(body))


def roots(body: Iterable[Statement]) -> list[int]:
    """Return the numbers of the values that statements and their inner statements use, in order."""
    return used_values(flat(body))


def used_values(statements: Iterable[Statement]) -> list[int]:
    """Return the numbers of the values that statements use, without inner statements."""
    numbers: list[int] = []
    for statement in statements:
        values = getattr(statement, USES.get(type(statement), ""), ())
        numbers += values if isinstance(values, tuple) else (values,)
    return numbers


# attribute of a statement that contains the numbers of values
USES: dict[type[Statement], str] = {
    Store: "value",
    StoreCells: "values",
    Reduce: "value",
    Stage: "value",
    MarkSelection: "condition",
    CheckAngles: "angles",
    Lanes: "columns",
    ComputeInvariants: "values",
}
