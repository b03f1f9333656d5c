"""Counters of the protections of a step: how often each has acted so far, and where and when first."""

from __future__ import annotations

import math
from collections.abc import Mapping

from halocline.lang.expression import Expr
from halocline.lang.functions import where
from halocline.lang.program import Scalar, labelled, scalar
from halocline.lang.reductions import count, first

# prefixes of the names of the counters, and words for the conditions that they count
COUNTED = {
    "fallback": "HLL fallback",
    "mixing": "mixing",
    "density_floor": "density floor",
    "pressure_floor": "pressure floor",
}


def tally(step: Expr, conditions: Mapping[str, Expr]) -> dict[str, Scalar]:
    """Count the cells in which each condition of `COUNTED` holds in this step, and note the first.

    Sets the scalars of `halocline.run.simulation.events.Event`, and returns the numbers of cells of this
    step, by prefix.
    """
    numbers = {name: (count(conditions[name]), first(conditions[name])) for name in COUNTED}
    here = {}
    for name, (cells, cell) in numbers.items():
        total, place, when = (scalar(f"{name}_{part}") for part in ("count", "cell", "step"))
        here[name] = now = scalar(f"{name}_now")
        with labelled(f"{COUNTED[name]}: count and first cell"):
            now.set(cells)
            place.set(where(total > 0.0, place, cell))
        when.set(where(total > 0.0, when, where(now > 0.0, step, math.inf)))
        total.set(total + now)
    return here
