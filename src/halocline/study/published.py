"""Numbers from the literature that studies print beside their own."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

POISSON = "UMBC HPCF-2018-10, Table 3.1"


@dataclass(frozen=True)
class Published:
    """One row of Table 3.1 of UMBC HPCF-2018-10: unpreconditioned CG on N x N points, to 1e-6.

    Attributes
    ----------
    n, iterations, cores : int
    error_max : float
    ratio : float or None
        Of the error on the mesh half as fine to this one.
    seconds : float
    memory_observed : float or None
        In GB of 1024³ bytes; None where the table has "< 1".
    """

    n: int
    iterations: int
    cores: int
    error_max: float
    ratio: float | None
    seconds: float
    memory_observed: float | None


@cache
def poisson_convergence() -> dict[int, Published]:
    """The published convergence study, by N."""
    text = files("halocline.study").joinpath("poisson_convergence.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        int(row["n"]): Published(
            n=int(row["n"]),
            iterations=int(row["iterations"]),
            cores=int(row["cores"]),
            error_max=float(row["error_max"]),
            ratio=_number(row["ratio"]),
            seconds=float(row["seconds"]),
            memory_observed=_number(row["memory_observed_gb"]),
        )
        for row in rows
    }


def _number(text: str) -> float | None:
    return float(text) if text else None
