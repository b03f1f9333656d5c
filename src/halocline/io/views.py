"""Pictures and films of output: slices, lines, time series and spectra, drawn out of a store."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.files import whole
from halocline.archive.reader import ArrayInfo, Store
from halocline.errors import InputError, RunError
from halocline.io.picture import DPI, SUFFIXES, around_zero, colour_bar, draw_plane, place, with_unit
from halocline.io.section import Section
from halocline.io.spectra import spectrum
from halocline.io.style import gridded, save, styled
from halocline.lang.grid import AXES, unknown

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

FILMS = (".gif", ".mp4")
ABREAST = 3  # panels beside each other
MOST_PANELS = 12
FRAMES_A_SECOND = 8
FILM_DPI = 96
PANEL = 4.2, 3.5  # inches


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn.

    Parameters
    ----------
    names : sequence of str, optional
        Of arrays; all by default.
    time : float, optional
        The nearest one counts; the last by default.
    at : mapping of str to float
        Where axes are cut; in three dimensions z in the middle by default.
    spectrum : bool
        Spectra of fields instead of the fields.
    """

    names: Sequence[str] | None = None
    time: float | None = None
    at: Mapping[str, float] | None = None
    spectrum: bool = False


def view(
    store: Store,
    target: Path,
    wanted: Wanted,
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Draw what a store holds into a picture, or a film of all of its times.

    Fields are drawn as planes or lines, numbers and single points as time series.

    Parameters
    ----------
    store : Store
    target : path
        Ends in .png, .pdf or .svg; or for a film in .gif, or .mp4 where ffmpeg is found.
    wanted : Wanted
    on_progress : callable, optional
        Called with the frames of a film that are done.

    Raises
    ------
    InputError
        Something that the store does not hold, or that cannot be drawn.
    RunError
        The file cannot be written, or there is no ffmpeg.
    """
    if target.suffix not in (*SUFFIXES, *FILMS):
        known = ", ".join((*SUFFIXES, *FILMS))
        raise InputError(f"cannot draw {target}: expected a name that ends in {known}")
    panels = [_Panel(store, info, wanted) for info in _chosen(store, wanted)]
    if target.suffix in FILMS:
        panels = [panel for panel in panels if not panel.series]
        if not panels:
            raise InputError(
                f"{store.path} holds no fields, only numbers or single points: draw them into a picture, "
                f"such as {target.with_suffix('.png')}"
            )
        if wanted.time is not None:
            raise InputError(
                f"time {wanted.time:g} is asked for, but {target.name} is a film of all times: draw that one "
                f"into a picture, such as {target.with_suffix('.png')}"
            )
        _film(store, panels, target, on_progress)
        return
    with styled():
        figure = _figure(store, panels, _number(store, wanted.time))
        save(figure, target, dpi=DPI)


def _chosen(store: Store, wanted: Wanted) -> list[ArrayInfo]:
    known = store.variables
    for name in wanted.names or ():
        if name not in known:
            raise unknown("array", name, sorted(known))
    found = [known[name] for name in (wanted.names or known)]
    if wanted.spectrum:
        found = [info for info in found if info.space and not info.is_points]
    if not found:
        raise InputError(f"{store.path} holds nothing that could be drawn")
    if len(found) > MOST_PANELS:
        raise InputError(
            f"{store.path} has {len(found)} arrays, and {MOST_PANELS} at most are drawn at a time: name some "
            "(names=, --fields)"
        )
    for axis, where in (wanted.at or {}).items():
        spaces = {name[0] for info in found for name in info.space} & {*AXES}
        if axis not in spaces:
            axes = f"; expected some of {', '.join(sorted(spaces))}" if spaces else ", nor any other"
            raise InputError(f"a cut at {axis} = {where:g}: {store.path} has no such axis{axes}")
    return found


def _number(store: Store, time: float | None) -> int | None:
    """Which time is the nearest; None for a store without times."""
    import numpy as np

    times = store.times
    if times is None:
        return None
    if not len(times):
        raise InputError(f"{store.path} holds no time yet")
    return len(times) - 1 if time is None else int(np.argmin(np.abs(times - time)))


class _Panel:
    """One array, ready to be drawn at any time."""

    def __init__(self, store: Store, info: ArrayInfo, wanted: Wanted) -> None:
        self.store, self.info, self.wanted = store, info, wanted
        self.series = not info.space or info.is_points
        self.lines = {d: store.coordinates(d, info) for d in info.space}
        self.label = with_unit(info.name, info.units)
        self.cuts = {} if self.series or wanted.spectrum else self._cuts()

    def _cuts(self) -> dict[str, int]:
        """Where axes are cut: the number of the point along each dimension."""
        import numpy as np

        at = self.wanted.at or {}
        found = {d: int(np.argmin(np.abs(self.lines[d] - at[d[0]]))) for d in self.info.space if d[0] in at}
        if len(found) == len(self.info.space):
            asked = ", ".join(f"{d[0]} = {at[d[0]]:g}" for d in found)
            raise InputError(
                f"{self.store.path}: array {self.info.name!r} has no axis but {', '.join(found)}, and a cut "
                f"at {asked} leaves none to draw: leave one uncut, or choose other arrays (names=, --fields)"
            )
        if len(self.info.space) - len(found) > 2:
            last = next(d for d in reversed(self.info.space) if d not in found)
            found[last] = (len(self.lines[last]) - 1) // 2
        return found

    def section(self, n: int | None) -> Section:
        """The plane or line that is drawn."""
        cuts, space = self.cuts, self.info.space
        lo = [cuts.get(d, 0) for d in space]
        hi = [cuts[d] + 1 if d in cuts else len(self.lines[d]) for d in space]
        values = self.store.read(self.info.name, n, lo, hi)
        kept = [d for d in space if d not in cuts]
        values = values.reshape([len(self.lines[d]) for d in kept])
        coordinates = tuple(self.lines[d] for d in kept)
        return Section(
            self.info.name, values, tuple(d[0] for d in kept), coordinates,
            tuple(_span(line) for line in coordinates),
            tuple((d[0], float(self.lines[d][number])) for d, number in cuts.items()),
        )  # fmt: skip

    def limits(self) -> tuple[float, float]:
        """The least and greatest value at all times, of what is drawn."""
        import numpy as np

        times = self.store.times
        found = [self.section(n).values for n in range(1 if times is None else len(times))]
        return float(min(np.nanmin(v) for v in found)), float(max(np.nanmax(v) for v in found))

    def draw(self, figure: Figure, ax: Axes, n: int | None, limits: tuple[float, float] | None) -> None:
        """Draw it at a time."""
        if self.series:
            self._draw_series(ax)
        elif self.wanted.spectrum:
            self._draw_spectrum(ax, n)
        else:
            self._draw_field(figure, ax, n, limits)

    def _draw_series(self, ax: Axes) -> None:
        values = self.store.whole(self.info.name)
        times: Any = self.store.times
        for number, line in enumerate(values.T if values.ndim == 2 else [values]):
            label = None if values.ndim == 1 else self._place(number)
            ax.plot(times, line, label=label)
        time = self.store.arrays.get("time")
        ax.set_xlabel(with_unit("time", "" if time is None else time.units))
        ax.set_title(self.label)
        gridded(ax)
        if values.ndim == 2:
            ax.legend()

    def _place(self, number: int) -> str:
        lines = [self.store.whole(a) for a in AXES if a in self.store.arrays]
        return "(" + ", ".join(f"{line[number]:.3g}" for line in lines) + ")"

    def _draw_field(
        self, figure: Figure, ax: Axes, n: int | None, limits: tuple[float, float] | None
    ) -> None:
        drawn = self.section(n)
        unit = self._unit(self.info.space[0])
        if len(drawn.axes) == 2:
            image = draw_plane(ax, drawn, unit=unit, limits=limits)
            colour_bar(figure, ax, image, self.info.units and f"[{self.info.units}]")
        else:
            ax.plot(drawn.coordinates[0], drawn.values)
            ax.set_xlabel(with_unit(drawn.axes[0], unit))
            ax.set_xlim(*drawn.span[0])
            if limits is not None and limits[0] < limits[1]:
                ax.set_ylim(*limits)
            gridded(ax)
        ax.set_title(self.info.name + place(drawn, unit))

    def _draw_spectrum(self, ax: Axes, n: int | None) -> None:
        whole = self.store.read(self.info.name, n)
        k, power = spectrum(whole, [self.lines[d] for d in self.info.space])
        shown = power > 0
        ax.loglog(k[shown], power[shown])
        ax.set_xlabel("wavenumber |k|")
        ax.set_title(f"spectrum of {self.info.name}")
        gridded(ax)

    def _unit(self, dimension: str) -> str:
        info = self.store.arrays.get(dimension)
        return "" if info is None else info.units


def _span(line: NDArray[np.float64]) -> tuple[float, float]:
    """Where the cells of a line begin and end."""
    if len(line) == 1:
        return float(line[0]) - 0.5, float(line[0]) + 0.5
    return float(1.5 * line[0] - 0.5 * line[1]), float(1.5 * line[-1] - 0.5 * line[-2])


def _figure(
    store: Store,
    panels: Sequence[_Panel],
    n: int | None,
    limits: Sequence[tuple[float, float] | None] | None = None,
) -> Figure:
    from matplotlib.figure import Figure

    across = min(ABREAST, len(panels))
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(PANEL[0] * across + 0.4, PANEL[1] * down + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for panel, ax, own in zip(panels, axes, limits or [None] * len(panels), strict=False):
        panel.draw(figure, ax, n, own)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    times = store.times
    title = str(store.attributes.get("title", store.path.name))
    if n is not None and times is not None and any(not panel.series for panel in panels):
        unit = store.arrays["time"].units if "time" in store.arrays else ""
        title += f", t = {times[n]:.4g}{' ' + unit if unit else ''}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _film(
    store: Store, panels: Sequence[_Panel], target: Path, on_progress: Callable[[int], None] | None
) -> None:
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    times = store.times
    if times is None or len(times) < 2:
        raise InputError(f"{store.path} has one time: a film needs more")
    if target.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise RunError(f"{target}: there is no ffmpeg on PATH; install it, or name a film that ends in .gif")
    writer: Any = (FFMpegWriter if target.suffix == ".mp4" else PillowWriter)(fps=FRAMES_A_SECOND)
    target.parent.mkdir(parents=True, exist_ok=True)
    with styled(), whole(target) as making:
        spectra = panels[0].wanted.spectrum
        limits = None if spectra else [around_zero(panel.limits()) for panel in panels]
        first = _figure(store, panels, 0, limits)
        FigureCanvasAgg(first)
        try:
            with writer.saving(first, str(making), FILM_DPI):
                for n in range(len(times)):
                    figure = first if n == 0 else _figure(store, panels, n, limits)
                    FigureCanvasAgg(figure)
                    writer.fig = figure
                    writer.grab_frame()
                    if on_progress is not None:
                        on_progress(n + 1)
        except OSError as error:
            raise RunError(f"{target} cannot be written: {error.strerror or error}") from None
