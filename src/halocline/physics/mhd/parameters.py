"""Choice of the equations, and their parameters with units and meanings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import log

from halocline.errors import InputError
from halocline.lang import program
from halocline.lang.expression import Expr
from halocline.lang.grid import AXES, suggestion, unknown_name_error
from halocline.run.simulation.settings import Setting, setting

ACCELERATION = "length/time²"
DIFFUSIVITY = "length²/time"
HYPER = "length⁶/time"
FIELD = "magnetic field"

# parameters whose default defines a unit
UNITS = ("cs0", "lnrho0", "cp", "mu0", "tau_cool", "T_cool")

ALL = {
    "nu": Setting(0.0, DIFFUSIVITY, "kinematic viscosity", minimum=0.0),
    "zeta": Setting(0.0, DIFFUSIVITY, "kinematic bulk viscosity", minimum=0.0),
    "eta": Setting(0.0, DIFFUSIVITY, "magnetic diffusivity", minimum=0.0),
    "mu0": Setting(1.0, "field² length time²/mass", "vacuum permeability", above=0.0),
    "cs0": Setting(1.0, "length/time", "speed of sound at density exp(lnrho0) and entropy 0", above=0.0),
    "lnrho0": Setting(0.0, "1", "logarithm of the density at which the speed of sound is cs0"),
    "gamma": Setting(5 / 3, "1", "ratio of specific heats", above=1.0, origin="a monatomic gas"),
    "cp": Setting(1.0, "length²/(time² temperature)", "specific heat at constant pressure", above=0.0),
    "K": Setting(
        0.0,
        "mass length/(time³ temperature)",
        "thermal conductivity at density exp(lnrho0)",
        minimum=0.0,
    ),
    "K_rho": Setting(0.0, "1", "exponent of the density in the conductivity"),
    "K_T": Setting(0.0, "1", "exponent of the temperature in the conductivity"),
    "heating": Setting(0.0, "mass/(length time³)", "heating rate per unit volume"),
    "tau_cool": Setting(1.0, "time", "cooling time", above=0.0),
    "T_cool": Setting(1.0, "temperature", "target temperature of the cooling", above=0.0),
    "nu3": Setting(0.0, HYPER, "hyperviscosity", minimum=0.0),
    "eta3": Setting(0.0, HYPER, "magnetic hyperdiffusivity", minimum=0.0),
    "D3": Setting(0.0, HYPER, "hyperdiffusivity of the logarithm of the density", minimum=0.0),
    "chi3": Setting(0.0, HYPER, "hyperdiffusivity of the entropy", minimum=0.0),
    "nu_shock": Setting(
        1.0, "1", "shock viscosity, in units of min(h)² times the convergence of the velocity", minimum=0.0
    ),
    **{f"g_{a}": Setting(0.0, ACCELERATION, f"gravity along {a}") for a in AXES},
    **{f"B_{a}": Setting(0.0, FIELD, f"imposed magnetic field along {a}") for a in AXES},
}


ALL |= {
    name: replace(entry, origin="0, which disables the term")
    for name, entry in ALL.items()
    if entry.default == 0.0
}
ALL |= {name: replace(ALL[name], origin="the unit") for name in UNITS}

LNT0 = Setting(
    0.0, "1", "logarithm of the temperature at which the speed of sound is cs0"
)  # follows from other parameters


def parameter(name: str) -> Expr:
    """Return a parameter of the equations. If its value is missing, the error message contains its unit."""
    entry = ALL.get(name, LNT0)
    return program.parameter(name, unit=entry.unit, about=entry.about)


def read_by(physics: Physics) -> tuple[str, ...]:
    """Return the names of the parameters that the equations read.

    lnT0 is not among them, since it follows from other parameters.
    """
    names = ["nu", "zeta", "cs0"]
    if physics.entropy:
        names += ["gamma", "cp", "lnrho0", "K", "heating"]
    if physics.conductivity == "power":
        names += ["K_rho", "K_T"]
    if physics.cooling:
        names += ["tau_cool", "T_cool"]
    if physics.magnetic:
        names += ["eta", "mu0"]
    if physics.imposed:
        names += [f"B_{a}" for a in AXES]
    if physics.gravity:
        names += [f"g_{a}" for a in AXES]
    if physics.hyperdiffusion:
        names += ["nu3", "D3"] + ["chi3"] * physics.entropy + ["eta3"] * physics.magnetic
    if physics.shock:
        names += ["nu_shock"]
    return tuple(names)


def settings(
    physics: Physics, origin: str = Setting.origin, *, without: Collection[str] = (), **defaults: float
) -> dict[str, float]:
    """Declare the parameters of the equations as settings of the problem file, and return their values.

    Parameters
    ----------
    physics : Physics
        Choice of the equations.
    origin : str
        Origin of the values in `defaults`, for the lists of settings.
    without : collection of str
        Parameters that follow from other numbers of the problem and are therefore not settings.
    **defaults
        Default values that replace the usual defaults, by parameter.

    Raises
    ------
    InputError
        `defaults` contains an unknown parameter, or a value is out of range.
    """
    for name, default in defaults.items():
        if name not in ALL:
            raise InputError(
                f"there is no parameter {name!r}{suggestion(name, ALL)}; known: {', '.join(ALL)}"
            )
        ALL[name].check(name, default)
    changed = {name: replace(ALL[name], default=default, origin=origin) for name, default in defaults.items()}
    names = (name for name in read_by(physics) if name not in without)
    return {name: setting(name, changed.get(name, ALL[name])) for name in names}


def complete(physics: Physics, values: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters that the equations read, including ln T₀.

    T₀ follows from the relation c_s0² = (γ - 1) c_p T₀ of an ideal gas.

    Raises
    ------
    InputError
        A parameter is missing or out of its range.
    """
    for name in read_by(physics):
        if name not in values:
            raise InputError(f"parameter {name!r} is missing: {ALL[name].about}, in {ALL[name].unit}")
        ALL[name].check(name, values[name])
    read = {name: values[name] for name in read_by(physics)}
    if physics.entropy:
        read["lnT0"] = log(read["cs0"] ** 2 / ((read["gamma"] - 1) * read["cp"]))
    return read


CONDUCTIVITIES = ("constant", "diffusivity", "power")


@dataclass(frozen=True)
class Physics:
    """Choice of the equations and of their terms.

    Parameters
    ----------
    entropy : bool
        True if the entropy is a field. Otherwise the gas is isothermal, and its speed of sound is cs0.
    magnetic : bool
        True if the magnetic vector potential is a field.
    imposed : bool
        True if a uniform magnetic field (B_x, B_y, B_z) is added to ∇ × A. Then A can be periodic although
        the mean magnetic field is not zero.
    conductivity : {"constant", "diffusivity", "power"}
        K, K ρ/ρ₀ (a constant diffusivity), or K (ρ/ρ₀)^a (T/T₀)^b with the parameters K_rho = a and K_T = b.
    cooling : bool
        True for Newtonian cooling, C = ρ c_v (T - T_cool) / tau_cool.
    upwind : bool
        True if ln ρ and s are advected by upwind differences, whose order is lower by one.
    hyperdiffusion : bool
        True for a term with the sixth derivative along each axis, multiplied by nu3, eta3, D3 or chi3. The
        energy that this term removes from the flow and the magnetic field does not heat the gas.
    shock : bool
        True for bulk viscosity where the flow converges, with the parameter nu_shock; see `shock_profile`.
    gravity : bool
        True for a uniform acceleration, (g_x, g_y, g_z).
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
            raise unknown_name_error("conductivity", self.conductivity, CONDUCTIVITIES)
        if not self.entropy and (self.cooling or self.conductivity != "constant"):
            term = "cooling" if self.cooling else f"conductivity {self.conductivity!r}"
            raise InputError(f"{term} acts on the entropy, but entropy is False; leave one of them out")
        if not self.magnetic and self.imposed:
            raise InputError("imposed is True, but magnetic is False; leave one of them out")
