"""Validity of halos and ghosts after changes: programs on one and several subdomains against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Sweep
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout
from halocline.plan.rank import plan_subdomain
from halocline.plan.transfer import Transfers

N = 12
LEVEL = 4.0

subdomains = pytest.mark.parametrize("parts", [1, 3])


def cut(parts: int, *, axis: int = 0, ndim: int = 1) -> dict[str, Any]:
    """Return options that cut a grid along one axis, on one rank."""
    counts = tuple(parts if a == axis else 1 for a in range(ndim))
    return {"decomposition": counts, "subdomains_per_rank": parts}


def start(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Return whole numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(1, 100, shape).astype(float)


def walled(u: np.ndarray[Any, Any], depth: int) -> np.ndarray[Any, Any]:
    """Return a field between walls of value LEVEL, with its ghosts."""
    return np.concatenate([2 * LEVEL - u[:depth][::-1], u, 2 * LEVEL - u[-depth:][::-1]])


def both_sides(u: np.ndarray[Any, Any], distance: int) -> np.ndarray[Any, Any]:
    """Return u[-distance] + 3 u[distance] between walls of value LEVEL."""
    whole = walled(u, distance)
    return whole[: -2 * distance] + 3 * whole[2 * distance :]


def line(names: str) -> tuple[hc.Grid, dict[str, hc.Field]]:
    """Return a grid between walls, where `u` has the value LEVEL; other fields have no boundary condition."""
    grid = hc.Grid(N, float(N))
    return grid, {name: grid.field(name, boundary=hc.Value(LEVEL) if name == "u" else None) for name in names}


# --- valid layers in loops ---


@subdomains
def test_a_loop_may_narrow_the_valid_halo(parts: int) -> None:
    """The first pass reads two valid layers from before the loop; later passes have one, of new values."""
    grid, fields = line("uvwxg")
    u, v, w, x, g = fields.values()

    @hc.program
    def program() -> None:
        x.set(u[-2] + 3.0 * u[2])
        with hc.loop(limit=2):
            v.set(v + u[-2] + 3.0 * u[2])
            u.set(u + g)  # g is not exchanged, so u is not computed in the halo
            w.set(w + u[-1] + 3.0 * u[1])

    sim = hc.Simulation(grid, program, **cut(parts))
    u0, g0 = start((N,), 1), start((N,), 2)
    sim[u], sim[g] = u0, g0
    sim.run()
    assert np.array_equal(sim[x], both_sides(u0, 2))
    assert np.array_equal(sim[v], both_sides(u0, 2) + both_sides(u0 + g0, 2))
    assert np.array_equal(sim[w], both_sides(u0 + g0, 1) + both_sides(u0 + 2 * g0, 1))


@subdomains
def test_a_loop_may_widen_the_valid_halo(parts: int) -> None:
    """The first pass exchanges the second layer, although it is valid in the later passes."""
    grid, fields = line("uvx")
    u, v, x = fields.values()

    @hc.program
    def program() -> None:
        x.set(u[-1] + 3.0 * u[1])
        with hc.loop(limit=2):
            v.set(v + u[-2] + 3.0 * u[2])

    sim = hc.Simulation(grid, program, **cut(parts))
    u0 = start((N,), 1)
    sim[u] = u0
    sim.run()
    assert np.array_equal(sim[x], both_sides(u0, 1))
    assert np.array_equal(sim[v], 2 * both_sides(u0, 2))


# --- updates of ghosts ---


def test_ghosts_follow_a_scalar_that_changes_between_two_reads() -> None:
    """The ghosts are formed again if only the scalar changes, without a loop."""
    grid = hc.Grid(N, float(N))
    level = hc.parameter("level")
    u = grid.field("u", boundary={"x-": hc.Value(level)})
    before, after = grid.field("before"), grid.field("after")

    @hc.program
    def program(level: Any) -> None:
        before.set(u[-1])
        level.set(level + 1.0)
        after.set(u[-1])

    sim = hc.Simulation(grid, program, parameters={"level": LEVEL})
    u0 = start((N,), 1)
    sim[u] = u0
    sim.run()
    assert sim[before].tolist() == [2 * LEVEL - u0[0], *u0[:-1]]
    assert sim[after].tolist() == [2 * (LEVEL + 1) - u0[0], *u0[:-1]]


def read_twice(
    grid: hc.Grid, w: hc.Field, between: Callable[[Any], None], **options: Any
) -> tuple[hc.Simulation, hc.Field, hc.Field]:
    """Return a simulation that reads `w` towards the lowest corner before and after a change."""
    before, after = grid.field("before"), grid.field("after")
    corner = (-1,) * grid.ndim

    @hc.program
    def program(level: Any) -> None:
        before.set(w[corner])
        between(level)
        after.set(w[corner])

    return (
        hc.Simulation(grid, program, parameters={"level": LEVEL}, **options),
        before,
        after,
    )


def beyond(of: hc.Field, factor: float) -> hc.BoundaryKernel:
    """Return a condition whose ghosts are the first inner value of another field times a factor."""
    return hc.BoundaryKernel(lambda q: factor * q.of(of)[0])


@subdomains
def test_ghosts_follow_a_field_that_changes_between_two_reads(parts: int) -> None:
    grid = hc.Grid(N, float(N))
    v = grid.field("v")
    w = grid.field("w", boundary={"x-": beyond(v, 2.0)})
    sim, before, after = read_twice(grid, w, lambda level: v.set(v + 1.0), **cut(parts))
    v0, w0 = start((N,), 1), start((N,), 2)
    sim[v], sim[w] = v0, w0
    sim.run()
    assert sim[before].tolist() == [2 * v0[0], *w0[:-1]]
    assert sim[after].tolist() == [2 * (v0[0] + 1), *w0[:-1]]


def at_corner(v_ghosts: np.ndarray[Any, Any], w0: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return w[-1, -1] with ghosts 0 beyond x-, and 3 times the first values of v beyond y-."""
    w = np.concatenate([np.zeros((1, w0.shape[1])), w0])
    w = np.concatenate([3 * v_ghosts[:, :1], w], axis=1)
    return w[:-1, :-1]


@pytest.mark.parametrize("axis", [0, 1])
@subdomains
def test_ghosts_at_a_corner_follow_a_scalar_through_ghosts_of_another_field(parts: int, axis: int) -> None:
    """The ghosts are formed after those of the other field, which the program reads nowhere else."""
    shape = (6, 6)
    grid = hc.Grid(shape)
    w = grid.field("w")
    v = grid.field("v", boundary={"x-": hc.Value(hc.parameter("level"))})
    w.boundary.update({"x-": beyond(v, 0.0), "y-": beyond(v, 3.0)})
    sim, before, after = read_twice(
        grid, w, lambda level: level.set(level + 1.0), **cut(parts, axis=axis, ndim=2)
    )
    v0, w0 = start(shape, 1), start(shape, 2)
    sim[v], sim[w] = v0, w0
    sim.run()
    for field, level in ((before, LEVEL), (after, LEVEL + 1)):
        assert np.array_equal(sim[field], at_corner(np.concatenate([2 * level - v0[:1], v0]), w0)), field


@pytest.mark.parametrize("axis", [0, 1])
@subdomains
def test_ghosts_at_a_corner_follow_a_field_through_ghosts_of_another(parts: int, axis: int) -> None:
    shape = (6, 6)
    grid = hc.Grid(shape)
    u = grid.field("u")
    v = grid.field("v", boundary={"x-": beyond(u, 2.0)})
    w = grid.field("w", boundary={"x-": beyond(v, 0.0), "y-": beyond(v, 3.0)})
    sim, before, after = read_twice(grid, w, lambda level: u.set(u + 1.0), **cut(parts, axis=axis, ndim=2))
    u0, v0, w0 = (start(shape, seed) for seed in (1, 2, 3))
    sim[u], sim[v], sim[w] = u0, v0, w0
    sim.run()
    for field, values in ((before, u0), (after, u0 + 1)):
        assert np.array_equal(sim[field], at_corner(np.concatenate([2 * values[:1], v0]), w0)), field


@pytest.mark.parametrize("axis", [0, 1, 2])
@subdomains
def test_ghosts_may_depend_on_ghosts_of_other_fields(parts: int, axis: int) -> None:
    """Ghosts beyond z- read those of v beyond y-, which read those of u beyond x-."""
    shape = (6, 6, 6)
    grid = hc.Grid(shape)
    u = grid.field("u", boundary={"x-": hc.Value(LEVEL)})
    v = grid.field("v")
    v.boundary.update({"x-": beyond(u, 0.0), "y-": beyond(u, 2.0)})
    w = grid.field("w")
    w.boundary.update({"x-": beyond(v, 0.0), "y-": beyond(v, 0.0), "z-": beyond(v, 3.0)})
    result = grid.field("seen")
    program = hc.program(lambda: result.set(w[-1, -1, -1]))
    sim = hc.Simulation(grid, program, **cut(parts, axis=axis, ndim=3))
    u0, v0, w0 = (start(shape, seed) for seed in (1, 2, 3))
    sim[u], sim[v], sim[w] = u0, v0, w0
    sim.run()
    ux = np.concatenate([2 * LEVEL - u0[:1], u0])
    vx = np.concatenate([0 * v0[:1], v0])
    vxy = np.concatenate([2 * ux[:, :1], vx], axis=1)
    expected = np.pad(w0, ((1, 0), (1, 0), (0, 0)))
    expected = np.concatenate([3 * vxy[:, :, :1], expected], axis=2)[:-1, :-1, :-1]
    assert np.array_equal(sim[result], expected)


@pytest.mark.ranks(2)
def test_ghosts_at_a_corner_wait_only_for_the_other_field() -> None:
    """Only v is exchanged before the second read; the ghosts of w next to the neighbour are formed from v."""
    shape = (6, 64)
    grid = hc.Grid(shape, periodic=(False, True))
    v, g = grid.field("v"), grid.field("g")
    w = grid.field("w", boundary={"x-": beyond(v, 2.0)})
    before, after = grid.field("before"), grid.field("after")

    @hc.program
    def program() -> None:
        before.set(w[-1, -1] + 3.0 * w[-1, 1])
        v.set(v + g)
        after.set(w[-1, -1] + 3.0 * w[-1, 1])

    sim = hc.Simulation(grid, program, decomposition=(1, 2))
    v0, w0, g0 = (start(shape, seed) for seed in (1, 2, 3))
    sim[v], sim[w], sim[g] = v0, w0, g0
    sim.run()
    for field, values in ((before, v0), (after, v0 + g0)):
        gathered = sim.gather(field)
        if gathered is not None:
            whole = np.concatenate([2 * values[:1], w0])[:-1]
            assert np.array_equal(gathered, np.roll(whole, 1, 1) + 3 * np.roll(whole, -1, 1)), field


def test_fills_wait_for_messages_of_each_field_that_they_read() -> None:
    """The plan lists all messages that a fill needs; a run would detect a late message only by chance."""
    grid = hc.Grid((6, 64), periodic=(False, True))
    v, g = grid.field("v"), grid.field("g")
    w = grid.field("w", boundary={"x-": beyond(v, 2.0)})
    before, after = grid.field("before"), grid.field("after")

    def program() -> None:
        before.set(w[-1, -1] + 3.0 * w[-1, 1])
        v.set(v + g)
        after.set(w[-1, -1] + 3.0 * w[-1, 1])

    schedule = compile_program(hc.program(program).trace(), grid)
    cuts = decompose(grid.shape, 2, strategy=(1, 2), periodic=(False, True))
    first, second = plan_subdomain(schedule, Transfers(Layout.of(cuts), ("self", "mpi")), 0).sweeps
    fields = [[{schedule.fields[n].name for n, _ in m.parts} for m in s.receives] for s in (first, second)]
    assert fields == [[{"v", "w"}] * 2, [{"v"}] * 2]
    for sweep in (first, second):
        needs = [rim.needs for fill in sweep.fills for rim in fill.rims]
        assert sorted(needs) == [0b01, 0b10]


# --- computation in the halo ---


@pytest.mark.parametrize("parts", [(1, 1), (2, 2)])
def test_fields_that_need_an_unfilled_corner_are_exchanged(parts: tuple[int, int]) -> None:
    """The halo of u is exchanged, since its computation would read a corner of a that nothing fills."""
    shape = (8, 8)
    grid = hc.Grid(shape, periodic=True)
    a, u, v, w = (grid.field(name) for name in "auvw")

    @hc.program
    def program() -> None:
        u.set(a[0, 1])
        v.set(a[2, 0])
        w.set(u[1, 0])

    sim = hc.Simulation(grid, program, decomposition=parts, subdomains_per_rank=parts[0] * parts[1])
    a0 = start(shape, 1)
    sim[a] = a0
    sim.run()
    assert np.array_equal(sim[w], np.roll(a0, (-1, -1), (0, 1)))


@pytest.mark.parametrize("parts", [1, 2])
def test_fields_that_need_an_unfilled_ghost_are_exchanged(parts: int) -> None:
    """The face at the upper wall is formed from ghosts of a, which next to a neighbour nothing else reads."""
    shape = (6, 8)
    grid = hc.Grid(shape, periodic=(False, True))
    a = grid.field("a", boundary={"x+": hc.Value(LEVEL)})
    f, result = grid.field("f", location="face-x"), grid.field("seen", location="face-x")
    c = grid.field("c")

    @hc.program
    def program() -> None:
        f.set(a[0, 0])
        c.set(a[0, 1] + 3.0 * a[0, -1])
        result.set(f[0, 1] + 3.0 * f[0, -1])

    sim = hc.Simulation(grid, program, **cut(parts, axis=1, ndim=2))
    a0 = start(shape, 1)
    sim[a] = a0
    sim.run()
    expected = np.concatenate([a0, 2 * LEVEL - a0[-1:]])
    assert np.array_equal(sim[result], np.roll(expected, -1, 1) + 3 * np.roll(expected, 1, 1))


def test_inactive_cells_in_halos_are_zero() -> None:
    """An inactive cell is zero in the halo, although the expression has another value there."""
    grid = hc.Grid(N, active=[True, False, True])
    a, u, v, w = (grid.field(name, boundary=hc.Value(0.0)) for name in "auvw")

    @hc.program
    def program() -> None:
        v.set(a[1])
        u.set(a + 1.0)
        w.set(u[1])

    sim = hc.Simulation(grid, program, **cut(3))
    sim[a] = 1.0
    sim.run()
    assert sim[w].tolist() == [2, 2, 2, 0, 0, 0, 0, 0, 2, 2, 2, -2]


# --- no more work than necessary ---


def sweeps(grid: hc.Grid, function: Callable[[], None]) -> list[Sweep]:
    return list(compile_program(hc.program(function).trace(), grid).sweeps())


def test_ghosts_stay_valid_while_more_of_their_field_is_exchanged() -> None:
    """Ghosts stay valid if the values from which they are formed do not change."""
    grid = hc.Grid((8, 8), periodic=(False, True))
    u = grid.field("u", boundary={"x-": hc.Value(LEVEL)})
    v, w = grid.field("v"), grid.field("w", boundary=hc.Value(0.0))

    def program() -> None:
        v.set(u[-1, -1])
        w.set(u[-1, -1] + u[0, 2] + v[0, 1])

    first, second = sweeps(grid, program)
    number = first.fills[0].field
    assert number in first.exchange
    assert number in second.exchange
    assert [fill.field for fill in second.fills] == []


def test_halo_segments_are_not_sent_twice() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    u, v, w, x = (grid.field(name) for name in "uvwx")

    def program() -> None:
        v.set(u[2, 0])
        w.set(u[0, 2] + v[1, 0])
        x.set(u[2, 0] + w[1, 0])

    exchanged = [sweep.exchange for sweep in sweeps(grid, program)]
    (number,) = exchanged[0]
    assert [number in fields for fields in exchanged] == [True, True, False]


def test_reads_of_later_values_need_no_computation_in_the_halo() -> None:
    """The halo of u is computed only after its second assignment, since neighbours are read after that."""
    grid = hc.Grid((8, 8), periodic=True)
    a, u, v, w = (grid.field(name) for name in "auvw")

    def program() -> None:
        v.set(a[1, 0])
        u.set(2.0 * a)
        w.set(v[1, 0])
        u.set(3.0 * u + w)
        a.set(u[1, 0])

    first, *_ = sweeps(grid, program)
    assert first.halo_kernel is None


def test_reads_of_the_next_pass_are_computed_in_the_halo() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    a, u, v, x = (grid.field(name) for name in "auvx")

    def program() -> None:
        x.set(u[1, 0])
        with hc.loop(limit=3):
            x.set(x + u[1, 0])
            v.set(a[1, 0] + x[1, 0])
            u.set(2.0 * a)

    schedule = compile_program(hc.program(program).trace(), grid)
    names = [[schedule.fields[n].name for n in sweep.exchange] for sweep in schedule.sweeps()]
    assert names[0] == ["u"]
    assert all("u" not in fields for fields in names[1:])
