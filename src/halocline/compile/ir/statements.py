"""The statements of kernels: what has an effect, and where.

Statements refer to values by number, and to arrays by name. Those in a `Body` are inside another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, fields, replace
from operator import is_
from typing import Any, ClassVar, TypeVar, dataclass_transform

Offset = tuple[int, ...]


@dataclass_transform(frozen_default=True)
class Statement:
    """Base class of all statements, each of which is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


Body = tuple[Statement, ...]
S = TypeVar("S", bound=Statement)


class Let(Statement):
    """Values are computed here, in this order, for the statements that follow and those inside them."""

    values: tuple[int, ...]


class Store(Statement):
    """A value goes to the present cell of an array; `origin` is the user's line."""

    array: str
    value: int
    origin: str = ""


class Reduce(Statement):
    """A value of each cell goes into reduction number `slot`. `place`: the axes that its points are staggered
    along."""

    slot: int
    kind: str  # "sum", "min", "max", "count" or "value"
    value: int
    place: tuple[bool, ...] = ()
    cell: Offset | None = None
    origin: str = ""


class Stage(Statement):
    """A named intermediate, read by loads of its array; a pass stores it in a nest of its own, or computes
    it anew at each load. `storage` is what the user says: "auto", "inline" or "patch"."""

    array: str
    value: int
    storage: str = "auto"
    origin: str = ""


class Slot(Statement):
    """Memory for stages, of which one after the other has it.

    Attributes
    ----------
    number : int
    item : int
        Bytes of an element.
    extra : tuple of int
        Points along each axis beside those of the patch.
    planes : int
        Number of planes of a ring along the first axis; 0 for all of the patch and `extra`.
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
    """A stage lies in a slot: for the points of a patch, `extent` (lower, upper) more per axis, and `top`
    more at the upper walls; or a ring of its `planes`."""

    array: str
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    slot: int = 0
    planes: int = 0


@dataclass(frozen=True)
class StageUse:
    """An intermediate of a sweep that is kept in scratch memory.

    Parameters
    ----------
    array : str
        Array of the kernel: the name of the stage and a number.
    item : int
        Bytes of an element.
    extent : tuple of (int, int)
        Per axis, how many points more than the patch it has below and above.
    top : tuple of int
        Points more at upper walls, per axis.
    first, last : int
        The loop nests of the sweep that store it and that read it last, from 0.
    planes : int
        Planes of its ring where nests go plane by plane; 0: all planes are stored at once.
    slot : int
        The scratch array, see `Sweep.scratch`, that it has meanwhile.
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
        """Per axis, how many points more than the patch it has below and above, those at upper walls too."""
        return tuple((lo, hi + top) for (lo, hi), top in zip(self.extent, self.top, strict=True))

    @property
    def extra(self) -> tuple[int, ...]:
        """Points per axis beside those of the patch."""
        return tuple(map(sum, self.layers))


class Planes(Statement):
    """Nests go through a patch together along the first axis: of each the plane that is as far ahead as the
    nest says. From `before` planes below the patch to `after` above it, and `top` more at an upper wall."""

    body: Body
    before: int
    after: int
    top: int = 0


class Nest(Statement):
    """The points of a patch, `extent` more around it and `top` more at upper walls; `cell`: only this one, by
    global index. `ahead`: how many planes ahead of the results, where nests go plane by plane. `whole`: rows
    are as long as whole vectors."""

    body: Body
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    cell: Offset | None = None
    ahead: int | None = None
    whole: bool = False


class Loop(Statement):
    """One after the other, the places of a nest along an axis of the generated code."""

    axis: int
    body: Body


class Row(Statement):
    """Where the present row of an array begins, or the one at an offset along axes 0 and 1; to be written
    where it is a sink."""

    array: str
    offset: tuple[int, int]
    sink: bool = False


class Wrap(Statement):
    """Fill the ends of a row in the halo from its other end, where a subdomain spans the last axis."""

    array: str
    lower: int
    upper: int


class Strip(Statement):
    """A vector loop over a stretch of the row.

    `span` says which: "row", all of it; "piece", "line" or "block", what `Pieces`, `Lines` or `Blocks` are
    at. The angles of its sines and cosines are `near` where they have been found so. `sums` are the numbers
    of the sums whose parts it adds up, `marks` those of the branches that it decides.
    """

    body: Body
    span: str = "row"
    near: bool = False
    sums: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()


class Lanes(Statement):
    """As `Strip`, written with vectors: `ahead` computes `columns` a vector further along the row, from
    `first` vectors before the stretch on, so that "shifted" values are put together from vectors side by
    side."""

    body: Body
    columns: tuple[int, ...]
    first: int
    dtype: str
    ahead: Body = ()
    span: str = "row"


class Far(Statement):
    """Find out whether any of these angles of a stretch is out of reach of the quick functions."""

    angles: tuple[int, ...]
    body: Body = ()
    span: str = "row"


class First(Statement):
    """The first thread of a group computes these values and leaves them in `array`; the others wait."""

    array: str
    values: tuple[int, ...]
    body: Body = ()


class Either(Statement):
    """The first where the angles that `Far` has seen are near, else the second."""

    near: Body
    far: Body


class Mark(Statement):
    """Note for branch `number` whether a condition holds in some of the cells of a stretch, and whether it
    does not in some."""

    number: int
    condition: int


class Needed(Statement):
    """Only where some cell of the stretch takes the first side of branch `number`, or, where not `holds`, the
    second one."""

    number: int
    holds: bool
    body: Body


class Branch(Statement):
    """Selections of one condition, each side of which is computed where it holds, or does not."""

    condition: int
    values: tuple[int, ...]
    then: Body
    otherwise: Body


class Pieces(Statement):
    """A row in pieces of `length`."""

    body: Body
    length: int


class Blocks(Statement):
    """A row in blocks of `length`, cut where its cells' numbers are multiples of that."""

    body: Body
    length: int


class Bands(Statement):
    """The rows of a nest in bands of `length`, cut where its cells' numbers are multiples of that: `fill`
    once for each band, and then the rows."""

    fill: Body
    body: Body
    length: int


class Lines(Statement):
    """A stretch in lines of the cache, of `length` elements: `whole` for those that are there in full, `rest`
    for the ends."""

    whole: Body
    rest: Body
    length: int
    span: str = "row"


class Buffer(Statement):
    """Room for a "band", "kept" or "result" array."""

    array: str


class OpenSum(Statement):
    """Begin to add up reduction `slot`, as sum `number` of the nest."""

    number: int
    slot: int


class LaneSums(Statement):
    """Have sums added up in `length` places at once."""

    numbers: tuple[int, ...]
    length: int


class AddUp(Statement):
    """Add the present element of `array` to a sum; `lanes` where it adds up in several places."""

    number: int
    array: str
    lanes: bool = False


class TotalLanes(Statement):
    """Add the places of a sum together."""

    number: int


class CloseSum(Statement):
    """Add a sum to its reduction; `array` holds the summands of the stretch."""

    number: int
    slot: int
    array: str


class Deposit(Statement):
    """What a piece, or a block of lines, holds goes into a reduction."""

    slot: int
    kind: str
    array: str


class Stream(Statement):
    """What a piece holds goes to its row of an array past the cache; `line`: as one line of it."""

    array: str
    piece: str
    line: bool = False


class Fetch(Statement):
    """Have the cache fetch elements `first` to `first` + `length` further along rows, one in each `step`."""

    rows: tuple[Row, ...]
    first: int
    length: int
    step: int


class Fence(Statement):
    """Wait until what went past the cache is there."""


# -- devices: threads, the memory of a group, marches along an axis ---------------------------------------


class Threads(Statement):
    """Each thread is at a cell; along the axis that it marches along, at several."""

    march: int | None


class Inside(Statement):
    """Only threads whose cells are in the box."""

    body: Body


class March(Statement):
    """The cells of a thread, one after the other; of `unroll` the instructions follow each other."""

    axis: int
    unroll: int
    body: Body


class Share(Statement):
    """Room for a plane or tile in the memory that a group shares."""

    array: str


class Gather(Statement):
    """All threads of a group read planes around them; none goes on before all are there."""

    planes: tuple[str, ...]


class Point(Statement):
    """The address of the present cell in an array; to be written where it is a sink."""

    array: str
    sink: bool = False


class Queue(Statement):
    """Registers that hold what an array has along the march."""

    array: str


class Enter(Statement):
    """The queues of a thread as they are before its first cell, but for their last places."""

    queues: tuple[str, ...]


class Advance(Statement):
    """Read the last place of a queue."""

    array: str


class Step(Statement):
    """Move of the values of a queue by one place."""

    array: str


class Tile(Statement):
    """Each group has a tile; `cells` of it along three axes."""

    cells: tuple[int, int, int]


class Cells(Statement):
    """The cells of a nest around the tile, shared out among the threads of the group."""

    body: Body


class Barrier(Statement):
    """No thread of a group goes on before all are here."""


class Reset(Statement):
    """Each thread begins its part of a reduction."""

    number: int
    kind: str


class Finish(Statement):
    """Each group leaves its part of the reductions of these kinds."""

    kinds: tuple[str, ...]


# -- trees of statements ---------------------------------------------------------------------------------


_body_names: dict[type[Statement], tuple[str, ...]] = {}


def _names_of_bodies(kind: type[Statement]) -> tuple[str, ...]:
    """The attributes of such a statement that are bodies."""
    if kind not in _body_names:
        _body_names[kind] = tuple(each.name for each in fields(kind) if each.type == "Body")
    return _body_names[kind]


def bodies(statement: Statement) -> Iterator[tuple[str, Body]]:
    """The bodies of a statement, by the name of their attribute."""
    for name in _names_of_bodies(type(statement)):
        yield name, getattr(statement, name)


def flat(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement, also those in others, in order."""
    waiting = [*body][::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        for name in _names_of_bodies(type(statement))[::-1]:
            waiting += getattr(statement, name)[::-1]


def rewritten(body: Body, change: Callable[[Statement], Iterable[Statement]]) -> Body:
    """A body with each statement replaced by what `change` makes of it; what is in it is changed before."""
    made: list[Statement] = []
    for statement in body:
        inner = {}
        for name, part in bodies(statement):
            new = rewritten(part, change)
            if new is not part:
                inner[name] = new
        made += change(replace(statement, **inner) if inner else statement)
    same = len(made) == len(body) and all(map(is_, made, body))
    return body if same else tuple(made)


def replaced(body: Body, kind: type[S], change: Callable[[S], Iterable[Statement]]) -> Body:
    """Return a body with other statements in place of each statement of one kind, inner ones first."""

    def of_kind(statement: Statement) -> Iterable[Statement]:
        return change(statement) if isinstance(statement, kind) else (statement,)

    return rewritten(body, of_kind)


def with_nests(body: Body, change: Callable[[int, Nest], Statement]) -> Body:
    """Return a body with its nests replaced by what `change` makes of the number of each and the nest."""
    return tuple(change(n, s) if isinstance(s, Nest) else s for n, s in enumerate(body))


def roots(body: Iterable[Statement]) -> list[int]:
    """The values that statements use themselves, in order."""
    return used(flat(body))


def used(statements: Iterable[Statement]) -> list[int]:
    """The values that statements use, without those in them."""
    found: list[int] = []
    for statement in statements:
        values = getattr(statement, USES.get(type(statement), ""), ())
        found += values if isinstance(values, tuple) else (values,)
    return found


# the attribute of a statement that holds the number of a value, or several
USES: dict[type[Statement], str] = {
    Store: "value",
    Reduce: "value",
    Stage: "value",
    Mark: "condition",
    Far: "angles",
    Lanes: "columns",
    First: "values",
}
