"""Figures of fields for notebooks: all ranks call the function, and the first rank returns the figure."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from halocline.errors import InputError
from halocline.io.figure import canvas_of
from halocline.io.picture import figure_of
from halocline.io.plane import around_zero
from halocline.io.section import Section, cut, fields_of, volume
from halocline.io.style import styled
from halocline.lang.axes import AXES
from halocline.lang.grid import checked_choice
from halocline.lang.values import plain
from halocline.run.fields.fields import Fields

RENDERERS = ("auto", "matplotlib", "pyvista")


def plot(
    source: Any,
    expression: Any,
    *,
    title: str | None = None,
    label: str | None = None,
    unit: str = "",
    cmap: str | None = None,
    limits: tuple[float, float] | None = None,
    axis: int | str | None = None,
    at: float | None = None,
    renderer: str = "auto",
) -> Any:
    """Return a figure of a field, which a notebook shows if the call is the last line of a cell.

    A field in one dimension is a line, and in two dimensions a colour map. A field in three dimensions is
    drawn on three planes through the middle: by pyvista in space if pyvista is installed, otherwise by
    matplotlib next to each other. With `axis` or `at`, it is one colour map of the selected plane.

    All ranks call this function. Large fields are thinned before ranks send them to the first rank.

    Parameters
    ----------
    source : Simulation, LinearProblem or Solution
    expression : Field, Vector, str or expression
        See `picture`.
    title, label, unit, cmap, limits, axis, at : optional
        See `picture`.
    renderer : {"auto", "matplotlib", "pyvista"}
        Library that draws. pyvista draws one value per point of a 3D grid, without `axis` and `at`.

    Returns
    -------
    matplotlib.figure.Figure, pyvista.Plotter or None
        Figure on the first rank; None on all other ranks.

    Raises
    ------
    InputError
        The field, the plane or the renderer is unknown, or the renderer cannot draw this field.

    Examples
    --------
    >>> hc.plot(sim, T, label="temperature [K]")  # doctest: +SKIP
    """
    fields = fields_of(source)
    parts = fields.components(expression)
    axis, at, limits = plain(axis), plain(at), plain(limits)
    is_plane, ndim = axis is not None or at is not None, fields.grid.ndim
    if is_plane and ndim != 3:
        raise InputError(f"axis= and at= select a plane of a 3D grid, but this grid is {ndim}D")
    can_be_scene = ndim == 3 and not is_plane and parts is None
    if _uses_pyvista(fields, renderer, can_be_scene):
        whole = volume(fields, expression)
        with fields.domain.comm.agreement("draw a figure"):
            if whole is None:
                return None
            from halocline.io.scene import scene_of

            return scene_of(whole, title, label, unit, cmap, limits or _common_limits([whole]))
    cuts: list[Any] = [{"z" if axis is None else axis: at} if is_plane else None]
    if ndim == 3 and not is_plane:
        cuts = [{name: None} for name in AXES]
    values = (expression,) if parts is None else parts
    rows = [[cut(fields, value, place) for place in cuts] for value in values]
    with fields.domain.comm.agreement("draw a figure"):
        if rows[0][0] is None:
            return None
        sections = [section for row in rows for section in row if section is not None]
        if len(cuts) > 1 and limits is None and parts is None:
            limits = _common_limits(sections)
        columns = len(cuts) if len(cuts) > 1 else None
        with styled():
            return canvas_of(*figure_of(sections, title, label, unit, cmap, limits, columns))


def _uses_pyvista(fields: Fields, renderer: str, can_be_scene: bool) -> bool:
    """Return True if pyvista draws; equal on all ranks."""
    checked_choice("renderer", renderer, RENDERERS)
    if renderer == "pyvista" and not can_be_scene:
        raise InputError(
            "renderer 'pyvista' draws one value per point of a 3D grid, without axis= and at=. Use "
            "renderer='matplotlib', or an expression such as hc.sqrt(hc.dot(w, w))."
        )
    if renderer == "matplotlib" or not can_be_scene:
        return False
    comm = fields.domain.comm
    reason = comm.bcast(_why_no_pyvista() if comm.rank == 0 else "")
    if renderer == "pyvista" and reason:
        raise InputError(
            f"renderer 'pyvista' needs the package pyvista, {reason}. Use renderer='matplotlib', or install "
            "pyvista with `pip install pyvista`."
        )
    return not reason


def _why_no_pyvista() -> str:
    """Return the reason why pyvista cannot draw, or "" if it can."""
    if find_spec("pyvista") is None:
        return "which is not installed"
    try:
        import_module("pyvista")
    except ImportError as error:  # VTK needs libraries of the system
        return f"which cannot be imported: {error}"
    return ""


def _common_limits(sections: Sequence[Section]) -> tuple[float, float] | None:
    """Return the ends of one colour map for all sections; None without finite values."""
    values = np.concatenate([section.values.ravel() for section in sections])
    finite = values[np.isfinite(values)]
    return around_zero((float(finite.min()), float(finite.max()))) if finite.size else None
