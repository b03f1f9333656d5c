"""A weak loop of field that is carried along (Mendygral et al. 2017, Section 6.7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from halocline.errors import InputError
from halocline.io.figure import Figure, Map
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, sqrt, where
from halocline.lang.grid import AXES, Field, Grid, Vector
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import sum as total
from halocline.physics.case import Case, Check, Checked, Parameter, Setup
from halocline.physics.mhd_tvd import parameters, setup, transport
from halocline.physics.mhd_tvd.gas import squared

UNTIL = 2.0
FULL = {2: 128, 3: 200}  # cells along the shorter side that bounds hold for
LOST = 0.15  # the most that is lost of the magnetic energy by `UNTIL`
APART = 0.3  # the most that the field differs by then
SMEARED = 1e-3
ALONG = 1e-12  # what rounding may leave of a field along z


def _loop(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """In the plane along z; in space a cylinder along (-1, 0, 2)/√5, of period 2/√5 across it (GS08, Section
    6.1)."""
    A, R0 = values["amplitude"], values["radius"]
    if len(shape) == 3 and values["v_z"] != 0.0:
        raise InputError(f"v_z is {values['v_z']:g}; in space the gas moves along (1, 1, 2): leave v_z out")
    extent = (2.0, 1.0) if len(shape) == 2 else (1.0, 1.0, 2.0)
    v = (2.0, 0.5, values["v_z"]) if len(shape) == 2 else (1.0, 1.0, 2.0)
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)

    def plane(x: Expr, y: Expr) -> tuple[Any, ...]:
        return 0.0, 0.0, maximum(A * (R0 - sqrt(x * x + y * y)), 0.0)

    def space(x: Expr, y: Expr, z: Expr) -> tuple[Any, ...]:
        c, s, across = 2 / math.sqrt(5), 1 / math.sqrt(5), 2 / math.sqrt(5)
        along = c * x + s * z
        images = [along - n * across for n in range(-2, 3)]
        size = maximum(*(A * (R0 - sqrt(u * u + y * y)) for u in images), 0.0)
        return -s * size, 0.0, c * size

    mhd = parameters.solver(grid, values)
    potential = plane if len(shape) == 2 else space

    def exact(time: float) -> dict[Field, Expr]:
        def carried(*x: Expr) -> Sequence[Any]:
            return potential(*(_back(c, u * time, e) for c, u, e in zip(x, v, extent, strict=False)))

        return setup.start(mhd, 1.0, v, 1.0, setup.curl(grid, carried))

    return setup.ready(mhd, values, exact(0.0), ("E_mag", "div_b", "flux_z"), exact=exact)


def _back(x: Expr, way: float, period: float) -> Expr:
    """Where gas at x was before it went that way, in the same period around 0."""
    gone = math.remainder(way, period)
    if gone == 0.0:
        return x
    before, half = x - gone, 0.5 * period
    found: Expr = where(before > half, before - period, where(before < -half, before + period, before))
    return found


def check(done: Checked) -> list[Check]:
    """The loop's energy; where the loop is, and that the grid has smeared it; no field along it in the
    plane."""
    found = setup.general(done)
    kept = done.series[-1]["E_mag"] / done.series[0]["E_mag"]
    # second-order schemes smear an edge over h^(2/3) t^(1/3), and energy is lost there
    full = FULL[len(done.shape)]
    coarser, later = max(1.0, full / min(done.shape)), max(1.0, done.time / UNTIL)
    smeared = coarser ** (2 / 3) * later ** (1 / 3)
    off, along = _apart(done)
    if why := parameters.why_unbounded(done.values):
        found += [Check.not_compared(name, why) for name in ("magnetic energy kept", "loop carried")]
    else:
        left = max(0.0, 1.0 - LOST * smeared)
        about = "of that at the start"
        found.append(Check("magnetic energy kept", kept, least=left, most=1.0 + 1e-12, about=about))
        least = SMEARED * min(1.0, done.time)  # a loop that stays as it was has not gone round
        about = "difference of the field from that of a loop carried with the gas, over its sum"
        found.append(Check("loop carried", off, least=least, most=min(1.0, APART * smeared), about=about))
    if len(done.shape) == 2:
        about = "greatest |B_z| over the loop's field"
        found.append(Check("B_z", along / done.values["amplitude"], most=ALONG, about=about))
    return found


def _apart(done: Checked) -> tuple[float, float]:
    """The mean difference of the field from where it must be, over its mean, and the greatest |b_z|."""
    assert done.setup.exact is not None
    fields = {f: e for f, e in done.setup.exact(done.time).items() if f.name in ("b_x", "b_y", "b_z")}
    named = done.setup.grid.fields
    off = sum((magnitude(f - e) for f, e in fields.items()), as_expr(0.0))
    size = sum((magnitude(e) for e in fields.values()), as_expr(0.0))
    apart, whole, along = done.simulation.evaluate(total(off), total(size), greatest(magnitude(named["b_z"])))
    return float(apart / whole), float(along)


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
        about="Ideal MHD: a weak loop of field carried around a periodic box, twice.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.7; Gardiner and Stone 2005 and 2008",
        shape=(256, 128),
        shapes={3: (200, 200, 300)},
        steps=None,
        until=UNTIL,
        parameters={
            "amplitude": Parameter(1e-3, "field × length", "slope of the vector potential", above=0.0),
            "radius": Parameter(0.3, "length", "of the loop", above=0.0, most=0.4),
            "v_z": Parameter(0.0, "length/time", "velocity along the loop's axis, in the plane"),
            **parameters.of(),
        },
        make=_loop,
        check=check,
        figures={"maps": _maps},
        order=2,
    ),
}
