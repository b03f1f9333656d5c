"""Scenes in three dimensions, drawn by pyvista."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

from halocline.io.plane import with_unit
from halocline.io.section import Section
from halocline.io.style import INK
from halocline.lang.axes import AXES

pyvista: Any = import_module("pyvista")  # an optional package
SIZE = (800, 600)  # pixels
# a colour bar at the right edge
BAR = {"vertical": True, "position_x": 0.88, "position_y": 0.2, "height": 0.6, "fmt": "%.3g"}


class InlinePlotter(pyvista.Plotter):  # type: ignore[misc]
    """Plotter that a notebook shows as a picture; ``plotter.show()`` opens an interactive view."""

    def _repr_png_(self) -> bytes:
        from matplotlib.image import imsave

        buffer = BytesIO()
        imsave(buffer, np.ascontiguousarray(self.screenshot(return_img=True)), format="png")
        return buffer.getvalue()


def scene_of(
    values: Section,
    title: str | None = None,
    label: str | None = None,
    unit: str = "",
    cmap: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Return a scene with three planes through the middle of a field; see `halocline.io.plot.plot`."""
    name = label or values.name
    if cmap is None:
        cmap = "RdBu_r" if limits is not None and limits[0] == -limits[1] else "viridis"
    grid = pyvista.RectilinearGrid(*values.coordinates)
    grid[name] = values.values.ravel(order="F")
    plotter = InlinePlotter(off_screen=True, window_size=SIZE)
    plotter.set_background("white")
    style = {"cmap": cmap, "clim": limits, "lighting": False, "scalar_bar_args": BAR}
    plotter.add_mesh(grid.slice_orthogonal(), scalars=name, **style)
    plotter.add_mesh(grid.outline(), color=INK)
    plotter.add_title(title or values.name, font_size=10, color=INK)
    titles = {f"{axis}title": with_unit(axis, unit) for axis in AXES}
    plotter.show_bounds(**titles, color=INK, font_size=10, location="outer", fmt="%.3g")
    return plotter
