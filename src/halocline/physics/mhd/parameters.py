"""The numbers that the equations read: units and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log

from halocline.errors import InputError
from halocline.lang import program
from halocline.lang.expression import Expr
from halocline.lang.grid import AXES, near
from halocline.physics.case import Parameter
from halocline.physics.mhd.physics import Physics

ACCELERATION = "length/time²"
DIFFUSIVITY = "length²/time"
HYPER = "length⁶/time"
FIELD = "magnetic field"

# of which the default is the unit that a case measures in
UNITS = ("cs0", "lnrho0", "cp", "mu0", "tau_cool", "T_cool")

ALL = {
    "nu": Parameter(0.0, DIFFUSIVITY, "kinematic viscosity", least=0.0),
    "zeta": Parameter(0.0, DIFFUSIVITY, "kinematic bulk viscosity", least=0.0),
    "eta": Parameter(0.0, DIFFUSIVITY, "magnetic diffusivity", least=0.0),
    "mu0": Parameter(1.0, "field² length time²/mass", "vacuum permeability", above=0.0),
    "cs0": Parameter(1.0, "length/time", "speed of sound at density exp(lnrho0) and entropy 0", above=0.0),
    "lnrho0": Parameter(0.0, "1", "logarithm of the density where the speed of sound is cs0"),
    "gamma": Parameter(5 / 3, "1", "ratio of specific heats", above=1.0, origin="a monatomic gas"),
    "cp": Parameter(1.0, "length²/(time² temperature)", "specific heat at constant pressure", above=0.0),
    "K": Parameter(
        0.0,
        "mass length/(time³ temperature)",
        "thermal conductivity, where the density is exp(lnrho0)",
        least=0.0,
    ),
    "K_rho": Parameter(0.0, "1", "power of the density in the conductivity"),
    "K_T": Parameter(0.0, "1", "power of the temperature in the conductivity"),
    "heating": Parameter(0.0, "mass/(length time³)", "heat given to a unit of volume"),
    "tau_cool": Parameter(1.0, "time", "time that cooling takes", above=0.0),
    "T_cool": Parameter(1.0, "temperature", "temperature that cooling leads to", above=0.0),
    "nu3": Parameter(0.0, HYPER, "hyperviscosity", least=0.0),
    "eta3": Parameter(0.0, HYPER, "magnetic hyperdiffusivity", least=0.0),
    "D3": Parameter(0.0, HYPER, "hyperdiffusivity of the logarithm of the density", least=0.0),
    "chi3": Parameter(0.0, HYPER, "hyperdiffusivity of the entropy", least=0.0),
    "nu_shock": Parameter(1.0, "1", "shock viscosity in units of min(h)² times the convergence", least=0.0),
    **{f"g_{a}": Parameter(0.0, ACCELERATION, f"gravity along {a}") for a in AXES},
    **{f"B_{a}": Parameter(0.0, FIELD, f"imposed magnetic field along {a}") for a in AXES},
}


ALL |= {
    name: replace(own, origin="0, which leaves it out") for name, own in ALL.items() if own.default == 0.0
}
ALL |= {name: replace(ALL[name], origin="the unit") for name in UNITS}

LNT0 = Parameter(
    0.0, "1", "logarithm of the temperature where the speed of sound is cs0"
)  # follows from others


def parameter(name: str) -> Expr:
    """A parameter of the equations; the error for a missing one gives its unit."""
    own = ALL.get(name, LNT0)
    return program.parameter(name, unit=own.unit, about=own.about)


def read_by(physics: Physics) -> tuple[str, ...]:
    """The names of the parameters that equations read, but for lnT0, which follows from others."""
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


def of(physics: Physics, origin: str = Parameter.origin, **defaults: float) -> dict[str, Parameter]:
    """The parameters of a case with these equations; some with other defaults, and where these come from.

    Raises
    ------
    InputError
        A default of an unknown parameter, or one out of its range.
    """
    for name, own in defaults.items():
        if name not in ALL:
            raise InputError(f"there is no parameter {name!r}{near(name, ALL)}; known: {', '.join(ALL)}")
        ALL[name].check(name, own)
    changed = {name: replace(ALL[name], default=own, origin=origin) for name, own in defaults.items()}
    return {name: changed.get(name, ALL[name]) for name in read_by(physics)}


def complete(physics: Physics, values: Mapping[str, float]) -> dict[str, float]:
    """What the equations read, with ln T₀ so that the gas is ideal: c_s0² = (γ - 1) c_p T₀.

    Raises
    ------
    InputError
        One is missing, or has a value that it cannot have.
    """
    for name in read_by(physics):
        if name not in values:
            raise InputError(f"parameter {name!r} is missing: {ALL[name].about}, in {ALL[name].unit}")
        ALL[name].check(name, values[name])
    read = {name: values[name] for name in read_by(physics)}
    if physics.entropy:
        read["lnT0"] = log(read["cs0"] ** 2 / ((read["gamma"] - 1) * read["cp"]))
    return read
