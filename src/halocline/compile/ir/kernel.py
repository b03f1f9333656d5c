"""The intermediate representation of kernels: plain data between the user's expressions and generated code.

A kernel is a table of values and a tree of statements. A value is an operation on values before it in the
table, and has no effect: it may be computed anywhere, once or several times. Statements have effects and
refer to values by number. At first they only say what is stored; passes (`halocline.compile.passes`) put
them into nests, loops and pieces of rows, and `Let` says where a value is computed. A printer writes each
statement as it stands.

docs/reference/kernels.md lists all operations and the rules that `halocline.compile.ir.verify` checks.

Generated code has three axes; those of a grid are the last of them. Passes replace values in a table by
others (`substituted`), and statements refer to the new ones (`renumbered`); `substituted_in` does both.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from halocline.compile.ir import statements as ir
from halocline.compile.ir.statements import Body, Offset, roots
from halocline.lang.expression import COMMUTATIVE, COMPARISONS

CONDITIONS = (*COMPARISONS, "and", "or", "not")
ANGULAR = ("sin", "cos")
ELEMENTARY = frozenset({"exp", "log", "pow", "random", *ANGULAR})  # functions with code of their own
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
        const: the number; scalar: its name; index: (axis of the grid, step); load: (array, offset);
        invariant: (array, place); lookup: the numbers, as float.hex spells them.
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
        Unique in the kernel; of "band", "kept" and "result" behind the number of their nest and a colon.
    dtype : str
    kind : str
        "field"; "scratch", a stage in memory of the patch.

        On CPUs: "band", what all rows of a band have in common; "kept", what one loop over a piece of a row
        leaves to the next ones; "result", results on their way to a sum or past the cache. On devices:
        "queue", what a thread that marches has read before; "plane", what a group has read around its
        threads; "shared", memory that a group shares; "tile", a stage in some of that; "invariants", what is
        the same in all cells.
    staggered : tuple of bool
        Per axis of the grid, of a field.
    number : int
        Of the operand, for fields.
    written : bool
        Whether the sweep writes it.
    label : (bytes, bytes)
        What stands for it in digests of loads, before and after the offset.
    length : int
        Elements, of "band", "kept" and "result".
    span : str
        The stretch of the row that these are of, see `Strip`.
    of : str
        The field that a queue or plane is read from; the shared memory that a tile lies in.
    layers : tuple of (int, int)
        Of a queue its first and last place along the march; of a plane the layers around the group, along
        axes 1 and 2; of a tile those around it, along three axes.
    shape : tuple of int
        Points of a plane or tile along these axes; how many invariants there are.
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
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number < 0:  # all that it takes is there
                order.append(~number)
            elif number not in seen and number not in known:
                seen.add(number)
                args = values[number].args
                if args:
                    waiting.append(~number)
                    waiting += args[::-1]
                else:
                    order.append(number)
    return order


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

    def attributes(self, op: str) -> list[Any]:
        """The attributes of all values of an operation that statements use, in the order of `below`."""
        used = (self.values[number] for number in self.below(roots(self.body)))
        return [value.attribute for value in used if value.op == op]

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


def padded(values: Sequence[int], ndim: int, fill: int = 0) -> tuple[int, ...]:
    """Return values per axis of a grid for three axes, with `fill` for those that it lacks."""
    return (*(fill,) * (3 - ndim), *values)


def padded_extent(extent: Sequence[tuple[int, int]], ndim: int) -> tuple[tuple[int, int], ...]:
    """Extents on three axes."""
    return (*((0, 0),) * (3 - ndim), *extent)


def compacted(kernel: Kernel) -> Kernel:
    """A kernel with the values that it uses, and no others."""
    made: dict[int, int] = {}
    values: list[Value] = []
    for number in sorted(kernel.below(ir.roots(kernel.body))):
        value = kernel.values[number]
        made[number] = len(values)
        values.append(replace(value, args=tuple(made[arg] for arg in value.args)))
    return replace(kernel, values=tuple(values), body=renumbered(kernel.body, made))


def substituted(table: Table, wanted: Iterable[int], instead: Mapping[int, int]) -> list[int]:
    """Values of a table in which some stand for others."""
    heads, made = list(wanted), dict(instead)
    for number in below(table.values, heads, made):
        value = table.values[number]
        made[number] = table.copy(value, tuple(made[arg] for arg in value.args))
    return [made[number] for number in heads]


def substituted_in(table: Table, body: ir.Body, instead: Mapping[int, int]) -> ir.Body:
    """Return a body with some of its values replaced; see `renumbered`."""
    wanted = roots(body)
    return renumbered(body, dict(zip(wanted, substituted(table, wanted, instead), strict=True)))


def renumbered(body: ir.Body, numbers: Mapping[int, int]) -> ir.Body:
    """A body whose statements use other values; before `place`, since those that have been computed are not
    computed again.

    Raises
    ------
    ValueError
        For a `Let` or a `Branch`.
    """

    def change(statement: ir.Statement) -> ir.Body:
        if isinstance(statement, (ir.Let, ir.Branch)):
            raise ValueError(f"values that are computed at a place have other numbers: {statement}")
        if type(statement) not in ir.USES:
            return (statement,)
        name = ir.USES[type(statement)]
        old = getattr(statement, name)
        new = tuple(numbers[n] for n in old) if isinstance(old, tuple) else numbers[old]
        return (replace(statement, **{name: new}),)

    return ir.rewritten(body, change)
