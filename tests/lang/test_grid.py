"""Grids, fields and the values that fields are set to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang.dtype import using_dtype
from small_programs import keep, run, square


def solved() -> hc.Grid:
    grid = hc.Grid(4)
    hc.solve(lambda u: -hc.laplacian(u), grid.field("u", boundary=hc.Value(0.0)), 1.0)
    return grid


# --- grids and fields ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hc.Grid((0, 4)), r"shape \(0, 4\): axis x has 0 cells; at least 1 is needed"),
        (lambda: hc.Grid((4, -1)), r"axis y has -1 cells"),
        (lambda: hc.Grid((4, 2.5)), r"axis y has 2.5 cells; expected a whole number"),
        (lambda: hc.Grid((4, True)), r"axis y has True cells; expected a whole number"),
        (lambda: hc.Grid((2, 2, 2, 2)), r"has 4 axes; a grid has 1, 2 or 3"),
        (
            lambda: hc.Grid((4, 4), (1.0, 2.0, 3.0)),
            r"extent \(1.0, 2.0, 3.0\) has 3 entries for a grid of 2 axes",
        ),
        (
            lambda: hc.Grid((4, 4), (1.0, 0.0)),
            r"extent .*: axis y has length 0.0; expected a positive number",
        ),
        (lambda: hc.Grid(4, math.inf), r"axis x has length inf; expected a positive number"),
        (
            lambda: hc.Grid(4, "wide"),
            r"extent 'wide': axis x has 'wide'; expected a number: one for all axes",
        ),
        (lambda: hc.Grid(4, walls="edge"), r"walls 'edge': axis x has 'edge'; expected 'face' or 'node'"),
        (lambda: hc.Grid((4, 4), walls=("face", 3)), r"walls .*: axis y has 3; expected 'face' or 'node'"),
        (lambda: hc.Grid((4, 4), walls=("face",)), r"walls \('face',\) has 1 entries for a grid of 2 axes"),
        (
            lambda: square()[0].field("u"),
            r"the grid already has a field named 'u'; names are unique on a grid$",
        ),
        (
            lambda: solved().field("r"),
            r"already has a field named 'r'; .* a solver or stage has already used this one. Create",
        ),
        (lambda: square()[0].field("_statistic_T"), r"names that begin with '_statistic_' are reserved"),
        (lambda: square()[0].field("a b"), r"field name 'a b' is not an identifier such as 'T' or 'rho_1'"),
        (
            lambda: square()[0].field("w", dtype="int8"),
            r"field 'w': dtype 'int8' is unknown; expected one of float64, float32",
        ),
        (
            lambda: square()[0].field("w", location="face-z"),
            r"location 'face-z' names an axis that a grid of 2 axes lacks",
        ),
        (
            lambda: square()[0].field("w", location="corner"),
            r"location 'corner' is unknown; expected one of cell, node, face-x",
        ),
        (lambda: square()[0].vector("w", components=4), r"vector 'w': 4 components; expected 1 to 3"),
        (lambda: square()[0].vector("w", boundary=[None]), r"need one entry per component \(2\)"),
    ],
)
def test_invalid_grids_and_fields_are_rejected(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_fields_default_to_the_dtype_of_their_grid() -> None:
    grid = hc.Grid(8, dtype=np.float32)
    assert (grid.dtype, grid.field("u").dtype, grid.field("v", dtype="float64").dtype) == (
        "float32", "float32", "float64",
    )  # fmt: skip
    assert all(f.dtype == "float32" for f in grid.vector("w", components=2))
    assert "dtype='float32'" in repr(grid)
    with pytest.raises(
        InputError, match="grid: dtype 'float16' is unknown; expected one of float64, float32"
    ):
        hc.Grid(8, dtype="float16")


def test_grids_default_to_the_current_dtype() -> None:
    with using_dtype("float32"):
        assert hc.Grid(8).dtype == "float32"
        assert hc.Grid(8, dtype="float64").dtype == "float64"
        with using_dtype(None):
            assert hc.Grid(8).dtype == "float64"
    assert hc.Grid(8).dtype == "float64"


def test_dtypes_may_be_numpy_types() -> None:
    grid = hc.Grid(4)
    assert grid.field("a", dtype=np.float32).dtype == "float32"
    assert grid.field("b", dtype=np.dtype("float64")).dtype == "float64"


# --- equations ---


def test_a_field_of_another_grid_is_reported() -> None:
    grid, _, _ = square()
    stranger = hc.Grid((8, 6), periodic=True).field("w")

    def reads(u: Any) -> None:
        u.set(u + stranger)

    def sets(u: Any) -> None:
        stranger.set(u)

    with pytest.raises(
        InputError, match=r"an expression mixes fields of two grids.*Create all fields of one"
    ):
        hc.Simulation(grid, hc.program(reads))
    with pytest.raises(InputError, match=r"field 'w' on .* is set to an expression of another grid"):
        hc.Simulation(grid, hc.program(sets))

    def keeps(u: Any) -> None:
        u.set(u * 1.5)

    sim = hc.Simulation(grid, hc.program(keeps))
    with pytest.raises(InputError, match="field 'w' belongs to another grid"):
        sim[stranger] = 1.0


# --- values of fields ---


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((6, 8)), r"field 'u' has shape \(8, 6\), but the array given for it has shape \(6, 8\)"),
        (np.zeros(8), r"but the array given for it has shape \(8,\)"),
        (
            np.zeros((8, 6), dtype=complex),
            r"field 'u' is given an array of dtype complex128; expected real numbers",
        ),
        (np.full((8, 6), "x"), r"field 'u' is given an array of dtype <U1; expected real numbers"),
        (lambda x: x, r"the function given for field 'u' takes 1 argument without a default; expected the 2"),
        (lambda x, y, z, *more: x, r"takes 3 arguments without a default; expected the 2 coordinates"),
    ],
)
def test_unsuitable_values_of_a_field_are_rejected(value: Any, message: str) -> None:
    grid, u, _ = square()
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=message):
        sim[u] = value


def test_a_function_may_accept_all_coordinates_as_one_argument() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    sim[u] = lambda *points: points[0] + 2 * points[1]
    sim[v] = lambda x, *more, scale=2, **options: x + scale * more[0]
    assert sim.checksum(u) == sim.checksum(v)


def test_fields_are_set_by_numbers_arrays_expressions_and_functions() -> None:
    grid, u, v = square()
    sim = hc.Simulation(grid, hc.program(keep))
    x, y = np.meshgrid((np.arange(8) + 0.5) / 8, (np.arange(6) + 0.5) / 6, indexing="ij")
    for value, want in [
        (2, np.full((8, 6), 2.0)),
        (np.arange(48).reshape(8, 6), np.arange(48.0).reshape(8, 6)),
        (np.float32(0.5), np.full((8, 6), 0.5)),
        (grid.x + 2.0 * grid.y, x + 2 * y),
        (lambda x, y: x * y, x * y),
        (lambda x, y: 7, np.full((8, 6), 7.0)),
    ]:
        sim[u] = value
        np.testing.assert_allclose(sim[u], want, rtol=1e-15)
    sim["v"] = u * 2.0  # current values of another field
    np.testing.assert_array_equal(sim["v"], np.full((8, 6), 14.0))
    sim[v][...] = 1.0  # a view
    assert sim.evaluate(hc.sum(v)) == 48.0


def test_unknown_fields_are_reported() -> None:
    grid, u, _ = square()
    grid.field("w")
    A = grid.vector("A")
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=r"field 'U' is unknown.*; known: A, A_x, A_y, u, v, w"):
        sim["U"] = 1.0
    with pytest.raises(InputError, match=r"2.0 is not a field; expected a field of Grid\(.* or its name"):
        sim[2.0] = 1.0  # type: ignore[index]
    sim[A] = 1.0
    assert sim.evaluate(hc.sum(A)) == (48.0, 48.0)
    with pytest.raises(InputError, match=r"varies from cell to cell. Reduce it with hc.sum"):
        sim.evaluate(u + 1.0)


# --- coordinates, places, reductions ---


def test_coordinates_are_periodic_around_a_periodic_axis() -> None:
    """The neighbour of the last cell is the first, with its coordinate, wherever the value is formed."""
    grid = hc.Grid((6, 4), periodic=(True, False))
    u, a, b, c = (grid.field(n, boundary=hc.Value(lambda x, y: x)) for n in "uabc")

    def program() -> None:
        u.set(grid.x)
        a.set(u[1, 0])
        b.set((2.0 * grid.x)[-1, 0])
        s = hc.stage(hc.exp(grid.x), storage="patch")
        c.set(s[2, 0] - s)

    sim = run(grid, program, {})
    x = np.repeat((np.arange(6) + 0.5)[:, None] / 6, 4, axis=1)
    np.testing.assert_allclose(sim[a], np.roll(x, -1, 0), rtol=1e-15)
    np.testing.assert_allclose(sim[b], 2 * np.roll(x, 1, 0), rtol=1e-15)
    np.testing.assert_allclose(sim[c], np.roll(np.exp(x), -2, 0) - np.exp(x), rtol=1e-14, atol=1e-15)


def test_points_have_the_coordinates_of_their_location() -> None:
    for walls, first, h in (
        ("face", (0.5, 0.5), (0.25, 0.4)),
        ("node", (1.0, 1.0), (0.2, 2 / 6)),
        (("face", "node"), (0.5, 1.0), (0.25, 2 / 6)),
    ):
        grid = hc.Grid((4, 5), (1.0, 2.0), origin=(-1.0, 3.0), walls=walls)
        assert grid.spacing == pytest.approx(h)
        locations = {
            "cell": (0, 0),
            "node": (1, 1),
            "face-x": (1, 0),
            "face-y": (0, 1),
            "edge-x": (0, 1),
            "edge-z": (1, 1),
        }
        fields_of_locations = {
            loc: (grid.field(f"x{n}", location=loc), grid.field(f"y{n}", location=loc))
            for n, loc in enumerate(locations)
        }

        def program() -> None:
            for pair in fields_of_locations.values():  # noqa: B023
                for f, coordinate in zip(pair, pair[0].coordinates, strict=True):
                    f.set(coordinate)

        sim = run(grid, program, {})
        for location, staggered in locations.items():
            x, y = (
                o + (np.arange(n + s) + inset - 0.5 * s) * d
                for o, n, s, inset, d in zip((-1.0, 3.0), (4, 5), staggered, first, h, strict=True)
            )
            have = [np.array(sim[f]) for f in fields_of_locations[location]]
            np.testing.assert_allclose(have[0], np.repeat(x[:, None], len(y), 1), rtol=1e-14)
            np.testing.assert_allclose(have[1], np.repeat(y[None], len(x), 0), rtol=1e-14)
