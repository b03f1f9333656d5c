"""Large right-hand sides are computed group by group, with the same bits as in one loop."""

from __future__ import annotations

import numpy as np
import pytest

import halocline as hc
from halocline.compile.contract import contract
from halocline.compile.split import LOADS, split
from halocline.lang import trace
from halocline.lang.expression import Expr, walk
from halocline.physics.mhd import MHD


def arrays_of(value: Expr) -> set[str]:
    return {leaf.attribute[0].name for leaf in walk((value,)) if leaf.op == "read"}


def test_groups_are_the_differences_of_one_array_each():
    mhd = MHD(hc.Grid((8, 8, 8), periodic=True))
    with trace.order(6):
        roots = contract(list(mhd.equations().values()))
    groups = split(roots)
    assert sorted(arrays_of(group[0]).pop() for group in groups) == sorted(f.name for f in mhd.fields)
    for group in groups:
        assert {name for value in group for name in arrays_of(value)} == arrays_of(group[0])
        assert all(sum(leaf.op == "read" for leaf in walk((value,))) > 1 for value in group)
    # what is left reads each array at the cell itself at most
    kept = frozenset(id(value) for group in groups for value in group)
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
    assert len(split([many * hc.derivative(v, "x")])) == 2


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
