"""Decompositions of a grid into one subdomain per rank.

Each cut crosses the whole grid. Therefore a subdomain has exactly one neighbour per direction. A
decomposition stores no data per rank: coordinates, boxes and neighbours are computed on request. The size of
a decomposition therefore does not depend on the number of subdomains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod

from halocline import ranges
from halocline.compile.footprint import Direction
from halocline.errors import InputError
from halocline.lang.axes import AXES, axis_flags, is_sequence, per_axis, whole_number
from halocline.lang.grid import checked_choice
from halocline.plan.box import Box
from halocline.plan.traffic import Traffic, exchange_cost
from halocline.words import suggestion

STRATEGIES = ("optimal", "bisection", "morton", "row", "1d", "1d-x", "1d-y", "1d-z", "2d", "3d")
LEVELS = ("node", "device")

Parts = tuple[int, ...]
Order = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Decomposition:
    """Grid cut into subdomains whose sizes along an axis differ by at most one cell.

    Parameters
    ----------
    shape : tuple of int
        Cells of the grid along each axis.
    parts : tuple of int
        Subdomains along each axis.
    periodic : tuple of bool
        True for each periodic axis.
    strategy : str
        Strategy that selected the parts.
    order : tuple of (axis, factor)
        Mixed-radix numbering of the ranks. Each entry gives one digit of the rank number; the first entry
        gives the most significant digit. The digits of an axis, in this order, form the coordinate along the
        axis. Depending on the entries, this is row-wise order, Z-order or the order of a recursive bisection.
    cost : int
        Exchange cost of the subdomain with the highest cost (`halocline.plan.traffic.exchange_cost`).
    """

    shape: tuple[int, ...]
    parts: Parts
    periodic: tuple[bool, ...]
    strategy: str
    order: Order
    cost: int

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of subdomains."""
        return prod(self.parts)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the position of the subdomain of `rank` among the parts of each axis."""
        if not 0 <= rank < self.count:
            raise IndexError(f"rank is {rank}; expected 0 to {self.count - 1}")
        coordinates, scale = [0] * self.ndim, [1] * self.ndim
        for axis, factor in reversed(self.order):
            rank, digit = divmod(rank, factor)
            coordinates[axis] += digit * scale[axis]
            scale[axis] *= factor
        return tuple(coordinates)

    def rank_of(self, coordinates: Sequence[int]) -> int:
        """Return the rank whose subdomain lies at `coordinates`."""
        if not all(0 <= c < p for c, p in zip(coordinates, self.parts, strict=True)):
            raise IndexError(
                f"coordinates are {tuple(coordinates)}, but there are {self.parts} subdomains along the axes"
            )
        rest, rank, place = list(coordinates), 0, 1
        for axis, factor in reversed(self.order):
            rest[axis], digit = divmod(rest[axis], factor)
            rank += digit * place
            place *= factor
        return rank

    def box(self, rank: int) -> Box:
        """Return the cells of the grid that `rank` owns, in global indices."""
        place = tuple(zip(self.coordinates(rank), self.shape, self.parts, strict=True))
        lo = tuple(c * n // p for c, n, p in place)
        return Box(lo, tuple((c + 1) * n // p for c, n, p in place))

    def neighbour(self, rank: int, direction: Direction) -> int | None:
        """Return the rank next to `rank` in `direction`; None behind a wall.

        A periodic axis wraps around. If one subdomain spans the axis, the neighbour is `rank` itself.
        """
        coordinates = []
        for c, d, p, wraps in zip(self.coordinates(rank), direction, self.parts, self.periodic, strict=True):
            if not wraps and not 0 <= c + d < p:
                return None
            coordinates.append((c + d) % p)
        return self.rank_of(coordinates)


def decompose(
    shape: Sequence[int],
    count: int,
    *,
    strategy: str | Sequence[int] | Mapping[str, int] = "optimal",
    radius: int | Sequence[int | tuple[int, int]] = 1,
    traffic: Traffic | None = None,
    thickness: int | Sequence[int] | None = None,
    periodic: bool | Sequence[bool] = True,
    level: str = "node",
) -> Decomposition:
    """Return a decomposition of a grid into `count` subdomains.

    Parameters
    ----------
    shape : sequence of int
        Cells along each of one to three axes. The last axis is contiguous in memory; the first axis has the
        largest stride.
    count : int
        Number of subdomains (ranks).
    strategy : str, or sequence or mapping of int
        ``optimal``
            Parts of minimum cost. For equal costs, the criteria are in this order: the smallest size of the
            largest subdomain, the fewest cuts of the last axis, the fewest cuts of the axis before it.
            Contiguous rows are thus cut last. Consecutive ranks are close in the grid: all ranks with the
            same first digits form a block.
        ``bisection``
            The count is divided into its prime factors. Each factor, largest first, cuts the axis along which
            subdomains are then longest (Pearson et al. 2020, Fig. 4). Of equally long axes, the first is cut.
        ``morton``
            The axes are halved in turn, starting with the first axis. Ranks are in Z-order: the binary digits
            abcdef of a rank are the coordinates cf, be, ad (Astaroth, Section 3.3). The count must be a power
            of two.
        ``row``
            Parts of `optimal`, with ranks in row-major order (the last axis varies fastest).
        ``1d``, ``1d-x``, ``1d-y``, ``1d-z``
            One axis is cut: the named axis, or the axis of largest stride (x).
        ``2d``, ``3d``
            The first two (three) axes are cut as evenly as the count allows. The axis of largest stride has
            the most cuts.
        ``"4x2x1"``, ``(4, 2, 1)`` or ``{"x": 4, "y": 2}``
            The given parts, in row-major order. Axes that a mapping omits are not cut.
    radius : int, or sequence or mapping of int or (lower, upper)
        Halo layers that the cost counts, in all halo segments. The default of `thickness` follows from these
        layers.
    traffic : Traffic, optional
        Actual exchange volume, used instead of `radius`; see `Traffic.of_schedule`.
    thickness : int, or sequence or mapping of int, optional
        Minimum number of cells of a subdomain along an axis that is cut or periodic.
    periodic : bool, sequence or mapping of bool, or names of axes
        Periodic axes. At the device level: axes whose ends border on other nodes.
    level : str
        ``node`` or ``device``: the cost function, see `halocline.plan.traffic.exchange_cost`.

    Raises
    ------
    InputError
        An argument is invalid, or the axes cannot be cut into `count` subdomains.
    """
    ndim = ranges.AXES.check("number of axes", len(shape))
    cells = tuple(
        ranges.POINTS.check(f"number of cells along axis {axis}", n)
        for axis, n in zip(AXES, shape, strict=False)
    )
    count = ranges.POINTS.check("number of subdomains", count)
    wraps = axis_flags(periodic, ndim, "periodic")
    checked_choice("level", level, LEVELS)
    if traffic is None:
        traffic = Traffic.of_radius(radius, ndim)
    if thickness is None:
        thickness = [max(1, *layers) for layers in traffic.layers]
    least = per_axis(thickness, ndim, "thickness", whole_number, "a whole number of cells")
    problem = _Problem(cells, count, wraps, tuple(max(1, t) for t in least))

    cost = exchange_cost(traffic, cells, wraps, level)
    parts, order = _choose(problem, strategy, cost)
    name = strategy if isinstance(strategy, str) else "x".join(map(str, parts))
    return Decomposition(cells, parts, wraps, name, order, cost(parts))


@dataclass(frozen=True)
class _Problem:
    """Grid to be cut, with the number of subdomains and their minimum thickness along axes with halos."""

    shape: tuple[int, ...]
    count: int
    periodic: tuple[bool, ...]
    thickness: tuple[int, ...]

    def __post_init__(self) -> None:
        for axis, wraps in enumerate(self.periodic):
            if wraps:
                self.check(axis, 1)

    @property
    def limits(self) -> Parts:
        """Maximum number of subdomains along each axis."""
        return tuple(max(1, n // t) for n, t in zip(self.shape, self.thickness, strict=True))

    def check(self, axis: int, parts: int) -> None:
        """Raise InputError if `axis` cannot be cut into `parts`."""
        if parts == 1 and not self.periodic[axis]:
            return
        n, least, name = self.shape[axis], self.thickness[axis], AXES[axis]
        if n // parts >= least:
            return
        if parts == 1:
            raise InputError(
                f"axis {name} has {_cell_count(n)}, but reads across its periodic ends reach "
                f"{_cell_count(least)}: make the axis at least {_cell_count(least)} long"
            )
        reason = " each (the reach of reads from neighbours)" if least > 1 else ""
        raise InputError(
            f"axis {name} with {_cell_count(n)} cannot be cut into {parts} subdomains of at least "
            f"{_cell_count(least)}{reason}. Use at most {max(1, n // least)}, "
            f"or make the axis at least {_cell_count(parts * least)} long"
        )

    def factorisations(self) -> Iterator[Parts]:
        """Return all factorisations of the count into parts that fit the axes."""
        return _factorisations(self.count, self.limits)

    def error(self) -> InputError:
        """Return the error for a count without a factorisation that fits."""
        limits = self.limits
        fitting = min(self.count, prod(limits))
        while next(_factorisations(fitting, limits), None) is None:
            fitting -= 1
        axes = ", ".join(
            f"axis {AXES[axis]} ({_cell_count(self.shape[axis])}, subdomains of at least "
            f"{self.thickness[axis]}) into at most {limit}"
            for axis, limit in enumerate(limits)
        )
        return InputError(
            f"the grid cannot be cut into {self.count} subdomains, because it can only be cut along {axes}. "
            f"The next smaller count that fits is {fitting}."
        )


def _choose(
    problem: _Problem, strategy: str | Sequence[int] | Mapping[str, int], cost: Callable[[Parts], int]
) -> tuple[Parts, Order]:
    """Return the parts and the order of ranks of a strategy."""
    if isinstance(strategy, Mapping):
        axes = len(problem.shape)
        return _parts_of_user(
            problem, per_axis(strategy, axes, "decomposition", whole_number, "a whole number", default=1)
        )
    if is_sequence(strategy):
        return _parts_of_user(
            problem, tuple(ranges.POINTS.check("number of subdomains along an axis", p) for p in strategy)
        )
    if not isinstance(strategy, str):
        raise InputError(
            f"decomposition {strategy!r}: expected one of {', '.join(STRATEGIES)}, or the subdomains along "
            "each axis, such as 4x2x1 or (4, 2, 1)"
        )
    if re.fullmatch(r"\d+(x\d+)*", strategy):
        return _parts_of_user(problem, tuple(map(int, strategy.split("x"))))
    match strategy:
        case "optimal" | "row":
            parts = _optimal(problem, cost)
            return parts, _row_wise(parts) if strategy == "row" else bisected(problem.shape, parts)
        case "bisection":
            return _bisection(problem)
        case "morton":
            return _morton(problem)
        case "1d":
            return _one_axis(problem, 0)
        case "1d-x" | "1d-y" | "1d-z":
            return _one_axis(problem, AXES.index(strategy[-1]))
        case "2d" | "3d":
            return _even(problem, int(strategy[0]))
    raise InputError(
        f"unknown decomposition {strategy!r}{suggestion(strategy.lower(), STRATEGIES)}; "
        f"expected one of {', '.join(STRATEGIES)}, or the subdomains along each axis, such as 4x2x1"
    )


def _optimal(problem: _Problem, cost: Callable[[Parts], int]) -> Parts:
    """Return the parts of minimum cost; for equal costs, prefer smaller subdomains, then uncut rows."""

    def rank(parts: Parts) -> tuple[int, int, Parts]:
        work = prod([-(-n // p) for n, p in zip(problem.shape, parts, strict=True)])
        return cost(parts), work, parts[::-1]

    best = min(problem.factorisations(), key=rank, default=None)
    if best is None:
        raise problem.error()
    return best


def _bisection(problem: _Problem) -> tuple[Parts, Order]:
    """Cut the longest axis by each prime factor of the count, largest first."""
    shape, limits = problem.shape, problem.limits
    parts, order = [1] * len(shape), []
    for factor in reversed(prime_factors(problem.count)):
        able = [axis for axis, limit in enumerate(limits) if parts[axis] * factor <= limit]
        if not able:
            if next(problem.factorisations(), None) is None:
                raise problem.error()
            done = "x".join(map(str, parts))
            raise InputError(
                f"decomposition 'bisection' into {problem.count} subdomains stops at {done}, because no "
                f"axis can be cut further by {factor}; decomposition 'optimal' can cut this grid"
            )
        axis = _longest(shape, parts, able)
        parts[axis] *= factor
        order.append((axis, factor))
    return tuple(parts), tuple(order)


def bisected(shape: tuple[int, ...], parts: Parts) -> Order:
    """Return the rank order of the recursive bisection that divides a grid of this shape into `parts`."""
    remaining = [prime_factors(p) for p in parts]
    cut, order = [1] * len(parts), []
    while any(remaining):
        axis = _longest(shape, cut, [axis for axis, factors in enumerate(remaining) if factors])
        factor = remaining[axis].pop()
        cut[axis] *= factor
        order.append((axis, factor))
    return tuple(order)


def _longest(shape: Sequence[int], parts: Sequence[int], axes: Sequence[int]) -> int:
    """Return the axis along which subdomains are longest; the first of equal axes."""
    return max(axes, key=lambda axis: Fraction(shape[axis], parts[axis]))


def _morton(problem: _Problem) -> tuple[Parts, Order]:
    """Halve the axes in turn; the last bit of a rank belongs to the first axis."""
    ndim, bits = len(problem.shape), problem.count.bit_length() - 1
    if problem.count != 1 << bits:
        raise InputError(
            f"decomposition 'morton' needs a power of two, but there are {problem.count} subdomains. "
            f"Use {1 << bits} or {2 << bits} subdomains, or decomposition 'bisection'"
        )
    parts = tuple(1 << len(range(axis, bits, ndim)) for axis in range(ndim))
    _check(problem, parts)
    return parts, tuple((bit % ndim, 2) for bit in reversed(range(bits)))


def _one_axis(problem: _Problem, axis: int) -> tuple[Parts, Order]:
    ndim = len(problem.shape)
    if axis >= ndim:
        raise InputError(
            f"decomposition '1d-{AXES[axis]}' cuts axis {AXES[axis]}, but the grid has only the axes "
            f"{', '.join(AXES[:ndim])}"
        )
    return _parts_of_user(problem, tuple(problem.count if a == axis else 1 for a in range(ndim)))


def _even(problem: _Problem, axes: int) -> tuple[Parts, Order]:
    """Cut the first `axes` axes as evenly as possible; earlier axes have more parts."""
    ndim = len(problem.shape)
    if axes > ndim:
        raise InputError(
            f"decomposition '{axes}d' cuts {axes} axes, but the grid has only {ndim}: "
            f"{', '.join(AXES[:ndim])}"
        )
    limits = problem.limits[:axes] + (1,) * (ndim - axes)

    def unevenness(parts: Parts) -> tuple[list[int], Parts]:
        return sorted(parts, reverse=True), parts[::-1]

    parts = min(_factorisations(problem.count, limits), key=unevenness, default=None)
    if parts is None:
        raise _Problem(
            problem.shape[:axes], problem.count, problem.periodic[:axes], problem.thickness[:axes]
        ).error()
    return parts, _row_wise(parts)


def _parts_of_user(problem: _Problem, parts: Parts) -> tuple[Parts, Order]:
    """Check parts that the user specifies."""
    text = "x".join(map(str, parts))
    if len(parts) != len(problem.shape):
        raise InputError(
            f"decomposition {text} has numbers for {len(parts)} axes, but the grid has {len(problem.shape)}"
        )
    if prod(parts) != problem.count or min(parts) < 1:
        raise InputError(
            f"decomposition {text} has {prod(parts)} subdomains, but {problem.count} are needed: use numbers "
            f"whose product is {problem.count}"
        )
    _check(problem, parts)
    return parts, _row_wise(parts)


def _check(problem: _Problem, parts: Parts) -> None:
    for axis, p in enumerate(parts):
        problem.check(axis, p)


def _row_wise(parts: Parts) -> Order:
    return tuple((axis, p) for axis, p in enumerate(parts) if p > 1)


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of a positive number, in ascending order."""
    factors, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    return factors + [number] * (number > 1)


def _factorisations(number: int, limits: Sequence[int]) -> Iterator[Parts]:
    """Return an iterator over all tuples of divisors with product `number` and entries up to `limits`."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    divisors = small + [number // d for d in reversed(small) if d * d != number]

    def split(rest: int, limits: Sequence[int]) -> Iterator[Parts]:
        if len(limits) == 1:
            if rest <= limits[0]:
                yield (rest,)
            return
        largest_rest = prod(limits[1:])
        for d in divisors:
            if d > limits[0]:
                break
            if rest % d == 0 and rest // d <= largest_rest:
                for parts in split(rest // d, limits[1:]):
                    yield (d, *parts)

    return split(number, limits)


def _cell_count(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"
