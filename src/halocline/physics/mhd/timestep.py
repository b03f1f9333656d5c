"""The Courant time step of the equations, and which limit it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, sqrt
from halocline.lang.program import parameter, scalar, stop
from halocline.lang.reductions import dot
from halocline.lang.reductions import max as greatest
from halocline.physics.case import Parameter
from halocline.physics.mhd.equations import MHD, Gas

# what limits a time step, and the scalar that holds its rate, in 1 / time
LIMITS = {
    "advection": "rate_advection",
    "fast magnetosonic waves": "rate_waves",
    "viscosity": "rate_viscosity",
    "resistivity": "rate_resistivity",
    "conduction": "rate_conduction",
}

# the parameters of cases that choose their time step
COURANT = {
    "dt": Parameter(0.0, "time", "time step; 0 for that of Courant numbers 0.9 and 0.25"),
    "floor": Parameter(0.0, "time", "the run ends where that step is shorter"),
}


@dataclass(frozen=True)
class Courant:
    """dt = 1 / max((advection + waves) / c_advection, diffusion / c_diffusion).

    The rates are those of the Pencil Code: Σ |u_i| / h_i; √((c_s² + v_A²) Σ 1 / h_i²); D Σ 1 / h_i², with D
    the viscosity 4/3 ν + ζ, the resistivity η, and the thermal diffusivity γ K / (ρ c_p).

    Parameters
    ----------
    advection, diffusion : float
        The Courant numbers. Third-order Runge-Kutta and sixth-order differences are stable below 1.09 and
        0.41: √3 over 1.586, the greatest modified wave number, and 2.51 over 6.04, that of the second
        derivative.
    floor : float
        The run ends where the step would be shorter, with the name of the limit.
    """

    advection: float = 0.9
    diffusion: float = 0.25
    floor: float = 0.0

    def step(self, mhd: MHD) -> Expr:
        """The time step of the present fields; the rates are scalars of the program that is traced."""
        rates = {name: scalar(LIMITS[name]) for name in self.rates(mhd)}
        for name, rate in self.rates(mhd).items():
            rates[name].set(rate)
        shares = {name: rate / self.number(name) for name, rate in rates.items()}
        moving = shares.pop("advection") + shares.pop("fast magnetosonic waves")
        fastest = maximum(moving, *shares.values())
        if self.floor > 0:
            slower = rates["advection"] < rates["fast magnetosonic waves"]
            causes = {"advection": (moving, ~slower), "fast magnetosonic waves": (moving, slower)}
            causes |= {name: (share, share >= 0.0) for name, share in shares.items()}
            for name, (share, cause) in causes.items():
                short = (1.0 / fastest < self.floor) & (share >= fastest) & cause
                stop(short, f"the time step is below {self.floor:g}, limited by {name}")
        return 1.0 / fastest

    def number(self, limit: str) -> float:
        """The Courant number of a limit."""
        return self.advection if limit in ("advection", "fast magnetosonic waves") else self.diffusion

    def limit(self, scalars: Mapping[str, float]) -> str:
        """What limits the step, by the scalars that a run left."""
        rates = {name: scalars[own] for name, own in LIMITS.items() if own in scalars}
        moving = rates["advection"] + rates["fast magnetosonic waves"]
        mover = max(("advection", "fast magnetosonic waves"), key=rates.__getitem__)
        shares = {name: rate / self.number(name) for name, rate in rates.items()}
        shares[mover] = moving / self.advection
        return max(shares, key=shares.__getitem__)

    def rates(self, mhd: MHD) -> dict[str, Expr]:
        """The rate of each limit, over the grid."""
        grid, physics, gas = mhd.grid, mhd.physics, Gas(mhd.lnrho, mhd.s)
        axes = range(grid.ndim)
        advection, squares = as_expr(0.0), as_expr(0.0)
        for axis in axes:
            advection = advection + magnitude(mhd.u[axis]) / grid.h(axis)
            squares = squares + 1.0 / grid.h(axis) ** 2
        speed2 = gas.cs2
        if mhd.A is not None:
            B = mhd.field()
            speed2 = speed2 + dot(B, B) * gas.volume / parameter("mu0")
        found = {"advection": greatest(advection)}
        waves = sqrt(speed2 * squares)
        found["fast magnetosonic waves"] = greatest(waves) if waves.varies else waves
        found["viscosity"] = (parameter("nu") * (4.0 / 3.0) + parameter("zeta")) * squares
        if mhd.A is not None:
            found["resistivity"] = parameter("eta") * squares
        if mhd.s is not None:
            diffusivity = gas.diffusivity(physics.conductivity)
            if diffusivity.varies:
                diffusivity = greatest(diffusivity)
            found["conduction"] = diffusivity * squares
        return found


def stepping(mhd: MHD, values: Mapping[str, float]) -> dict[str, Any]:
    """The time step of a case with the parameters `COURANT`, and what limits it, as `Setup` takes them.

    Raises
    ------
    InputError
        One of them is negative.
    """
    for name in COURANT:
        if not values[name] >= 0:
            raise InputError(f"{name} is {values[name]:g}; expected a time from 0 on")
    if values["dt"] > 0:
        return {"dt": values["dt"], "limit": None}
    courant = Courant(floor=values["floor"])
    return {"dt": lambda: courant.step(mhd), "limit": courant.limit}
