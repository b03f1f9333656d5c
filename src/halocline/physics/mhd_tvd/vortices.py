"""Problems in the plane: the vortex of Orszag and Tang, and a rotor (Mendygral et al. 2017, Sections 6.5 and
6.6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Curve, Figure, Lines
from halocline.lang.expression import Expr
from halocline.lang.functions import cos, maximum, minimum, sin, sqrt
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Check, Checked, Setup
from halocline.physics.mhd_tvd import drawn, parameters, setup
from halocline.physics.mhd_tvd.observed import difference, primitives, turned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TURN = 2 * math.pi
RHO0 = 25 / (36 * math.pi)
DATA = Path(__file__).parent / "data"
SYMMETRIC = 1e-14
# relative L1 differences from the converged solution, and the cells along each axis that they hold for
MOST = {
    "orszag-tang": {"rho": (0.015, 192), "p": (0.025, 192)},
    "rotor": {"rho": (0.03, 400), "p": (0.008, 400)},
}
# what figures show: maps of these quantities, and cuts through one of them at a place on an axis
MAPS = {
    "orszag-tang": ("rho", "p", "kinetic", "p_magnetic"),
    "rotor": ("rho", "p", "mach", "p_magnetic"),
}
CUTS = {
    "orszag-tang": (("p", "y", -0.0723), ("p", "y", -0.1875)),
    "rotor": (("B_y", "y", 0.0), ("B_x", "x", 0.0)),
}


def square(shape: tuple[int, ...]) -> Grid:
    """The periodic square around the origin."""
    return Grid(shape, extent=(1.0,) * len(shape), origin=(-0.5,) * len(shape), periodic=True)


def _orszag_tang(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    grid = square(shape)
    mhd = parameters.solver(grid, values)
    x, y = setup.centred(grid)
    B0 = 1 / math.sqrt(4 * math.pi)

    def potential(x: Expr, y: Expr) -> tuple[Any, ...]:
        return 0.0, 0.0, B0 / TURN * (0.5 * cos(2 * TURN * x) + cos(TURN * y))

    v = (-sin(TURN * y), sin(TURN * x), 0.0)
    b = setup.curl(grid, potential, setup.centred)
    at_start = setup.start(mhd, RHO0, v, 5 / (12 * math.pi), b)
    return setup.ready(mhd, values, at_start)


def _rotor(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """A dense disk, r < 0.1, that turns with v = 2 r / 0.1, and a taper to the gas at rest from r = 0.115
    on."""
    grid = square(shape)
    mhd = parameters.solver(grid, values)
    x, y = setup.centred(grid)
    r0, r1, v0 = 0.1, 0.115, 2.0
    r = sqrt(x * x + y * y)
    taper = minimum(maximum((r1 - r) / (r1 - r0), 0.0), 1.0)
    spin = taper * (v0 / maximum(r, r0))
    b = (5 / math.sqrt(4 * math.pi), 0.0, 0.0)
    at_start = setup.start(mhd, 1.0 + 9.0 * taper, (-spin * y, spin * x, 0.0), 1.0, b)
    return setup.ready(mhd, values, at_start)


def _check(name: str, done: Checked) -> list[Check]:
    """Against the converged solution; symmetry under half a turn; and that something moved."""
    found, state = setup.general(done), primitives(done.simulation, done.values["gamma"])
    if state is None:
        return found
    found += _against_converged(name, done, state)
    for quantity in ("rho", "p"):
        about = "difference from itself turned by 180°, over the greatest value"
        found.append(Check(f"{quantity} symmetric", turned(state[quantity]), most=SYMMETRIC, about=about))
    p = state["p"]
    moved = float((p.max() - p.min()) / p.mean())
    # pressure is uniform at the start and changes as the square of time at first
    share = min(1.0, done.time / (CASES[name].until or math.inf))
    least = 0.5 * share**2
    return [*found, Check("moved", moved, least=least, about="range of the pressure over its mean")]


def _against_converged(name: str, done: Checked, state: Mapping[str, NDArray[np.float64]]) -> list[Check]:
    """Relative differences from the converged solution, or why there are none."""
    import numpy as np

    found = []
    with np.load(DATA / f"{name}.npz") as kept:
        for quantity, (most, of) in MOST[name].items():
            called, converged = f"{quantity} converged", kept[quantity].astype(np.float64)
            why = _unlike(name, done) or unmatched(done.shape, converged.shape)
            why = why or parameters.why_unbounded(done.values)
            if why:
                found.append(Check.not_compared(called, why))
                continue
            off, coarser = difference(state[quantity], converged), max(1.0, of / min(done.shape))
            about = "relative L1 difference from a run on four times the cells"
            found.append(Check(called, off, most=most * coarser, about=about))
    return found


def _unlike(name: str, done: Checked) -> str:
    """Why the converged solution is not that of a run; empty where it is."""
    case, gamma = CASES[name], done.values["gamma"]
    if gamma != case.parameters["gamma"].default:
        return f"no converged solution for gamma = {gamma:g}"
    if case.until is None or not math.isclose(done.time, case.until):
        return f"no converged solution at t = {done.time:.4g}"
    return ""


def unmatched(shape: Sequence[int], kept: Sequence[int]) -> str:
    """Why means over blocks cannot be compared on these grids; empty where they can."""
    if all(max(pair) % min(pair) == 0 for pair in zip(shape, kept, strict=True)):
        return ""
    grids = [" x ".join(map(str, each)) for each in (shape, kept)]
    return f"{grids[0]} cells and the {grids[1]} of the converged solution are no multiples of each other"


def _maps(name: str, done: Checked) -> Figure | None:
    """Maps and cuts (Figures 19 and 20)."""
    maps = drawn.maps(done, *MAPS[name])
    cuts = [drawn.cut(done, *each) for each in CUTS[name]]
    if maps is None:
        return None
    panels = []
    for cut, (quantity, axis, _) in zip(cuts, CUTS[name], strict=True):
        assert cut is not None
        ((_, at),) = cut.at
        curves = [Curve(cut.coordinates[0], cut.values, drawn.cells(done), points=True)]
        line = _converged(name, quantity, axis, at, done)
        curves += [] if line is None else [line]
        title = f"{drawn.TITLES[quantity]} at ${axis} = {at:.4g}$"
        panels.append(Lines(curves, title, cut.axes[0], cut.span[0]))
    return Figure([*maps, *panels], columns=2)


def _converged(name: str, quantity: str, axis: str, at: float, done: Checked) -> Curve | None:
    """The cut through the converged solution, where that is kept and holds."""
    import numpy as np

    if _unlike(name, done):
        return None
    with np.load(DATA / f"{name}.npz") as kept:
        if quantity not in kept:
            return None
        values = np.moveaxis(kept[quantity].astype(np.float64), "xy".index(axis), 0)
    x = (np.arange(len(values)) + 0.5) / len(values) - 0.5
    row = (at - x[0]) * len(values)  # where it lies between two rows, their mean by distance
    below = int(np.clip(np.floor(row + 1e-9), 0, len(values) - 2))
    share = row - below
    return Curve(x, (1 - share) * values[below] + share * values[below + 1], drawn.CONVERGED)


CASES: Mapping[str, Case] = {
    "orszag-tang": Case(
        about="Ideal MHD with shocks: vortices of flow and field that steepen into shocks.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.5; Orszag and Tang 1979, "
        "J. Fluid Mech. 90, 129",
        shape=(192, 192),
        steps=None,
        until=0.5,
        parameters=parameters.of(),
        make=_orszag_tang,
        check=partial(_check, "orszag-tang"),
        figures={"maps": partial(_maps, "orszag-tang")},
        order=2,
    ),
    "rotor": Case(
        about="Ideal MHD with shocks: a dense disk that turns in a field, which slows it by waves.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.6; the first rotor problem of Tóth 2000, "
        "J. Comput. Phys. 161, 605",
        shape=(400, 400),
        steps=None,
        until=0.15,
        parameters=parameters.of(parameters.STEADY, gamma=1.4, courant=0.4),
        make=_rotor,
        check=partial(_check, "rotor"),
        figures={"maps": partial(_maps, "rotor")},
        order=2,
    ),
}
