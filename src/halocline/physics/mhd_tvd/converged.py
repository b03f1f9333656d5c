"""Comparison of runs on two axes with a converged solution: checks, maps and line cuts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Curve, Figure, Lines
from halocline.lang.grid import Grid
from halocline.physics.mhd_tvd import drawn
from halocline.physics.mhd_tvd.checks import difference, general, primitives, rotation_asymmetry
from halocline.physics.mhd_tvd.parameters import why_unbounded
from halocline.physics.mhd_tvd.simulation import MHDSimulation
from halocline.run.simulation.checks import Check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
SYMMETRIC = 1e-14  # in float64


def square(shape: tuple[int, ...]) -> Grid:
    """Return the grid of the periodic unit square around the origin."""
    return Grid(shape, extent=(1.0,) * len(shape), origin=(-0.5,) * len(shape), periodic=True)


class Converged:
    """Converged solution of a problem on two axes.

    Parameters
    ----------
    name : str
        Name of the file in the folder ``data``.
    until : float
        Time of the solution.
    gamma : float
        Ratio of specific heats of the solution.
    maximum_errors : mapping of str to (float, int)
        Maximum relative L1 difference of each quantity. It applies to a run with the given number of cells
        along each axis.
    maps : tuple of str
        Quantities that the figure shows as maps.
    cuts : tuple of (str, str, float)
        Quantity, axis and coordinate of each cut in the figure.
    """

    def __init__(
        self,
        name: str,
        *,
        until: float,
        gamma: float,
        maximum_errors: Mapping[str, tuple[float, int]],
        maps: tuple[str, ...],
        cuts: tuple[tuple[str, str, float], ...],
    ) -> None:
        self.file, self.until, self.gamma = DATA / f"{name}.npz", until, gamma
        self.maximum_errors, self.maps, self.cuts = maximum_errors, maps, cuts

    def check(self, sim: MHDSimulation, record: Any) -> list[Check]:
        """Return the checks of a run.

        They test that the result agrees with the converged solution, is symmetric under a rotation of 180
        degrees, and differs from the initial state.
        """
        checks, state = general(sim, record), primitives(sim, sim.parameters["gamma"])
        if state is None:
            return checks
        checks += self._agreement(sim, state)
        bound = sim.grid.rounding(SYMMETRIC)
        for quantity in ("rho", "p"):
            about = "difference from the field rotated by 180°, relative to its maximum"
            checks.append(
                Check(
                    f"{quantity} symmetric", rotation_asymmetry(state[quantity]), maximum=bound, about=about
                )
            )
        p = state["p"]
        pressure_range = float((p.max() - p.min()) / p.mean())
        # The pressure is initially uniform. At first, its change is proportional to the square of time.
        least = 0.5 * min(1.0, sim.time / self.until) ** 2
        return [
            *checks,
            Check(
                "moved", pressure_range, minimum=least, about="range of the pressure, relative to its mean"
            ),
        ]

    def _agreement(self, sim: MHDSimulation, state: Mapping[str, NDArray[np.float64]]) -> list[Check]:
        """Return a check for each compared quantity, or the reason why the quantity is not compared."""
        import numpy as np

        checks = []
        with np.load(self.file) as solution:
            for quantity, (bound, cells) in self.maximum_errors.items():
                check_name, converged = f"{quantity} converged", solution[quantity].astype(np.float64)
                reason = self.mismatch(sim) or incompatible_grids(sim.grid.shape, converged.shape)
                reason = reason or why_unbounded(sim.numbers)
                if reason:
                    checks.append(Check.not_compared(check_name, reason))
                    continue
                error, coarser = difference(state[quantity], converged), max(1.0, cells / min(sim.grid.shape))
                about = (
                    "relative L1 difference from the converged solution, a run with four times the default "
                    "number of cells along each axis"
                )
                checks.append(Check(check_name, error, maximum=bound * coarser, about=about))
        return checks

    def mismatch(self, sim: MHDSimulation) -> str:
        """Return the reason why the converged solution does not apply to a run; empty if it applies."""
        gamma = sim.parameters["gamma"]
        if gamma != self.gamma:
            return f"no converged solution for gamma = {gamma:g}"
        if not math.isclose(sim.time, self.until):
            return f"no converged solution at t = {sim.time:.4g}"
        return ""

    def figure(self, sim: MHDSimulation) -> Figure | None:
        """Return the figure of maps and cuts (Figures 19 and 20), on the first rank; None on other ranks."""
        maps = drawn.maps(sim, *self.maps)
        cuts = [drawn.cut(sim, *place) for place in self.cuts]
        if maps is None:
            return None
        panels = []
        for cut, (quantity, axis, _) in zip(cuts, self.cuts, strict=True):
            assert cut is not None
            ((_, at),) = cut.at
            curves = [Curve(cut.coordinates[0], cut.values, drawn.cells(sim), points=True)]
            line = self._curve(quantity, axis, at, sim)
            curves += [] if line is None else [line]
            title = f"{drawn.TITLES[quantity]} at ${axis} = {at:.4g}$"
            panels.append(Lines(curves, title, cut.axes[0], cut.span[0]))
        return Figure([*maps, *panels], columns=2)

    def _curve(self, quantity: str, axis: str, at: float, sim: MHDSimulation) -> Curve | None:
        """Return a line cut of the converged solution; None if it is not stored or does not apply."""
        import numpy as np

        if self.mismatch(sim):
            return None
        with np.load(self.file) as solution:
            if quantity not in solution:
                return None
            values = np.moveaxis(solution[quantity].astype(np.float64), "xy".index(axis), 0)
        x = (np.arange(len(values)) + 0.5) / len(values) - 0.5
        row = (at - x[0]) * len(values)  # linear interpolation between two rows
        below = int(np.clip(np.floor(row + 1e-9), 0, len(values) - 2))
        share = row - below
        return Curve(x, (1 - share) * values[below] + share * values[below + 1], drawn.CONVERGED)


def incompatible_grids(shape: Sequence[int], converged_shape: Sequence[int]) -> str:
    """Return the reason why block means on two grids cannot be compared; empty if they can be."""
    if all(max(pair) % min(pair) == 0 for pair in zip(shape, converged_shape, strict=True)):
        return ""
    grids = [" x ".join(map(str, grid_shape)) for grid_shape in (shape, converged_shape)]
    return (
        f"{grids[0]} cells and the {grids[1]} cells of the converged solution are not multiples of each other"
    )
