"""Ghost formulas that read along a wall.

They agree with their definition cell by cell, and keep a magnetic field free of divergence in the ghost
cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.walls import around, fills_of, independent_groups, ordered, walls
from halocline.errors import InputError
from halocline.lang.boundary import Ghost
from halocline.run.ranks.mpi import world
from loops import some
from random_walls import (
    DT,
    EXTENT,
    FIELDS,
    SIDES,
    Array,
    Case,
    Point,
    Term,
    check_plans,
    check_random_cases,
    expected_fields,
    faces,
    forward_difference,
    induction,
    simulated_fields,
    solenoidal,
    unit,
)

# --- plans: every fill has its operands ---


def test_the_operands_of_ghosts_are_valid_before_their_fill() -> None:
    """Each cell that a formula reads is filled first, in random programs on random decompositions."""
    assert check_random_cases(range(40)) > 10


def test_ghosts_do_not_wait_for_rows_that_kernels_wrap_around() -> None:
    """Without corners the kernel could fill the ends of rows itself, but only after the ghosts."""
    walls = dict.fromkeys(SIDES[:2], (Term(1, 0, 0, (1,)), Term(2, 0, 0, (-1,))))
    offsets = ((1, 0), (-1, 0), (0, 1), (0, -1))
    for parts in ((1, 1), (2, 1), (1, 2)):
        assert check_plans(Case((8, 8), (False, True), ("cell",), (walls,), (offsets,)), parts, 3)


# --- runs ---


def tangential(n: int, s: int) -> tuple[Term, ...]:
    """Return terms that read the field itself inward, and along the wall from both sides."""
    return Term(1, n, 0, (s,)), Term(2, n, 1, (-s,)), Term(1, 1 - n, 0, (0,))


# reads beyond a neighbour and past walls, corners formed beyond x last, and a periodic last axis
RUNS = (
    Case(
        (11, 12),
        (False, False),
        ("cell", "face-y"),
        (
            {side: tangential(0, 1) if side[0] == "x" else (Term(1, 0, 0, (0,)),) for side in SIDES[:4]},
            dict.fromkeys(SIDES[:2], (Term(1, 0, 0, (-1,)), Term(2, 0, 0, (0,)), Term(1, 1, 1, (2,))))
            | dict.fromkeys(SIDES[2:4], (Term(2, 1, 0, (0,)),)),
        ),
        (((1, 1), (-1, 0), (-1, -1)), ((1, 0), (-1, 1), (0, -1))),
    ),
    Case(
        (12, 11),
        (False, True),
        ("cell", "face-x"),
        (dict.fromkeys(SIDES[:2], tangential(0, 2)), dict.fromkeys(SIDES[:2], tangential(1, 1))),
        (((1, 0), (0, 1)), ((-1, 0), (1, 1))),
    ),
    Case(
        (8, 9, 8),
        (False, True, False),
        ("cell", "face-z"),
        (
            dict.fromkeys(SIDES[:2], (Term(1, 0, 0, (1, 0)), Term(1, 1, 0, (0, -1))))
            | dict.fromkeys(SIDES[4:], (Term(2, 0, 0, (0, 1)),)),
            dict.fromkeys(SIDES[:2], (Term(1, 1, 1, (-1, 0)),))
            | dict.fromkeys(SIDES[4:], (Term(1, 1, 0, (0, 1)),)),
        ),
        (((1, 1, 0), (-1, 0, 1)), ((1, 0, -1), (-1, -1, 0))),
    ),
)
WAYS: tuple[dict[str, Any], ...] = (
    {"patch": 3, "threads": 2},
    {"decomposition": "1d-x"},
    {"decomposition": "1d-y", "patch": 2, "overlap": False},
    {"subdomains_per_rank": 2, "methods": "self,mpi"},
)


@pytest.mark.ranks(1, 2, 4, long=(1, 4))
def test_ghosts_have_the_values_of_their_definition() -> None:
    for case in RUNS:
        expected = expected_fields(case, 2)
        for way in WAYS:
            if way.get("subdomains_per_rank") and world().size == 4 and case.ndim == 2:
                way = {"decomposition": (2, 2)}  # the subdomains would be too thin
            for values, right in some(zip(simulated_fields(case, **way), expected, strict=True)):
                assert np.array_equal(values, right), (case, way)


@pytest.mark.usefixtures("opencl")
def test_ghosts_on_devices_have_the_values_of_their_definition() -> None:
    for case in some(RUNS[::2]):
        for way in ({"device": "opencl:0,1"},):
            for values, right in some(
                zip(simulated_fields(case, **way), expected_fields(case, 2), strict=True)
            ):
                assert np.array_equal(values, right), (case, way)


# --- a magnetic field on faces, without divergence beyond walls ---


def padded(B: Sequence[Array], shape: Point, periodic: tuple[bool, ...]) -> list[Array]:
    """Return the components with a layer of ghosts, formed axis by axis."""
    ndim = len(shape)
    h = [e / n for e, n in zip(EXTENT, shape, strict=False)]
    components = list(B)
    for axis in range(ndim):
        before = list(components)
        width = [(int(d == axis), int(d == axis)) for d in range(ndim)]
        for d in range(ndim):
            if periodic[axis]:
                components[d] = np.pad(before[d], width, mode="wrap")
            elif d != axis:
                components[d] = np.pad(before[d], width, mode="symmetric")
        if periodic[axis]:
            continue
        ends = []
        for end in (0, -1):
            ghost = np.take(before[axis], [end], axis)
            for d in range(ndim):
                if d != axis:
                    layer = np.take(before[d], [end], axis)
                    # ghosts of lower axes are valid; a periodic axis lacks its upper face
                    if periodic[d] and d < axis:
                        flux = np.roll(layer, -1, d) - layer
                        flux = np.take(flux, [shape[d], *range(1, shape[d] + 1), 1], d)
                    else:
                        flux = forward_difference(layer, d, periodic)
                    ghost = ghost + (1 if end == 0 else -1) * h[axis] * flux / h[d]
            ends.append(ghost)
        components[axis] = np.concatenate([ends[0], before[axis], ends[1]], axis=axis)
    return components


def transported(shape: Point, periodic: tuple[bool, ...], steps: int) -> list[Array]:
    """Return the field after the given number of steps, computed in NumPy."""
    ndim, B = len(shape), solenoidal(shape, periodic)
    h = [e / n for e, n in zip(EXTENT, shape, strict=False)]
    pairs = {2: [(0, 1)]}.get(ndim, [(1, 2), (2, 0), (0, 1)])
    for _ in range(steps):
        around = padded(B, shape, periodic)

        def at(d: int, offset: Point, points: Point, around: list[Array] = around) -> Array:
            return around[d][tuple(slice(1 + o, 1 + o + n) for o, n in zip(offset, points, strict=True))]

        E, none = [], (0,) * ndim
        for p, q in pairs:
            points = faces(shape, periodic, [p, q])
            mean_p = at(p, none, points) + at(p, unit(ndim, q, -1), points)
            mean_q = at(q, none, points) + at(q, unit(ndim, p, -1), points)
            slope = at(p, unit(ndim, p), points) - at(p, unit(ndim, p, -1), points)
            E.append(0.1 * mean_p * mean_q + 0.3 * slope)
        for e, (p, q) in zip(E, pairs, strict=True):
            B[p] = B[p] - DT * forward_difference(e, q, periodic) / h[q]
            B[q] = B[q] + DT * forward_difference(e, p, periodic) / h[p]
    return B


CUTS: tuple[dict[str, Any], ...] = (
    {"patch": 4, "threads": 2},
    {"decomposition": "1d-x"},
    {"decomposition": "1d-y", "threads": 2, "patch": 3},
    {"subdomains_per_rank": 2, "overlap": False},
)


@pytest.mark.ranks(1, 2, 4, long=(1, 4))
@pytest.mark.parametrize(("shape", "periodic"), FIELDS)
def test_ghosts_of_a_solenoidal_field_have_no_divergence(shape: Point, periodic: tuple[bool, ...]) -> None:
    from mpi4py import MPI

    ndim = len(shape)
    names = [*(f"B{d}" for d in range(ndim)), "seen"]
    checksums = set()
    for cut in CUTS:
        if world().size == 4 and "subdomains_per_rank" in cut:
            continue  # the subdomains would be thinner than the halo
        sim = induction(shape, periodic, **cut)
        checksums.add(tuple(sim.checksum(name) for name in names))
        divergence = sim.gather("seen")
        assert divergence is None or np.abs(divergence).max() < 1e-11, cut
        for d, expected in enumerate(transported(shape, periodic, 3)):
            component = sim.gather(f"B{d}")
            assert component is None or np.allclose(component, expected, rtol=1e-12, atol=1e-12), (cut, d)
    alone = induction(shape, periodic, communicator=MPI.COMM_SELF)
    assert checksums == {tuple(alone.checksum(name) for name in names)}


# --- rejected conditions ---


@pytest.mark.parametrize(
    ("ndim", "read", "message"),
    [
        (1, lambda u: u[0, 1], r"kernel of field 'u' reads \[0, 1\]; in 1D expected \[m\]\. The first index"),
        (2, lambda u: u[0, 1, 1], r"reads \[0, 1, 1\]; in 2D expected \[m\] or \[m, s\]\. The first index"),
        (3, lambda u: u[0, 1], r"reads \[0, 1\]; in 3D expected \[m\] or \[m, s, t\]"),
        (2, lambda u: u[-1, 1], r"reads \[-1\]; expected a whole number from 0"),
        (2, lambda u: u[()], r"reads \[\(\)\]; expected a whole number from 0"),
        (2, lambda u: u[True, 0], r"reads \[True\]; expected a whole number from 0"),
        (2, lambda u: u[0, 0.5], r"reads \[0, 0.5\]; expected whole numbers"),
        (2, lambda u: u[0, 1:2], r"reads \[0, slice\(1, 2, None\)\]; expected whole numbers"),
    ],
)
def test_invalid_reads_of_boundary_kernels_are_rejected(ndim: int, read: Any, message: str) -> None:
    grid = hc.Grid((8,) * ndim)
    u, v = grid.field("u", boundary=hc.BoundaryKernel(read)), grid.field("v")
    with pytest.raises(InputError, match=message):
        compile_program(hc.program(lambda: v.set(u[unit(ndim, 0)])).trace(), grid)


@pytest.mark.parametrize(
    ("ghost", "message"),
    [
        (lambda a, u, w, q: u + 1.0, r"reads field 'u' beyond the wall.*u\[0\] is the first"),
        (lambda a, u, w, q: w + 1.0, r"reads field 'w' beyond the wall.*u\.of\(w\)\[0\] is the first"),
        (lambda a, u, w, q: a[0][-1, 0] + 1.0, "reads field 'u' beyond the wall"),
        (lambda a, u, w, q: a.of(w)[0][-1, 0] + 1.0, "reads field 'w' beyond the wall"),
        (lambda a, u, w, q: a.of(q)[0], "'u' reads field 'q' of another grid; expected a field of the same"),
        (lambda a, u, w, q: q * 1.0, "'u' reads field 'q' of another grid, Grid.* copy the values"),
        (lambda a, u, w, q: a[0] + q, "mixes fields of two grids"),
    ],
)
def test_reads_that_are_not_inward_are_rejected(ghost: Any, message: str) -> None:
    grid = hc.Grid((8, 8))
    u, v, w = grid.field("u"), grid.field("v"), grid.field("w", boundary=hc.Value(0.0))
    q = hc.Grid((8, 8, 8)).field("q")
    u.boundary["x-"] = hc.BoundaryKernel(lambda a: ghost(a, u, w, q))
    with pytest.raises(InputError, match=message):
        compile_program(hc.program(lambda: v.set(u[-1, 0])).trace(), grid)


def test_offsets_in_boundary_kernels_may_be_numpy_integers() -> None:
    u = hc.Grid((8, 8)).field("u")
    whole = hc.BoundaryKernel(lambda u: u[1, -1])
    numpy = hc.BoundaryKernel(lambda u: u[np.int64(1), np.int64(-1)])
    ghosts = [condition.ghost(Ghost(u, 0, -1, 0)) for condition in (whole, numpy)]
    assert ghosts[0] is ghosts[1]


def test_circular_dependences_of_walls_are_reported() -> None:
    grid = hc.Grid((8, 8))
    smooth = hc.BoundaryKernel(lambda u: 0.5 * u[0] + 0.25 * (u[0, -1] + u[0, 1]))
    u = grid.field("u", boundary={"x-": smooth, "y+": smooth, "other": hc.Value(0.0)})
    v = grid.field("v")
    message = (
        r"condition of field 'u' on side 'x-' reads ghosts of field 'u' beyond side 'y\+'\. Those ghosts "
        r"depend on the ghosts of this condition \('u' beyond 'y\+', 'u' beyond 'x-'\)\. "
        r"Read only along the normal \(u\[m\]\) on one of the walls, or make axis x or y periodic"
    )
    with pytest.raises(InputError, match=message):
        compile_program(hc.program(lambda: v.set(u[-1, 0] + u[0, 1])).trace(), grid)


def test_a_boundary_kernel_needs_a_neighbouring_point() -> None:
    """The condition is rejected if it reads in place; with points on both sides, the ends are ghosts."""
    grid = hc.Grid((8, 8))
    p = grid.field("p", boundary=hc.Value(0.0))
    for s, refused in ((0, True), (-1, False)):
        mean = hc.BoundaryKernel(partial(mean_of, p, s))
        w = grid.field(f"w{-s}", location="face-y", boundary=mean)
        v = grid.field(f"v{-s}", location="face-y")
        program = hc.program(lambda v=v, w=w: v.set(w[-1, 0])).trace()
        if refused:
            with pytest.raises(InputError, match=r"'p'\. 'p' has no point next to that of 'w0' at the upper"):
                compile_program(program, grid)
        else:
            compile_program(program, grid)


def mean_of(p: hc.Field, s: int, w: Any) -> Any:
    return 0.5 * (w.of(p)[0, s] + w.of(p)[0, 0])


def test_corners_do_not_depend_on_other_reads_of_a_sweep() -> None:
    """Corners are equal for sweeps that read one or two layers, if the formula differs between the layers."""
    checksums = []
    for deeper in (False, True):
        grid = hc.Grid((6, 6))
        along = hc.BoundaryKernel(lambda u, layer: u[0] * u[0] if layer == 0 else u[0, 1])
        u = grid.field("u", boundary={"x-": along, "other": hc.Value(5.0)})
        a, v = grid.field("a"), grid.field("v")

        @hc.program
        def program(u=u, a=a, v=v, deeper=deeper) -> None:  # type: ignore[no-untyped-def]
            if deeper:
                a.set(u[-2, 0])
            v.set(u[-1, -1] + u[1, 1])

        sim = hc.Simulation(grid, program)
        sim[u] = np.arange(36.0).reshape(6, 6) ** 2
        sim.run()
        checksums.append(sim.checksum(v))
    assert checksums[0] == checksums[1]


# -- groups of ghosts that device kernels compute at the same time ------------------------------------------


def groups(u: hc.Field, points: list[tuple[int, int]]) -> list[list[tuple[str, list[int]]]]:
    """Return the sides and layers in each group of the ghosts that a read at some offsets needs."""
    reads = around(u, frozenset((point, u.staggered) for point in points))
    fills = ordered(fills_of(u, walls(reads), {}))
    return [[(fills[n].name, list(layers)) for n, layers in group] for group in independent_groups(fills)]


def test_ghosts_without_corners_are_one_group() -> None:
    u = hc.Grid((6, 6)).field("u", boundary=hc.Derivative(0.0))
    (group,) = groups(u, [(2, 0), (-2, 0), (0, 1), (0, -1)])
    assert group == [("x-", [0, 1]), ("x+", [0, 1]), ("y-", [0]), ("y+", [0])]


def test_ghosts_at_corners_follow_those_that_they_read() -> None:
    u = hc.Grid((6, 6)).field("u", boundary=hc.Derivative(0.0))
    assert groups(u, [(1, 1), (-1, -1)]) == [[("x-", [0]), ("x+", [0])], [("y-", [0]), ("y+", [0])]]


def test_layers_that_read_along_the_wall_follow_each_other() -> None:
    grid = hc.Grid((6, 6), periodic=(False, True))
    u = grid.field("u", boundary={"x+": hc.BoundaryKernel(lambda inward: inward[0, 1] + inward[1, -1])})
    assert groups(u, [(2, 0)]) == [[("x+", [0])], [("x+", [1])]]
