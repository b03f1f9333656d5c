"""Problems in the plane: the vortex of Orszag and Tang, and a rotor (Mendygral et al. 2017, Sections 6.5 and
6.6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.expression import Expr
from halocline.lang.functions import cos, maximum, minimum, sin, sqrt
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Setup
from halocline.physics.mhd_tvd import parameters, setup
from halocline.physics.mhd_tvd.scheme import IdealMHD

TURN = 2 * math.pi


def square(shape: tuple[int, ...]) -> Grid:
    """The periodic square around the origin."""
    return Grid(shape, extent=(1.0,) * len(shape), origin=(-0.5,) * len(shape), periodic=True)


def _orszag_tang(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    grid = square(shape)
    mhd = IdealMHD(grid, flux=values["flux"])
    x, y = grid.coordinates()
    B0 = 1 / math.sqrt(4 * math.pi)

    def potential(x: Expr, y: Expr) -> tuple[Any, ...]:
        return 0.0, 0.0, B0 / TURN * (0.5 * cos(2 * TURN * x) + cos(TURN * y))

    v = (-sin(TURN * y), sin(TURN * x), 0.0)
    b = setup.curl(grid, potential)
    at_start = setup.start(mhd, 25 / (36 * math.pi), v, 5 / (12 * math.pi), b)
    return setup.ready(mhd, values, at_start)


def _rotor(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """A dense disk, r < 0.1, that turns with v = 2 r / 0.1, and a taper to the gas at rest from r = 0.115
    on."""
    grid = square(shape)
    mhd = IdealMHD(grid, flux=values["flux"])
    x, y = grid.coordinates()
    r0, r1, v0 = 0.1, 0.115, 2.0
    r = sqrt(x * x + y * y)
    taper = minimum(maximum((r1 - r) / (r1 - r0), 0.0), 1.0)
    spin = taper * (v0 / maximum(r, r0))
    b = (5 / math.sqrt(4 * math.pi), 0.0, 0.0)
    at_start = setup.start(mhd, 1.0 + 9.0 * taper, (-spin * y, spin * x, 0.0), 1.0, b)
    return setup.ready(mhd, values, at_start)


CASES: Mapping[str, Case] = {
    "orszag-tang": Case(
        about="Vortices of flow and field that steepen into shocks.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.5; Orszag and Tang 1979, "
        "J. Fluid Mech. 90, 129",
        shape=(192, 192),
        steps=None,
        until=0.5,
        parameters=parameters.of(),
        make=_orszag_tang,
        order=2,
    ),
    "rotor": Case(
        about="A dense disk that turns in a field, which slows it by waves.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.6; the first rotor problem of Tóth 2000, "
        "J. Comput. Phys. 161, 605",
        shape=(400, 400),
        steps=None,
        until=0.15,
        parameters=parameters.of(gamma=1.4),
        make=_rotor,
        order=2,
    ),
}
