"""Pictures of fields: all ranks call the function, and the first rank draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halocline.deprecation import accept_earlier_argument
from halocline.errors import InputError
from halocline.io.figure import Curve, Figure, Lines, Map, draw
from halocline.io.plane import place, with_unit
from halocline.io.section import Section, cut, fields_of
from halocline.io.style import INK, picture_file
from halocline.lang.grid import component_names
from halocline.lang.values import plain


@accept_earlier_argument("what", "expression")
def picture(
    source: Any,
    expression: Any,
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
    """Draw a field to a file: a colour map in two and three dimensions, a line in one dimension.

    All ranks call this function; the first rank writes the file. Large fields are thinned before ranks send
    them to the first rank.

    Parameters
    ----------
    source : Simulation, LinearProblem or Solution
    expression : Field, Vector, str or expression
        Field, its name, or an expression such as ``u - exact`` or ``hc.sqrt(u**2 + v**2)``. The components of
        a vector are drawn next to each other; in one dimension, they are lines of one diagram. The length of
        a vector is ``hc.sqrt(hc.dot(w, w))``.
    path : str or Path
        Name that ends in .png, .pdf or .svg. Missing folders are created.
    title : str, optional
        Title; by default the name of the field.
    label : str, optional
        Label of the colour bar, with the unit of the values: "temperature [K]".
    unit : str
        Unit of the coordinates, such as "m".
    cmap : str, optional
        Colour map of matplotlib. By default, it is a sequential colour map for values of one sign, else a
        diverging colour map around zero.
    limits : (float, float), optional
        Values at both ends of the colour map.
    axis : int or {"x", "y", "z"}, optional
        In three dimensions: axis normal to the drawn plane, z by default.
    at : float, optional
        Coordinate of the plane on that axis, the middle by default.

    Raises
    ------
    InputError

    Examples
    --------
    >>> hc.picture(sim, T, "temperature.png", label="temperature [K]", unit="m")  # doctest: +SKIP
    """
    target, fields = picture_file(path), fields_of(source)
    parts = fields.components(expression)
    axis, at = plain(axis), plain(at)
    cuts = None if axis is None and at is None else {"z" if axis is None else axis: at}
    if cuts is not None and fields.grid.ndim != 3:
        raise InputError(f"axis= and at= select a plane of a 3D grid, but this grid is {fields.grid.ndim}D")
    sections = [cut(fields, part, cuts) for part in ((expression,) if parts is None else parts)]
    with fields.domain.comm.agreement(f"draw {target}"):
        gathered = [section for section in sections if section is not None]
        if gathered:
            figure, heading = figure_of(gathered, title, label, unit, cmap, plain(limits))
            draw(figure, target, title=heading)


def plot_lines(
    source: Any,
    lines: Mapping[str, Any] | Sequence[Any],
    path: str | Path,
    *,
    title: str | None = None,
    label: str = "",
    unit: str = "",
) -> None:
    """Draw fields of a grid of one axis as lines in one diagram; all ranks call this function.

    Parameters
    ----------
    source : Simulation, LinearProblem or Solution
    lines : mapping of label to field, vector, name, expression or array; or a sequence of fields
        Lines of the diagram. A vector has one line per component. An array has one value per point of the
        grid, for instance an exact solution.
    path : str or Path
        Name that ends in .png, .pdf or .svg.
    title : str, optional
    label : str
        Label of the vertical axis.
    unit : str
        Unit of the coordinate.

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
    labelled = lines if isinstance(lines, Mapping) else {getattr(w, "name", "") or str(w): w for w in lines}
    named: dict[str, Any] = {}
    for name, line in labelled.items():
        parts = fields.components(line)
        if parts is None:
            named[name] = line
        else:
            named |= zip(component_names(name, len(parts)), parts, strict=True)
    if not named:
        raise InputError("plot_lines: nothing to draw")
    arrays = {n: w for n, w in named.items() if hasattr(w, "shape")}
    for name, array in arrays.items():
        if tuple(array.shape) != fields.grid.shape:
            raise InputError(
                f"line {name!r} has shape {tuple(array.shape)}, but the grid has shape {fields.grid.shape}"
            )
    sections = {n: cut(fields, w) for n, w in named.items() if n not in arrays}
    with fields.domain.comm.agreement(f"draw {target}"):
        if fields.domain.comm.rank == 0:
            grid = fields.grid
            (points,) = grid.positions()
            curves = []
            for name in named:
                computed = sections.get(name)
                if computed is None:
                    dashed = {"linestyle": "--", "linewidth": 1.2, "color": INK, "zorder": 3}
                    curves.append(Curve(points, arrays[name], name, style=dashed))
                else:
                    x, y = computed.coordinates[0], computed.values
                    marked = {"marker": "." if len(y) <= 256 else "", "markersize": 3.5}
                    curves.append(Curve(x, y, name, style=marked))
            span = grid.origin[0], grid.origin[0] + grid.extent[0]
            panel = Lines(curves, title or "", with_unit("x", unit), span, ylabel=label)
            draw(Figure([panel], columns=1), target)


def figure_of(
    sections: Sequence[Section],
    title: str | None = None,
    label: str | None = None,
    unit: str = "",
    cmap: str | None = None,
    limits: tuple[float, float] | None = None,
    columns: int | None = None,
) -> tuple[Figure, str]:
    """Return the figure of sections, next to each other or as lines of one diagram, and its title.

    The options are those of `picture`. `columns` is the number of maps in a row; by default, all maps are in
    one row.
    """
    first, count = sections[0], len(sections)
    names = ", ".join(section.name for section in sections)
    if len(first.axes) == 1:
        curves = [
            Curve(section.coordinates[0], section.values, section.name, style={"linestyle": "-"})
            for section in sections
        ]
        heading, xlabel = (title or names) + place(first.at, unit), with_unit(first.axes[0], unit)
        return Figure([Lines(curves, heading, xlabel, first.span[0], ylabel=label or names)], 1), ""
    maps = [
        Map(section, title if title and count == 1 else section.name, limits, label or "", unit, cmap)
        for section in sections
    ]
    return Figure(maps, columns=columns or count), title if title and count > 1 else ""
