"""A plane or line of a distributed field on the first rank, thinned to what a picture can show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import as_expr
from halocline.lang.grid import AXES, Field, unknown
from halocline.lang.program import Program
from halocline.run.fields import Fields
from halocline.run.prepared import prepare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Section:
    """The values of a field along one or two axes.

    Attributes
    ----------
    name : str
        Of the field, or the text of the expression.
    values : array
        One axis, or two in the order of `axes`.
    axes : tuple of str
        The names of the axes along which the values lie.
    coordinates : tuple of array
        Of the points along each of them.
    span : tuple of (float, float)
        Where the domain begins and ends along each of them.
    at : tuple of (str, float)
        The other axes, and where they are cut.
    """

    name: str
    values: NDArray[Any]
    axes: tuple[str, ...]
    coordinates: tuple[NDArray[np.float64], ...]
    span: tuple[tuple[float, float], ...]
    at: tuple[tuple[str, float], ...]


def section(
    source: Any, what: Any, *, axis: str | None = None, at: float | None = None, most: int = 1024
) -> Section | None:
    """Gather a field for a picture; all ranks call this, and the first gets the section, the others None.

    Parameters
    ----------
    source : Simulation, LinearProblem, Solution or Fields
    what : Field, str or expression
    axis : {"x", "y", "z"}, optional
        In three dimensions: the axis that the plane is normal to, z by default.
    at : float, optional
        Where the plane cuts that axis; in the middle by default. The nearest points are taken.
    most : int
        Points along an axis beyond which only every second, third, ... is taken.

    Raises
    ------
    InputError
    """
    fields = fields_of(source)
    with _drawn(fields, what) as field:
        return _section(fields, field, _name(what), axis, at, most)


def _section(
    fields: Fields, field: Field, name: str, axis: str | None, at: float | None, most: int
) -> Section | None:
    grid = fields.grid
    points, positions = field.points, field.positions
    cut: dict[int, int] = {}
    if grid.ndim == 3:
        if axis is not None and axis not in AXES:
            raise unknown("axis", str(axis), list(AXES))
        normal = AXES.index(axis or "z")
        cut[normal] = _nearest(positions[normal], at, AXES[normal], grid.extent[normal])
    elif axis is not None or at is not None:
        raise InputError(f"axis and at choose a plane of a grid of three axes; this one has {grid.ndim}")
    kept = [a for a in range(grid.ndim) if a not in cut]
    steps = {a: -(-points[a] // most) for a in kept}
    values = _gather(fields, field, points, cut, steps)
    if values is None:
        return None
    return Section(
        name,
        values,
        tuple(AXES[a] for a in kept),
        tuple(positions[a][:: steps[a]] for a in kept),
        tuple((grid.origin[a], grid.origin[a] + grid.extent[a]) for a in kept),
        tuple((AXES[a], float(positions[a][i])) for a, i in cut.items()),
    )


def fields_of(source: Any) -> Fields:
    """The fields of a simulation, a linear problem or its solution."""
    fields = source if isinstance(source, Fields) else getattr(source, "fields", None)
    if not isinstance(fields, Fields):
        raise InputError(f"a picture of {source!r}: expected a Simulation, LinearProblem or Solution")
    return fields


def _name(what: Any) -> str:
    return what if isinstance(what, str) else what.name if isinstance(what, Field) else repr(what)


@contextmanager
def _drawn(fields: Fields, what: Any) -> Iterator[Field]:
    """What is drawn, as a field: it exists, or holds the values of an expression meanwhile."""
    if isinstance(what, str):
        found = fields.grid.fields.get(what)
        if found is None:
            raise unknown("field", what, sorted(fields.domain.storages))
        what = found
    if isinstance(what, Field):
        fields[what]  # an InputError where it has no memory; settles what it was set to
        yield what
        return
    expression = as_expr(what, "picture")
    if not expression.varies or expression.grid is not fields.grid:
        raise InputError(
            f"a picture of {what!r}: expected a field of {fields.grid!r} or an expression of them"
        )
    program = Program("picture")
    domain, drawn = fields.domain, fields.grid.field(program.fresh("_drawn"))
    try:
        with trace.tracing(program):
            drawn.set(expression)
        prepare(domain, program, fields.values).run(fields.values)
        yield drawn
    finally:
        fields.grid.fields.pop(drawn.name, None)
        domain.forget(drawn.name)


def _nearest(line: NDArray[np.float64], at: float | None, axis: str, extent: float) -> int:
    if at is None:
        return (len(line) - 1) // 2
    if not float(line[0]) - extent <= at <= float(line[-1]) + extent:
        raise InputError(f"at is {at!r}: axis {axis} has points from {line[0]:g} to {line[-1]:g}")
    return int(abs(line - at).argmin())


def _gather(
    fields: Fields, field: Field, points: tuple[int, ...], cut: dict[int, int], steps: dict[int, int]
) -> NDArray[Any] | None:
    """The chosen points of all ranks, on the first rank."""
    import numpy as np

    mine = []
    for origin, view in fields.views(field):
        chosen: list[Any] = []
        places = []
        for a, (first, n) in enumerate(zip(origin, view.shape, strict=True)):
            if a in cut:
                inside = first <= cut[a] < first + n
                chosen.append(slice(cut[a] - first, cut[a] - first + 1) if inside else slice(0, 0))
                places.append(0)
            else:
                skip = -first % steps[a]
                chosen.append(slice(skip, n, steps[a]))
                places.append((first + skip) // steps[a])
        mine.append((places, np.ascontiguousarray(view[tuple(chosen)])))
    pieces = fields.domain.comm.gather(mine)
    if pieces is None:
        return None
    shape = [1 if a in cut else -(-n // steps[a]) for a, n in enumerate(points)]
    whole = np.empty(shape, dtype=pieces[0][0][1].dtype)
    for place, piece in (found for each in pieces for found in each):
        whole[tuple(slice(p, p + n) for p, n in zip(place, piece.shape, strict=True))] = piece
    return whole.squeeze(axis=tuple(cut))
