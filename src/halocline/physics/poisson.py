"""The elliptic problem -Δu = f on the unit interval, square or cube, u = 0 on its boundary.

The problem, its discretisation and its numbers are those of K. Arora, C. Barajas and M. K. Gobbert,
Parallel Performance Studies for an Elliptic Test Problem on the Stampede2 Cluster, UMBC HPCF-2018-10,
Sections 2 and 3; here in one to three dimensions. The exact solution is u = Π sin²(π x_i), so that
f = -2 π² Σ_i cos(2 π x_i) Π_(j≠i) sin²(π x_j).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang.boundary import Value
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Program
from halocline.solvers.cg import solve_program


@dataclass(frozen=True)
class Poisson:
    """The equations on n points an axis, h = 1 / (n + 1) apart; walls lie h beyond the outer ones."""

    grid: Grid
    u: Field

    @classmethod
    def on(cls, n: int, dim: int = 2) -> Poisson:
        """The problem with n interior points along each of `dim` axes.

        Raises
        ------
        InputError
            `n` is below one, or `dim` is none of 1, 2, 3.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"n is {n!r}; expected the number of interior points along an axis, from 1")
        if isinstance(dim, bool) or dim not in (1, 2, 3):
            raise InputError(f"dim is {dim!r}; expected 1, 2 or 3")
        grid = Grid((n,) * dim, walls="node")
        return cls(grid, grid.field("u", boundary=Value(0)))

    def operator(self, v: Any) -> Expr:
        """h² times the negative Laplacian: 2 dim v less the sum of the neighbours (Eqs. 2.2 and 2.3)."""
        axes = range(self.grid.ndim)
        steps = [tuple(side * (a == axis) for a in axes) for axis in axes for side in (-1, 1)]
        around: Expr = v[steps[0]]
        for step in steps[1:]:
            around = around + v[step]
        return as_expr(2 * self.grid.ndim * v - around)

    @property
    def rhs(self) -> Expr:
        """h² f (Eq. 3.1)."""
        x = self.u.coordinates
        terms = [cos(2 * math.pi * x[i]) * _product(x[:i] + x[i + 1 :]) for i in range(len(x))]
        return self.grid.h(0) ** 2 * (-2 * math.pi**2 * sum(terms[1:], start=terms[0]))

    @property
    def exact(self) -> Expr:
        """The solution of the differential equation at the points."""
        return _product(self.u.coordinates)

    @property
    def error(self) -> Expr:
        """The computed solution less the exact one."""
        return self.u - self.exact

    def program(self, method: str) -> Program:
        """Return the program of a method, without any memory or rank: for `halocline explain`."""
        return solve_program(method, self.operator, self.u, self.rhs)


def _product(coordinates: Sequence[Expr]) -> Expr:
    """Π sin²(π x) over some coordinates."""
    return math.prod((sin(math.pi * x) ** 2 for x in coordinates), start=as_expr(1.0))
