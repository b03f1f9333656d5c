"""Data volume of halo exchanges, and the exchange cost of a decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from operator import mul

from halocline.compile.footprint import Direction, Footprint
from halocline.compile.schedule import Loop, Schedule, Sweep, flat
from halocline.errors import InputError
from halocline.lang.axes import is_sequence, per_axis, whole_number
from halocline.lang.dtype import ITEMSIZE


@dataclass(frozen=True)
class Traffic:
    """Data volume of one exchange of all fields, independent of the size of a subdomain.

    Parameters
    ----------
    weights : tuple of (direction, weight)
        Volume per halo segment. The weight is the product of the widths of the segment, times the bytes of a
        cell, summed over the fields. The weight applies to each cell of the side (edge, corner) of the
        subdomain.
    layers : tuple of (int, int)
        Maximum halo width (lower, upper) along each axis, in cells.
    """

    weights: tuple[tuple[Direction, int], ...]
    layers: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, footprints: Iterable[tuple[Footprint, int]], ndim: int) -> Traffic:
        """Return the total traffic of `footprints`; each footprint has a number of bytes per cell."""
        weights: dict[Direction, int] = {}
        union = Footprint()
        for footprint, bytes_per_cell in footprints:
            union |= footprint
            for direction, width in footprint:
                layers = prod(w for w, d in zip(width, direction, strict=True) if d)
                weights[direction] = weights.get(direction, 0) + layers * bytes_per_cell
        return cls(tuple(sorted(weights.items())), union.layers(ndim))

    @classmethod
    def of_radius(cls, radius: int | Sequence[int | tuple[int, int]], ndim: int) -> Traffic:
        """Return the traffic of all segments of a halo of `radius` layers; each cell has the weight 1.

        The radius is a whole number or a pair (lower, upper), for all axes or per axis. The function raises
        InputError for other values and for negative values.
        """
        layers = per_axis(radius, ndim, "radius", _layers, "a whole number of layers, or (lower, upper)")
        if any(min(pair) < 0 for pair in layers):
            raise InputError(f"radius {radius!r} is negative")
        corners = product(*((-lower, upper) for lower, upper in layers))
        return cls.of([(Footprint.from_offsets(corners), 1)], ndim)

    @classmethod
    def of_schedule(cls, schedule: Schedule) -> Traffic:
        """Return the traffic of the exchanges in the loops of `schedule`; without loops, of all exchanges."""
        loops = [operation for operation in schedule.operations if isinstance(operation, Loop)]
        repeated = [operation for operation in flat(loops) if isinstance(operation, Sweep)]
        exchanged = [item for sweep in repeated or schedule.sweeps() for item in sweep.exchange.items()]
        sized = ((footprint, ITEMSIZE[schedule.fields[field].dtype]) for field, footprint in exchanged)
        return cls.of(sized, schedule.ndim)


def _layers(radius: object) -> tuple[int, int] | None:
    """Return the lower and upper layers of one axis, or None if they are not whole numbers."""
    if not is_sequence(radius):
        lower = upper = whole_number(radius)
    else:
        numbers = [whole_number(number) for number in radius]  # type: ignore[attr-defined]
        lower, upper = numbers if len(numbers) == 2 else (None, None)
    return None if lower is None or upper is None else (lower, upper)


Sides = tuple[int, ...]  # sides along one axis
NEITHER: Sides = ()
LOWER: Sides = (-1,)
UPPER: Sides = (1,)
BOTH: Sides = (-1, 1)


def exchange_cost(
    traffic: Traffic, shape: Sequence[int], periodic: Sequence[bool], level: str
) -> Callable[[Sequence[int]], int]:
    """Return a function that maps the parts along each axis to the maximum exchange volume of a subdomain.

    ``level="node"``: sent and received volume, 2 (C_M' - C_N') of Astaroth (Pekkilä et al., Eq. 7), with the
    segments, widths and bytes of `traffic`. Both sides of a periodic axis count, even if one subdomain spans
    the axis. A transfer from the subdomain to itself then fills these halo cells. No halo is received at
    walls: with two subdomains along an axis with walls, only one side of each subdomain counts.

    ``level="device"``: volume that a device of a node receives from other nodes, C_M'' - C_L'' (Eqs. 10-12).
    Here, `shape` is the part of the grid on one node, and an axis counts as periodic if its ends border on
    other nodes. With more than one device along the axis, one of the two sides of a device is inside the node
    in the worst case.

    If subdomains differ in size, the cost assumes the largest size along each axis.
    """
    ndim = len(shape)
    weights = traffic.weights

    def coefficients(sides: Sequence[Sides]) -> list[int]:
        """Return the total weight of the segments on `sides`, for each set of normal axes (as bits)."""
        sums = [0] * 2**ndim
        for direction, weight in weights:
            if all(d == 0 or d in axis_sides for d, axis_sides in zip(direction, sides, strict=True)):
                sums[sum(1 << axis for axis, d in enumerate(direction) if d)] += weight
        return sums

    def sides(parts: int, wraps: bool) -> list[tuple[Sides, Sides]]:
        """Return all sides and those within the node, for each position of a subdomain; 3 means 3 or more."""
        if wraps:
            return [(BOTH, NEITHER)] if parts == 1 else [(BOTH, LOWER), (BOTH, UPPER)]
        ends = {1: [NEITHER], 2: [LOWER, UPPER], 3: [BOTH]}[parts]
        return [(end, end) for end in ends]

    @cache
    def alternatives(regime: tuple[int, ...]) -> list[list[int]]:
        """Return the coefficients of all possible positions of a subdomain, without duplicates."""
        unique_sums = []
        for position in product(*map(sides, regime, periodic)):
            sums = coefficients([all_sides for all_sides, _ in position])
            if level == "node":
                sums = [2 * weight for weight in sums]
            else:
                local = coefficients([local_sides for _, local_sides in position])
                sums = [a - b for a, b in zip(sums, local, strict=True)]
            if sums not in unique_sums:
                unique_sums.append(sums)
        return unique_sums

    def cost(parts: Sequence[int]) -> int:
        areas = [1]  # product of the sizes along the tangential axes, for each set of normal axes
        for n, p in zip(shape, parts, strict=True):
            size = -(-n // p)
            areas = [area * size for area in areas] + areas
        regime = tuple([p if p < 3 else 3 for p in parts])
        most: int = max([sum(map(mul, sums, areas)) for sums in alternatives(regime)])
        return most

    return cost
