"""Convection in a layer between two walls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.errors import InputError
from halocline.lang.boundary import Antisymmetric, BoundaryKernel, Extrapolate, Ghost, Inward, Symmetric
from halocline.lang.expression import Expr
from halocline.lang.functions import cos, exp, log, random, sin
from halocline.lang.grid import AXES, Field, Grid
from halocline.lang.program import parameter
from halocline.lang.trace import default_order
from halocline.physics.case import Case, Parameter, Setup, seed
from halocline.physics.mhd import parameters
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.physics import Physics
from halocline.physics.mhd.timestep import COURANT, stepping

LAYER = Physics(magnetic=False, gravity=True)
WIDTH = 2 * math.sqrt(2)  # of the rolls that set in first, in depths of the layer (Rayleigh 1916)
DENSITY = Extrapolate(4)


class Polytrope:
    """A layer 0 < z < 1 at rest that conducts heat: T falls linearly, and ρ is as T to the power m.

    The unit of length is the depth, of density that in the middle, of acceleration gravity.

    Attributes
    ----------
    bottom, top, middle : float
        Temperature.
    cs0, nu, K : float
        Speed of sound in the middle; viscosity and conductivity that give the Rayleigh and Prandtl numbers.
    """

    def __init__(self, values: Mapping[str, float]) -> None:
        self.gamma, self.cp, self.index = (values[name] for name in ("gamma", "cp", "index"))
        most = 1 / (self.gamma - 1)
        if self.index >= most:
            raise InputError(f"index is {self.index:g}; a layer is unstable below 1 / (gamma - 1) = {most:g}")
        fall = self.gamma / ((self.gamma - 1) * self.cp * (self.index + 1))  # of T over the depth
        self.top = fall / values["contrast"]
        self.bottom = self.top + fall
        self.middle = (self.top + self.bottom) / 2
        self.cs0 = math.sqrt((self.gamma - 1) * self.cp * self.middle)
        # -ds/dz / c_p in the middle; Ra = g d⁴ (-ds/dz / c_p) / (ν χ), Pr = ν / χ, χ = K / (ρ c_p)
        steepness = fall / self.middle * (1 - self.index * (self.gamma - 1)) / self.gamma
        self.nu = math.sqrt(steepness / values["rayleigh"] * values["prandtl"])
        self.K = self.cp * self.nu / values["prandtl"]

    def warmth(self, z: Expr) -> Expr:
        """ln T at a height, over that in the middle."""
        return log((self.bottom + (self.top - self.bottom) * z) / self.middle)

    def lnrho(self, z: Expr) -> Expr:
        """ln ρ at a height."""
        return self.index * self.warmth(z)

    def entropy(self, z: Expr) -> Expr:
        """s at a height; none in the middle."""
        return self.cp / self.gamma * (1 - self.index * (self.gamma - 1)) * self.warmth(z)


def fixed_temperature(name: str) -> BoundaryKernel:
    """The entropy beyond a wall with a temperature: T continues antisymmetrically about it, as a linear one
    does, and ln ρ as its own condition says."""

    def entropy(s: Inward, layer: int) -> Expr:
        lnrho = s.at.field.grid.fields["lnrho"]
        gamma, cp = parameter("gamma"), parameter("cp")
        lnT0, lnrho0 = parameter("lnT0"), parameter("lnrho0")
        inside = exp(lnT0 + gamma / cp * s[layer] + (gamma - 1.0) * (s.of(lnrho)[layer] - lnrho0))
        lnT = log(2.0 * parameter(name) - inside)
        density = DENSITY.ghost(Ghost(lnrho, s.at.axis, s.at.side, layer))
        return cp / gamma * (lnT - lnT0 - (gamma - 1.0) * (density - lnrho0))

    return BoundaryKernel(entropy)


def _check_ghosts(contrast: float, cells: int) -> None:
    """Raise InputError where T, continued linearly beyond the cold wall, is not above 0 in all ghosts."""
    most = cells / ((default_order() - 1) / 2)  # the last centre is radius - 1/2 cells beyond the wall
    if contrast >= most:
        raise InputError(
            f"contrast is {contrast:g}; expected a number below {most:g} with {cells} cells between the "
            f"walls and order {default_order()}: beyond the cold wall the temperature falls below 0; take "
            "more cells, or a smaller contrast"
        )


def _convection(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    """Gravity acts along the last axis, across which the walls lie; nothing rubs on them."""
    layer = Polytrope(values)
    up = len(shape) - 1
    _check_ghosts(values["contrast"], shape[up])
    across, high = AXES[up], f"{AXES[up]}+"
    wide = tuple(values["width"] if n > 1 else values["width"] / shape[0] for n in shape[:up])
    grid = Grid(shape, extent=(*wide, 1.0), periodic=[axis != up for axis in range(len(shape))])
    mhd = MHD(
        grid,
        LAYER,
        boundary={
            "lnrho": DENSITY,
            "u": [Antisymmetric() if axis == up else Symmetric() for axis in range(3)],
            "s": {f"{across}-": fixed_temperature("T_bottom"), high: fixed_temperature("T_top")},
        },
    )
    assert mhd.s is not None
    x, z = grid.x, grid.coordinates()[up]
    pattern = cos(2 * math.pi / values["width"] * x) + (random(values["seed"], 0, grid.cell_number()) - 0.5)
    start: dict[Field, Any] = dict.fromkeys(mhd.fields, 0.0)
    start |= {mhd.lnrho: layer.lnrho(z), mhd.s: layer.entropy(z)}
    start[mhd.u[up]] = values["amplitude"] * sin(math.pi * z) * pattern
    own = {"nu": layer.nu, "K": layer.K, "cs0": layer.cs0, "lnrho0": 0.0, "zeta": 0.0, "heating": 0.0}
    own |= {f"g_{axis}": -1.0 if axis == across else 0.0 for axis in AXES}
    walls = {"T_bottom": layer.bottom, "T_top": layer.top}
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, {**values, **own}) | walls,
        start=start,
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_rms", "u_max", "mass", "E_kin", "E_th", "T_min", "T_max"),
        **stepping(mhd, values),
    )


CASES: Mapping[str, Case] = {
    "convection": Case(
        about="A gas heated from below, between walls of fixed temperature: rolls set in, or die away.",
        origin="polytropic layers: Gough, Moore, Spiegel and Toomre 1976, ApJ 206, 536; Hurlburt, Toomre and "
        "Massaguer 1984, ApJ 282, 557",
        shape=(64, 64, 32),
        steps=1000,
        least_axes=2,
        parameters={
            "rayleigh": Parameter(1e4, "1", "Rayleigh number in the middle of the layer", above=0.0),
            "prandtl": Parameter(1.0, "1", "Prandtl number in the middle of the layer", above=0.0),
            "index": Parameter(1.0, "1", "polytropic index of the layer at rest", above=-1.0),
            "contrast": Parameter(
                1.0, "1", "fall of temperature over the layer, over that at the top", above=0.0
            ),
            "width": Parameter(
                WIDTH, "depth of the layer", "of the box, along each periodic axis", above=0.0
            ),
            "amplitude": Parameter(1e-3, "length/time", "greatest velocity at the start, of the even rolls"),
            "seed": seed("of the random part of the velocity at the start"),
            "gamma": parameters.ALL["gamma"],
            "cp": parameters.ALL["cp"],
            **COURANT,
        },
        make=_convection,
    ),
}
