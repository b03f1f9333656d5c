"""Numbers from the literature that studies print beside their own."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

POISSON = "UMBC HPCF-2018-10, Table 3.1"
ASTAROTH = "Pekkilä et al. 2022, Section 5"


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


@dataclass(frozen=True)
class Scaling:
    """Strong scaling of Astaroth to 64 V100 of Puhti, four a node (Section 5, Figs. 10 and 11).

    Attributes
    ----------
    n : int
        Cells along each of three axes.
    devices : int
    efficiency : float
        Parallel, over one device.
    of_theory : float
        The time that the closed formula gives, over that measured.
    """

    n: int
    devices: int
    efficiency: float
    of_theory: float


MHD_CASE, MHD_ORDER = "mhd-benchmark", 6
MHD_SCALING = tuple(
    Scaling(n, 64, efficiency, of_theory)
    for n, efficiency, of_theory in ((256, 0.18, 0.50), (512, 0.43, 0.59), (1024, 0.87, 0.87))
)
MHD_NS = 2.2  # a cell and step on one V100
MHD_NODE_NS = 0.53  # on the four V100 of a node
MHD_OVERHEAD = (0.15, 0.20)  # of a step over the longer of computing and exchange
MHD_CORNERS = (0.0003, 0.10)  # what sending corners too adds to it

# the Pencil Code, same terms: on a node of Puhti (two Xeon Gold 6230) over the four V100 of one (Section 6);
# on a node of either cluster (Section 5, Fig. 15a); and as measured by this project, by n of n³ cells
PENCIL_CORES = 40
PENCIL_OVER_NODE = (44, 53)
PENCIL_OVER_NODE_ANY = (18, 53)
PENCIL_ONE_CORE_NS = {64: 1330.0, 128: 1680.0}


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
