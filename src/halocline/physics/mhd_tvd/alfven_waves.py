"""A circularly polarised Alfvén wave, an exact solution of any amplitude (Mendygral et al. 2017, Section
6.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.functions import cos, sin
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Check, Checked, Parameter, Setup
from halocline.physics.mhd_tvd import parameters, setup
from halocline.physics.mhd_tvd.oblique import Direction

# boxes that hold one wave, and its direction, by their number of axes
EXTENTS = {1: (1.0,), 2: (math.sqrt(5), math.sqrt(5) / 2), 3: (3.0, 1.5, 1.5)}
ERROR = 100.0  # over the square of the cells along the shorter side
ALONG = {1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 2.0, 2.0)}


def _wave(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    axes, k, size = len(shape), 2 * math.pi, values["amplitude"]
    extent = EXTENTS[axes]
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
    mhd, along = parameters.solver(grid, values), Direction.of(*ALONG[axes])
    s = along.along(grid.coordinates())
    b = along.field(
        grid,
        (1.0, 0.0, 0.0),
        [lambda s: size * sin(k * s), lambda s: size * cos(k * s)],
        [lambda s: -size / k * cos(k * s), lambda s: size / k * sin(k * s)],
    )
    # velocity and field of one sign: the wave travels against the mean field, with 1 through the gas
    v = along.turned((0.0 - values["v"], size * sin(k * s), size * cos(k * s)))
    return setup.ready(mhd, values, setup.start(mhd, 1.0, v, 0.1, b), until=1.0 / (1.0 + values["v"]))


def _check(done: Checked) -> list[Check]:
    """The error after one period, which the cells along a wave length set."""
    found, cells = setup.general(done), min(done.shape)
    error = setup.error(done) / done.values["amplitude"]
    about = f"error of the wave over its amplitude, with {cells} cells along its shorter side"
    return [*found, Check("error", error, most=ERROR / cells**2, about=about)]


CASES: Mapping[str, Case] = {
    "cp-alfven": Case(
        about="A circularly polarised Alfvén wave that travels through a periodic box, obliquely.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.9; Tóth 2000, J. Comput. Phys. 161, 605",
        shape=(64, 32),
        shapes={1: (64,), 3: (64, 32, 32)},
        steps=None,
        until=1.0,
        parameters={
            "amplitude": Parameter(0.1, "1", "of velocity and field", above=0.0, origin="Tóth 2000"),
            "v": Parameter(0.0, "length/time", "velocity of the gas along the wave", above=-1.0),
            **parameters.of(),
        },
        make=_wave,
        check=_check,
        order=2,
    ),
}
