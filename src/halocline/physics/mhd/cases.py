"""Cases of magnetohydrodynamics."""

from __future__ import annotations

from collections.abc import Mapping

from halocline.lang.functions import random
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Parameter, Setup, seed
from halocline.physics.mhd import parameters
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.physics import Physics


def _benchmark(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    grid = Grid(shape, extent=tuple(2 * 3.141592653589793 for _ in shape), periodic=True)
    mhd = MHD(grid)
    number = grid.cell_number()
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, values),
        dt=values["dt"],
        start={f: random(values["seed"], n, number) for n, f in enumerate(mhd.fields)},
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_rms", "B_rms", "E_kin", "E_mag", "E_th"),
    )


CASES: Mapping[str, Case] = {
    "mhd-benchmark": Case(
        about="All terms of the equations on random fields, as the paper measures them.",
        origin="Pekkilä et al. 2022, Parallel Computing 111, 102904, Section 5",
        shape=(128, 128, 128),
        steps=10,
        parameters={
            "dt": Parameter(2.0**-23, "time", "time step", above=0.0, origin="Pekkilä et al. 2022"),
            "seed": seed("of the random fields"),
            **parameters.of(Physics(), nu=5e-3, zeta=5e-3, eta=5e-3, K=5e-3),
        },
        make=_benchmark,
    ),
}
