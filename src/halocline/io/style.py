"""Style of figures: sizes and colours of pictures and of the plots of studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.files import as_path
from halocline.errors import InputError
from halocline.run.host.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")  # suffixes of pictures
DPI = 160  # resolution of pictures of fields
INK = "#1c2b33"
MUTED = "#5f717c"
FAINT = "#d7dfe4"
# Colours distinguishable without colour vision (Okabe and Ito 2008), with strong contrast between neighbours.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b7780")
CLOSE = 30.0  # if the ratio of the ends of a logarithmic axis is smaller than this, its marks are denser
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.color": INK,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 9.0,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.0,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",  # text remains text: it is searchable and has the font of the page.
    "svg.hashsalt": "halocline",  # the same figure gives the same file
}


@contextmanager
def styled() -> Iterator[None]:
    """Apply this style inside a with block."""
    import matplotlib
    from cycler import cycler

    settings: Any = {**SETTINGS, "axes.prop_cycle": cycler(color=COLOURS)}
    with matplotlib.rc_context(settings):
        yield


def save(figure: Figure, path: Path, **options: Any) -> None:
    """Write a figure in the format that the suffix of the file name selects, and create missing folders.

    Matplotlib's `savefig` receives `options`.

    Raises
    ------
    InputError
        The folder cannot be created.
    RunError
        The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix.removeprefix("."), **options)
    write_file(path, buffer.getvalue())


def picture_file(path: str | Path) -> Path:
    """Return the path of a picture; raise InputError for a suffix that is not in `SUFFIXES`."""
    target = as_path(path, "path")
    if target.suffix not in SUFFIXES:
        raise InputError(f"picture {str(path)!r}: expected a name that ends in {', '.join(SUFFIXES)}")
    return target


def gridded(ax: Axes) -> None:
    """Draw faint grid lines behind the data."""
    ax.grid(True, which="major")
    ax.set_axisbelow(True)


def doubling(ax: Axes, ticks: Sequence[int]) -> None:
    """Set a logarithmic x axis of base 2 with exactly these ticks."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(ticks), [f"{tick}" for tick in ticks])
    ax.minorticks_off()
    gridded(ax)


def logarithmic(ax: Axes, text: Callable[[float], str]) -> None:
    """Set a logarithmic y axis after all lines are drawn, with marks at 1, 2, 5, 10 ... or denser.

    `text` returns the text of a mark.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    marks = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high / low < CLOSE else (1.0, 2.0, 5.0)
    ax.yaxis.set_major_locator(LogLocator(subs=marks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: text(value))
