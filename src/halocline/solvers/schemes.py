"""Time integration schemes as statements of a program, for any right-hand side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Protocol

from halocline.lang.expression import Expr, Operand
from halocline.lang.grid import Field
from halocline.lang.program import assign, internal_scalars, label_statements

# the time derivatives at a given fraction of a step after its start
RightHandSide = Callable[[float], Mapping[Field, Expr]]


def _stages(names: str, constants: Sequence[tuple[float, ...]]) -> Iterator[tuple[Operand, ...]]:
    """Yield the constants of each stage, for stages that differ only in their constants.

    The caller records a stage after each item. For two or more stages, the items are scalars with the given
    names, which are set before each stage. One kernel then serves all stages.
    """
    if len(constants) < 2:
        yield from constants
        return
    scalars = internal_scalars(names)
    for row in constants:
        for scalar, value in zip(scalars, row, strict=True):
            scalar.set(value)
        yield scalars


def _keep_start(fields: Iterable[Field], make: Callable[[Field, str], Field]) -> dict[Field, Field]:
    """Record statements that copy fields at the start of a step, and return the copies."""
    starts = {f: make(f, "start") for f in fields}
    with label_statements("copy at the start of the step: " + ", ".join(f.name for f in starts)):
        assign(_copies_of(starts))
    return starts


@dataclass(frozen=True)
class Euler:
    """Forward Euler: first order, one evaluation per step."""

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step.

        Parameters
        ----------
        rhs : callable
            ``rhs(c)`` returns the time derivatives as expressions of the current field values. The time is c
            dt after the start of the step.
        dt : expression
        make : callable
            ``make(field, suffix)`` returns an auxiliary field of the scheme with the properties of `field`.
        """
        assign({f: f + dt * slope for f, slope in rhs(0.0).items()})

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of one step for the linear equation df/dt = λ f, with z = λ dt."""
        return 1 + z


def _stage_times(alpha: Sequence[float], beta: Sequence[float]) -> list[float]:
    """Return the times of the stages of a scheme of Williamson after the start of a step, in steps.

    The times are those that the scheme itself computes for a slope of 1.
    """
    times, elapsed, w = [], 0.0, 0.0
    for a, b in zip(alpha, beta, strict=True):
        times.append(elapsed)
        w = a * w + 1.0
        elapsed += b * w
    return times


@dataclass(frozen=True)
class LowStorage:
    """Runge-Kutta scheme with two stored values per point (Williamson 1980, J. Comput. Phys. 35, 48).

    At each stage w = alpha w + dt F(f), then f = f + beta w.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        registers: dict[Field, Field] = {}
        times = _stage_times(self.alpha, self.beta)
        constants = list(zip(self.alpha, self.beta, strict=True))
        # the first and the last stage differ from the others: w has no value before the first stage, and the
        # last stage does not write w, because nothing reads it afterwards
        stages = chain(constants[:1], _stages("alpha beta", constants[1:-1]), constants[1:][-1:])
        for number, (elapsed, (alpha, beta)) in enumerate(zip(times, stages, strict=True), 1):
            slopes = rhs(elapsed)
            registers = registers or {f: make(f, "w") for f in slopes}
            changes = {f: alpha * registers[f].expr + dt * slope for f, slope in slopes.items()}
            if number < len(constants):
                assign({registers[f]: change for f, change in changes.items()})
                changes = {f: w.expr for f, w in registers.items()}
            assign({f: f + beta * change for f, change in changes.items()})

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of a step; see Euler.amplification."""
        f, w = 1 + 0j, 0j
        for a, b in zip(self.alpha, self.beta, strict=True):
            w = a * w + z * f
            f += b * w
        return f


@dataclass(frozen=True)
class PreviousState:
    """Runge-Kutta scheme of Williamson that stores the previous state instead of the change w.

    After a stage of `LowStorage`, w = (f - previous) / beta, where `previous` is f before this stage. The
    next stage therefore is f + beta (alpha w + dt F(f)) without a stored w. On GPUs, Astaroth computes its
    stages in this form (Pekkilä et al. 2022, Parallel Computing 111, 102904).

    `previous` takes over the buffer of f, so a stage reads two values per point and writes one. `LowStorage`
    reads two and writes two. The two schemes differ by rounding errors: f - previous is rounded to the
    precision of f. If all slopes are zero, no value changes.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        previous = {f: make(f, "previous") for f in slopes}
        assign({f: f + self.beta[0] * dt * slope for f, slope in slopes.items()} | _copies_of(previous))
        constants = [
            (alpha * beta / last, beta)
            for alpha, beta, last in zip(self.alpha[1:], self.beta[1:], self.beta, strict=False)
        ]
        times = _stage_times(self.alpha, self.beta)[1:]
        for elapsed, (share, beta) in zip(times, _stages("share beta", constants), strict=True):
            changes = {f: share * (f - previous[f]) + beta * dt * slope for f, slope in rhs(elapsed).items()}
            assign({f: f + change for f, change in changes.items()} | _copies_of(previous))

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of a step; see Euler.amplification."""
        return LowStorage(self.alpha, self.beta).amplification(z)


def _copies_of(copies: Mapping[Field, Field]) -> dict[Field, Expr]:
    """Return the values of fields that keep the present values of other fields."""
    return {copy: f.expr for f, copy in copies.items()}


@dataclass(frozen=True)
class StrongStability:
    """Scheme whose stages average the values at the start of the step and a forward Euler step.

    The method is that of Shu and Osher (1988, J. Comput. Phys. 77, 439). At each stage f = (1 - share) start
    + share (f + dt F(f)). A quantity such as the total variation does not increase, if no forward Euler step
    of length dt increases it. The scheme stores one additional value per point, the value at the start of the
    step. If all slopes are zero, no value changes.
    """

    shares: tuple[float, ...]

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        starts = _keep_start(slopes, make)
        assign({f: f + dt * slope for f, slope in slopes.items()})
        elapsed = 1.0
        numbers = self.shares[1:]
        for number, (share,) in zip(numbers, _stages("share", [(n,) for n in numbers]), strict=True):
            assign(
                {f: starts[f] + share * ((f - starts[f]) + dt * slope) for f, slope in rhs(elapsed).items()}
            )
            elapsed = number * (elapsed + 1.0)

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of a step; see Euler.amplification."""
        f = 1 + z
        for share in self.shares[1:]:
            f = 1 + share * ((f - 1) + z * f)
        return f


@dataclass(frozen=True)
class RK4:
    """Classical Runge-Kutta scheme: fourth order, four evaluations per step.

    The scheme stores two additional values per point: the value at the start of the step, and a weighted sum
    of the first two slopes. With the field itself, it stores three values, which is the minimum (Blum 1962,
    Math. Comp. 16, 176). If all slopes are zero, no value changes.
    """

    def step(self, rhs: RightHandSide, dt: Expr, make: Callable[[Field, str], Field]) -> None:
        """Record one step; see Euler.step."""
        slopes = rhs(0.0)
        starts, gains = _keep_start(slopes, make), {f: make(f, "gain") for f in slopes}
        assign({f: f + 0.5 * dt * slope for f, slope in slopes.items()})
        slopes = rhs(0.5)
        # f - start is dt / 2 times the first slope
        assign({gain: (f - starts[f]) + dt * slopes[f] for f, gain in gains.items()})
        assign({f: starts[f] + 0.5 * dt * slope for f, slope in slopes.items()})
        stages = _stages("share gained", [(1.0, 0.0), (float(Fraction(1, 6)), 2.0)])
        for elapsed, (share, gained) in zip((0.5, 1.0), stages, strict=True):
            states = {
                f: starts[f] + share * (dt * slope + gained * (gains[f] + (f - starts[f])))
                for f, slope in rhs(elapsed).items()
            }
            assign(states)

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of a step; see Euler.amplification."""
        first = 1 + z / 2
        second = 1 + z / 2 * first
        third = 1 + z * second
        return 1 + z / 6 * (1 + 2 * first + 2 * second + third)


def RK2() -> LowStorage:
    """Return the midpoint rule: second order, two evaluations per step."""
    return LowStorage((0.0, float(Fraction(-1, 2))), (0.5, 1.0))


def RK3() -> LowStorage:
    """Return a third-order scheme with three evaluations per step and two stored values per point.

    The scheme is case 7 of Williamson (1980).
    """
    return LowStorage(
        (0.0, float(Fraction(-5, 9)), float(Fraction(-153, 128))),
        (float(Fraction(1, 3)), float(Fraction(15, 16)), float(Fraction(8, 15))),
    )


def RK3Previous() -> PreviousState:
    """Return the third-order scheme of `RK3` in a form that stores the previous state.

    The form needs less memory traffic; see `PreviousState`.
    """
    scheme = RK3()
    return PreviousState(scheme.alpha, scheme.beta)


def SSPRK3() -> StrongStability:
    """Return a third-order strong-stability-preserving scheme with three evaluations per step.

    The scheme preserves strong stability for time steps up to the limit of forward Euler (Shu, Osher 1988).
    """
    return StrongStability((1.0, 0.25, float(Fraction(2, 3))))


# schemes by the names that commands accept
SCHEMES: dict[str, Euler | LowStorage | PreviousState | RK4 | StrongStability] = {
    "euler": Euler(),
    "rk2": RK2(),
    "rk3": RK3(),
    "rk3-previous": RK3Previous(),
    "rk4": RK4(),
    "ssprk3": SSPRK3(),
}


FURTHEST = 1e6  # search limit: no explicit scheme is stable up to this distance


class Amplifying(Protocol):
    """Scheme with an amplification factor."""

    def amplification(self, z: complex) -> complex:
        """Return the amplification factor of a step; see Euler.amplification."""


def stable_until(scheme: Amplifying, direction: complex, *, start: float = 0.0, growth: float = 0.0) -> float:
    """Return the distance from `start` to the end of the stability region, along a direction.

    The direction lies in the complex plane of z = λ dt; see Euler.amplification.

    Parameters
    ----------
    scheme : object with the method ``amplification``
    direction : complex
        1j for waves, -1 for diffusion.
    start : float, optional
        Starting point on the real axis; negative for damped waves.
    growth : float, optional
        Growth per step up to which a scheme counts as stable.

    Returns
    -------
    float
        Distance. It is 0 if modes grow for every step size, like waves with forward Euler and RK2. It is inf
        if modes grow for no step size, as with implicit schemes.
    """
    spacing = 0.01  # search step, absolute and relative to the distance; no stable interval is shorter

    def grows(distance: float) -> bool:
        return abs(scheme.amplification(start + distance * direction)) > 1 + growth + 1e-12

    stable, unstable = 0.0, spacing
    while not grows(unstable):
        stable, unstable = unstable, unstable + spacing * max(1.0, unstable)
        if unstable > FURTHEST:
            return math.inf
    if stable == 0.0:
        return 0.0
    while unstable - stable > 1e-12 * max(1.0, unstable):
        middle = (stable + unstable) / 2
        stable, unstable = (stable, middle) if grows(middle) else (middle, unstable)
    return round(stable, 9)  # rounded to the digits on which all hosts agree
