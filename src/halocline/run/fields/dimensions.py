"""The names of the axes of arrays in stores, and what stores say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halocline.lang.grid import AXES, Grid

FACE = "_face"


def dimensions(staggered: Sequence[bool]) -> tuple[str, ...]:
    """The names of the axes of a field whose points lie on faces along some of them."""
    return tuple(AXES[axis] + (FACE if on_face else "") for axis, on_face in enumerate(staggered))


def axis_attributes(grid: Grid, axis: int) -> dict[str, Any]:
    """Of the coordinates along an axis: which one it is, and after what length it repeats, or where its walls
    are."""
    ends = {"period": grid.extent[axis]} if grid.periodic[axis] else {"walls": grid.walls[axis]}
    return {"axis": AXES[axis].upper(), **ends}
