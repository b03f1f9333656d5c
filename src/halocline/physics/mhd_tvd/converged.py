"""Comparison of runs in the plane with a converged solution: checks, maps and cuts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Curve, Figure, Lines
from halocline.lang.grid import Grid
from halocline.physics.mhd_tvd import drawn
from halocline.physics.mhd_tvd.checks import difference, general, primitives, turned
from halocline.physics.mhd_tvd.parameters import why_unbounded
from halocline.physics.mhd_tvd.simulation import MHDSimulation
from halocline.run.simulation.checks import Check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
SYMMETRIC = 1e-14  # in float64


def square(shape: tuple[int, ...]) -> Grid:
    """Return the periodic square around the origin."""
    return Grid(shape, extent=(1.0,) * len(shape), origin=(-0.5,) * len(shape), periodic=True)


class Converged:
    """Converged solution of a problem in the plane.

    Parameters
    ----------
    name : str
        Name of the file in the folder ``data``.
    until : float
        Time of the solution.
    gamma : float
        Ratio of specific heats of the solution.
    most : mapping of str to (float, int)
        Greatest relative L1 difference of quantities, and the cells along each axis for which it holds.
    maps : tuple of str
        Quantities that the figure shows.
    cuts : tuple of (str, str, float)
        Quantity, axis and place of each cut that the figure shows.
    """

    def __init__(
        self,
        name: str,
        *,
        until: float,
        gamma: float,
        most: Mapping[str, tuple[float, int]],
        maps: tuple[str, ...],
        cuts: tuple[tuple[str, str, float], ...],
    ) -> None:
        self.file, self.until, self.gamma = DATA / f"{name}.npz", until, gamma
        self.most, self.maps, self.cuts = most, maps, cuts

    def check(self, sim: MHDSimulation, record: Any) -> list[Check]:
        """Check the agreement with the solution, the symmetry under half a turn, and that something moved."""
        checks, state = general(sim, record), primitives(sim, sim.parameters["gamma"])
        if state is None:
            return checks
        checks += self._agreement(sim, state)
        most = sim.grid.rounding(SYMMETRIC)
        for quantity in ("rho", "p"):
            about = "difference from itself turned by 180°, over the greatest value"
            checks.append(Check(f"{quantity} symmetric", turned(state[quantity]), most=most, about=about))
        p = state["p"]
        moved = float((p.max() - p.min()) / p.mean())
        # pressure is uniform at the start and changes as the square of time at first
        least = 0.5 * min(1.0, sim.time / self.until) ** 2
        return [*checks, Check("moved", moved, least=least, about="range of the pressure over its mean")]

    def _agreement(self, sim: MHDSimulation, state: Mapping[str, NDArray[np.float64]]) -> list[Check]:
        """Return relative differences from the solution, or the reason why there are none."""
        import numpy as np

        checks = []
        with np.load(self.file) as kept:
            for quantity, (most, of) in self.most.items():
                called, converged = f"{quantity} converged", kept[quantity].astype(np.float64)
                why = self.unlike(sim) or unmatched(sim.grid.shape, converged.shape)
                why = why or why_unbounded(sim.numbers)
                if why:
                    checks.append(Check.not_compared(called, why))
                    continue
                off, coarser = difference(state[quantity], converged), max(1.0, of / min(sim.grid.shape))
                about = "relative L1 difference from a run on four times the cells"
                checks.append(Check(called, off, most=most * coarser, about=about))
        return checks

    def unlike(self, sim: MHDSimulation) -> str:
        """Return the reason why the solution is not that of a run; empty where it is."""
        gamma = sim.parameters["gamma"]
        if gamma != self.gamma:
            return f"no converged solution for gamma = {gamma:g}"
        if not math.isclose(sim.time, self.until):
            return f"no converged solution at t = {sim.time:.4g}"
        return ""

    def figure(self, sim: MHDSimulation) -> Figure | None:
        """Draw maps and cuts (Figures 19 and 20)."""
        maps = drawn.maps(sim, *self.maps)
        cuts = [drawn.cut(sim, *each) for each in self.cuts]
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
        """Return the cut through the solution, where that is kept and holds."""
        import numpy as np

        if self.unlike(sim):
            return None
        with np.load(self.file) as kept:
            if quantity not in kept:
                return None
            values = np.moveaxis(kept[quantity].astype(np.float64), "xy".index(axis), 0)
        x = (np.arange(len(values)) + 0.5) / len(values) - 0.5
        row = (at - x[0]) * len(values)  # where it lies between two rows, their mean by distance
        below = int(np.clip(np.floor(row + 1e-9), 0, len(values) - 2))
        share = row - below
        return Curve(x, (1 - share) * values[below] + share * values[below + 1], drawn.CONVERGED)


def unmatched(shape: Sequence[int], kept: Sequence[int]) -> str:
    """Return the reason why means over blocks cannot be compared on these grids; empty where they can."""
    if all(max(pair) % min(pair) == 0 for pair in zip(shape, kept, strict=True)):
        return ""
    grids = [" x ".join(map(str, each)) for each in (shape, kept)]
    return f"{grids[0]} cells and the {grids[1]} of the converged solution are no multiples of each other"
