"""Panels of contours: over one plane, with lines or streamlines, or on several planes in three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.io.panel import Panel, PlanePanel, check_plane
from halocline.io.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas

    from halocline.io.section import Section

LEVELS = 12  # approximate default number of levels
COLOURS = "viridis"
LINES: dict[str, Any] = {"colors": INK, "linewidths": 0.5, "linestyles": "solid"}

# lengths in inches
BAR, LEAST_BAR, BESIDE = 0.12, 1.3, 0.12  # Width and minimum height of a colour bar, and gap to its axes.
BAR_TICK = 0.24  # Minimum distance between ticks of a colour bar.
DENSE = 4.0  # Size of a panel with streamlines of the default density of matplotlib.
TICK = 0.42  # Minimum distance between ticks of an axis.
SPACE, SPACE_ALONE = 3.6, 4.8  # Size of axes in three dimensions.

VIEW = {"elev": 24.0, "azim": -58.0}  # degrees: view from beyond x+, y- and z+


@dataclass(frozen=True)
class Isolines:
    """Lines of constant value of a quantity.

    Parameters
    ----------
    section : Section
    levels : sequence of float
        Value of the quantity on each line. Lines of negative and positive values have the same style.
    """

    section: Section
    levels: Sequence[float]


@dataclass(frozen=True)
class Streamlines:
    """Streamlines of a velocity, with arrows.

    Parameters
    ----------
    across, up : Section
        Components of the velocity along the horizontal and the vertical axis, at the same points.
    """

    across: Section
    up: Section


@dataclass(frozen=True)
class Contours(PlanePanel):
    """Panel of contours over a plane: one colour between two levels, and a line at each level.

    Parameters
    ----------
    section : Section
        Values on two axes. The contours extend from the first to the last point. If these points lie on
        walls, the contours extend to the walls.
    title : str
    label : str
        Label of the colour bar.
    levels : int or sequence of float
        Values at which the colour changes. An integer is the approximate number of these values, which are
        then round numbers.
    colours : str
        Colour map of matplotlib.
    over : Isolines or Streamlines, optional
        Lines that replace the lines at the levels. If there are any, the colours are faint.
    """

    section: Section
    title: str
    label: str = ""
    levels: int | Sequence[float] = LEVELS
    colours: str = COLOURS
    over: Isolines | Streamlines | None = None

    sides: ClassVar[float] = 1.8

    def __post_init__(self) -> None:
        over = self.over
        over_sections = (
            (over.section,) if isinstance(over, Isolines) else (over.across, over.up) if over else ()
        )
        for section in (self.section, *over_sections):
            check_plane(section, f"contours {self.title!r}")

    def draw(self, canvas: Canvas, ax: Axes, size: tuple[float, float], *, bar: bool) -> str:
        section, over = self.section, self.over
        x, y = section.coordinates
        scale = _Scale.of(section.values, self.levels)
        colours = _colours(self.colours, faint=over is not None)
        filled = ax.contourf(x, y, section.values.T, scale.levels, cmap=colours, extend=scale.extend)
        if isinstance(over, Streamlines):
            _draw_streamlines(ax, over, size)
        elif over is not None and len(over.levels):
            ax.contour(*over.section.coordinates, over.section.values.T, over.levels, **LINES)
        elif over is None and not scale.note:
            ax.contour(x, y, section.values.T, scale.levels, alpha=0.6, **LINES)
        (across, up), (xlabel, ylabel) = section.span, section.axes
        ax.set(xlim=across, ylim=up, xlabel=xlabel, ylabel=ylabel)
        ax.set_aspect("equal", anchor="W")
        ax.spines[:].set_visible(True)  # walls
        ticks = [min(5, max(1, int(inches / TICK))) for inches in size]
        ax.locator_params(axis="x", nbins=ticks[0])
        ax.locator_params(axis="y", nbins=ticks[1])
        (width, height), high = size, max(size[1], LEAST_BAR)
        place = 1.0 + BESIDE / width, 0.5 - 0.5 * high / height, BAR / width, high / height
        _colour_bar(canvas, filled, scale, self.label, high, cax=ax.inset_axes(place))
        return scale.note


@dataclass(frozen=True)
class Planes(Panel):
    """Panel in three dimensions: contours on planes across axes.

    Parameters
    ----------
    sections : sequence of Section
        Values on each plane. A plane is normal to one axis. Points with the value NaN, and cells with a
        NaN point as a corner, are omitted. Planes are drawn in this order, so the last plane is on top.
    axes : (str, str, str)
        Names of the axes.
    title, label, levels
        See `Contours`; the levels apply to all planes.
    """

    sections: Sequence[Section]
    axes: tuple[str, str, str]
    title: str
    label: str = ""
    levels: int | Sequence[float] = LEVELS

    projection: ClassVar[str | None] = "3d"

    def __post_init__(self) -> None:
        if not self.sections:
            raise InputError(f"planes {self.title!r}: the list is empty")
        for section in self.sections:
            check_plane(section, f"planes {self.title!r}")
            named = {*section.axes, *(name for name, _ in section.at)}
            if named != set(self.axes):
                raise InputError(
                    f"planes {self.title!r}: a section has the axes {', '.join(sorted(named))}; expected "
                    f"{', '.join(self.axes)}"
                )

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """First and last coordinate of the domain along each axis."""
        ends: dict[str, list[float]] = {name: [] for name in self.axes}
        for section in self.sections:
            for name, span in zip(section.axes, section.span, strict=True):
                ends[name] += span
            for name, at in section.at:
                ends[name].append(at)
        return tuple((min(coordinates), max(coordinates)) for coordinates in ends.values())

    def size(self, *, alone: bool) -> tuple[float, float]:
        return (SPACE_ALONE if alone else SPACE,) * 2

    def draw(self, canvas: Canvas, ax: Any, size: tuple[float, float], *, bar: bool) -> str:
        all_values = [np.ravel(section.values) for section in self.sections]
        scale = _Scale.of(np.concatenate(all_values), self.levels)
        # with corner_mask, matplotlib draws half of a cell with one NaN, beyond the border
        colours: dict[str, Any] = {"cmap": _colours(COLOURS), "extend": scale.extend, "corner_mask": False}
        ax.computed_zorder = False  # draw in the order of the planes
        filled = None
        for order, section in enumerate(self.sections):
            ((name, at),) = section.at
            contour_options = {"levels": scale.levels, "zdir": "xyz"[self.axes.index(name)], "offset": at}
            lines = dict(zip(section.axes, np.meshgrid(*section.coordinates, indexing="ij"), strict=True))
            values = np.ma.masked_invalid(section.values)
            places = [lines.get(axis, values) for axis in self.axes]
            filled = ax.contourf(*places, zorder=order + 1.0, **contour_options, **colours)
            if not scale.note:
                ax.contour(
                    *places, zorder=order + 1.3, alpha=0.6, corner_mask=False, **contour_options, **LINES
                )
            for ends in np.moveaxis(_border(section), 0, 1):
                edge = dict(zip(section.axes, ends, strict=True)) | {name: (at, at)}
                ax.plot(*(edge[axis] for axis in self.axes), color=INK, lw=1.0, zorder=order + 1.6)
        ax.view_init(**VIEW)
        ax.set_proj_type("ortho")
        ax.set_box_aspect([high - low or 1.0 for low, high in self.spans])
        ax.grid(False)
        for axis, label, (low, high) in zip("xyz", self.axes, self.spans, strict=True):
            getattr(ax, f"{axis}axis").pane.set_visible(False)
            margin = 0.0 if low < high else 0.5
            ax.set(**{f"{axis}label": label, f"{axis}lim": (low - margin, high + margin)})
        _colour_bar(canvas, filled, scale, self.label, 0.6 * size[1], ax=ax, shrink=0.6, pad=0.12)
        return scale.note


@dataclass(frozen=True)
class _Scale:
    """Levels of contours for given values.

    Attributes
    ----------
    levels : array
    extend : str
        Sides on which values are outside the levels: "neither", "min", "max" or "both", as in matplotlib.
    note : str
        Reason why the panel has no contours, as a suffix of its title.
    """

    levels: NDArray[np.float64]
    extend: str = "neither"
    note: str = ""

    @classmethod
    def of(cls, values: NDArray[Any], levels_or_count: int | Sequence[float]) -> _Scale:
        from matplotlib.ticker import MaxNLocator

        finite = values[np.isfinite(values)]
        if not finite.size:
            return cls(np.array([0.0, 1.0]), note=": no value is finite")
        low, high = float(finite.min()), float(finite.max())
        is_constant = high - low <= 1e-12 * max(abs(low), abs(high))
        note = f": {low:.4g} everywhere" if is_constant else ""
        if not isinstance(levels_or_count, int):
            levels = np.asarray(levels_or_count, dtype=np.float64)
            slack = 1e-9 * float(levels[-1] - levels[0])  # rounding errors beyond the ends do not count
            ends = (bool(low < levels[0] - slack), bool(high > levels[-1] + slack))
            extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(ends, "neither")
            return cls(levels, extend, note)
        if is_constant:
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        ticks = MaxNLocator(levels_or_count, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return cls(np.asarray(ticks), note=note)


def _draw_streamlines(ax: Axes, lines: Streamlines, size: tuple[float, float]) -> None:
    """Draw streamlines from interpolated velocities, since matplotlib requires evenly spaced points."""
    from scipy.interpolate import RegularGridInterpolator

    x, y = (np.linspace(line[0], line[-1], len(line)) for line in lines.across.coordinates)
    points = tuple(np.meshgrid(x, y, indexing="ij"))
    u, v = (
        RegularGridInterpolator(section.coordinates, section.values)(points).T
        for section in (lines.across, lines.up)
    )
    if np.any(u) or np.any(v):
        density = (max(0.2, size[0] / DENSE), max(0.2, size[1] / DENSE))
        ax.streamplot(x, y, u, v, color=INK, linewidth=0.7, arrowsize=0.8, density=density)


def _border(section: Section) -> NDArray[np.float64]:
    """Return the border edges of the drawn cells: for each axis, the coordinates of the ends of each edge."""
    known = np.isfinite(section.values)
    cells = known[1:, 1:] & known[1:, :-1] & known[:-1, 1:] & known[:-1, :-1]
    x, y = section.coordinates
    edges = []
    for axis in range(2):
        beyond = np.pad(cells, [(1, 1) if a == axis else (0, 0) for a in range(2)])
        for i, j in zip(*np.nonzero(np.diff(beyond, axis=axis)), strict=True):
            k, m = (i, j + 1) if axis == 0 else (i + 1, j)
            edges.append([(x[i], x[k]), (y[j], y[m])])
    return np.moveaxis(np.array(edges, dtype=np.float64).reshape(-1, 2, 2), 1, 0)


def _colours(name: str, *, faint: bool = False) -> Colormap:
    """Return a colour map; a faint one is nearly half white."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    known = matplotlib.colormaps[name]
    return ListedColormap(0.45 + 0.55 * known(np.linspace(0.0, 1.0, 256))) if faint else known


def _colour_bar(
    canvas: Canvas, filled: Any, scale: _Scale, label: str, inches: float, **position: Any
) -> None:
    """Draw the colour bar of filled contours, `inches` high, with as many ticks as fit."""
    from matplotlib.ticker import FixedLocator

    ticks = FixedLocator(list(scale.levels), max(2, int(inches / BAR_TICK)))
    bar = canvas.colorbar(filled, ticks=ticks, **position)
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.5)
    bar.set_label(label)
