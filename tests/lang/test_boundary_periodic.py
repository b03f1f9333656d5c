"""Boundary conditions and periodic axes."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

import halocline as hc
from arguments import AXES
from halocline.errors import InputError
from halocline.lang.boundary import SIDES


def test_a_mapping_of_walls_names_no_periodic_axis() -> None:
    periodic = (True, False)
    for walls in ("node", ("node", "node"), {"y": "node"}):
        assert not hc.Grid((4, 4), periodic=periodic, walls=walls).periodic[1]
    with pytest.raises(InputError, match="axis x is periodic, so it has no walls; leave it out"):
        hc.Grid((4, 4), periodic=periodic, walls={"x": "node"})


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_condition_on_a_periodic_axis_is_an_error(ndim: int) -> None:
    attempt_count = 0
    for periodic in itertools.product((False, True), repeat=ndim):
        grid, names = hc.Grid((4,) * ndim, periodic=periodic), iter(f"u{n}" for n in range(1000))
        walls = {side for side in SIDES[: 2 * ndim] if not periodic[AXES.index(side[0])]}
        for kind in (hc.Value(0.0), hc.Derivative(), hc.Extrapolate(2), hc.BoundaryKernel(lambda u: u[0])):
            for side in SIDES[: 2 * ndim]:
                if side in walls:
                    assert set(grid.field(next(names), boundary={side: kind}).boundary) == {side}
                else:
                    with pytest.raises(InputError, match=f"side '{re.escape(side)}' lies on a periodic axis"):
                        grid.field(next(names), boundary={side: kind})
                attempt_count += 1
            for general in (kind, {"other": kind}):
                if walls:
                    assert set(grid.field(next(names), boundary=general).boundary) == walls
                    continue
                with pytest.raises(InputError, match=r"all axes are periodic, so the field cannot have"):
                    grid.field(next(names), boundary=general)
                with pytest.raises(InputError, match=r"all axes are periodic, so the field cannot have"):
                    grid.vector(next(names), boundary=general)
        for general in (hc.Periodic(), {"other": hc.Periodic()}):
            if walls:
                with pytest.raises(InputError, match=r"is periodic, but its axis is not"):
                    grid.field(next(names), boundary=general)
            else:
                assert grid.field(next(names), boundary=general).boundary == {}
    assert attempt_count == 4 * 2 * ndim * 2**ndim


def test_a_stage_in_an_array_needs_no_walls() -> None:
    grid = hc.Grid(4, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(hc.stage(2.0 * u, storage="array")[1])

    assert len(step.trace(u).statements) == 2
