"""What passes of the compiler must keep: programs against NumPy, with stages and results in every place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.statements import Nest, Stage
from halocline.compile.passes import nests as nests_pass
from halocline.compile.passes.nests import MOST

storages = pytest.mark.parametrize("storage", ["inline", "patch", "auto"])


def start(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Whole numbers, of which sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(1, 100, shape).astype(float)


def periodic(names: str) -> tuple[hc.Grid, list[hc.Field]]:
    grid = hc.Grid((6, 8), (6.0, 8.0), periodic=True)
    return grid, [grid.field(name) for name in names]


def buffers(grid: hc.Grid, program: Any) -> list[str]:
    """The names of fields in memory, of second buffers with a prime."""
    return [info.name for info in compile_program(program.trace(), grid).fields]


@storages
def test_a_stage_has_the_numbers_of_its_own_cell(storage: str) -> None:
    grid, (u, v) = periodic("uv")

    @hc.program
    def program() -> None:
        s = hc.stage(u + 1000.0 * grid.cell_number(), "s", storage=storage)
        v.set(s[1, 0] + 3.0 * s[0, -1])

    sim = hc.Simulation(grid, program)
    u0 = start(grid.shape, 1)
    sim[u] = u0
    sim.run()
    s = u0 + 1000 * np.arange(48.0).reshape(6, 8)
    assert np.array_equal(sim[v], np.roll(s, -1, 0) + 3 * np.roll(s, 1, 1))


@storages
@pytest.mark.parametrize("inner", ["inline", "patch", "auto"])
def test_a_stage_of_a_stage_reaches_as_far_as_both(storage: str, inner: str) -> None:
    """The first is read by a result too, nearer than through the second."""
    grid, (u, v, w) = periodic("uvw")

    @hc.program
    def program() -> None:
        s = hc.stage(u * 2.0 + 1.0, "s", storage=inner)
        t = hc.stage(s[1, 0] + 3.0 * s[0, 1], "t", storage=storage)
        v.set(t[1, 0] + t[0, 1] + s[-1, 0])
        w.set(s[0, 0])

    sim = hc.Simulation(grid, program, patch=2)
    u0 = start(grid.shape, 1)
    sim[u] = u0
    sim.run()
    s = 2 * u0 + 1
    t = np.roll(s, -1, 0) + 3 * np.roll(s, -1, 1)
    assert np.array_equal(sim[v], np.roll(t, -1, 0) + np.roll(t, -1, 1) + np.roll(s, 1, 0))
    assert np.array_equal(sim[w], s)


@storages
def test_a_stage_is_known_at_the_last_point_of_a_field_on_faces(storage: str) -> None:
    """Which lies a point beyond those of cells, in one of two loops of a stage."""
    grid = hc.Grid(6, 6.0)
    u = grid.field("u", boundary=hc.Value(4.0))
    c, f = grid.field("c"), grid.field("f", location="face-x")

    @hc.program
    def program() -> None:
        s = hc.stage(2.0 * u + 1.0, "s", storage=storage)
        c.set(s[0] + s[-1])
        f.set(s[0] + 3.0 * s[-1])

    sim = hc.Simulation(grid, program, patch=2)
    u0 = start((6,), 1)
    sim[u] = u0
    sim.run()
    s = 2 * np.concatenate([8 - u0[:1], u0, 8 - u0[-1:]]) + 1
    assert np.array_equal(sim[c], s[1:-1] + s[:-2])
    assert np.array_equal(sim[f], s[1:] + 3 * s[:-1])


def test_the_value_of_a_cell_is_that_from_before_the_sweep() -> None:
    """In one sweep the field is set, summed, and read at one cell, in this order of the program. Cells come
    first: else the field would need a second buffer."""
    grid, (u, v) = periodic("uv")

    @hc.program
    def program() -> None:
        hc.assign({u: 2.0 * u, v: 3.0 * u})
        hc.scalar("total").set(hc.sum(v))
        hc.scalar("first").set(hc.value(v, (2, 3)))

    sim = hc.Simulation(grid, program)
    u0 = start(grid.shape, 1)
    sim[u] = u0
    sim.run()
    assert buffers(grid, program) == ["u", "v"]
    assert np.array_equal(sim[u], 2 * u0)
    assert sim.values["total"] == 3 * u0.sum()
    assert sim.values["first"] == 3 * u0[2, 3]


def test_an_old_value_is_read_by_the_loop_that_replaces_it() -> None:
    """Of more results than one loop takes: the program sets the field first, and reads it last. In loops
    apart the field would need a second buffer."""
    names = "abcdefghijkl"
    grid, fields = periodic(names)
    source = grid.field("source")
    assert len(fields) > MOST

    @hc.program
    def program() -> None:
        first, *rest, last = fields
        hc.assign({first: 2.0 * source, **{f: f + 1.0 for f in rest}, last: 3.0 * first})

    sim = hc.Simulation(grid, program)
    values = [start(grid.shape, seed) for seed in range(len(fields))]
    for f, value in zip(fields, values, strict=True):
        sim[f] = value
    sim[source] = start(grid.shape, 99)
    sim.run()
    assert buffers(grid, program) == [*names, "source"]
    assert np.array_equal(sim[fields[0]], 2 * start(grid.shape, 99))
    assert np.array_equal(sim[fields[-1]], 3 * values[0])
    assert np.array_equal(sim[fields[5]], values[5] + 1)


def test_a_stage_that_inline_stages_read_at_many_cells_is_kept() -> None:
    """Its cost counts at every cell where they are computed anew, not once for each time they read it."""
    grid, (u, v) = periodic("uv")

    @hc.program
    def program() -> None:
        s = hc.stage(hc.sqrt(u) + 1.0, "s")
        t = hc.stage(s[0, 1] - s[0, -1], "t", storage="inline")
        v.set(t[0, 2] + t[0, 0] + t[0, -2])

    (nests,) = arranged(program.trace(), grid).nests.values()
    kept = [statement.array for statement in nests.staged.body if isinstance(statement, Stage)]
    assert [name.partition(".")[0] for name in kept] == ["s"]


def test_the_opposite_of_a_product_that_is_used_twice_is_rounded_once() -> None:
    """As in NumPy: multiply-adds would round the sums alone."""
    grid, (a, b, c, d, u, v) = periodic("abcduv")

    @hc.program
    def program() -> None:
        hc.assign({u: -(a * b) - c, v: -(a * b) - d})

    sim = hc.Simulation(grid, program)
    random = np.random.default_rng(3)
    a0, b0, c0, d0 = (random.uniform(1, 2, grid.shape) for _ in range(4))
    sim[a], sim[b], sim[c], sim[d] = a0, b0, c0, d0
    sim.run()
    assert np.array_equal(sim[u], -(a0 * b0) - c0)
    assert np.array_equal(sim[v], -(a0 * b0) - d0)


@pytest.mark.parametrize("parts", [(1, 1), (3, 1), (1, 2)])
def test_rows_that_wrap_around_themselves_have_halos_along_other_axes(parts: tuple[int, int]) -> None:
    grid, (u, v) = periodic("uv")

    @hc.program
    def program() -> None:
        v.set(u[1, 0] + 3.0 * u[-1, 0] + 5.0 * u[0, 1] + 7.0 * u[0, -1])

    sim = hc.Simulation(grid, program, decomposition=parts, subdomains_per_rank=parts[0] * parts[1])
    u0 = start(grid.shape, 1)
    sim[u] = u0
    sim.run()
    want = np.roll(u0, -1, 0) + 3 * np.roll(u0, 1, 0) + 5 * np.roll(u0, -1, 1) + 7 * np.roll(u0, 1, 1)
    assert np.array_equal(sim[v], want)


@pytest.mark.parametrize(
    ("other", "count"),
    [("shared", 2), ("its own", 3), ("beyond the halo", 3)],
)
def test_stages_that_share_most_of_their_values_have_one_nest(other: str, count: int) -> None:
    """Unless the one that is needed less far would read, around it, what nothing else needs there."""
    grid, (u, v, w) = periodic("uvw")

    def near(common: Any) -> Any:
        if other == "shared":
            return common + 5.0
        return common * w if other == "beyond the halo" else w * w + 5.0

    @hc.program
    def program() -> None:
        common = u * u + u * 3.0 + u[1, 0] * u
        wide = hc.stage(common * 2.0, "wide", storage="patch")
        narrow = hc.stage(near(common), "narrow", storage="patch")
        v.set(wide[2, 0] + wide[0, 1] + narrow[0, 1] + narrow)

    (found,) = arranged(program.trace(), grid).nests.values()
    assert sum(isinstance(statement, Nest) for statement in found.kernel.body) == count
    sim = hc.Simulation(grid, program, patch=2)
    u0, w0 = start(grid.shape, 1), start(grid.shape, 2)
    sim[u], sim[w] = u0, w0
    sim.run()
    common = u0 * u0 + u0 * 3 + np.roll(u0, -1, 0) * u0
    wide = common * 2
    narrow = {"shared": common + 5, "its own": w0 * w0 + 5, "beyond the halo": common * w0}[other]
    expected = np.roll(wide, -2, 0) + np.roll(wide, -1, 1) + np.roll(narrow, -1, 1) + narrow
    assert np.array_equal(sim[v], expected)


def test_stages_that_are_needed_to_different_sides_have_one_nest_around_all_points() -> None:
    """A stage that they read is then needed further out too, but no field is."""
    grid, (u, v, w) = periodic("uvw")

    @hc.program
    def program() -> None:
        # a flux reads its sides, of which some components are needed for one flux alone
        base = hc.stage(u * u + w, "base", storage="patch")
        other = hc.stage((w + 2.0) * (w + 5.0), "other", storage="patch")
        common = base * base + base * 3.0 + base[-1, 0] * base
        first = hc.stage(common * 2.0, "first", storage="patch")
        second = hc.stage(common * 3.0 + other, "second", storage="patch")
        v.set(first[1, 0] + first + second[0, 1] + second)

    (found,) = arranged(program.trace(), grid).nests.values()
    made = {s.array.partition(".")[0]: nest.extent for nest in found.kernel.body for s in nest.body}
    assert made["first"] == made["second"] == ((0, 1), (0, 1))
    assert made["other"] == ((0, 1), (0, 1))  # alone it would be ((0, 0), (0, 1))
    sim = hc.Simulation(grid, program, patch=3)
    u0, w0 = start(grid.shape, 1), start(grid.shape, 2)
    sim[u], sim[w] = u0, w0
    sim.run()
    base0 = u0 * u0 + w0
    common0 = base0 * base0 + base0 * 3.0 + np.roll(base0, 1, 0) * base0
    first0, second0 = common0 * 2.0, common0 * 3.0 + (w0 + 2.0) * (w0 + 5.0)
    expected = np.roll(first0, -1, 0) + first0 + np.roll(second0, -1, 1) + second0
    np.testing.assert_allclose(sim[v], expected, rtol=1e-14)


def test_stages_are_not_joined_where_what_they_read_would_be_too_much_work() -> None:
    grid, (u, v, w) = periodic("uvw")

    @hc.program
    def program() -> None:
        base = w
        for n in range(150):
            base = base * 1.001 + 0.25 * n
        base = hc.stage(base, "base", storage="patch")
        common = u * u + u * 3.0
        along = hc.stage(common * u, "along", storage="patch")
        across = hc.stage(common * base, "across", storage="patch")
        # both fields are read that far anyway
        sides = u[2, 2] + u[-2, -2] + u[2, -2] + u[-2, 2] + w[2, 2] + w[-2, -2] + w[2, -2] + w[-2, 2]
        v.set(along[2, 0] + along[-2, 0] + across[0, 2] + across[0, -2] + sides)

    (found,) = arranged(program.trace(), grid).nests.values()
    extents = {s.array.partition(".")[0]: nest.extent for nest in found.kernel.body for s in nest.body}
    assert extents["base"] == extents["across"] == ((0, 0), (2, 2))


def test_the_pairs_that_are_compared_grow_as_the_square_of_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    own = nests_pass._Joining._together
    counting = lambda self, *pair: looked.append(1) or own(self, *pair)  # noqa: E731
    monkeypatch.setattr(nests_pass._Joining, "_together", counting)
    grid, (u, v) = periodic("uv")

    def compared(count: int) -> int:
        @hc.program
        def program() -> None:
            total = u
            for n in range(count):
                common = (u + 1.0 * n) * (u + 2.5) + u[1, 0] * (u - 3.5 * n)
                one = hc.stage(common * 2.0, f"one{n}", storage="patch")
                total = total + one[1, 0] + hc.stage(common * 3.0, f"two{n}", storage="patch")[0, 1]
            v.set(total)

        looked.clear()
        arranged(program.trace(), grid)
        return len(looked)

    assert compared(20) < 5 * compared(10)
