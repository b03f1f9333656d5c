"""Parameters of the scheme with their ranges, and kinds of event that are counted during a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from halocline.errors import InputError
from halocline.physics.mhd_tvd.reconstruct import LIMITERS
from halocline.physics.mhd_tvd.scheme import FLUXES
from halocline.physics.mhd_tvd.tally import COUNTED
from halocline.run.simulation.events import Event
from halocline.run.simulation.settings import Setting, setting

PAPER = "Mendygral et al. 2017"
RJ95 = "chosen here: the minimum for the test problems; Ryu and Jones 1995 use about 0.1 to 0.3"
STEADY = "chosen here: first-order fluxes are also stable, so that floors are rarely active"

EPSILON = {
    f"epsilon_{family}": Setting(
        default, "1", f"numerical viscosity of {waves}, ε", minimum=0.0, below=0.5, origin=RJ95
    )
    for family, waves, default in (
        ("fast", "fast waves", 0.1),
        ("alfven", "Alfvén waves", 0.0),
        ("slow", "slow waves", 0.05),
        ("entropy", "entropy waves", 0.0),
    )
}

FLOORS = {
    "density_protection": Setting(
        1e-6, "mass/length³", "density below which the fluxes are HLL fluxes", minimum=0.0
    ),
    "pressure_protection": Setting(
        1e-6, "mass/(length time²)", "pressure below which the fluxes are HLL fluxes", minimum=0.0
    ),
    "density_floor": Setting(1e-10, "mass/length³", "minimum density", above=0.0),
    "pressure_floor": Setting(1e-10, "mass/(length time²)", "minimum pressure", above=0.0),
}

ALL: Mapping[str, Setting] = {
    "gamma": Setting(5 / 3, "1", "ratio of specific heats", above=1.0, origin=PAPER),
    "limiter": Setting(
        2.0, "1", "steepness β of limited waves and slopes: 1 is minmod", minimum=1.0, maximum=2.0
    ),
    "limiting": Setting(
        "central",
        "1",
        "bound for limited waves and slopes; sweby is the bound of the paper",
        words=tuple(LIMITERS),
    ),
    "courant": Setting(
        0.0,
        "1",
        "Courant number; 0: automatic, 0.8 times the largest stable one (1 on one or two axes, 0.5 on three)",
        minimum=0.0,
    ),
    **EPSILON,
    **FLOORS,
    "warn_above": Setting(
        1e-3,
        "1",
        "a run warns if a larger share of cell updates has a floor or fallback; 0: no warning",
        minimum=0.0,
        maximum=1.0,
    ),
    "flux": Setting("mhdtvd", "1", "fluxes between cells", words=tuple(FLUXES), origin=PAPER),
}

# stability limits of the Courant number (Gardiner and Stone 2008, for six Riemann problems per step)
STABLE = {1: 1.0, 2: 1.0, 3: 0.5}

WITHOUT_EPSILON = ("hll", "hlld")  # fluxes without numerical viscosity

_REPORTED = (
    ("HLL fallback", "density or pressure of the step would be below the protection floors"),
    ("mixing", "cells without mass or heat exchanged mass, momentum and heat with their neighbours"),
    ("density floor", "the density was raised: mass is not conserved"),
    ("pressure floor", "the pressure was raised: energy is not conserved"),
)


def events(values: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return the kinds of event that are counted during a run."""
    share = float(values["warn_above"])
    return tuple(
        Event(name, scalar, about, share) for scalar, (name, about) in zip(COUNTED, _REPORTED, strict=True)
    )


def settings(origin: str = Setting.origin, /, **defaults: float | str) -> dict[str, Any]:
    """Declare the parameters of the scheme as settings of the problem file, and return their values.

    Parameters
    ----------
    origin : str
        Origin of the values in `defaults`, for the lists of settings.
    **defaults
        Default values that replace the usual defaults, by parameter.

    Raises
    ------
    InputError
        A value is out of range, or a numerical viscosity is set that the fluxes do not have.
    """
    changed = {name: replace(ALL[name], default=default, origin=origin) for name, default in defaults.items()}
    values = {name: setting(name, changed.get(name, entry)) for name, entry in ALL.items()}
    check_epsilon(values)
    return values


def check_epsilon(values: Mapping[str, Any]) -> None:
    """Raise InputError if a numerical viscosity is set that the fluxes do not have."""
    flux = values["flux"]
    for name, entry in EPSILON.items():
        if flux in WITHOUT_EPSILON and values[name] != entry.default:
            having = ", ".join(other for other in FLUXES if other not in WITHOUT_EPSILON)
            raise InputError(
                f"{name} is {values[name]:g}, but flux {flux} has no numerical viscosity. Leave {name} out, "
                f"or choose a flux with numerical viscosity: {having}"
            )


def courant_number(values: Mapping[str, Any], axes: int) -> float:
    """Return the Courant number of the scheme on a number of axes.

    Raises
    ------
    InputError
        The Courant number is too large.
    """
    number = float(values["courant"]) or 0.8 * STABLE[axes]
    check_courant(number, axes)
    return number


def check_courant(number: float, axes: int) -> None:
    """Raise InputError if a Courant number is above the stability limit for a number of axes."""
    most, on = STABLE[axes], "one axis" if axes == 1 else f"{axes} axes"
    if not number > 0.0:
        raise InputError(f"courant is {number:g}; expected a number above 0 and below {most:g}")
    if number >= most:
        raise InputError(
            f"courant is {number:g}; expected less than {most:g}, because longer steps on {on} are unstable"
        )


def why_unbounded(values: Mapping[str, Any]) -> str:
    """Return the reason why error bounds do not hold; empty if they hold.

    The reason is a parameter that makes the scheme more diffusive than its default.
    """
    if values["flux"] == "hll":
        return "no bound for flux hll, which is too diffusive for most waves"
    for name, entry in ALL.items():
        value, usual = values[name], entry.default
        if name == "limiting" and value != usual:
            return f"no bound for limiting {value}, only for {usual}"
        if (name == "limiter" and value < usual) or (name in EPSILON and value > usual):
            return f"no bound for {name} = {value:g}, only for {usual:g}"
    return ""


def of_program(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the parameters that the program of the scheme reads."""
    unread = {"flux", "limiting", "courant", "warn_above"}
    unread |= set(EPSILON if values["flux"] in WITHOUT_EPSILON else ())
    return {name: values[name] for name in ALL if name not in unread}
