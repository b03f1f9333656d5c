"""A weak loop of field that is carried along (Mendygral et al. 2017, Section 6.7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.io.figure import Figure, Map
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import maximum, sqrt
from halocline.lang.grid import AXES, Grid, Vector
from halocline.physics.case import Case, Check, Checked, Parameter, Setup
from halocline.physics.mhd_tvd import parameters, setup, transport
from halocline.physics.mhd_tvd.gas import squared

GS08 = "Gardiner and Stone 2008"


def _loop(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """In the plane along z; in space a cylinder along (-1, 0, 2)/√5, of period 2/√5 across it (GS08, Section
    6.1)."""
    A, R0 = values["amplitude"], values["radius"]
    if len(shape) == 2:
        grid = Grid(shape, extent=(2.0, 1.0), origin=(-1.0, -0.5), periodic=True)
        v: tuple[float, ...] = (2.0, 0.5, values["v_z"])

        def potential(x: Expr, y: Expr, *_: Expr) -> tuple[Any, ...]:
            return 0.0, 0.0, maximum(A * (R0 - sqrt(x * x + y * y)), 0.0)
    else:
        grid = Grid(shape, extent=(1.0, 1.0, 2.0), origin=(-0.5, -0.5, -1.0), periodic=True)
        v = (1.0, 1.0, 2.0)
        c, s, across = 2 / math.sqrt(5), 1 / math.sqrt(5), 2 / math.sqrt(5)

        def potential(x: Expr, y: Expr, *z: Expr) -> tuple[Any, ...]:
            along = c * x + s * z[0]
            images = [along - n * across for n in range(-2, 3)]
            size = maximum(*(A * (R0 - sqrt(u * u + y * y)) for u in images), 0.0)
            return -s * size, 0.0, c * size

    mhd = parameters.solver(grid, values)
    b = setup.curl(grid, potential)
    return setup.ready(mhd, values, setup.start(mhd, 1.0, v, 1.0, b), ("E_mag", "div_b", "flux_z"))


def _check(done: Checked) -> list[Check]:
    found = setup.general(done)
    kept = done.series[-1]["E_mag"] / done.series[0]["E_mag"]
    found.append(Check("magnetic energy kept", kept, least=0.85, about="of that at the start"))
    return found


def _maps(done: Checked) -> Figure | None:
    """B² at the start and now, in space in the middle of the z axis (Figure 21)."""
    from halocline.io.section import section

    start, named = done.setup.start, done.setup.grid.fields
    faces = Vector(as_expr(start[named[f"b_{a}"]]) for a in AXES)
    at_start = squared(transport.at_cells(faces, done.setup.grid.ndim))
    now = 2.0 * done.setup.derived()["p_magnetic"]
    before, after = (section(done.simulation, what) for what in (at_start, now))
    if before is None or after is None:
        return None
    limits = (0.0, done.values["amplitude"] ** 2)  # within the loop the field is as strong as that
    maps = [Map(before, "$B^2$ at t = 0", limits), Map(after, f"$B^2$ at t = {done.time:.4g}", limits)]
    return Figure(maps, columns=2)


CASES: Mapping[str, Case] = {
    "field-loop": Case(
        about="A weak loop of field carried around a periodic box, twice.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.7; Gardiner and Stone 2005 and 2008",
        shape=(256, 128),
        shapes={3: (200, 200, 300)},
        steps=None,
        until=2.0,
        parameters={
            "amplitude": Parameter(1e-3, "field × length", "slope of the vector potential", above=0.0),
            "radius": Parameter(0.3, "length", "of the loop", above=0.0, most=0.4),
            "v_z": Parameter(0.0, "length/time", "velocity along the loop's axis, in the plane"),
            **parameters.of(),
        },
        make=_loop,
        check=_check,
        figures={"maps": _maps},
        order=2,
    ),
}
