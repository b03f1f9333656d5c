"""Pictures of fields: every rank calls the same function, the first one draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halocline.archive.files import as_path
from halocline.errors import InputError
from halocline.io.section import Section, cut, fields_of
from halocline.io.style import INK, gridded, save, styled
from halocline.lang.grid import component_names
from halocline.lang.values import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")
Curve = tuple[str, Any, Any, dict[str, Any]]  # label, abscissas, ordinates, style

DPI = 160  # of pictures of fields
LABEL = 0.4  # inches, of the name beside a colour bar


def picture(
    source: Any,
    what: Any,
    path: str | Path,
    *,
    title: str | None = None,
    label: str | None = None,
    unit: str = "",
    cmap: str | None = None,
    limits: tuple[float, float] | None = None,
    axis: int | str | None = None,
    at: float | None = None,
) -> None:
    """Draw a field into a file: colours in two and three dimensions, a line in one.

    All ranks call this; the first writes the file. Large fields are thinned before they are sent.

    Parameters
    ----------
    source : Simulation, LinearProblem or Solution
    what : Field, Vector, str or expression
        A field, its name, or an expression such as ``u - exact`` or ``hc.sqrt(u**2 + v**2)``. Of a vector the
        components are drawn side by side, or as lines of one diagram; its length is
        ``hc.sqrt(hc.dot(w, w))``.
    path : str or Path
        Ends in .png, .pdf or .svg. Folders that are missing are made.
    title : str, optional
        The name of the field by default.
    label : str, optional
        Of the colour bar, with the unit of the values: "temperature [K]".
    unit : str
        Of the coordinates, such as "m".
    cmap : str, optional
        A colour map of matplotlib. By default one for quantities of one sign, or one around zero where both
        signs occur.
    limits : (float, float), optional
        The values at both ends of the colours.
    axis : int or {"x", "y", "z"}, optional
        In three dimensions: the axis that the drawn plane is normal to, z by default.
    at : float, optional
        Where the plane cuts that axis, in the middle by default.

    Raises
    ------
    InputError

    Examples
    --------
    >>> hc.picture(sim, T, "temperature.png", label="temperature [K]", unit="m")  # doctest: +SKIP
    """
    target, fields = picture_file(path), fields_of(source)
    parts = fields.components(what)
    axis, at = plain(axis), plain(at)
    cuts = None if axis is None and at is None else {"z" if axis is None else axis: at}
    if cuts is not None and fields.grid.ndim != 3:
        raise InputError(
            f"axis and at choose a plane of a grid of three axes; this one has {fields.grid.ndim}"
        )
    drawn = [cut(fields, part, cuts) for part in ((what,) if parts is None else parts)]
    with fields.domain.comm.agreement(f"draw {target}"):
        sections = [each for each in drawn if each is not None]
        if sections:
            with styled():
                figure = _figure(sections, title, label, unit, cmap, plain(limits))
                save(figure, target, dpi=DPI)


def plot_lines(
    source: Any,
    lines: Mapping[str, Any] | Sequence[Any],
    path: str | Path,
    *,
    title: str | None = None,
    label: str = "",
    unit: str = "",
) -> None:
    """Draw fields of a grid of one axis as lines in one diagram; all ranks call this.

    Parameters
    ----------
    source : Simulation, LinearProblem or Solution
    lines : mapping of label to field, vector, name, expression or array; or a sequence of fields
        Of a vector each component is a line.
        An array holds one number per point of the grid, for instance an exact solution.
    path : str or Path
        Ends in .png, .pdf or .svg.
    title : str, optional
    label : str
        Of the vertical axis.
    unit : str
        Of the coordinate.

    Raises
    ------
    InputError

    Examples
    --------
    >>> hc.plot_lines(sim, {"computed": rho, "exact": exact}, "sod.png", label="density")  # doctest: +SKIP
    """
    fields, target = fields_of(source), picture_file(path)
    if fields.grid.ndim != 1:
        raise InputError(
            f"plot_lines needs a grid of one axis; this one has {fields.grid.ndim}: use hc.picture"
        )
    given = lines if isinstance(lines, Mapping) else {getattr(w, "name", "") or str(w): w for w in lines}
    named: dict[str, Any] = {}
    for name, line in given.items():
        parts = fields.components(line)
        named |= (
            {name: line}
            if parts is None
            else dict(zip(component_names(name, len(parts)), parts, strict=True))
        )
    if not named:
        raise InputError("plot_lines: nothing to draw")
    arrays = {n: w for n, w in named.items() if hasattr(w, "shape")}
    for name, array in arrays.items():
        if tuple(array.shape) != fields.grid.shape:
            raise InputError(
                f"line {name!r} has shape {tuple(array.shape)}, but the grid has shape {fields.grid.shape}"
            )
    drawn = {n: cut(fields, w) for n, w in named.items() if n not in arrays}
    with fields.domain.comm.agreement(f"draw {target}"):
        if fields.domain.comm.rank == 0:
            grid = fields.grid
            (points,) = grid.positions()
            curves: list[Curve] = []
            for name in named:
                found = drawn.get(name)
                if found is None:
                    style = {"linestyle": "--", "linewidth": 1.2, "color": INK, "zorder": 3}
                    curves.append((name, points, arrays[name], style))
                else:
                    style = {"marker": "." if len(found.values) <= 256 else "", "markersize": 3.5}
                    curves.append((name, found.coordinates[0], found.values, style))
            span = grid.origin[0], grid.origin[0] + grid.extent[0]
            with styled():
                figure = _diagram(curves, span, with_unit("x", unit), label, title or "")
                save(figure, target, dpi=DPI)


def picture_file(path: str | Path) -> Path:
    """The path; InputError where its name says nothing that can be drawn."""
    target = as_path(path, "path")
    if target.suffix not in SUFFIXES:
        raise InputError(f"picture {str(path)!r}: expected a name that ends in {', '.join(SUFFIXES)}")
    return target


def _figure(
    sections: Sequence[Section],
    title: str | None,
    label: str | None,
    unit: str,
    cmap: str | None,
    limits: tuple[float, float] | None,
) -> Figure:
    """Draw sections side by side, or as lines of one diagram."""
    from matplotlib.figure import Figure

    first, count = sections[0], len(sections)
    names = ", ".join(each.name for each in sections)
    if len(first.axes) == 1:
        curves: list[Curve] = [(drawn.name, drawn.coordinates[0], drawn.values, {}) for drawn in sections]
        xlabel = with_unit(first.axes[0], unit)
        return _diagram(curves, first.span[0], xlabel, label or names, (title or names) + place(first, unit))
    width, height = _size(first)
    figure = Figure(figsize=(count * (width + (LABEL if label else 0.0)), height), layout="constrained")
    for drawn, ax in zip(sections, figure.subplots(1, count, squeeze=False)[0], strict=True):
        image = draw_plane(ax, drawn, unit=unit, cmap=cmap, limits=limits)
        colour_bar(figure, ax, image, label or "")
        ax.set_title((title if title and count == 1 else drawn.name) + place(drawn, unit))
    if title and count > 1:
        figure.suptitle(title)
    return figure


def place(drawn: Section, unit: str = "") -> str:
    """Where a section cuts the other axes, to stand behind a title."""
    return "".join(f", {a} = {x:.4g}{' ' + unit if unit else ''}" for a, x in drawn.at)


def colour_bar(figure: Figure, ax: Axes, image: Any, label: str = "") -> None:
    """A bar beside an image as high as that, with points where values lie beyond its ends."""
    low, high = image.get_clim()
    values = image.get_array()
    beyond = (bool((values < low).any()), bool((values > high).any()))
    extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(beyond, "neither")
    bar = figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)), extend=extend)
    bar.outline.set_visible(False)
    bar.set_label(label)


def around_zero(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits as far on both sides of zero, where values lie on both."""
    low, high = limits
    if low < 0 < high and min(-low, high) > 0.1 * max(-low, high):
        return -max(-low, high), max(-low, high)
    return limits


def draw_plane(
    ax: Axes,
    drawn: Section,
    *,
    unit: str = "",
    cmap: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Draw a section of two axes as an image into `ax`; returns what a colour bar needs."""
    finite = drawn.values[np.isfinite(drawn.values)]
    found = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = around_zero(found) if limits is None else limits
    if low == -high:
        cmap = cmap or "RdBu_r"
    across, up = (_edges(line) for line in drawn.coordinates)
    colours: dict[str, Any] = {"cmap": cmap or "viridis", "vmin": low, "vmax": high}
    if _even(across) and _even(up):
        extent = (across[0], across[-1], up[0], up[-1])
        image: Any = ax.imshow(
            drawn.values.T, origin="lower", extent=extent, interpolation="nearest", **colours
        )
    else:
        image = ax.pcolormesh(across, up, drawn.values.T, rasterized=True, **colours)
    xlabel, ylabel = (with_unit(axis, unit) for axis in drawn.axes)
    ax.set(aspect="equal", xlim=drawn.span[0], ylim=drawn.span[1], xlabel=xlabel, ylabel=ylabel)
    ax.spines[:].set_visible(False)
    return image


def _edges(line: Any) -> Any:
    """Where the colours of points along an axis begin and end: halfway between them."""
    if len(line) == 1:
        return np.array([line[0] - 0.5, line[0] + 0.5])
    between = 0.5 * (line[1:] + line[:-1])
    return np.array([2 * line[0] - between[0], *between, 2 * line[-1] - between[-1]])


def span(line: Any) -> tuple[float, float]:
    """Return the places where the cells of the points along an axis begin and end."""
    edges = _edges(line)
    return float(edges[0]), float(edges[-1])


def _even(edges: Any) -> bool:
    """Whether all points are equally far apart."""
    widths = np.diff(edges)
    return bool(np.ptp(widths) <= 1e-6 * widths.max())


def _size(drawn: Section) -> tuple[float, float]:
    """Of a figure whose image has the proportions of the domain, in inches."""
    spans = [float(line[-1] - line[0]) or 1.0 for line in drawn.coordinates]
    ratio = min(4.0, max(0.25, spans[1] / spans[0]))
    width, height = (4.5, 4.5 * ratio) if ratio <= 1 else (4.5 / ratio, 4.5)
    return max(width, 2.6) + 1.6, max(height, 1.6) + 0.8


def _diagram(
    curves: Sequence[Curve], span: tuple[float, float], xlabel: str, ylabel: str, title: str
) -> Figure:
    """Draw curves into one diagram."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    for name, xs, ys, style in curves:
        ax.plot(xs, ys, label=name, **style)
    ax.set(xlabel=xlabel, ylabel=ylabel, xlim=span, title=title)
    gridded(ax)
    if len(curves) > 1:
        ax.legend()
    return figure


def with_unit(name: str, unit: str) -> str:
    """An axis label: the name, and the unit where there is one."""
    return f"{name} [{unit}]" if unit else name
