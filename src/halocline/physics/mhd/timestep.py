"""The Courant time step of the equations, and which limit it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import Expr, Operand, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, sqrt, where
from halocline.lang.operators import first_coefficients, second_coefficients
from halocline.lang.program import labelled, parameter, scalar, stop
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as greatest
from halocline.physics.mhd.diagnostics import over
from halocline.physics.mhd.equations import MHD, Gas, shock_profile
from halocline.run.simulation.settings import Setting, setting
from halocline.solvers.schemes import RK3, SCHEMES, Amplifying, stable_until

# what limits a time step, and the scalar that holds its rate, in 1 / time
LIMITS = {
    "advection": "rate_advection",
    "fast magnetosonic waves": "rate_waves",
    "viscosity": "rate_viscosity",
    "shock viscosity": "rate_shock",
    "resistivity": "rate_resistivity",
    "conduction": "rate_conduction",
    "heating": "rate_heating",
    "cooling": "rate_cooling",
    "upwinding": "rate_upwinding",
    "hyperdiffusion": "rate_hyperdiffusion",
}

# rates that add up: of what travels, and of what damps the velocity, the vector potential, and s and ln ρ
TRAVEL = ("advection", "fast magnetosonic waves")
GROUPS = (
    TRAVEL,
    ("viscosity", "shock viscosity", "hyperdiffusion"),
    ("resistivity", "hyperdiffusion"),
    ("conduction", "heating", "cooling", "upwinding", "hyperdiffusion"),
)

UNTIL = "until"  # what limits a step that ends where the run does
COLLAPSED = 1e-12  # of the first step: one as short would never come to an end
GROWTH = 1e-3  # that is allowed to waves, a step, in a scheme in which they grow however short it is

# the parameters of cases that choose their time step
COURANT = {
    "dt": Setting(
        0.0,
        "time",
        "time step; 0 for 0.8 (waves) and 0.6 (diffusion) of the longest that is stable",
        least=0.0,
    ),
    "floor": Setting(
        0.0, "time", "the run ends where that step is shorter; 0 for 1e-12 of the first", least=0.0
    ),
}


@cache
def first_symbol(order: int) -> float:
    """The greatest modified wave number of the central first derivative, times the spacing: of
    2 Σ c_k sin kθ."""
    weights = [float(c) for c in first_coefficients(order)]
    # its slope falls from 1 at θ = 0 and passes 0 once
    low, high = 0.0, math.pi
    for _ in range(60):
        middle = (low + high) / 2
        rises = sum(k * c * math.cos(k * middle) for k, c in enumerate(weights, 1)) > 0
        low, high = (middle, high) if rises else (low, middle)
    return round(2 * sum(c * math.sin(k * low) for k, c in enumerate(weights, 1)), 9)  # as all hosts round it


@cache
def second_symbol(order: int) -> float:
    """The greatest negative symbol of the central second derivative, times the spacing squared: that of the
    wave of two cells."""
    centre, *outer = second_coefficients(order)
    return float(-centre - 2 * sum(d * (-1) ** k for k, d in enumerate(outer, 1)))


def upwind_symbol(order: int) -> float:
    """The greatest rate at which `upwinding` damps, over Σ |u_i| / h_i: its weight times 2^order, which is
    the difference of a wave of two cells."""
    m = order // 2
    return float(math.factorial(m) * math.factorial(m - 1) * 2**order / math.factorial(order))


@dataclass(frozen=True)
class Courant:
    """dt = 1 / max(travel / (advection limit_i), damping / (diffusion limit_r)).

    The limits are those of the scheme along the imaginary and the real axis: √3 and 2.51 for third-order
    Runge-Kutta. Where a wave that is damped as much as may be has a narrower limit (in RK4), this is taken.
    The rates are the greatest that the differences in use make of a wave. With κ₁ and κ₂ the greatest symbols
    of the first and the second derivative (1.586 and 6.04 at the sixth order):

    - travel: κ₁ Σ |u_i| / h_i + √((κ₁² c_s² + κ₂ v_A²) Σ 1 / h_i²). The current is a second derivative of the
      vector potential, so that Alfvén waves are as fast as √κ₂ makes them;
    - damping: κ₂ D Σ 1 / h_i² with D = 4/3 ν + ζ + ζ_shock of u, η of A, γ K / (ρ c_p) of s; upwinding beside
      that of s; and hyperdiffusion, 64 max(ν₃, η₃, D₃, χ₃) Σ 1 / h_i⁶, beside each.
    - heat damps s too, by as much as its rate falls with s: γ / c_p |H| / (ρ T) for a heating H that does not
      depend on the temperature, T_cool / (T tau_cool) for Newtonian cooling. Heat that is gained and lost
      beside these counts as H does, which is enough where it goes as a power of T from 0 to 2.

    Parameters
    ----------
    advection, diffusion : float
        Shares of the longest stable step.
    floor : float
        The run ends where the step would be shorter, with the name of the limit; 0 for 1e-12 of the first.
    scheme : time integration scheme, optional
        That of the simulation by default, or RK3 in a program that is the step itself. In forward Euler and
        RK2 waves grow however short the step is: they may by 1e-3 a step, and the user is warned.
    """

    advection: float = 0.8
    diffusion: float = 0.6
    floor: float = 0.0
    scheme: Amplifying | None = None

    def step(self, mhd: MHD, *, heat_gain: Operand | None = None, heat_loss: Operand | None = None) -> Expr:
        """The time step of the present fields; the rates, and what limits it, are scalars of the program that
        is traced. Heat is what `MHD.equations` is given.

        Raises
        ------
        InputError
            The scheme is stable however long the step is, or does not say where it is.
        """
        travel, damping = self.numbers()
        if math.isinf(travel) and math.isinf(damping):
            raise InputError(
                "the scheme is stable however long the time step is, so that no Courant number limits it; "
                "give a fixed time step, as long as the wanted accuracy allows"
            )
        rates = {}
        for name, rate in self.rates(mhd, heat_gain=heat_gain, heat_loss=heat_loss).items():
            rates[name] = scalar(LIMITS[name])
            with labelled(f"time step limit: {name}"):
                rates[name].set(rate)
        shortest, limiter = as_expr(0.0), as_expr(0.0)
        for group in GROUPS:
            own = [name for name in group if name in rates]
            limit = travel if group is TRAVEL else damping
            if not own or math.isinf(limit):
                continue
            total, leader, named = as_expr(0.0), as_expr(0.0), as_expr(float(_number(own[0])))
            for each in own:
                total = total + rates[each]
                named = where(rates[each] > leader, float(_number(each)), named)
                leader = maximum(leader, rates[each])
            share = total / limit
            ahead = (share > shortest) | (share != share)  # NaN stays
            limiter, shortest = where(ahead, named, limiter), where(ahead, share, shortest)
        wanted, first, number = scalar("dt_courant"), scalar("dt_first"), scalar("limiter")
        number.set(limiter)
        wanted.set(1.0 / shortest)
        first.set(where(first > 0.0, first, wanted))
        if self.floor > 0:
            short, least = wanted < self.floor, f"{self.floor:g}"
        else:
            short, least = ~(wanted > COLLAPSED * first), f"{COLLAPSED:g} of the first"
        for each in rates:
            stop(~(rates[each] < math.inf), f"the rate of {each} is not finite")
        for each in rates:
            stop(
                short & (number == float(_number(each))), f"the time step is below {least}, limited by {each}"
            )
        return wanted.expr

    def numbers(self) -> tuple[float, float]:
        """By what rates of travel and of damping may exceed 1 / dt; inf where they do not limit it."""
        program = trace.active()
        scheme = self.scheme or (program and program.scheme) or RK3()
        if not hasattr(scheme, "amplification"):
            raise InputError(
                f"scheme {scheme!r} has no method 'amplification', which tells where it is stable; "
                "give a fixed time step, or Courant(scheme=hc.RK3()) or another that it is like"
            )
        damping = self.diffusion * stable_until(scheme, -1)
        waves, growth = stable_until(scheme, 1j), 0.0
        if not waves:
            growth = GROWTH
            waves = stable_until(scheme, 1j, growth=growth)
            if program is not None:
                known = next((name for name, own in SCHEMES.items() if own == scheme), repr(scheme))
                program.notices.append(
                    f"waves and advection grow in scheme {known}, however short the time step is, unless "
                    f"diffusion damps them: here by up to {GROWTH:g} a step; they do not in rk3"
                )
        damped = (
            [-damping * n / 20 for n in range(21)] if damping < math.inf else [-(2.0**n) for n in range(20)]
        )
        both = (stable_until(scheme, 1j, start=start, growth=growth) for start in damped)
        return min(self.advection * waves, *both), damping

    def limit(self, scalars: Mapping[str, float]) -> str:
        """What limited the last step, by the scalars that a run left with a step that is not delayed."""
        if scalars["dt"] < scalars["dt_courant"]:
            return UNTIL
        return list(LIMITS)[int(scalars["limiter"])]

    def rates(
        self, mhd: MHD, *, heat_gain: Operand | None = None, heat_loss: Operand | None = None
    ) -> dict[str, Expr]:
        """The rate of each limit, over the grid; see `step`."""
        grid, physics, gas, order = mhd.grid, mhd.physics, Gas(mhd.lnrho, mhd.s), trace.default_order()
        first, second = first_symbol(order), second_symbol(order)
        flow, squares, sixths = as_expr(0.0), as_expr(0.0), as_expr(0.0)
        for axis in range(grid.ndim):
            h = grid.h(axis)
            flow = flow + magnitude(mhd.u[axis]) / h
            squares = squares + 1.0 / h**2
            sixths = sixths + 1.0 / h**6
        flow = greatest(flow)
        speed2 = first**2 * gas.cs2
        if mhd.A is not None:
            B = mhd.field()
            speed2 = speed2 + second * (dot(B, B) * gas.volume / parameter("mu0"))
        found = {"advection": first * flow, "fast magnetosonic waves": over(greatest, sqrt(speed2 * squares))}
        found["viscosity"] = second * (parameter("nu") * (4.0 / 3.0) + parameter("zeta")) * squares
        if physics.shock:
            zeta = greatest(shock_profile(mhd.u))
            found["shock viscosity"] = second * (parameter("nu_shock") * zeta) * squares
        if mhd.A is not None:
            found["resistivity"] = second * parameter("eta") * squares
        if mhd.s is not None:
            found["conduction"] = second * over(greatest, gas.diffusivity(physics.conductivity)) * squares
            cold = 1.0 / gas.T
            heat = magnitude(parameter("heating"))
            for given in (heat_gain, heat_loss):
                heat = heat if given is None else heat + magnitude(as_expr(given))
            found["heating"] = greatest(gas.gamma / gas.cp * (heat * gas.volume * cold))
            if physics.cooling:
                found["cooling"] = greatest(cold) * magnitude(parameter("T_cool")) / parameter("tau_cool")
        if physics.upwind:
            found["upwinding"] = upwind_symbol(order) * flow
        if physics.hyperdiffusion:
            names = ["D3", "nu3"] + ["chi3"] * physics.entropy + ["eta3"] * physics.magnetic
            found["hyperdiffusion"] = 64.0 * maximum(*map(parameter, names)) * sixths
        return found


def _number(limit: str) -> int:
    """That of a limit, as the scalar "limiter" has it."""
    return list(LIMITS).index(limit)


def time_step_settings() -> dict[str, float]:
    """Declare the settings `COURANT` of the problem file, and return their values."""
    return {name: setting(name, own) for name, own in COURANT.items()}


def stepping(mhd: MHD, dt: float, floor: float) -> tuple[Any, Callable[[Mapping[str, float]], str] | None]:
    """Return the time step for `halocline.Simulation`, and the function that names its limit.

    Parameters
    ----------
    dt : float
        Fixed time step; 0 for the Courant step, which has a limit.
    floor : float
        See `Courant`.
    """
    if dt > 0:
        return dt, None
    courant = Courant(floor=floor)
    return lambda: courant.step(mhd), courant.limit
