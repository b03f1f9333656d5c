"""Time integration schemes, written as statements of a program: usable with any right-hand side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from halocline.lang.expression import Expr, Operand
from halocline.lang.grid import Field
from halocline.lang.program import assign, own_scalars

# the time derivatives as they are some part of a step after its start
RightHandSide = Callable[[float], Mapping[Field, Expr]]


def _stages(names: str, constants: Sequence[tuple[float, ...]]) -> Iterator[tuple[Operand, ...]]:
    """The constants of stages that differ in nothing else, while these are recorded one after the other.

    Several stages have scalars of these names, set anew before each: so one kernel serves them all.
    """
    if len(constants) < 2:
        yield from constants
        return
    scalars = own_scalars(names)
    for row in constants:
        for scalar, value in zip(scalars, row, strict=True):
            scalar.set(value)
        yield scalars


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
        assign({f: f + dt * slope for f, slope in rhs(0.0).items()})


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
        registers: dict[Field, Field] = {}
        constants = list(zip(self.alpha, self.beta, strict=True))
        # before the first stage w has no value, and nothing reads what it has after the last, where it takes
        # no write: so that these two are not like the others
        stages = chain(constants[:1], _stages("alpha beta", constants[1:-1]), constants[1:][-1:])
        for number, ((a, b), (alpha, beta)) in enumerate(zip(constants, stages, strict=True), 1):
            slopes = rhs(passed)
            w_time = a * w_time + 1.0
            passed += b * w_time
            registers = registers or {f: make(f, "w") for f in slopes}
            changes = {f: alpha * registers[f].expr + dt * slope for f, slope in slopes.items()}
            if number < len(constants):
                assign({registers[f]: change for f, change in changes.items()})
                changes = {f: w.expr for f, w in registers.items()}
            assign({f: f + beta * change for f, change in changes.items()})


@dataclass(frozen=True)
class StrongStability:
    """A scheme whose stages average the start of the step and a forward Euler step (Shu and Osher 1988,
    J. Comput. Phys. 77, 439).

    At each stage f = (1 - share) start + share (f + dt F(f)): what no Euler step of dt makes grow, such as
    the total variation, does not grow. Keeps one value more a point, the start; where no slope is left, no
    bit changes.
    """

    shares: tuple[float, ...]

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        starts = {f: make(f, "start") for f in slopes}
        assign({start: f for f, start in starts.items()})
        assign({f: f + dt * slope for f, slope in slopes.items()})
        passed = 1.0
        numbers = self.shares[1:]
        for number, (share,) in zip(numbers, _stages("share", [(n,) for n in numbers]), strict=True):
            assign(
                {f: starts[f] + share * ((f - starts[f]) + dt * slope) for f, slope in rhs(passed).items()}
            )
            passed = number * (passed + 1.0)


@dataclass(frozen=True)
class RK4:
    """The classical scheme: fourth order, four evaluations a step.

    Keeps two values more a point: the start of the step, and what its first two slopes give. Three in all are
    the least (Blum 1962, Math. Comp. 16, 176). Where no slope is left, no bit changes.
    """

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        starts, gains = ({f: make(f, suffix) for f in slopes} for suffix in ("start", "gain"))
        assign({start: f for f, start in starts.items()})
        assign({f: f + 0.5 * dt * slope for f, slope in slopes.items()})
        slopes = rhs(0.5)
        # the first slope is what took the field here
        assign({gain: (f - starts[f]) + dt * slopes[f] for f, gain in gains.items()})
        assign({f: starts[f] + 0.5 * dt * slope for f, slope in slopes.items()})
        stages = _stages("share gained", [(1.0, 0.0), (float(Fraction(1, 6)), 2.0)])
        for passed, (share, gained) in zip((0.5, 1.0), stages, strict=True):
            assign(
                {
                    f: starts[f] + share * (dt * slope + gained * (gains[f] + (f - starts[f])))
                    for f, slope in rhs(passed).items()
                }
            )


def RK2() -> LowStorage:
    """The midpoint rule: second order, two evaluations a step."""
    return LowStorage((0.0, float(Fraction(-1, 2))), (0.5, 1.0))


def RK3() -> LowStorage:
    """Third order, three evaluations a step, two registers a field (Williamson 1980, case 7)."""
    return LowStorage(
        (0.0, float(Fraction(-5, 9)), float(Fraction(-153, 128))),
        (float(Fraction(1, 3)), float(Fraction(15, 16)), float(Fraction(8, 15))),
    )


def SSPRK3() -> StrongStability:
    """Third order, three evaluations a step, strong-stability preserving up to the step of forward Euler
    (Shu and Osher 1988)."""
    return StrongStability((1.0, 0.25, float(Fraction(2, 3))))


__all__ = ["RK2", "RK3", "RK4", "SSPRK3", "Euler", "LowStorage", "StrongStability"]
