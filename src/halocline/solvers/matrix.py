"""Properties of the matrix of a linear operator, derived from its formula and boundary conditions.

Python computes a row of the matrix by an evaluation of the formula at one point. In this evaluation, a value
that depends on the unknown is a linear combination of the values of the unknown at grid points. The
combination is stored as a mapping from point to coefficient. A ghost value is the combination that its
boundary condition defines.

The sampled rows lie in the middle, near each wall and in corners. They represent all rows if no coefficient
depends on the position, on another field or on random numbers. Otherwise a row can only disprove a property,
and products with random vectors (`Probe`) decide all other cases. Hash values replace the values of fields
other than the unknown.

`check_linear` rejects an operator whose formula is not linear.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from halocline.errors import InputError
from halocline.lang.boundary import SIDES, Ghost, with_wall_values
from halocline.lang.expression import COMPARISONS, SELECTIONS, Expr, as_expr, cast, text, walk, with_location
from halocline.lang.functions import random
from halocline.lang.grid import Field
from halocline.lang.program import Assign, Program, Stage, internal_name, internal_scalars, program, stage
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as largest_of
from halocline.run.engine.prepare import prepare
from halocline.run.fields.fields import Fields

Point = tuple[int, ...]
Row = dict[Point, float]  # coefficients by column

ROUNDING = 2.0**-47  # relative size up to which a sum of coefficients counts as zero
LARGE = 32  # maximum number of stencil points for the symmetry check by rows; larger stencils take seconds
EQUAL = 1e-9  # coefficients count as equal up to this relative difference, which conjugate gradients tolerate


class _UnknownError(Exception):
    """Error for a coefficient that the formula does not define, such as a sum over the grid."""


@dataclass(frozen=True)
class Asymmetry:
    """Two different coefficients: in row `one` and column `other`, and in row `other` and column `one`."""

    one: Point
    other: Point
    coefficient: float
    transposed: float

    def __str__(self) -> str:
        return (
            f"row {self.one} has {self.coefficient:g} for point {self.other}, but row {self.other} has "
            f"{self.transposed:g} for point {self.one}"
        )


@dataclass(frozen=True)
class Properties:
    """Properties of a matrix.

    Attributes
    ----------
    symmetric : bool or None
        True or False; None if the rows that Python computed are not sufficient to determine it.
    asymmetry : Asymmetry or str or None
        Pair of coefficients, or of products, that disproves the symmetry of the matrix.
    singular : bool or None
        True if constants are in the null space; None if the rows that Python computed are not sufficient to
        determine it.
    negative : bool
        True if all diagonal coefficients of the computed rows are negative.
    """

    symmetric: bool | None = None
    asymmetry: Asymmetry | str | None = None
    singular: bool | None = None
    negative: bool = False


class Matrix:
    """Matrix of a linear operator, computed by rows.

    Parameters
    ----------
    formula : Expr
        Operator applied to the unknown.
    unknown : Field
    program : Program
        Program in which the formula was traced. Its statements assign the stages that are stored in arrays.
    """

    def __init__(self, formula: Expr, unknown: Field, program: Program) -> None:
        self._formula, self._unknown, self._grid = formula, unknown, unknown.grid
        self._ghosts: dict[tuple[int, int, int], Expr] = {}
        self._arrays = {
            f: e for s in program.all_statements() if isinstance(s, Assign) for f, e in s.values.items()
        }
        self._of_grid = unknown.grid.scalar_values()
        self._values = dict(self._of_grid)
        self._nodes: dict[Expr, tuple[Expr, ...]] = {}
        self._numbers: dict[Expr, Any] = {}  # values of expressions that are the same at all points
        self._last: tuple[dict[str, float], Properties] | None = None
        self._varies = False  # True if a coefficient depends on the position, another field or random numbers
        self._reads_fields = False
        self.parameters: set[str] = set()  # parameters that coefficients depend on

    def properties(self, values: Mapping[str, float]) -> Properties:
        """Return the properties for these values of scalars; the last result is cached."""
        if self._last is None or any(values.get(name) != self._last[0].get(name) for name in self.parameters):
            self._values = {**self._of_grid, **values}
            self._numbers.clear()
            self._last = dict(values), self._analyze()
        return self._last[1]

    def _analyze(self) -> Properties:
        rows: dict[Point, Row] = {}
        reads_fields: dict[Point, bool] = {}  # True for a row that depends on other fields

        def row(point: Point) -> Row:
            if point not in rows:
                self._reads_fields = False
                rows[point] = self.row(point)
                reads_fields[point] = self._reads_fields
            return rows[point]

        self._varies, holes = False, self._grid.active_cells < self._grid.size
        middle = tuple(n // 2 for n in self._unknown.points)
        try:
            is_large = len(row(middle)) > LARGE
            samples = [middle] if is_large and self._varies else self._samples(middle, row(middle))
            for point in samples:
                row(point)
            asymmetry = None if self._varies or is_large else self._asymmetry(samples, row)
        except (_UnknownError, RecursionError):  # ghosts that depend on each other: the compiler rejects them
            return Properties(singular=False if holes else None)
        has_walls = holes or any(not rows[point] for point in samples)
        # Rows that depend on other fields are left out: other values of these fields may give other sums.
        sums = [rows[point] for point in samples if not reads_fields[point]]
        has_nonzero_sum = any(
            abs(math.fsum(entries.values())) > ROUNDING * math.fsum(map(abs, entries.values()))
            for entries in sums
        )
        diagonal = [rows[point].get(point, 0.0) for point in samples if rows[point]]
        return Properties(
            symmetric=None if self._varies or is_large else asymmetry is None,
            asymmetry=asymmetry,
            singular=False if has_walls or has_nonzero_sum else None if self._varies else True,
            negative=bool(diagonal) and max(diagonal) < 0.0,
        )

    def _asymmetry(self, samples: list[Point], row: Callable[[Point], Row]) -> Asymmetry | None:
        """Return a pair of different coefficients, one of them in a sampled row, or None."""
        for one in samples:
            largest = max(map(abs, row(one).values()), default=0.0)
            for other in list(row(one)):
                coefficient, transposed = row(one)[other], row(other).get(one, 0.0)
                if abs(coefficient - transposed) > EQUAL * max(largest, *map(abs, row(other).values()), 0.0):
                    return Asymmetry(one, other, coefficient, transposed)
        return None

    def _samples(self, middle: Point, row: Row) -> list[Point]:
        """Return active points in the middle, in the corners, and within reach of each wall."""
        points = self._unknown.points
        samples = [middle, *itertools.product(*((0, n - 1) for n in points))]
        for axis, n in enumerate(points):
            reach = max((abs(column[axis] - middle[axis]) for column in row), default=0)
            distances = range(min(max(1, reach), n))
            samples += [
                (*middle[:axis], end, *middle[axis + 1 :]) for i in distances for end in (i, n - 1 - i)
            ]
        return [point for point in dict.fromkeys(samples) if self._is_active(point)]

    def _is_active(self, point: Point) -> bool:
        blocks = self._grid.blocks
        if blocks is None:
            return True
        cell = [min(i, n - 1) for i, n in zip(point, self._grid.shape, strict=True)]
        return any(True for _ in blocks.pieces(cell, [i + 1 for i in cell]))

    def row(self, point: Point) -> Row:
        """Return the row of a point; it is empty for a point on a wall with a given value."""
        if not self._column(point):
            return {}
        value = self._at(self._formula, point)
        if isinstance(value, float):
            value = {}
        return {column: c for column, c in value.items() if c != 0.0}

    def _column(self, point: Point) -> Row:
        """Return the unknown at a point or ghost point, as coefficients of unknowns at computed points."""
        grid, points, point = self._grid, self._unknown.points, self._wrap(point)
        for axis, (i, n) in enumerate(zip(point, points, strict=True)):
            if not 0 <= i < n:
                layer = -i - 1 if i < 0 else i - n
                value = self._at(self._ghost(axis, -1 if i < 0 else 1, layer), point)
                return {} if isinstance(value, float) else value
        for axis, staggered in enumerate(self._unknown.staggered):
            if staggered and grid.walls[axis] == "face" and not grid.periodic[axis]:
                for side, end in ((-1, 0), (1, points[axis] - 1)):
                    if point[axis] == end and self._has_wall_value(axis, side):
                        return {}
        return {point: 1.0} if self._is_active(point) else {}

    def _has_wall_value(self, axis: int, side: int) -> bool:
        """Return True if a condition sets the value of points on a wall."""
        condition = self._unknown.boundary.get(SIDES[2 * axis + (side > 0)])
        return condition is not None and condition.on_wall(Ghost(self._unknown, axis, side, -1)) is not None

    def _ghost(self, axis: int, side: int, layer: int) -> Expr:
        key = axis, side, layer
        if key not in self._ghosts:
            condition = self._unknown.boundary.get(SIDES[2 * axis + (side > 0)])
            if condition is None:
                raise _UnknownError
            self._ghosts[key] = condition.homogeneous().ghost(Ghost(self._unknown, *key))
        return self._ghosts[key]

    def _at(self, root: Expr, point: Point) -> Any:
        """Return the value of an expression at a point: a number, or a Row if it depends on the unknown."""
        values: dict[Expr, Any] = {}
        if root not in self._nodes:
            self._nodes[root] = tuple(walk((root,)))
        for current in self._nodes[root]:
            if current in self._numbers:
                values[current] = self._numbers[current]
                continue
            values[current] = self._value(current, point, [values[a] for a in current.args])
            if not current.varies:
                self._numbers[current] = values[current]
        return values[root]

    def _value(self, current: Expr, point: Point, args: list[Any]) -> Any:
        op = current.op
        if op == "const":
            return current.attribute
        if op == "scalar":
            name = current.attribute[0]
            if name not in self._values:
                raise _UnknownError
            if name not in self._of_grid:
                self.parameters.add(name)
            return self._values[name]
        if op == "index":
            self._varies = True
            axis, step = current.attribute
            index = point[axis] + step
            return float(index % self._grid.shape[axis] if self._grid.periodic[axis] else index)
        if op in ("read", "stage"):
            source, offset = current.attribute[0], current.attribute[-1]
            position = tuple(map(operator.add, point, offset))
            if source is self._unknown:
                return self._column(position)
            if isinstance(source, Stage):
                return self._at(source.definition, position)
            if source in self._arrays:
                return self._at(self._arrays[source], self._wrap(position))
            return self._hash_value(source.name, *self._wrap(position))
        if op == "lookup":
            entries = current.attribute
            if not math.isfinite(args[0]):
                raise _UnknownError
            return float.fromhex(entries[int(max(0.0, min(args[0], len(entries) - 1)))])
        if op == "reduce":
            raise _UnknownError
        if op == "random":
            if not current.varies:
                raise _UnknownError  # the sums of all rows depend on this one number
            return self._hash_value(op, *args)
        if op == "cast":
            return args[0]
        if op in SELECTIONS:
            return args[1] if args[0] else args[2]
        if any(isinstance(a, dict) for a in args):
            return _combine(op, args)
        try:
            return float(_NUMBERS[op](*args))
        except (ArithmeticError, ValueError, KeyError):
            raise _UnknownError from None

    def _wrap(self, point: Point) -> Point:
        """Return the point of the grid that corresponds to a point beyond a periodic side."""
        grid = self._grid
        return tuple(i % n if p else i for i, n, p in zip(point, grid.shape, grid.periodic, strict=True))

    def _hash_value(self, name: str, *key: float) -> float:
        """Return a number from 1/2 to 3/2 that replaces the value of a field at a point."""
        self._varies = self._reads_fields = True
        digest = blake2b(name.encode() + struct.pack(f"<{len(key)}d", *key), digest_size=8).digest()
        return 0.5 + int.from_bytes(digest, "little") * 2.0**-64


def _combine(op: str, args: list[Any]) -> Row:
    """Return the result of an operation on rows and numbers, which `check_linear` has accepted."""
    if op == "neg":
        return {column: -c for column, c in args[0].items()}
    if op in ("add", "sub", "sum2"):
        one, other = ({} if isinstance(a, float) else a for a in args)
        sign = -1.0 if op == "sub" else 1.0
        total = dict(one)
        for column, c in other.items():
            total[column] = total.get(column, 0.0) + sign * c
        return total
    if op == "mul":
        row, factor = args if isinstance(args[0], dict) else args[::-1]
        return {column: factor * c for column, c in row.items()}
    if op == "div":
        try:
            return {column: c / args[1] for column, c in args[0].items()}
        except ZeroDivisionError:
            raise _UnknownError from None
    raise InputError(f"operation {op} is not linear")


_NUMBERS: dict[str, Callable[..., float]] = {
    **{op: getattr(operator, op) for op in ("add", "sub", "mul", "neg", "abs", *COMPARISONS)},
    **{op: getattr(math, op) for op in ("sqrt", "pow", "exp", "log", "sin", "cos")},
    "sum2": operator.add,
    "div": operator.truediv,
    "sign": lambda a: math.copysign(1.0, a) if a else a,
    "min": min,
    "max": max,
    "fma": lambda a, b, c: a * b + c,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_,
}


# Maximum difference of the products (A r, p) and (r, A p), relative to their scale.
SYMMETRIC = {"float64": 1e-13, "float32": 1e-5}


@program
def products(A: Callable[[Any], Expr], x: Field) -> None:
    """Compute products of the operator with two random vectors r and p, and with the constant 1.

    The results are (A r, p), (r, A p), the squared norms of A r and p, and the largest entries of A r and A
    1. The random vectors are stored in the vectors of the solvers, which are unused before a solve. The
    product A 1 is computed in float64: in float32, its rounding errors could exceed a small shift of the
    operator.
    """
    r, p = x.like("r p", homogeneous=True)
    left, right, image, length, size, of_constants = internal_scalars(
        "left right image length size of_constants"
    )
    correction = {side: condition.homogeneous() for side, condition in x.boundary.items()}

    def inside(value: Expr) -> Expr:
        return with_location(with_wall_values(x, value, correction), x.staggered)

    number = x.grid.cell_number(x.staggered)
    r.set(random(1, index=number) - 0.5)
    p.set(random(2, index=number) - 0.5)
    left.set(dot(A(r), p))
    right.set(dot(r, A(p)))
    image.set(dot(A(r), A(r)))
    length.set(dot(p, p))
    size.set(largest_of(abs(inside(A(r)))))
    p.set(1.0)
    constant = p if x.dtype == "float64" else stage(cast(p.expr, "float64"), "constant", storage="inline")
    of_constants.set(largest_of(abs(inside(A(constant)))))


class Probe:
    """Test of an operator by products with random vectors, compiled and planned once.

    All ranks must create the test and call its method.

    Parameters
    ----------
    fields : Fields
    A : callable
        Operator.
    x : Field
        Unknown.
    """

    def __init__(self, fields: Fields, A: Callable[[Any], Expr], x: Field) -> None:
        self._fields, self._dtype = fields, x.dtype
        self._products = prepare(fields.store, products.trace(A, x), fields.values)
        schedule = self._products.schedule
        names, grid = {info.name for info in schedule.fields}, x.grid
        self._reads = [
            f for f in grid.fields.values() if f.name in names and f is not x and not grid.is_work_field(f)
        ]
        self._scalars = [name for name in fields.parameters if name in schedule.scalars]
        self._last: tuple[tuple[float, ...], Properties] | None = None

    def properties(self) -> Properties:
        """Return the properties; products are computed only if parameters or fields have changed."""
        fields = self._fields
        state = (
            *(fields.parameters[name] for name in self._scalars),
            *(fields.changes(f) for f in self._reads),
        )
        # Ranks may disagree, because a view of a field may exist on one rank only.
        changed = any(fields.domain.comm.allgather(self._last is None or self._last[0] != state))
        if self._last is None or changed:
            self._last = state, self._measure()
        return self._last[1]

    def _measure(self) -> Properties:
        scalars = self._products.run(self._fields.values).scalars
        left, right, image, length, size, of_constants = (
            scalars[internal_name(n)] for n in ("left", "right", "image", "length", "size", "of_constants")
        )
        scale, asymmetry = math.sqrt(image * length), None
        if not abs(left - right) <= SYMMETRIC[self._dtype] * scale:
            asymmetry = f"for random vectors x and y, (A x, y) is {left:.9g}, but (x, A y) is {right:.9g}"
        return Properties(asymmetry is None, asymmetry, of_constants <= ROUNDING * size)


CONSTANT, LINEAR, EITHER = "constant", "linear", "either"  # relation to the unknown; EITHER for 0 and scalars

_SUMS = ("add", "sub", "sum2")


def check_linear(result: Any, unknown: Any, name: str) -> Expr:
    """Return the expression of an operator applied to `unknown`, a field or a stage named `name`.

    Raises
    ------
    InputError
        The result is not a linear expression of `unknown`. Examples are a product or function of `unknown`, a
        sum with a term that does not depend on `unknown`, or an expression without `unknown`.
    """
    expression = as_expr(result)
    if _expression_kind(expression, unknown, name, {}) == CONSTANT or not expression.varies:
        raise InputError(
            f"the operator returns {text(expression)}, which does not depend on the unknown {name!r}; "
            "expected a linear expression of its argument"
        )
    return expression


def _expression_kind(root: Expr, unknown: Any, name: str, kinds: dict[Expr, str]) -> str:
    for current in walk([root]):
        if current not in kinds:
            kinds[current] = _node_kind(current, unknown, name, kinds)
    return kinds[root]


def _node_kind(current: Expr, unknown: Any, name: str, kinds: dict[Expr, str]) -> str:
    if current.op in ("scalar", "reduce") or (current.op == "const" and current.attribute == 0):
        return EITHER  # a scalar may be a sum over the unknown
    if current.op in ("read", "stage"):
        source = current.attribute[0]
        if source is unknown:
            return LINEAR
        if isinstance(source, Stage):
            return _expression_kind(source.definition, unknown, name, kinds)
        return EITHER if source.grid.is_work_field(source) else CONSTANT  # it may be a stage in an array
    args = [kinds[arg] for arg in current.args]
    if LINEAR not in args:
        if current.op in ("random", "lookup"):
            return CONSTANT  # not linear, since the result for zero is not zero
        return EITHER if EITHER in args else CONSTANT
    operands = args[1:] if current.op in SELECTIONS else args
    is_linear = {
        "neg": True,
        "cast": True,
        "mul": args.count(LINEAR) == 1,
        "div": args[-1] != LINEAR,
        **dict.fromkeys(SELECTIONS, args[0] != LINEAR and CONSTANT not in operands),
        **dict.fromkeys(_SUMS, CONSTANT not in args),
    }
    if is_linear.get(current.op, False):
        return LINEAR
    fault = "has a term that does not depend on" if current.op in _SUMS else "is not a multiple of"
    raise InputError(
        f"the operator is not linear in the unknown {name!r}: {text(current)} {fault} {name!r}. Move "
        "constants to the right-hand side, and solve nonlinear equations by linear steps."
    )
