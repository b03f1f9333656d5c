"""Compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Loop, Schedule, Sweep

# --- footprints ---


def schedule_of(grid: hc.Grid, function: Callable[..., Any]) -> Schedule:
    """Return the schedule of a program whose arguments are fields and vectors of the grid."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return compile_program(hc.program(function).trace(*(grid.find(n) for n in names)), grid)


def number(schedule: Schedule, name: str) -> int:
    """Return the number of a field in a schedule."""
    return [f.name for f in schedule.fields].index(name)


# --- messages ---


def body(schedule: Schedule) -> list[Sweep]:
    """Return the sweeps in the only loop of a schedule."""
    (loop,) = (o for o in schedule.operations if isinstance(o, Loop))
    return [o for o in loop.body if isinstance(o, Sweep)]


# --- arithmetic ---


def fields(*names: str, ndim: int = 2) -> tuple[hc.Grid, list[hc.Field]]:
    """Return a grid with the named fields."""
    grid = hc.Grid((8,) * ndim, periodic=True)
    return grid, [grid.field(n) for n in names]
