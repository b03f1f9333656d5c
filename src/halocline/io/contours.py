"""Panels of contours: over a plane with lines or streamlines, and on planes in space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray

    from halocline.io.section import Section

LEVELS = 12  # by default, about
COLOURS = "viridis"
LINE = 0.7  # width of lines, in points
# inches
BAR, LEAST_BAR = 0.12, 1.3  # width of a colour bar, and its least height
BAR_TICK, TICK = 0.24, 0.42  # of a colour bar and of an axis for each tick, at least
NAME = 0.5  # from an axis in space to its name
DENSE = 4.0  # a panel where streamlines are as dense as matplotlib draws them
# where the eye is that sees planes in space, around z from x and above the plane of x and y: it sees the
# sides x+, y- and z+
AZIMUTH, ELEVATION = math.radians(-58.0), math.radians(24.0)
TO_THE_RIGHT = (-math.sin(AZIMUTH), math.cos(AZIMUTH), 0.0)
UPWARDS = (
    -math.sin(ELEVATION) * math.cos(AZIMUTH),
    -math.sin(ELEVATION) * math.sin(AZIMUTH),
    math.cos(ELEVATION),
)


@dataclass(frozen=True)
class Isolines:
    """Lines on which a quantity has one value.

    Parameters
    ----------
    section : Section
    levels : sequence of float
        These values. Lines of negative ones are drawn like those of others.
    """

    section: Section
    levels: Sequence[float]


@dataclass(frozen=True)
class Streamlines:
    """Lines along a velocity, with arrows.

    Parameters
    ----------
    across, up : Section
        Its components along the horizontal and the vertical axis, at the same points.
    """

    across: Section
    up: Section


@dataclass(frozen=True)
class Contours:
    """A panel of contours over a plane: one colour between two levels, and a line at each level.

    Parameters
    ----------
    section : Section
        The values, of two axes. They are drawn between the first and the last point: where these lie on
        walls, up to the walls.
    title : str
    label : str
        Of the colour bar.
    levels : int or sequence of float
        Where the colours change; or about how many levels there are, at round numbers.
    colours : str
        A colour map of matplotlib.
    over : Isolines or Streamlines, optional
        Lines that are drawn instead of those at the levels; the colours are faint then.
    """

    section: Section
    title: str
    label: str = ""
    levels: int | Sequence[float] = LEVELS
    colours: str = COLOURS
    over: Isolines | Streamlines | None = None

    def __post_init__(self) -> None:
        over = self.over
        beside = (over.section,) if isinstance(over, Isolines) else (over.across, over.up) if over else ()
        for section in (self.section, *beside):
            _check_plane(section, f"contours {self.title!r}")


@dataclass(frozen=True)
class Planes:
    """A panel in space: contours on planes across axes, as an eye beyond x+, y- and z+ sees them.

    Parameters
    ----------
    sections : sequence of Section
        The values on each plane, which lies across the one axis that is cut. Points whose value is NaN are
        left out, and so are the cells that they belong to. Later planes are drawn over earlier ones.
    axes : (str, str, str)
        The names of the axes.
    title, label, levels, colours
        As of `Contours`; the levels are those of all planes together.
    """

    sections: Sequence[Section]
    axes: tuple[str, str, str]
    title: str
    label: str = ""
    levels: int | Sequence[float] = LEVELS
    colours: str = COLOURS

    def __post_init__(self) -> None:
        if not self.sections:
            raise InputError(f"planes {self.title!r}: there are none")
        for section in self.sections:
            _check_plane(section, f"planes {self.title!r}")
            named = {*section.axes, *(name for name, _ in section.at)}
            if named != set(self.axes):
                raise InputError(
                    f"planes {self.title!r}: a section of the axes {', '.join(sorted(named))}; expected "
                    f"{', '.join(self.axes)}"
                )

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """Where the domain begins and ends along each axis."""
        ends: dict[str, list[float]] = {name: [] for name in self.axes}
        for each in self.sections:
            for name, span in zip(each.axes, each.span, strict=True):
                ends[name] += span
            for name, at in each.at:
                ends[name].append(at)
        return tuple((min(each), max(each)) for each in ends.values())


def _check_plane(section: Section, what: str) -> None:
    if len(section.axes) != 2:
        raise InputError(f"{what}: expected a section of two axes; this one has {len(section.axes)}")


@dataclass(frozen=True)
class _Scale:
    """Levels and colours of some values."""

    levels: NDArray[np.float64]
    ticks: NDArray[np.float64]
    extend: str
    note: str  # what to say where there are no contours

    @classmethod
    def of(cls, values: NDArray[Any], wanted: int | Sequence[float]) -> _Scale:
        import numpy as np
        from matplotlib.ticker import MaxNLocator

        finite = values[np.isfinite(values)]
        if not finite.size:
            return cls(np.array([0.0, 1.0]), np.array([]), "neither", ": no value is finite")
        low, high = float(finite.min()), float(finite.max())
        same = high - low <= 1e-12 * max(abs(low), abs(high))
        note = f": {low:.4g} everywhere" if same else ""
        if not isinstance(wanted, int):
            levels = np.asarray(wanted, dtype=np.float64)
            slack = 1e-9 * float(levels[-1] - levels[0])  # what rounding leaves beyond the ends is not beyond
            ends = (bool(low < levels[0] - slack), bool(high > levels[-1] + slack))
            extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(ends, "neither")
            return cls(levels, levels, extend, note)
        if same:
            apart = 0.5 * (abs(low) or 1.0)
            return cls(np.array([low - apart, low + apart]), np.array([low]), "neither", note)
        levels = np.asarray(MaxNLocator(wanted, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        return cls(levels, levels, "neither", note)

    def few_ticks(self, most: float) -> NDArray[np.float64]:
        """At most a number of the ticks: every second, fifth, tenth ... of them, round numbers where there
        are some."""
        import numpy as np

        numbers = np.arange(len(self.ticks))
        if len(self.ticks) > 1:
            first = self.ticks[0] / (self.ticks[1] - self.ticks[0])
            numbers += round(first) if abs(first - round(first)) < 1e-6 else 0
        steps = (1, 2, 5, 10, 20, 50, 100, max(1, len(self.ticks)))
        apart = next(k for k in steps if len(self.ticks) <= k * most + 1)
        found: NDArray[np.float64] = self.ticks[numbers % apart == 0]
        return found


def frame(panel: Contours | Planes, longer: float) -> tuple[float, float]:
    """Width and height of what a panel draws, without ticks and names; `longer` is the larger of the two."""
    if isinstance(panel, Planes):
        across, up = (high - low for low, high in zip(*_corners(panel), strict=True))
    else:
        across, up = (high - low for low, high in panel.section.span)
    scale = longer / max(across, up)
    return float(scale * across), float(scale * up)


def draw_contours(
    canvas: Canvas, ax: Axes, panel: Contours | Planes, title: str, size: tuple[float, float]
) -> None:
    """Draw a panel into axes of this width and height, and its colour bar beside it."""
    if isinstance(panel, Planes):
        scale = _draw_planes(canvas, ax, panel, size)
    else:
        scale = _draw_plane(canvas, ax, panel, size)
    ax.set_aspect("equal", anchor="W")
    ax.set_title(title + scale.note)


def _draw_plane(canvas: Canvas, ax: Axes, panel: Contours, size: tuple[float, float]) -> _Scale:
    section = panel.section
    x, y = section.coordinates
    scale = _Scale.of(section.values, panel.levels)
    colours = _colours(panel.colours, faint=panel.over is not None)
    filled = ax.contourf(x, y, section.values.T, scale.levels, cmap=colours, extend=scale.extend)
    pen = _pen(min(size))
    if isinstance(panel.over, Streamlines):
        _draw_streamlines(ax, panel.over, size)
    elif panel.over is not None:
        over = panel.over.section
        if len(panel.over.levels):
            ax.contour(*over.coordinates, over.values.T, panel.over.levels, **pen)
    elif not scale.note:
        ax.contour(x, y, section.values.T, scale.levels, alpha=0.6, **pen)
    ax.set_xlim(*section.span[0])
    ax.set_ylim(*section.span[1])
    ax.set_xlabel(section.axes[0])
    ax.set_ylabel(section.axes[1])
    ax.spines[:].set_visible(True)  # walls
    ax.locator_params(axis="x", nbins=_ticks(size[0]))
    ax.locator_params(axis="y", nbins=_ticks(size[1]))
    _colour_bar(canvas, ax, filled, scale, panel.label, size, 0.12, max(size[1], LEAST_BAR))
    return scale


def _pen(inches: float) -> dict[str, Any]:
    """How lines are drawn: finer ones into a narrow panel."""
    from halocline.io.style import INK

    return {"colors": INK, "linewidths": LINE * min(1.0, max(0.3, inches / 2.0)), "linestyles": "solid"}


def _ticks(inches: float) -> int:
    """The number of steps between ticks of an axis."""
    return min(5, max(1, int(inches / TICK)))


def _draw_streamlines(ax: Axes, lines: Streamlines, size: tuple[float, float]) -> None:
    import numpy as np

    from halocline.io.style import INK

    given = lines.across.coordinates
    # matplotlib wants points that are equally far apart
    x, y = (np.linspace(line[0], line[-1], len(line)) for line in given)
    u, v = (_onto((x, y), given, each.values).T for each in (lines.across, lines.up))
    if np.any(u) or np.any(v):
        density = (max(0.2, size[0] / DENSE), max(0.2, size[1] / DENSE))
        ax.streamplot(x, y, u, v, color=INK, linewidth=LINE, arrowsize=0.8, density=density)


def _onto(
    wanted: Sequence[NDArray[np.float64]], given: Sequence[NDArray[np.float64]], values: NDArray[Any]
) -> NDArray[Any]:
    """The values at other coordinates, linear between the given ones."""
    import numpy as np

    for axis, (new, old) in enumerate(zip(wanted, given, strict=True)):
        lines = [np.interp(new, old, line) for line in np.moveaxis(values, axis, -1)]
        values = np.moveaxis(np.array(lines), -1, axis)
    return values


def _draw_planes(canvas: Canvas, ax: Axes, panel: Planes, size: tuple[float, float]) -> _Scale:
    import numpy as np
    from matplotlib.collections import LineCollection

    from halocline.io.style import INK

    values = np.concatenate([np.ravel(each.values) for each in panel.sections])
    scale, filled = _Scale.of(values, panel.levels), None
    # corner_mask: half of a cell with one NaN would be drawn, beyond the border
    colours: dict[str, Any] = {"cmap": _colours(panel.colours), "extend": scale.extend, "corner_mask": False}
    pen = _pen(min(size)) | {"alpha": 0.6, "corner_mask": False}
    for order, section in enumerate(panel.sections):
        known = np.ma.masked_invalid(section.values)
        points = _seen(panel, section, *np.meshgrid(*section.coordinates, indexing="ij"))
        x, y = points[..., 0], points[..., 1]
        filled = ax.contourf(x, y, known, scale.levels, zorder=order + 1.0, **colours)
        if not scale.note:
            ax.contour(x, y, known, scale.levels, zorder=order + 1.3, **pen)
        border = list(_seen(panel, section, *_border(section)))
        ax.add_collection(
            LineCollection(border, colors=INK, linewidths=1.0, capstyle="round", zorder=order + 1.6)
        )
    for axis in range(3):
        _draw_axis(ax, panel, axis, size)
    low, high = _corners(panel)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_axis_off()
    _colour_bar(canvas, ax, filled, scale, panel.label, size, 0.5, max(0.75 * size[1], LEAST_BAR))
    return scale


def _projected(points: Any) -> NDArray[np.float64]:
    """Points in space as the eye sees them from afar: with two coordinates instead of three."""
    import numpy as np

    found: NDArray[np.float64] = np.asarray(points) @ np.array([TO_THE_RIGHT, UPWARDS]).T
    return found


def _seen(panel: Planes, section: Section, *coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of a plane, given by their coordinates along its axes, as the eye sees them."""
    import numpy as np

    ((name, at),) = section.at
    places = dict(zip(section.axes, coordinates, strict=True)) | {name: np.full_like(coordinates[0], at)}
    return _projected(np.stack([places[axis] for axis in panel.axes], axis=-1))


def _corners(panel: Planes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower left and the upper right corner of the picture of the domain."""
    import numpy as np

    seen = _projected(np.stack(np.meshgrid(*panel.spans, indexing="ij"), axis=-1)).reshape(-1, 2)
    return seen.min(axis=0), seen.max(axis=0)


def _draw_axis(ax: Axes, panel: Planes, axis: int, size: tuple[float, float]) -> None:
    """Ticks and the name of an axis along an edge that nothing is drawn beyond: that of x below the side y-,
    that of y below the side x+, that of z to the left of the side y-."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    from halocline.io.style import INK, MUTED

    start = np.array([span[0] for span in panel.spans])
    if axis == 1:
        start[0] = panel.spans[0][1]
    outwards = _projected(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), np.negative(TO_THE_RIGHT))[axis])
    outwards = outwards / np.hypot(*outwards)
    left, right = _corners(panel)
    inch = float(right[0] - left[0]) / size[0]
    low, high = panel.spans[axis]
    along = _projected(np.eye(3)[axis] * (high - low))
    locator = MaxNLocator(_ticks(float(np.hypot(*along)) / inch), steps=[1, 2, 5, 10])
    slack = 1e-9 * (high - low)
    ticks = [float(t) for t in locator.tick_values(low, high) if low - slack <= t <= high + slack]
    form = ScalarFormatter()
    form.create_dummy_axis()
    pen: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False}
    across, up = (("right", "top"), ("left", "top"), ("right", "center"))[axis]
    for tick, text in zip(ticks, form.format_ticks(ticks), strict=True):
        start[axis] = tick
        here = _projected(start)
        end = here + 0.05 * inch * outwards
        ax.plot(*zip(here, end, strict=True), color=MUTED, linewidth=0.8, clip_on=False)
        above = "bottom" if axis == 2 and tick <= low + slack else up  # the first tick of x is just below
        look: dict[str, Any] = {"color": INK, "fontsize": 9.0, "ha": across, "va": above}
        ax.annotate(text, (end[0], end[1]), 2.0 * outwards, **look, **pen)
    start[axis] = 0.5 * (low + high)
    middle, away = _projected(start), NAME * 72.0 * outwards
    pen |= {"ha": "center", "va": "center", "rotation": 90.0 if axis == 2 else 0.0}
    ax.annotate(panel.axes[axis], (middle[0], middle[1]), (away[0], away[1]), **pen)


def _border(section: Section) -> NDArray[np.float64]:
    """The edges around the cells that are drawn: along each axis the coordinates of both ends of each."""
    import numpy as np

    known = np.isfinite(section.values)
    cells = known[1:, 1:] & known[1:, :-1] & known[:-1, 1:] & known[:-1, :-1]
    x, y = section.coordinates
    found = []
    for axis in range(2):
        beyond = np.pad(cells, [(1, 1) if a == axis else (0, 0) for a in range(2)])
        for i, j in zip(*np.nonzero(np.diff(beyond, axis=axis)), strict=True):
            k, m = (i, j + 1) if axis == 0 else (i + 1, j)
            found.append([(x[i], x[k]), (y[j], y[m])])
    return np.moveaxis(np.array(found, dtype=np.float64).reshape(-1, 2, 2), 1, 0)


def _colours(name: str, *, faint: bool = False) -> Colormap:
    """A colour map; a faint one is nearly half white."""
    import matplotlib
    import numpy as np
    from matplotlib.colors import ListedColormap

    known = matplotlib.colormaps[name]
    return ListedColormap(0.45 + 0.55 * known(np.linspace(0.0, 1.0, 256))) if faint else known


def _colour_bar(
    canvas: Canvas,
    ax: Axes,
    filled: Any,
    scale: _Scale,
    label: str,
    size: tuple[float, float],
    apart: float,
    high: float,
) -> None:
    """A bar so far to the right of axes of this size, and so high; all in inches."""
    width, height = size
    place = ax.inset_axes((1.0 + apart / width, 0.5 - 0.5 * high / height, BAR / width, high / height))
    bar = canvas.colorbar(filled, cax=place, ticks=scale.few_ticks(max(2.0, high / BAR_TICK)))
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.5)
    bar.set_label(label)
