"""Intermediate representation of kernels: plain data between the expressions of the user and generated code.

A kernel is a table of values and a tree of statements. A value is an operation on earlier values of the
table. Values have no side effects, so that they may be computed anywhere, once or several times. Statements
have effects. They refer to values by number, which is the index in the table. Translation creates statements
that only store results. Passes (`halocline.compile.passes`) distribute these statements to nests, loops and
pieces of rows. The statement `Let` marks the place where a value is computed. A printer converts each
statement to text without further decisions.

docs/reference/kernels.md lists all operations and the rules that `halocline.compile.ir.verify` checks.

Generated code always has three axes; a grid with one or two axes uses the last one or two of them. Passes
replace values of a table by others (`substituted`), and statements then refer to the new values
(`renumbered`). `substituted_in` does both.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import Any

from halocline.compile.ir import statements as ir
from halocline.compile.ir.statements import Body, Offset, roots
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.expression import COMMUTATIVE, COMPARISONS

CONDITIONS = (*COMPARISONS, "and", "or", "not")
ANGULAR = ("sin", "cos")
ELEMENTARY = frozenset({"exp", "log", "pow", "random", *ANGULAR})  # functions that Halocline implements
POINT = 3  # depth of values that vary from cell to cell of a row


# -- values -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """Value of a kernel: one operation on earlier values.

    Parameters
    ----------
    op : str
        "const", "scalar", "index" or "load", or the name of an operation.
    args : tuple of int
        Numbers of earlier values. Numeric arguments of another precision are converted to the precision of
        the operation.
    attribute : object
        const: the number; scalar: its name; index: (axis of the grid, step); load: (array, offset);
        invariant: (array, position); lookup: the table entries in the format of float.hex.
    dtype : str
        Precision of the arithmetic, "float64" or "float32"; for a condition, the precision of the comparison.
    depth : int
        Innermost loop along which the value may vary: 0 for none, 1 + n for axis n of the generated code,
        `POINT` for the cells of a row.
    """

    op: str
    args: tuple[int, ...] = ()
    attribute: Any = None
    dtype: str = "float64"
    depth: int = POINT

    @property
    def condition(self) -> bool:
        """True if the value is a truth value."""
        return self.op in CONDITIONS


@dataclass(frozen=True)
class Array:
    """Array that loads read and stores write.

    Parameters
    ----------
    name : str
        Unique in the kernel. The names of "band", "intermediate" and "result" arrays begin with the
        number of their nest and a colon.
    dtype : str
    kind : str
        "field", or "scratch" for a stage in the scratch memory of the patch.

        On CPUs: "band", values that all rows of a band share; "intermediate", values that one loop
        over a piece of a row stores for the next loops; "result", results before a reduction or a
        streaming store.

        On devices: "queue", a sliding window in registers; "field_tile", a ring of shared-memory planes of a
        field around the cells of a thread block; "shared", shared memory; "stage_tile", a stage in shared
        memory;
        "invariants", values that are equal in all cells.
    staggered : tuple of bool
        Staggering per axis of the grid, for fields.
    number : int
        Number of the operand, for fields.
    written : bool
        True if the sweep writes the array.
    label : (bytes, bytes)
        Text that represents the array in the digest of a load: the part before the offset, and the part after
        the offset.
    length : int
        Number of elements of "band", "intermediate" and "result" arrays. For queues and field tiles, the
        number of adjacent cells of a thread.
    span : str
        Stretch of the row that a "band", "intermediate" or "result" array covers, see `Strip`.
    source : str
        For a queue or field tile, the field that it contains. For a stage tile, the shared memory that
        contains the tile.
    layers : tuple of (int, int)
        For a queue, its first and last offset along the streaming axis. For a field tile, (0, last offset
        along the streaming axis), then the layers around the thread block along axes 1 and 2. For a stage
        tile, the layers around the cells of the thread block along three axes.
    shape : tuple of int
        For a queue, its row among the rows of a thread. For a field tile, the number of planes, and the
        number of points of a plane along axes 1 and 2. For a stage tile, the number of points along three
        axes. For shared memory and invariants, the number of elements.
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
    source: str = ""
    layers: tuple[tuple[int, int], ...] = ()
    shape: tuple[int, ...] = ()


class Table:
    """Values under construction, without duplicates.

    Parameters
    ----------
    grid : bytes
        Text that represents the grid in digests.
    arrays : iterable of Array
    values : sequence of Value
        Initial values.
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
        """Return the number of a value; add the value if it is new.

        `digest` identifies the formula, but does not depend on the numbers of values. An empty digest is
        computed on demand. Commutative arguments are sorted by their digests.
        """
        if op in COMMUTATIVE and self.digest(args[1]) < self.digest(args[0]):
            args = args[::-1]
        return self._insert(Value(op, args, attribute, dtype, depth), digest)

    def with_arguments(self, value: Value, args: tuple[int, ...]) -> int:
        """Return the number of the value that applies the operation of `value` to the arguments `args`."""
        depth = max((self.values[arg].depth for arg in args), default=value.depth)
        return self.add(value.op, args, value.attribute, value.dtype, depth)

    def copy(self, value: Value, args: tuple[int, ...]) -> int:
        """Return the number of a copy of a value with renumbered arguments, which keep their order."""
        if args != value.args:
            value = Value(value.op, args, value.attribute, value.dtype, value.depth)
        return self._insert(value, b"")

    def _insert(self, value: Value, digest: bytes) -> int:
        # as text, since 0.0 == -0.0 would merge two different constants
        attribute = value.attribute.hex() if value.op == "const" else value.attribute
        key = value.op, value.args, attribute, value.dtype
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
            if digest:
                self._digests[number] = digest
        return number

    def digest(self, number: int) -> bytes:
        """Return the digest of the formula of a value; the digest does not depend on the value's number."""
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
    """Return the numbers of all values on which `roots` depend, including `roots`, arguments first.

    The result omits the values in `known`, and values on which only values in `known` depend.
    """
    visited: set[int] = set()
    order: list[int] = []
    for root in roots:
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number < 0:  # all arguments are in `order`
                order.append(~number)
            elif number not in visited and number not in known:
                visited.add(number)
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
    """Kernel in the intermediate representation.

    Parameters
    ----------
    name : str
    comment : str
    ndim : int
    periodic : tuple of bool
        True for each periodic axis of the grid.
    arrays : tuple of Array
    values : tuple of Value
    body : tuple of Statement
    grid : bytes
        Text that represents the grid in digests.
    beyond : bool
        True if the kernel may compute cells outside the subdomain: cells of the halo, or ghosts.
    wraps : tuple of str
        Fields whose halo along the last axis the kernel fills from the opposite end of each row, see `Wrap`.
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
        """Arrays by name."""
        return {array.name: array for array in self.arrays}

    def below(self, roots: Iterable[int], known: Container[int] = ()) -> list[int]:
        """Return the numbers of all values on which `roots` depend; see the function `below`."""
        return below(self.values, roots, known)

    def attributes(self, op: str) -> list[Any]:
        """Return the attributes of all used values that operation `op` computes, in the order of `below`."""
        values = (self.values[number] for number in self.below(roots(self.body)))
        return [value.attribute for value in values if value.op == op]

    def loads(self, roots: Iterable[int]) -> list[tuple[str, Offset]]:
        """Return the (array, offset) of every load on which `roots` depend, in the order of `below`."""
        key = tuple(roots)
        if key not in self._loads:
            values = (self.values[number] for number in self.below(key))
            self._loads[key] = [value.attribute for value in values if value.op == "load"]
        return self._loads[key]

    @cached_property
    def _loads(self) -> dict[tuple[int, ...], list[tuple[str, Offset]]]:
        return {}


TILE_ALIGNMENT = 128  # of tiles in shared memory, in bytes


def tile_bytes(tile: Array) -> int:
    """Return the shared memory that a field tile needs, in bytes."""
    size = prod(tile.shape) * ITEMSIZE[tile.dtype]
    return -(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT


def padded(values: Sequence[int], ndim: int, fill: int = 0) -> tuple[int, ...]:
    """Extend values, one per axis of a grid, to three axes, with `fill` for the axes that the grid lacks."""
    return (*(fill,) * (3 - ndim), *values)


def padded_extent(extent: Sequence[tuple[int, int]], ndim: int) -> tuple[tuple[int, int], ...]:
    """Extend extents, one per axis of a grid, to three axes, with (0, 0) for the axes that the grid lacks."""
    return (*((0, 0),) * (3 - ndim), *extent)


def joint_extent(nests: Sequence[ir.Nest]) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return the smallest extent and number of points at upper walls that contain those of several nests."""
    extents = [nest.extent for nest in nests]
    extent = tuple(
        (max(lo for lo, _ in axis), max(hi for _, hi in axis)) for axis in zip(*extents, strict=True)
    )
    return extent, tuple(map(max, zip(*(nest.top for nest in nests), strict=True)))


def compacted(kernel: Kernel) -> Kernel:
    """Return a kernel without unused values."""
    new_numbers: dict[int, int] = {}
    values: list[Value] = []
    for number in sorted(kernel.below(ir.roots(kernel.body))):
        value = kernel.values[number]
        new_numbers[number] = len(values)
        values.append(replace(value, args=tuple(new_numbers[arg] for arg in value.args)))
    return replace(kernel, values=tuple(values), body=renumbered(kernel.body, new_numbers))


def substituted(table: Table, roots: Iterable[int], substitutions: Mapping[int, int]) -> list[int]:
    """Replace values in the formulas of `roots` by others, and return the new numbers of `roots`."""
    old_numbers, new_numbers = list(roots), dict(substitutions)
    for number in below(table.values, old_numbers, new_numbers):
        value = table.values[number]
        new_numbers[number] = table.copy(value, tuple(new_numbers[arg] for arg in value.args))
    return [new_numbers[number] for number in old_numbers]


def substituted_in(table: Table, body: ir.Body, substitutions: Mapping[int, int]) -> ir.Body:
    """Replace values in the formulas of a body by others, and return the new body; see `renumbered`."""
    old_numbers = roots(body)
    return renumbered(
        body, dict(zip(old_numbers, substituted(table, old_numbers, substitutions), strict=True))
    )


def renumbered(body: ir.Body, numbers: Mapping[int, int]) -> ir.Body:
    """Return a body whose statements refer to other values.

    This is possible only before the pass `place`, since statements such as `Let` fix the numbers of values.

    Raises
    ------
    ValueError
        The body contains a `Let` or a `Branch`.
    """

    def change(statement: ir.Statement) -> ir.Body:
        if isinstance(statement, (ir.Let, ir.Branch)):
            raise ValueError(f"placed values cannot have other numbers: {statement}")
        if type(statement) not in ir.USES:
            return (statement,)
        name = ir.USES[type(statement)]
        old = getattr(statement, name)
        new = tuple(numbers[n] for n in old) if isinstance(old, tuple) else numbers[old]
        return (replace(statement, **{name: new}),)

    return ir.rewritten(body, change)
