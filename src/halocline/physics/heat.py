"""Heat in a periodic interval, square or cube: dT/dt = kappa ΔT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.operators import laplacian
from halocline.lang.program import Program, Scalar, loop, program
from halocline.solvers.schemes import RK2, RK3, Euler, LowStorage

SCHEMES: dict[str, Euler | LowStorage] = {"euler": Euler(), "rk2": RK2(), "rk3": RK3()}


@dataclass(frozen=True)
class Heat:
    """The equation on n cells an axis of the unit cube."""

    grid: Grid
    T: Field

    @classmethod
    def on(cls, n: int, dim: int = 3) -> Heat:
        """The problem with n cells along each of `dim` axes.

        Raises
        ------
        InputError
            `n` is below one, or `dim` is none of 1, 2, 3.
        """
        check_size(n, dim)
        grid = Grid((n,) * dim, periodic=True)
        return cls(grid, grid.field("T"))

    @staticmethod
    def equations(T: Any, kappa: Any) -> Mapping[Field, Expr]:
        """The time derivative, as `halocline.Simulation` takes it."""
        return {T: kappa * laplacian(T)}

    def program(self, scheme: str = "rk3", order: int = 6) -> Program:
        """Steps of a scheme, one of SCHEMES, with differences of an even order: what is compiled, without any
        memory or rank."""
        if scheme not in SCHEMES:
            raise unknown("scheme", scheme, sorted(SCHEMES))

        @program
        def heat(T: Field, kappa: Scalar, dt: Scalar, steps: Scalar) -> None:
            with loop(limit=steps):
                SCHEMES[scheme].step(
                    lambda passed: self.equations(T, kappa),
                    dt.expr,
                    lambda field, suffix: field.like(f"{field.name}_{suffix}", homogeneous=True),
                )

        with trace.order(order):
            return heat.trace(self.T, Scalar("kappa"), Scalar("dt"), Scalar("steps"))


def check_size(n: Any, dim: Any) -> None:
    """Raise InputError where a grid cannot have n cells along each of `dim` axes."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n is {n!r}; expected the number of cells along an axis, from 1")
    if isinstance(dim, bool) or dim not in (1, 2, 3):
        raise InputError(f"dim is {dim!r}; expected 1, 2 or 3")
