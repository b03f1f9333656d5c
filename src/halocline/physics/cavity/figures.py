"""Figures of a cavity, including the walls: contours of temperature and pressure, and streamlines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Figure
from halocline.lang.grid import AXES, Field
from halocline.lang.weights import weights
from halocline.physics.cavity.contours import Contours, Isolines, Planes, Streamlines
from halocline.physics.cavity.flow import Flow
from halocline.run.fields.fields import Fields

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halocline.io.section import Section

    Array = NDArray[np.float64]


def figures_of(flow: Flow) -> dict[str, Callable[[Fields], Figure | None]]:
    """Return the figures of a flow by name, as functions of its simulation."""
    drawn = {"temperature-contours": temperature, "pressure-contours": pressure, "streamlines": streamlines}
    return {name: partial(figure, flow) for name, figure in drawn.items()}


COLD_TO_HOT = "RdBu_r"
ISOTHERMS, ISOBARS, STREAMS = 20, 16, 10  # numbers of intervals between contours
LEFT_OUT = "isobars, without the hydrostatic pressure"
SEEN = (1, -1, 1)  # visible walls on three axes: the upper one along x and z, the lower one along y


def temperature(flow: Flow, sim: Fields) -> Figure | None:
    """Return the figure of isotherms, on the first rank; None on other ranks.

    In 3D, the figure shows the mid-plane in y (Figure 3b of the paper).
    """
    plane = _temperature(flow, sim)
    return None if plane is None else Figure([_isotherms(flow, sim, plane, "isotherms")], columns=1)


def pressure(flow: Flow, sim: Fields) -> Figure | None:
    """Return the figure of isobars, on the first rank; None on other ranks.

    In 3D, one octant of the cavity is cut away. The figure shows isobars on three walls, and on the parts of
    the three mid-planes that bound this octant (Figure 3a of the paper).
    """
    p = flow.grid.fields["p"]
    if len(flow.grid.shape) == 2:
        plane = _midplane_section(flow, sim, p)
        if plane is None:
            return None
        isobars = Contours(
            _scale_by_width(flow, sim, _extend_to_walls(plane)), LEFT_OUT, "pressure p", ISOBARS
        )
        return Figure([isobars], columns=1)
    sections = [_scale_by_width(flow, sim, section) for section in _visible_planes(flow, sim, p)]
    x, y, z = (f"{a} / L" for a in AXES)
    return Figure([Planes(sections, (x, y, z), LEFT_OUT, "pressure p", ISOBARS)], 1) if sections else None


def streamlines(flow: Flow, sim: Fields) -> Figure | None:
    """Return the figure of streamlines over the temperature, on the first rank; None on other ranks.

    In 2D, streamlines are contours of the stream function. In 3D, they lie on the mid-plane in y. If the flow
    has the symmetry of the cavity, it does not cross this plane.
    """
    import numpy as np

    temperature_plane, fields = _temperature(flow, sim), flow.grid.fields
    u, w = (_midplane_section(flow, sim, fields[f"V_{a}"]) for a in ("x", AXES[len(flow.grid.shape) - 1]))
    if temperature_plane is None or u is None or w is None:
        return None
    u, w = (
        _scale_by_width(
            flow, sim, _add_wall_values(_add_wall_values(v, 0, _constant(0.0)), 1, _constant(0.0))
        )
        for v in (u, w)
    )
    if len(flow.grid.shape) == 3:
        is_at_rest = not (u.values.any() or w.values.any())
        title = "no streamlines, because nothing flows" if is_at_rest else "streamlines, over the temperature"
        drawn = replace(_isotherms(flow, sim, temperature_plane, title), over=Streamlines(u, w))
        return Figure([drawn], columns=1)
    psi = stream_function(u.values * (flow.values["L"] / flow.values["alpha"]), u.coordinates[1])
    most = float(np.abs(psi).max())
    levels = [most * k / STREAMS for k in range(1 - STREAMS, STREAMS) if k and most > 0.0]
    title = f"streamlines, at each tenth of max |ψ| = {most:.4g} α"
    if not levels:  # at the start, and after a step that changes only the vertical velocity
        title = "no streamlines, because ψ is 0 everywhere"
    over = Isolines(replace(u, name="psi", values=psi), levels)
    return Figure([replace(_isotherms(flow, sim, temperature_plane, title), over=over)], columns=1)


def stream_function(u: Array, y: Array) -> Array:
    """Return the stream function ψ, with u = ∂ψ/∂y and ψ = 0 on all walls, to second order.

    The integral of u from the lower wall and the integral from the upper wall differ by the flow through a
    column. This flow is zero except for the error of u. ψ equals the first integral near the lower wall
    and the second integral near the upper wall. The weights of both integrals have zero slope at the walls,
    so the velocity on the walls stays 0.

    Parameters
    ----------
    u : array of two axes
        Horizontal velocity, including the values on the walls.
    y : array
        Coordinates along the second axis.
    """
    import numpy as np

    steps = 0.5 * (u[:, 1:] + u[:, :-1]) * np.diff(y)
    psi: Array = np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0)))
    s = (y - y[0]) / (y[-1] - y[0])
    psi -= psi[:, -1:] * (s * s * (3.0 - 2.0 * s))
    return psi


def _temperature(flow: Flow, sim: Fields) -> Section | None:
    """Return the temperature with its values on the walls.

    In 2D, the section is the whole grid. In 3D, it is the mid-plane in y.
    """
    plane = _midplane_section(flow, sim, flow.grid.fields["T"])
    if plane is None:
        return None
    hot, cold = (_constant(flow.values[name]) for name in ("T_hot", "T_cold"))
    return _scale_by_width(flow, sim, _add_wall_values(_add_wall_values(plane, 1, no_flux), 0, hot, cold))


def _isotherms(flow: Flow, sim: Fields, plane: Section, title: str) -> Contours:
    cold, hot = flow.values["T_cold"], flow.values["T_hot"]
    levels = [cold + (hot - cold) * k / ISOTHERMS for k in range(ISOTHERMS)] + [hot]
    return Contours(plane, title, "temperature T", levels, COLD_TO_HOT)


# -- values on walls -----------------------------------------------------------------------------------------

# function that returns the values on a wall. Arguments: distances of points from the wall (nearest point
# first), and values at these points
OnWall = Callable[["Array", "Array"], Any]


def no_flux(distances: Array, values: Array) -> Array:
    """Return the values on a wall, extrapolated from two points by a parabola with zero slope at the wall.

    For evenly spaced points, this is (4 T_1 - T_2) / 3.
    """
    first_square, second_square = distances[0] ** 2, distances[1] ** 2
    wall_values: Array = (second_square * values[0] - first_square * values[1]) / (
        second_square - first_square
    )
    return wall_values


def parabola(distances: Array, values: Array) -> Array:
    """Return the values on a wall, extrapolated from three points by a parabola.

    For evenly spaced points, this is 3 p_1 - 3 p_2 + p_3.
    """
    first, second, third = map(float, weights(tuple(map(Fraction, distances[:3]))))
    wall_values: Array = first * values[0] + second * values[1] + third * values[2]
    return wall_values


def _extend_to_walls(plane: Section) -> Section:
    """Return a section of the pressure with its values on the walls."""
    return _add_wall_values(_add_wall_values(plane, 0, parabola), 1, parabola)


def _constant(value: float) -> OnWall:
    import numpy as np

    return lambda _, values: np.full_like(values[0], value)


def _add_wall_values(plane: Section, axis: int, lower: OnWall, upper: OnWall | None = None) -> Section:
    """Return a section with the values on both walls along an axis.

    By default, `upper` is the same function as `lower`.
    """
    import numpy as np

    values, line, (low, high) = np.moveaxis(plane.values, axis, 0), plane.coordinates[axis], plane.span[axis]
    first = lower(line - low, values)
    last = (upper or lower)(high - line[::-1], values[::-1])
    whole = np.concatenate([first[None], values, last[None]])
    coordinates = list(plane.coordinates)
    coordinates[axis] = np.array([low, *line, high])
    return replace(plane, values=np.moveaxis(whole, 0, axis), coordinates=tuple(coordinates))


# -- planes --------------------------------------------------------------------------------------------------


def _midplane_section(flow: Flow, sim: Fields, f: Field) -> Section | None:
    """Return a field on the whole grid in 2D, or on the mid-plane in y in 3D, without values on the walls."""
    from halocline.io.section import cut

    if len(flow.grid.shape) == 2:
        return cut(sim, f, {})
    return _plane_section(flow, sim, f, 1, 0.5 * flow.grid.extent[1], 2)


def _plane_section(flow: Flow, sim: Fields, f: Field, axis: int, at: float, points: int) -> Section | None:
    """Return a field on a plane across an axis, on the first rank; None on other ranks.

    A polynomial through the `points` nearest points along the axis interpolates the values. All ranks call
    this function.
    """
    import numpy as np

    from halocline.io.section import cut

    line = flow.grid.positions()[axis]
    nearest = tuple(Fraction(line[k]) for k in np.argsort(np.abs(line - at), kind="stable")[:points])
    plane: Section | None = None
    for weight, place in zip(map(float, weights(nearest, Fraction(at))), nearest, strict=True):
        if abs(weight) < 1e-9:  # the plane contains the other of two points
            continue
        part = cut(sim, f, {AXES[axis]: float(place)})
        if part is not None:
            values = weight * part.values + (0.0 if plane is None else plane.values)
            plane = replace(part, values=values, at=((AXES[axis], at),))
    return plane


def _visible_planes(flow: Flow, sim: Fields, p: Field) -> list[Section]:
    """Return the pressure on visible walls and mid-planes, on the first rank; an empty list on other ranks.

    Each of the three walls lacks the quarter next to their common corner. Each of the three mid-planes has
    only the quarter that is visible through this opening. All ranks call this function.
    """
    extent, sections = flow.grid.extent, []
    middle = [0.5 * length for length in extent]
    for axis, side in enumerate(SEEN):
        plane_axes = [a for a in range(3) if a != axis]
        for at, points in ((extent[axis] if side > 0 else 0.0, 3), (middle[axis], 2)):
            plane = _plane_section(flow, sim, p, axis, at, points)
            if plane is not None:
                sections.append(_cut_quarter(_extend_to_walls(plane), plane_axes, middle, inside=points == 2))
    return sections


def _cut_quarter(plane: Section, axes: Sequence[int], middle: Sequence[float], *, inside: bool) -> Section:
    """Return a plane in which one quarter (`inside`), or the other three quarters, keep their values.

    All other values are NaN.
    """
    import numpy as np

    beyond = []
    for number, axis in enumerate(axes):
        plane = _insert_line(plane, number, middle[axis])
        beyond.append((plane.coordinates[number] - middle[axis]) * SEEN[axis])
    across, up = np.meshgrid(*beyond, indexing="ij")
    is_drawn = (across >= 0.0) & (up >= 0.0) if inside else (across <= 0.0) | (up <= 0.0)
    return replace(plane, values=np.where(is_drawn, plane.values, np.nan))


def _insert_line(plane: Section, axis: int, at: float) -> Section:
    """Return a section with a line of points at the coordinate `at` along an axis.

    If the section already has this line within rounding errors, only its coordinate is set. Otherwise the
    values are interpolated between the two adjacent lines.
    """
    import numpy as np

    line = plane.coordinates[axis]
    nearest, k = int(np.abs(line - at).argmin()), int(np.searchsorted(line, at))
    coordinates, values = list(plane.coordinates), plane.values
    if abs(line[nearest] - at) <= 1e-9 * (line[-1] - line[0]):
        coordinates[axis] = np.where(np.arange(len(line)) == nearest, at, line)
    else:
        share = (at - line[k - 1]) / (line[k] - line[k - 1])
        between = (1.0 - share) * values.take(k - 1, axis) + share * values.take(k, axis)
        coordinates[axis], values = np.insert(line, k, at), np.insert(values, k, between, axis)
    return replace(plane, values=values, coordinates=tuple(coordinates))


def _scale_by_width(flow: Flow, sim: Fields, plane: Section) -> Section:
    """Return a section with lengths in units of the distance between the hot and the cold wall."""
    L = flow.grid.extent[0]
    return replace(
        plane,
        axes=tuple(f"{a} / L" for a in plane.axes),
        coordinates=tuple(line / L for line in plane.coordinates),
        span=tuple((low / L, high / L) for low, high in plane.span),
        at=tuple((f"{a} / L", x / L) for a, x in plane.at),
    )
