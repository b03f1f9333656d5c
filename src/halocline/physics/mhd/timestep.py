"""Courant time step of the equations, and the limit that determines it."""

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
from halocline.lang.program import label_statements, parameter, scalar, stop
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as greatest
from halocline.physics.mhd.diagnostics import over
from halocline.physics.mhd.equations import MHD, Gas, shock_profile
from halocline.run.simulation.settings import Setting, setting
from halocline.solvers.schemes import RK3, SCHEMES, Amplifying, stable_until

# limits of the time step, and the scalar with the rate of each limit, in 1 / time
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

# groups of rates that add up: travel, damping of the velocity, damping of the vector potential, and damping
# of s and ln ρ
TRAVEL = ("advection", "fast magnetosonic waves")
GROUPS = (
    TRAVEL,
    ("viscosity", "shock viscosity", "hyperdiffusion"),
    ("resistivity", "hyperdiffusion"),
    ("conduction", "heating", "cooling", "upwinding", "hyperdiffusion"),
)

UNTIL = "until"  # Name of the limit if the step is shortened to end at the end time of the run.
COLLAPSED = 1e-12  # Minimum time step relative to the first one. A run with shorter steps would never end.
GROWTH = 1e-3  # Allowed growth of waves per step, for schemes in which waves grow at any time step.

# parameters of cases that choose their time step
COURANT = {
    "dt": Setting(
        0.0,
        "time",
        "time step; 0: the longest stable one, times 0.8 for waves and 0.6 for diffusion",
        minimum=0.0,
    ),
    "floor": Setting(
        0.0,
        "time",
        "minimum time step, below which the run ends; 0 for 1e-12 of the first time step",
        minimum=0.0,
    ),
}


@cache
def first_symbol(order: int) -> float:
    """Return the maximum modified wave number of the central first derivative, times the spacing.

    The product of modified wave number and spacing is 2 Σ c_k sin kθ for a wave with phase θ per cell.
    """
    weights = [float(c) for c in first_coefficients(order)]
    # the slope of the symbol falls from 1 at θ = 0 and has one zero
    low, high = 0.0, math.pi
    for _ in range(60):
        middle = (low + high) / 2
        rises = sum(k * c * math.cos(k * middle) for k, c in enumerate(weights, 1)) > 0
        low, high = (middle, high) if rises else (low, middle)
    return round(2 * sum(c * math.sin(k * low) for k, c in enumerate(weights, 1)), 9)  # the same on all hosts


@cache
def second_symbol(order: int) -> float:
    """Return the maximum damping factor of the central second derivative, times the squared spacing.

    The wave with a wavelength of two cells has this maximum.
    """
    centre, *outer = second_coefficients(order)
    return float(-centre - 2 * sum(d * (-1) ** k for k, d in enumerate(outer, 1)))


def upwind_symbol(order: int) -> float:
    """Return the maximum damping rate of `upwinding`, divided by Σ |u_i| / h_i.

    The wave with a wavelength of two cells has this maximum. For this wave, the difference in `upwinding` is
    2^order times the amplitude.
    """
    m = order // 2
    return float(math.factorial(m) * math.factorial(m - 1) * 2**order / math.factorial(order))


@dataclass(frozen=True)
class Courant:
    """Time step dt = 1 / max(travel / (advection limit_i), damping / (diffusion limit_r)).

    limit_i and limit_r are the stability limits of the scheme along the imaginary and the real axis, such as
    √3 and 2.51 for third-order Runge-Kutta. In some schemes, such as RK4, damped waves have a smaller limit
    limit_i. Then this smaller limit applies.

    The rates are the maxima over all waves on the grid, for the differences in use. κ₁ and κ₂ are the maximum
    symbols of the first and the second derivative (1.586 and 6.04 at the sixth order).

    - Travel: κ₁ Σ |u_i| / h_i + √((κ₁² c_s² + κ₂ v_A²) Σ 1 / h_i²). The current is a second derivative of the
      vector potential, so √κ₂ is the factor of Alfvén waves.
    - Damping: κ₂ D Σ 1 / h_i² with D = 4/3 ν + ζ + ζ_shock for u, η for A, and γ K / (ρ c_p) for s. Upwinding
      adds to the damping of s. Hyperdiffusion adds 64 max(ν₃, η₃, D₃, χ₃) Σ 1 / h_i⁶ to each damping rate.
    - Damping of s by heat: the decrease of ds/dt with s. For a heating H that does not depend on the
      temperature, this damping rate is γ / c_p |H| / (ρ T). For Newtonian cooling, it is T_cool / (T
      tau_cool). Heat gain and heat loss of the user are treated like H. This is sufficient if they are
      proportional to a power of T from 0 to 2.

    Parameters
    ----------
    advection, diffusion : float
        Fractions of the longest stable step.
    floor : float
        Minimum time step; 0 for 1e-12 of the first step. If the time step would be shorter, the run ends with
        a message that names the limit.
    scheme : time integration scheme, optional
        Scheme whose stability limits apply. The default is the scheme of the simulation. For a program that
        implements the whole step, the default is RK3. In forward Euler and RK2, waves grow at any time step.
        For these schemes, a growth of 1e-3 per step is allowed, and the user is warned.
    """

    advection: float = 0.8
    diffusion: float = 0.6
    floor: float = 0.0
    scheme: Amplifying | None = None

    def step(self, mhd: MHD, *, heat_gain: Operand | None = None, heat_loss: Operand | None = None) -> Expr:
        """Return the time step for the present fields.

        The traced program stores the rates and the limit in scalars. The heat terms are those of
        `MHD.equations`.

        Raises
        ------
        InputError
            The scheme is stable for any time step, or has no method that gives its stability limits.
        """
        travel, damping = self.numbers()
        if math.isinf(travel) and math.isinf(damping):
            raise InputError(
                "the scheme is stable for any time step, so it needs no Courant number. Set a fixed time "
                "step according to the required accuracy."
            )
        rates = {}
        for name, rate in self.rates(mhd, heat_gain=heat_gain, heat_loss=heat_loss).items():
            rates[name] = scalar(LIMITS[name])
            with label_statements(f"time step limit: {name}"):
                rates[name].set(rate)
        shortest, limiter = as_expr(0.0), as_expr(0.0)
        for group in GROUPS:
            active = [name for name in group if name in rates]
            limit = travel if group is TRAVEL else damping
            if not active or math.isinf(limit):
                continue
            total, leader, leader_number = as_expr(0.0), as_expr(0.0), as_expr(float(_number(active[0])))
            for limit_name in active:
                total = total + rates[limit_name]
                leader_number = where(rates[limit_name] > leader, float(_number(limit_name)), leader_number)
                leader = maximum(leader, rates[limit_name])
            share = total / limit
            is_larger = (share > shortest) | (share != share)  # NaN stays
            limiter, shortest = where(is_larger, leader_number, limiter), where(is_larger, share, shortest)
        dt_courant, dt_first, number = scalar("dt_courant"), scalar("dt_first"), scalar("limiter")
        number.set(limiter)
        dt_courant.set(1.0 / shortest)
        dt_first.set(where(dt_first > 0.0, dt_first, dt_courant))
        if self.floor > 0:
            is_short, floor_text = dt_courant < self.floor, f"{self.floor:g}"
        else:
            is_short, floor_text = ~(dt_courant > COLLAPSED * dt_first), f"{COLLAPSED:g} of the first"
        for limit_name in rates:
            stop(~(rates[limit_name] < math.inf), f"the rate of {limit_name} is not finite")
        for limit_name in rates:
            stop(
                is_short & (number == float(_number(limit_name))),
                f"the time step is below {floor_text}, limited by {limit_name}",
            )
        return dt_courant.expr

    def numbers(self) -> tuple[float, float]:
        """Return the largest stable products of dt with the rate of travel, and with the rate of damping.

        A value is inf if the scheme is stable for all rates of this kind.
        """
        program = trace.active()
        scheme = self.scheme or (program and program.scheme) or RK3()
        if not hasattr(scheme, "amplification"):
            raise InputError(
                f"scheme {scheme!r} has no method 'amplification', which gives its stability limit. Set a "
                "fixed time step, or Courant(scheme=hc.RK3()) with a scheme that has the same limit."
            )
        damping = self.diffusion * stable_until(scheme, -1)
        waves, growth = stable_until(scheme, 1j), 0.0
        if not waves:
            growth = GROWTH
            waves = stable_until(scheme, 1j, growth=growth)
            if program is not None:
                known = next((name for name, other in SCHEMES.items() if other == scheme), repr(scheme))
                program.notices.append(
                    f"in scheme {known} waves and advection grow at any time step unless diffusion damps "
                    f"them, here by up to {GROWTH:g} per step. In rk3 they do not grow."
                )
        damping_values = (
            [-damping * n / 20 for n in range(21)] if damping < math.inf else [-(2.0**n) for n in range(20)]
        )
        waves_by_damping = (stable_until(scheme, 1j, start=start, growth=growth) for start in damping_values)
        return min(self.advection * waves, *waves_by_damping), damping

    def limit(self, scalars: Mapping[str, float]) -> str:
        """Return the name of the limit that determined the last time step.

        Parameters
        ----------
        scalars : mapping of str to float
            Scalars of the program after a run. The time step of the run must not be delayed.
        """
        if scalars["dt"] < scalars["dt_courant"]:
            return UNTIL
        return list(LIMITS)[int(scalars["limiter"])]

    def rates(
        self, mhd: MHD, *, heat_gain: Operand | None = None, heat_loss: Operand | None = None
    ) -> dict[str, Expr]:
        """Return, for each limit of the time step, the largest rate on the grid (1 / time); see `step`."""
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
        rates = {"advection": first * flow, "fast magnetosonic waves": over(greatest, sqrt(speed2 * squares))}
        rates["viscosity"] = second * (parameter("nu") * (4.0 / 3.0) + parameter("zeta")) * squares
        if physics.shock:
            zeta = greatest(shock_profile(mhd.u))
            rates["shock viscosity"] = second * (parameter("nu_shock") * zeta) * squares
        if mhd.A is not None:
            rates["resistivity"] = second * parameter("eta") * squares
        if mhd.s is not None:
            rates["conduction"] = second * over(greatest, gas.diffusivity(physics.conductivity)) * squares
            inverse_T = 1.0 / gas.T
            heat = magnitude(parameter("heating"))
            for heat_term in (heat_gain, heat_loss):
                heat = heat if heat_term is None else heat + magnitude(as_expr(heat_term))
            rates["heating"] = greatest(gas.gamma / gas.cp * (heat * gas.volume * inverse_T))
            if physics.cooling:
                rates["cooling"] = (
                    greatest(inverse_T) * magnitude(parameter("T_cool")) / parameter("tau_cool")
                )
        if physics.upwind:
            rates["upwinding"] = upwind_symbol(order) * flow
        if physics.hyperdiffusion:
            names = ["D3", "nu3"] + ["chi3"] * physics.entropy + ["eta3"] * physics.magnetic
            rates["hyperdiffusion"] = 64.0 * maximum(*map(parameter, names)) * sixths
        return rates


def _number(limit: str) -> int:
    """Return the index of a limit in `LIMITS`. The scalar "limiter" holds the index of the actual limit."""
    return list(LIMITS).index(limit)


def time_step_settings() -> dict[str, float]:
    """Declare the settings `COURANT` of the problem file, and return their values."""
    return {name: setting(name, entry) for name, entry in COURANT.items()}


def stepping(mhd: MHD, dt: float, floor: float) -> tuple[Any, Callable[[Mapping[str, float]], str] | None]:
    """Return the argument `dt` of `halocline.Simulation`, and a function that returns the name of its limit.

    Parameters
    ----------
    dt : float
        Fixed time step; 0 for the Courant step. For a fixed time step, the function is None.
    floor : float
        Minimum time step; see `Courant`.
    """
    if dt > 0:
        return dt, None
    courant = Courant(floor=floor)
    return lambda: courant.step(mhd), courant.limit
