"""Figures that notebooks show."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from halocline.io.style import DPI, styled

SCREEN = 96  # pixels per inch of a figure on a page


class InlineFigure(Figure):
    """Figure of matplotlib that a notebook shows as a picture, also without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        buffer = BytesIO()
        with styled():
            self.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight")
        data = buffer.getvalue()
        pixels = int.from_bytes(data[16:20], "big")  # width in the header of a PNG file
        return data, {"width": round(pixels * SCREEN / DPI)}
