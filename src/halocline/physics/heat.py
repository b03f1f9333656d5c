"""Heat in a periodic box, dT/dt = kappa ΔT, for any number of temperatures that do not touch each other.

The measure of explicit steps: a stencil of one radius, little arithmetic, halos on the sides alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.operators import laplacian
from halocline.lang.program import Program, Scalar, loop, program
from halocline.ranges import FIELDS
from halocline.solvers.schemes import SCHEMES


@dataclass(frozen=True)
class Heat:
    """The equations on cubic cells of a box that is one long along its first axis."""

    grid: Grid
    fields: tuple[Field, ...]

    @classmethod
    def on(cls, n: int, dim: int = 3) -> Heat:
        """One temperature on n cells along each of `dim` axes.

        Raises
        ------
        InputError
            `n` is below one, or `dim` is none of 1, 2, 3.
        """
        check_size(n, dim)
        return cls.in_box((n,) * dim)

    @classmethod
    def in_box(cls, shape: Sequence[int], *, fields: int = 1, dtype: str = "float64") -> Heat:
        """A number of temperatures, T or T0, T1, ..., on a number of cells along each axis.

        Raises
        ------
        InputError
            Fewer than one field, or a shape that cannot be.
        """
        FIELDS.check("fields", fields)
        grid = Grid(tuple(shape), extent=tuple(n / shape[0] for n in shape), periodic=True)
        names = ["T"] if fields == 1 else [f"T{n}" for n in range(fields)]
        return cls(grid, tuple(grid.field(name, dtype=dtype) for name in names))

    def equations(self, kappa: Any) -> Mapping[Field, Expr]:
        """The time derivatives, as `halocline.Simulation` takes them."""
        return {T: kappa * laplacian(T) for T in self.fields}

    @property
    def start(self) -> Expr:
        """One warm and one cold half along each axis: Π sin(2 π x), plus a wave of its own."""
        x = self.fields[0].coordinates
        return as_expr(math.prod((sin(2 * math.pi * x_i) for x_i in x), start=0.5 * cos(6 * math.pi * x[0])))

    @property
    def stable_step(self) -> float:
        """A time step that is stable for kappa = 1 at any order of differences up to eight: 0.1 h² / dim."""
        return 0.1 / (self.grid.shape[0] ** 2 * self.grid.ndim)

    def program(self, scheme: str = "rk3", order: int = 6) -> Program:
        """Steps of a scheme, one of SCHEMES, with differences of an even order: what is compiled, without any
        memory or rank."""
        if scheme not in SCHEMES:
            raise unknown("scheme", scheme, sorted(SCHEMES))

        @program
        def heat(kappa: Scalar, dt: Scalar, steps: Scalar) -> None:
            with loop(limit=steps):
                SCHEMES[scheme].step(
                    lambda passed: self.equations(kappa),
                    dt.expr,
                    lambda field, suffix: field.like(f"{field.name}_{suffix}", homogeneous=True),
                )

        with trace.order(order):
            return heat.trace(Scalar("kappa"), Scalar("dt"), Scalar("steps"))


def check_size(n: Any, dim: Any) -> None:
    """Raise InputError where a grid cannot have n cells along each of `dim` axes."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n is {n!r}; expected the number of cells along an axis, from 1")
    if isinstance(dim, bool) or dim not in (1, 2, 3):
        raise InputError(f"dim is {dim!r}; expected 1, 2 or 3")
