"""Sweeps as loop nests: their reads, and the kernel that computes them in the halo."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.ir.statements import Nest, Store
from halocline.compile.ir.verify import verify
from halocline.compile.lower import lower, sweeps
from halocline.compile.sweep import SweepNests, build, in_halo
from halocline.errors import InputError


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


def test_a_stored_stage_has_a_nest_before_its_readers() -> None:
    _, nests = built()
    verify(nests.kernel)
    stored = [[s.array for s in nest.body if isinstance(s, Store)] for nest in nests.kernel.body]
    assert len(stored) >= 2
    assert [name.partition(".")[0] for name in stored[0]] == ["flux"]
    assert {name for names in stored[1:] for name in names} == {"u", "v"}


def test_the_halo_kernel_stores_only_fields() -> None:
    """The kernel recomputes stages at each read."""
    _, nests = built()
    kernel = in_halo(nests.staged, {"u"})
    (nest,) = kernel.body
    assert isinstance(nest, Nest)
    assert [s.array for s in nest.body] == ["u"]
    assert kernel.beyond
    assert {name for name, _ in kernel.loads([s.value for s in nest.body])} == {"u"}


@pytest.mark.parametrize("shape", [(8, 8), (8, 9), (8,)], ids=str)  # an equal grid is another grid too
@pytest.mark.parametrize(
    ("value", "name"),
    [
        (lambda u: hc.sum(u), "field 'u'"),
        (lambda u: hc.max(hc.shift(u, "x", 1) * 2.0), "field 'u'"),
        (lambda u: hc.norm(hc.stage(u * u, "flux")), "stage 'flux'"),
        (lambda u: hc.sum(hc.stage(u * u, "flux", storage="array")), "field 'flux'"),
        (lambda u: hc.value(u, at=(1,) * u.grid.ndim), "field 'u'"),
        (lambda u: 1.0 - hc.sum(u.grid.x), "coordinates"),
    ],
)
def test_a_reduction_over_another_grid_is_an_error(shape: tuple[int, ...], value: Any, name: str) -> None:
    """The error prevents a read of the field with the same name on the grid of the program."""
    grid, other = hc.Grid((8, 8), periodic=True), hc.Grid(shape, periodic=True)
    fields, foreign = ({n: g.field(n) for n in ("u", "flux")} for g in (grid, other))

    def program(s: hc.Scalar) -> None:
        s.set(value(foreign["u"]))
        fields["u"].set(fields["u"] + s)

    def stops() -> None:
        hc.stop(value(foreign["u"]) > 1.0, "far enough")
        fields["u"].set(1.0)

    for function in (lambda: program(hc.Scalar("s")), stops):
        with pytest.raises(InputError, match=rf"(reads {name}|sets field .*) of another grid, Grid\("):
            compile_program(hc.program(function).trace(), grid)
