"""Pictures and films of stored output: slices, lines, time series and spectra."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive.files import atomic_file
from halocline.archive.reader import TIME, ArrayInfo, Store
from halocline.errors import InputError, RunError
from halocline.io.figure import Figure, canvas_of, put_title
from halocline.io.panel import MAP, MAP_ALONE, Panel
from halocline.io.plane import around_zero, colour_bar, draw_plane, place, span, with_unit
from halocline.io.section import Section
from halocline.io.spectra import spectrum
from halocline.io.style import DPI, SUFFIXES, gridded, save, styled
from halocline.lang.grid import AXES, unknown_name_error
from halocline.run.fields.interpolation import nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FILMS = (".gif", ".mp4")
ABREAST = 3  # maximum panels in a row
MOST_PANELS = 12
MOST_CURVES = 8  # maximum curves of points in one diagram; a larger number of points is drawn as an image
FRAMES_A_SECOND = 8
MOST_FRAMES = 500  # maximum frames of a film: about one minute
FILM_DPI = 96
FLATTEST, STEEPEST = 0.12, 1.5  # minimum and maximum ratio of height to width of images.
CURVES = 0.7  # ratio of height to width of panels of curves.
ROUNDED = 10.0  # lower limit of drawn power, relative to the power of rounding errors.
WIDE = 0.3  # images with a smaller ratio have a row of their own


@dataclass(frozen=True)
class Selection:
    """Selection of the content of a picture or film.

    Parameters
    ----------
    names : sequence of str, optional
        Names of arrays; all by default.
    time : float, optional
        Time to draw; the last by default. The picture shows the nearest time of the store. The time may lie
        at most one mean output interval before the first time, or after the last time.
    at : mapping of str to float
        Coordinates of cuts by axis; in three dimensions the middle of z by default.
    spectrum : bool
        True for spectra of fields instead of the fields.
    every : int
        Stride between the stored times that a film shows.
    """

    names: Sequence[str] | None = None
    time: float | None = None
    at: Mapping[str, float] | None = None
    spectrum: bool = False
    every: int = 1


def view(
    store: Store,
    target: Path,
    selection: Selection,
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Draw the content of a store as a picture, or as a film of its times.

    Fields are drawn as planes or lines. Numbers and values at single points are drawn as time series.

    Parameters
    ----------
    store : Store
    target : path
        File. The name of a picture ends in .png, .pdf or .svg. The name of a film ends in .gif or .mp4; .mp4
        requires ffmpeg.
    selection : Selection
    on_progress : callable, optional
        Callback with the number of completed frames of a film.

    Raises
    ------
    InputError
        The store does not contain the selection, or the selection cannot be drawn.
    RunError
        The file cannot be written, or ffmpeg is missing.
    """
    if target.suffix not in (*SUFFIXES, *FILMS):
        known = ", ".join((*SUFFIXES, *FILMS))
        raise InputError(f"cannot draw {target}: expected a name that ends in {known}")
    panels = [_Panel(store, info, selection) for info in _chosen(store, selection)]
    if target.suffix in FILMS:
        panels = [panel for panel in panels if not panel.series]
        if not panels:
            raise InputError(
                f"{store.path} contains no fields, only numbers or single points. Draw them into a picture, "
                f"such as {target.with_suffix('.png')}"
            )
        if selection.time is not None:
            raise InputError(
                f"time {selection.time:g} is requested, but {target.name} is a film of all times. Draw one "
                f"time into a picture, such as {target.with_suffix('.png')}"
            )
        _film(store, panels, target, selection.every, on_progress)
        return
    if selection.every != 1:
        raise InputError(f"every={selection.every} applies only to films, but {target.name} is a picture")
    with styled():
        figure = _figure(store, panels, _number(store, selection.time))
        save(figure, target, dpi=DPI, bbox_inches="tight")


def _chosen(store: Store, selection: Selection) -> list[ArrayInfo]:
    known = store.variables
    for name in selection.names or ():
        if name not in known:
            raise unknown_name_error("array", name, sorted(known))
    infos = [known[name] for name in (selection.names or store.results)]
    if selection.spectrum:
        infos = [info for info in infos if info.space and not info.is_points]
    if not infos:
        raise InputError(f"{store.path} contains nothing to draw")
    for info in infos:
        _check(store, info)
    if len(infos) > MOST_PANELS:
        raise InputError(
            f"{store.path} has {len(infos)} arrays, but a picture has at most {MOST_PANELS}. Select some "
            "(names=, --fields)."
        )
    for axis, coordinate in (selection.at or {}).items():
        if selection.spectrum:
            raise InputError(
                f"a cut at {axis} = {coordinate:g}: a spectrum requires whole fields. Leave the cut or the "
                "spectrum out."
            )
        spaces = {name[0] for info in infos for name in info.space} & {*AXES}
        if axis not in spaces:
            axes = f"; expected some of {', '.join(sorted(spaces))}" if spaces else ", nor any other"
            raise InputError(f"a cut at {axis} = {coordinate:g}: {store.path} has no such axis{axes}")
    return infos


def _check(store: Store, info: ArrayInfo) -> None:
    """Raise InputError if an array of another program cannot be drawn."""
    problem = ""
    if not info.is_real:
        problem = f"it has type {info.dtype}; expected real numbers"
    elif not info.shape:
        problem = "it is a single number; expected an array"
    elif not all(map(info.count, info.space)):
        problem = "it holds no points"
    elif len(info.space) > len(AXES):
        problem = f"it has {len(info.space)} axes in space; expected at most {len(AXES)}"
    if problem:
        raise InputError(
            f"{store.path}: array {info.name!r} cannot be drawn: {problem}; choose others (names=, --fields)"
        )


def _number(store: Store, time: float | None) -> int | None:
    """Return the index of the stored time nearest to `time`; None for a store without times."""
    times = store.times
    if times is None and time is not None:
        raise InputError(
            f"time {time:g} is requested, but {store.path} contains no time series. Omit the time."
        )
    if times is None:
        return None
    if not len(times):
        raise InputError(f"{store.path} contains no output time yet")
    if time is None:
        return len(times) - 1
    first, last = times[0], times[-1]
    reach = (last - first) / max(1, len(times) - 1) or np.inf
    if not first - reach <= time <= last + reach:
        raise InputError(f"time {time:g} is requested, but {store.path} has times from {first:g} to {last:g}")
    return int(np.argmin(np.abs(times - time)))


class _Panel(Panel):
    """Panel of one array, which can be drawn at any time.

    Attributes
    ----------
    n : int, optional
        Index of the stored time to draw.
    ends : (float, float), optional
        Minimum and maximum value to draw.
    show : callable
        ``show(n)`` updates the drawing to the stored time of index `n`.
    """

    def __init__(self, store: Store, info: ArrayInfo, selection: Selection) -> None:
        self.store, self.info, self.selection = store, info, selection
        self.series = not info.space or info.is_points
        self.lines = {d: store.coordinates(d, info) for d in info.space}
        self.n: int | None = None
        self.ends: tuple[float, float] | None = None
        self.show: Callable[[int], None] = lambda _: None
        self.cuts = {} if self.series or selection.spectrum else self._cuts()
        if self.series:
            self.title = with_unit(info.name, info.units)
        elif selection.spectrum:
            walls = [d[0] for d in info.space if not self._periodic(d)]
            self.title = f"spectrum of {info.name}"
            self.title += f", as if periodic along {', '.join(walls)}" if walls else ""
        else:
            self.title = info.name + place(self._places(), self._unit(info.space[0]))

    def _cuts(self) -> dict[str, int]:
        """Return the index of the point at each cut, by dimension."""
        at = self.selection.at or {}
        for d in self.info.space:
            line = self.lines[d]
            reach = (line[-1] - line[0]) / max(1, len(line) - 1) or 0.5
            if d[0] in at and not line[0] - reach <= at[d[0]] <= line[-1] + reach:
                raise InputError(
                    f"a cut at {d[0]} = {at[d[0]]:g}: array {self.info.name!r} of {self.store.path} has "
                    f"points from {line[0]:g} to {line[-1]:g} along {d}"
                )
        cuts = {d: nearest(self.lines[d], at[d[0]], self._period(d)) for d in self.info.space if d[0] in at}
        if len(cuts) == len(self.info.space):
            places = ", ".join(f"{d[0]} = {at[d[0]]:g}" for d in cuts)
            raise InputError(
                f"{self.store.path}: array {self.info.name!r} has no axes other than {', '.join(cuts)}, and "
                f"a cut at {places} leaves no axis to draw. Leave one axis uncut, or choose other arrays "
                "(names=, --fields)."
            )
        if len(self.info.space) - len(cuts) > 2:
            last = next(d for d in reversed(self.info.space) if d not in cuts)
            cuts[last] = (len(self.lines[last]) - 1) // 2
        return cuts

    def section(self, n: int | None) -> Section:
        """Return the plane or line at a time."""
        cuts, space = self.cuts, self.info.space
        lo = [cuts.get(d, 0) for d in space]
        hi = [cuts[d] + 1 if d in cuts else len(self.lines[d]) for d in space]
        values = self.store.read(self.info.name, n, lo, hi)
        dimensions = [d for d in space if d not in cuts]
        values = values.reshape([len(self.lines[d]) for d in dimensions])
        coordinates = tuple(self.lines[d] for d in dimensions)
        spans = tuple(span(line) for line in coordinates)
        return Section(
            self.info.name, values, tuple(d[0] for d in dimensions), coordinates, spans, self._places()
        )

    def _places(self) -> tuple[tuple[str, float], ...]:
        """Return the positions of the cuts; for an array that is a slice, also the position of the slice."""
        places = self.info.attributes
        return (
            *((d[0], float(self.lines[d][number])) for d, number in self.cuts.items()),
            *((a, float(places[a])) for a in AXES if isinstance(places.get(a), (int, float))),
        )

    def size(self, *, alone: bool) -> tuple[float, float]:
        width = MAP_ALONE if alone else MAP
        return width, width * self.proportion

    @property
    def proportion(self) -> float:
        """Ratio of the height to the width of the axes."""
        lines = [line for d, line in self.lines.items() if d not in self.cuts]
        if self.series or self.selection.spectrum or len(lines) != 2:
            return CURVES
        across, up = (high - low for low, high in map(span, lines))
        return min(max(up / across, FLATTEST), STEEPEST)

    def limits(self, frames: Sequence[int]) -> tuple[float, float]:
        """Return the minimum and the maximum of the drawn values at given times."""

        sections = [self.section(n).values for n in frames]
        return float(min(np.nanmin(v) for v in sections)), float(max(np.nanmax(v) for v in sections))

    def draw(self, canvas: Canvas, ax: Axes, size: tuple[float, float], *, bar: bool) -> str:
        if self.series:
            self._draw_series(canvas, ax)
        elif self.selection.spectrum:
            self._draw_spectrum(ax)
        else:
            self._draw_field(canvas, ax)
        return ""

    def _draw_series(self, canvas: Canvas, ax: Axes) -> None:
        values = self.store.read_all(self.info.name)
        times: Any = self.store.times
        axis = self.store.axis or TIME
        if values.ndim == 2 and values.shape[1] > MOST_CURVES and len(times) > 1:
            self._draw_record(canvas, ax, values, times, axis)
            return
        for number, line in enumerate(values.T if values.ndim == 2 else [values]):
            label = None if values.ndim == 1 else self._place(number)
            ax.plot(times, line, label=label)
        ax.set_xlabel(with_unit(axis, self._unit(axis)))
        gridded(ax)
        if values.ndim == 2:
            ax.legend()

    def _draw_record(
        self, canvas: Canvas, ax: Axes, values: NDArray[Any], times: NDArray[np.float64], axis: str
    ) -> None:
        """Draw many points next to each other, with time downwards, like records of seismic receivers."""

        points = np.arange(float(values.shape[1]))
        lines = points, times
        ends = tuple(span(line) for line in lines)
        image = draw_plane(ax, Section(self.info.name, values.T, ("", ""), lines, ends, ()))
        ax.set_aspect("auto")
        ax.invert_yaxis()
        colour_bar(canvas, ax, image, self.info.units and f"[{self.info.units}]")
        xlabel = f"point, 0 at {self._place(0)}, {len(points) - 1} at {self._place(len(points) - 1)}"
        ax.set(xlabel=xlabel, ylabel=with_unit(axis, self._unit(axis)))

    def _place(self, number: int) -> str:
        lines = [self.store.read_all(a) for a in AXES if a in self.store.arrays]
        return "(" + ", ".join(f"{line[number]:.3g}" for line in lines) + ")"

    def _draw_field(self, canvas: Canvas, ax: Axes) -> None:
        drawn, limits = self.section(self.n), self.ends
        unit = self._unit(self.info.space[0])
        if len(drawn.axes) == 2:
            image = draw_plane(ax, drawn, unit=unit, limits=limits)
            put = getattr(image, "set_data", image.set_array)
            self.show = lambda n: put(self.section(n).values.T)
            colour_bar(canvas, ax, image, self.info.units and f"[{self.info.units}]")
        else:
            (curve,) = ax.plot(drawn.coordinates[0], drawn.values)
            self.show = lambda n: curve.set_ydata(self.section(n).values)
            ax.set(xlabel=with_unit(drawn.axes[0], unit), xlim=drawn.span[0])
            if limits is not None and limits[0] < limits[1]:
                ax.set_ylim(*limits)
            gridded(ax)

    def _draw_spectrum(self, ax: Axes) -> None:
        (curve,) = ax.loglog(*self._spectrum(self.n))
        unit = self._unit(self.info.space[0])
        ax.set_xlabel(with_unit("wavenumber |k|", f"rad/{unit}" if unit else ""))
        units = self.info.units
        square = f"{units}²" if units.isalpha() else units and f"({units})²"
        ax.set_ylabel(with_unit("power in shells of |k|", square))
        gridded(ax)

        def show(n: int) -> None:
            curve.set_data(*self._spectrum(n))
            ax.relim()
            ax.autoscale_view()

        self.show = show

    def _spectrum(self, n: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return wavenumbers and power, without values that consist of rounding errors."""

        values = self.store.read(self.info.name, n)
        k, power = spectrum(values, [self.lines[d] for d in self.info.space])
        rounding = np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps
        is_drawn = power > ROUNDED * rounding**2 * max(power.max(initial=0.0), float(np.mean(values)) ** 2)
        return k[is_drawn], power[is_drawn]

    def _periodic(self, dimension: str) -> bool:
        """Return True if the points along an axis cover a whole period, or if the axis is unknown."""
        line, attributes = self.lines[dimension], self._axis_attributes(dimension)
        if "period" in attributes and len(line) > 1:
            spacing = (line[-1] - line[0]) / (len(line) - 1)
            return bool(abs(len(line) * spacing - attributes["period"]) < 0.5 * spacing)
        return "walls" not in attributes

    def _period(self, dimension: str) -> float | None:
        """Return the period of the points along an axis; None without a period."""
        period = self._axis_attributes(dimension).get("period")
        return float(period) if isinstance(period, (int, float)) and self._periodic(dimension) else None

    def _axis_attributes(self, dimension: str) -> Mapping[str, Any]:
        """Return the attributes of an axis; empty for an axis without coordinates."""
        info = self.store.arrays.get(dimension)
        return {} if info is None else info.attributes

    def _unit(self, dimension: str) -> str:
        return str(self._axis_attributes(dimension).get("units", ""))


def _figure(
    store: Store,
    panels: Sequence[_Panel],
    n: int | None,
    limits: Sequence[tuple[float, float] | None] | None = None,
) -> Canvas:
    """Return the drawing of panels at a time, in rows."""
    for panel, ends in zip(panels, limits or [None] * len(panels), strict=True):
        panel.n, panel.ends = n, ends
    columns = 1 if all(panel.proportion < WIDE for panel in panels) else ABREAST
    return canvas_of(Figure(panels, columns), _title(store, None if all(p.series for p in panels) else n))


def _title(store: Store, n: int | None) -> str:
    """Return the title of a store, with the drawn time or step."""
    facts, times = store.facts, store.times
    known = store.attributes.get("title") or (facts.get("case") or {}).get("name") or store.path.name
    if n is not None and times is not None:
        if store.axis != TIME:
            return f"{known}, step {times[n]:,.0f}"
        unit = store.arrays[TIME].units if TIME in store.arrays else ""
        return f"{known}, t = {times[n]:.4g}{' ' + unit if unit else ''}"
    return f"{known}, step {facts['step']:,}" if "step" in facts else str(known)


def _film(
    store: Store,
    panels: Sequence[_Panel],
    target: Path,
    every: int,
    on_progress: Callable[[int], None] | None,
) -> None:
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if every < 1:
        raise InputError(f"every is {every}; expected a whole number from 1")
    count = 1 if store.times is None else len(store.times)
    frames = range(0, count, every)
    if len(frames) < 2:
        drawn = "" if every == 1 else f", and every={every} selects {len(frames)} of them"
        times = "one time" if count == 1 else f"{count} times"
        raise InputError(f"{store.path} has {times}{drawn}. A film needs at least two.")
    if len(frames) > MOST_FRAMES:
        raise InputError(
            f"a film of {len(frames):,} frames; expected at most {MOST_FRAMES}. Draw some of them (every=, "
            f"--every {every * math.ceil(len(frames) / MOST_FRAMES)})."
        )
    if target.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise RunError(f"{target}: ffmpeg is not on PATH. Install it, or use a name that ends in .gif.")
    writer: Any = (FFMpegWriter if target.suffix == ".mp4" else PillowWriter)(fps=FRAMES_A_SECOND)
    target.parent.mkdir(parents=True, exist_ok=True)
    with styled(), atomic_file(target) as making:
        spectra = panels[0].selection.spectrum
        limits = None if spectra else [around_zero(panel.limits(frames)) for panel in panels]
        figure = _figure(store, panels, 0, limits)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # all frames have the layout of the first frame
        try:
            with writer.saving(figure, str(making), FILM_DPI):
                for done, n in enumerate(frames, 1):
                    for panel in panels if n else ():
                        panel.show(n)
                    put_title(figure, _title(store, n))
                    writer.grab_frame()
                    if on_progress is not None:
                        on_progress(done)
        except OSError as error:
            raise RunError(f"{target} cannot be written: {error.strerror or error}") from None
