"""A blast in a strong field (Mendygral et al. 2017, Section 6.8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Figure
from halocline.lang.functions import symmetric_sum, where
from halocline.lang.grid import AXES, Grid
from halocline.physics.case import Case, Check, Checked, Parameter, Setup
from halocline.physics.mhd_tvd import drawn, parameters, setup
from halocline.physics.mhd_tvd.observed import primitives
from halocline.physics.mhd_tvd.observed import turned as half_turned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNTIL = 0.02
BURST = 0.1  # the least kinetic energy at that time, over the heat of the sphere
LEAST_HEAT = 1e-9


def _blast(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    extent = (1.0, 1.5, 1.0)[: len(shape)]
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
    mhd = parameters.solver(grid, values)
    inside = symmetric_sum(*(x * x for x in setup.centred(grid))) < values["radius"] ** 2
    b = (values["field"] / math.sqrt(2.0),) * 2
    p = where(inside, values["pressure"], 1.0)
    return setup.ready(mhd, values, setup.start(mhd, 1.0, (0.0, 0.0, 0.0), p, (*b, 0.0)))


def check(done: Checked) -> list[Check]:
    """What every run keeps, no use of a floor, symmetry under half a turn about the middle, and that the gas
    has burst out."""
    found, state = setup.general(done), primitives(done.simulation, done.values["gamma"])
    floors = sum(done.events[name]["count"] for name in ("density floor", "pressure floor"))
    found.append(Check("floors", floors, most=0, about="cells raised to the least density or pressure"))
    if state is not None:
        for quantity in ("rho", "p"):
            about = "difference from itself turned by 180°, over the greatest value"
            found.append(
                Check(f"{quantity} symmetric", half_turned(state[quantity]), most=1e-13, about=about)
            )
        found.append(_burst(done, state))
    return found


def _burst(done: Checked, state: Mapping[str, NDArray[np.float64]]) -> Check:
    """The kinetic energy, as a share of the heat that the sphere has beyond that of the gas around it.

    Pressure accelerates gas evenly at first: before the end of the case the energy grows as the square of
    time.
    """
    usual = CASES["blast"].parameters["pressure"].default
    if done.values["pressure"] < usual:  # motion goes as the square of what drives it, heat in proportion
        why = f"no bound for pressure = {done.values['pressure']:g}, below {usual:g}"
        return Check.not_compared("kinetic energy", why)
    start, gamma = done.series[0], done.values["gamma"]
    heat = start["energy"] - start["E_mag"] - 1.0 / (gamma - 1.0)
    if abs(heat) < LEAST_HEAT:
        return Check.not_compared("kinetic energy", "no gas is hotter than that around it")
    kinetic = 0.5 * float((state["rho"] * sum(state[f"v_{a}"] ** 2 for a in AXES)).mean())
    share = min(1.0, done.time / UNTIL)
    about = "over the heat that the sphere had beyond that around it"
    return Check("kinetic energy", kinetic / abs(heat), least=BURST * share**2, most=1.0, about=about)


def _maps(done: Checked) -> Figure | None:
    """In space in the plane z = 0 (Figure 22)."""
    maps = drawn.maps(done, "rho", "kinetic", "p_magnetic", p_magnetic="magnetic energy")
    return None if maps is None else Figure(maps, columns=3)


CASES: Mapping[str, Case] = {
    "blast": Case(
        about="Ideal MHD with shocks: hot gas that bursts out along a strong field.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.8; Londrillo and Del Zanna 2000, ApJ 530, 508",
        shape=(200, 300, 200),
        shapes={2: (200, 300)},
        steps=None,
        until=UNTIL,
        parameters={
            "radius": Parameter(0.125, "length", "of the hot sphere", above=0.0, origin=parameters.PAPER),
            "pressure": Parameter(
                100.0, "mass/(length time²)", "inside; 1 outside", above=0.0, origin=parameters.PAPER
            ),
            "field": Parameter(10.0, "field", "its strength, along (1, 1, 0)", origin=parameters.PAPER),
            **parameters.of(parameters.STEADY, courant=0.25),
        },
        make=_blast,
        check=check,
        figures={"maps": _maps},
        order=2,
    ),
}
