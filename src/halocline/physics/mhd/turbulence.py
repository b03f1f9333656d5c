"""Turbulence in a periodic box, and the magnetic field that it makes grow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.expression import Expr
from halocline.lang.functions import cos, random, sin
from halocline.lang.grid import Field, Grid, Vector
from halocline.lang.program import parameter
from halocline.physics.case import Case, Parameter, Setup, seed
from halocline.physics.mhd import parameters
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.forcing import Forcing
from halocline.physics.mhd.physics import Physics
from halocline.physics.mhd.timestep import COURANT, stepping

BOX = 2 * math.pi

ISOTHERMAL = Physics(entropy=False)
FIELD_SEED = 2**32  # further than the seeds of forcing go


def _helical(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    grid = Grid(shape, extent=(BOX,) * len(shape), periodic=True)
    mhd = MHD(grid, ISOTHERMAL)
    assert mhd.A is not None
    forcing = Forcing(values["kmin"], values["kmax"])
    forcing.vectors(grid)  # wrong numbers are found here

    def force(step: Any, dt: Any) -> Vector:
        names = {"seed": "seed", "strength": "force", "helicity": "sigma", "speed": "cs0"}
        return forcing(grid, step=step, dt=dt, **{own: parameter(name) for own, name in names.items()})

    def equations(step: Any, dt: Any) -> dict[Field, Expr]:
        return mhd.equations(force(step, dt))

    number = grid.cell_number()
    seeds = {
        f: values["seed_field"] * (2.0 * random(FIELD_SEED + values["seed"], n, number) - 1.0)
        for n, f in enumerate(mhd.A)
    }
    own = {name: values[name] for name in ("seed", "force", "sigma")}
    return Setup(
        grid=grid,
        equations=equations,
        parameters=parameters.complete(mhd.physics, values) | own,
        start=dict.fromkeys(mhd.fields, 0.0) | seeds,
        diagnostics=lambda: diagnostics(mhd),
        terms=lambda: mhd.terms(force(parameter("step"), parameter("dt"))),
        shown=("u_rms", "B_rms", "E_kin", "E_mag", "kinetic_helicity", "magnetic_helicity"),
        **stepping(mhd, values),
    )


VORTEX = Physics()

SAMPLE = "Pencil Code, samples/helical-MHDturb"


def _orszag_tang(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    """u = U (-sin y, sin x, 0), B = B₀ (-sin y, sin 2x, 0), uniform density and pressure."""
    grid = Grid(shape, extent=(BOX,) * len(shape), periodic=True)
    mhd = MHD(grid, VORTEX)
    assert mhd.A is not None
    x, y = grid.x, grid.y
    U, B = values["velocity"], values["field"]
    start: dict[Field, Any] = dict.fromkeys(mhd.fields, 0.0)
    start |= {mhd.lnrho: values["lnrho0"], mhd.u[0]: -U * sin(y), mhd.u[1]: U * sin(x)}
    # B = (∂A_z/∂y, -∂A_z/∂x)
    start[mhd.A[2]] = B * (cos(y) + 0.5 * cos(2.0 * x))
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, values),
        start=start,
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_rms", "B_rms", "E_kin", "E_mag", "E_th", "j_rms"),
        **stepping(mhd, values),
    )


CASES: Mapping[str, Case] = {
    "helical-turbulence": Case(
        about="Isothermal turbulence, forced at random by helical waves: a dynamo.",
        origin="the Pencil Code's sample helical-MHDturb, with another start and time step; the forcing of "
        "Brandenburg 2001, ApJ 550, 824",
        shape=(32, 32, 32),
        steps=200,
        parameters={
            "force": Parameter(0.07, "1", "strength of the forcing, f0", origin=SAMPLE),
            "sigma": Parameter(
                1.0, "1", "helicity of the forcing: 1 or -1 fully helical, 0 not", origin=SAMPLE
            ),
            "kmin": Parameter(
                2.1,
                "1/length",
                "least wave number of the forcing, in the box of length 2π",
                least=0.0,
                origin=SAMPLE,
            ),
            "kmax": Parameter(
                3.0, "1/length", "wave number below which that of the forcing is", above=0.0, origin=SAMPLE
            ),
            "seed": seed("of the random numbers"),
            "seed_field": Parameter(1e-4, "field length", "greatest vector potential at the start"),
            **COURANT,
            **parameters.of(ISOTHERMAL, SAMPLE, nu=5e-3, eta=5e-3),
        },
        least_axes=2,
        make=_helical,
    ),
    "orszag-tang-resistive": Case(
        about="A vortex in two dimensions that folds a magnetic field into current sheets and heats gas.",
        origin="Orszag and Tang 1979, J. Fluid Mech. 90, 129; compressible: Dahlburg and Picone 1989, "
        "Phys. Fluids B 1, 2153",
        shape=(128, 128),
        steps=400,
        parameters={
            "velocity": Parameter(
                1.0, "length/time", "greatest velocity of each component", origin="the unit"
            ),
            "field": Parameter(1.0, "magnetic field", "greatest field along x", origin="the unit"),
            **COURANT,
            **parameters.of(VORTEX, nu=0.02, eta=0.02, K=0.02, cs0=3.0),
        },
        make=_orszag_tang,
    ),
}
