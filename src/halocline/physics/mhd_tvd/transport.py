"""Constrained transport: electromotive forces on edges advance the field on faces.

T. A. Gardiner and J. M. Stone, J. Comput. Phys. 205 (2005), 509 (GS05), and 227 (2008), 4123 (GS08). The
field obeys ∂b/∂t = -∇ × E, with the electromotive force E = -v × B. For each cell, an edge contributes to two
faces with opposite signs, so ∇·b is conserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halocline.lang.expression import Expr
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.grid import AXES, Vector
from halocline.lang.operators import shift
from halocline.lang.program import stage
from halocline.physics.mhd_tvd.gas import Flux, frame, ordered_sum


def at_cells(b: Vector, axes: int) -> Vector:
    """Return the field in cells. Components along axes of the grid are means of the values on two faces."""
    return Vector(0.5 * (b[a] + shift(b[a], a)) if a < axes else b[a] for a in range(3))


def edges(axes: int) -> list[int]:
    """Return the axes along which edges have a force: the grid must have the two other axes."""
    return [a for a in range(3) if all(other < axes for other in frame(a)[1:])]


def reference(v: Vector, B: Vector, axes: int) -> dict[int, Expr]:
    """Return -v × B of cells, by axis of the edges: E_z = v_y B_x - v_x B_y, and cyclic."""
    forces = {}
    for axis in edges(axes):
        _, x, y = frame(axis)
        forces[axis] = ordered_sum(v[y] * B[x], -(v[x] * B[y]))
    return forces


def at_edges(F: Sequence[Flux], cells: Mapping[int, Expr], name: str) -> dict[int, Expr]:
    """Return electromotive forces on edges (GS05, Equations 41 to 45 and 50; GS08, Section 3).

    Each of the four faces around an edge contributes its force, plus an estimate of the difference between
    the forces on edge and face. The estimate comes from the upwind cell. The result is the mean of the four
    contributions.

    Parameters
    ----------
    F : sequence of Flux
        Fluxes through the faces across each axis.
    cells : mapping of int to Expr
        Forces in cells, see `reference`.
    name : str
        Prefix of the names of the stages.
    """
    forces = {}
    for axis, cell in cells.items():
        _, x, y = frame(axis)
        # B_y is the first field component along faces across x; B_x is the second one along faces across y
        on_x, on_y = -F[x].By, F[y].Bz
        pairs = [
            symmetric_sum(*_edge_forces(F[x].rho, on_x, on_y, cell, x, y)),
            symmetric_sum(*_edge_forces(F[y].rho, on_y, on_x, cell, y, x)),
        ]
        place = f"edge-{AXES[axis]}"
        forces[axis] = stage(
            0.25 * symmetric_sum(*pairs), f"{name}_{AXES[axis]}", location=place, storage="patch"
        )
    return forces


def protect_edges(e: Mapping[int, Expr], safe: Sequence[Flux], bad: Expr, name: str) -> dict[int, Expr]:
    """Return the forces on edges; next to `bad` cells, the mean of the `safe` fluxes on all four faces.

    Next to these cells, the same fluxes then advance the field and the energy. Otherwise a change of the
    field on faces would reduce the pressure of a cell, because no energy flux would match this change.
    """
    forces = {}
    for axis, force in e.items():
        _, x, y = frame(axis)
        below = symmetric_sum(bad, shift(bad, x, -1))
        bad_cells = symmetric_sum(below, shift(below, y, -1))
        on_x, on_y = -safe[x].By, safe[y].Bz
        total = symmetric_sum(
            symmetric_sum(on_x, shift(on_x, y, -1)), symmetric_sum(on_y, shift(on_y, x, -1))
        )
        chosen = where(bad_cells > 0.0, 0.25 * total, force)
        place = f"edge-{AXES[axis]}"
        forces[axis] = stage(chosen, f"{name}_{AXES[axis]}", location=place, storage="patch")
    return forces


def _edge_forces(
    mass: Expr, along_force: Expr, across_force: Expr, cell: Expr, normal: int, along: int
) -> list[Expr]:
    """Return the forces at an edge from the two faces with normal `normal` that share the edge.

    The two faces are on both sides of the edge along the axis `along`.
    """
    forces = []
    for side in (-1, 0):
        flow, cell_force = shift(mass, along, side), shift(cell, along, side)
        below, above = (
            shift(across_force, normal, -1) - shift(cell_force, normal, -1),
            across_force - cell_force,
        )
        upwind = where(flow > 0.0, below, where(flow < 0.0, above, 0.5 * (below + above)))
        forces.append(shift(along_force, along, side) + upwind)
    return forces


def advance_field(b: Vector, e: Mapping[int, Expr], F: Sequence[Flux], ratios: Sequence[Expr]) -> Vector:
    """Return the field after a step of `ratios` = Δt/Δx along each axis.

    Forces on edges advance the components on faces. Fluxes between cells advance the components along axes
    that the grid lacks.
    """
    axes, new = len(ratios), []
    for a in range(3):
        _, y, z = frame(a)
        change = [ratios[n] * (shift(f, n) - f) for n, f in component_fluxes(F, a)] if a >= axes else []
        if a < axes and z in e:
            change.append(ratios[y] * (shift(e[z], y) - e[z]))
        if a < axes and y in e:
            change.append(ratios[z] * (e[y] - shift(e[y], z)))
        new.append(b[a] - symmetric_sum(*change) if change else b[a])
    return Vector(new)


def component_fluxes(F: Sequence[Flux], component: int) -> list[tuple[int, Expr]]:
    """Return pairs of an axis and the flux of a field component along this axis."""
    return [(n, f.By if frame(n)[1] == component else f.Bz) for n, f in enumerate(F) if n != component]
