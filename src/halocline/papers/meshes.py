"""Solution and error of the Poisson problem as mesh plots (UMBC HPCF-2018-10, Fig. 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.papers.paper import Paper
from halocline.problems.problem import Problem
from halocline.study.reporting.report import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BOUNDARY_VALUE = 0.0  # value of the solution on the boundary


def solution_and_error(paper: Paper) -> Report:
    """Return the report of Fig. 3.1: u_h and u - u_h on the published mesh, including the boundary points."""
    import numpy as np

    (n,) = paper.data.values("n")
    result = Problem(paper.problem, (n, n), dict(paper.options)).run()
    assert result.simulation is not None
    pictures = result.pictures()
    coordinates = np.linspace(0.0, 1.0, n + 2)
    solution = np.pad(result.simulation.gather(pictures["solution"]), 1, constant_values=BOUNDARY_VALUE)
    error = np.pad(-result.simulation.gather(pictures["error"]), 1)
    h_square = coordinates[1] ** 2
    return Report(
        [paper.published_table([{"n": n, "error_max": float(f"{abs(error).max():.3g}")}])],
        [
            _maximum_text("u_h", solution, coordinates),
            _maximum_text("|u - u_h|", abs(error), coordinates),
            f"h² = {h_square:.2e}; the maximum error divided by h² is {abs(error).max() / h_square:.2f}.",
        ],
        lambda: {f"{paper.name}.png": _figure(coordinates, solution, error)},
    )


def _maximum_text(name: str, values: NDArray[np.float64], coordinates: NDArray[np.float64]) -> str:
    """Return a sentence on the maximum of a field and its position."""
    import numpy as np

    indices = np.unravel_index(np.argmax(values), values.shape)
    position = ", ".join(f"{coordinates[index]:g}" for index in indices)
    return f"max {name} = {values[indices]:.4g} at ({position})."


def _figure(
    coordinates: NDArray[np.float64], solution: NDArray[np.float64], error: NDArray[np.float64]
) -> Any:
    from halocline.io.figure import Figure, canvas_of
    from halocline.io.surface import Mesh

    names = "$x_1$", "$x_2$"
    panels = [
        Mesh(coordinates, coordinates, solution, "(a) numerical solution $u_h$", names),
        Mesh(coordinates, coordinates, error, "(b) error $u - u_h$", names),
    ]
    count = len(coordinates)
    return canvas_of(Figure(panels, columns=2), f"{count} x {count} points, including the boundary")
