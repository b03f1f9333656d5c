"""Decompositions against published tables, brute force and their specified properties."""

from __future__ import annotations

import json
import tracemalloc
from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halocline.compile.footprint import Footprint
from halocline.errors import InputError
from halocline.plan import Traffic, decompose
from halocline.plan.decompose import STRATEGIES
from suites import cases, examples
from work import lines

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "decompositions.json").read_text())
ROWS = [
    (level, tuple(map(int, grid.split("x"))), int(count), tuple(parts))
    for level in ("node", "device")
    for grid, table in REFERENCE[f"{level}_level"].items()
    if grid != "cost"
    for count, parts in table.items()
]


def published_cost(level, shape, parts, r):
    """Return the printed formulas in exact integers (all sizes of the tables divide)."""
    size = [n // p for n, p in zip(shape, parts, strict=True)]
    with_halo = prod(n + 2 * r for n in size)
    if level == "node":
        return 2 * (with_halo - prod(size))
    return with_halo - prod(n + (r if p >= 2 else 0) for n, p in zip(size, parts, strict=True))


@pytest.mark.parametrize("radius", [1, 2, 3, 4])
@pytest.mark.parametrize(("level", "shape", "count", "parts"), ROWS)
def test_published_tables_are_reproduced(level, shape, count, parts, radius):
    optimal = decompose(shape, count, radius=radius, level=level)
    published = decompose(shape, count, strategy=parts, radius=radius, level=level)
    assert published.cost == published_cost(level, shape, parts, radius)
    assert optimal.cost == published_cost(level, shape, optimal.parts, radius) == published.cost


def test_tables_are_complete():
    assert len(ROWS) == 42


def test_bisection_agrees_with_the_paper():
    (example,) = REFERENCE["recursive_bisection_examples"]
    nodes = decompose(example["domain"], example["nodes"], strategy="bisection")
    assert list(nodes.parts) == example["node_grid"]
    devices = decompose(nodes.box(0).shape, example["devices_per_node"], strategy="bisection", level="device")
    assert list(devices.parts) == example["device_grid"]


def test_morton_interleaves_bits():
    d = decompose((64, 64, 64), 64, strategy="morton")
    assert d.parts == (4, 4, 4)
    for rank in range(64):
        a, b, c, d_, e, f = (rank >> s & 1 for s in (5, 4, 3, 2, 1, 0))
        assert d.coordinates(rank) == (2 * c + f, 2 * b + e, 2 * a + d_)
    cuts = [decompose((64, 64, 64), 2**k, strategy="morton").parts for k in range(5)]
    assert cuts == [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 2, 2)]


@pytest.mark.parametrize(
    ("strategy", "shape", "count", "parts"),
    [
        ("1d", (64, 64, 64), 8, (8, 1, 1)),
        ("1d-x", (64, 64, 64), 8, (8, 1, 1)),
        ("1d-y", (64, 64, 64), 8, (1, 8, 1)),
        ("1d-z", (64, 64, 64), 8, (1, 1, 8)),
        ("1d", (64,), 8, (8,)),
        ("2d", (64, 64, 64), 8, (4, 2, 1)),
        ("2d", (64, 64), 36, (6, 6)),
        ("2d", (64, 64), 7, (7, 1)),
        ("3d", (64, 64, 64), 8, (2, 2, 2)),
        ("3d", (64, 64, 64), 16, (4, 2, 2)),
        ("3d", (64, 64, 64), 24, (4, 3, 2)),
        ("3d", (64, 64, 64), 12, (3, 2, 2)),
        ("3d", (2, 64, 64), 27, None),
        ("3d", (2, 64, 64), 8, (2, 2, 2)),
        ("3d", (2, 64, 64), 16, (2, 4, 2)),  # the first axis takes no more subdomains
        ("4x2x1", (64, 64, 64), 8, (4, 2, 1)),
        ((1, 2, 4), (64, 64, 64), 8, (1, 2, 4)),
        ("row", (1024, 512, 512), 2, (2, 1, 1)),
    ],
)
def test_strategies_give_the_expected_parts(strategy, shape, count, parts):
    if parts is None:
        parts = (1, 9, 3)
    assert decompose(shape, count, strategy=strategy).parts == parts


def test_ties_are_resolved_without_cuts_of_rows():
    cube = decompose((96, 96, 96), 6)
    assert cube.parts == (3, 2, 1)
    # no exchange across walls: five slabs move less than any other five subdomains of these shapes
    assert decompose((40, 40), 5, periodic=False).parts == (5, 1)
    # without traffic every cut is free, and the first axis takes all of them
    assert decompose((64, 64, 64), 8, traffic=Traffic.of([], 3)).parts == (8, 1, 1)


def test_rank_order_of_optimal_is_local():
    """Each eighth of the ranks is a cube; in row order it is a slab."""

    def hull(strategy, ranks):
        d = decompose((64, 64, 64), 64, strategy=strategy)
        boxes = [d.box(rank) for rank in ranks]
        return tuple(max(b.hi[a] for b in boxes) - min(b.lo[a] for b in boxes) for a in range(3))

    for first in range(0, 64, 8):
        assert hull("optimal", range(first, first + 8)) == (32, 32, 32)
        assert hull("bisection", range(first, first + 8)) == (32, 32, 32)
        assert hull("row", range(first, first + 8)) == (16, 32, 64)


# --- properties ---

shapes = st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple)
walls = st.lists(st.booleans(), min_size=3, max_size=3)


def brute_factorisations(count, ndim):
    return [p for p in product(range(1, count + 1), repeat=ndim) if prod(p) == count]


def fits(shape, parts, periodic, thickness):
    return all(
        n // p >= (thickness if p > 1 or wraps else 1)
        for n, p, wraps in zip(shape, parts, periodic, strict=True)
    )


@settings(max_examples=examples(80, 250), deadline=None)
@given(shapes, st.integers(1, 24), st.sampled_from(STRATEGIES), walls, st.integers(1, 3))
def test_subdomains_cover_the_grid(shape, count, strategy, periodic, thickness):
    periodic = tuple(periodic[: len(shape)])
    options = {"strategy": strategy, "periodic": periodic, "thickness": thickness}
    possible = [p for p in brute_factorisations(count, len(shape)) if fits(shape, p, periodic, thickness)]
    if strategy in ("optimal", "row") and not possible:
        with pytest.raises(InputError):
            decompose(shape, count, **options)
        return
    try:
        d = decompose(shape, count, **options)
    except InputError:
        assert strategy not in ("optimal", "row")
        return
    assert d.parts in possible
    owner = {}
    for rank in range(count):
        box = d.box(rank)
        assert d.rank_of(d.coordinates(rank)) == rank
        for cell in product(*map(range, box.lo, box.hi)):
            assert owner.setdefault(cell, rank) == rank
    assert len(owner) == prod(shape)
    for axis in range(len(shape)):
        sizes = {d.box(rank).shape[axis] for rank in range(count)}
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 1
    for rank in range(count):
        for direction in product((-1, 0, 1), repeat=len(shape)):
            peer = d.neighbour(rank, direction)
            lo = d.box(rank).lo
            beyond = [
                lo[a] - 1 if s < 0 else d.box(rank).hi[a] if s > 0 else lo[a] for a, s in enumerate(direction)
            ]
            wrapped = tuple(
                i % n if wraps else i for i, n, wraps in zip(beyond, shape, periodic, strict=True)
            )
            assert peer == owner.get(wrapped)
            if peer is not None:
                assert d.neighbour(peer, tuple(-s for s in direction)) == rank


offsets = st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=6)


def bytes_received(d, rank, fields, local=None):
    """Return the bytes that a rank receives, counted per direction.

    With `local`, neighbours in the node are left out.
    """
    n, total = d.box(rank).shape, 0
    for direction in product((-1, 0, 1), repeat=d.ndim):
        step = [c + s for c, s in zip(d.coordinates(rank), direction, strict=True)]
        outside = [not 0 <= c < p for c, p in zip(step, d.parts, strict=True)]
        if any(o and not wraps for o, wraps in zip(outside, d.periodic, strict=True)):
            continue
        if local is not None and not any(outside):
            continue
        for footprint, size in fields:
            for segment, width in footprint:
                if segment == direction:
                    total += size * prod(w if s else m for s, w, m in zip(direction, width, n, strict=True))
    return total


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(2, 3), min_size=3, max_size=3),
    walls,
    st.lists(st.tuples(offsets, st.sampled_from([4, 8])), min_size=1, max_size=2),
    st.sampled_from(["node", "device"]),
)
def test_the_cost_is_the_maximum_traffic_of_a_subdomain(parts, sizes, periodic, reads, level):
    ndim, count = len(parts), prod(parts)
    assume(count <= 24)
    shape = tuple(n * p for n, p in zip(sizes, parts, strict=False))
    fields = [(Footprint.from_offsets(o[:ndim] for o in field), size) for field, size in reads]
    d = decompose(
        shape,
        count,
        strategy=parts,
        periodic=periodic[:ndim],
        traffic=Traffic.of(fields, ndim),
        level=level,
    )
    if level == "node":
        assert d.cost == 2 * max(bytes_received(d, rank, fields) for rank in range(count))
    else:
        assert d.cost == max(bytes_received(d, rank, fields, local=True) for rank in range(count))


@settings(max_examples=100, deadline=None)
@given(shapes, st.integers(1, 24), walls, offsets, st.sampled_from(["node", "device"]))
def test_optimal_has_the_minimum_cost(shape, count, periodic, reads, level):
    ndim = len(shape)
    periodic = periodic[:ndim]
    traffic = Traffic.of([(Footprint.from_offsets(o[:ndim] for o in reads), 8)], ndim)
    options = {"periodic": periodic, "traffic": traffic, "thickness": 1, "level": level}
    costs = [
        decompose(shape, count, strategy=parts, **options).cost
        for parts in brute_factorisations(count, ndim)
        if fits(shape, parts, periodic, 1)
    ]
    assume(costs)
    assert decompose(shape, count, **options).cost == min(costs)


# --- size ---

COUNTS = [10**2, 10**3, 10**4, 10**5, 10**6, 99_991, 524_288, 720_720, 999_983]  # two of them are prime


@cases("strategy", ["optimal", "bisection", "3d", "1d"], default=["optimal"])
@pytest.mark.parametrize("count", COUNTS)
def test_planning_does_not_grow_with_the_count(count, strategy):
    shape = (2_000_000, 4096, 4096)

    def work():
        d = decompose(shape, count, strategy=strategy, radius=1)
        assert d.neighbour(count // 2, (1, 0, -1)) is not None
        assert d.box(count - 1).hi == shape

    assert lines(work) < 600_000
    tracemalloc.start()
    d = decompose(shape, count, strategy=strategy, radius=1)
    d.box(count - 1)
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert current < 50_000
    assert peak < 500_000


# --- errors ---


@pytest.mark.parametrize(
    ("shape", "count", "options", "words"),
    [
        ((64, 0), 1, {}, ["cells along axis y is 0", "from 1 to"]),
        ((-3,), 1, {}, ["axis x", "-3"]),
        ((64, 64.5), 1, {}, ["axis y is 64.5", "whole number"]),
        ((2, 2, 2, 2), 1, {}, ["number of axes is 4", "from 1 to 3"]),
        ((64,), 0, {}, ["subdomains is 0", "from 1 to"]),
        ((4, 4), 17, {}, ["17", "axis x", "axis y", "16"]),
        ((4, 4), 7, {}, ["7", "6"]),
        ((12, 12), 16, {"radius": 6}, ["16", "at least 6", "4"]),
        ((64, 2), 4, {"radius": 3}, ["axis y", "2 cells", "3 cells", "periodic"]),
        ((64, 64), 16, {"strategy": "1d-x", "radius": 5}, ["axis x", "16", "at least 5", "12", "80"]),
        ((64, 64), 4, {"strategy": "1d-z"}, ["1d-z", "axis z", "x, y"]),
        ((64,), 4, {"strategy": "2d"}, ["2d", "1", "x"]),
        ((64, 64), 8, {"strategy": "3d"}, ["3d", "2", "x, y"]),
        ((64, 64), 6, {"strategy": "morton"}, ["morton", "power of two", "6", "4 or 8"]),
        ((64, 2), 16, {"strategy": "morton"}, ["axis y", "4", "Use at most 2,"]),
        ((64, 64), 4, {"strategy": "2x1"}, ["2x1", "2 subdomains", "4"]),
        ((64, 64), 4, {"strategy": "2x2x1"}, ["2x2x1", "3 axes", "2"]),
        ((64, 64), 4, {"strategy": (4, 0)}, ["subdomains along an axis is 0", "from 1 to"]),
        ((64, 64), 4, {"strategy": "-4x-1"}, ["unknown decomposition", "'-4x-1'"]),
        ((64, 64), 4, {"strategy": "optimum"}, ["'optimum'", "did you mean 'optimal'", "bisection", "4x2x1"]),
        ((64, 64), 4, {"strategy": "zzz"}, ["'zzz'", "expected one of optimal"]),
        ((12, 9), 12, {"strategy": "bisection", "thickness": 3}, ["bisection", "3x2", "by 2", "optimal"]),
        ((64, 64), 4, {"level": "rack"}, ["'rack'", "node, device"]),
        ((64, 64), 4, {"radius": (1, 2, 3)}, ["radius", "3", "2"]),
        ((64, 64), 4, {"radius": -1}, ["radius", "-1"]),
        ((64, 64), 4, {"periodic": (True,)}, ["periodic", "1", "2"]),
    ],
)
def test_errors_name_the_invalid_value(shape, count, options, words):
    with pytest.raises(InputError) as error:
        decompose(shape, count, **options)
    message = str(error.value)
    assert not [word for word in words if word not in message], message


def test_an_uncut_wall_axis_may_be_thin():
    assert decompose((64, 2), 4, radius=3, periodic=False).parts == (4, 1)
