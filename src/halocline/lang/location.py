"""Locations of the values of an expression on a grid.

A field that is read without an offset has the location of its points. The operands of one operation must
share a location. Numbers and scalars can be combined with values at every location. A derivative and a
coordinate have no fixed location. They take the location of the other operands, or of the field to which the
result is assigned.

A read at an explicit offset, ``u[1, 0]``, selects a point directly. An expression with such a read has no
location and is not checked. Derivatives of such an expression lie in cells if all its fields lie in cells.
Otherwise, the derivative raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.lang.axes import AXES
from halocline.words import short_repr

if TYPE_CHECKING:
    from halocline.lang.expression import Expr

# Per axis: staggered (True), not staggered (False), or independent of the location along that axis (None).
Place = tuple[bool | None, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """Locations at which an expression can be evaluated.

    Attributes
    ----------
    node : Expr
        Node without a location, evaluated at the first of `places`.
    places : mapping of Place to int
        Number of staggered differences in the value at each place. `sorted_places` defines their order.
    build : callable, optional
        ``build(place, *operands)`` returns the value at another place, from the operands at this place.
    operands : tuple of Expr
    """

    node: Expr
    places: Mapping[Place, int]
    build: Callable[..., Expr] | None = None
    operands: tuple[Expr, ...] = ()

    @property
    def first(self) -> Place:
        """Place that is used if no operand or target selects another place."""
        return next(iter(self.places))

    def nearest(self, place: Place) -> Place | None:
        """Return the first entry of `places` that agrees with `place`, or None if no entry agrees."""
        return next((candidate for candidate in self.places if merge(candidate, place) is not None), None)


def merge(a: Place, b: Place) -> Place | None:
    """Return the place that agrees with two places, or None if they differ along an axis."""
    flags = []
    for p, q in zip(a, b, strict=True):
        if p is not None and q is not None and p != q:
            return None
        flags.append(q if p is None else p)
    return tuple(flags)


def sorted_places(places: Mapping[Place, int]) -> dict[Place, int]:
    """Return places sorted by the number of staggered axes, then by the number of staggered differences."""

    def sort_key(place: Place) -> tuple[int, int, tuple[bool, ...]]:
        staggered = tuple(map(bool, place))
        return sum(staggered), places[place], staggered

    return {place: places[place] for place in sorted(places, key=sort_key)}


def common_places(operands: Sequence[Expr]) -> Mapping[Place, int] | None:
    """Return the places at which all operands can be evaluated.

    Return None if an operand reads at explicit offsets or belongs to another grid.

    Raises
    ------
    InputError
        Two operands lie at different locations.
    """
    varying = [e for e in operands if e.varies]
    placements = [e.placement for e in varying if e.placement is not None and e.grid is varying[0].grid]
    if len(placements) != len(varying):
        return None
    shared: Mapping[Place, int] = placements[0].places
    if len(shared) == 1 and all(other.places == shared for other in placements):
        return shared
    for number, (e, placement) in enumerate(zip(varying[1:], placements[1:], strict=True), 1):
        common = _intersection(shared, placement.places)
        if not common:
            _reject(varying[:number], e)
        shared = common
    return sorted_places(shared)


def _intersection(places: Mapping[Place, int], other_places: Mapping[Place, int]) -> dict[Place, int]:
    """Return the places that both mappings allow, with the minimum total number of staggered differences."""
    sums: dict[Place, int] = {}
    for (p, count), (q, more) in product(places.items(), other_places.items()):
        place = merge(p, q)
        if place is not None:
            sums[place] = min(count + more, sums.get(place, count + more))
    return sums


def have_common_place(operands: Iterable[Expr]) -> bool:
    """Return True if all operands that have a location can be formed at one place."""
    located = [(e.grid, e.placement.places) for e in operands if e.placement is not None]
    # operands of two grids are rejected elsewhere
    places = [places for grid, places in located if grid is located[0][0]]
    return not places or len(reduce(_intersection, places)) > 0


def _reject(previous: Sequence[Expr], e: Expr) -> None:
    """Raise InputError for an operand whose location differs from the location of a previous operand."""
    assert e.placement is not None
    places = e.placement.places
    conflicting = (
        o for o in previous if o.placement is not None and not _intersection(o.placement.places, places)
    )
    other = next(conflicting, previous[-1])
    assert other.placement is not None
    a, b = location(other.placement.first), location(e.placement.first)
    cell_advice = "" if "cell" in (a, b) else ", or both with hc.to(f, 'cell')"
    raise InputError(
        f"{other!r} lies at {a!r}, but {e!r} at {b!r}. Interpolate one of them with hc.to(f, {a!r}) or "
        f"hc.to(f, {b!r}){cell_advice}, or read points at explicit offsets, such as u{_offset(e)}."
    )


def _offset(e: Expr) -> str:
    """Return a zero offset as text, such as "[0, 0]"."""
    assert e.grid is not None
    return f"[{', '.join(['0'] * e.grid.ndim)}]"


def form_at(root: Expr, place: Place) -> Expr:
    """Return the node of an expression, formed at one of its places. The node has no location."""
    if root.placement is None:
        return root
    if root.placement.nearest(place) == root.placement.first:
        return root.placement.node
    results: dict[Expr, Expr] = {}
    stack = [root]
    while stack:
        e = stack[-1]
        nearest = None if e.placement is None else e.placement.nearest(place)
        if e.placement is None or nearest is None or nearest == e.placement.first:
            results[stack.pop()] = e if e.placement is None else e.placement.node
            continue
        missing = [o for o in e.placement.operands if o not in results]
        if missing:
            stack += missing
            continue
        assert e.placement.build is not None
        results[stack.pop()] = e.placement.build(nearest, *(results[o] for o in e.placement.operands))
    return results[root]


def form_at_target(root: Expr, staggered: Sequence[bool], target: str) -> Expr:
    """Return the node of an expression, formed at the points of its target. The node has no location.

    Parameters
    ----------
    root : Expr
    staggered : sequence of bool
        Axes along which the points of the target are staggered, as one flag per axis.
    target : str
        Name of the target, such as a field that is set, for messages.

    Raises
    ------
    InputError
        The expression lies at another location and cannot be formed at the points of the target.
    """
    if root.placement is None:
        return root
    if len(root.placement.first) != len(staggered):
        return root.placement.node  # expressions of another grid are rejected elsewhere
    if root.placement.nearest(tuple(staggered)) is None:
        a, b = location(root.placement.first), location(staggered)
        raise InputError(
            f"{target} lies at {b!r}, but {root!r} at {a!r}. Interpolate with hc.to(..., {b!r}), or read "
            f"points at explicit offsets, such as u{_offset(root)}."
        )
    return form_at(root, tuple(staggered))


def location(place: Iterable[bool | None]) -> str:
    """Return the name of the location of points that are staggered along the given axes."""
    staggered = tuple(map(bool, place))
    return next(name for name, flags in _staggering_by_location(len(staggered)).items() if flags == staggered)


@cache
def _staggering_by_location(ndim: int) -> dict[str, tuple[bool, ...]]:
    """Return the staggered axes of each location; edges may also lie along axes that the grid lacks."""
    along = {a: tuple(n == number for n in range(ndim)) for number, a in enumerate(AXES)}
    return {
        "cell": (False,) * ndim,
        **{f"face-{a}": flags for a, flags in along.items() if any(flags)},
        "node": (True,) * ndim,
        **{f"edge-{a}": tuple(not flag for flag in flags) for a, flags in along.items()},
    }


def staggering(location: str, ndim: int, label: str) -> tuple[bool, ...]:
    """Return the axes along which the points at a location are staggered.

    `label` names the object in messages.
    """
    if not isinstance(location, str):
        raise InputError(
            f"{label}: location is {short_repr(location)}; expected text such as 'cell' or 'face-x'"
        )
    if location in _staggering_by_location(ndim):
        return _staggering_by_location(ndim)[location]
    if location in _staggering_by_location(len(AXES)):
        raise InputError(f"{label}: location {location!r} names an axis that a grid of {ndim} axes lacks")
    known = ["cell", "node"] + [f"{k}-{a}" for k in ("face", "edge") for a in AXES[:ndim]]
    raise InputError(f"{label}: location {location!r} is unknown; expected one of {', '.join(known)}")


def locations(location: str | Sequence[str], count: int) -> list[str]:
    """Return the location of each component of a vector; "face" means "face-x" for the x component."""
    if not isinstance(location, (str, list, tuple)):
        raise InputError(
            f"location is {short_repr(location)}; expected text such as 'cell', or one for each component"
        )
    places = [location] * count if isinstance(location, str) else list(location)
    return [
        f"{place}-{AXES[i]}"
        if isinstance(place, str) and place in ("face", "edge") and i < len(AXES)
        else place
        for i, place in enumerate(places)
    ]
