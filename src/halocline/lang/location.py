"""Locations of expressions on staggered grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr, Offset, as_expr, reads_of


def location_of(value: Any) -> str | None:
    """Return the location of the points that an expression has values at.

    The fields and located stages that are read symmetrically about the point decide, separately for each
    axis: ``2 * fx`` and ``fx[1, 0] - fx[-1, 0]`` lie where ``fx`` lies. Reads with other offsets name their
    points explicitly and decide only where there are no symmetric ones: ``fx[1, 0] - fx`` lies in the cells.

    Parameters
    ----------
    value : Field, Stage or expression

    Returns
    -------
    str or None
        "cell", "node", "face-x", ...; None for an expression that reads no field.

    Raises
    ------
    InputError
        Fields of different locations are read at the same point.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((8, 8))
    >>> fx = grid.field("fx", location="face-x")
    >>> location_of(fx**2), location_of(fx[1, 0] - fx)
    ('face-x', 'cell')
    """
    root = as_expr(value)
    offsets: dict[Any, list[Offset]] = {}
    for thing, offset in sorted(reads_of(root, located=True), key=lambda read: (read[0].name, read[1])):
        offsets.setdefault(thing, []).append(offset)
    if root.grid is None or not offsets:
        return None
    staggered = tuple(_on_faces(root, offsets, axis) for axis in range(root.grid.ndim))
    return next(
        (_location(thing) for thing in offsets if thing.staggered == staggered),
        root.grid.location_of(staggered),
    )


def _location(thing: Any) -> str:
    """Return the location of a field or of a stage that has one."""
    named = getattr(thing, "location", None)
    return str(thing.expr.grid.location_of(thing.staggered) if named is None else named)


def _on_faces(root: Expr, offsets: Mapping[Any, list[Offset]], axis: int) -> bool:
    """Return whether an expression belongs to faces along an axis."""
    # twice the distance from the point to the middle of the reads
    middles = {
        thing: min(offset[axis] for offset in reads) + max(offset[axis] for offset in reads)
        for thing, reads in offsets.items()
    }
    centred = [thing for thing, middle in middles.items() if middle == 0]
    for thing in centred:
        if thing.staggered[axis] != centred[0].staggered[axis]:
            first, second = (f"{each.name!r} ({_location(each)})" for each in (centred[0], thing))
            raise InputError(
                f"{root!r} reads {first} and {second} at the same point, but they lie half a cell apart; "
                "expected one location: average one of them onto the points of the other, such as "
                "0.5 * (f[1] + f) from faces onto cells"
            )
    if centred:
        return bool(centred[0].staggered[axis])
    return all(thing.staggered[axis] and middle % 2 == 0 for thing, middle in middles.items())
