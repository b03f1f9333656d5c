"""Shock tubes along x or oblique to a grid (Mendygral et al. 2017, Sections 6.2 to 6.4)."""

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

PERIOD = 2.0  # Period of an oblique tube: one layer of each state, both with a thickness of 1.
LAYERS = range(-4, 6, 2)  # Upper coordinates of all layers of the left state that cross the cube.
FIELDS = (4, 5)  # Indices of B_y and B_z in a state.
QUANTITIES = ("rho", "p", "u", "v", "w", "By", "Bz")
NORMAL = "Bn"  # Field normal to the diaphragm. It is constant in the solution and, by ∇·b = 0, on the grid.
LOOKED_AT = (-0.4, 0.49)  # Compared range of positions. Waves from other diaphragms do not enter it.
VECTORS = (("u", "v", "w"), (NORMAL, "By", "Bz"))
# titles of panels: for a tube along x, and for an oblique tube
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
LEAST_RANGE = 0.1  # Minimum range of a plot axis, relative to the range of the component that varies most.
LEAST = 1e-3  # Minimum scale of differences.
MARGIN = 1.5
OBLIQUE = 1.5  # Error factor allowed for oblique tubes, which have shorter steps; measured: up to 1.4.
DIFFUSIVE = 1.5  # HLL fluxes, and limiter parameters β below this value, have up to twice the error.
NARROWEST = 10.0  # Minimum width of a plateau in cells, so that smeared shocks do not extend to its centre.
FLAT = 1e-3  # Maximum difference between adjacent points of a plateau, relative to the range of the quantity.


@dataclass(frozen=True, kw_only=True)
class Tube:
    """Two states, (ρ, v_x, v_y, v_z, B_y, B_z, P), on both sides of a diaphragm.

    Parameters
    ----------
    name : str
        Name of the converged profiles.
    left, right : tuple of float
        States on both sides.
    across : float
        Magnetic field normal to the diaphragm.
    until : float
        Time of the converged profiles.
    energy : {"E", "e"}
        Energy in the figure: "E" for total energy per unit volume, "e" for thermal energy per unit mass.
    gamma : float
        Ratio of specific heats of the converged profiles.
    error : mapping of str to float
        Maximum mean error of each profile, divided by the range of the profile and by the spacing. The errors
        apply to 64 to 512 cells in 1D.
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
        """Return the boundary conditions of a tube along x; None for a cube. No wave arrives at the walls."""
        return {name: Symmetric() for name in ("rho", "m", "E", "b")} if len(shape) == 1 else None

    def state(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return the initial state, as arguments of `MHDSimulation.set_state`."""
        return self._state_along_x(mhd) if mhd.axes == 1 else self._oblique_state(mhd)

    def _state_along_x(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return the initial state with the diaphragm at x = 0."""
        x = mhd.grid.x
        rho, u, v, w, By, Bz, p = (where(x < 0.0, *pair) for pair in zip(self.left, self.right, strict=True))
        return {"rho": rho, "v": (u, v, w), "p": p, "b": (self.across, By, Bz)}

    def _oblique_state(self, mhd: IdealMHD) -> dict[str, Any]:
        """Return the initial state: alternating layers of both states, 1 thick, with normal (1, 1, 1)/√3.

        The paper turns the normal of the shocks "45° out of all primary planes" (Section 6.2). No such
        direction exists. In this state, the angle between the normal and each plane is 35.3°, which is the
        maximum for three equal angles.

        The checks use the waves from the upper side of a layer. The waves from its lower side arrive later.
        """
        along = Direction.of(1, 1, 1)
        s, left, right = along.along(mhd.grid.coordinates()), self.left, self.right

        def share(s: Expr) -> Expr:
            """Return 1 in layers of the left state, which end at 0 and other multiples of the period."""
            return as_expr(sum(where((s >= at - 1.0) & (s < at), 1.0, 0.0) for at in LAYERS))

        def gathered(s: Expr) -> Expr:
            """Return the integral of `share` over s."""
            return as_expr(sum(minimum(maximum(s - (at - 1.0), 0.0), 1.0) for at in LAYERS))

        def mixed(l: float, r: float, part: Expr) -> Expr:
            return r + (l - r) * part

        def component_at(component: int, s: Expr) -> Expr:
            return mixed(left[component], right[component], share(s))

        def integral(component: int, s: Expr) -> Expr:
            return (left[component] - right[component]) * (gathered(s) - 0.5 * s)

        rho, u, v, w, _, _, p = (mixed(l, r, share(s)) for l, r in zip(left, right, strict=True))
        b = along.field(
            mhd.grid,
            (self.across, *(0.5 * (left[c] + right[c]) for c in FIELDS)),
            [partial(component_at, c) for c in FIELDS],
            [partial(integral, c) for c in FIELDS],
        )
        return {"rho": rho, "v": along.rotate((u, v, w)), "p": p, "b": b}

    # --- results ---

    def check(self, sim: MHDSimulation, record: Any) -> list[Check]:
        """Return checks that compare profiles and plateaux with the converged profiles."""
        checks = general(sim, record, periodic=sim.grid.ndim > 1)
        measured = profile(sim, all_layers=True)
        if measured is None:
            return checks
        reason = self._mismatch(sim)
        if reason:
            return [
                *checks,
                *(Check.not_compared(check_name, reason) for check_name in ("profiles", "plateaux")),
            ]
        converged = _rescale_profiles(reference(self.name), sim.time / self.until, (-0.5, 0.5))
        return [
            *checks,
            *self._profile_checks(sim, measured, converged),
            *_plateau_checks(sim, measured, converged),
        ]

    def _mismatch(self, sim: MHDSimulation) -> str:
        """Return the reason why the converged profiles do not apply to a run; empty if they apply."""
        gamma = sim.parameters["gamma"]
        if gamma != self.gamma:
            return f"no converged solution for gamma = {gamma:g}"
        if sim.time > self.until * (1.0 + 1e-12):
            return f"after t = {self.until:g} waves may reach the ends of the tube"
        return ""

    def _profile_checks(self, sim: MHDSimulation, measured: Profiles, converged: Profiles) -> list[Check]:
        """Return the checks of mean differences, which are proportional to the spacing."""
        import numpy as np

        (s, values), (x, exact) = measured, converged
        inside = (s > LOOKED_AT[0]) & (s < LOOKED_AT[1])
        spacing, turned = float(np.diff(s).mean()), sim.grid.ndim > 1
        margin = _margin(sim)
        checks = []
        for quantity, most in self.error.items():
            size = _difference_scale(np.ptp, exact, quantity, turned)
            error = np.abs(values[quantity] - np.interp(s, x, exact[quantity]))[inside].mean() / size
            about = "mean difference from the converged profile, relative to its range"
            checks.append(
                Check(f"{quantity} profile", float(error), maximum=margin * most * spacing, about=about)
            )
        return checks

    def figure(self, sim: MHDSimulation) -> Figure | None:
        """Return the figure of all quantities along the normal, on the first rank; None on other ranks.

        It contains the converged profiles (Figures 14 to 18).
        """
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
            lines[drawn.CONVERGED] = _rescale_profiles(reference(self.name), sim.time / self.until, span)
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

    The profiles come from a run on 8192 cells with HLLD fluxes, and are means over 8 cells
    (tools/mhd_references.py).
    """
    import numpy as np

    with np.load(Path(__file__).parent / "data" / "tubes.npz") as data:
        x = data[f"{name}/x"].astype(np.float64)
        return x, {q: data[f"{name}/{q}"].astype(np.float64) for q in QUANTITIES}


def profile(sim: MHDSimulation, *, all_layers: bool = False) -> Profiles | None:
    """Return positions from the diaphragm and quantities along the normal; None on all ranks but the first.

    In 3D, the positions are those of the cells on the diagonal of the cube. The state is uniform on planes
    normal to the diagonal, and planes through cell centres are h/√3 apart. With `all_layers`, one cell is
    added for each such plane between two diagonal cells.
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
    quantities = {"rho": rho, "p": p}
    for kind, names in zip("vB", VECTORS, strict=True):
        components = [state[f"{kind}_{a}"][on_line] for a in "xyz"]
        for name, basis in zip(names, (along.n, along.e1, along.e2), strict=True):
            quantities[name] = np.tensordot(basis, components, 1)
    return s, quantities


def _margin(sim: MHDSimulation) -> float:
    """Return the factor by which the error of a profile may exceed `Tube.error`."""
    diffusive = sim.numbers["flux"] == "hll" or sim.numbers["limiter"] < DIFFUSIVE
    return MARGIN * (2.0 if diffusive else 1.0) * (OBLIQUE if sim.grid.ndim > 1 else 1.0)


def _plateau_checks(sim: MHDSimulation, measured: Profiles, converged: Profiles) -> list[Check]:
    """Return the checks of the states between waves, at the centre of each plateau."""
    import numpy as np

    (s, values), (x, exact) = measured, converged
    spacing, turned = float(np.diff(s).mean()), sim.grid.ndim > 1
    centres = plateaux(x, exact, NARROWEST * spacing)
    if not centres:
        return [Check.not_compared("plateaux", f"no plateau has {NARROWEST:g} or more cells")]
    checks = []
    for centre in centres:
        at = int(np.argmin(np.abs(s - centre)))
        error = max(
            abs(values[q][at] - np.interp(s[at], x, exact[q]))
            / _difference_scale(lambda v: np.abs(v).max(), exact, q, turned)
            for q in QUANTITIES
        )
        about = "difference, relative to the maximum"
        checks.append(Check(f"plateau at {centre:+.3f}", float(error), maximum=0.01, about=about))
    return checks


def _difference_scale(
    measure: Callable[[NDArray[np.float64]], Any],
    exact: Mapping[str, NDArray[np.float64]],
    quantity: str,
    turned: bool,
) -> float:
    """Return the scale of differences of a quantity: its magnitude, but at least `LEAST`.

    In an oblique tube, each vector component of the tube is a combination of grid components. Therefore a
    component that vanishes in the solution has errors as large as those of the other components. Its scale is
    the largest scale of all components.
    """
    size = float(measure(exact[quantity]))
    if turned and size < LEAST:
        vector = next((names for names in VECTORS if quantity in names), (quantity,))
        size = max(float(measure(exact[name])) for name in vector if name in exact)
    return max(size, LEAST)


def _rescale_profiles(profiles: Profiles, share: float, span: tuple[float, float]) -> Profiles:
    """Return the profiles at `share` times the time for which they are stored.

    All waves move away from the diaphragm at constant speeds. Outside the waves, the states are the initial
    states.
    """
    import numpy as np

    x, values = profiles
    ends = [min(span[0], x[0] * share)], [max(span[1], x[-1] * share)]
    return (
        np.concatenate([ends[0], x * share, ends[1]]),
        {name: np.pad(quantity, 1, mode="edge") for name, quantity in values.items()},
    )


def plateaux(x: NDArray[np.float64], exact: Mapping[str, NDArray[np.float64]], width: float) -> list[float]:
    """Return the centres of all plateaux between waves that are at least `width` wide.

    Between adjacent points of a plateau, no quantity changes by more than a thousandth of its range. The
    first and the last plateau are excluded, because they contain the initial states.
    """
    import numpy as np

    ranges = {q: max(float(np.ptp(v)), 1e-3) for q, v in exact.items()}
    steps = np.max([np.abs(np.diff(v)) / ranges[q] for q, v in exact.items()], axis=0)
    waves = np.flatnonzero(steps > FLAT)
    return [float(x[a + 1] + x[b]) / 2 for a, b in pairwise(waves) if x[b] - x[a + 1] >= width]
