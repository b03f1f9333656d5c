"""Shock tubes (Mendygral et al. 2017, Sections 6.2 to 6.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Curve, Figure, Lines
from halocline.lang.boundary import Symmetric
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import maximum, minimum, where
from halocline.lang.grid import Grid
from halocline.physics.case import Case, Check, Checked, Setup
from halocline.physics.mhd_tvd import drawn, parameters, setup
from halocline.physics.mhd_tvd.oblique import Direction
from halocline.physics.mhd_tvd.observed import primitives

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Profiles = tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]

UNIT = 1 / math.sqrt(4 * math.pi)
PERIOD = 2.0  # of an oblique tube: a layer of the left state, 1 thick, and as much of the right one
LAYERS = range(-4, 6, 2)  # where such layers end, as far as the cube reaches
FIELDS = (4, 5)  # of a state: B_y and B_z
SHOWN = ("rho_min", "rho_max", "p_min")
QUANTITIES = ("rho", "p", "u", "v", "w", "By", "Bz")
LOOKED_AT = (-0.4, 0.49)  # before waves from another diaphragm
VECTORS = (("u", "v", "w"), ("By", "Bz"))
# panels of the figure: of a tube along x, and of one across the grid
TITLES = {
    "rho": ("density",) * 2,
    "p": ("gas pressure",) * 2,
    "E": ("energy per volume",) * 2,
    "e": ("P / ((γ - 1) ρ)",) * 2,
    "u": ("$v_x$", "$v_1$"),
    "v": ("$v_y$", "$v_2$"),
    "w": ("$v_z$", "$v_3$"),
    "By": ("$B_y$", "$B_2$"),
    "Bz": ("$B_z$", "$B_3$"),
}
LEAST_RANGE = 0.1  # of an axis for a component, over the range of the component that varies most
LEAST = 1e-3  # that differences are compared with
# mean errors of profiles over their range, for each unit of spacing: the greatest of 64 to 512 cells on one
# axis
ERROR = {
    "rj2a": {"rho": 1.54, "p": 1.49, "u": 0.63, "v": 2.0, "w": 1.2, "By": 1.82, "Bz": 2.6},
    "rj4a": {"rho": 0.63, "p": 0.42, "u": 1.1, "v": 1.27, "w": 0.1, "By": 0.58, "Bz": 0.1},
    "brio-wu": {"rho": 1.23, "p": 1.29, "u": 2.53, "v": 2.1, "w": 0.1, "By": 0.74, "Bz": 0.1},
}
MARGIN = 1.5
OBLIQUE = 1.5  # times that across the grid, where steps are shorter; 24 cells have up to 1.4
DIFFUSIVE = 1.5  # limiters below this, and fluxes of HLL, have up to twice the error
NARROWEST = 10.0  # cells of a plateau, so that shocks beside it end before its centre
FLAT = 1e-3  # of the range of a quantity: what it varies by at most within a plateau


@dataclass(frozen=True)
class Tube:
    """Two states, (ρ, v_x, v_y, v_z, B_y, B_z, P), with the field between them, when their waves are looked
    at, and the energy that a figure shows: "E" per volume, or "e" of heat per mass."""

    left: tuple[float, ...]
    right: tuple[float, ...]
    across: float
    until: float
    energy: str = "E"


RJ2A = Tube(
    left=(1.08, 1.2, 0.01, 0.5, 3.6 * UNIT, 2 * UNIT, 0.95),
    right=(1.0, 0.0, 0.0, 0.0, 4 * UNIT, 2 * UNIT, 1.0),
    across=2 * UNIT,
    until=0.2,
)
RJ4A = Tube(
    left=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    right=(0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1),
    across=1.0,
    until=0.15,
)
BRIO_WU = Tube(
    left=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    right=(0.125, 0.0, 0.0, 0.0, -1.0, 0.0, 0.1),
    across=0.75,
    until=0.08,
    energy="e",
)
TUBES = {"rj2a": RJ2A, "rj4a": RJ4A, "brio-wu": BRIO_WU}


def _profile(x: Expr, left: float, right: float) -> Expr:
    """Left of the diaphragm at 0, and right of it."""
    value: Expr = where(x < 0.0, left, right)
    return value


def _along_x(tube: Tube, shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """Between walls that waves do not reach, with the diaphragm in the middle."""
    grid = Grid(shape, extent=1.0, origin=-0.5)
    open_ends = {name: Symmetric() for name in ("rho", "m", "E", "b")}
    mhd = parameters.solver(grid, values, boundary=open_ends)
    rho, u, v, w, By, Bz, p = (_profile(grid.x, *pair) for pair in zip(tube.left, tube.right, strict=True))
    return setup.ready(mhd, values, setup.start(mhd, rho, (u, v, w), p, (tube.across, By, Bz)), SHOWN)


def _oblique(tube: Tube, shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    """Along (1, 1, 1)/√3 in a periodic cube, in which the left state is a layer of thickness 1 between right
    ones.

    What is checked are the waves from its upper side, before those from the lower side arrive.
    """
    edge = PERIOD * math.sqrt(3)
    grid = Grid(shape, extent=(edge,) * 3, origin=(-0.5 * edge,) * 3, periodic=True)
    mhd, along = parameters.solver(grid, values), Direction.of(1, 1, 1)
    s = along.along(grid.coordinates())

    def share(s: Expr) -> Expr:
        """1 in layers of the left state, which end at 0 and other multiples of the period."""
        return as_expr(sum(where((s >= at - 1.0) & (s < at), 1.0, 0.0) for at in LAYERS))

    def gathered(s: Expr) -> Expr:
        """Its integral over s."""
        return as_expr(sum(minimum(maximum(s - (at - 1.0), 0.0), 1.0) for at in LAYERS))

    def mixed(l: float, r: float, part: Expr) -> Expr:
        return r + (l - r) * part

    left, right = tube.left, tube.right

    def here(component: int, s: Expr) -> Expr:
        return mixed(left[component], right[component], share(s))

    def integral(component: int, s: Expr) -> Expr:
        return (left[component] - right[component]) * (gathered(s) - 0.5 * s)

    rho, u, v, w, _, _, p = (mixed(l, r, share(s)) for l, r in zip(left, right, strict=True))
    B = along.field(
        grid,
        (tube.across, *(0.5 * (left[c] + right[c]) for c in FIELDS)),
        [partial(here, c) for c in FIELDS],
        [partial(integral, c) for c in FIELDS],
    )
    return setup.ready(mhd, values, setup.start(mhd, rho, along.turned((u, v, w)), p, B), (*SHOWN, "div_b"))


def _make(tube: Tube, shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    return (_along_x if len(shape) == 1 else _oblique)(tube, shape, values)


def reference(name: str) -> Profiles:
    """The converged profiles of a tube: positions from the diaphragm, and each quantity by name.

    Of a run on 8192 cells with fluxes of HLLD, in means of 8 cells (tools/mhd_references.py).
    """
    import numpy as np

    with np.load(Path(__file__).parent / "data" / "tubes.npz") as data:
        x = data[f"{name}/x"].astype(np.float64)
        return x, {q: data[f"{name}/{q}"].astype(np.float64) for q in QUANTITIES}


def profile(done: Checked, *, all_layers: bool = False) -> Profiles | None:
    """Positions from the diaphragm, and each quantity along the normal; on the first rank.

    In space these are the cells on the diagonal of the cube; with `all_layers` also one of each layer of
    cells between them, in which all cells are alike: they are h/√3 apart.
    """
    import numpy as np

    state = primitives(done.simulation, done.values["gamma"])
    if state is None:
        return None
    grid, axes = done.setup.grid, done.setup.grid.ndim
    layers = np.arange(axes * (min(grid.shape) - 1) + 1)
    if not all_layers:
        layers = layers[::axes]
    on_line = tuple((layers + a) // axes for a in range(axes))
    s = np.sum([x[i] for x, i in zip(grid.positions(), on_line, strict=True)], axis=0) / math.sqrt(axes)
    along = Direction.of(*(1,) * axes)
    rho, p = state["rho"][on_line], state["p"][on_line]
    found = {"rho": rho, "p": p}
    for kind, names in (("v", ("u", "v", "w")), ("B", ("Bn", "By", "Bz"))):
        components = [state[f"{kind}_{a}"][on_line] for a in "xyz"]
        for name, basis in zip(names, (along.n, along.e1, along.e2), strict=True):
            found[name] = np.tensordot(basis, components, 1)
    return s, {name: found[name] for name in QUANTITIES}


def _check(name: str, done: Checked) -> list[Check]:
    """Profiles and plateaux against the converged ones."""
    found = setup.general(done, periodic=len(done.shape) > 1)
    measured = profile(done, all_layers=True)
    if measured is None:
        return found
    why = _unlike(name, done)
    if why:
        return [*found, *(Check.not_compared(each, why) for each in ("profiles", "plateaux"))]
    converged = _at_time(reference(name), done.time / TUBES[name].until, (-0.5, 0.5))
    return [
        *found,
        *_profile_checks(name, done, measured, converged),
        *_plateau_checks(done, measured, converged),
    ]


def _unlike(name: str, done: Checked) -> str:
    """Why the converged solution is not that of a run; empty where it is."""
    gamma, until = done.values["gamma"], TUBES[name].until
    if gamma != CASES[name].parameters["gamma"].default:
        return f"no converged solution for gamma = {gamma:g}"
    if done.time > until * (1.0 + 1e-12):
        return f"after t = {until:g} waves may have reached the ends"
    return ""


def _profile_checks(name: str, done: Checked, measured: Profiles, converged: Profiles) -> list[Check]:
    """Mean differences, which fall with the spacing."""
    import numpy as np

    (s, values), (x, exact) = measured, converged
    inside = (s > LOOKED_AT[0]) & (s < LOOKED_AT[1])
    spacing, turned = float(np.diff(s).mean()), len(done.shape) > 1
    margin = _margin(done)
    found = []
    for quantity, most in ERROR[name].items():
        size = _size(np.ptp, exact, quantity, turned)
        error = np.abs(values[quantity] - np.interp(s, x, exact[quantity]))[inside].mean() / size
        about = "mean difference from the converged profile, over its range"
        found.append(Check(f"{quantity} profile", float(error), most=margin * most * spacing, about=about))
    return found


def _margin(done: Checked) -> float:
    """How much greater than `ERROR` a profile's error may be."""
    diffusive = done.values["flux"] == "hll" or done.values["limiter"] < DIFFUSIVE
    return MARGIN * (2.0 if diffusive else 1.0) * (OBLIQUE if len(done.shape) > 1 else 1.0)


def _plateau_checks(done: Checked, measured: Profiles, converged: Profiles) -> list[Check]:
    """The states between waves, at the middle of each."""
    import numpy as np

    (s, values), (x, exact) = measured, converged
    spacing, turned = float(np.diff(s).mean()), len(done.shape) > 1
    centres = plateaux(x, exact, NARROWEST * spacing)
    if not centres:
        return [Check.not_compared("plateaux", f"no plateau is wide enough, {NARROWEST:g} cells")]
    found = []
    for centre in centres:
        at = int(np.argmin(np.abs(s - centre)))
        off = max(
            abs(values[q][at] - np.interp(s[at], x, exact[q]))
            / _size(lambda v: np.abs(v).max(), exact, q, turned)
            for q in QUANTITIES
        )
        about = "over the greatest value"
        found.append(Check(f"plateau at {centre:+.3f}", float(off), most=0.01, about=about))
    return found


def _size(
    measure: Callable[[NDArray[np.float64]], Any],
    exact: Mapping[str, NDArray[np.float64]],
    quantity: str,
    turned: bool,
) -> float:
    """What differences of a quantity are compared with: its own size, at least `LEAST`.

    A turned tube mixes the components of vectors: one that vanishes has the errors of the others there, and
    their size.
    """
    own = float(measure(exact[quantity]))
    if turned and own < LEAST:
        vector = next((names for names in VECTORS if quantity in names), (quantity,))
        own = max(float(measure(exact[name])) for name in vector)
    return max(own, LEAST)


def _profiles(name: str, done: Checked) -> Figure | None:
    """All quantities along the normal, with the converged ones (Figures 14 to 18)."""
    import numpy as np

    measured = profile(done, all_layers=True)
    if measured is None:
        return None
    tube, gamma, turned = TUBES[name], done.values["gamma"], len(done.shape) > 1
    span = LOOKED_AT if turned else (-0.5, 0.5)
    least = {
        q: LEAST_RANGE * max(float(np.ptp(measured[1][other])) for other in vector)
        for vector in VECTORS
        for q in vector
    }
    lines = {drawn.cells(done): measured}
    if gamma == CASES[name].parameters["gamma"].default and done.time > 0.0:
        lines[drawn.CONVERGED] = _at_time(reference(name), done.time / tube.until, span)
    for _, values in lines.values():
        rho, p = values["rho"], values["p"]
        squares = [values[q] ** 2 for q in ("By", "Bz")]
        motion = rho * sum(values[q] ** 2 for q in VECTORS[0])
        values["E"] = p / (gamma - 1) + 0.5 * (motion + tube.across**2 + sum(squares))
        values["e"] = p / ((gamma - 1) * rho)
    panels = [
        Lines(
            [Curve(x, v[q], label, points=label != drawn.CONVERGED) for label, (x, v) in lines.items()],
            TITLES[q][turned],
            "$x_1$, along the normal" if turned else "x",
            span,
            least.get(q, 0.0),
        )
        for q in ("rho", "p", tube.energy, "u", "v", "w", "By", "Bz")
    ]
    return Figure(panels, columns=3)


def _at_time(profiles: Profiles, share: float, span: tuple[float, float]) -> Profiles:
    """Profiles at another time, as a share of theirs: all waves move evenly from the diaphragm, and beyond
    them the states are those of the start."""
    import numpy as np

    x, values = profiles
    ends = [min(span[0], x[0] * share)], [max(span[1], x[-1] * share)]
    return (
        np.concatenate([ends[0], x * share, ends[1]]),
        {name: np.pad(each, 1, mode="edge") for name, each in values.items()},
    )


def plateaux(x: NDArray[np.float64], exact: Mapping[str, NDArray[np.float64]], width: float) -> list[float]:
    """The centres of stretches between waves, at least so wide, in which no quantity varies by more than a
    thousandth of its range.

    The first and the last stretch are left out: they hold the states of the start.
    """
    import numpy as np

    ranges = {q: max(float(np.ptp(v)), 1e-3) for q, v in exact.items()}
    steps = np.max([np.abs(np.diff(v)) / ranges[q] for q, v in exact.items()], axis=0)
    waves = np.flatnonzero(steps > FLAT)
    return [float(x[a + 1] + x[b]) / 2 for a, b in pairwise(waves) if x[b] - x[a + 1] >= width]


def _case(name: str, origin: str, about: str, *, cells: int, oblique: bool, **defaults: float) -> Case:
    tube = TUBES[name]
    return Case(
        about=about,
        origin=f"Mendygral et al. 2017, ApJS 228, 23, {origin}",
        shape=(cells,),
        steps=None,
        until=tube.until,
        shapes={3: (128, 128, 128)} if oblique else {},
        parameters=parameters.of(parameters.PAPER, **defaults),
        make=partial(_make, tube),
        check=partial(_check, name),
        figures={"profiles": partial(_profiles, name)},
        order=2,
    )


CASES: Mapping[str, Case] = {
    "rj2a": _case(
        "rj2a",
        "Section 6.2; Ryu and Jones 1995, ApJ 442, 228, Figure 2a",
        "Ideal MHD with shocks: a tube with all seven waves, on both sides of a contact.",
        cells=512,
        oblique=True,
    ),
    "rj4a": _case(
        "rj4a",
        "Section 6.3; Ryu and Jones 1995, ApJ 442, 228, Figure 4a",
        "Ideal MHD with shocks: a tube with a switch-on rarefaction, behind which the field turns up.",
        cells=512,
        oblique=True,
    ),
    "brio-wu": _case(
        "brio-wu",
        "Section 6.4; Brio and Wu 1988, J. Comput. Phys. 75, 400",
        "Ideal MHD with shocks: a tube with a compound wave, a slow shock with a rarefaction attached.",
        cells=400,
        oblique=False,
        gamma=2.0,
    ),
}
