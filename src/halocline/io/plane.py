"""Colour maps of planes, with their colour bars and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halocline.io.section import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def place(at: Sequence[tuple[str, float]], unit: str = "") -> str:
    """Return the positions at which a section cuts the other axes, as text after a title."""
    return "".join(f", {a} = {x:.4g}{' ' + unit if unit else ''}" for a, x in at)


def colour_bar(figure: Figure, ax: Axes, image: Any, label: str = "") -> None:
    """Draw a colour bar next to an image, with arrow ends for values outside its limits."""
    low, high = image.get_clim()
    values = image.get_array()
    beyond = (bool((values < low).any()), bool((values > high).any()))
    extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(beyond, "neither")
    bar = figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)), extend=extend)
    bar.outline.set_visible(False)
    bar.set_label(label)


def around_zero(limits: tuple[float, float]) -> tuple[float, float]:
    """Return limits symmetric around zero if neither sign is negligible, else the given limits."""
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
    """Draw a section of two axes as an image, and return the image for a colour bar."""
    finite = drawn.values[np.isfinite(drawn.values)]
    ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = around_zero(ends) if limits is None else limits
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
    """Return the cell edges along an axis: halfway between the points."""
    if len(line) == 1:
        return np.array([line[0] - 0.5, line[0] + 0.5])
    between = 0.5 * (line[1:] + line[:-1])
    return np.array([2 * line[0] - between[0], *between, 2 * line[-1] - between[-1]])


def span(line: Any) -> tuple[float, float]:
    """Return the lower end of the first cell and the upper end of the last cell along an axis."""
    edges = _edges(line)
    return float(edges[0]), float(edges[-1])


def _even(edges: Any) -> bool:
    """Return True if all cells have the same width."""
    widths = np.diff(edges)
    return bool(np.ptp(widths) <= 1e-6 * widths.max())


def with_unit(name: str, unit: str) -> str:
    """Return the label of an axis: its name, and the unit if there is one."""
    return f"{name} [{unit}]" if unit else name
