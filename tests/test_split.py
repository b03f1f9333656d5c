"""Large right-hand sides are computed group by group, with the same bits as in one loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import halocline as hc
from halocline.compile.contract import contract
from halocline.compile.split import LOADS, ROWS, split
from halocline.lang import trace
from halocline.lang.expression import Expr, walk
from halocline.physics.mhd import MHD


def arrays_of(*values: Expr) -> set[str]:
    return {leaf.attribute[0].name for leaf in walk(values) if leaf.op == "read"}


def test_groups_are_the_differences_of_one_array_each():
    mhd = MHD(hc.Grid((8, 8, 8), periodic=True))
    with trace.order(6):
        roots = contract(list(mhd.equations().values()))
    groups = split(roots)
    arrays = [arrays_of(*group) for group in groups]
    assert all(len(names) == 1 for names in arrays)
    in_turn = [next(iter(names)) for names, _ in itertools.groupby(arrays)]
    assert sorted(in_turn) == sorted(f.name for f in mhd.fields)  # one array after another
    assert all(sum(leaf.op == "read" for leaf in walk((value,))) > 1 for group in groups for value in group)


def test_a_loop_reads_along_few_rows_and_the_last_reads_each_array_at_the_cell():
    mhd = MHD(hc.Grid((8, 8, 8), periodic=True))
    with trace.order(6):
        roots = contract(list(mhd.equations().values()))
    groups = split(roots)
    kept: frozenset[int] = frozenset()
    for group in groups:
        read = [leaf.attribute[2][:2] for leaf in walk(group, kept) if leaf.op == "read"]
        assert len(set(read)) <= ROWS + 1  # and that of the cell itself
        kept |= {id(value) for value in group}
    # no value is kept that is as quickly made of others that are
    values = {id(value): value for group in groups for value in group}
    assert not any(value.args and all(id(arg) in values for arg in value.args) for value in values.values())
    left = [leaf for leaf in walk(roots, kept) if leaf.op == "read"]
    assert {leaf.attribute[2] for leaf in left} == {(0, 0, 0)}


def test_what_fits_one_loop_is_not_split():
    grid = hc.Grid((8, 8, 8), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    assert split([hc.laplacian(u, order=8) + hc.laplacian(v, order=8)]) == []
    # much is read, but of one array: nothing would be left to combine
    many = sum((u[i, j, k] * (i + 2.0) for i in range(5) for j in range(5) for k in range(5)), hc.exp(u))
    assert sum(leaf.op == "read" for leaf in walk((many,))) > LOADS
    assert split([many]) == []
    assert len(split([many * hc.derivative(v, "x")])) == 3 + 1  # by direction, and of v


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_as_in_one_loop(monkeypatch: pytest.MonkeyPatch, dtype: str, streaming: bool):
    """Rows longer than a piece, staggered points, a stage, a wall, sums and a sine of far angles too."""
    monkeypatch.setattr("halocline.run.prepared.exceeds_cache", lambda *_: streaming)
    monkeypatch.setattr("halocline.compile.split.LOADS", 12)

    def results(*, grouped: bool) -> list[str]:
        grid = hc.Grid((7, 150), extent=(0.7, 15.0), periodic=(True, False))
        walls = hc.Symmetric()
        u, v, w, n = (grid.field(name, dtype=dtype, boundary=walls) for name in "uvwn")
        f = grid.field("f", location="face-x", dtype=dtype, boundary=walls)

        @hc.program
        def change(u, v, w, n, f, total):
            slope = hc.stage(hc.derivative(u, 0) * hc.laplacian(v) + hc.laplacian(f), "slope")
            u.set(
                u + 1e-3 * (hc.mixed(u, 0, 1) * hc.laplacian(w) + hc.derivative(slope, 1) + hc.sin(1e6 * v))
            )
            n.set(1e-3 * hc.laplacian(w) * hc.derivative(v, 0) - hc.exp(1e-2 * hc.derivative(u, 1)))
            f.set(f + 1e-3 * hc.derivative(v, 1) * hc.laplacian(f))
            total.set(hc.sum(hc.derivative(w, 0) * hc.laplacian(u) + hc.derivative(v, 1)))

        @hc.program
        def step(u, v, w, n, f):
            change.function(u, v, w, n, f, hc.scalar("total"))

        sim = hc.Simulation(grid, step, order=6, threads=1, patch=(7, 100))
        assert ("kept0[" in sim.schedule.source) == grouped
        draw = np.random.default_rng(2)
        for field in (u, v, w, n, f):
            sim[field] = draw.random(field.points)
        outcome = sim.run(steps=1)
        return [*(sim.checksum(field) for field in (u, n, f)), outcome.scalars["total"].hex()]

    grouped = results(grouped=True)
    monkeypatch.setattr("halocline.compile.emit.split", lambda roots: [])
    assert results(grouped=False) == grouped


def test_the_same_bits_direction_by_direction(monkeypatch: pytest.MonkeyPatch):
    """In space, with rows longer than a piece."""

    def results(*, grouped: bool) -> list[str]:
        grid = hc.Grid((7, 6, 70), extent=(0.7, 0.6, 7.0), periodic=True)
        u, v = grid.vector("u"), grid.vector("v")

        @hc.program
        def change(u, v):
            twisted = hc.cross(hc.curl(u), hc.laplacian(u) + hc.grad_div(u))
            for component, curl in zip(v, twisted, strict=True):
                component.set(curl * hc.div(u))

        sim = hc.Simulation(grid, change, order=6, threads=1)
        loops = 2 * (3 + 3 + 2 + 1)  # for both kernels; u_z has no difference across x and y
        source = sim.schedule.source
        assert (source.count("#pragma omp simd") + source.count("int64_t lanes") == loops) == grouped
        draw = np.random.default_rng(3)
        for component in u:
            sim[component] = draw.random(grid.shape)
        sim.run(steps=1)
        return [sim.checksum(component) for component in v]

    grouped = results(grouped=True)
    monkeypatch.setattr("halocline.compile.emit.split", lambda roots: [])
    assert results(grouped=False) == grouped
