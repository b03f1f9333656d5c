"""Sections of a grid: cuts, and expressions on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.errors import InputError
from halocline.io.section import cut
from halocline.run.ranks.mpi import world

Array = NDArray[np.float64]

# -- sections and arrays -------------------------------------------------------------------------------------


def numbered(shape: tuple[int, ...]) -> tuple[hc.Simulation, Any, Array]:
    """Return a simulation whose field has a different number in each cell."""
    grid = hc.Grid(shape, extent=tuple(map(float, shape)), origin=tuple(-n / 2 for n in shape), periodic=True)
    f = grid.field("f")
    sim = hc.Simulation(grid, lambda f: {f: 0.0 * f}, scheme=hc.Euler(), dt=1.0, threads=1)
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    sim[f] = values
    return sim, f, values


@pytest.mark.ranks(2)
def test_a_cut_fixes_some_axes() -> None:
    sim, f, values = numbered((6, 5))
    solid, g, whole = numbered((6, 5, 4))
    for actual, expected, axes, at in (
        (cut(sim, f, {"y": 1.2}), values[:, 3], ("x",), (("y", 1.0),)),
        (cut(sim, 2.0 * f, {"x": 0.0}), 2.0 * values[2], ("y",), (("x", -0.5),)),  # the lower cell of two
        (cut(solid, g, {"z": 1.4, "x": None}), whole[2, :, 3], ("y",), (("x", -0.5), ("z", 1.5))),
        (
            cut(solid, g, {"y": -2.0}),
            whole[:, 0],
            ("x", "z"),
            (("y", -2.0),),
        ),
    ):
        if world().rank:
            assert actual is None
            continue
        assert actual is not None
        assert np.array_equal(actual.values, expected)
        assert (actual.axes, actual.at) == (axes, at)


def test_invalid_cuts_are_rejected() -> None:
    sim, f, _ = numbered((6, 5))
    for at, words in (
        ({"z": 0.0}, "axis 'z' is unknown; expected 0, 1 or 'x', 'y'"),
        ({"x": 0.0, "y": 0.0}, "a section keeps one or two axes"),
        ({"y": 99.0}, "axis y has points from -2 to 2"),
    ):
        with pytest.raises(InputError, match=words):
            cut(sim, f, at)
    with pytest.raises(InputError, match="a section keeps one or two axes, but 0 of 3 axes are cut"):
        cut(*numbered((4, 4, 4))[:2], {})


@pytest.mark.ranks(2)
def test_an_expression_is_gathered() -> None:
    sim, f, values = numbered((6, 5))
    before = set(sim.grid.fields)
    for _ in range(2):
        result = sim.gather(f[1, 0] - 2.0 * f)
        if result is not None:
            assert np.array_equal(result, np.roll(values, -1, 0) - 2.0 * values)
        assert (result is None) == (world().rank > 0)
    sim[f] = 3.0  # takes effect at once
    result = sim.gather(f**2)
    assert result is None or np.array_equal(result, np.full((6, 5), 9.0))
    assert set(sim.grid.fields) == before
    other = hc.Grid((4,), periodic=True)
    for expression, words in (
        (2.0, "expected a field of"),
        (other.field("g") + 1.0, "expected a field of"),
        ("g", "'g' is unknown"),
    ):
        with pytest.raises(InputError, match=words):
            sim.gather(expression)


# -- from the command, and from Python -----------------------------------------------------------------------


def test_a_section_is_limited_to_part_of_an_axis() -> None:
    sim, f, values = numbered((6, 5))
    whole = cut(sim, f)
    assert whole is not None
    part = whole.within("x", -1.0, 2.0)
    np.testing.assert_array_equal(part.values, values[2:5])
    np.testing.assert_array_equal(part.coordinates[0], [-0.5, 0.5, 1.5])
    assert part.span == ((-1.0, 2.0), (-2.5, 2.5))
    np.testing.assert_array_equal(whole.within("y", -3.0, 0.0).values, values[:, :3])
