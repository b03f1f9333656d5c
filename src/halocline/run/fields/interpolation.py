"""From the points of one line to those of another: as weights, the same for any part of the line.

Averages of cells are mapped conservatively: in each cell of the source the value is linear, with the slope of
central differences, and a new average is the integral of that over the new cell (van Leer 1977, Section 2,
without a limiter). Values at points are interpolated by polynomials through the nearest points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAME = 1e-9  # relative to the length or spacing: closer coordinates are equal
Run = tuple[int, int]  # neighbouring values: the number of the first, and that behind the last


@dataclass(frozen=True)
class Weights:
    """What each new value is a sum of, along one axis.

    Attributes
    ----------
    index : array of int (new values, terms)
        Of the old values.
    weight : array of float64 (new values, terms)
    """

    index: NDArray[np.int64]
    weight: NDArray[np.float64]

    def needed(self, lo: int, hi: int) -> list[Run]:
        """The old values that new ones from `lo` up to `hi` are sums of: the shortest stretch of the axis,
        taken as a circle, that has all of them. It is two runs where it goes over the end of the axis."""
        used = np.unique(self.index[lo:hi])
        first, last = int(used[0]), int(used[-1])
        gaps = np.diff(used)
        # what a single run leaves out, before the first and behind the last one
        outside = first + int(self.index.max()) - last
        if not len(gaps) or gaps.max() - 1 <= outside:
            return [(first, last + 1)]
        widest = int(gaps.argmax())
        return [(first, int(used[widest]) + 1), (int(used[widest + 1]), last + 1)]

    def apply(self, values: NDArray[Any], axis: int, runs: Sequence[Run], lo: int, hi: int) -> NDArray[Any]:
        """Return the new values from `lo` up to `hi` along an axis.

        The sum is formed term by term, so that no bit depends on the number of new values.

        Parameters
        ----------
        values : array
            Old values of the runs, one run after the other.
        axis : int
        runs : sequence of (int, int)
            Runs of `needed`, or longer ones.
        lo, hi : int
        """
        read = np.concatenate([np.arange(first, end) for first, end in runs])
        shape = [1] * values.ndim
        shape[axis] = hi - lo
        total: Any = 0.0
        for index, weight in zip(self.index[lo:hi].T, self.weight[lo:hi].T, strict=True):
            there = np.take(values, np.searchsorted(read, index), axis=axis)
            total = total + weight.reshape(shape) * there
        return np.asarray(total)


def polynomial(
    old: NDArray[np.float64], new: NDArray[np.float64], count: int, period: float | None = None
) -> Weights:
    """Return weights of the polynomial through the `count` points nearest to each new coordinate.

    A new coordinate that equals an old one up to rounding has weight 1 there and 0 elsewhere. Without a
    period, the polynomial through the outermost points also serves coordinates beyond them.

    Parameters
    ----------
    old : array of float64 (points)
        Increasing coordinates, not necessarily evenly spaced.
    new : array of float64 (new values)
    count : int
        1 for the nearest point (of two that are equally near, the one with the lower coordinate), or an even
        number: 2 for linear and 4 for cubic interpolation. An axis with fewer points is interpolated through
        all of them.
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
    """Return the number of the point nearest to a coordinate; of two that are equally near, the lower one."""
    return int(polynomial(old, np.array([new], np.float64), 1, period).index[0, 0])


def _nearest_of_two(
    old: NDArray[np.float64], new: NDArray[np.float64], below: NDArray[np.int64], period: float | None
) -> NDArray[np.int64]:
    """Return the nearer of the points below and above each coordinate."""
    points = len(old)
    pair = np.stack([below, below + 1], axis=1)
    if period is None:
        pair = np.clip(pair, 0, points - 1)
    places = _lifted(old, pair, period)
    excess = (new - places[:, 0]) - (places[:, 1] - new)  # distance below minus above
    is_tie = np.abs(excess) <= SAME * (places[:, 1] - places[:, 0])
    pair %= points
    return np.where(is_tie, pair.min(axis=1), np.where(excess > 0.0, pair[:, 1], pair[:, 0]))


def _lifted(
    old: NDArray[np.float64], numbers: NDArray[np.int64], period: float | None
) -> NDArray[np.float64]:
    """Return the coordinates of points; their numbers may lie beyond the ends of a periodic axis."""
    places = old[numbers % len(old)]
    return places if period is None else places + period * (numbers // len(old))


def conservative(old: NDArray[np.float64], new: NDArray[np.float64], *, periodic: bool) -> Weights:
    """Averages over cells between these edges, both with the same first and last one."""
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
            # the slope times the distance of the overlap's centre from the cell's
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
        known = sorted(row)
        index[n] = known[0]
        index[n, : len(known)] = known
        weight[n, : len(known)] = [row[i] for i in known]
    return Weights(index, weight)


def same(old: NDArray[np.float64], new: NDArray[np.float64], length: float) -> bool:
    """Whether two lines have the same points."""
    return len(old) == len(new) and bool(np.all(np.abs(old - new) <= SAME * length))
