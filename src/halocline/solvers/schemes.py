"""Time integration schemes, written as statements of a program: usable with any right-hand side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Protocol

from halocline.lang.expression import Expr, Operand
from halocline.lang.grid import Field
from halocline.lang.program import assign, labelled, own_scalars

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


def _keep_start(fields: Iterable[Field], make: Callable[[Field, str], Field]) -> dict[Field, Field]:
    """Record copies of fields as they are at the start of a step, and return the copies."""
    starts = {f: make(f, "start") for f in fields}
    with labelled("copy at the start of the step: " + ", ".join(f.name for f in starts)):
        assign({start: f for f, start in starts.items()})
    return starts


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

    def amplification(self, z: complex) -> complex:
        """What a step makes of f = 1 where dt F(f) = z f: of a mode whose rate is z / dt."""
        return 1 + z


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

    def amplification(self, z: complex) -> complex:
        """See Euler.amplification."""
        f, w = 1 + 0j, 0j
        for a, b in zip(self.alpha, self.beta, strict=True):
            w = a * w + z * f
            f += b * w
        return f


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
        starts = _keep_start(slopes, make)
        assign({f: f + dt * slope for f, slope in slopes.items()})
        passed = 1.0
        numbers = self.shares[1:]
        for number, (share,) in zip(numbers, _stages("share", [(n,) for n in numbers]), strict=True):
            assign(
                {f: starts[f] + share * ((f - starts[f]) + dt * slope) for f, slope in rhs(passed).items()}
            )
            passed = number * (passed + 1.0)

    def amplification(self, z: complex) -> complex:
        """See Euler.amplification."""
        f = 1 + z
        for share in self.shares[1:]:
            f = 1 + share * ((f - 1) + z * f)
        return f


@dataclass(frozen=True)
class RK4:
    """The classical scheme: fourth order, four evaluations a step.

    Keeps two values more a point: the start of the step, and what its first two slopes give. Three in all are
    the least (Blum 1962, Math. Comp. 16, 176). Where no slope is left, no bit changes.
    """

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        starts, gains = _keep_start(slopes, make), {f: make(f, "gain") for f in slopes}
        assign({f: f + 0.5 * dt * slope for f, slope in slopes.items()})
        slopes = rhs(0.5)
        # the first slope is what took the field here
        assign({gain: (f - starts[f]) + dt * slopes[f] for f, gain in gains.items()})
        assign({f: starts[f] + 0.5 * dt * slope for f, slope in slopes.items()})
        stages = _stages("share gained", [(1.0, 0.0), (float(Fraction(1, 6)), 2.0)])
        for passed, (share, gained) in zip((0.5, 1.0), stages, strict=True):
            reached = {
                f: starts[f] + share * (dt * slope + gained * (gains[f] + (f - starts[f])))
                for f, slope in rhs(passed).items()
            }
            assign(reached)

    def amplification(self, z: complex) -> complex:
        """See Euler.amplification."""
        first = 1 + z / 2
        second = 1 + z / 2 * first
        third = 1 + z * second
        return 1 + z / 6 * (1 + 2 * first + 2 * second + third)


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


# by the names that commands take
SCHEMES: dict[str, Euler | LowStorage | RK4 | StrongStability] = {
    "euler": Euler(),
    "rk2": RK2(),
    "rk3": RK3(),
    "rk4": RK4(),
    "ssprk3": SSPRK3(),
}


FURTHEST = 1e6  # no explicit scheme is stable so far


class Amplifying(Protocol):
    """A scheme that says what a step makes of a mode."""

    def amplification(self, z: complex) -> complex:
        """See Euler.amplification."""


def stable_until(scheme: Amplifying, direction: complex, *, start: float = 0.0, growth: float = 0.0) -> float:
    """How far a scheme is stable from `start` along a direction of the plane of z = rate times dt.

    Parameters
    ----------
    scheme : object with the method ``amplification``
    direction : complex
        1j for waves, -1 for diffusion.
    start : float, optional
        On the real axis: below 0 for waves that are damped.
    growth : float, optional
        By which a mode may grow in a step all the same.

    Returns
    -------
    float
        0 where modes grow however short the step is: waves in forward Euler and in RK2; inf where none does
        however long it is, in implicit schemes.
    """
    apart = 0.01  # no stable stretch is shorter, nor than this share of the way to it

    def grows(distance: float) -> bool:
        return abs(scheme.amplification(start + distance * direction)) > 1 + growth + 1e-12

    stable, unstable = 0.0, apart
    while not grows(unstable):
        stable, unstable = unstable, unstable + apart * max(1.0, unstable)
        if unstable > FURTHEST:
            return math.inf
    if stable == 0.0:
        return 0.0
    while unstable - stable > 1e-12 * max(1.0, unstable):
        middle = (stable + unstable) / 2
        stable, unstable = (stable, middle) if grows(middle) else (middle, unstable)
    return round(stable, 9)  # as all hosts round it
