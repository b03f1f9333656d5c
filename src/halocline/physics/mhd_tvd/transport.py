"""Constrained transport: the field on faces, moved by electromotive forces on edges.

T. A. Gardiner and J. M. Stone, J. Comput. Phys. 205 (2005), 509 (GS05), and 227 (2008), 4123 (GS08). With the
force of E = -v × B the field obeys ∂b/∂t = -∇ × E. Each edge counts for the faces on both its sides, once
with each sign, so that ∇·b stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halocline.lang.expression import Expr
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.grid import AXES, Vector
from halocline.lang.operators import shift
from halocline.lang.program import stage
from halocline.physics.mhd_tvd.gas import Flux, added, frame


def at_cells(b: Vector, axes: int) -> Vector:
    """The field of cells: along axes of the grid the mean of both faces."""
    return Vector(0.5 * (b[a] + shift(b[a], a)) if a < axes else b[a] for a in range(3))


def edges(axes: int) -> list[int]:
    """Along which axes edges have a force: those whose two other axes are in the grid."""
    return [a for a in range(3) if all(other < axes for other in frame(a)[1:])]


def reference(v: Vector, B: Vector, axes: int) -> dict[int, Expr]:
    """-v × B of cells, along the edges: E_z = v_y B_x - v_x B_y, and so on in turn."""
    found = {}
    for axis in edges(axes):
        _, x, y = frame(axis)
        found[axis] = added(v[y] * B[x], -(v[x] * B[y]))
    return found


def at_edges(F: Sequence[Flux], cells: Mapping[int, Expr], name: str) -> dict[int, Expr]:
    """Electromotive forces on edges (GS05, Equations 41 to 45 and 50; GS08, Section 3).

    Each of the four faces around an edge gives the force on it, and the difference from there to the edge as
    it is in the cell that the gas comes from. The result is their mean.

    Parameters
    ----------
    F : sequence of Flux
        Through the faces across each axis.
    cells : mapping of int to Expr
        The forces in cells, see `reference`.
    name : str
        Of the stages.
    """
    found = {}
    for axis, cell in cells.items():
        _, x, y = frame(axis)
        # B_y goes through faces across x as the first field along them, B_x through those across y as the
        # second
        on_x, on_y = -F[x].By, F[y].Bz
        pairs = [
            symmetric_sum(*_towards(F[x].rho, on_x, on_y, cell, x, y)),
            symmetric_sum(*_towards(F[y].rho, on_y, on_x, cell, y, x)),
        ]
        place = f"edge-{AXES[axis]}"
        found[axis] = stage(
            0.25 * symmetric_sum(*pairs), f"{name}_{AXES[axis]}", location=place, storage="patch"
        )
    return found


def protected(e: Mapping[int, Expr], safe: Sequence[Flux], bad: Expr, name: str) -> dict[int, Expr]:
    """The forces on edges; beside cells that are `bad` the mean of those by safe fluxes of all four faces.

    So what moves the field there is what moves the energy: else the field, which lies on faces, would take
    from the pressure of a cell what no flux has brought to it.
    """
    found = {}
    for axis, own in e.items():
        _, x, y = frame(axis)
        below = symmetric_sum(bad, shift(bad, x, -1))
        beside = symmetric_sum(below, shift(below, y, -1))
        on_x, on_y = -safe[x].By, safe[y].Bz
        total = symmetric_sum(
            symmetric_sum(on_x, shift(on_x, y, -1)), symmetric_sum(on_y, shift(on_y, x, -1))
        )
        chosen = where(beside > 0.0, 0.25 * total, own)
        place = f"edge-{AXES[axis]}"
        found[axis] = stage(chosen, f"{name}_{AXES[axis]}", location=place, storage="patch")
    return found


def _towards(mass: Expr, own: Expr, across: Expr, cell: Expr, normal: int, along: int) -> list[Expr]:
    """The forces at an edge by the two faces across `normal` that meet at it, one on each side along
    `along`."""
    found = []
    for side in (-1, 0):
        flow, there = shift(mass, along, side), shift(cell, along, side)
        below, above = shift(across, normal, -1) - shift(there, normal, -1), across - there
        upwind = where(flow > 0.0, below, where(flow < 0.0, above, 0.5 * (below + above)))
        found.append(shift(own, along, side) + upwind)
    return found


def advanced(b: Vector, e: Mapping[int, Expr], F: Sequence[Flux], ratios: Sequence[Expr]) -> Vector:
    """The field after a step of `ratios` = Δt/Δx along each axis: on faces by the edges around them, of
    components along an axis that the grid lacks by the fluxes between cells."""
    axes, new = len(ratios), []
    for a in range(3):
        _, y, z = frame(a)
        change = [ratios[n] * (shift(f, n) - f) for n, f in carried(F, a)] if a >= axes else []
        if a < axes and z in e:
            change.append(ratios[y] * (shift(e[z], y) - e[z]))
        if a < axes and y in e:
            change.append(ratios[z] * (e[y] - shift(e[y], z)))
        new.append(b[a] - symmetric_sum(*change) if change else b[a])
    return Vector(new)


def carried(F: Sequence[Flux], component: int) -> list[tuple[int, Expr]]:
    """The fluxes of a component of the field, with the axis that each goes along."""
    return [(n, f.By if frame(n)[1] == component else f.Bz) for n, f in enumerate(F) if n != component]
