"""Programs of simulations, without a run."""

from __future__ import annotations

from typing import Any

from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.lang.stepping import stepping
from halocline.lang.values import by_name


def program_of(grid: Grid, function: Any, **options: Any) -> Program:
    """Return the program of a simulation with these options."""
    names = tuple(by_name(options.pop("parameters", None) or {}, "parameter"))
    return stepping(grid, function, parameters=names, **options).program
