"""A shock tube: what viscosity and upwinding are for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import log, tanh
from halocline.lang.grid import Field, Grid
from halocline.physics.case import Case, Parameter, Setup
from halocline.physics.mhd import parameters
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.physics import Physics
from halocline.physics.mhd.timestep import COURANT, stepping

TUBE = Physics(magnetic=False, upwind=True, shock=True)
LENGTH = 1.0
SOD = "Sod 1978"

STATES = ("density_left", "pressure_left", "density_right", "pressure_right")


def _tube(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    """The tube 0 < x < 1 with its diaphragm at 1/2, and its mirror image at -1 < x < 0: the box is periodic.

    The gas on the left has s = 0.
    """
    gamma, cp = values["gamma"], values["cp"]
    left, p_left, right, p_right = (values[name] for name in STATES)
    grid = Grid(shape, extent=2 * LENGTH, origin=-LENGTH, periodic=True)
    mhd = MHD(grid, TUBE)
    assert mhd.s is not None
    # how much of the right side there is: differences of high order want a start that the grid resolves
    thickness = values["width"] * 2 * LENGTH / shape[0]
    share = 0.5 + 0.5 * tanh((magnitude(grid.x) - LENGTH / 2) / thickness)
    # density and pressure over those on the left
    rho, p = 1.0 + (right / left - 1.0) * share, 1.0 + (p_right / p_left - 1.0) * share
    lnrho0 = math.log(left)
    start: dict[Field, Any] = dict.fromkeys(mhd.fields, 0.0)
    start |= {mhd.lnrho: lnrho0 + log(rho), mhd.s: cp * (log(p) / gamma - log(rho))}
    own = {"cs0": math.sqrt(gamma * p_left / left), "lnrho0": lnrho0, "heating": 0.0}
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, {**values, **own}),
        start=start,
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_max", "mass", "rho_min", "rho_max", "E_kin", "E_th"),
        **stepping(mhd, values),
    )


CASES: Mapping[str, Case] = {
    "shock-tube": Case(
        about="Two gases at rest behind a diaphragm that bursts: a rarefaction, a contact and a shock.",
        origin="Sod 1978, J. Comput. Phys. 27, 1; exact solution: Toro 2009, Riemann Solvers and Numerical "
        "Methods for Fluid Dynamics, Chapter 4",
        shape=(512,),
        steps=150,
        parameters={
            "density_left": Parameter(1.0, "mass/length³", "at x < 1/2 at the start", above=0.0, origin=SOD),
            "pressure_left": Parameter(
                1.0, "mass/(length time²)", "at x < 1/2 at the start", above=0.0, origin=SOD
            ),
            "density_right": Parameter(
                0.125, "mass/length³", "at x > 1/2 at the start", above=0.0, origin=SOD
            ),
            "pressure_right": Parameter(
                0.1, "mass/(length time²)", "at x > 1/2 at the start", above=0.0, origin=SOD
            ),
            "width": Parameter(1.0, "1", "of the diaphragm, in cells", above=0.0),
            **COURANT,
            **{
                name: own
                for name, own in parameters.of(TUBE, SOD, gamma=1.4).items()
                if name not in ("cs0", "lnrho0", "heating")
            },
        },
        make=_tube,
    ),
}
