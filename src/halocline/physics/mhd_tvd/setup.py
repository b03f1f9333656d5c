"""Initial states of the scheme: coordinates, magnetic fields from potentials, conserved fields, and checks.

`Direction` rotates a problem that depends on one coordinate, for a grid of one to three axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.callables import argument_count
from halocline.lang.expression import Expr, Operand, as_expr, index
from halocline.lang.functions import where
from halocline.lang.grid import Field, Grid, Vector
from halocline.lang.operators import shift
from halocline.lang.reductions import first
from halocline.lang.reductions import sum as total
from halocline.physics.mhd_tvd.gas import energy
from halocline.physics.mhd_tvd.scheme import IdealMHD
from halocline.physics.mhd_tvd.transport import at_cells
from halocline.run.simulation.events import cell_at


def centred(grid: Grid, staggered: Sequence[bool] | None = None) -> tuple[Expr, ...]:
    """Return coordinates relative to the middle of the grid.

    The coordinates of two mirrored points differ only in sign, bit for bit. This does not hold for
    coordinates that are computed from the origin of the grid.
    """
    places = staggered or (False,) * grid.ndim
    ends = [(0.0 if face else 0.5) - n / 2 for n, face in zip(grid.shape, places, strict=True)]
    return tuple((index(grid, a) + end) * grid.h(a) for a, end in enumerate(ends))


def curl(
    grid: Grid,
    potential: Callable[..., Sequence[Operand]],
    coordinates: Callable[[Grid, Sequence[bool]], Sequence[Expr]] = Grid.coordinates,
) -> Vector:
    """Return the field on faces from a vector potential on edges, so that ∇·b is 0 up to rounding errors.

    ``potential(x, ...)`` returns the three components of the potential. It has one argument for each axis of
    the grid. Components along axes that the grid lacks are stored in cells.
    """
    axes = grid.ndim
    argument_count(
        potential, "the vector potential", (axes,), f"as many coordinates as the grid has axes, {axes}"
    )
    A = []
    for component in range(3):
        edge = [axis != component for axis in range(axes)]
        A.append(as_expr(trace.call(potential, *coordinates(grid, edge))[component]))
    components = []
    for a in range(3):
        y, z = (a + 1) % 3, (a + 2) % 3
        b = as_expr(0.0)
        if y < axes:
            b = b + (shift(A[z], y) - A[z]) / grid.h(y)
        if z < axes:
            b = b - (shift(A[y], z) - A[y]) / grid.h(z)
        components.append(b)
    return Vector(components)


def conserved(
    mhd: IdealMHD, rho: Operand, v: Sequence[Operand], p: Operand, b: Sequence[Operand]
) -> dict[Field, Expr]:
    """Return the conserved fields of a state.

    Density, velocity and pressure are values of cells. The magnetic field has the locations of `IdealMHD.b`.
    """
    faces = Vector(as_expr(c) for c in b)
    rho, p, v = as_expr(rho), as_expr(p), Vector(as_expr(c) for c in v)
    B = at_cells(faces, mhd.axes)
    fields = {mhd.rho: rho, mhd.E: energy(rho, v, B, p)}
    fields |= {m: rho * c for m, c in zip(mhd.m, v, strict=True)}
    return fields | dict(zip(mhd.b, faces, strict=True))


def check_positive(sim: Any, mhd: IdealMHD) -> None:
    """Raise InputError if density or pressure is not positive at the start.

    The message contains the index and the value of such a cell.
    """
    w = mhd.state()
    for name, quantity in (("density", w.rho), ("pressure", w.p)):
        number = sim.evaluate(first(~(quantity > 0.0)))
        if math.isfinite(number):
            cell = tuple(cell_at(number, mhd.grid.shape))
            value = sim.evaluate(total(where(mhd.grid.cell_number() == number, quantity, 0.0)))
            raise InputError(
                f"{name} at the start is {value:g} at cell {cell}; expected positive values everywhere"
            )


Profile = Callable[[Expr], Operand]


@dataclass(frozen=True)
class Direction:
    """Unit vector n and two unit vectors across it, e₁ and e₂ = n × e₁.

    n = (cos α cos β, sin α cos β, sin β), e₁ = (-sin α, cos α, 0) (Gardiner and Stone 2008, Section 5.1).
    """

    n: tuple[float, float, float]
    e1: tuple[float, float, float]
    e2: tuple[float, float, float]

    @classmethod
    def of(cls, *n: float) -> Direction:
        """Return the direction of the vector (n_x, n_y, n_z); omitted components are 0."""
        x, y, z = (*n, 0.0, 0.0)[:3]
        length, flat = math.sqrt(x * x + y * y + z * z), math.hypot(x, y)
        c, s = x / flat, y / flat
        sin_b, cos_b = z / length, flat / length
        return cls((c * cos_b, s * cos_b, sin_b), (-s, c, 0.0), (-c * sin_b, -s * sin_b, cos_b))

    def along(self, x: Sequence[Operand]) -> Expr:
        """Return n · x."""
        return sum((n * as_expr(c) for n, c in zip(self.n, x, strict=False) if n), as_expr(0.0))

    def rotate(self, v: Sequence[Operand]) -> Vector:
        """Return the vector with the components `v` along n, e₁ and e₂."""
        return Vector(
            sum((f * as_expr(c) for f, c in zip(basis, v, strict=True) if f), as_expr(0.0))
            for basis in zip(self.n, self.e1, self.e2, strict=True)
        )

    def field(
        self, grid: Grid, means: Sequence[float], B: Sequence[Profile], integrals: Sequence[Profile]
    ) -> Vector:
        """Return the field B_n n + B₁(s) e₁ + B₂(s) e₂ on faces, with s = n · x.

        The non-uniform part comes from a vector potential on edges, so ∇·b is 0 up to rounding errors.
        Components along axes that the grid lacks are stored in cells, and are exact there.

        Parameters
        ----------
        grid : Grid
        means : sequence of float
            B_n, and the means of B₁ and B₂.
        B : sequence of callable
            B₁ and B₂ as functions of s.
        integrals : sequence of callable
            Integrals over s of B₁ and of B₂, each minus its mean. They are periodic if the grid is periodic.
        """

        def potential(*x: Expr) -> Vector:
            s = self.along(x)
            return self.rotate((0.0, integrals[1](s), -as_expr(integrals[0](s))))

        s_cells = self.along(grid.coordinates())
        cells = self.rotate((means[0], B[0](s_cells), B[1](s_cells)))
        if grid.ndim == 1:
            return cells
        uniform, faces = self.rotate(means), curl(grid, potential)
        return Vector(uniform[a] + faces[a] if a < grid.ndim else cells[a] for a in range(3))
