"""Time integration schemes, written as statements of a program: usable with any right-hand side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from halocline.lang.expression import Expr
from halocline.lang.grid import Field

# the time derivatives as they are some part of a step after its start
RightHandSide = Callable[[float], Mapping[Field, Expr]]


@dataclass(frozen=True)
class Euler:
    """Forward Euler: first order, one evaluation a step."""

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step.

        Parameters
        ----------
        rhs : callable
            ``rhs(c)`` gives the time derivatives in terms of the fields' current values, at the time of the
            step's start plus c dt.
        dt : expression
        make : callable
            ``make(field, suffix)`` gives the scheme a field of its own beside `field`.
        """
        for f, slope in rhs(0.0).items():
            f.set(f + dt * slope)


@dataclass(frozen=True)
class LowStorage:
    """A Runge-Kutta scheme of 2N storage (Williamson 1980, J. Comput. Phys. 35, 48).

    At each stage w = alpha w + dt F(f), then f = f + beta w.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        passed = w_time = 0.0  # the scheme applied to the time itself
        for alpha, beta in zip(self.alpha, self.beta, strict=True):
            slopes = rhs(passed)
            w_time = alpha * w_time + 1.0
            passed += beta * w_time
            registers = {f: make(f, "w") for f in slopes}
            for f, slope in slopes.items():
                w = registers[f]
                w.set(alpha * w.expr + dt * slope)
            for f, w in registers.items():
                f.set(f + beta * w.expr)


def RK2() -> LowStorage:
    """The midpoint rule: second order, two evaluations a step."""
    return LowStorage((0.0, float(Fraction(-1, 2))), (0.5, 1.0))


def RK3() -> LowStorage:
    """Third order, three evaluations a step, two registers a field (Williamson 1980, case 7)."""
    return LowStorage(
        (0.0, float(Fraction(-5, 9)), float(Fraction(-153, 128))),
        (float(Fraction(1, 3)), float(Fraction(15, 16)), float(Fraction(8, 15))),
    )


__all__ = ["RK2", "RK3", "Euler", "LowStorage"]
