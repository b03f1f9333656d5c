"""Locations: where the values of an expression lie on a grid.

A field read without an offset lies where its points do. Operands of one operation lie at one location. A read
at an explicit offset, ``u[1, 0]``, names its point: an expression with one has no location and is not
checked. Its derivatives lie in cells where all fields in it do, and are an error otherwise. Numbers and
scalars fit everywhere. A derivative and a coordinate can be formed at several locations and take the one of
the other operands, or of the field that is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.lang.axes import AXES

if TYPE_CHECKING:
    from halocline.lang.expression import Expr

# Per axis: staggered (True), not staggered (False), or independent of the location along that axis (None).
Place = tuple[bool | None, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """Locations at which the value of an expression can be formed.

    Attributes
    ----------
    bare : Expr
        The node without a location, formed at the first of `places`.
    places : mapping of Place to int
        Number of staggered differences in the value at each place, in the order of `sorted_places`.
    build : callable, optional
        ``build(place, *operands)`` forms the value at another place from the operands there.
    operands : tuple of Expr
    """

    bare: Expr
    places: Mapping[Place, int]
    build: Callable[..., Expr] | None = None
    operands: tuple[Expr, ...] = ()

    @property
    def first(self) -> Place:
        """Place that is taken where nothing else decides."""
        return next(iter(self.places))

    def nearest(self, place: Place) -> Place | None:
        """Return the first place that agrees with another one; None where none does."""
        return next((own for own in self.places if merged(own, place) is not None), None)


def merged(a: Place, b: Place) -> Place | None:
    """Return the place that agrees with both; None where they differ along an axis."""
    both = []
    for p, q in zip(a, b, strict=True):
        if p is not None and q is not None and p != q:
            return None
        both.append(q if p is None else p)
    return tuple(both)


def sorted_places(places: Mapping[Place, int]) -> dict[Place, int]:
    """Sort places by the number of staggered axes, then by the number of staggered differences."""

    def rank(place: Place) -> tuple[int, int, tuple[bool, ...]]:
        staggered = tuple(map(bool, place))
        return sum(staggered), places[place], staggered

    return {place: places[place] for place in sorted(places, key=rank)}


def common_places(operands: Sequence[Expr]) -> Mapping[Place, int] | None:
    """Return the places at which all operands can be formed.

    It is None where an operand reads at explicit offsets, or belongs to another grid.

    Raises
    ------
    InputError
        Two operands lie at different locations.
    """
    located = [e for e in operands if e.varies]
    placements = [e.placement for e in located if e.placement is not None and e.grid is located[0].grid]
    if len(placements) != len(located):
        return None
    shared: Mapping[Place, int] = placements[0].places
    if len(shared) == 1 and all(other.places == shared for other in placements):
        return shared
    for number, (e, placement) in enumerate(zip(located[1:], placements[1:], strict=True), 1):
        found = _shared(shared, placement.places)
        if not found:
            _reject(located[:number], e)
        shared = found
    return sorted_places(shared)


def _shared(places: Mapping[Place, int], others: Mapping[Place, int]) -> dict[Place, int]:
    """Return the places that agree with both, with the least sums of staggered differences."""
    found: dict[Place, int] = {}
    for (p, count), (q, more) in product(places.items(), others.items()):
        place = merged(p, q)
        if place is not None:
            found[place] = min(count + more, found.get(place, count + more))
    return found


def have_common_place(operands: Iterable[Expr]) -> bool:
    """Return True where all operands that have a location can be formed at one place."""
    located = [e for e in operands if e.placement is not None]
    shared: Mapping[Place, int] | None = None
    for e in located:
        if e.placement is None or e.grid is not located[0].grid:
            continue  # two grids are an error of their own
        shared = e.placement.places if shared is None else _shared(shared, e.placement.places)
    return shared is None or len(shared) > 0


def _reject(others: Sequence[Expr], e: Expr) -> None:
    """Raise the error for operands at different locations."""
    assert e.placement is not None
    other = next((o for o in others if not _agree(o, e)), others[-1])
    assert other.placement is not None
    a, b = location(other.placement.first), location(e.placement.first)
    both = "" if "cell" in (a, b) else ", or both, hc.to(f, 'cell')"
    raise InputError(
        f"{other!r} lies at {a!r}, but {e!r} at {b!r}. Interpolate one of them, hc.to(f, {a!r}) or "
        f"hc.to(f, {b!r}){both}, or name the points by explicit offsets, such as u{_offset(e)}."
    )


def _agree(a: Expr, b: Expr) -> bool:
    """Return True where two expressions can be formed at one place."""
    assert a.placement is not None
    assert b.placement is not None
    return any(merged(p, q) is not None for p, q in product(a.placement.places, b.placement.places))


def _offset(e: Expr) -> str:
    """Return the offset of a read in place, as a user writes it."""
    assert e.grid is not None
    return f"[{', '.join(['0'] * e.grid.ndim)}]"


def formed_at(root: Expr, place: Place) -> Expr:
    """Form an expression at a place that it has, and return it without a location."""
    if root.placement is None:
        return root
    if root.placement.nearest(place) == root.placement.first:
        return root.placement.bare
    done: dict[Expr, Expr] = {}
    stack = [root]
    while stack:
        e = stack[-1]
        where = None if e.placement is None else e.placement.nearest(place)
        if e.placement is None or where is None or where == e.placement.first:
            done[stack.pop()] = e if e.placement is None else e.placement.bare
            continue
        missing = [o for o in e.placement.operands if o not in done]
        if missing:
            stack += missing
            continue
        assert e.placement.build is not None
        done[stack.pop()] = e.placement.build(where, *(done[o] for o in e.placement.operands))
    return done[root]


def at_target(root: Expr, staggered: Sequence[bool], target: str) -> Expr:
    """Form an expression at the points of its target, and return it without a location.

    Parameters
    ----------
    root : Expr
    staggered : sequence of bool
        The axes that the points of the target are staggered along.
    target : str
        Name of the target, for messages.

    Raises
    ------
    InputError
        The expression lies at another location and cannot be formed at that of the target.
    """
    if root.placement is None:
        return root
    if len(root.placement.first) != len(staggered):
        return root.placement.bare  # of another grid, which is an error of its own
    if root.placement.nearest(tuple(staggered)) is None:
        a, b = location(root.placement.first), location(staggered)
        raise InputError(
            f"{target} lies at {b!r}, but {root!r} at {a!r}. Interpolate, hc.to(..., {b!r}), or name the "
            f"points by explicit offsets, such as u{_offset(root)}."
        )
    return formed_at(root, tuple(staggered))


def location(place: Iterable[bool | None]) -> str:
    """Return the name of the location of points that are staggered along these axes."""
    staggered = tuple(map(bool, place))
    ndim = len(staggered)
    kinds = (f"{kind}-{a}" for kind in ("face", "edge") for a in AXES[:ndim])
    known = sorted(["cell", "node", *kinds], key=lambda k: ("cell", "face", "node", "edge").index(k[:4]))
    return next(k for k in known if staggering(k, ndim, "") == staggered)


def staggering(location: str, ndim: int, what: str) -> tuple[bool, ...]:
    """Return the axes that points at a location are staggered along; `what` names the object in messages."""
    if location == "cell":
        return (False,) * ndim
    if location == "node":
        return (True,) * ndim
    kind, _, axis = location.partition("-")
    if kind in ("face", "edge") and axis in AXES and axis != "":
        number = AXES.index(axis)
        if kind == "face" and number >= ndim:
            raise InputError(f"{what}: location {location!r} names an axis that a grid of {ndim} axes lacks")
        return tuple((a == number) == (kind == "face") for a in range(ndim))
    known = ["cell", "node"] + [f"{k}-{a}" for k in ("face", "edge") for a in AXES[:ndim]]
    raise InputError(f"{what}: location {location!r} is unknown; expected one of {', '.join(known)}")


def locations(location: str | Sequence[str], count: int) -> list[str]:
    """Return the location of each component of a vector; "face" and "edge" stand for those of its axis."""
    places = [location] * count if isinstance(location, str) else list(location)
    return [
        f"{place}-{AXES[i]}" if place in ("face", "edge") and i < len(AXES) else place
        for i, place in enumerate(places)
    ]
