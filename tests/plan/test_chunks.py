"""Assembly of the chunks of a stored array: owners and sources."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halocline.plan.chunks import ChunkGrid, Selection, chunk_shape, plan_chunks
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...], Selection, tuple[int, ...]]:
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 12)) for _ in range(ndim))
    count = draw(st.sampled_from([n for n in (1, 2, 3, 4, 6, 8) if n <= prod(shape)]))
    per_rank = draw(st.sampled_from([k for k in (1, 2, 3) if count % k == 0]))
    try:
        whole = decompose(shape, count, periodic=False, radius=0)
    except ValueError:
        whole = decompose(shape, 1, periodic=False, radius=0)
        per_rank = 1
    layout = Layout(whole, 1, per_rank, ())
    points = tuple(n + draw(st.integers(0, 1)) for n in shape)
    first = tuple(draw(st.integers(0, n - 1)) for n in points)
    stride = tuple(draw(st.integers(1, 3)) for _ in points)
    most = ((n - f + s - 1) // s for n, f, s in zip(points, first, stride, strict=True))
    count = tuple(draw(st.integers(1, n)) for n in most)
    chunk = tuple(draw(st.integers(1, 6)) for _ in shape)
    return layout, points, Selection(first, stride, count), chunk


@given(cases())
def test_every_element_of_every_chunk_has_one_owner_and_one_source(case):
    layout, points, selection, chunk = case
    grid = ChunkGrid(selection.shape, chunk)
    cut = layout.decomposition
    plans = [
        plan_chunks(cut, layout.subdomains_of(rank), grid, points, selection) for rank in range(layout.ranks)
    ]
    chunks = [chunk for _, parts in plans for chunk in {part.chunk for part in parts}]
    assert (
        sorted(chunks)
        == sorted(set(chunks))
        == list(np.ndindex(*(-(-n // c) for n, c in zip(selection.shape, chunk, strict=True))))
    )
    times = np.zeros(selection.shape, int)
    for rank, (sources, parts) in enumerate(plans):
        for part in parts:
            assert part.box
            assert part.box <= grid.box(part.chunk)
            times[tuple(map(slice, part.box.lo, part.box.hi))] += 1
            inside = cut.box(part.subdomain)
            for element in (part.box.lo, tuple(h - 1 for h in part.box.hi)):
                point = selection.point(element)
                assert all(l <= i <= h for l, i, h in zip(inside.lo, point, inside.hi, strict=True))
        # both ends of each message list the same parts in the same order
        for other, (_, parts_of_other) in enumerate(plans):
            sent = [part for part in sources if layout.home(part.holder)[0] == other]
            awaited = [part for part in parts_of_other if layout.home(part.subdomain)[0] == rank]
            assert sent == awaited
    assert (times == 1).all()


def test_chunks_fit_the_byte_limit_and_do_not_depend_on_ranks():
    assert chunk_shape((1000,), 8, 800) == (63,)
    assert chunk_shape((5, 7), 4) == (5, 7)
    for shape in ((2048, 300, 5), (513, 129, 65), (1, 1, 10**7)):
        chunk = chunk_shape(shape, 8)
        assert prod(chunk) * 8 <= 4 << 20
        assert prod(chunk) * 8 > 1 << 20


def test_one_rank_of_a_million_is_planned_without_a_table_of_ranks():
    shape = (10_000, 10_000, 10_000)
    cut, grid = decompose(shape, 1_000_000, periodic=True), ChunkGrid(shape, chunk_shape(shape, 8))
    sources, parts = plan_chunks(cut, [123_456], grid, shape, Selection((0,) * 3, (1,) * 3, shape))
    assert 1 <= len(sources) <= 27
    assert len(parts) <= 27 * max(1, len({part.chunk for part in parts}))


@pytest.mark.parametrize("ranks", [3, 4])
def test_a_hundred_cells_on_three_or_four_ranks_have_the_same_chunks(ranks):
    cut = decompose((100,), ranks, periodic=True)
    grid = ChunkGrid((100,), (40,))
    plans = [plan_chunks(cut, [rank], grid, (100,), Selection((0,), (1,), (100,))) for rank in range(ranks)]
    owned = [chunk for _, parts in plans for chunk in {part.chunk for part in parts}]
    assert sorted(owned) == [(0,), (1,), (2,)]
