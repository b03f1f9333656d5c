"""Counters of the protections of a step: number of affected cells, first cell and first step."""

from __future__ import annotations

import math
from collections.abc import Mapping

from halocline.lang.expression import Expr
from halocline.lang.functions import where
from halocline.lang.program import Scalar, label_statements, scalar
from halocline.lang.reductions import count, first

# prefixes of the names of counters, and labels of the counted conditions
COUNTED = {
    "fallback": "HLL fallback",
    "mixing": "mixing",
    "density_floor": "density floor",
    "pressure_floor": "pressure floor",
}


def tally(step: Expr, conditions: Mapping[str, Expr]) -> dict[str, Scalar]:
    """Count the cells in which each condition of `COUNTED` holds in this step, and record the first cell.

    The counters are the scalars of `halocline.run.simulation.events.Event`. Return the number of cells in
    this step for each condition, by the prefix of its counters.
    """
    numbers = {name: (count(conditions[name]), first(conditions[name])) for name in COUNTED}
    cells_in_step = {}
    for name, (cells, cell) in numbers.items():
        total, first_cell, first_step = (scalar(f"{name}_{part}") for part in ("count", "cell", "step"))
        cells_in_step[name] = number = scalar(f"{name}_now")
        with label_statements(f"{COUNTED[name]}: count and first cell"):
            number.set(cells)
            first_cell.set(where(total > 0.0, first_cell, cell))
        first_step.set(where(total > 0.0, first_step, where(number > 0.0, step, math.inf)))
        total.set(total + number)
    return cells_in_step
