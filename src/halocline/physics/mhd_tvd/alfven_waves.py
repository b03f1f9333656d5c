"""A circularly polarised Alfvén wave, an exact solution of any amplitude (Mendygral et al. 2017, Section
6.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.functions import cos, sin
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Parameter, Setup
from halocline.physics.mhd_tvd import parameters, setup
from halocline.physics.mhd_tvd.oblique import Direction
from halocline.physics.mhd_tvd.scheme import IdealMHD

# boxes that hold one wave, and its direction, by their number of axes
EXTENTS = {1: (1.0,), 2: (math.sqrt(5), math.sqrt(5) / 2), 3: (3.0, 1.5, 1.5)}
ALONG = {1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 2.0, 2.0)}


def _wave(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    axes, k, size = len(shape), 2 * math.pi, values["amplitude"]
    extent = EXTENTS[axes]
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
    mhd, along = IdealMHD(grid, flux=values["flux"]), Direction.of(*ALONG[axes])
    s = along.along(grid.coordinates())
    b = along.field(
        grid,
        (1.0, 0.0, 0.0),
        [lambda s: size * sin(k * s), lambda s: size * cos(k * s)],
        [lambda s: -size / k * cos(k * s), lambda s: size / k * sin(k * s)],
    )
    v = along.turned((values["v"], size * sin(k * s), size * cos(k * s)))
    return setup.ready(mhd, values, setup.start(mhd, 1.0, v, 0.1, b))


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
            "v": Parameter(0.0, "length/time", "of the gas along the wave; 1 for one that stands"),
            **parameters.of(),
        },
        make=_wave,
        order=2,
    ),
}
