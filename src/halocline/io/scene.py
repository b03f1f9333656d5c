"""Scenes in three dimensions, drawn by pyvista."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

from halocline.io.section import Section
from halocline.io.style import INK

pyvista: Any = import_module("pyvista")  # an optional package
SIZE = (800, 600)  # pixels


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
    plotter.add_mesh(grid.slice_orthogonal(), scalars=name, cmap=cmap, clim=limits, lighting=False)
    plotter.add_mesh(grid.outline(), color=INK)
    plotter.add_title(title or values.name, font_size=10, color=INK)
    plotter.add_axes()
    return plotter
