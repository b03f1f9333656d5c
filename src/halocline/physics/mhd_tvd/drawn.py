"""Panels that figures of the scheme share: maps and cuts of derived quantities, and titles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halocline.io.figure import Map
from halocline.physics.mhd_tvd.simulation import MHDSimulation

if TYPE_CHECKING:
    from halocline.io.section import Section

CONVERGED = "converged solution"  # label of curves

# titles of panels, by the names of `derived`
TITLES = {
    "rho": "density",
    "p": "gas pressure",
    "kinetic": "specific kinetic energy",
    "p_magnetic": "magnetic pressure",
    "mach": "Mach number",
    **{f"B_{a}": f"$B_{a}$" for a in "xyz"},
}


def maps(sim: MHDSimulation, *names: str, **titles: str) -> list[Map] | None:
    """Return maps of derived quantities, on the first rank; None on other ranks.

    In 3D, the maps show the mid-plane in z. All ranks call this function.

    Parameters
    ----------
    **titles : str
        Titles that replace those of `TITLES`, by quantity.
    """
    from halocline.io import section

    known, called = sim.quantities, TITLES | titles
    sections = [section.cut(sim, known[name]) for name in names]
    return [Map(plane, called[name]) for plane, name in zip(sections, names, strict=True) if plane] or None


def cut(sim: MHDSimulation, name: str, axis: str, at: float) -> Section | None:
    """Return a derived quantity along a line of cells, on the first rank; None on other ranks.

    The line crosses `axis` at the cells nearest to the coordinate `at`. All ranks call this function.
    """
    from halocline.io import section

    return section.cut(sim, sim.quantities[name], {axis: at})


def cells(sim: MHDSimulation) -> str:
    """Return the numbers of cells along the axes as text for a legend: "192 x 192 cells"."""
    return " x ".join(map(str, sim.grid.shape)) + " cells"
