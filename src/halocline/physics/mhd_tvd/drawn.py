"""What figures of the cases share: names of quantities, maps of them, and cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halocline.io.figure import Map
from halocline.physics.case import Checked

if TYPE_CHECKING:
    from halocline.io.section import Section

CONVERGED = "converged solution"  # the label of its curves
# what `derived` gives, as titles of panels
TITLES = {
    "rho": "density",
    "p": "gas pressure",
    "kinetic": "specific kinetic energy",
    "p_magnetic": "magnetic pressure",
    "mach": "Mach number",
    **{f"B_{a}": f"$B_{a}$" for a in "xyz"},
}


def maps(done: Checked, *names: str, **titles: str) -> list[Map] | None:
    """Maps of derived quantities, in space in the middle of the z axis; on the first rank, None on others.

    All ranks call this. `titles` are those that are not in `TITLES`.
    """
    from halocline.io.section import section

    known = done.setup.derived()
    found = [section(done.simulation, known[name]) for name in names]
    called = TITLES | titles
    return [Map(each, called[name]) for each, name in zip(found, names, strict=True) if each] or None


def cut(done: Checked, name: str, axis: str, at: float) -> Section | None:
    """A derived quantity along the line of cells nearest to `at` on the axis; on the first rank, None on
    others.

    All ranks call this.
    """
    from halocline.io import section

    return section.cut(done.simulation, done.setup.derived()[name], {axis: at})


def cells(done: Checked) -> str:
    """How many there are, for a legend: "192 x 192 cells"."""
    return " x ".join(map(str, done.shape)) + " cells"
