"""Differences of fields in units in the last place (Pekkilä et al. 2022, Section 5, Eqs. 15 and 16)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def greatest_ulps(model: NDArray[Any], candidate: NDArray[Any]) -> float:
    """Return the maximum of |m - c| / ε over all values m of the model and c of the candidate.

    ε = 2^(⌊log2 |m|⌋ - p + 1) is the unit in the last place of m, for numbers with p significant bits. Below
    the smallest normal number, ε is the spacing of subnormal numbers. The difference of equal values, equal
    infinities or two NaNs is 0. If any other pair contains a non-finite value, the result is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from halocline.run.measurements.ulps import greatest_ulps
    >>> greatest_ulps(np.array([1.0, 3.0]), np.array([1.0 - 2.0**-53, 3.0 + 2.0**-50]))
    2.0
    """
    differs = (model != candidate) & ~(np.isnan(model) & np.isnan(candidate))
    m, c = model[differs], candidate[differs]
    if not (np.isfinite(m) & np.isfinite(c)).all():
        return math.inf
    return float(np.max(np.abs(m - c) / np.spacing(np.abs(m)), initial=0.0))


def ulps_of_states(model: str | Path, candidate: str | Path) -> float:
    """Return the maximum difference of the fields in two files of `halocline run --state`."""
    with np.load(model) as expected, np.load(candidate) as state:
        fields = [name for name in expected if expected[name].dtype.kind == "f"]
        return max(greatest_ulps(expected[name], state[name]) for name in fields)
