"""Boxes of cells: shapes, intersections and inclusion."""

from __future__ import annotations

from itertools import product

from halocline.plan.box import Box, three

BOXES = [Box(lo, hi) for lo in product((-1, 1), repeat=2) for hi in product((0, 3), repeat=2)]


def cells(box: Box) -> set[tuple[int, ...]]:
    """Return the cells of a box, tested one by one."""
    return {cell for cell in product(range(-2, 4), repeat=2) if cell in box}


def test_a_box_has_the_cells_between_its_ends() -> None:
    box = Box((1, -2), (3, 2))
    assert (box.shape, box.size, bool(box)) == ((2, 4), 8, True)
    assert (1, -2) in box
    assert (3, 0) not in box
    assert len(cells(box)) == box.size


def test_a_box_without_cells_is_false() -> None:
    box = Box((2, 0), (1, 5))
    assert (box.shape, box.size, bool(box)) == ((0, 5), 0, False)


def test_boxes_have_the_relations_of_their_cells() -> None:
    for box, other in product(BOXES, BOXES):
        assert cells(box.intersect(other)) == cells(box) & cells(other)
        assert (box <= other) == (cells(box) <= cells(other))


def test_a_box_is_moved_and_grown() -> None:
    box = Box((0, 1), (2, 4))
    assert box.shift((3, -1)) == Box((3, 0), (5, 3))
    assert box.grow([(1, 0), (0, 2)]) == Box((-1, 1), (2, 6))


def test_axes_that_a_grid_lacks_come_first() -> None:
    assert three((4, 5)) == [0, 4, 5]
    assert Box((1,), (7,)).on_three_axes == ([0, 0, 1], [1, 1, 7])
