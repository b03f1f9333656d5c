"""Boundary conditions, compared with their formulas: on both kinds of walls, at corners, on ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from loops import some
from suites import cases

N, DEPTH = 8, 3
H = 0.25
ORIGIN = -0.5
LOCATIONS = ("cell", "face-x")
WALLS = ("face", "node")

Ghosts = tuple[np.ndarray, np.ndarray]


def line(walls: str) -> hc.Grid:
    """Return a grid of eight cells of width H that starts at ORIGIN."""
    return hc.Grid(N, (N if walls == "face" else N + 1) * H, origin=ORIGIN, walls=walls)


def wall_inset(walls: str, location: str) -> float:
    """Return the distance from the first point to the wall, in cells."""
    return {("face", "cell"): 0.5, ("node", "cell"): 1.0, ("face", "face-x"): 0.0, ("node", "face-x"): 0.5}[
        walls, location
    ]


def points(walls: str, location: str) -> np.ndarray:
    """Return the coordinates of a field's points, with DEPTH ghost points on both sides."""
    count = N + (location != "cell")
    return ORIGIN + (np.arange(-DEPTH, count + DEPTH) + wall_inset(walls, location)) * H


def ends(walls: str) -> tuple[float, float]:
    return ORIGIN, ORIGIN + (N if walls == "face" else N + 1) * H


def ghosts(
    walls: str,
    cases: dict[str, tuple[str, Any, np.ndarray]],
    parameters: dict[str, float] | None = None,
    dtype: str = "float64",
) -> dict[str, Ghosts]:
    """Return the engine's ghost values per case, below the lower wall and above the upper one, outward.

    All cases, of (location, condition, values), are in one program, which is compiled once.
    """
    grid = line(walls)
    read, probes = {}, {}
    for name, (location, condition, _) in cases.items():
        read[name] = grid.field(name, location=location, boundary=condition, dtype=dtype)
        probes[name] = [grid.field(f"{name}_{s}", location=location, dtype=dtype) for s in ("below", "above")]

    @hc.program
    def show() -> None:
        for name, (below, above) in probes.items():
            below.set(read[name][-DEPTH])
            above.set(read[name][DEPTH])

    sim = hc.Simulation(grid, show, parameters=parameters, threads=1)
    for name, (_, _, values) in cases.items():
        sim[read[name]] = values
    sim.run()
    return {
        name: (np.array(sim[below][:DEPTH][::-1]), np.array(sim[above][-DEPTH:]))
        for name, (below, above) in probes.items()
    }


def random_values(location: str) -> np.ndarray:
    return np.random.default_rng(3).uniform(1, 2, N + (location != "cell"))


@pytest.mark.parametrize("walls", WALLS)
def test_values_and_slopes_on_the_wall_mirror_the_interior(walls: str) -> None:
    cases: dict[str, tuple[str, Any, np.ndarray]] = {}
    for location in LOCATIONS:
        u = random_values(location)
        for name, condition in {
            "value": hc.Value(3.0),
            "derivative": hc.Derivative(2.0),
            "symmetric": hc.Symmetric(),
            "antisymmetric": hc.Antisymmetric(),
        }.items():
            cases[f"{name}_{location[:4]}"] = location, condition, u
    ghost_values = ghosts(walls, cases)
    for name, (location, _, u) in some(cases.items()):
        w = wall_inset(walls, location)
        for side, have in zip((-1, 1), ghost_values[name], strict=True):
            inward = u if side < 0 else u[::-1]
            for layer in range(DEPTH):
                distance = layer + 1 - w
                kind = name.partition("_")[0]
                if distance == 0:  # the wall is on the first ghost point
                    slope = 2.0 if kind == "derivative" else 0.0
                    want = {"value": 3.0, "antisymmetric": 0.0}.get(
                        kind, (4 * inward[0] - inward[1] + 2 * side * slope * H) / 3
                    )
                else:
                    mirror = inward[int(layer + 1 - 2 * w)]
                    want = {
                        "value": 2 * 3.0 - mirror,
                        "derivative": mirror + 2 * distance * side * 2.0 * H,
                        "symmetric": mirror,
                        "antisymmetric": -mirror,
                    }[kind]
                assert have[layer] == pytest.approx(want, rel=1e-14), (name, side, layer)


@cases("walls", WALLS, default=["face"])
def test_polynomial_conditions_are_exact_for_polynomials_of_their_degree_and_no_higher(walls: str) -> None:
    """A condition of some order continues a polynomial of the degree that it fixes, but not of the next."""
    kinds: dict[str, tuple[Callable[[int], int], Callable[[Any, Any, int], Any]]] = {
        # degree by order; condition from the polynomial's value or slope on each wall
        "value": (lambda order: order, lambda p, x, order: hc.Value(p(x), order)),
        "derivative": (lambda order: order, lambda p, x, order: hc.Derivative(p.deriv()(x), order)),
        "extrapolate": (lambda order: order - 1, lambda p, x, order: hc.Extrapolate(order)),
    }
    cases: dict[str, tuple[str, Any, np.ndarray]] = {}
    polynomials: dict[str, tuple[np.ndarray, bool]] = {}
    lower, upper = ends(walls)
    for location in LOCATIONS:
        x = points(walls, location)
        for kind, (degree, make) in kinds.items():
            for order in (1, 2, 3, 4):
                if kind == "derivative" and order == 2:
                    continue  # the condition mirrors the interior instead
                for more in (0, 1):
                    p = np.polynomial.Polynomial(
                        np.array([1.0, -0.7, 0.4, 0.3, -0.6, 0.5])[: degree(order) + more + 1]
                    )
                    name = f"{kind}{order}_{location[:4]}_{more}"
                    condition = {"x-": make(p, lower, order), "x+": make(p, upper, order)}
                    cases[name] = location, condition, p(x[DEPTH:-DEPTH])
                    polynomials[name] = p(x), not more
    ghost_values = ghosts(walls, cases)
    for name, (values, exact) in some(polynomials.items()):
        for have, want in zip(ghost_values[name], (values[:DEPTH][::-1], values[-DEPTH:]), strict=True):
            # if the wall is on a ghost point, its value is prescribed and exact for any degree
            free = have if not name.startswith("value") or walls == "face" or "cell" not in name else have[1:]
            want = want[len(want) - len(free) :]
            close = np.isclose(free, want, rtol=1e-11, atol=1e-11)
            assert close.all() == exact, (name, free, want)


def test_the_second_order_derivative_on_a_node_wall_is_exact_for_parabolas() -> None:
    """The ghost is (4 u1 - u2) / 3 for a zero slope, as the cavity case requires."""
    x = points("node", "cell")
    p = np.polynomial.Polynomial([1.0, -0.7, 0.4])
    lower, upper = ends("node")
    condition = {"x-": hc.Derivative(p.deriv()(lower)), "x+": hc.Derivative(p.deriv()(upper))}
    (ghost_values,) = ghosts("node", {"u": ("cell", condition, p(x[DEPTH:-DEPTH]))}).values()
    assert ghost_values[0][0] == pytest.approx(p(lower), rel=1e-13)
    assert ghost_values[1][0] == pytest.approx(p(upper), rel=1e-13)


@pytest.mark.parametrize("walls", WALLS)
def test_a_user_kernel_reads_values_layer_spacing_and_coordinates(walls: str) -> None:
    cases: dict[str, tuple[str, Any, np.ndarray]] = {}
    for location in LOCATIONS:
        kernel = hc.BoundaryKernel(
            lambda u, layer: u[layer] + 10.0 * u[2] + 100.0 * u.h + 1000.0 * u.coordinates[0]
        )
        cases[location[:4]] = location, kernel, random_values(location)
    for name, (below, above) in some(ghosts(walls, cases).items()):
        location, _, u = cases[name]
        x = points(walls, location)
        for layer in range(DEPTH):
            want = u[layer] + 10 * u[2] + 100 * H + 1000 * x[DEPTH - 1 - layer]
            assert below[layer] == pytest.approx(want, rel=1e-13)
            want = u[::-1][layer] + 10 * u[-3] + 100 * H + 1000 * x[len(x) - DEPTH + layer]
            assert above[layer] == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("location", ["cell", "face-x"])
@pytest.mark.parametrize("other", ["cell", "face-x"])
def test_a_user_kernel_indexes_other_fields_from_the_wall(location: str, other: str) -> None:
    """A kernel counts another field from the wall, even if only one of them has a point at the upper wall."""
    grid = line("face")
    T = grid.field("T", location=other)
    u = grid.field("u", location=location, boundary=hc.BoundaryKernel(lambda u: u.of(T)[1] + 0.5 * u[0]))
    below, above = (grid.field(name, location=location) for name in ("below", "above"))

    @hc.program
    def show() -> None:
        below.set(u[-1])
        above.set(u[1])

    sim = hc.Simulation(grid, show)
    sim[u], sim[T] = random_values(location), 10 + random_values(other)
    u_values, T_values = np.array(sim[u]), np.array(sim[T])
    sim.run()
    assert sim[below][0] == pytest.approx(T_values[1] + 0.5 * u_values[0], rel=1e-14)
    assert sim[above][-1] == pytest.approx(T_values[-2] + 0.5 * u_values[-1], rel=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_wall_values_may_be_parameters_expressions_and_functions_of_the_coordinates(dtype: str) -> None:
    grid = hc.Grid((5, 4), (1.0, 2.0), origin=(0.5, -1.0))
    conditions = {
        "x-": hc.Value(hc.parameter("hot")),
        "x+": hc.Value(lambda x, y: x + 10.0 * y),
        "y-": hc.Derivative(grid.x * 2.0),
        "other": hc.Value(grid.y),
    }
    u = grid.field("u", boundary=conditions, dtype=dtype)
    probes = {
        o: grid.field(n, dtype=dtype)
        for o, n in {(-1, 0): "a", (1, 0): "b", (0, -1): "c", (0, 1): "d"}.items()
    }

    @hc.program
    def show() -> None:
        for offset, f in probes.items():
            f.set(u[offset])

    sim = hc.Simulation(grid, show, parameters={"hot": 7.0})
    values = np.random.default_rng(5).uniform(-1, 1, grid.shape).astype(dtype)
    x, y = 0.5 + (np.arange(5) + 0.5) * 0.2, -1.0 + (np.arange(4) + 0.5) * 0.5
    rel = 1e-13 if dtype == "float64" else 1e-6
    for hot in (7.0, -3.0):  # a parameter changes between runs
        sim.parameters["hot"] = hot
        sim[u] = values
        sim.run()
        a, b, c, d = (sim[f] for f in probes.values())
        np.testing.assert_allclose(a[0], 2 * hot - values[0], rtol=rel)
        np.testing.assert_allclose(b[-1], 2 * (1.5 + 10 * y) - values[-1], rtol=rel)
        np.testing.assert_allclose(c[:, 0], values[:, 0] - 2 * x * 0.5, rtol=rel, atol=rel)
        np.testing.assert_allclose(d[:, -1], 2 * 1.0 - values[:, -1], rtol=rel)


def corner_problem(
    shape: tuple[int, ...], location: str = "cell", **options: Any
) -> tuple[hc.Simulation, list[str]]:
    """Return a run that reads every corner and edge between walls of different kinds, and its probes."""
    ndim = len(shape)
    grid = hc.Grid(shape, tuple(float(n) for n in shape))  # spacing 1
    sides = ["x-", "x+", "y-", "y+", "z-", "z+"][: 2 * ndim]
    kinds = [
        hc.Value(1.0),
        hc.Extrapolate(2),
        hc.Derivative(0.5),
        hc.Antisymmetric(),
        hc.Extrapolate(3),
        hc.Value(2.0, 2),
    ]
    u = grid.field("u", boundary=dict(zip(sides, kinds, strict=False)), location=location)
    signs = [tuple(1 if bit == "1" else -1 for bit in f"{n:0{ndim}b}") for n in range(2**ndim)]
    probes = [grid.field(f"at{n}") for n in range(len(signs))]

    @hc.program
    def show() -> None:
        for f, sign in zip(probes, signs, strict=True):
            f.set(u[tuple(2 * s for s in sign)])

    sim = hc.Simulation(grid, show, **options)
    sim[u] = np.random.default_rng(9).uniform(-1, 1, grid_points(u))
    sim.run()
    return sim, [f.name for f in probes]


def grid_points(f: hc.Field) -> tuple[int, ...]:
    return tuple(n + s for n, s in zip(f.grid.shape, f.staggered, strict=True))


def continued(u: np.ndarray, axis: int) -> np.ndarray:
    """Return two ghost layers along an axis by the conditions of `corner_problem`, with spacing 1."""
    v = np.moveaxis(u, axis, 0)
    a, b, c = v[0], v[1], v[2]
    p, q = v[-1], v[-2]
    if axis == 0:
        low, high = [2 - a, 2 - b], [2 * p - q, 3 * p - 2 * q]
    elif axis == 1:
        low, high = [a - 0.5, b - 1.5], [-p, -q]
    else:
        # through 3 points; through the wall's value 2 at 0 and the points at 1/2 and 3/2, at -1/2 and -3/2
        low = [3 * a - 3 * b + c, 6 * a - 8 * b + 3 * c]
        high = [2 * 8 / 3 - 2 * p + q / 3, 2 * 8 - 9 * p + 2 * q]
    return np.moveaxis(np.array([*low[::-1], *v, *high]), 0, axis)


def corners(u: np.ndarray) -> list[np.ndarray]:
    """Return the results of `corner_problem` for the values of u in cells."""
    shape, whole = u.shape, u
    for axis in range(u.ndim):
        whole = continued(whole, axis)
    cuts = [
        tuple(
            slice(4, 4 + m) if bit == "1" else slice(0, m)
            for bit, m in zip(f"{n:0{len(shape)}b}", shape, strict=True)
        )
        for n in range(2 ** len(shape))
    ]
    return [whole[cut] for cut in cuts]


@pytest.mark.parametrize("shape", [(5, 6), (4, 5, 6)])
def test_corners_between_different_walls_follow_axis_by_axis(shape: tuple[int, ...]) -> None:
    sim, probe_names = corner_problem(shape)
    for name, expected in some(zip(probe_names, corners(np.array(sim["u"])), strict=True)):
        np.testing.assert_allclose(sim[name], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.ranks(2, 4, long=(2,))
@cases(
    "shape, location",
    [((9, 7), "cell"), ((9, 7), "node"), ((6, 5, 7), "cell"), ((6, 5, 7), "face-y")],
    default=[((9, 7), "node"), ((6, 5, 7), "cell")],
)
def test_corners_are_the_same_on_any_ranks(shape: tuple[int, ...], location: str) -> None:
    from mpi4py import MPI

    alone, probe_names = corner_problem(shape, location, communicator=MPI.COMM_SELF)
    expected = {name: alone.checksum(name) for name in probe_names}
    compared = []
    for decomposition in ("optimal", "1d-x", "1d-y", "row"):
        try:
            parted, _ = corner_problem(shape, location, decomposition=decomposition, patch=3)
        except InputError as error:
            if "cells" not in str(error):  # too thin for a cut along one axis
                raise
            continue
        compared.append(decomposition)
        assert {name: parted.checksum(name) for name in probe_names} == expected, decomposition
    assert {"optimal", "row"} <= set(compared)
    if location == "cell":
        for name, values in zip(probe_names, corners(np.array(alone["u"])), strict=True):
            np.testing.assert_allclose(alone[name], values, rtol=1e-13, atol=1e-13)


def test_replaced_conditions_apply_to_the_next_program() -> None:
    """Replaced conditions determine which ghosts at a corner the next program forms first."""
    along = hc.BoundaryKernel(lambda u: u[0, 1] + 2.0 * u[0, -1])  # reads neighbours along the wall

    def conditions(axis: str) -> dict[str, Any]:
        return {side: along if side[0] == axis else hc.Value(1.0) for side in ("x-", "x+", "y-", "y+")}

    def corners_of(u: hc.Field) -> np.ndarray:
        v = u.grid.field(u.grid.free_name("v"))
        sim = hc.Simulation(u.grid, hc.program(lambda u: v.set(u[1, 1] + u[-1, -1])))
        sim[u] = np.arange(20.0).reshape(5, 4)
        sim.run()
        return np.array(sim[v])

    def field(axis: str) -> hc.Field:
        return hc.Grid((5, 4), (5.0, 4.0)).field("u", boundary=conditions(axis))

    first = corners_of(field("x"))
    changed = field("x")
    np.testing.assert_array_equal(corners_of(changed), first)
    changed.boundary.update(conditions("y"))
    expected = corners_of(field("y"))
    assert (expected != first).any()
    np.testing.assert_array_equal(corners_of(changed), expected)


def coupled_problem(shape: tuple[int, ...], **options: Any) -> hc.Simulation:
    """Return a run with ghost cells of u that follow T, which the program sets, and with reads at corners."""
    grid = hc.Grid(shape, tuple(float(n) for n in shape))
    T = grid.field("T", boundary=hc.Value(1.0))
    u = grid.field("u", boundary=hc.BoundaryKernel(lambda u: 2.0 * u.of(T)[0] + u[0]))
    v = grid.field("v")

    @hc.program
    def step() -> None:
        with hc.loop(limit=2):
            v.set(u[(-1,) * grid.ndim] + 0.5 * u[(1,) * grid.ndim])
            T.set(T * 0.5 + v * 0.25)
            u.set(u + 0.125 * v)

    sim = hc.Simulation(grid, step, **options)
    random = np.random.default_rng(11)
    sim[T], sim[u] = random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    sim.run()
    return sim


def test_ghosts_at_corners_follow_another_field() -> None:
    shape = (4, 5)
    sim = coupled_problem(shape)
    random = np.random.default_rng(11)
    T, u = random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    for _ in range(2):
        Tx = np.concatenate([2 - T[:1], T, 2 - T[-1:]])
        ux = np.concatenate([2 * T[:1] + u[:1], u, 2 * T[-1:] + u[-1:]])
        uxy = np.concatenate([2 * Tx[:, :1] + ux[:, :1], ux, 2 * Tx[:, -1:] + ux[:, -1:]], axis=1)
        v = uxy[:-2, :-2] + 0.5 * uxy[2:, 2:]
        T = T * 0.5 + v * 0.25
        u = u + 0.125 * v
    for name, want in {"v": v, "T": T, "u": u}.items():
        np.testing.assert_allclose(sim[name], want, rtol=1e-13, atol=1e-13)


@pytest.mark.ranks(2, 4, long=(2,))
@cases("shape", [(8, 9), (5, 6, 7)], default=[(8, 9)])
def test_ghosts_that_follow_another_field_are_the_same_on_any_ranks(shape: tuple[int, ...]) -> None:
    from mpi4py import MPI

    ways: list[dict[str, Any]] = [
        {"decomposition": cut, "patch": 2, "threads": 2} for cut in ("1d-x", "1d-y", "optimal")
    ]
    ways += [{"methods": methods, "subdomains_per_rank": 2} for methods in ("mpi", "rma,mpi", "self,mpi")]
    parted = [coupled_problem(shape, **options) for options in ways]
    alone = coupled_problem(shape, communicator=MPI.COMM_SELF)
    for options, sim in zip(ways, parted, strict=True):
        for name in "uvT":
            assert sim.checksum(name) == alone.checksum(name), (options, name)


def test_a_ghost_at_a_corner_follows_a_field_whose_rows_wrap_around() -> None:
    """A kernel does not wrap rows of a field if a ghost condition reads beyond their ends."""
    results = []
    for parts in (1, 2):
        grid = hc.Grid((5, 8), periodic=(False, True))
        u = grid.field("u", boundary=hc.Value(0.0))
        v = grid.field("v", boundary=hc.BoundaryKernel(lambda q: q.of(u)[0]))  # noqa: B023
        sim = hc.Simulation(
            grid,
            hc.program(lambda u, v: u.set(u[0, 1] + 1000 * v[1, 1])),
            decomposition=(1, parts),
            subdomains_per_rank=parts,
        )
        sim[u] = np.arange(40.0).reshape(5, 8) + 1
        sim[v] = 0.0
        sim.run()
        results.append(sim[u])
    last = np.roll(np.arange(33.0, 41.0), -1)
    for values in some(results):
        assert np.array_equal(values[4], 1001 * last)


def test_a_wall_value_that_changes_in_a_loop_is_updated() -> None:
    """Ghost cells follow a wall value that changes in a loop, even if the field does not change."""
    grid = hc.Grid(4, 4.0)
    level = hc.parameter("level")
    grid.field("u", boundary=hc.Value(level))
    v = grid.field("v")

    @hc.program
    def rise(u: Any, v: Any, level: Any) -> None:
        with hc.loop(limit=3):
            v.set(v + u[-1])
            level.set(level + 1.0)

    sim = hc.Simulation(grid, rise, parameters={"level": 0.0})
    sim.run()
    assert sim[v].tolist() == [2 * 0.0 + 2 * 1.0 + 2 * 2.0, 0, 0, 0]


@pytest.mark.parametrize("staged", [False, True])
def test_ghosts_depend_on_a_field_assigned_just_before(staged: bool) -> None:
    """The statement that reads the ghosts must not join the sweep that sets the other field."""
    grid = hc.Grid(4, 4.0)
    v, u = grid.field("v"), grid.field("u")
    w = grid.field("w", boundary=hc.BoundaryKernel(lambda w: 2.0 * w.of(v)[0]))

    @hc.program
    def step() -> None:
        v.set(v + 1.0)
        u.set(hc.stage(10.0 * w, "seen", storage="inline")[-1] if staged else 10.0 * w[-1])

    sim = hc.Simulation(grid, step)
    sim[v] = 3.0
    sim[w] = 1.0
    sim.run()
    assert sim[u].tolist() == [80.0, 10.0, 10.0, 10.0]


def test_ghosts_depend_on_a_scalar_assigned_just_before() -> None:
    grid = hc.Grid(4, 4.0)
    level = hc.parameter("level")
    u = grid.field("u", boundary=hc.Value(level))
    v, w = grid.field("v"), grid.field("w")

    @hc.program
    def step(level: Any) -> None:
        w.set(v + 1.0)
        level.set(level + 1.0)
        v.set(u[-1])

    sim = hc.Simulation(grid, step, parameters={"level": 4.0})
    sim.run()
    assert sim[v].tolist() == [10.0, 0.0, 0.0, 0.0]


def test_homogeneous_conditions_have_zero_wall_values() -> None:
    grid = hc.Grid(4, 4.0)
    u = grid.field("u", boundary={"x-": hc.Value(5.0), "x+": hc.Derivative(2.0)})
    c, v = u.like("c", homogeneous=True), grid.field("v")

    @hc.program
    def show() -> None:
        v.set(c[-1] + 10.0 * c[1])

    sim = hc.Simulation(grid, show)
    sim[c] = np.array([1.0, 2.0, 3.0, 4.0])
    sim.run()
    assert sim[v].tolist() == [-1.0 + 20.0, 1.0 + 30.0, 2.0 + 40.0, 3.0 + 40.0]


def test_ghosts_of_an_axis_of_one_cell_are_correct() -> None:
    grid = hc.Grid((1, 4), (1.0, 4.0))
    u, v = grid.field("u", boundary=hc.Value(2.0)), grid.field("v")

    @hc.program
    def show() -> None:
        v.set(u[-1, 0] + u[1, 0] + u[1, 1])

    sim = hc.Simulation(grid, show)
    sim[u] = np.array([[1.0, 2.0, 3.0, 4.0]])
    sim.run()
    assert sim[v].tolist() == [[3 + 3 + 2, 2 + 2 + 1, 1 + 1 + 0, 0 + 0 + 4.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda g: g.field("u", boundary={"z-": hc.Value(0)}),
            r"field 'u': boundary side 'z-' is unknown; expected one of x-",
        ),
        (
            lambda g: g.field("u", boundary={"y-": hc.Value(0)}),
            r"side 'y-' lies on a periodic axis and cannot have Value",
        ),
        (
            lambda g: g.field("u", boundary={"x-": hc.Periodic()}),
            r"side 'x-' is periodic, but its axis is not",
        ),
        (
            lambda g: g.field("u", boundary={"x-": 0.0}),
            r"side 'x-' has 0.0; expected a condition such as hc.Value",
        ),
        (
            lambda g: g.field("u", boundary=0.0),
            r"boundary 0.0 is neither a condition such as hc.Value\(0\) nor a mapping",
        ),
    ],
)
def test_invalid_conditions_are_reported(make: Callable[[hc.Grid], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(hc.Grid((4, 4), periodic=(False, True)))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda T: hc.Value(T * 2.0), r"boundary value of field 'u' reads a field. Use hc.BoundaryKernel"),
        (lambda T: hc.Extrapolate(0), r"order of a boundary condition is 0; expected a whole number from 1"),
        (
            lambda T: hc.Value(0.0, order=1.5),
            r"order of a boundary condition is 1.5; expected a whole number from 1",
        ),
        (
            lambda T: hc.BoundaryKernel(lambda u: u[-1]),
            r"the boundary kernel of field 'u' reads \[-1\]; expected a whole number from 0",
        ),
        (lambda T: hc.BoundaryKernel(lambda u: "no"), r"boundary kernel's result is 'no' of type str"),
        (lambda T: hc.Extrapolate(9), r"field 'u' has a boundary condition that reads 9 cells along axis x"),
    ],
)
def test_unsuitable_conditions_are_reported_at_their_use(
    condition: Callable[[Any], Any], message: str
) -> None:
    grid = hc.Grid(8)
    T = grid.field("T")
    u, v = grid.field("u", boundary=condition(T)), grid.field("v")

    @hc.program
    def step() -> None:
        v.set(u[1])

    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, step)


def test_a_missing_condition_is_reported_with_side_and_remedy() -> None:
    grid = hc.Grid((8, 8), periodic=(True, False))
    u, v = grid.field("u", boundary={"y+": hc.Value(0)}), grid.field("v")

    @hc.program
    def step() -> None:
        v.set(u[0, -2])

    with pytest.raises(
        InputError,
        match=r"field 'u' is read 2 cells beyond side 'y-', which has no boundary condition. Add one",
    ):
        hc.Simulation(grid, step)


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_linear_problems_support_user_kernels_with_constants(method: str) -> None:
    """Corrections to the solution satisfy the part of a condition that is linear in it."""
    solutions = []
    for condition in (hc.Value(2.0), hc.BoundaryKernel(lambda u: 2 * 2.0 - u[0] + 0.0 * u.coordinates[0])):
        grid = hc.Grid((24, 20))
        u = grid.field("u", boundary=condition)
        solution = hc.solve(
            lambda u: -hc.laplacian(u), u, lambda x, y: np.exp(x) * y, method=method, rtol=1e-12
        )
        assert solution.converged
        solutions.append(solution.fields.gather(u))
    np.testing.assert_allclose(solutions[1], solutions[0], rtol=1e-9)
    assert solutions[0].min() > 2.0


@pytest.mark.parametrize("walls", WALLS)
@pytest.mark.parametrize(
    ("condition", "name"),
    [
        (lambda u: hc.BoundaryKernel(lambda a: u[1]), "field 'u'"),
        (lambda u: hc.BoundaryKernel(lambda a: u * 1.0), "field 'u'"),
        (lambda u: hc.BoundaryKernel(lambda a: u.grid.x), "coordinates"),
        (lambda u: hc.Value(u.grid.x), "coordinates"),
        (lambda u: hc.Derivative(lambda x: u.grid.x), "coordinates"),
    ],
)
def test_a_condition_from_another_grid_is_an_error(walls: str, condition: Any, name: str) -> None:
    """A condition of another grid is an error: it would read the program's field of the same name."""
    other = line(walls).field("u")
    u = line(walls).field("u", boundary=condition(other))
    u.grid.field("v")
    with pytest.raises(InputError, match=rf"boundary .* of field 'u' reads {name} of another grid"):
        hc.Simulation(u.grid, hc.program(lambda v, u: v.set(u[-1])))
