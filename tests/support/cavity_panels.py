"""Panels of contours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import halocline as hc
from halocline.io.figure import Figure
from halocline.problems.problem import Problem

Array = NDArray[np.float64]
NAMES = ("temperature-contours", "pressure-contours", "streamlines")


def case_of(dim: int) -> str:
    return "cavity" if dim == 3 else "cavity-2d"


class Standing(NamedTuple):
    """Stand-in for a finished run of a cavity."""

    problem: Problem
    simulation: hc.Simulation


def standing(
    shape: tuple[int, ...], fields: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
) -> Standing:
    """Return a stand-in for a run of a cavity that ended with these fields; the other fields are random."""
    ready = Problem(case_of(len(shape)), shape, settings)
    still = {f: 0.0 * f for f in ready.fields}
    sim = hc.Simulation(ready.grid, lambda: still, scheme=hc.Euler(), dt=1.0, threads=1)
    random = np.random.default_rng(1)
    for f in ready.fields:
        values = random.standard_normal(shape)
        sim[f] = values if fields is None or f.name not in fields else fields[f.name]
    return Standing(ready, sim)


def figure_of(done: Standing, name: str) -> Figure:
    """Return a figure of a run."""
    figure = done.problem.known.figures[name](done.simulation)
    assert figure is not None
    return figure
