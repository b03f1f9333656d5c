"""Convergence of problems without an exact solution, from differences between solutions on successive grids.

The difference between two solutions decreases with the same power of the spacing as the error (Roache 1998,
Verification and Validation in Computational Science and Engineering, Chapter 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.problems.files import PLACES

NAME = "mean difference from the next finer grid, over the largest value"

State = Mapping[str, "NDArray[Any]"]


def state(path: Path) -> dict[str, NDArray[Any]]:
    """Return the fields in a file that a run wrote (option --state), by name."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive}


def differences(states: Sequence[State]) -> list[float | None]:
    """Return the difference between each grid and the next finer grid; None for the finest grid.

    Parameters
    ----------
    states : sequence of mapping
        Fields on each grid, the coarsest grid first.

    Raises
    ------
    InputError
        The number of cells along an axis is not a multiple of the number of cells of the previous grid.
    """
    return [*(_difference(coarse, fine) for coarse, fine in pairwise(states)), None]


def _difference(coarse: State, fine: State) -> float:
    """Return the relative mean difference between two grids, as the maximum over all fields.

    The mean difference of a field is divided by the maximum absolute value of the field on the fine grid,
    restricted to the coarse grid.
    """
    max_difference = 0.0
    for name in (field for field in coarse if not field.endswith(PLACES)):
        restricted = _restrict(fine[name], coarse[name].shape, fine[name + PLACES])
        scale = float(np.abs(restricted).max())
        if scale:
            difference = float(np.abs(coarse[name] - restricted).mean()) / scale
            max_difference = max(max_difference, difference)
    return max_difference


def _restrict(values: NDArray[Any], shape: tuple[int, ...], on_faces: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values of a fine grid on a coarse grid: means over cells, or values on common faces."""
    for axis, count in enumerate(shape):
        fine, extra_faces = values.shape[axis], 0
        if on_faces[axis] and (fine - 1) % max(1, count - 1) == 0 and fine % count:
            extra_faces = 1  # an axis with walls has one more face than cells
        if (fine - extra_faces) % max(1, count - extra_faces):
            raise InputError(
                f"{fine - extra_faces} cells along an axis are not a multiple of the {count - extra_faces} "
                "cells of the previous grid. Use sizes such as 64,128,256."
            )
        ratio = (fine - extra_faces) // max(1, count - extra_faces)
        axis_first = values.swapaxes(0, axis)
        if on_faces[axis]:
            axis_first = axis_first[::ratio]
        else:
            axis_first = axis_first.reshape(count, ratio, *axis_first.shape[1:]).mean(axis=1)
        values = axis_first.swapaxes(0, axis)
    return values
