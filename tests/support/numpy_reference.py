"""Programs evaluated in NumPy on whole arrays with ghost cells: the reference of compiler and engine.

The evaluation follows the documented meaning of the language. From Halocline it uses only the recorded
program and the nodes of its expressions. Every value has a bound of its rounding error. The generated code
may fuse multiply-adds and use other elementary functions. The results therefore agree to a few units of the
last place per operation, not bit by bit. If a comparison is closer than that, both answers count as correct.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from halocline.lang.boundary import (
    Antisymmetric,
    BoundaryKernel,
    Derivative,
    Extrapolate,
    Symmetric,
    Value,
)
from halocline.lang.expression import Expr, Operators
from halocline.lang.grid import CELLS, Field, Grid
from halocline.lang.program import Assign, AssignScalar, Program, Repeat, StopWhen

Array = np.ndarray[Any, Any]

ROUNDING = {None: 2.0**-52, "float64": 2.0**-52, "float32": 2.0**-23}


class Undecided(Exception):
    """A loop or a stop statement depends on a comparison that is closer than rounding errors."""


@dataclass
class Number:
    """Values with a bound of their errors, in a precision (None: adapts to the other operand)."""

    value: Array
    error: Array
    dtype: str | None = None

    @classmethod
    def exact(cls, value: Any, dtype: str | None = None) -> Number:
        array = np.asarray(value, dtype=np.float64)
        return cls(array, np.zeros_like(array), dtype)

    def rounded_to(self, dtype: str | None) -> Number:
        """Return this number as an operand in that precision."""
        if dtype != "float32" or self.dtype == "float32":
            return self
        return Number(self.value, self.error + 2.0**-24 * np.abs(self.value) + 1e-45, "float32")

    def stored_as(self, dtype: str) -> Number:
        if dtype == "float64":
            return Number(self.value, self.error, dtype)

        def rounded(value: Array) -> Array:
            return value.astype(np.float32).astype(np.float64)

        # rounding is monotonic: a value within the error is stored between the stored ends
        value = rounded(self.value)
        with np.errstate(over="ignore", invalid="ignore"):
            above, below = rounded(self.value + self.error), rounded(self.value - self.error)
            error = np.maximum(above - value, value - below)
        return Number(value, np.where(np.isfinite(error), error, np.inf), dtype)

    def __getitem__(self, index: Any) -> Number:
        return Number(self.value[index], self.error[index], self.dtype)

    def __add__(self, other: Any) -> Number:
        return binary("add", self, number(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number:
        return binary("sub", self, number(other))

    def __rsub__(self, other: Any) -> Number:
        return binary("sub", number(other), self)

    def __mul__(self, other: Any) -> Number:
        return binary("mul", self, number(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Number:
        return binary("div", self, number(other))

    def __neg__(self) -> Number:
        return Number(-self.value, self.error, self.dtype)


@dataclass
class Truth:
    """Truth values, and the positions at which they are in doubt."""

    value: Array
    doubt: Array


def number(value: Any) -> Number:
    return value if isinstance(value, Number) else Number.exact(value)


def common(*values: Number) -> str | None:
    """Return the precision of an operation: float64 if any operand has it."""
    dtypes = {v.dtype for v in values} - {None}
    return max(dtypes) if dtypes else None


def binary(op: str, a: Number, b: Number) -> Number:
    dtype = common(a, b)
    a, b = a.rounded_to(dtype), b.rounded_to(dtype)
    x, y, ex, ey = a.value, b.value, a.error, b.error
    with np.errstate(all="ignore"):
        if op in ("add", "sum2"):
            value, error = x + y, ex + ey
        elif op == "sub":
            value, error = x - y, ex + ey
        elif op == "mul":
            value = x * y
            error = np.abs(x) * ey + np.abs(y) * ex + ex * ey
        elif op == "div":
            value = x / y
            error = np.where(ey < np.abs(y), (ex + np.abs(value) * ey) / (np.abs(y) - ey), np.inf)
        elif op in ("min", "max"):
            # not a rounded operation
            value = np.minimum(x, y) if op == "min" else np.maximum(x, y)
            return Number(value, np.maximum(ex, ey), dtype)
        elif op == "pow":
            value = np.power(x, y)
            error = np.abs(value) * (np.abs(y) * ex / np.abs(x) + np.abs(np.log(np.abs(x))) * ey) * 2
        else:
            raise NotImplementedError(op)
        return rounded(value, known(error, value, ex, ey), dtype)


def known(error: Array, value: Array, *of: Array) -> Array:
    """Return a derived bound, in which 0 times infinity, a NaN, becomes infinity.

    NaN remains in ghosts that are not yet formed.
    """
    unformed = np.any([np.isnan(e) for e in np.broadcast_arrays(value, *of)], axis=0)
    return np.where(np.isnan(error) & ~unformed, np.inf, error)


def rounded(value: Array, error: Array, dtype: str | None) -> Number:
    tiny = 1e-45 if dtype == "float32" else 5e-324
    return Number(value, error + 2 * ROUNDING[dtype] * np.abs(value) + tiny, dtype)


def unary(op: str, a: Number) -> Number:
    x, e = a.value, a.error
    with np.errstate(all="ignore"):
        if op == "neg":
            return -a
        if op == "abs":
            return Number(np.abs(x), e, a.dtype)
        if op == "sign":
            return Number(np.sign(x), np.where(np.abs(x) <= e, 2.0 * (e > 0), 0.0), a.dtype)
        if op == "sqrt":
            value = np.sqrt(x)
            error = np.where(e > 0, np.minimum(np.sqrt(e), e / (2 * np.sqrt(np.maximum(x - e, 0)))), 0)
        elif op == "exp":
            value = np.exp(x)
            error = value * np.expm1(e)
        elif op == "log":
            value = np.log(x)
            error = np.where(e < x, e / (x - e), np.inf)
        elif op in ("sin", "cos"):
            value = np.sin(x) if op == "sin" else np.cos(x)
            # one unit of the last place of 1, since the tests avoid zeros of large arguments
            return Number(value, np.minimum(e, 2.0) + 2 * ROUNDING[a.dtype], a.dtype)
        else:
            raise NotImplementedError(op)
    return rounded(value, known(error, value, e), a.dtype)


def compare(op: str, a: Number, b: Number) -> Truth:
    dtype = common(a, b)
    a, b = a.rounded_to(dtype), b.rounded_to(dtype)
    x, y, tolerance = a.value, b.value, a.error + b.error
    holds = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}[op]
    return Truth(holds, (np.abs(x - y) <= tolerance) & (tolerance > 0))


def select(condition: Truth, a: Number, b: Number) -> Number:
    dtype = common(a, b)
    a, b = a.rounded_to(dtype), b.rounded_to(dtype)
    value = np.where(condition.value, a.value, b.value)
    error = np.where(condition.value, a.error, b.error)
    bound = np.maximum(a.error, b.error) + np.abs(a.value - b.value)
    return Number(value, np.where(condition.doubt, bound, error), dtype)


@dataclass
class Reference:
    """A program run in NumPy.

    Parameters
    ----------
    grid : Grid
    program : Program
    values : dict of Field to array
        Values at all points of each field; zero by default.
    scalars : dict of str to float
        Parameters.

    Attributes
    ----------
    fields : dict of Field to Number
        Current values of the fields.
    """

    grid: Grid
    program: Program
    values: dict[Field, Array]
    scalars: dict[str, Any] = field(default_factory=dict)
    fields: dict[Field, Number] = field(default_factory=dict)
    reason: str = "completed"
    loops: list[str] = field(default_factory=list)
    history: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scalars = {name: Number.exact(v) for name, v in self.scalars.items()}
        for axis, letter in enumerate("xyz"[: self.grid.ndim]):
            self.scalars[f"h_{letter}"] = Number.exact(self.spacing(axis))
            self.scalars[f"o_{letter}"] = Number.exact(self.grid.origin[axis])
            self.scalars[f"{CELLS}{letter}"] = Number.exact(self.grid.shape[axis])
        for f in self.grid.fields.values():
            values = self.values.get(f)
            start = np.zeros(self.points(f.staggered)) if values is None else values
            self.fields[f] = Number.exact(start).stored_as(f.dtype)
        # the value of each field after its assignments, as NumPy arrays store it
        self._stored: dict[tuple[Field, int], Number] = {}
        self._after: dict[tuple[int, Field], int] = {}  # version of a field after an Assign
        self._around: dict[
            int, tuple[dict[Field, int], dict[Field, int]]
        ] = {}  # versions in a loop: first, last
        self._versions = dict.fromkeys(self.fields, 0)
        self._number(self.program.statements)
        self._ghosted: dict[tuple[Field, int, tuple[int, ...]], Number] = {}
        for f in self.fields:
            self._hold(f)
        self._keep(dict.fromkeys(self.fields, 0))

    # --- geometry ---

    def spacing(self, axis: int) -> float:
        """Return the spacing: periodic axes and walls on faces have n spacings, walls on nodes n + 1."""
        n = self.grid.shape[axis]
        on_faces = self.grid.periodic[axis] or self.grid.walls[axis] == "face"
        return self.grid.extent[axis] / (n if on_faces else n + 1)

    def points(self, staggered: Sequence[bool]) -> tuple[int, ...]:
        """Return the number of points, with one more at the upper wall of each staggered axis."""
        return tuple(
            n + (s and not wraps)
            for n, s, wraps in zip(self.grid.shape, staggered, self.grid.periodic, strict=True)
        )

    def wall(self, f: Field, axis: int) -> Fraction:
        """Return the distance from the first interior point outward to the wall, in spacings."""
        inset = Fraction(1, 2) if self.grid.walls[axis] == "face" else Fraction(1)
        return inset - (Fraction(1, 2) if f.staggered[axis] else 0)

    # --- versions ---

    def _number(self, statements: Sequence[Any]) -> None:
        """Number the versions of every field: each assignment to it and each loop begins a new one."""
        for s in statements:
            if isinstance(s, Assign):
                for f in s.values:
                    self._versions[f] += 1
                    self._after[id(s), f] = self._versions[f]
            elif isinstance(s, Repeat):
                for f in self._versions:
                    self._versions[f] += 1
                first = dict(self._versions)
                self._number(s.body)
                self._around[id(s)] = first, dict(self._versions)

    def _keep(self, versions: dict[Field, int]) -> None:
        for f, version in versions.items():
            self._stored[f, version] = self.fields[f]

    # --- running ---

    def run(self) -> Reference:
        self._statements(self.program.statements)
        return self

    def _statements(self, statements: Sequence[Any]) -> bool:
        """Execute statements, and return False if a stop statement ends the run."""
        for s in statements:
            self._ghosted.clear()
            if isinstance(s, Assign):
                results = {f: self.evaluate(e, f.staggered).stored_as(f.dtype) for f, e in s.values.items()}
                for f, result in results.items():
                    shape = self.points(f.staggered)
                    self.fields[f] = Number(
                        np.broadcast_to(result.value, shape).copy(),
                        np.broadcast_to(result.error, shape).copy(),
                        f.dtype,
                    )
                    self._hold(f)
                    self._stored[f, self._after[id(s), f]] = self.fields[f]
            elif isinstance(s, AssignScalar):
                number = self.evaluate(s.expression, (False,) * self.grid.ndim)
                self.scalars[s.scalar.name] = Number(number.value, number.error)
            elif isinstance(s, StopWhen):
                if self._decide(s.condition):
                    self.reason = s.reason
                    return False
            elif not self._repeat(s):
                return False
        return True

    def _hold(self, f: Field) -> None:
        """Set the values of points on walls; if walls meet, the higher axis counts."""
        for axis, side in itertools.product(range(self.grid.ndim), (-1, 1)):
            condition = f.boundary.get("xyz"[axis] + "-+"[side > 0])
            if isinstance(condition, Value) and self.wall(f, axis) == 0:
                wall_value = self._at_wall(condition.value, f, axis, side, (0,) * self.grid.ndim)
                wall_value = wall_value.stored_as(f.dtype)
                row = (slice(None),) * axis + (slice(0, 1) if side < 0 else slice(-1, None),)
                self.fields[f].value[row], self.fields[f].error[row] = wall_value.value, wall_value.error

    def _repeat(self, s: Repeat) -> bool:
        most = math.inf
        if s.limit is not None:
            most = float(self.evaluate(s.limit, (False,) * self.grid.ndim).value)
        first, last = self._around[id(s)]
        passes = 0
        while True:
            if s.until is not None and self._decide(s.until):
                self.loops.append("condition")
                break
            if passes >= most:
                self.loops.append("limit")
                break
            self._keep(first)
            if not self._statements(s.body):
                return False
            passes += 1
            if s.record:
                self.history.append([float(self.scalars[x.name].value) for x in s.record])
        self._keep(last)
        return True

    def _decide(self, condition: Expr) -> bool:
        truth = self._node(condition, (False,) * self.grid.ndim, (0,) * self.grid.ndim, {})
        if bool(truth.doubt):
            raise Undecided
        return bool(truth.value)

    # --- expressions ---

    def evaluate(self, e: Expr, place: tuple[bool, ...]) -> Number:
        """Return an expression at all points of a location."""
        result = self._node(e, place, (0,) * self.grid.ndim, {})
        assert isinstance(result, Number)
        return result

    def _node(self, e: Expr, place: tuple[bool, ...], shift: tuple[int, ...], memo: dict[Any, Any]) -> Any:
        key = (id(e), shift)
        if key not in memo:
            memo[key] = self._compute(e, place, shift, memo)
        return memo[key]

    def _compute(self, e: Expr, place: tuple[bool, ...], shift: tuple[int, ...], memo: dict[Any, Any]) -> Any:
        if e.op == "const":
            return Number.exact(e.attribute)
        if e.op == "scalar":
            return self.scalars[e.attribute[0]]
        if e.op == "index":
            axis, step = e.attribute if isinstance(e.attribute, tuple) else (e.attribute, 0)
            return Number.exact(self._indices(axis, self.points(place)[axis], step + shift[axis]))
        if e.op == "read":
            f, version, offset = e.attribute
            return self._read(f, version, tuple(a + b for a, b in zip(offset, shift, strict=True)), place)
        if e.op == "stage":
            stage, offset = e.attribute
            shifted = tuple(a + b for a, b in zip(offset, shift, strict=True))
            return self._node(stage.definition, place, shifted, memo)
        if e.op == "reduce":
            return self._reduce(e)
        args = [self._node(a, place, shift, memo) for a in e.args]
        if e.op in ("where", "branch"):
            return select(*args)
        if e.op in ("lt", "le", "gt", "ge", "eq", "ne"):
            return compare(e.op, *args)
        if e.op in ("and", "or"):
            join = np.logical_and if e.op == "and" else np.logical_or
            return Truth(join(args[0].value, args[1].value), args[0].doubt | args[1].doubt)
        if e.op == "not":
            return Truth(~args[0].value, args[0].doubt)
        if e.op == "cast":
            return args[0].stored_as(e.attribute)
        return binary(e.op, *args) if len(args) == 2 else unary(e.op, *args)

    def _indices(self, axis: int, count: int, start: int, position: float | None = None) -> Array:
        """Return global indices along an axis, shaped to broadcast and wrapped on a periodic axis."""
        if position is not None:
            along = np.array([position])
        else:
            along = np.arange(start, start + count, dtype=np.float64)
            if self.grid.periodic[axis]:
                along = along % self.grid.shape[axis]
        return along.reshape([-1 if a == axis else 1 for a in range(self.grid.ndim)])

    def _read(self, f: Field, version: int, offset: tuple[int, ...], place: tuple[bool, ...]) -> Number:
        pad = tuple(abs(o) + 1 for o in offset)
        whole = self.ghosted(f, version, pad)
        counts = self.points(place)
        return whole[tuple(slice(p + o, p + o + n) for p, o, n in zip(pad, offset, counts, strict=True))]

    def _reduce(self, e: Expr) -> Number:
        kind, cell = e.attribute[:2]
        place = self._place(e.args[0])
        operand = self.evaluate(e.args[0], place)
        shape = self.points(place)
        value, error = np.broadcast_to(operand.value, shape), np.broadcast_to(operand.error, shape)
        if kind == "value":
            return Number(value[cell], error[cell])
        if kind in ("min", "max"):
            return Number(np.asarray(value.min() if kind == "min" else value.max()), np.asarray(error.max()))
        total = math.fsum(value.ravel())
        # sums carry far more digits than their terms
        bound = math.fsum(error.ravel()) + 2.0**-50 * (
            abs(total) + 2.0**-20 * math.fsum(np.abs(value).ravel())
        )
        return Number(np.asarray(total), np.asarray(bound if kind == "sum" else math.fsum(error.ravel())))

    def _place(self, e: Expr) -> tuple[bool, ...]:
        """Return the location of the points of a reduction.

        An axis includes the upper wall if all reads have a point on it and no offset along the axis.
        Otherwise the points are at cells.
        """
        reads: set[tuple[Field, tuple[int, ...]]] = set()

        def visit(e: Expr, shift: tuple[int, ...], visited: set[Any]) -> None:
            if (id(e), shift) in visited:
                return
            visited.add((id(e), shift))
            if e.op in ("read", "stage"):
                offset = tuple(a + b for a, b in zip(e.attribute[-1], shift, strict=True))
                if e.op == "read":
                    reads.add((e.attribute[0], offset))
                else:
                    visit(e.attribute[0].definition, offset, visited)
            for a in e.args:
                visit(a, shift, visited)

        visit(e, (0,) * self.grid.ndim, set())
        return tuple(
            bool(reads) and all(f.staggered[a] and o[a] == 0 for f, o in reads) for a in range(self.grid.ndim)
        )

    # --- ghost cells ---

    def ghosted(self, f: Field, version: int, pad: tuple[int, ...]) -> Number:
        """Return a field with ghost cells, NaN where too few interior cells exist to form one.

        The ghosts are formed axis by axis in ascending order, including ghost cells of the other axes.
        Corners therefore follow from the ghost cells of lower axes.
        """
        key = f, version, pad
        if key not in self._ghosted:
            widths = [(p, p) for p in pad]
            inside = self._stored[f, version]
            padded = Number(
                np.pad(inside.value, widths, constant_values=np.nan),
                np.pad(inside.error, widths, constant_values=np.nan),
                f.dtype,
            )
            for axis in range(self.grid.ndim):
                self._fill_axis(f, version, padded, axis, pad)
            self._ghosted[key] = padded
        return self._ghosted[key]

    def _fill_axis(self, f: Field, version: int, whole: Number, axis: int, pad: tuple[int, ...]) -> None:
        n, p = self.points(f.staggered)[axis], pad[axis]
        if self.grid.periodic[axis]:
            around = p + (np.arange(-p, n + p) % n)
            whole.value[...] = np.take(whole.value, around, axis)
            whole.error[...] = np.take(whole.error, around, axis)
            return
        for side in (-1, 1):
            for layer in range(p):
                ghost = self._ghost(f, version, whole, axis, side, layer, pad)
                at = p - 1 - layer if side < 0 else p + n + layer
                row = (slice(None),) * axis + (slice(at, at + 1),)
                if ghost is not None:
                    ghost = ghost.stored_as(f.dtype)
                    whole.value[row], whole.error[row] = ghost.value, ghost.error

    def _ghost(
        self, f: Field, version: int, whole: Number, axis: int, side: int, layer: int, pad: tuple[int, ...]
    ) -> Number | None:
        """Return one layer of ghost cells, or None without a condition or with too few cells."""
        condition = f.boundary.get("xyz"[axis] + ("-" if side < 0 else "+"))
        if condition is None:
            return None
        w = self.wall(f, axis)
        d = layer + 1 - w  # distance outward from the wall, in spacings

        def inner(m: int, of: Field = f, source: Number = whole) -> Number:
            n, p = self.points(of.staggered)[axis], pad[axis]
            if not 0 <= m < n:
                raise IndexError
            at = p + m if side < 0 else p + n - 1 - m
            return source[(slice(None),) * axis + (slice(at, at + 1),)]

        def weighted(points: Sequence[tuple[int, Fraction]], extra: Number | None, rule: str) -> Number:
            """Return the ghost value of the polynomial through inner points and the wall value or slope."""
            weights = polynomial([s for _, s in points], rule, -d)
            total = number(0.0) if extra is None else extra * float(weights[-1])
            for (m, _), weight in zip(points, weights, strict=False):
                total = total + inner(m) * float(weight)
            return total

        def interior(count: int, *, from_wall: bool) -> list[tuple[int, Fraction]]:
            first = 1 if from_wall and w == 0 else 0  # the wall's value replaces the point on the wall
            return [(m, m + w) for m in range(first, first + count)]

        try:
            if isinstance(condition, Antisymmetric):
                condition = Value(0.0)
            if isinstance(condition, Symmetric):
                condition = Derivative(0.0)
            if isinstance(condition, Value):
                at_wall = self._at_wall(condition.value, f, axis, side, pad)
                if d == 0:
                    return at_wall
                if condition.order is None:
                    return 2.0 * at_wall - inner(int(layer + 1 - 2 * w))
                return weighted(interior(condition.order, from_wall=True), at_wall, "value")
            if isinstance(condition, Derivative):
                slope = self._at_wall(condition.value, f, axis, side, pad) * self.spacing(axis)
                if condition.order == 2 and d != 0:
                    return inner(int(layer + 1 - 2 * w)) + slope * float(2 * d * side)
                # the polynomial counts inward, so that its slope has the opposite sign at an upper wall
                return weighted(interior(condition.order, from_wall=True), slope * float(-side), "slope")
            if isinstance(condition, Extrapolate):
                return weighted(interior(condition.order, from_wall=False), None, "free")
            assert isinstance(condition, BoundaryKernel)
            inward = Inward(self, inner, pad, axis, side, layer, f)
            count = condition.function.__code__.co_argcount
            return number(condition.function(*(inward, layer)[:count]))
        except IndexError:
            return None

    def _at_wall(self, value: Any, f: Field, axis: int, side: int, pad: tuple[int, ...]) -> Number:
        """Return a number, scalar, expression or function of the coordinates, at the wall."""
        if callable(value) and not isinstance(value, Operators):
            value = value(*f.coordinates)
        if not isinstance(value, Operators):
            return number(value)
        n, w = self.points(f.staggered), float(self.wall(f, axis))
        memo: dict[int, Any] = {}

        def at(e: Expr) -> Any:
            if id(e) not in memo:
                memo[id(e)] = compute(e)
            return memo[id(e)]

        def compute(e: Expr) -> Any:
            if e.op == "index":
                along, step = e.attribute if isinstance(e.attribute, tuple) else (e.attribute, 0)
                if along == axis:
                    position = (-w if side < 0 else n[axis] - 1 + w) + step
                    return Number.exact(self._indices(axis, 1, 0, position))
                return Number.exact(self._indices(along, n[along] + 2 * pad[along], step - pad[along]))
            zero = (0,) * self.grid.ndim
            if not e.args:
                return self._node(e, (False,) * self.grid.ndim, zero, {})
            args = [at(a) for a in e.args]
            if e.op in ("where", "branch"):
                return select(*args)
            if e.op in ("lt", "le", "gt", "ge", "eq", "ne"):
                return compare(e.op, *args)
            return binary(e.op, *args) if len(args) == 2 else unary(e.op, *args)

        result = at(value.expr)
        assert isinstance(result, Number)
        return result


@dataclass
class Inward:
    """NumPy counterpart of the argument of a user's boundary kernel."""

    reference: Reference
    inner: Callable[..., Number]
    pad: tuple[int, ...]
    axis: int
    side: int
    layer: int
    field: Field
    other: Field | None = None

    def __getitem__(self, m: int) -> Number:
        if self.other is None:
            return self.inner(m)
        # the ghost cells of lower axes follow the other field's conditions
        r = self.reference
        latest = max(v for f, v in r._stored if f is self.other and r._stored[f, v] is r.fields[f])
        source = r.ghosted(self.other, latest, self.pad)
        values = self.inner(m, self.other, source)
        counts = [n + 2 * p for n, p in zip(r.points(self.field.staggered), self.pad, strict=True)]
        cut = tuple(slice(None) if a == self.axis else slice(0, n) for a, n in enumerate(counts))
        return values[cut]

    def of(self, other: Field) -> Inward:
        return Inward(
            self.reference, self.inner, self.pad, self.axis, self.side, self.layer, self.field, other
        )

    @property
    def h(self) -> float:
        return self.reference.spacing(self.axis)


def polynomial(points: Sequence[Fraction], rule: str, at: Fraction) -> list[Fraction]:
    """Return the weights of a polynomial's value at `at`.

    The weights multiply the values at `points`, then the value or slope at 0, which together define the
    polynomial.
    """
    count = len(points) + (rule != "free")
    rows = [[s**k for k in range(count)] for s in points]
    if rule == "value":
        rows.append([Fraction(int(k == 0)) for k in range(count)])
    elif rule == "slope":
        rows.append([Fraction(int(k == 1)) for k in range(count)])
    # weights w with sum_i w_i row_i = (1, at, at^2, ...)
    matrix = [[rows[i][k] for i in range(count)] + [at**k] for k in range(count)]
    for column in range(count):
        pivot = next(r for r in range(column, count) if matrix[r][column] != 0)
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        matrix[column] = [x / matrix[column][column] for x in matrix[column]]
        for r in range(count):
            if r != column:
                factor = matrix[r][column]
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[column], strict=True)]
    return [matrix[k][-1] for k in range(count)]
