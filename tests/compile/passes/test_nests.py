"""Invariants of compiler passes: programs with stages and results of every kind agree with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.statements import Nest, Stage
from halocline.compile.passes import nests as nests_pass
from halocline.compile.passes.nests import MAX_RESULTS

storages = pytest.mark.parametrize("storage", ["inline", "patch", "auto"])


def start(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Return whole numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(1, 100, shape).astype(float)


def periodic(names: str) -> tuple[hc.Grid, list[hc.Field]]:
    grid = hc.Grid((6, 8), (6.0, 8.0), periodic=True)
    return grid, [grid.field(name) for name in names]


def buffers(grid: hc.Grid, program: Any) -> list[str]:
    """Return the names of the fields in memory; those of second buffers end with a prime."""
    return [info.name for info in compile_program(program.trace(), grid).fields]


@storages
def test_a_stage_uses_the_coordinates_of_its_own_cell(storage: str) -> None:
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
def test_extents_of_nested_stages_add_up(storage: str, inner: str) -> None:
    """The extent is correct if a result also reads the first stage, nearer than the second stage does."""
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
def test_a_stage_is_computed_at_the_last_face(storage: str) -> None:
    """The face field has one point beyond the last cell, in one of the two loops that read the stage."""
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


def test_reads_of_a_cell_return_the_value_before_the_sweep() -> None:
    """A field is set, summed and read at one cell in one sweep, in the order of the program.

    The cell value is read first, since the field would otherwise need a second buffer.
    """
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
    """The loop that sets a field first also reads its old value, which the program reads last.

    The program has more results than one loop takes. In separate loops the field would need a second
    buffer.
    """
    names = "abcdefghijkl"
    grid, fields = periodic(names)
    source = grid.field("source")
    assert len(fields) > MAX_RESULTS

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


def test_a_stage_read_at_many_cells_by_inline_stages_is_stored() -> None:
    """The cost of a stage counts once per cell at which it would be recomputed, not once per read."""
    grid, (u, v) = periodic("uv")

    @hc.program
    def program() -> None:
        s = hc.stage(hc.sqrt(u) + 1.0, "s")
        t = hc.stage(s[0, 1] - s[0, -1], "t", storage="inline")
        v.set(t[0, 2] + t[0, 0] + t[0, -2])

    (nests,) = arranged(program.trace(), grid).nests.values()
    stored = [statement.array for statement in nests.staged.body if isinstance(statement, Stage)]
    assert [name.partition(".")[0] for name in stored] == ["s"]


def test_a_negated_product_that_is_used_twice_is_rounded_once() -> None:
    """The result has the bits of NumPy, although multiply-adds would round only the sums."""
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
    expected = np.roll(u0, -1, 0) + 3 * np.roll(u0, 1, 0) + 5 * np.roll(u0, -1, 1) + 7 * np.roll(u0, 1, 1)
    assert np.array_equal(sim[v], expected)


@pytest.mark.parametrize(
    ("other", "count"),
    [("shared", 2), ("its own", 3), ("beyond the halo", 3)],
)
def test_stages_that_share_most_of_their_values_have_one_nest(other: str, count: int) -> None:
    """A stage with a smaller extent has a nest of its own if a joint nest would read more."""
    grid, (u, v, w) = periodic("uvw")

    def narrow_value(common: Any) -> Any:
        if other == "shared":
            return common + 5.0
        return common * w if other == "beyond the halo" else w * w + 5.0

    @hc.program
    def program() -> None:
        common = u * u + u * 3.0 + u[1, 0] * u
        wide = hc.stage(common * 2.0, "wide", storage="patch")
        narrow = hc.stage(narrow_value(common), "narrow", storage="patch")
        v.set(wide[2, 0] + wide[0, 1] + narrow[0, 1] + narrow)

    (arrangement,) = arranged(program.trace(), grid).nests.values()
    assert sum(isinstance(statement, Nest) for statement in arrangement.kernel.body) == count
    sim = hc.Simulation(grid, program, patch=2)
    u0, w0 = start(grid.shape, 1), start(grid.shape, 2)
    sim[u], sim[w] = u0, w0
    sim.run()
    common = u0 * u0 + u0 * 3 + np.roll(u0, -1, 0) * u0
    wide = common * 2
    narrow = {"shared": common + 5, "its own": w0 * w0 + 5, "beyond the halo": common * w0}[other]
    expected = np.roll(wide, -2, 0) + np.roll(wide, -1, 1) + np.roll(narrow, -1, 1) + narrow
    assert np.array_equal(sim[v], expected)


def test_stages_with_different_extents_share_one_nest() -> None:
    """A joint nest extends the stage that both read, but no field."""
    grid, (u, v, w) = periodic("uvw")

    @hc.program
    def program() -> None:
        # a flux reads its sides, and some of their components are needed for one flux only
        base = hc.stage(u * u + w, "base", storage="patch")
        other = hc.stage((w + 2.0) * (w + 5.0), "other", storage="patch")
        common = base * base + base * 3.0 + base[-1, 0] * base
        first = hc.stage(common * 2.0, "first", storage="patch")
        second = hc.stage(common * 3.0 + other, "second", storage="patch")
        v.set(first[1, 0] + first + second[0, 1] + second)

    (arrangement,) = arranged(program.trace(), grid).nests.values()
    extents = {s.array.partition(".")[0]: nest.extent for nest in arrangement.kernel.body for s in nest.body}
    assert extents["first"] == extents["second"] == ((0, 1), (0, 1))
    assert extents["other"] == ((0, 1), (0, 1))  # a separate nest would have ((0, 0), (0, 1))
    sim = hc.Simulation(grid, program, patch=3)
    u0, w0 = start(grid.shape, 1), start(grid.shape, 2)
    sim[u], sim[w] = u0, w0
    sim.run()
    base0 = u0 * u0 + w0
    common0 = base0 * base0 + base0 * 3.0 + np.roll(base0, 1, 0) * base0
    first0, second0 = common0 * 2.0, common0 * 3.0 + (w0 + 2.0) * (w0 + 5.0)
    expected = np.roll(first0, -1, 0) + first0 + np.roll(second0, -1, 1) + second0
    np.testing.assert_allclose(sim[v], expected, rtol=1e-14)


def test_stages_are_not_joined_if_their_reads_cost_too_much() -> None:
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
        # the program reads both fields at this distance in any case
        sides = u[2, 2] + u[-2, -2] + u[2, -2] + u[-2, 2] + w[2, 2] + w[-2, -2] + w[2, -2] + w[-2, 2]
        v.set(along[2, 0] + along[-2, 0] + across[0, 2] + across[0, -2] + sides)

    (arrangement,) = arranged(program.trace(), grid).nests.values()
    extents = {s.array.partition(".")[0]: nest.extent for nest in arrangement.kernel.body for s in nest.body}
    assert extents["base"] == extents["across"] == ((0, 0), (2, 2))


def test_comparisons_grow_quadratically_with_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons: list[int] = []
    together = nests_pass._Joining._joined
    counting = lambda self, *pair: comparisons.append(1) or together(self, *pair)  # noqa: E731
    monkeypatch.setattr(nests_pass._Joining, "_joined", counting)
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

        comparisons.clear()
        arranged(program.trace(), grid)
        return len(comparisons)

    assert compared(20) < 5 * compared(10)
