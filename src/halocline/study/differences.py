"""Convergence of problems without exact solution: each grid is compared with the next finer one.

The difference of two solutions falls with the same power of the spacing as their errors do (Roache 1998,
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
    """Return the fields that a run has written, by name."""
    with np.load(path) as found:
        return {name: found[name] for name in found}


def differences(states: Sequence[State]) -> list[float | None]:
    """Return the difference of each grid from the next finer one; None for the finest.

    Raises
    ------
    InputError
        A grid does not have a whole multiple of the cells of the one before.
    """
    return [*(_difference(coarse, fine) for coarse, fine in pairwise(states)), None]


def _difference(coarse: State, fine: State) -> float:
    """Return the mean difference of the field where it is largest, over the largest value of the field."""
    worst = 0.0
    for name in (each for each in coarse if not each.endswith(PLACES)):
        restricted = _restricted(fine[name], coarse[name].shape, fine[name + PLACES])
        scale = float(np.abs(restricted).max())
        if scale:
            worst = max(worst, float(np.abs(coarse[name] - restricted).mean()) / scale)
    return worst


def _restricted(values: NDArray[Any], shape: tuple[int, ...], on_faces: NDArray[np.bool_]) -> NDArray[Any]:
    """Return values of a fine grid at the points of a coarse one: means of cells, and the faces of both."""
    for axis, count in enumerate(shape):
        fine, ends = values.shape[axis], 0
        if on_faces[axis] and (fine - 1) % max(1, count - 1) == 0 and fine % count:
            ends = 1  # a face more than cells
        if (fine - ends) % max(1, count - ends):
            raise InputError(
                f"a grid of {fine - ends} cells along an axis has no whole multiple of the {count - ends} of "
                "the one before: expected sizes such as 64,128,256"
            )
        ratio = (fine - ends) // max(1, count - ends)
        moved = values.swapaxes(0, axis)
        if on_faces[axis]:
            moved = moved[::ratio]
        else:
            moved = moved.reshape(count, ratio, *moved.shape[1:]).mean(axis=1)
        values = moved.swapaxes(0, axis)
    return values
