"""Problems of one coordinate, laid along or across a grid of one to three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halocline.lang.expression import Expr, Operand, as_expr
from halocline.lang.grid import Grid, Vector
from halocline.physics.mhd_tvd.setup import curl

Profile = Callable[[Expr], Operand]


@dataclass(frozen=True)
class Direction:
    """A unit vector n with two more, e₁ and e₂ = n × e₁, across it (Gardiner and Stone 2008, Section 5.1).

    n = (cos α cos β, sin α cos β, sin β), e₁ = (-sin α, cos α, 0).
    """

    n: tuple[float, float, float]
    e1: tuple[float, float, float]
    e2: tuple[float, float, float]

    @classmethod
    def of(cls, *n: float) -> Direction:
        """Along (n_x, n_y, n_z); components that are left out are 0."""
        x, y, z = (*n, 0.0, 0.0)[:3]
        length, flat = math.sqrt(x * x + y * y + z * z), math.hypot(x, y)
        c, s = x / flat, y / flat
        sin_b, cos_b = z / length, flat / length
        return cls((c * cos_b, s * cos_b, sin_b), (-s, c, 0.0), (-c * sin_b, -s * sin_b, cos_b))

    def along(self, x: Sequence[Operand]) -> Expr:
        """n · x."""
        return sum((n * as_expr(c) for n, c in zip(self.n, x, strict=False) if n), as_expr(0.0))

    def turned(self, v: Sequence[Operand]) -> Vector:
        """The vector with the components `v` along n, e₁ and e₂."""
        return Vector(
            sum((f * as_expr(c) for f, c in zip(basis, v, strict=True) if f), as_expr(0.0))
            for basis in zip(self.n, self.e1, self.e2, strict=True)
        )

    def field(
        self, grid: Grid, means: Sequence[float], B: Sequence[Profile], integrals: Sequence[Profile]
    ) -> Vector:
        """The field B_n n + B₁(s) e₁ + B₂(s) e₂ on faces, with s = n · x.

        What is not uniform comes from a vector potential on edges, so that ∇·b is 0 but for rounding.
        Components along axes that the grid lacks lie in cells, and are what they are there.

        Parameters
        ----------
        grid : Grid
        means : sequence of float
            B_n, and the means of B₁ and B₂.
        B : sequence of callable
            B₁ and B₂ at s.
        integrals : sequence of callable
            The integrals over s of B₁ and B₂ less their means; periodic where the grid is.
        """

        def potential(*x: Expr) -> Vector:
            s = self.along(x)
            return self.turned((0.0, integrals[1](s), -as_expr(integrals[0](s))))

        here = self.along(grid.coordinates())
        cells = self.turned((means[0], B[0](here), B[1](here)))
        if grid.ndim == 1:
            return cells
        uniform, faces = self.turned(means), curl(grid, potential)
        return Vector(uniform[a] + faces[a] if a < grid.ndim else cells[a] for a in range(3))
