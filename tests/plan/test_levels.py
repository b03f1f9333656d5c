"""Decompositions of two levels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.plan import decompose, flow
from halocline.plan.levels import decompose_levels, parts_of_node
from halocline.plan.traffic import Traffic


def test_levels_agree_with_the_paper() -> None:
    """Pearson et al. (2020), Fig. 4, is reproduced: 4 x 24 x 2 on 12 nodes of 4 devices.

    Nodes are 2 x 6 x 1, and devices 2 x 2.
    """
    cut = decompose_levels((4, 24, 2), 12, 4, strategy="bisection")
    assert cut.parts == (4, 12, 1)
    for node in range(12):
        places = [cut.coordinates(4 * node + device) for device in range(4)]
        corner = tuple(map(min, zip(*places, strict=True)))
        assert corner[0] % 2 == corner[1] % 2 == 0
        assert sorted(places) == sorted((corner[0] + i, corner[1] + j, 0) for i in (0, 1) for j in (0, 1))


def test_the_smallest_node_is_divided_among_its_devices() -> None:
    """Three ranks cannot share the 2 cells of the second of two nodes along an axis of 5 cells."""
    traffic = Traffic((((1, 0, 0), 1), ((-1, 0, 0), 1)), ((1, 1), (1, 1), (0, 0)))
    cut = decompose_levels(
        (13, 10, 5), 2, 3, strategy="bisection", traffic=traffic, periodic=(True, True, False)
    )
    assert min(min(cut.box(number).shape) for number in range(6)) >= 1
    with pytest.raises(InputError, match="cannot be cut into 3"):
        decompose_levels((5,), 2, 3, periodic=False)
    assert decompose_levels((7,), 2, 3, periodic=False).parts == (6,)


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["optimal", "bisection"]),
    st.booleans(),
)
def test_subdomains_of_a_node_form_one_box(
    shape: list[int], nodes: int, devices: int, strategy: str, periodic: bool
) -> None:
    try:
        cut = decompose_levels(shape, nodes, devices, strategy=strategy, periodic=periodic)
    except InputError:
        return
    assert min(min(cut.box(number).shape) for number in range(cut.count)) >= 1
    outer = decompose(shape, nodes, strategy=strategy, periodic=periodic)
    assert cut.count == nodes * devices
    counts = np.zeros(shape, dtype=int)
    for node in range(nodes):
        boxes = [cut.box(node * devices + device) for device in range(devices)]
        for box in boxes:
            counts[tuple(map(slice, box.lo, box.hi))] += 1
        whole = outer.box(node)
        assert tuple(min(b.lo[a] for b in boxes) for a in range(len(shape))) == whole.lo
        assert tuple(max(b.hi[a] for b in boxes) for a in range(len(shape))) == whole.hi
        assert sum(b.size for b in boxes) == whole.size
    assert (counts == 1).all()


@settings(max_examples=40)
@given(
    st.tuples(st.integers(6, 15), st.integers(6, 15)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 2),
)
def test_flow_is_the_number_of_cells_between_nodes(
    shape: tuple[int, int], parts: tuple[int, int], periodic: tuple[bool, bool], radius: int
) -> None:
    """The flow agrees with a count of halo cells one by one."""
    cut = decompose(shape, parts[0] * parts[1], strategy=parts, periodic=periodic, radius=radius)
    owner = np.zeros(shape, dtype=int)
    for n in range(cut.count):
        box = cut.box(n)
        owner[tuple(map(slice, box.lo, box.hi))] = n
    expected = np.zeros((cut.count, cut.count))
    for n in range(cut.count):
        box = cut.box(n)
        for i in range(box.lo[0] - radius, box.hi[0] + radius):
            for j in range(box.lo[1] - radius, box.hi[1] + radius):
                outside = (i, j) not in box
                in_grid = all(p or 0 <= k < m for k, m, p in zip((i, j), shape, periodic, strict=True))
                if outside and in_grid:
                    expected[owner[i % shape[0], j % shape[1]], n] += 1
    np.testing.assert_array_equal(flow(cut, Traffic.of_radius(radius, 2), range(cut.count)), expected)


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [(8, (2, 2, 2)), (16, (4, 2, 2)), (32, (4, 4, 2)), (64, (4, 4, 4)), (512, (8, 8, 8))],
)
def test_z_order_goes_over_all_nodes(ranks: int, parts: tuple[int, ...]) -> None:
    """P* of Pekkilä et al. 2022, Section 3.3, applies: the binary digits abcdef of a rank are cf, be, ad."""
    cut = decompose_levels((256,) * 3, ranks // 4, 4, strategy="morton")
    assert cut.parts == parts
    assert parts_of_node(cut, 4) == (2, 2, 1)
    for rank in range(ranks):
        digits = [int(digit) for digit in reversed(f"{rank:012b}")]
        place = tuple(sum(d << k for k, d in enumerate(digits[axis::3])) for axis in range(3))
        assert cut.coordinates(rank) == place


def test_a_scan_goes_row_by_row_over_all_nodes() -> None:
    """A node has a row of subdomains, as in Fig. 6a of Pekkilä et al. 2022."""
    cut = decompose_levels((256,) * 3, 16, 4, strategy="row")
    assert (cut.parts, parts_of_node(cut, 4)) == ((4, 4, 4), (1, 1, 4))
    assert [cut.coordinates(rank) for rank in range(5)] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
        (0, 0, 3),
        (0, 1, 0),
    ]
    with pytest.raises(
        InputError,
        match=r"decomposition 4x4x2 \(row\) cannot be divided into boxes of 3 subdomains, one box per node",
    ):
        parts_of_node(decompose_levels((96,) * 3, 32, 1, strategy="row"), 3)


@pytest.mark.parametrize(("strategy", "least", "most"), [("morton", 3, 3), ("row", 4, 5)])
def test_faces_between_nodes_in_a_large_run_are_few(strategy: str, least: int, most: int) -> None:
    """Z-order leaves fewer faces than a scan by rows: 4096 processes, 8 per node (Pekkilä, Section 3.3)."""
    cut = decompose_levels((1024,) * 3, 512, 8, strategy=strategy)
    faces = [direction for direction in product((-1, 0, 1), repeat=3) if sum(map(abs, direction)) == 1]
    counts = {
        sum(cut.neighbour(number, face) // 8 != number // 8 for face in faces) for number in range(cut.count)
    }
    assert (min(counts), max(counts)) == (least, most)
