"""Maps of stretched axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def wall_map(amount: float, length: float = 1.0) -> Any:
    """Return a map that concentrates the points at both walls."""

    def coordinate(x: Any) -> Any:
        return x - amount * length / (2 * math.pi) * np.sin(2 * math.pi * x / length)

    return coordinate
