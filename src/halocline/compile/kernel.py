"""The intermediate representation of kernels: plain data between the user's expressions and generated code.

A kernel is a table of values and a tree of statements. A value is an operation on values before it in the
table, and has no effect: it may be computed anywhere, once or several times. Statements have effects and
refer to values by number. At first they only say what is stored; passes (`halocline.compile.passes`) put
them into nests, loops and pieces of rows, and `Let` says where a value is computed. A printer writes each
statement as it stands.

docs/reference/architecture.md lists all operations and the rules that `halocline.compile.verify` checks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, TypeVar

Offset = tuple[int, ...]
T = TypeVar("T")

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
CONDITIONS = (*COMPARISONS, "and", "or", "not")
COMMUTATIVE = ("add", "mul", "min", "max", "eq", "ne", "and", "or")
LEAVES = ("const", "scalar", "index", "load")
POINT = 3  # the depth of what differs from cell to cell of a row


# -- values -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """One operation.

    Parameters
    ----------
    op : str
        "const", "scalar", "index" or "load", or the name of an operation.
    args : tuple of int
        Numbers of values before this one. Numbers of another precision are converted to that of the
        operation.
    attribute : object
        const: the number; scalar: its name; index: (axis of the grid, step); load: (array, offset); lookup:
        the numbers, as float.hex spells them.
    dtype : str
        The precision in which it is computed: "float64" or "float32"; of a condition, that in which numbers
        are compared.
    depth : int
        How far in it varies: 0 nowhere, 1 + n along axis n of the generated code, at most; `POINT` from
        cell to cell.
    """

    op: str
    args: tuple[int, ...] = ()
    attribute: Any = None
    dtype: str = "float64"
    depth: int = POINT

    @property
    def condition(self) -> bool:
        """Whether it is a truth value."""
        return self.op in CONDITIONS


@dataclass(frozen=True)
class Array:
    """What loads read and stores write.

    Parameters
    ----------
    name : str
        Unique in the kernel; of "kept" and "result" behind the number of their nest and a colon.
    dtype : str
    kind : str
        "field"; "scratch", a stage in memory of the patch.

        On CPUs: "kept", what one loop over a piece of a row leaves to the next ones; "result", results on
        their way to a sum or past the cache. On devices: "queue", what a thread that marches has read before;
        "plane", what a group has read around its threads; "tile", a stage in memory that a group shares.
    staggered : tuple of bool
        Per axis of the grid, of a field.
    number : int
        Of the operand, for fields.
    written : bool
        Whether the sweep writes it.
    label : (bytes, bytes)
        What stands for it in digests of loads, before and after the offset.
    length : int
        Elements, of "kept" and "result".
    span : str
        The stretch of the row that these are of, see `Strip`.
    of : str
        The field that a queue or plane is read from.
    layers : tuple of (int, int)
        Of a queue its first and last place along the march; of a plane the layers around the group, along
        axes 1 and 2; of a tile those around it, along three axes.
    shape : tuple of int
        Points of a plane or tile along these axes.
    """

    name: str
    dtype: str
    kind: str = "field"
    staggered: tuple[bool, ...] = ()
    number: int = 0
    written: bool = False
    label: tuple[bytes, bytes] = (b"", b"")
    length: int = 0
    span: str = "piece"
    of: str = ""
    layers: tuple[tuple[int, int], ...] = ()
    shape: tuple[int, ...] = ()


class Table:
    """Values under construction; each exists once.

    Parameters
    ----------
    grid : bytes
        What stands for the grid in digests.
    arrays : iterable of Array
    values : sequence of Value
        To begin with.
    """

    def __init__(self, grid: bytes, arrays: Iterable[Array] = (), values: Sequence[Value] = ()) -> None:
        self.grid = grid
        self.arrays = {array.name: array for array in arrays}
        self.values: list[Value] = []
        self._digests: dict[int, bytes] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        for value in values:
            self._insert(value, b"")

    def add(
        self, op: str, args: tuple[int, ...], attribute: Any, dtype: str, depth: int, digest: bytes = b""
    ) -> int:
        """The number of a value: the known one where there is one.

        `digest` identifies its formula, whatever the numbers are; it follows from the rest where it is not
        given. Arguments whose order is free are in the order of their digests.
        """
        if op in COMMUTATIVE and self.digest(args[1]) < self.digest(args[0]):
            args = args[::-1]
        return self._insert(Value(op, args, attribute, dtype, depth), digest)

    def like(self, value: Value, args: tuple[int, ...]) -> int:
        """The operation of a value on other arguments."""
        depth = max((self.values[arg].depth for arg in args), default=value.depth)
        return self.add(value.op, args, value.attribute, value.dtype, depth)

    def copy(self, value: Value, args: tuple[int, ...]) -> int:
        """A value on arguments that are the same numbers, found elsewhere: in the order that they have."""
        if args != value.args:
            value = Value(value.op, args, value.attribute, value.dtype, value.depth)
        return self._insert(value, b"")

    def _insert(self, value: Value, digest: bytes) -> int:
        # 0.0 and -0.0 are equal
        attribute = value.attribute.hex() if value.op == "const" else value.attribute
        key = value.op, value.args, attribute, value.dtype
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(value)
            if digest:
                self._digests[found] = digest
        return found

    def digest(self, number: int) -> bytes:
        """What identifies the formula of a value, whatever its number is."""
        if number not in self._digests:
            for missing in below(self.values, (number,), self._digests):
                self._digests[missing] = self._digest(self.values[missing])
        return self._digests[number]

    def _digest(self, value: Value) -> bytes:
        op, attribute = value.op, value.attribute
        label = [op.encode()]
        if op == "load":
            before, after = self.arrays[attribute[0]].label
            label = [before + str(attribute[1]).encode() + after]
        elif op == "index":
            label.append(f"{attribute[0]}|{attribute[1]}".encode() + self.grid)
        elif op == "scalar":
            label.append(f"{attribute}|0".encode())
        elif op == "const":
            label.append(struct.pack("<d", attribute))
        else:
            label.append(b"" if attribute is None else repr(attribute).encode())
        return blake2b(b"\0".join([*label, *(self._digests[a] for a in value.args)]), digest_size=16).digest()


def below(values: Sequence[Value], roots: Iterable[int], known: Container[int] = ()) -> list[int]:
    """The numbers of all values that `roots` are made of, arguments before what uses them; without those
    that are `known`, and what is below them alone."""
    seen: set[int] = set()
    order: list[int] = []
    for root in roots:
        if root in seen or root in known:
            continue
        stack = [(root, iter(values[root].args))]
        seen.add(root)
        while stack:
            current, args = stack[-1]
            for arg in args:
                if arg not in seen and arg not in known:
                    seen.add(arg)
                    stack.append((arg, iter(values[arg].args)))
                    break
            else:
                stack.pop()
                order.append(current)
    return order


# -- statements ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Base of all statements."""


Body = tuple[Statement, ...]


@dataclass(frozen=True)
class Let(Statement):
    """Values are computed here, in this order, for the statements that follow and those inside them."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Store(Statement):
    """A value goes to the present cell of an array; `origin` is the user's line."""

    array: str
    value: int
    origin: str = ""


@dataclass(frozen=True)
class Reduce(Statement):
    """A value of each cell goes into reduction number `slot`. `place`: the axes that its points are staggered
    along."""

    slot: int
    kind: str  # "sum", "min", "max", "count" or "value"
    value: int
    place: tuple[bool, ...] = ()
    cell: Offset | None = None
    origin: str = ""


@dataclass(frozen=True)
class Stage(Statement):
    """A named intermediate, read by loads of its array; a pass stores it in a nest of its own, or computes
    it anew at each load. `storage` is what the user says: "auto", "inline" or "patch"."""

    array: str
    value: int
    storage: str = "auto"
    origin: str = ""


@dataclass(frozen=True)
class Allocate(Statement):
    """Room for a stage: for the points of a patch, `extent` (lower, upper) more per axis, and `top` more at
    the upper walls."""

    array: str
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]


@dataclass(frozen=True)
class Nest(Statement):
    """The points of a patch, `extent` more around it and `top` more at upper walls; `cell`: only this one, by
    global index."""

    body: Body
    extent: tuple[tuple[int, int], ...]
    top: tuple[int, ...]
    cell: Offset | None = None


@dataclass(frozen=True)
class Loop(Statement):
    """One after the other, the places of a nest along an axis of the generated code."""

    axis: int
    body: Body


@dataclass(frozen=True)
class Row(Statement):
    """Where the present row of an array begins, or the one at an offset along axes 0 and 1; to be written
    where it is a sink."""

    array: str
    offset: tuple[int, int]
    sink: bool = False


@dataclass(frozen=True)
class Wrap(Statement):
    """Fill the ends of a row in the halo from its other end, where a subdomain spans the last axis."""

    array: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Strip(Statement):
    """A vector loop over a stretch of the row.

    `span` says which: "row", all of it; "piece", "line" or "block", what `Pieces`, `Lines` or `Blocks` are
    at. The angles of its sines and cosines are `near` where they have been found so. `sums` are the numbers
    of the sums whose parts it adds up.
    """

    body: Body
    span: str = "row"
    near: bool = False
    sums: tuple[int, ...] = ()


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Far(Statement):
    """Find out whether any of these angles of a stretch is out of reach of the quick functions."""

    angles: tuple[int, ...]
    body: Body = ()
    span: str = "row"


@dataclass(frozen=True)
class Either(Statement):
    """The first where the angles that `Far` has seen are near, else the second."""

    near: Body
    far: Body


@dataclass(frozen=True)
class Pieces(Statement):
    """A row in pieces of `length`."""

    body: Body
    length: int


@dataclass(frozen=True)
class Blocks(Statement):
    """A row in blocks of `length`, cut where its cells' numbers are multiples of that."""

    body: Body
    length: int


@dataclass(frozen=True)
class Lines(Statement):
    """A stretch in lines of the cache, of `length` elements: `whole` for those that are there in full, `rest`
    for the ends."""

    whole: Body
    rest: Body
    length: int
    span: str = "row"


@dataclass(frozen=True)
class Buffer(Statement):
    """Room for a "kept" or "piece" array."""

    array: str


@dataclass(frozen=True)
class OpenSum(Statement):
    """Begin to add up reduction `slot`, as sum `number` of the nest."""

    number: int
    slot: int


@dataclass(frozen=True)
class LaneSums(Statement):
    """Have sums added up in `length` places at once."""

    numbers: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class AddUp(Statement):
    """Add the present element of `array` to a sum; `lanes` where it adds up in several places."""

    number: int
    array: str
    lanes: bool = False


@dataclass(frozen=True)
class TotalLanes(Statement):
    """Add the places of a sum together."""

    number: int


@dataclass(frozen=True)
class CloseSum(Statement):
    """Add a sum to its reduction; `array` holds the summands of the stretch."""

    number: int
    slot: int
    array: str


@dataclass(frozen=True)
class Deposit(Statement):
    """What a piece holds goes into a reduction."""

    slot: int
    kind: str
    array: str


@dataclass(frozen=True)
class Stream(Statement):
    """What a piece holds goes to its row of an array past the cache; `line`: as one line of it."""

    array: str
    piece: str
    line: bool = False


@dataclass(frozen=True)
class Fetch(Statement):
    """Have the cache fetch elements `first` to `first` + `length` further along rows, one in each `step`."""

    rows: tuple[Row, ...]
    first: int
    length: int
    step: int


@dataclass(frozen=True)
class Fence(Statement):
    """Wait until what went past the cache is there."""


# -- statements of devices ----------------------------------------------------------------------------


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
    """Each group has a tile of so many cells along three axes."""

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


# -- kernels ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel, as far as passes have brought it.

    Parameters
    ----------
    name : str
    comment : str
    ndim : int
    periodic : tuple of bool
        Per axis of the grid.
    arrays : tuple of Array
    values : tuple of Value
    body : tuple of Statement
    grid : bytes
        What stands for the grid in digests.
    beyond : bool
        Whether its cells may lie beyond the subdomain: in the halo, or ghosts.
    wraps : tuple of str
        Fields whose rows it wraps around.
    """

    name: str
    comment: str
    ndim: int
    periodic: tuple[bool, ...]
    arrays: tuple[Array, ...]
    values: tuple[Value, ...]
    body: Body
    grid: bytes = b""
    beyond: bool = False
    wraps: tuple[str, ...] = ()

    @cached_property
    def array(self) -> dict[str, Array]:
        """The arrays by name."""
        return {array.name: array for array in self.arrays}

    def below(self, roots: Iterable[int], known: Container[int] = ()) -> list[int]:
        """See `below`."""
        return below(self.values, roots, known)

    def loads(self, roots: Iterable[int]) -> list[tuple[str, Offset]]:
        """The (array, offset) of every load below `roots`, in the order of `below`."""
        wanted = tuple(roots)
        if wanted not in self._loads:
            found = (self.values[number] for number in self.below(wanted))
            self._loads[wanted] = [value.attribute for value in found if value.op == "load"]
        return self._loads[wanted]

    @cached_property
    def _loads(self) -> dict[tuple[int, ...], list[tuple[str, Offset]]]:
        return {}


@cache
def _bodies(kind: type[Statement]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.type == "Body")


def bodies(statement: Statement) -> Iterator[tuple[str, Body]]:
    """The bodies of a statement, by the name of their attribute."""
    for name in _bodies(type(statement)):
        yield name, getattr(statement, name)


def flat(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement, also those in others, in order."""
    for statement in body:
        yield statement
        for _, inner in bodies(statement):
            yield from flat(inner)


def rewritten(body: Body, change: Callable[[Statement], Iterable[Statement]]) -> Body:
    """A body with each statement replaced by what `change` makes of it; what is in it is changed before."""
    made: list[Statement] = []
    for statement in body:
        inner = {name: rewritten(part, change) for name, part in bodies(statement)}
        made += change(replace(statement, **inner) if inner else statement)
    return tuple(made)


def roots(body: Iterable[Statement]) -> list[int]:
    """The values that statements use themselves, in order."""
    found = []
    for statement in flat(body):
        if isinstance(statement, (Store, Reduce, Stage)):
            found.append(statement.value)
        elif isinstance(statement, Far):
            found += statement.angles
        elif isinstance(statement, Lanes):
            found += statement.columns
    return found
