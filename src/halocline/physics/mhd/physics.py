"""Which of the equations of magnetohydrodynamics are solved."""

from __future__ import annotations

from dataclasses import dataclass

from halocline.errors import InputError

CONDUCTIVITIES = ("constant", "diffusivity", "power")


@dataclass(frozen=True)
class Physics:
    """Which of the equations are solved.

    Parameters
    ----------
    entropy : bool
        Without it the gas is isothermal: the speed of sound is cs0 everywhere.
    magnetic : bool
    imposed : bool
        A uniform magnetic field (B_x, B_y, B_z) beside that of A, which may be periodic then.
    conductivity : {"constant", "diffusivity", "power"}
        K, K ρ/ρ₀ (a constant diffusivity), or K (ρ/ρ₀)^a (T/T₀)^b with the parameters K_rho = a and K_T = b.
    cooling : bool
        Newtonian cooling, C = ρ c_v (T - T_cool) / tau_cool.
    upwind : bool
        lnρ and s are advected by differences that lean upwind, of one order less.
    hyperdiffusion : bool
        The sixth derivative along each axis, times nu3, eta3, D3 or chi3. What it takes from the flow and
        the magnetic field gives no heat.
    shock : bool
        Bulk viscosity where the flow converges, nu_shock; see `shock_profile`.
    gravity : bool
        A uniform acceleration, (g_x, g_y, g_z).
    """

    entropy: bool = True
    magnetic: bool = True
    imposed: bool = False
    conductivity: str = "constant"
    cooling: bool = False
    upwind: bool = False
    hyperdiffusion: bool = False
    shock: bool = False
    gravity: bool = False

    def __post_init__(self) -> None:
        if self.conductivity not in CONDUCTIVITIES:
            raise InputError(
                f"conductivity {self.conductivity!r} is unknown; known are {', '.join(CONDUCTIVITIES)}"
            )
        if not self.entropy and (self.cooling or self.conductivity != "constant"):
            what = "cooling" if self.cooling else f"conductivity {self.conductivity!r}"
            raise InputError(f"{what} acts on the entropy, but entropy is False; leave one of them out")
        if not self.magnetic and self.imposed:
            raise InputError("imposed is True, but magnetic is False; leave one of them out")
