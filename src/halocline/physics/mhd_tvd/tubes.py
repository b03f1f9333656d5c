"""Shock tubes along x or across a grid (Mendygral et al. 2017, Sections 6.2 to 6.4)."""

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
from halocline.physics.mhd_tvd import drawn
from halocline.physics.mhd_tvd.checks import general, primitives
from halocline.physics.mhd_tvd.parameters import ALL
from halocline.physics.mhd_tvd.scheme import IdealMHD
from halocline.physics.mhd_tvd.setup import Direction
from halocline.physics.mhd_tvd.simulation import MHDSimulation
from halocline.run.simulation.checks import Check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Profiles = tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]

PERIOD = 2.0  # of an oblique tube: a layer of the left state, 1 thick, and as much of the right one
LAYERS = range(-4, 6, 2)  # where such layers end, as far as the cube reaches
FIELDS = (4, 5)  # of a state: B_y and B_z
QUANTITIES = ("rho", "p", "u", "v", "w", "By", "Bz")
NORMAL = "Bn"  # field across the diaphragm: constant in the solution, and kept so by ∇·b = 0 on the grid
LOOKED_AT = (-0.4, 0.49)  # before waves from another diaphragm
VECTORS = (("u", "v", "w"), (NORMAL, "By", "Bz"))
# panels of the figure: of a tube along x, and of one across the grid
TITLES = {
    "rho": ("density",) * 2,
    "p": ("gas pressure",) * 2,
    "E": ("energy per volume",) * 2,
    "e": ("P / ((γ - 1) ρ)",) * 2,
    "u": ("$v_x$", "$v_1$"),
    "v": ("$v_y$", "$v_2$"),
    "w": ("$v_z$", "$v_3$"),
    NORMAL: ("$B_x$", "$B_1$"),
    "By": ("$B_y$", "$B_2$"),
    "Bz": ("$B_z$", "$B_3$"),
}
LEAST_RANGE = 0.1  # of an axis for a component, over the range of the component that varies most
LEAST = 1e-3  # that differences are compared with
MARGIN = 1.5
OBLIQUE = 1.5  # times that across the grid, where steps are shorter; 24 cells have up to 1.4
DIFFUSIVE = 1.5  # limiters below this, and fluxes of HLL, have up to twice the error
NARROWEST = 10.0  # cells of a plateau, so that shocks beside it end before its centre
FLAT = 1e-3  # of the range of a quantity: what it varies by at most within a plateau


@dataclass(frozen=True, kw_only=True)
class Tube:
    """Two states, (ρ, v_x, v_y, v_z, B_y, B_z, P), on both sides of a diaphragm.

    Parameters
    ----------
    name : str
        Name of the converged profiles.
    left, right : tuple of float
    across : float
        Field across the diaphragm.
    until : float
        Time of the converged profiles.
    energy : {"E", "e"}
        Energy that a figure shows: per volume, or of heat per mass.
    gamma : float
        Ratio of specific heats of the converged profiles.
    error : mapping of str to float
        Greatest mean errors of profiles over their range, for each unit of spacing, of 64 to 512 cells on one
        axis.
    """

    name: str
    left: tuple[float, ...]
    right: tuple[float, ...]
    across: float
    until: float
    error: Mapping[str, float]
    energy: str = "E"
    gamma: float = float(ALL["gamma"].default)

    # --- start ---

    def grid(self, shape: tuple[int, ...]) -> Grid:
        """Return a grid along x with the diaphragm in the middle, or a periodic cube."""
        if len(shape) == 1:
            return Grid(shape, extent=1.0, origin=-0.5)
        edge = PERIOD * math.sqrt(3)
        return Grid(shape, extent=(edge,) * 3, origin=(-0.5 * edge,) * 3, periodic=True)

    def boundary(self, shape: tuple[int, ...]) -> dict[str, Symmetric] | None:
        """Return conditions of walls that waves do not reach, for a tube along x."""
        return {name: Symmetric() for name in ("rho", "m", "E", "b")} if len(shape) == 1 else None

    def state(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return the start, as `MHDSimulation.set_state` takes it."""
        return self._along_x(mhd) if mhd.axes == 1 else self._oblique(mhd)

    def _along_x(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return the states on both sides of the diaphragm at 0."""
        x = mhd.grid.x
        rho, u, v, w, By, Bz, p = (where(x < 0.0, *pair) for pair in zip(self.left, self.right, strict=True))
        return {"rho": rho, "v": (u, v, w), "p": p, "b": (self.across, By, Bz)}

    def _oblique(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return layers across (1, 1, 1)/√3: one of the left state, of thickness 1, between right ones.

        The paper turns the normal of the shocks "45° out of all primary planes" (Section 6.2), which no
        direction is: this one is 35.3° out of each, the most that is possible out of all three.

        The checks look at the waves from its upper side, before those from the lower side arrive.
        """
        along = Direction.of(1, 1, 1)
        s, left, right = along.along(mhd.grid.coordinates()), self.left, self.right

        def share(s: Expr) -> Expr:
            """Return 1 in layers of the left state, which end at 0 and other multiples of the period."""
            return as_expr(sum(where((s >= at - 1.0) & (s < at), 1.0, 0.0) for at in LAYERS))

        def gathered(s: Expr) -> Expr:
            """Return the integral of the share over s."""
            return as_expr(sum(minimum(maximum(s - (at - 1.0), 0.0), 1.0) for at in LAYERS))

        def mixed(l: float, r: float, part: Expr) -> Expr:
            return r + (l - r) * part

        def here(component: int, s: Expr) -> Expr:
            return mixed(left[component], right[component], share(s))

        def integral(component: int, s: Expr) -> Expr:
            return (left[component] - right[component]) * (gathered(s) - 0.5 * s)

        rho, u, v, w, _, _, p = (mixed(l, r, share(s)) for l, r in zip(left, right, strict=True))
        b = along.field(
            mhd.grid,
            (self.across, *(0.5 * (left[c] + right[c]) for c in FIELDS)),
            [partial(here, c) for c in FIELDS],
            [partial(integral, c) for c in FIELDS],
        )
        return {"rho": rho, "v": along.turned((u, v, w)), "p": p, "b": b}

    # --- results ---

    def check(self, sim: MHDSimulation, record: Any) -> list[Check]:
        """Check profiles and plateaux against the converged ones."""
        checks = general(sim, record, periodic=sim.grid.ndim > 1)
        measured = profile(sim, all_layers=True)
        if measured is None:
            return checks
        why = self._unlike(sim)
        if why:
            return [*checks, *(Check.not_compared(each, why) for each in ("profiles", "plateaux"))]
        converged = _at_time(reference(self.name), sim.time / self.until, (-0.5, 0.5))
        return [
            *checks,
            *self._profile_checks(sim, measured, converged),
            *_plateau_checks(sim, measured, converged),
        ]

    def _unlike(self, sim: MHDSimulation) -> str:
        """Return the reason why the converged solution is not that of a run; empty where it is."""
        gamma = sim.parameters["gamma"]
        if gamma != self.gamma:
            return f"no converged solution for gamma = {gamma:g}"
        if sim.time > self.until * (1.0 + 1e-12):
            return f"after t = {self.until:g} waves may have reached the ends"
        return ""

    def _profile_checks(self, sim: MHDSimulation, measured: Profiles, converged: Profiles) -> list[Check]:
        """Return checks of mean differences, which fall with the spacing."""
        import numpy as np

        (s, values), (x, exact) = measured, converged
        inside = (s > LOOKED_AT[0]) & (s < LOOKED_AT[1])
        spacing, turned = float(np.diff(s).mean()), sim.grid.ndim > 1
        margin = _margin(sim)
        checks = []
        for quantity, most in self.error.items():
            size = _size(np.ptp, exact, quantity, turned)
            error = np.abs(values[quantity] - np.interp(s, x, exact[quantity]))[inside].mean() / size
            about = "mean difference from the converged profile, over its range"
            checks.append(
                Check(f"{quantity} profile", float(error), most=margin * most * spacing, about=about)
            )
        return checks

    def figure(self, sim: MHDSimulation) -> Figure | None:
        """Draw all quantities along the normal, with the converged ones (Figures 14 to 18)."""
        import numpy as np

        measured = profile(sim, all_layers=True)
        if measured is None:
            return None
        gamma, turned = sim.parameters["gamma"], sim.grid.ndim > 1
        span = LOOKED_AT if turned else (-0.5, 0.5)
        least = {
            q: LEAST_RANGE * max(float(np.ptp(measured[1][other])) for other in vector)
            for vector in VECTORS
            for q in vector
        }
        lines = {drawn.cells(sim): measured}
        if gamma == self.gamma and sim.time > 0.0:
            lines[drawn.CONVERGED] = _at_time(reference(self.name), sim.time / self.until, span)
        for x, values in lines.values():
            rho, p = values["rho"], values["p"]
            values.setdefault(NORMAL, np.full_like(x, self.across))
            squares = [values[q] ** 2 for q in VECTORS[1]]
            motion = rho * sum(values[q] ** 2 for q in VECTORS[0])
            values["E"] = p / (gamma - 1) + 0.5 * (motion + sum(squares))
            values["e"] = p / ((gamma - 1) * rho)
        panels = [
            Lines(
                [Curve(x, v[q], label, points=label != drawn.CONVERGED) for label, (x, v) in lines.items()],
                TITLES[q][turned],
                "$x_1$, along the normal" if turned else "x",
                span,
                least.get(q, 0.0),
            )
            for q in ("rho", "p", self.energy, "u", "v", "w", *([NORMAL] if turned else []), "By", "Bz")
        ]
        return Figure(panels, columns=3)


def reference(name: str) -> Profiles:
    """Return the converged profiles of a tube: positions from the diaphragm, and each quantity by name.

    They are those of a run on 8192 cells with fluxes of HLLD, in means of 8 cells (tools/mhd_references.py).
    """
    import numpy as np

    with np.load(Path(__file__).parent / "data" / "tubes.npz") as data:
        x = data[f"{name}/x"].astype(np.float64)
        return x, {q: data[f"{name}/{q}"].astype(np.float64) for q in QUANTITIES}


def profile(sim: MHDSimulation, *, all_layers: bool = False) -> Profiles | None:
    """Return positions from the diaphragm, and each quantity along the normal; on the first rank, None on
    others.

    In space these are the cells on the diagonal of the cube; with `all_layers` also one of each layer of
    cells between them, in which all cells are alike: they are h/√3 apart.
    """
    import numpy as np

    state = primitives(sim, sim.parameters["gamma"])
    if state is None:
        return None
    grid, axes = sim.grid, sim.grid.ndim
    layers = np.arange(axes * (min(grid.shape) - 1) + 1)
    if not all_layers:
        layers = layers[::axes]
    on_line = tuple((layers + a) // axes for a in range(axes))
    s = np.sum([x[i] for x, i in zip(grid.positions(), on_line, strict=True)], axis=0) / math.sqrt(axes)
    along = Direction.of(*(1,) * axes)
    rho, p = state["rho"][on_line], state["p"][on_line]
    found = {"rho": rho, "p": p}
    for kind, names in zip("vB", VECTORS, strict=True):
        components = [state[f"{kind}_{a}"][on_line] for a in "xyz"]
        for name, basis in zip(names, (along.n, along.e1, along.e2), strict=True):
            found[name] = np.tensordot(basis, components, 1)
    return s, found


def _margin(sim: MHDSimulation) -> float:
    """How much greater than `ERROR` a profile's error may be."""
    diffusive = sim.numbers["flux"] == "hll" or sim.numbers["limiter"] < DIFFUSIVE
    return MARGIN * (2.0 if diffusive else 1.0) * (OBLIQUE if sim.grid.ndim > 1 else 1.0)


def _plateau_checks(sim: MHDSimulation, measured: Profiles, converged: Profiles) -> list[Check]:
    """The states between waves, at the middle of each."""
    import numpy as np

    (s, values), (x, exact) = measured, converged
    spacing, turned = float(np.diff(s).mean()), sim.grid.ndim > 1
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
        own = max(float(measure(exact[name])) for name in vector if name in exact)
    return max(own, LEAST)


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
