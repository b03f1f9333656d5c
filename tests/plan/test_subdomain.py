"""Subdomains: walls, owned points, and halo segments with their sources."""

from __future__ import annotations

from itertools import product

import pytest

from halocline.compile.schedule import FieldInfo
from halocline.lang.blocks import Blocks
from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.subdomain import Subdomain

NO_HALO = ((0, 0), (0, 0))
DIRECTIONS = [d for d in product((-1, 0, 1), repeat=2) if any(d)]


def cut(parts: tuple[int, int] = (2, 3)) -> Decomposition:
    """Cut a grid of 7 by 9 cells, periodic along its second axis."""
    return decompose((7, 9), parts[0] * parts[1], strategy=parts, periodic=(False, True), radius=1)


def test_walls_are_the_ends_of_axes_that_are_not_periodic() -> None:
    walls = {Subdomain(cut(), number).walls for number in range(6)}
    assert walls == {((True, False), (False, False)), ((False, True), (False, False))}


def test_staggered_fields_have_a_point_more_at_an_upper_wall() -> None:
    faces = FieldInfo("v", "float64", (True, True), NO_HALO)
    total = 0
    for number in range(6):
        subdomain = Subdomain(cut(), number)
        along, across = subdomain.shape
        assert subdomain.owned(faces).shape == (along + subdomain.walls[0][1], across)
        total += subdomain.owned(faces).size
    assert total == 8 * 9


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_segment_holds_the_cells_of_its_source(direction: tuple[int, int]) -> None:
    """The segment and its source are the same cells in the indices of the grid."""
    decomposition, width, checked = cut(), (2, 1), 0
    for number in range(6):
        subdomain = Subdomain(decomposition, number)
        peer = subdomain.neighbour(direction)
        if peer is None:
            continue
        neighbour = Subdomain(decomposition, peer)
        segment = subdomain.segment(subdomain.cells, direction, width)
        source = neighbour.source(neighbour.cells, direction, width)
        assert segment.shape == source.shape
        assert source <= neighbour.cells
        assert not segment.intersect(subdomain.cells)
        segment_cells = segment.shift(subdomain.box.lo)
        source_cells = source.shift(neighbour.box.lo)
        assert all(
            (a - b) % n == 0 for a, b, n in zip(segment_cells.lo, source_cells.lo, (7, 9), strict=True)
        )
        checked += 1
    assert checked >= 3


def test_directions_along_an_axis_of_one_subdomain_lead_back() -> None:
    subdomain = Subdomain(cut((2, 1)), 0)
    assert subdomain.across((1, 1)) == (1, 0)
    assert subdomain.neighbour((0, 1)) == 0
    assert subdomain.neighbour((-1, 0)) is None


def test_pieces_of_a_box_are_its_active_cells() -> None:
    subdomain = Subdomain(cut((1, 1)), 0)
    assert list(subdomain.pieces(subdomain.cells, None)) == [Box((0, 0), (7, 9))]
    assert subdomain.active(None)
    blocks = Blocks.of([[True, False, True]], (7, 9))
    pieces = list(subdomain.pieces(subdomain.cells, blocks))
    assert sum(piece.size for piece in pieces) == 7 * 6
    assert subdomain.active(blocks)
