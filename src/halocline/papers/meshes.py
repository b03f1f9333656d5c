"""Solution and error of the Poisson problem as mesh plots (UMBC HPCF-2018-10, Fig. 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.papers.paper import Paper
from halocline.problems.problem import Problem
from halocline.study.reporting.report import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WALL = 0.0  # value of the solution on the boundary


def solution_and_error(paper: Paper) -> Report:
    """Return the report of Fig. 3.1: u_h and u - u_h on the published mesh, with boundary points."""
    import numpy as np

    (n,) = paper.data.values("n")
    result = Problem(paper.problem, (n, n), dict(paper.options)).run()
    assert result.simulation is not None
    pictures = result.pictures()
    line = np.linspace(0.0, 1.0, n + 2)
    solution = np.pad(result.simulation.gather(pictures["solution"]), 1, constant_values=WALL)
    error = np.pad(-result.simulation.gather(pictures["error"]), 1)
    return Report(
        [paper.published_table([{"n": n, "error_max": float(f"{abs(error).max():.3g}")}])],
        [
            _greatest("u_h", solution, line),
            _greatest("|u - u_h|", abs(error), line),
            f"h² = {line[1] ** 2:.2e}; the maximum error over h² is {abs(error).max() / line[1] ** 2:.2f}.",
        ],
        lambda: {f"{paper.name}.png": _figure(line, solution, error)},
    )


def _greatest(name: str, values: NDArray[np.float64], line: NDArray[np.float64]) -> str:
    """Return a sentence on the maximum and its position."""
    import numpy as np

    place = np.unravel_index(np.argmax(values), values.shape)
    at = ", ".join(f"{line[index]:g}" for index in place)
    return f"max {name} = {values[place]:.4g} at ({at})."


def _figure(line: NDArray[np.float64], solution: NDArray[np.float64], error: NDArray[np.float64]) -> Any:
    from halocline.io.figure import Figure, canvas_of
    from halocline.io.surface import Mesh

    names = "$x_1$", "$x_2$"
    panels = [
        Mesh(line, line, solution, "(a) numerical solution $u_h$", names),
        Mesh(line, line, error, "(b) error $u - u_h$", names),
    ]
    return canvas_of(Figure(panels, columns=2), f"{len(line)} x {len(line)} points, boundary included")
