"""Interpolation along one axis. The weights do not depend on the requested part of the axis.

Cell averages are interpolated conservatively. In each cell of the source, the function is linear, and its
slope is the central difference of the averages. A new average is the mean of this function over the new cell
(van Leer 1977, Section 2, without a limiter). Point values are interpolated by polynomials through the
nearest points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAME = 1e-9  # tolerance for equal coordinates, relative to the length or spacing
Run = tuple[int, int]  # consecutive values: first index, and last index plus one


@dataclass(frozen=True)
class Weights:
    """Interpolation weights along one axis: each new value is a weighted sum of old values.

    Attributes
    ----------
    index : array of int (new values, terms)
        Indices of the old values.
    weight : array of float64 (new values, terms)
    """

    index: NDArray[np.int64]
    weight: NDArray[np.float64]

    def runs_read(self, lo: int, hi: int) -> list[Run]:
        """Return the index ranges (runs) of the old values that determine the new values `lo` to `hi` - 1.

        The runs cover the shortest part of the periodic axis that contains all these old values. There are
        two runs if this part crosses the end of the axis.
        """
        old_indices = np.unique(self.index[lo:hi])
        first, last = int(old_indices[0]), int(old_indices[-1])
        gaps = np.diff(old_indices)
        # number of old values that a single run would leave out
        outside = first + int(self.index.max()) - last
        if not len(gaps) or gaps.max() - 1 <= outside:
            return [(first, last + 1)]
        widest = int(gaps.argmax())
        return [(first, int(old_indices[widest]) + 1), (int(old_indices[widest + 1]), last + 1)]

    def apply(self, values: NDArray[Any], axis: int, runs: Sequence[Run], lo: int, hi: int) -> NDArray[Any]:
        """Return the new values with the indices `lo` to `hi` - 1 along an axis.

        The weighted sums are formed term by term, so that no bit depends on the number of new values.

        Parameters
        ----------
        values : array
            Old values of all runs, concatenated along `axis`.
        axis : int
        runs : sequence of (int, int)
            Runs of `runs_read`, or longer runs.
        lo, hi : int
        """
        old_indices = np.concatenate([np.arange(first, end) for first, end in runs])
        shape = [1] * values.ndim
        shape[axis] = hi - lo
        total: Any = 0.0
        for index, weight in zip(self.index[lo:hi].T, self.weight[lo:hi].T, strict=True):
            terms = np.take(values, np.searchsorted(old_indices, index), axis=axis)
            total = total + weight.reshape(shape) * terms
        return np.asarray(total)


def polynomial(
    old: NDArray[np.float64], new: NDArray[np.float64], count: int, period: float | None = None
) -> Weights:
    """Return weights of the polynomial through the `count` points nearest to each new coordinate.

    If a new coordinate equals an old coordinate up to rounding, this point has weight 1 and all other points
    have weight 0. On a non-periodic axis, the polynomial through the outermost points extrapolates beyond
    these points.

    Parameters
    ----------
    old : array of float64 (points)
        Increasing coordinates, not necessarily evenly spaced.
    new : array of float64 (new values)
    count : int
        Number of points: 1 for the nearest point, 2 for linear or 4 for cubic interpolation. Of two points at
        equal distance, the point with the lower index counts as nearest. On an axis with fewer points, the
        polynomial uses all points.
    period : float, optional
        Length after which the coordinates repeat.

    Returns
    -------
    Weights
    """
    points, count = len(old), min(count, len(old))
    if period is not None:
        new = old[0] + (new - old[0]) % period
    below = np.searchsorted(old, new, side="right") - 1
    if count == 1:
        numbers = _nearest_of_two(old, new, below, period)[:, np.newaxis]
        return Weights(numbers, np.ones(numbers.shape))
    first = below - (count // 2 - 1)
    if period is None:
        first = np.clip(first, 0, points - count)
    numbers = first[:, np.newaxis] + np.arange(count)
    places = _lifted(old, numbers, period)
    weight = np.ones(numbers.shape)
    for term in range(1, count):
        for other in range(count):
            if other != term:
                distance = places[:, term] - places[:, other]
                weight[:, term] *= (new - places[:, other]) / distance
    weight[:, 0] = 1.0 - weight[:, 1:].sum(axis=1)
    spacing = (places[:, -1:] - places[:, :1]) / (count - 1)
    on_point = np.abs(new[:, np.newaxis] - places) <= SAME * spacing
    exact = on_point.any(axis=1)
    weight[exact] = on_point[exact]
    return Weights(numbers % points, weight)


def nearest(old: NDArray[np.float64], new: float, period: float | None = None) -> int:
    """Return the index of the point nearest to a coordinate; of two equally near points, the lower index."""
    return int(polynomial(old, np.array([new], np.float64), 1, period).index[0, 0])


def _nearest_of_two(
    old: NDArray[np.float64], new: NDArray[np.float64], below: NDArray[np.int64], period: float | None
) -> NDArray[np.int64]:
    """Return, for each coordinate, the index of the nearer one of its two neighbouring points."""
    points = len(old)
    pair = np.stack([below, below + 1], axis=1)
    if period is None:
        pair = np.clip(pair, 0, points - 1)
    places = _lifted(old, pair, period)
    excess = (new - places[:, 0]) - (places[:, 1] - new)  # distance to the lower minus to the upper point
    is_tie = np.abs(excess) <= SAME * (places[:, 1] - places[:, 0])
    pair %= points
    return np.where(is_tie, pair.min(axis=1), np.where(excess > 0.0, pair[:, 1], pair[:, 0]))


def _lifted(
    old: NDArray[np.float64], numbers: NDArray[np.int64], period: float | None
) -> NDArray[np.float64]:
    """Return the coordinates of points. On a periodic axis, indices may lie outside the array."""
    places = old[numbers % len(old)]
    return places if period is None else places + period * (numbers // len(old))


def conservative(old: NDArray[np.float64], new: NDArray[np.float64], *, periodic: bool) -> Weights:
    """Return the weights that give averages over new cells from averages over old cells.

    Parameters
    ----------
    old, new : array of float64 (cells + 1)
        Increasing edges of the old and new cells. Both have the same first edge and the same last edge.
    periodic : bool
        True for a periodic axis.

    Returns
    -------
    Weights
    """
    count = len(old) - 1
    centres, widths = 0.5 * (old[1:] + old[:-1]), np.diff(old)
    rows: list[dict[int, float]] = []
    for low, high in pairwise(new):
        row: dict[int, float] = {}
        first = max(0, int(np.searchsorted(old, low, side="right")) - 1)
        for i in range(first, count):
            a, b = max(low, old[i]), min(high, old[i + 1])
            if a >= b:
                break
            share = (b - a) / (high - low)
            row[i] = row.get(i, 0.0) + share
            # contribution of the slope: slope times the distance from the cell centre to the centre of the
            # overlap
            below, above = i - 1, i + 1
            if periodic:
                span = 0.5 * (widths[below % count] + widths[above % count]) + widths[i]
            else:
                below, above = max(below, 0), min(above, count - 1)
                span = centres[above] - centres[below]
            if count > 1 and span > 0.0:
                tilt = share * (0.5 * (a + b) - centres[i]) / span
                row[above % count] = row.get(above % count, 0.0) + tilt
                row[below % count] = row.get(below % count, 0.0) - tilt
        rows.append(row)
    terms = max(map(len, rows))
    index, weight = np.zeros((len(rows), terms), np.int64), np.zeros((len(rows), terms))
    for n, row in enumerate(rows):
        indices = sorted(row)
        index[n] = indices[0]
        index[n, : len(indices)] = indices
        weight[n, : len(indices)] = [row[i] for i in indices]
    return Weights(index, weight)


def same(old: NDArray[np.float64], new: NDArray[np.float64], length: float) -> bool:
    """Return True if two arrays of coordinates are equal up to rounding."""
    return len(old) == len(new) and bool(np.all(np.abs(old - new) <= SAME * length))
