"""Circularly polarised Alfvén wave after five periods (Mendygral et al. 2017, Fig. 23, right)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.papers.paper import Paper
from halocline.problems.problem import Problem
from halocline.study.reporting.report import Report

if TYPE_CHECKING:
    from halocline.io.figure import Curve

SIDES = (16, 32, 64)  # zones along the shorter side
PERIODS = 5
LIMITERS = {"central": "central (default)", "sweby": "sweby (paper)"}
Waves = Mapping[str, list["Curve"]]  # curves of each limiter: one for each grid, then the exact solution


def after_five_periods(paper: Paper) -> Report:
    """Return the report of Fig. 23, right, for both limiters."""
    import numpy as np

    waves = {limiter: _curves(paper.problem, limiter) for limiter in LIMITERS}
    rows = []
    for limiter, (*grids, exact) in waves.items():
        for n, curve in zip(SIDES, grids, strict=True):
            error = np.abs(curve.y - np.interp(curve.x, exact.x, exact.y)).mean()
            amplitude = np.abs(exact.y).max()
            maximum = f"{np.abs(curve.y).max() / amplitude:.3f}"
            rows.append((LIMITERS[limiter], f"{2 * n} x {n}", maximum, f"{error / amplitude:.3f}"))
    heads = ("limiter", "zones", "maximum |B₂| /\namplitude", "mean error /\namplitude")
    note = "The paper does not state the grids of this panel, so the grids are those of the left panel."
    table = Table(f"B₂ after {PERIODS} periods", heads, tuple(rows), left=2, note=note)
    return Report([table], [], lambda: {f"{paper.name}.png": _figure(waves)})


def _curves(problem: str, limiter: str) -> list[Curve]:
    """Return the curves of B₂ along the wave: one for each grid, and one for the exact solution."""
    curves = []
    for n in SIDES:
        result = Problem(problem, (2 * n, n), {"limiting": limiter}, dim=2).run(until=float(PERIODS))
        ((panel,),) = (figure.panels for figure in result.figures().values() if figure is not None)
        computed, exact = panel.curves
        curves.append(computed)
    return [*curves, exact]


def _figure(waves: Waves) -> Any:
    from halocline.io.figure import Curve, Figure, Lines, canvas_of
    from halocline.io.style import COLOURS

    panels = []
    for limiter, (*grids, exact) in waves.items():
        styles: list[dict[str, Any]] = [
            {"marker": ".", "linestyle": "", "markersize": 2.5, "color": colour} for colour in COLOURS
        ]
        curves = [
            Curve(curve.x, curve.y, f"N = {n}", style=style)
            for n, curve, style in zip(SIDES, grids, styles, strict=False)
        ]
        limits = float(exact.x[0]), float(exact.x[-1])
        panels.append(
            Lines([*curves, exact], f"$B_2$, limiter {LIMITERS[limiter]}", "$x_1$, along the wave", limits)
        )
    return canvas_of(Figure(panels, columns=2), f"cp-alfven in 2D, 2N x N zones, t = {PERIODS}")
