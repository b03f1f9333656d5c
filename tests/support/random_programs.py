"""Random programs on random grids, and their evaluation in NumPy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from numpy_reference import Reference

Draw = Any

LOCATIONS = {
    1: ["cell", "face-x"],
    2: ["cell", "cell", "face-x", "face-y", "node"],
    3: ["cell", "cell", "cell", "face-x", "face-z", "edge-y", "node"],
}
UNARY = ["neg", "abs", "sqrt", "exp", "log", "sin", "cos", "sign", "square", "inverse"]
BINARY = ["add", "sub", "mul", "add", "sub", "mul", "div", "min", "max", "sorted"]
COMPARISONS = ["lt", "le", "gt", "ge"]
numbers = st.sampled_from([0.5, -0.25, 0.1, 1.7, -1.3, 0.75, 2.0, 1 / 3])


# --- examples as data ---


@dataclass
class FieldRecipe:
    name: str
    location: str
    dtype: str
    boundary: dict[str, tuple[Any, ...]]


@dataclass
class Recipe:
    """A program, and the kind of its grid."""

    ndim: int
    periodic: tuple[bool, ...]
    walls: tuple[str, ...]
    fields: list[FieldRecipe]
    statements: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass
class Scope:
    """Names that an expression may use."""

    ndim: int
    radius: int
    walls: bool
    fields: list[str]
    stages: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    reduced: int = 0  # scalars so far


def offsets(draw: Draw, scope: Scope) -> tuple[int, ...]:
    """Draw offsets, mostly close and often diagonal."""
    reach = st.integers(-scope.radius, scope.radius)
    return tuple(draw(st.one_of(st.just(0), reach)) for _ in range(scope.ndim))


def expression(draw: Draw, scope: Scope, depth: int) -> tuple[Any, ...]:
    """Draw an expression."""
    kinds = ["read"] * 3 + (["stage"] * 3 if scope.stages else [])
    if depth > 0:
        kinds += ["binary"] * 8 + ["unary"] * 2 + ["where"] * 2
    else:
        kinds += ["number", "parameter", "coordinate"] + (["scalar"] if scope.scalars else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "read":
        return "read", draw(st.sampled_from(scope.fields)), offsets(draw, scope)
    if kind == "stage":
        return "read", draw(st.sampled_from(scope.stages)), offsets(draw, scope)
    if kind == "number":
        return "number", draw(numbers)
    if kind == "parameter":
        return "parameter", draw(st.sampled_from("ab"))
    if kind == "coordinate":
        return "coordinate", draw(st.integers(0, scope.ndim - 1))
    if kind == "scalar":
        return "scalar", draw(st.sampled_from(scope.scalars))
    a, b = (expression(draw, scope, depth - 1) for _ in range(2))
    if kind == "binary":
        return draw(st.sampled_from(BINARY)), a, b
    if kind == "unary":
        return draw(st.sampled_from(UNARY)), a
    c = expression(draw, scope, 0)
    return draw(st.sampled_from(("where", "branch"))), draw(st.sampled_from(COMPARISONS)), a, c, a, b


def assignment(draw: Draw, scope: Scope) -> tuple[Any, ...]:
    """Draw an assignment to one field or to all at once."""
    targets = draw(st.sampled_from([*([f] for f in scope.fields), scope.fields]))
    return "set", {f: expression(draw, scope, draw(st.integers(1, 3))) for f in targets}


def stage(draw: Draw, scope: Scope) -> tuple[Any, ...]:
    """Draw a stage."""
    definition = expression(draw, scope, draw(st.integers(1, 2)))
    scope.stages.append(f"s{len(scope.stages)}")
    # an array has no values beyond walls
    storages = ["auto", "inline", "patch", "patch"] + ["array"] * (not scope.walls)
    return "stage", scope.stages[-1], definition, draw(st.sampled_from(storages))


def reduction(draw: Draw, scope: Scope) -> tuple[Any, ...]:
    """Draw a reduction into a new scalar."""
    kind = draw(st.sampled_from(["sum", "min", "max", "count", "norm", "value", "dot"]))
    operand = expression(draw, scope, 1)
    corner = tuple(draw(st.sampled_from([0, -1])) for _ in range(scope.ndim))
    scope.scalars.append(f"r{scope.reduced}")
    scope.reduced += 1
    return "scalar", scope.scalars[-1], kind, operand, corner


def condition(draw: Draw, fields: list[str], name: str) -> tuple[Any, ...]:
    """Draw a boundary condition of one side."""
    kinds = ["value", "derivative", "symmetric", "antisymmetric", "extrapolate", "kernel"]
    kind = draw(st.sampled_from(kinds))
    source = draw(st.sampled_from(["number", "parameter", "function"]))
    if kind == "value":
        return kind, source, draw(st.sampled_from([None, None, 1, 2, 3]))
    if kind == "derivative":
        return kind, source, draw(st.sampled_from([2, 2, 1, 3, 4]))
    if kind == "extrapolate":
        return kind, draw(st.integers(1, 3))
    if kind == "kernel":
        before = fields[: fields.index(name)]  # no two fields with conditions that depend on each other
        return kind, draw(st.sampled_from(["two", "layer", *(f"of {f}" for f in before)]))
    return (kind,)


@st.composite
def recipes(draw: Draw, *, ndims: tuple[int, ...] = (1, 2, 3)) -> Recipe:
    """Draw a program."""
    ndim = draw(st.sampled_from(ndims))
    periodic = tuple(draw(st.booleans()) for _ in range(ndim))
    walls = tuple(draw(st.sampled_from(["face", "node"])) for _ in range(ndim))
    names = ["u", "v", "w"][: draw(st.integers(2, 3))]
    mixed = draw(st.sampled_from(["float64", "float64", "float32", "both"]))
    fields = []
    for name in names:
        dtype = draw(st.sampled_from(["float64", "float32"])) if mixed == "both" else mixed
        sides = [s for a, p in zip("xyz", periodic, strict=False) if not p for s in (a + "-", a + "+")]
        boundary = {side: condition(draw, names, name) for side in sides}
        fields.append(FieldRecipe(name, draw(st.sampled_from(LOCATIONS[ndim])), dtype, boundary))
    recipe = Recipe(ndim, periodic, walls, fields)
    scope = Scope(ndim, draw(st.integers(1, 3 if ndim < 3 else 2)), not all(periodic), names)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["set", "set", "set", "stage", "scalar", "loop"]))
        if kind == "loop":
            scope.stages.clear()  # stages represent values from before the loop
            body = [assignment(draw, scope) for _ in range(draw(st.integers(1, 2)))]
            if draw(st.integers(0, 3)) == 0:
                body.append(("loop", draw(st.integers(0, 2)), [assignment(draw, scope)]))
            if draw(st.booleans()):
                body.append(reduction(draw, scope))
                scope.scalars.pop()  # the scalar is undefined if the loop has no pass
            recipe.statements.append(("loop", draw(st.integers(0, 3)), body))
        elif kind == "stage" and len(scope.stages) < 3:
            recipe.statements.append(stage(draw, scope))
        elif kind == "scalar":
            recipe.statements.append(reduction(draw, scope))
        else:
            recipe.statements.append(assignment(draw, scope))
            scope.stages.clear()  # stages may read the changed field
    recipe.statements.append(assignment(draw, scope))
    return recipe


# --- examples on a grid ---


PARAMETERS = {"a": 0.7, "b": -1.1}


def kernel(name: str, grid: hc.Grid, f: hc.Field) -> hc.BoundaryKernel:
    """Return a boundary kernel of a field by its name."""
    if name.startswith("of ") and any(
        staggered and not other_staggered
        for staggered, other_staggered in zip(
            f.staggered, grid.fields[name.removeprefix("of ")].staggered, strict=True
        )
    ):
        name = "two"  # along a wall, the other field has no point next to the last one of `f`
    if name == "two":
        return hc.BoundaryKernel(lambda u: 1.5 * u[0] - 0.5 * u[1] + u.h)
    if name == "layer":
        return hc.BoundaryKernel(lambda u, layer: u[layer] * (0.5 + 0.25 * layer))
    other = grid.fields[name.removeprefix("of ")]
    return hc.BoundaryKernel(lambda u: u.of(other)[0] * 0.5 + u[0] * 0.25)


def boundary(recipe: tuple[Any, ...], grid: hc.Grid, f: hc.Field) -> Any:
    """Return the boundary condition of a recipe."""
    kind, *rest = recipe
    if kind == "kernel":
        return kernel(rest[0], grid, f)
    if kind == "extrapolate":
        return hc.Extrapolate(rest[0])
    if kind in ("symmetric", "antisymmetric"):
        return hc.Symmetric() if kind == "symmetric" else hc.Antisymmetric()
    value: Any = {
        "number": 0.3,
        "parameter": hc.parameter("b"),
        "function": lambda *x: 0.5 * x[-1] + x[0] * x[0],
    }[rest[0]]
    return hc.Value(value, rest[1]) if kind == "value" else hc.Derivative(value, rest[1])


class Case:
    """A recipe on one grid."""

    def __init__(self, recipe: Recipe, shape: tuple[int, ...], extent: tuple[float, ...]) -> None:
        self.recipe = recipe
        self.grid = hc.Grid(shape, extent, origin=-0.25, periodic=recipe.periodic, walls=recipe.walls)
        for f in recipe.fields:
            self.grid.field(f.name, location=f.location, dtype=f.dtype)
            conditions = {
                side: boundary(c, self.grid, self.grid.fields[f.name]) for side, c in f.boundary.items()
            }
            self.grid.fields[f.name].boundary.update(conditions)
        self.declared_fields = list(self.grid.fields.values())
        self.program = hc.program(self._program)

    def _program(self) -> None:
        self.things: dict[str, Any] = dict(self.grid.fields)
        self._statements(self.recipe.statements)

    def _statements(self, statements: list[tuple[Any, ...]]) -> None:
        for kind, *rest in statements:
            if kind == "set":
                changes = {self.things[f]: bounded(self._expression(e)) for f, e in rest[0].items()}
                hc.assign(changes)
            elif kind == "stage":
                name, definition, storage = rest
                value = self._expression(definition)
                # a stage must vary from cell to cell
                base = self.things["u"] if not value.varies else 0.0
                self.things[name] = hc.stage(bounded(value + base * 0.5), name, storage=storage)
            elif kind == "scalar":
                self._scalar(*rest)
            else:
                limit, body = rest
                with hc.loop(limit=limit):
                    self._statements(body)

    def _scalar(self, name: str, kind: str, recipe: tuple[Any, ...], corner: tuple[int, ...]) -> None:
        value = self._expression(recipe)
        if not value.varies:
            value = value + self.things["u"]
        target = hc.scalar(name)
        self.things[name] = target
        if kind == "count":
            target.set(hc.count(value > 0.125) * 0.01)
        elif kind == "value":
            target.set(hc.value(value, corner))
        elif kind == "dot":
            target.set(hc.dot(value, self.things["u"]) * 0.01)
        elif kind == "sum":
            target.set(hc.sum(value) * 0.01)
        else:
            target.set({"min": hc.min, "max": hc.max, "norm": hc.norm}[kind](value) * 0.1)

    def _expression(self, recipe: tuple[Any, ...]) -> Any:
        op, *rest = recipe
        if op == "read":
            return self.things[rest[0]][rest[1]]
        if op == "number":
            return self.grid.fields["u"].expr * 0.0 + rest[0]
        if op == "parameter":
            return hc.parameter(rest[0])
        if op == "coordinate":
            return self.grid.coordinates()[rest[0]]
        if op == "scalar":
            scalar = self.things[rest[0]].expr
            return scalar / (1.0 + abs(scalar))
        if op in ("where", "branch"):
            sign, a, b, then, otherwise = (r if isinstance(r, str) else self._expression(r) for r in rest)
            test = {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[sign]
            choose = hc.where if op == "where" else hc.branch
            return choose(test & (then > -3.0) | ~(otherwise < 5.0), then, otherwise)
        args = [self._expression(r) for r in rest]
        if len(args) == 2:
            a, b = args
            return {
                "add": lambda: a + b,
                "sub": lambda: a - b,
                "mul": lambda: a * b,
                "div": lambda: a / (1.5 + b * b),
                "min": lambda: hc.minimum(a, b),
                "max": lambda: hc.maximum(a, b),
                "sorted": lambda: hc.symmetric_sum(a * b, b, a, 0.5),
            }[op]()
        (a,) = args
        return {
            "neg": lambda: -a,
            "abs": lambda: abs(a),
            "sqrt": lambda: hc.sqrt(abs(a) + 0.25),
            "exp": lambda: hc.exp(hc.minimum(a, 1.0)),
            "log": lambda: hc.log(abs(a) + 0.5),
            "sin": lambda: hc.sin(a),
            "cos": lambda: hc.cos(a),
            "sign": lambda: hc.sign(a),
            "square": lambda: a**2,
            "inverse": lambda: 1.0 / (1.0 + abs(a)),
        }[op]()

    def start(self) -> dict[Any, Any]:
        """Return the initial values of all fields."""
        random = np.random.default_rng(42)
        values = {}
        for f in self.declared_fields:
            shape = tuple(
                n + (s and not p)
                for n, s, p in zip(self.grid.shape, f.staggered, self.grid.periodic, strict=True)
            )
            values[f] = random.uniform(-2, 2, shape).astype(f.dtype)
        return values

    def simulate(self, **options: Any) -> hc.Simulation:
        sim = hc.Simulation(self.grid, self.program, parameters=PARAMETERS, **options)
        for f, values in self.start().items():
            if f.name in sim.store.storages:
                sim[f] = values
        sim.run()
        return sim

    def reference(self) -> Reference:
        return Reference(self.grid, self.program.trace(), self.start(), dict(PARAMETERS)).run()


def bounded(e: Any) -> Any:
    """Return a value below 4, so that no program overflows."""
    return e / (1.0 + 0.25 * abs(e))


def too_small(error: InputError) -> bool:
    """Return True if a grid has fewer cells, or axes, than the program and decomposition need."""
    messages = (
        r"subdomains? leave \d|cannot be cut into \d|periodic ends reach |grid has only|'bisection' into \d"
    )
    return re.search(messages, str(error)) is not None


# --- one process against NumPy ---


options = st.fixed_dictionaries(
    {"threads": st.integers(1, 3), "patch": st.one_of(st.none(), st.integers(1, 9))}
)

ANY_SPEED = {"deadline": None, "suppress_health_check": list(HealthCheck)}


# --- several ranks against one ---


shapes_to_cut = st.tuples(*[st.integers(17, 26)] * 3)
