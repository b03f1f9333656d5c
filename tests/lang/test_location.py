"""Locations of expressions: orders of operators between locations, and rejected combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.lang.expression import Expr, as_expr, place_of, walk, with_location, without_location
from halocline.lang.location import form_at_target, location, staggering
from halocline.lang.operators import interpolation_coefficients, staggered_coefficients
from loops import some
from numpy_reference import Reference
from staggered_acoustics import acoustic

Array = np.ndarray[Any, Any]
Place = tuple[bool, ...]

ORDERS = (2, 4, 6)

# Only the extended tests have higher orders in space.
SIZES = [
    pytest.param(ndim, order, marks=[pytest.mark.long] if ndim == 3 and order > 2 else [])
    for ndim in (1, 2, 3)
    for order in ORDERS
]
AXES = "xyz"
PHASE = (0.3, 1.1, 2.0)


def place_name(value: Any) -> str | None:
    """Return the location of an expression; None if it is unknown."""
    placement = as_expr(value).placement
    return None if placement is None else location(placement.first)


def places(ndim: int) -> list[Place]:
    return list(itertools.product((False, True), repeat=ndim))


def evaluated(e: Expr, values: dict[Any, Array], shape: Sequence[int], h: Sequence[float]) -> Array:
    """Return the values of an expression at all points of a periodic grid."""
    results: dict[Expr, Any] = {}
    functions: dict[str, Callable[..., Any]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
        "sin": np.sin, "cos": np.cos, "abs": np.abs,
    }  # fmt: skip
    for node in walk((e,)):
        if node.op == "const":
            results[node] = node.attribute
        elif node.op == "scalar":
            name = node.attribute[0]
            results[node] = h[AXES.index(name[2])] if name.startswith("h_") else 0.0
        elif node.op == "index":
            axis, step = node.attribute
            line = np.arange(shape[axis]) + step
            results[node] = line.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        elif node.op == "read":
            field, _, offset = node.attribute
            results[node] = np.roll(values[field], [-o for o in offset], range(len(shape)))
        else:
            results[node] = functions[node.op](*(results[a] for a in node.args))
    return np.asarray(np.broadcast_to(results[e], shape))


def exact(grid: hc.Grid, place: Sequence[bool], derivatives: Sequence[int], shift: float = 0.0) -> Array:
    """Return derivatives of a product of sines of each coordinate at the points of a location."""
    k, total = 2 * math.pi, np.ones(())
    for axis, count in enumerate(derivatives):
        angle = k * grid.positions(place)[axis] + PHASE[axis] + shift + count * math.pi / 2
        total = total * (k**count * np.sin(angle)).reshape([-1 if a == axis else 1 for a in range(grid.ndim)])
    return np.asarray(total)


class Problem:
    """Fields at locations on a periodic grid, each with a different product of sines."""

    def __init__(self, shape: Sequence[int], *fields: Place) -> None:
        self.grid = hc.Grid(tuple(shape), periodic=True)
        self.places = fields
        self.fields = [self.grid.field(f"f{n}", location=location(p)) for n, p in enumerate(fields)]
        self.values = {
            f: exact(self.grid, f.staggered, (0,) * self.grid.ndim, shift=float(n))
            for n, f in enumerate(self.fields)
        }

    def error(self, e: Any, target: Place, expected: Array) -> float:
        located = form_at_target(as_expr(e), target, "target")
        computed = evaluated(located, self.values, self.grid.shape, self.grid.spacing)
        return float(np.abs(computed - expected).max())

    def d(self, number: int, target: Place, *axes: int) -> Array:
        """Return the exact derivative of a field along axes at a location."""
        counts = [axes.count(a) for a in range(self.grid.ndim)]
        return exact(self.grid, target, counts, shift=float(number))


def measured(error: Callable[[int], float], n: int = 14) -> float:
    coarse, fine = error(n), error(2 * n)
    assert coarse > 1e-9
    return math.log2(coarse / fine)


def shaped(ndim: int, n: int, axes: Sequence[int]) -> list[int]:
    """Return the shape of a grid that is refined along some axes only."""
    return [n if a in axes else 4 for a in range(ndim)]


def flipped(place: Place, *axes: int) -> Place:
    return tuple(not p if a in axes else p for a, p in enumerate(place))


@pytest.mark.parametrize(("ndim", "order"), SIZES)
def test_derivatives_between_locations_have_their_order(ndim: int, order: int) -> None:
    """Derivatives have their order for every location, axis and target; other targets are rejected."""
    ran = 0
    for place, axis, target in itertools.product(places(ndim), range(ndim), places(ndim)):
        if target not in (place, flipped(place, axis)):
            d = hc.derivative(Problem([4] * ndim, place).fields[0], axis, order=order)
            assert place_name(d) == location(min(place, flipped(place, axis), key=sum))
            with pytest.raises(InputError, match=rf"target lies at '{location(target)}', but .* at"):
                form_at_target(d, target, "target")
            continue

        def error(n: int, place: Place = place, axis: int = axis, target: Place = target) -> float:
            problem = Problem(shaped(ndim, n, [axis]), place)
            d = hc.derivative(problem.fields[0], axis, order=order)
            return problem.error(d, target, problem.d(0, target, axis))

        assert order - 0.25 < measured(error) < order + 0.5, (place, axis, target)
        ran += 1
    assert ran == 2 * ndim * 2**ndim


@pytest.mark.parametrize(("ndim", "order"), SIZES)
def test_interpolation_has_its_order(ndim: int, order: int) -> None:
    """Interpolation has its order from every location to every other location."""
    ran = 0
    for place, target in itertools.product(places(ndim), repeat=2):
        changed_axes = [a for a in range(ndim) if place[a] != target[a]]

        def error(
            n: int, place: Place = place, target: Place = target, changed_axes: Any = changed_axes
        ) -> float:
            problem = Problem(shaped(ndim, n, changed_axes), place)
            interpolated = hc.to(problem.fields[0], location(target), order=order)
            assert place_name(interpolated) == location(target)
            return problem.error(interpolated, target, problem.d(0, target))

        if changed_axes:
            n = 14 if len(changed_axes) < 3 else 10
            assert order - 0.25 < measured(error, n) < order + 0.5, (place, target)
        else:
            assert error(8) == 0.0
        ran += 1
    assert ran == 4**ndim


@pytest.mark.parametrize(("ndim", "order"), SIZES[3:])
def test_second_and_mixed_derivatives_have_their_order(ndim: int, order: int) -> None:
    ran = 0
    for place, a, b in itertools.product(places(ndim), range(ndim), range(ndim)):
        for target in {place, flipped(place, a, b)} if a != b else {place}:

            def error(n: int, place: Place = place, target: Place = target, a: int = a, b: int = b) -> float:
                problem = Problem(shaped(ndim, n, [a, b]), place)
                d = hc.derivative(problem.fields[0], a, b, order=order)
                return problem.error(d, target, problem.d(0, target, a, b))

            assert order - 0.25 < measured(error) < order + 0.5, (place, a, b, target)
            ran += 1
    assert ran == 2**ndim * (ndim + 2 * ndim * (ndim - 1))


def vector_places(ndim: int, kind: str) -> list[Place]:
    names = {"cell": ["cell"] * ndim, "node": ["node"] * ndim}
    chosen = names.get(kind, [f"{kind}-{AXES[a]}" for a in range(ndim)])
    return [staggering(name, ndim, "") for name in chosen]


def vector_cases(ndim: int, kind: str) -> Iterator[tuple[str, Any, Place, list[tuple[float, int, int]]]]:
    """Yield operators of a vector by name, with the location and the terms of the result.

    Each term is a weight, a component and an axis.
    """
    component_places = vector_places(ndim, kind)
    natural = [flipped(p, a) for a, p in enumerate(component_places)]
    everywhere = kind in ("cell", "node")
    target = component_places[0] if everywhere else natural[0]
    if everywhere or kind == "face":
        yield "div", lambda v, order: hc.div(v, order=order), target, [(1.0, a, a) for a in range(ndim)]
    pairs = [(1, 2), (2, 0), (0, 1)] if ndim == 3 else [(0, 1)]
    for a, b in pairs:
        third = 3 - a - b
        at = component_places[0] if everywhere else flipped(component_places[b], a)
        if at != (component_places[0] if everywhere else flipped(component_places[a], b)):
            continue  # edges of a plane
        yield (
            f"curl {third}",
            lambda v, order, third=third: hc.curl(v, order=order)[third],
            at,
            [(1.0, b, a), (-1.0, a, b)],
        )
        yield (
            f"strain {a}{b}",
            lambda v, order, a=a, b=b: hc.traceless_strain(v, order=order)[a][b],
            at,
            [(0.5, b, a), (0.5, a, b)],
        )


@pytest.mark.parametrize("kind", ["cell", "face", "edge", "node"])
@pytest.mark.parametrize(("ndim", "order"), SIZES[3:])
def test_vector_operators_have_their_order(ndim: int, kind: str, order: int) -> None:
    """Divergence, curl and strain have the expected order at their default location."""
    ran = 0
    for name, make, target, terms in vector_cases(ndim, kind):

        def error(n: int, make: Any = make, target: Place = target, terms: Any = terms) -> float:
            problem = Problem([n] * ndim, *vector_places(ndim, kind))
            operated = make(hc.Vector(problem.fields), order)
            assert place_name(operated) == location(target)
            expected = sum(w * problem.d(component, target, axis) for w, component, axis in terms)
            return problem.error(operated, target, expected)

        coarse, fine = error(10), error(20)
        assert order - 0.3 < math.log2(coarse / fine) < order + 0.6, name
        ran += 1
    assert ran >= (1 if ndim == 2 else 6)


@pytest.mark.parametrize("order", ORDERS)
def test_gradients_and_sums_of_second_derivatives_have_their_order(order: int) -> None:
    """The gradient of a cell field lies on faces; grad_div and the Laplacian lie at the vector."""
    for axis in range(3):

        def errors(n: int, axis: int = axis) -> list[float]:
            problem = Problem([n] * 3, (False,) * 3, *vector_places(3, "face"))
            p, *v = problem.fields
            at = flipped((False,) * 3, axis)
            expected = sum(problem.d(1 + j, at, axis, j) for j in range(3))
            spread = sum(problem.d(1 + axis, at, j, j) for j in range(3))
            combined = v[axis] + hc.grad(p, order=order)[axis]
            return [
                problem.error(combined, at, problem.d(1 + axis, at) + problem.d(0, at, axis)),
                problem.error(hc.grad_div(v, order=order)[axis], at, expected),
                problem.error(hc.laplacian(v[axis], order=order), at, spread),
            ]

        for coarse, fine in some(zip(errors(10), errors(20), strict=True)):
            assert order - 0.35 < math.log2(coarse / fine) < order + 0.6


def test_staggered_differences_have_the_known_weights() -> None:
    assert [list(map(str, staggered_coefficients(order))) for order in ORDERS] == [
        ["1"], ["9/8", "-1/24"], ["75/64", "-25/384", "3/640"],
    ]  # fmt: skip
    assert [list(map(str, interpolation_coefficients(order))) for order in ORDERS] == [
        ["1/2"], ["9/16", "-1/16"], ["75/128", "-25/256", "3/256"],
    ]  # fmt: skip
    with pytest.raises(InputError, match="order 3"):
        staggered_coefficients(3)


@pytest.mark.parametrize("walls", ["face", "node"])
def test_stretched_axes_have_second_order_between_locations(walls: str) -> None:
    def errors(n: int, place: Place) -> list[float]:
        grid = hc.Grid(n, walls=walls, stretch={"x": lambda x: x - 0.1 * np.sin(2 * math.pi * x)})
        f = grid.field("f", location=location(place))
        inside = slice(2, n - 2)
        values = {f: np.sin(3 * f.positions[0])[:n]}
        x = grid.positions(flipped(place, 0))[0][:n]
        maxima = []
        for e, expected in (
            (hc.derivative(f, 0), 3 * np.cos(3 * x)),
            (hc.to(f, location(flipped(place, 0))), np.sin(3 * x)),
        ):
            located = form_at_target(e, flipped(place, 0), "target")
            computed = evaluated(located, values, (n,), [grid.even_spacing(0)])
            maxima.append(float(np.abs(computed - expected)[inside].max()))
        return maxima

    for place in places(1):
        for coarse, fine in zip(errors(20, place), errors(40, place), strict=True):
            assert 1.8 < math.log2(coarse / fine) < 2.6
    grid = hc.Grid(8, stretch={"x": lambda x: x - 0.1 * np.sin(2 * math.pi * x)})
    with pytest.raises(InputError, match="order 4 along axis x, which is stretched"):
        hc.to(grid.field("u"), "face-x", order=4)


def test_interpolation_along_a_stretched_axis_is_exact_for_lines() -> None:
    grid = hc.Grid(10, stretch={"x": lambda x: x - 0.1 * np.sin(2 * math.pi * x)})
    u = grid.field("u")
    located = form_at_target(hc.to(u, "face-x"), (True,), "target")
    computed = evaluated(located, {u: 3 * u.positions[0] + 1}, (10,), [grid.even_spacing(0)])
    np.testing.assert_allclose(computed[1:], 3 * grid.positions((True,))[0][1:-1] + 1, rtol=1e-14)


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize("kind", ["value", "slope"])
def test_differences_at_walls_have_their_order(order: int, kind: str) -> None:
    """Differences between cells and faces keep their order at walls with conditions of one order more."""
    k = 3.0

    def errors(n: int) -> list[float]:
        grid = hc.Grid(n)
        p_wall = hc.Value(hc.sin(k * grid.x + 0.4), order=order + 1)
        v_wall: Any = hc.Extrapolate(order + 2)
        if kind == "slope":
            p_wall = hc.Derivative(k * hc.cos(k * grid.x + 0.4), order=order + 1)
        p, v = grid.field("p", boundary=p_wall), grid.field("v", location="face-x", boundary=v_wall)
        dp, dv = grid.field("dp", location="face-x"), grid.field("dv")

        @hc.program
        def step(p: Any, v: Any, dp: Any, dv: Any) -> None:
            with hc.order(order):
                hc.assign({dp: hc.derivative(p, 0), dv: hc.div((v,))})

        start = {f: np.sin(k * f.positions[0] + 0.4) for f in (p, v)}
        run = Reference(grid, step.trace(p, v, dp, dv), start).run()
        return [
            float(np.abs(run.fields[f].value - k * np.cos(k * f.positions[0] + 0.4)).max()) for f in (dp, dv)
        ]

    for coarse, fine in some(zip(errors(24), errors(48), strict=True)):
        assert math.log2(coarse / fine) > order - 0.3


# -- rejected expressions ----------------------------------------------------------------------------------


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / b,
    lambda a, b: a**b,
    lambda a, b: a < b,
    lambda a, b: (a > 0.0) & (b > 0.0),
    lambda a, b: hc.where(a > 0.0, b, 1.0),
    lambda a, b: hc.branch(a > 0.0, 1.0, b),
    lambda a, b: hc.maximum(a, b),
    lambda a, b: hc.symmetric_sum(a, b),
    lambda a, b: hc.random(a, b),
    lambda a, b: hc.sqrt(a) * hc.lookup((1.0, 2.0), b),
    lambda a, b: hc.dot((a, 1.0), (b, 2.0)),
    lambda a, b: hc.upwinding(a, [b] * a.grid.ndim),
]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.data())
def test_operands_at_two_locations_are_rejected(ndim: int, data: st.DataObject) -> None:
    grid = hc.Grid((6,) * ndim, periodic=data.draw(st.booleans()))
    a, b = (
        grid.field(name, location=location(data.draw(st.sampled_from(places(ndim))))) for name in ("a", "b")
    )
    operation = data.draw(st.sampled_from(OPERATIONS))
    zero_offset = (0,) * ndim
    if a.staggered == b.staggered:
        assert place_name(operation(a, b)) == location(a.staggered)
    else:
        with pytest.raises(InputError) as caught:
            operation(a, b)
        words = str(caught.value)
        for name in (location(a.staggered), location(b.staggered)):
            assert f" at '{name}'" in words
            assert f"hc.to(f, '{name}')" in words
        combined = operation(a, hc.to(b, location(a.staggered)))
        assert place_name(combined) == location(a.staggered)
    assert place_name(operation(a, b[zero_offset])) is None  # a read at indices
    assert place_name(operation(a, hc.shift(b, 0, 0))) is None


@pytest.mark.parametrize("walls", [True, False])
def test_targets_at_another_location_are_rejected(walls: bool) -> None:
    grid = hc.Grid((6, 6), periodic=not walls)
    u, w = grid.field("u", boundary=hc.Value(0.0) if walls else None), grid.vector("w", location="face")
    words = r"field 'w_x' lies at 'face-x', but .* at 'cell'\. Interpolate with hc\.to\(\.\.\., 'face-x'\)"

    def traced(statement: Callable[[], Any]) -> Any:
        return hc.program(lambda u, w: statement()).trace(u, w)

    with pytest.raises(InputError, match=words):
        traced(lambda: w[0].set(u))
    with pytest.raises(InputError, match=words):
        traced(lambda: w.set((u * 2.0, w[1])))
    with pytest.raises(InputError, match=words):
        traced(lambda: hc.assign({w[0]: hc.laplacian(u)}))
    with pytest.raises(InputError, match=r"stage 'flux' lies at 'face-y', but .* at 'cell'"):
        traced(lambda: hc.stage(u * u, "flux", location="face-y"))
    with pytest.raises(InputError, match="time derivative of field 'w_y' lies at 'face-y'"):
        hc.Simulation(grid, lambda u, w: {w: (0.0, hc.second(u, 0))}, scheme=hc.Euler(), dt=0.1)
    with pytest.raises(InputError, match=r"the operator lies at 'cell', but .* at 'face-x'"):
        hc.LinearProblem(lambda v: hc.to(v, "face-x"), u, 1.0)
    if walls:
        grid.field("b", boundary=hc.Value(hc.sin(w[0].coordinates[0]), order=3))
        smooth = hc.program(lambda b: b.set(hc.laplacian(b)))
        with pytest.raises(InputError, match=r"the wall of field 'b' lies at 'cell', but .* at 'face-x'"):
            hc.Simulation(grid, smooth)
    for legal in (w[0][1, 0] - w[0], hc.to(w[0], "cell"), hc.div(w), hc.derivative(w[1], "y"), grid.x, 1.0):
        traced(lambda legal=legal: u.set(legal))
    for legal in (u - u[-1, 0], hc.to(u, "face-x"), hc.grad(u)[0], w[0], grid.x * w[0], u[0, 0]):
        traced(lambda legal=legal: w[0].set(legal))


def test_to_rejects_invalid_locations() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    u, w = grid.field("u"), grid.vector("w", location="face")
    assert hc.to(2.0, "cell") is as_expr(2.0)
    assert place_name(hc.to(u, "edge-z")) == "node"  # the same points in a plane
    assert [place_name(c) for c in hc.to(hc.Vector((u, u)), "face")] == ["face-x", "face-y"]
    for wrong, words in (
        (lambda: hc.to(u, "middle"), "hc.to: location 'middle' is unknown"),
        (lambda: hc.to(u, "face-z"), "names an axis that a grid of 2 axes lacks"),
        (lambda: hc.to(u, 1), "hc.to: location is 1; expected text"),
        (lambda: hc.to(u, ["cell"]), "location is .*; expected text"),
        (lambda: hc.to(w, ["cell"]), "has 1 entries for 2 components"),
        (
            lambda: hc.to(w[0][1, 0], "cell"),
            "hc.to of w_x.*: its location is unknown, because it reads at explicit",
        ),
        (lambda: hc.to(u > 0.0, "node"), "is a condition"),
        (lambda: hc.to(u, "node", order=3), "order 3 is not"),
    ):
        with pytest.raises(InputError, match=words):
            wrong()


# -- one text at several locations -------------------------------------------------------------------------


def test_coordinates_follow_their_target() -> None:
    """Coordinates follow their target at all locations, with walls of both kinds."""
    ran = 0
    for ndim, walls in itertools.product((1, 2, 3), ("face", "node")):
        grid = hc.Grid((3, 4, 5)[:ndim], origin=-0.5, walls=walls)
        total = sum((k * c for k, c in enumerate(grid.coordinates(), 1)), as_expr(0.0))
        assert place_name(total) == "cell"
        for place in places(ndim):
            f = grid.field(f"f{len(grid.fields)}", location=location(place))
            expected = sum((k * c for k, c in enumerate(f.coordinates, 1)), as_expr(0.0))
            assert form_at_target(total, place, "target") is form_at_target(expected, place, "target")
            assert place_name(total * f) == f.location == place_name(expected * f)
            ran += 1
            for other in places(ndim):
                if other != place:
                    with pytest.raises(InputError, match="lies at"):
                        form_at_target(expected, other, "target")
    assert ran == 28


def test_numbers_of_points_follow_their_target() -> None:
    """Points on a wall have their own numbers."""
    grid = hc.Grid((3, 4), periodic=(True, False))
    for place in places(2):
        numbers = form_at_target(grid.cell_number(), place, "target")
        assert numbers is form_at_target(grid.cell_number(place), place, "target")
    walled = hc.Grid((3, 4))
    with pytest.raises(InputError, match="lies at"):
        walled.cell_number((False, True)) + walled.field("u")


def test_operators_keep_their_location_with_explicit_offsets() -> None:
    """Derivatives of cell fields stay in cells, with or without reads at offsets next to them."""
    grid = hc.Grid((6, 6), periodic=True)
    u = grid.field("u")
    central = (u[1, 0] - u[-1, 0]) * (0.5 * (1.0 / grid.h(0)))
    assert hc.derivative(u, 0).placement.node is central
    assert hc.derivative(u, 0) + u[1, 0] is central + u[1, 0]
    assert hc.derivative(hc.derivative(u, 0), 0).placement.node is without_location(hc.derivative(central, 0))


def test_explicit_offsets_of_cell_fields_are_in_cells() -> None:
    grid = hc.Grid((6, 6), periodic=True)
    u, w = grid.field("u"), grid.vector("w", location="face")
    upwind = hc.where(u > 0.0, u[-1, 0], u[0, 0]) * u
    central = (upwind[1, 0] - upwind[-1, 0]) * (0.5 * (1.0 / grid.h(0)))
    derivative = hc.derivative(upwind, 0)
    assert without_location(derivative) is central
    assert place_of(derivative) == (False, False)
    assert form_at_target(derivative, u.staggered, "target") is central
    assert derivative * u[0, 0] is central * u[0, 0]
    half, ran = 0.5 * (u[-1, 0] + u[0, 0]), 0
    operators: list[Callable[[Any], Any]] = [
        lambda f: hc.derivative(f, 0), lambda f: hc.derivative(f, 0, 1), lambda f: hc.second(f, 1),
        lambda f: hc.laplacian(f), lambda f: hc.div((f, f)), lambda f: hc.curl((f, f))[2],
        lambda f: hc.grad(f)[1], lambda f: hc.difference(f, 0, 2), lambda f: hc.hyperdiffusion(f),
    ]  # fmt: skip

    def program(u: Any, w: Any) -> None:
        nonlocal ran
        in_cells = [upwind, u[0, 0] * u, half, hc.stage(half)]
        flux, square = half * w[0], hc.stage(w[0] * w[0])
        upwind_flux = hc.where(w[0] > 0.0, u[-1, 0], u[0, 0]) * w[0]
        unknown = [flux, upwind_flux, hc.stage(flux), u * square[1, 0], w[1][0, 1], grid.x[1, 0]]
        for operator in operators:
            for operand in in_cells:
                form_at_target(operator(operand), u.staggered, "target")
                with pytest.raises(InputError, match=r"target lies at 'face-x', but .* at 'cell'"):
                    form_at_target(operator(operand), w[0].staggered, "target")
                ran += 1
            for operand in unknown:
                with pytest.raises(InputError, match=r"its location is unknown, .* hc\.stage\(\.\.\., loc"):
                    operator(operand)
                ran += 1
        named = hc.stage(flux, location="face-x")
        u.set(hc.div((named, 0.0)))

    hc.program(program).trace(u, w)
    assert ran == len(operators) * 10


def test_a_hand_written_flux_has_the_order_of_its_differences() -> None:
    """A mean at explicit offsets is declared as a flux on faces; without the declaration it is rejected."""

    def error(n: int) -> float:
        problem = Problem([n], (False,), (True,))
        p, w = problem.fields
        (x,), (face_x,) = problem.grid.positions((False,)), problem.grid.positions((True,))
        assert len(x) == len(face_x) == n
        mean = 0.5 * (p[-1] + p[0]) * w
        with pytest.raises(InputError, match="its location is unknown"):
            hc.div((mean,))
        divergence = form_at_target(hc.div((with_location(mean, (True,)),)), (False,), "target")
        expected = problem.d(0, (False,), 0) * problem.d(1, (False,))
        expected = expected + problem.d(0, (False,)) * problem.d(1, (False,), 0)
        return problem.error(divergence, (False,), expected)

    assert 1.75 < measured(error) < 2.5


def test_long_sums_of_coordinates_are_formed_without_recursion() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    w = grid.vector("w", location="face")
    total = as_expr(0.0)
    for n in range(1, 1500):
        total = total + hc.sin(float(n) * grid.x)
    assert form_at_target(total, w[0].staggered, "target").op == "add"


def test_reductions_run_over_the_points_of_the_location() -> None:
    grid = hc.Grid((4, 3))
    u, w = grid.field("u", boundary=hc.Value(0.0)), grid.vector("w", location="face")
    assert place_of(hc.grad(u)[0] + w[0]) == (True, False)
    assert place_of(hc.derivative(w[0], 0)) == (False, False)
    assert place_of(hc.derivative(w[0], 1)) == (True, False)
    assert place_name(hc.div(hc.Grid(4).vector("v", location="face"))) == "cell"
    assert place_of(hc.div(w)) == (False, False)
    kinds = [n.attribute for n in walk((hc.norm(w),)) if n.op == "reduce"]
    assert sorted(kinds) == [("sum", None, (False, True)), ("sum", None, (True, False))]
    assert hc.norm((u, u)) is hc.sqrt(hc.sum(u * u + u * u))


def test_a_norm_is_taken_at_the_common_location_or_per_component() -> None:
    grid = hc.Grid((4, 3))
    u, w = grid.field("u"), grid.vector("w", location="face")

    def sums(*components: Any) -> list[Any]:
        return sorted(n.attribute[2] for n in walk((hc.norm(components),)) if n.op == "reduce")

    on_x, on_y, cells = (True, False), (False, True), (False, False)
    ran = 0
    for components, expected_places in (
        ((w[0], 3.0), [on_x]),
        ((w[0], grid.x), [on_x]),
        ((w[0], hc.parameter("a"), grid.y), [on_x]),
        ((u, hc.derivative(w[0], 0), 1.0), [cells]),
        ((hc.derivative(u, 0), w[0]), [on_x]),
        ((u, grid.x, 2.0), [cells]),
        ((w[0], w[1]), [on_y, on_x]),
        ((w[0], w[1], 0.0), [on_y, on_x]),
        ((w[0], w[1], grid.x), [cells, on_y, on_x]),
        ((w[0], w[1], u[1, 0]), [cells, on_y, on_x]),
    ):
        for order in itertools.permutations(components):
            assert sums(*order) == expected_places
            ran += 1
    assert ran > 20
    for number in (3.0, hc.parameter("a")):
        for order in itertools.permutations((w[0], w[1], number)):
            with pytest.raises(InputError, match=r"norm of .* with components at several"):
                hc.norm(order)
    assert sums(*hc.to(w, "cell"), 3.0) == [cells]
    with pytest.raises(InputError, match="two grids"):
        hc.norm((u, hc.Grid(4).field("u")))
    with pytest.raises(InputError, match="varies from cell to cell"):
        hc.norm((3.0, 4.0))


def test_indices_of_values_must_be_integers() -> None:
    grid = hc.Grid((4, 3))
    u, w = grid.field("u"), grid.vector("w", location="face")
    assert hc.value(u, (np.int64(-1), 2)) is hc.value(u, at=[3, -1])
    assert hc.value(w[0], (4, 0)) is hc.value(w[0], (-1, 0))
    for at in ((0.5, 0.5), (1.0, 1), (True, 0), "ab", 1.5, (None, 0), ([0], 1)):
        with pytest.raises(
            InputError, match=r"expected whole numbers, the index of a point\. Coordinates are"
        ):
            hc.value(u, at)
    for arguments, words in (
        ({}, "expected either the index of a point, at=.0, 0., or coordinates, x=0.5, y=0.5"),
        ({"at": (0, 0), "x": 0.5}, "expected either"),
        ({"x": 0.5}, "x=0.5: expected one coordinate for each axis of the grid: x, y"),
        ({"x": 0.5, "y": 0.5, "z": 0.5}, "expected one coordinate for each axis"),
        ({"x": 1.5, "y": 0.5}, "x=1.5: expected a number from 0 to 1, the extent of axis x"),
        ({"x": math.nan, "y": 0.5}, "x=nan: expected a number"),
        ({"x": 0.5, "y": "0.5"}, "y='0.5': expected a number"),
        ({"x": True, "y": 0.5}, "x=True: expected a number"),
    ):
        with pytest.raises(InputError, match=words):
            hc.value(u, **arguments)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.data())
def test_values_at_coordinates_are_exact_for_linear_functions(ndim: int, data: st.DataObject) -> None:
    """Values at coordinates are exact for linear functions at every location and on periodic axes."""
    periodic = tuple(data.draw(st.booleans()) for _ in range(ndim))
    stretch = {} if periodic[0] or not data.draw(st.booleans()) else {"x": lambda x: x + 0.1 * x * (3.0 - x)}
    walls = data.draw(st.sampled_from(["face", "node"]))
    if walls == "node":
        stretch = {}
    shape, extent = (5, 1, 4)[:ndim], (3.0, 1.0, 2.0)[:ndim]
    grid = hc.Grid(shape, extent, periodic=periodic, walls=walls, stretch=stretch)
    f = grid.field("f", location=location(data.draw(st.sampled_from(places(ndim)))))
    at = [data.draw(st.floats(0.0, length)) for length in grid.extent]
    expected, sums = 1.0, {}
    for axis, (c, line) in enumerate(zip(at, f.positions, strict=True)):
        if len(line) == 1:
            sums[axis] = np.ones(1)
            continue
        if periodic[axis] and not line[0] <= c <= line[-1]:
            gap = line[0] + grid.extent[axis] - line[-1]
            share = ((c - line[-1]) % grid.extent[axis]) / gap
            expected *= (1 - share) * line[-1] + share * line[0]
        else:
            expected *= c
        sums[axis] = line
    interpolated = hc.value(f, **dict(zip(AXES, at, strict=False)))
    count = 0
    for node in walk((interpolated,)):
        if node.op == "reduce":
            kind, _, place = node.attribute
            assert (kind, place) == ("value", f.staggered)
            count += 1
    total = number(interpolated, lambda cell: math.prod(sums[a][i] for a, i in enumerate(cell)))
    assert 1 <= count <= 2**ndim
    assert total == pytest.approx(expected, abs=1e-9)


def number(e: Expr, at: Callable[[tuple[int, ...]], float]) -> float:
    """Return the value of a sum of values at points."""
    if e.op == "reduce":
        return at(e.attribute[1])
    if e.op == "const":
        return float(e.attribute)
    a, b = (number(arg, at) for arg in e.args) if len(e.args) == 2 else (number(e.args[0], at), 0.0)
    return {"add": a + b, "sub": a - b, "mul": a * b, "neg": -a}[e.op]


def test_limits_of_loops_must_be_integers() -> None:
    grid = hc.Grid(4, periodic=True)
    u = grid.field("u")
    for limit in (2.5, -1, math.nan):

        def step(u: Any, limit: float = limit) -> None:
            with hc.loop(limit=limit):
                u.set(u + 1.0)

        with pytest.raises(InputError, match=r"hc.loop: limit is .*; expected a whole number from 0"):
            hc.program(step).trace(u)


def test_a_location_can_be_specified_by_name() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    f = grid.field("f", location="face-x")
    assert [place_name(e) for e in (f, f[1, 0], 2.0)] == ["face-x", None, None]
    assert place_name(with_location(f[1, 0], (False, True))) == "face-y"
    with pytest.raises(InputError, match=r"lies at 'face-y', but f at 'face-x'"):
        with_location(f[1, 0], (False, True)) * f


# -- runs --------------------------------------------------------------------------------------------------


@pytest.mark.ranks(2)
def test_a_wave_on_faces_and_cells_converges() -> None:
    """A wave on faces and cells, computed with div and grad only, converges with second order on ranks."""
    errors = [acoustic(n, 2)[1] for n in (16, 32)]
    assert 1.9 < math.log2(errors[0] / errors[1]) < 2.2


@pytest.mark.parametrize(
    ("ndim", "order", "dtype"),
    [
        pytest.param(
            ndim, order, dtype, marks=[] if (ndim, order, dtype) == (1, 4, "float64") else [pytest.mark.long]
        )
        for ndim, order, dtype in itertools.product((1, 2, 3), ORDERS, ("float64", "float32"))
    ],
)
def test_kernels_agree_with_numpy_at_every_location(ndim: int, order: int, dtype: str) -> None:
    """Kernels agree with NumPy for derivatives and interpolation between all locations, with all walls."""
    shape = (9, 8, 10)[:ndim]
    grid = hc.Grid(shape, periodic=(False, True, False)[:ndim], walls="face")
    start = {}
    draw = np.random.default_rng(1)
    outputs: dict[Any, Any] = {}
    for n, place in enumerate(places(ndim)):
        f = grid.field(f"f{n}", location=location(place), dtype=dtype, boundary=hc.Extrapolate(3))
        start[f] = draw.uniform(-1, 1, f.points).astype(dtype)
    with hc.order(order):
        for f, target in itertools.product(tuple(start), places(ndim)):
            for a in range(ndim):
                if target == flipped(f.staggered, a):
                    out = grid.field(f"d{len(outputs)}", location=location(target), dtype=dtype)
                    outputs[out] = (hc.derivative, f, a)
            out = grid.field(f"t{len(outputs)}", location=location(target), dtype=dtype)
            outputs[out] = (hc.to, f, location(target))

    @hc.program
    def step() -> None:
        with hc.order(order):
            hc.assign({out: make(f, argument) for out, (make, f, argument) in outputs.items()})

    sim = hc.Simulation(grid, step, threads=1)
    for f, values in start.items():
        sim[f] = values
    sim.run()
    run = Reference(grid, step.trace(), start).run()
    for out in outputs:
        expected = run.fields[out]
        assert (np.abs(np.asarray(sim[out], dtype=np.float64) - expected.value) <= expected.error).all()
    assert len(outputs) == 2**ndim * (2**ndim + ndim)
