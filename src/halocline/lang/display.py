"""Tables of grids and fields for notebooks."""

from __future__ import annotations

from itertools import chain
from math import prod

from halocline.lang.axes import AXES
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field, Grid
from halocline.markup import facts_table
from halocline.words import amount


def grid_table(grid: Grid) -> str:
    """Return the table of a grid in HTML."""
    stretched = " ".join(axis for axis, stretch in zip(AXES, grid.maps, strict=False) if stretch)
    fields = [name for name, field in grid.fields.items() if not grid.is_work_field(field)]
    facts = {
        "cells": sizes(grid.shape),
        "active cells": "" if grid.blocks is None else f"{grid.active_cells:,} of {grid.size:,}",
        "domain": " × ".join(
            f"[{low:g}, {low + length:g}]" for low, length in zip(grid.origin, grid.extent, strict=True)
        ),
        "spacing": " × ".join(f"{h:.6g}" for h in grid.spacing),
        "stretched axes": stretched,
        "ends": ", ".join(map(_ends, AXES, grid.periodic, grid.walls)),
        "precision": grid.dtype,
        "fields": ", ".join(fields),
    }
    return facts_table("Grid", facts)


def _ends(axis: str, is_periodic: bool, wall: str) -> str:
    return f"{axis} periodic" if is_periodic else f"{axis} with walls on {wall}s"


def field_table(field: Field) -> str:
    """Return the table of a field in HTML."""
    sides = {
        side: repr(condition)
        for side, condition in field.boundary.items()
        if not field.grid.periodic[AXES.index(side[0])]
    }
    conditions = dict.fromkeys(sides.values(), "")
    for side, condition in sides.items():
        conditions[condition] += f" {side}"
    facts = {
        "location": field.location,
        "points": sizes(field.points),
        "precision": field.dtype,
        "memory without halos": amount(prod(field.points) * ITEMSIZE[field.dtype]),
        **{f"boundary{at}": condition for condition, at in conditions.items()},
        "grid": repr(field.grid),
    }
    return facts_table(f"Field {field.name}", facts)


def sizes(shape: tuple[int, ...]) -> str:
    """Return the numbers of points along the axes, with their product."""
    text = " × ".join(map(str, shape))
    return f"{text} = {prod(shape):,}" if len(shape) > 1 else text


def halo_text(halo: tuple[tuple[int, int], ...]) -> str:
    """Return halo widths as text: one number if all widths are equal."""
    widths = {*chain.from_iterable(halo)}
    if len(widths) == 1:
        return str(*widths)
    return ", ".join(f"{axis} {low} and {high}" for axis, (low, high) in zip(AXES, halo, strict=False))
