"""Panels that figures of the scheme share: maps of quantities, cuts, and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halocline.io.figure import Map
from halocline.physics.mhd_tvd.simulation import MHDSimulation

if TYPE_CHECKING:
    from halocline.io.section import Section

CONVERGED = "converged solution"  # the label of its curves
# titles of panels, by the names that `derived` gives
TITLES = {
    "rho": "density",
    "p": "gas pressure",
    "kinetic": "specific kinetic energy",
    "p_magnetic": "magnetic pressure",
    "mach": "Mach number",
    **{f"B_{a}": f"$B_{a}$" for a in "xyz"},
}


def maps(sim: MHDSimulation, *names: str, **titles: str) -> list[Map] | None:
    """Return maps of derived quantities, in space in the middle of the z axis; on the first rank, None on
    others. All ranks call this.

    Parameters
    ----------
    **titles : str
        Titles that differ from `TITLES`.
    """
    from halocline.io import section

    known, called = sim.quantities, TITLES | titles
    sections = [section.cut(sim, known[name]) for name in names]
    return [Map(each, called[name]) for each, name in zip(sections, names, strict=True) if each] or None


def cut(sim: MHDSimulation, name: str, axis: str, at: float) -> Section | None:
    """Return a derived quantity along the line of cells nearest to `at` on the axis; on the first rank, None
    on others. All ranks call this."""
    from halocline.io import section

    return section.cut(sim, sim.quantities[name], {axis: at})


def cells(sim: MHDSimulation) -> str:
    """Return the cells along each axis, for a legend: "192 x 192 cells"."""
    return " x ".join(map(str, sim.grid.shape)) + " cells"
