"""Sweeps as loop nests: what they read, and the kernel that computes them in the halo."""

from __future__ import annotations

from typing import Any

import halocline as hc
from halocline.compile.ir.statements import Nest, Store
from halocline.compile.ir.verify import verify
from halocline.compile.lower import lower, sweeps
from halocline.compile.sweep import SweepNests, build, in_halo


def built() -> tuple[list[hc.Field], SweepNests]:
    """Return the fields and nests of a sweep with a stage that is read around a cell."""
    grid = hc.Grid((8, 8), periodic=True)
    fields = [grid.field("u"), grid.field("v", location="face-x")]

    def program(u: Any, v: Any) -> None:
        flux = hc.stage(u[1, 0] - u[-1, 0], "flux", storage="patch")
        hc.assign({u: flux[0, 1] - flux[0, -1], v: 2.0 * v})

    (sweep,) = sweeps(lower(hc.program(program).trace(*fields)))
    return fields, build(sweep, grid)


def test_fields_are_read_through_stages() -> None:
    (u, v), nests = built()
    around = {(x, y) for x in (-1, 1) for y in (-1, 1)}
    assert nests.offsets(u) == around
    assert nests.offsets(v) == {(0, 0)}
    assert nests.per_field == {u: {u: frozenset(around)}, v: {v: frozenset({(0, 0)})}}
    assert nests.offsets(hc.Grid((4, 4)).field("w")) == frozenset()


def test_a_kept_stage_has_a_nest_before_those_that_read_it() -> None:
    _, nests = built()
    verify(nests.kernel)
    stored = [[s.array for s in nest.body if isinstance(s, Store)] for nest in nests.kernel.body]
    assert len(stored) >= 2
    assert [name.partition(".")[0] for name in stored[0]] == ["flux"]
    assert {name for names in stored[1:] for name in names} == {"u", "v"}


def test_the_kernel_of_the_halo_stores_fields_alone() -> None:
    """Stages are computed anew where they are read."""
    _, nests = built()
    kernel = in_halo(nests.staged, {"u"})
    (nest,) = kernel.body
    assert isinstance(nest, Nest)
    assert [s.array for s in nest.body] == ["u"]
    assert kernel.beyond
    assert {name for name, _ in kernel.loads([s.value for s in nest.body])} == {"u"}
