"""Panels in three dimensions: values over a plane as a mesh of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from halocline.io.panel import Panel
from halocline.io.style import COLOURS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray

SIZE, ALONE = 4.2, 5.6  # size of a panel in inches: among other panels, and alone


@dataclass(frozen=True)
class Mesh(Panel):
    """Mesh plot: values over two coordinates, with a line through each row and column of points.

    Parameters
    ----------
    x, y : array
        Coordinates of the points along both axes.
    values : array
        Values at the points. The first axis is x, the second axis is y.
    title : str
    axes : (str, str)
        Names of the coordinates.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    values: NDArray[np.float64]
    title: str
    axes: tuple[str, str] = ("x", "y")

    projection: ClassVar[str | None] = "3d"
    sides: ClassVar[float] = 0.6

    def size(self, *, alone: bool) -> tuple[float, float]:
        return (ALONE if alone else SIZE,) * 2

    def draw(self, canvas: Canvas, ax: Any, size: tuple[float, float], *, bar: bool) -> str:
        import numpy as np

        places = np.meshgrid(self.x, self.y, indexing="ij")
        line = {"rstride": 1, "cstride": 1, "linewidth": 0.5, "edgecolor": COLOURS[0]}
        ax.plot_surface(*places, self.values, color="white", shade=False, **line)
        ax.set(xlabel=self.axes[0], ylabel=self.axes[1])
        ax.ticklabel_format(axis="z", scilimits=(-2, 3))
        ax.locator_params(nbins=5)
        ax.view_init(elev=28.0, azim=-127.5)
        return ""
