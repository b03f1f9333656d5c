"""Programs that once gave wrong numbers, wrong code or a wrong error, each compared with NumPy."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.run.host.machine import resident_bytes
from suites import cases
from work import lines


def centres(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / n


def serial(make, *names: str) -> dict[str, str]:
    """Return the checksums of fields after `make` has run on this rank alone."""
    from mpi4py import MPI

    sim = make(communicator=MPI.COMM_SELF)
    return {name: sim.checksum(name) for name in names}


# -- names ---------------------------------------------------------------------------------------------


def test_names_of_generated_code_may_be_used():
    grid = hc.Grid((6, 5), periodic=True)
    for name in ("a", "k", "t1", "double", "u", "u_next", "u_s0", "index0", "hc_min"):
        grid.field(name)

    def f(a, k, double, u, u_next, t0, t2, end):
        return {a: t0 + t2 * (a + k), u: double + u_next + end + u[1, 0], u_next: u * t0}

    values = {"t0": 0.25, "t2": 0.5, "end": 2.0}
    sim = hc.Simulation(grid, f, parameters=values, scheme=hc.Euler(), dt=1.0)
    start = {
        name: 0.1 * n + np.arange(30.0).reshape(6, 5)
        for n, name in enumerate(("a", "k", "double", "u", "u_next"))
    }
    for name, array in start.items():
        sim[name] = array
    sim.run(steps=1)
    s = start
    np.testing.assert_allclose(sim["a"], s["a"] + 0.25 + 0.5 * (s["a"] + s["k"]))
    np.testing.assert_allclose(sim["u"], s["u"] + s["double"] + s["u_next"] + 2.0 + np.roll(s["u"], -1, 0))
    np.testing.assert_allclose(sim["u_next"], s["u_next"] + s["u"] * 0.25)


@cases("name", ["alpha", "rho", "curvature"], default=["rho"])
def test_an_unknown_may_have_the_name_of_a_solver_scalar(name):
    grid = hc.Grid((7, 7), walls="node")
    solution = hc.solve(lambda u: -hc.laplacian(u), grid.field(name, boundary=hc.Value(0)), 1.0)
    assert solution.converged


# -- coordinates around a periodic axis ------------------------------------------------------------------


@pytest.mark.ranks(2)
def test_neighbours_of_a_field_set_from_coordinates_are_correct():
    grid = hc.Grid(12, periodic=True)
    grid.field("u")
    v = grid.field("v")

    @hc.program
    def step(u, v):
        u.set(grid.x)
        v.set(u[1] - u[-1])

    sim = hc.Simulation(grid, step)
    sim.run()
    x = centres(12)
    gathered = sim.gather(v)
    if gathered is not None:
        np.testing.assert_allclose(gathered, np.roll(x, -1) - np.roll(x, 1), atol=1e-15)


# -- points staggered along an axis: one more at its upper wall ------------------------------------------


@pytest.mark.ranks(1, 4, long=(1,))
@pytest.mark.parametrize("storage", ["inline", "patch"])
def test_differences_between_faces_and_cells_are_correct(storage):
    """A difference on faces with diagonal reads, and its divergence, are correct for both kinds of stages."""
    grid = hc.Grid((9, 8))
    u = grid.field("u", boundary={"x-": hc.Value(1.0), "x+": hc.Value(2.0), "other": hc.Derivative(0.0)})
    f, w = grid.field("f", location="face-x"), grid.field("w")

    @hc.program
    def step(u, f, w):
        jump = hc.stage(u - u[-1, 0], "jump", storage=storage)
        wide = hc.stage(jump * jump + u[0, 1], "wide", storage=storage)
        f.set(wide + jump[0, -1])
        w.set(f[1, 0] - f)

    sim = hc.Simulation(grid, step, patch=(4, 3))
    start = np.random.default_rng(1).random((9, 8))
    sim[u] = start
    sim.run()
    gathered = sim.gather(f), sim.gather(w)
    if gathered[0] is None:
        return
    ghosts = np.pad(start, 1)
    ghosts[0, 1:-1], ghosts[-1, 1:-1] = 2 - start[0], 4 - start[-1]
    ghosts[:, 0], ghosts[:, -1] = ghosts[:, 1], ghosts[:, -2]
    jump = ghosts[1:] - ghosts[:-1]  # on faces, one ghost row on each side along y
    faces = (jump**2)[:, 1:-1] + ghosts[1:, 2:] + jump[:, :-2]
    np.testing.assert_allclose(gathered[0], faces, rtol=1e-14)
    np.testing.assert_allclose(gathered[1], faces[1:] - faces[:-1], atol=1e-14)


def test_cells_read_faces_without_a_boundary_condition():
    grid = hc.Grid(8)
    u, f = grid.field("u"), grid.field("f", location="face-x")

    @hc.program
    def step(u, f):
        u.set(f[1] - f)

    sim = hc.Simulation(grid, step)
    sim[f] = lambda x: x * x
    sim.run()
    np.testing.assert_allclose(sim[u], np.diff((np.arange(9) / 8) ** 2), atol=1e-15)


@pytest.mark.ranks(1, 2, long=(1,))
def test_the_last_face_is_not_a_ghost():
    """A read of the last face fills no ghosts, although it is where cells have their first ghost layer."""
    n = 8
    grid = hc.Grid(n)
    u = grid.field("u", location="face-x", boundary=hc.Symmetric())
    grid.field("v", boundary=hc.Value(0.0))

    @hc.program
    def step(u, v):
        v.set(u[1] - u)
        u.set(u[1] + 0.5 * v)

    sim = hc.Simulation(grid, step)
    sim[u] = start = np.sin(1.0 + np.arange(n + 1))
    sim.run()
    slope = np.diff(start)
    ghosts = [*slope, -slope[-1]]  # the wall with the value 0 is half way
    gathered = sim.gather(u)
    if gathered is not None:
        np.testing.assert_allclose(gathered, [*start[1:], start[-2]] + 0.5 * np.array(ghosts), atol=1e-15)


@pytest.mark.ranks(3)
def test_reductions_over_faces_include_the_last_face():
    grid = hc.Grid((6, 5))
    f = grid.field("f", location="face-x")
    grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u, f: u.set(f[0, 0])))
    values = np.random.default_rng(2).random((7, 5))
    sim[f] = values
    assert sim.evaluate(hc.sum(f), hc.min(f)) == pytest.approx((values.sum(), values.min()))
    assert sim.evaluate(hc.sum(f * f[0, 0])) == pytest.approx((values**2).sum())
    # a difference of faces belongs to a cell, as does a product with a cell's value
    assert sim.evaluate(hc.sum(f[1, 0] - f)) == pytest.approx((values[-1] - values[0]).sum())
    assert sim.evaluate(hc.max(f[1, 0])) == values[1:].max()


# -- identical bits in the halo and in the neighbour --------------------------------------------------------


@pytest.mark.ranks(2)
@pytest.mark.parametrize("storage", ["inline", "patch"])
def test_multiply_adds_are_equal_in_halos_and_interiors(storage):
    """u is also computed in the halo, where the product that it shares with v and a stage is separate."""

    def run(**options):
        grid = hc.Grid((24, 6), periodic=True)
        a, b, c, *_ = (grid.field(n) for n in "abcuvw")

        @hc.program
        def step(a, b, c, u, v, w):
            w.set(hc.laplacian(a) + hc.laplacian(b) + hc.laplacian(c))
            product = hc.stage(a * b, "product", storage=storage)
            u.set(product + c)
            v.set(product * 3.0 + a * c)
            w.set(hc.laplacian(u) + v + b * a)

        sim = hc.Simulation(grid, step, **options)
        for n, field in enumerate((a, b, c)):
            sim[field] = lambda x, y, n=n: np.sin(7 * x + n) * np.cos(5 * y - n)
        sim.run()
        return sim

    assert run().checksum("w") == serial(run, "w")["w"]


def test_fields_may_be_computed_in_halos_of_different_widths():
    """Halos of different widths are computed within their memory: p is read one cell away, q two."""
    grid = hc.Grid((10, 9), periodic=True)
    r, _, _, s = (grid.field(n) for n in "rpqs")

    @hc.program
    def step(r, p, q, s):
        p.set(2.0 * r)
        q.set(3.0 * r + r[2, 0] + r[-2, 0] + r[0, 2] + r[0, -2])
        s.set(p[1, 0] + q[0, 0] + p[0, -1])
        s.set(s + q[2, 0] + p)

    sim = hc.Simulation(grid, step)
    start = np.random.default_rng(3).random((10, 9))
    sim[r] = start
    sim.run()

    def at(f, i, j):
        return np.roll(f, (-i, -j), (0, 1))

    q_ = 3 * start + at(start, 2, 0) + at(start, -2, 0) + at(start, 0, 2) + at(start, 0, -2)
    p_ = 2 * start
    np.testing.assert_allclose(sim[s], at(p_, 1, 0) + q_ + at(p_, 0, -1) + at(q_, 2, 0) + p_, rtol=1e-14)


def test_a_single_precision_field_rounds_its_values():
    grid = hc.Grid(4, periodic=True)
    grid.field("single", dtype="float32")
    double, out = grid.field("double"), grid.field("out")

    @hc.program
    def step(single, double, out):
        single.set(double)
        out.set(single)

    sim = hc.Simulation(grid, step)
    sim[double] = lambda x: x / 3
    sim.run()
    assert np.array_equal(sim[out], sim[double].astype(np.float32).astype(np.float64))
    assert not np.array_equal(sim[out], sim[double])


# -- stages -----------------------------------------------------------------------------------------------


def test_a_stage_read_on_one_side_only_stays_inside_memory():
    grid = hc.Grid((6, 6), periodic=True)
    u, v = grid.field("u"), grid.field("v")

    @hc.program
    def step(u, v):
        ahead = hc.stage(u[2, 0] - u, "ahead", storage="patch")
        v.set(ahead[-1, 0] * ahead[-2, 0])

    sim = hc.Simulation(grid, step)
    assert dict(zip("uv", (f.halo for f in sim.schedule.fields), strict=False))["u"] == ((2, 1), (0, 0))
    start = np.random.default_rng(4).random((6, 6))
    sim[u] = start
    sim.run()
    ahead = np.roll(start, -2, 0) - start
    np.testing.assert_allclose(sim[v], np.roll(ahead, 1, 0) * np.roll(ahead, 2, 0), rtol=1e-14)


def test_deep_stages_are_traced_in_linear_time():
    grid = hc.Grid((16, 16), periodic=True)
    grid.field("u")

    def smooth(f):
        around = f[1, 0] + f[-1, 0] + f[0, 1] + f[0, -1] + f[1, 1] + f[-1, -1]
        return hc.stage((f + around / 6) * 0.5 - f * around)

    @hc.program
    def step(u):
        s = u
        for _ in range(7):
            s = smooth(s)
        u.set(s)

    assert lines(lambda: compile_program(step.trace(grid.fields["u"]), grid)) < 700_000


# -- boundary kernels ---------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 4, long=(1,))
def test_a_boundary_kernel_reads_another_field_along_the_wall():
    """The corner beyond two walls uses T beyond one of them, and across ranks T of the neighbour."""
    grid = hc.Grid((8, 8), periodic=(False, False))
    T = grid.field("T", boundary=hc.Derivative(0.0))
    p = grid.field("p", boundary=hc.BoundaryKernel(lambda p: p[0] + 2.0 * p.of(T)[0]))
    out = grid.field("out")

    @hc.program
    def step(T, p, out):
        out.set(p[1, 1] + p[-1, -1] + p[1, -1] + T)

    sim = hc.Simulation(grid, step, decomposition="2d")
    rng = np.random.default_rng(5)
    start_T, start_p = rng.random((8, 8)), rng.random((8, 8))
    sim[T], sim[p] = start_T, start_p
    sim.run()
    gathered = sim.gather(out)
    if gathered is None:
        return
    wide = np.pad(start_T, 1, mode="edge")
    ghosts = np.pad(start_p, 1)
    for g, inner in ((0, 1), (-1, -2)):
        ghosts[g, 1:-1] = ghosts[inner, 1:-1] + 2 * wide[inner, 1:-1]
    for g, inner in ((0, 1), (-1, -2)):
        ghosts[:, g] = ghosts[:, inner] + 2 * wide[:, inner]
    expected = ghosts[2:, 2:] + ghosts[:-2, :-2] + ghosts[2:, :-2] + start_T
    np.testing.assert_allclose(gathered, expected, rtol=1e-14)


def test_a_boundary_kernel_may_read_another_field_only_in_outer_layers():
    """The statement that reads that layer uses the current value of the other field."""
    n = 12
    grid = hc.Grid(n)
    w = grid.field("w")
    outer = hc.BoundaryKernel(lambda u, layer: u.of(w)[0] if layer == 5 else u[0])
    u = grid.field("u", boundary=outer)
    v = grid.field("v")

    @hc.program
    def step(u, v, w):
        w.set(w + 1.0)
        v.set(u[6])

    sim = hc.Simulation(grid, step)
    sim[u], sim[w] = np.arange(n, dtype=float), 100.0
    sim.run()
    np.testing.assert_array_equal(sim[v], [*range(6, n), *[n - 1.0] * 5, 101.0])


# -- fields as arrays ---------------------------------------------------------------------------------------


def test_fields_outside_the_equations_are_accepted():
    grid = hc.Grid(6, periodic=True)
    u, before, other = grid.field("u"), grid.field("before"), grid.field("other", location="face-x")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.5)
    with pytest.raises(InputError, match="'before' has no values"):
        sim.checksum(before)
    sim[u] = lambda x: x
    sim[before] = u.expr
    sim[other] = np.arange(6.0)
    sim[u] = 2.0 * u
    sim.run(steps=1)
    np.testing.assert_allclose(sim[before], centres(6))
    np.testing.assert_allclose(sim[other], np.arange(6.0))
    assert sim.evaluate(hc.max(abs(u - before))) == 0.0


def test_a_value_assigned_to_another_field_is_kept():
    grid = hc.Grid(4, periodic=True)
    a, b = grid.field("a"), grid.field("b")
    sim = hc.Simulation(grid, lambda a, b: {a: b, b: a}, scheme=hc.Euler(), dt=1.0)
    sim[b] = 1.0
    sim[a] = 2.0 * b
    sim[b] = 5.0
    assert list(sim[a]) == [2.0] * 4
    assert list(sim[b]) == [5.0] * 4


# -- schemes that treat all axes alike ----------------------------------------------------------------------


def test_products_of_differences_along_two_axes_are_fused_alike():
    """The transpose has the same bits after a step with exchanged axes: product differences fuse alike."""
    grid = hc.Grid((12, 12), periodic=True)
    u, v = grid.vector("u"), grid.field("v")

    @hc.program
    def step(u, v):
        terms = [hc.shift(u[a], a) * hc.shift(v, a, -1) - u[a] * hc.shift(v, a, 2) for a in (0, 1)]
        v.set(hc.symmetric_sum(*terms))

    sim = hc.Simulation(grid, step)
    rng = np.random.default_rng(6)
    start, even = rng.random((12, 12)), rng.random((12, 12))
    sim[u[0]], sim[u[1]], sim[v] = start, start.T, even + even.T
    sim.run()
    assert np.array_equal(sim[v], sim[v].T)


@cases("count", [2, 3, 4], default=[2, 3])
def test_a_symmetric_sum_does_not_depend_on_the_order(count):
    """A symmetric sum depends neither on the order nor, for two or three terms, on their sign.

    The property also holds if terms of both signs have the same magnitude.
    """
    grid = hc.Grid((200,), periodic=True)
    names = "abcd"[:count]
    fields = [grid.field(name) for name in names]
    total, turned = grid.field("total"), grid.field("turned")
    rng = np.random.default_rng(8)
    values = rng.normal(size=(count, 200)) * 10.0 ** rng.integers(-3, 3, (count, 200))
    values[-1, :40] = -values[0, :40]

    def sums(order):
        @hc.program
        def add():
            terms = [fields[n] for n in order]
            hc.assign({total: hc.symmetric_sum(*terms), turned: hc.symmetric_sum(*(-t for t in terms))})

        sim = hc.Simulation(grid, add)
        for f, value in zip(fields, values, strict=True):
            sim[f] = value
        sim.run()
        return sim[total].copy(), sim[turned].copy()

    first, negative = sums(range(count))
    assert np.allclose(first, values.sum(0), rtol=1e-12, atol=1e-12)
    if count < 4:
        assert np.array_equal(negative, -first)
    for order in itertools.permutations(range(count)):
        assert np.array_equal(sums(order)[0], first)


# -- loops in parts ------------------------------------------------------------------------------------------


def test_split_loops_compile_with_shared_conditions():
    """A branch that one array decides at several positions compiles in a kernel of several loops.

    The condition was once kept for the last loop as a number, which is not valid in C++.
    """
    grid = hc.Grid((24, 24), periodic=True)
    u, flag, out = grid.field("u"), grid.field("flag"), grid.field("out")

    @hc.program
    def step(u, flag, out):
        wide = hc.symmetric_sum(sum(u[n, m] for n in range(-4, 5) for m in range(-4, 5)), u)
        costly = hc.sqrt(abs(wide)) / (2.0 + wide * wide) + hc.exp(-abs(wide)) / (1.0 + abs(u))
        out.set(hc.branch(flag[1, 0] + flag[-1, 0] + flag > 0.0, costly * flag[0, 1], wide))

    sim = hc.Simulation(grid, step, threads=1)
    rng = np.random.default_rng(3)
    sim[u], sim[flag] = rng.normal(size=(24, 24)), (rng.random((24, 24)) > 0.9).astype(float)
    sim.run()
    a, f = sim[u], sim[flag]
    wide = a + sum(np.roll(a, (-n, -m), (0, 1)) for n in range(-4, 5) for m in range(-4, 5))
    costly = np.sqrt(abs(wide)) / (2 + wide**2) + np.exp(-abs(wide)) / (1 + abs(a))
    flagged = np.roll(f, -1, 0) + np.roll(f, 1, 0) + f > 0
    assert np.allclose(sim[out], np.where(flagged, costly * np.roll(f, -1, 1), wide), rtol=1e-12, atol=1e-12)


# -- precision, and simplifications, of values that are computed several times ----------------------------


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
@pytest.mark.parametrize("storage", ["patch", "inline"])
def test_the_precision_of_coordinates_does_not_depend_on_where_they_are_computed(storage):
    def make(**options):
        grid = hc.Grid((12, 11), periodic=True)
        a = grid.field("a", dtype="float32")
        for name in ("f", "g"):
            grid.field(name, dtype="float32")

        @hc.program
        def step(a, f, g):
            st = hc.stage(hc.exp(grid.x + grid.y), "st", storage=storage)
            f.set(a * st + a / st)  # in the halo too
            g.set(f[1, 0] - f[-1, 0] + f[0, 1] + a[1, 0] + a[-1, 0] + a[0, 1])
            g.set(g + st[1, 0])

        sim = hc.Simulation(grid, step, **options)
        sim[a] = np.random.default_rng(5).uniform(1.0, 2.0, grid.shape)
        sim.run()
        return sim

    reference = serial(make, "f", "g")
    for options in ({}, {"decomposition": "1d-x"}, {"patch": 3}):
        sim = make(**options)
        assert {name: sim.checksum(name) for name in reference} == reference


@cases("stored_dtype", ["float64", "float32"], default=["float32"])
def test_a_value_has_the_precision_of_the_field_that_it_was_set_to(stored_dtype):
    """A field has float64 or float32 for any source of its values, in fused and separate sweeps."""
    checksums = []
    for apart in (False, True):
        grid = hc.Grid(41, periodic=True)
        u, f = grid.field("u", dtype="float32"), grid.field("f", dtype=stored_dtype)
        g, h = grid.field("g", dtype="float32"), grid.field("h")

        @hc.program
        def step(u, f, g, h, apart=apart):
            f.set(hc.sin(3.0 * f.grid.x))
            if apart:
                hc.scalar("end").set(hc.max(f))
                hc.stop(hc.parameter("end") > 2.0, "never")
            g.set(u * f + u)
            h.set(f * f + hc.cos(f))

        sim = hc.Simulation(grid, step, parameters={})
        sim[u] = np.random.default_rng(5).uniform(1.0, 2.0, grid.shape)
        sim.run()
        checksums.append([sim.checksum(g), sim.checksum(h)])
        assert len(list(sim.schedule.sweeps())) == 1 + apart
    assert checksums[0] == checksums[1]
    x = np.array(sim[f], dtype=np.float64)
    np.testing.assert_allclose(sim[h], x * x + np.cos(x), rtol=1e-15 if stored_dtype == "float64" else 1e-6)


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("storage", ["patch", "inline"])
def test_zeros_have_the_same_sign_in_the_halo(storage):
    def make(**options):
        grid = hc.Grid((12, 9), periodic=True)
        a, b = grid.field("a"), grid.field("b")
        grid.field("f"), grid.field("g")

        @hc.program
        def step(a, b, f, g):
            d = hc.stage(a - b, "d", storage=storage)
            f.set(-d)
            signs = hc.where(1.0 / f[1, 0] < 0.0, -1.0, 1.0) + hc.where(1.0 / f[-1, 0] < 0.0, -3.0, 3.0)
            g.set(signs + a[1, 0] * b[-1, 0] + b[1, 0] * a[-1, 0])

        sim = hc.Simulation(grid, step, **options)
        start = np.random.default_rng(5).uniform(1.0, 2.0, grid.shape)
        sim[a], sim[b] = start, np.where(np.arange(9) % 3, start, 1.0)
        sim.run()
        return sim

    reference = serial(make, "f", "g")
    for options in ({}, {"decomposition": "1d-x"}):
        sim = make(**options)
        assert {name: sim.checksum(name) for name in reference} == reference


def test_additions_of_a_zero_field_are_not_simplified():
    """A zero field behaves like a 0 that is not a literal: -0 + 0 is 0 and -1 * 0 is -0, fused or not."""
    grid = hc.Grid(4)
    u = grid.field("u")
    for name in "zfg":
        grid.field(name)

    @hc.program
    def step(u, z, f, g):
        z.set(0.0)
        f.set(u + z)
        g.set(hc.where(1.0 / (u * z) < 0.0, 1.0, 2.0))

    sim = hc.Simulation(grid, step)
    sim[u] = -0.0
    sim.run()
    assert not np.signbit(sim["f"]).any()
    np.testing.assert_array_equal(sim["g"], 1.0)


@pytest.mark.parametrize("exponent", [np.inf, -np.inf, np.nan])
def test_nonfinite_powers_are_correct(exponent):
    def finite(x):
        return np.where(x < 9.0, x, np.where(x > 9.0, 10.0, 11.0))

    grid = hc.Grid(5)
    u, v = grid.field("u"), grid.field("v")
    sim = hc.Simulation(grid, hc.program(lambda u, v: v.set(finite(u**exponent))))
    sim[u] = start = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    sim.run()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(sim[v], finite(start**exponent))


# -- hyperbolic functions --------------------------------------------------------------------------------


@cases("dtype", ["float64", "float32"], default=["float64"])
@pytest.mark.parametrize(("name", "bound"), [("tanh", 3.0), ("sinh", 4.0), ("cosh", 4.0)])
def test_hyperbolic_functions_are_accurate_everywhere(name, bound, dtype):
    import mpmath

    mpmath.mp.dps = 40
    random = np.random.default_rng(6)
    largest = 710.4 if dtype == "float64" else 89.4  # sinh and cosh are still finite for this value
    tiny = 1e-300 if dtype == "float64" else 1e-36
    sizes = [
        *(10.0 ** random.uniform(np.log10(tiny), 0, 400)),
        *random.uniform(0, 1.3, 1500),
        *random.uniform(0.6, 0.65, 300),
        *random.uniform(0, 25, 500),
        *random.uniform(0, largest, 500),
        *(0.0, 1e-17, 0.625, 1.0, largest),
    ]
    x = (random.choice([-1.0, 1.0], len(sizes)) * sizes).astype(dtype)
    grid = hc.Grid(len(x))
    u, v = grid.field("u", dtype=dtype), grid.field("v", dtype=dtype)
    sim = hc.Simulation(grid, hc.program(lambda u, v: v.set(getattr(np, name)(u))))
    sim[u] = x
    sim.run()
    worst = 0.0
    for argument, result in zip(x.tolist(), np.array(sim[v]), strict=True):
        exact = getattr(mpmath, name)(mpmath.mpf(argument))
        ulp = np.spacing(np.abs(x.dtype.type(float(exact))))
        worst = max(worst, float(abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(ulp))))
    assert worst < bound
    np.testing.assert_array_equal(np.signbit(sim[v]), np.signbit(x) & (name != "cosh"))


# -- memory ----------------------------------------------------------------------------------------------


def test_memory_is_freed_with_the_last_reference_to_a_problem():
    """The memory of a problem is freed without the garbage collector, which does not know field sizes."""

    def simulate():
        grid = hc.Grid((1024, 1024), periodic=True)
        u = grid.field("u")
        sim = hc.Simulation(grid, lambda u, k: {u: k * u}, scheme=hc.RK2(), dt=0.1, parameters={"k": 1.0})
        sim[u] = 1.0
        sim.parameters["k"] = 2.0
        sim.run(steps=1)

    def solve():
        grid = hc.Grid((1024, 1024))
        hc.solve(lambda u: u, grid.field("u"), 1.0)

    gc.collect()
    gc.disable()
    try:
        for work in (simulate, solve):
            work()
            before = resident_bytes()
            for _ in range(4):
                work()
            assert resident_bytes() - before < 20e6  # the fields of one problem use more
    finally:
        gc.enable()


def test_numpy_functions_work_before_the_first_use_of_halocline() -> None:
    """NumPy functions work before Halocline's functions, which are imported at their first use."""
    script = "import numpy as np, halocline as hc\nprint(np.sin(hc.Grid(4).x))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sin(")
