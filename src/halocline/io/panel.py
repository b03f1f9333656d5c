"""Common interface of all panels of a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from halocline.errors import InputError
from halocline.io.plane import place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from halocline.io.section import Section

MAP, MAP_ALONE = 3.2, 4.4  # longer side of a plane in inches: among other panels, and alone


class Panel(ABC):
    """Panel of a figure."""

    title: str
    projection: ClassVar[str | None] = None  # projection of the axes in matplotlib.
    sides: ClassVar[float] = 1.2  # width in inches next to the axes, for ticks, names and colour bars

    @abstractmethod
    def size(self, *, alone: bool) -> tuple[float, float]:
        """Return width and height of the axes, in inches."""

    @abstractmethod
    def draw(self, canvas: Canvas, ax: Axes, size: tuple[float, float], *, bar: bool) -> str:
        """Draw into axes of a given size, and return a note for the title; `bar` is True for a colour bar."""

    @property
    def place(self) -> str | None:
        """Position of the drawn plane, as text after a title; None without a plane."""
        return None

    @property
    def axis_keys(self) -> tuple[Any, Any]:
        """Keys of the horizontal and the vertical axis: neighbours with equal keys share an axis."""
        return None, None


class PlanePanel(Panel):
    """Panel over a plane, whose values are a section of two axes."""

    section: Section

    @property
    def place(self) -> str | None:
        return place(self.section.at)

    @property
    def axis_keys(self) -> tuple[Any, Any]:
        across, up = zip(self.section.axes, self.section.span, strict=True)
        return across, up

    def size(self, *, alone: bool) -> tuple[float, float]:
        across, up = (high - low for low, high in self.section.span)
        scale = (MAP_ALONE if alone else MAP) / max(across, up)
        return scale * across, scale * up


def check_plane(section: Section, label: str) -> None:
    """Raise InputError if a section does not have two axes."""
    if len(section.axes) != 2:
        raise InputError(f"{label}: expected a section of two axes; this one has {len(section.axes)}")
