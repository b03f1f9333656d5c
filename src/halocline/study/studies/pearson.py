"""Node-aware exchange on Summit (Pearson et al. 2020, Section IV, Figs. 11 to 13)."""

from __future__ import annotations

from typing import Any

from halocline.study.papers import Paper, Row
from halocline.words import duration

METHODS = {
    "staged": "mpi",
    "+colo": "colocated,mpi",
    "+peer": "peer,colocated,mpi",
    "+self": "self,peer,colocated,mpi",
}
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
WEAK, STRONG = 750, 1363  # cells along an axis for a device, and in all on one node


def _exchange(row: Row) -> Any:
    """Four fields of single precision with halos of three layers, and nothing computed."""
    from halocline.lang.grid import Grid
    from halocline.timing.exchange import exchange_schedule

    n = row["n"] if row["n"] == STRONG else round(row["n"] * (6 * row["nodes"]) ** (1 / 3))
    grid = Grid((n,) * 3, periodic=True)
    return exchange_schedule(grid, 4, "float32", 3), grid.shape


def _places(n: int, nodes: tuple[int, ...] = NODES) -> list[Row]:
    return [
        {"n": n, "nodes": count, "ranks_per_node": 6, "transfer": name, "methods": methods}
        for count in nodes
        for name, methods in METHODS.items()
    ]


def _figure(number: str, title: str, about: str, places: list[Row], **here: str) -> Paper:
    return Paper(
        *(f"pearson-fig{number}", title, about, "exchange", "exchange"),
        here={"n": "64", "ranks": "2", "threads": "1", **here},
        machine="summit",
        value="seconds",
        places=places,
        make=_exchange,
        rows="transfer",
        columns="nodes",
        by="n",
        text=duration,
    )


PAPERS = (
    _figure("11", "Placement", "Node-aware against trivial placement on one node.", _places(WEAK, (1,))),
    _figure("12a", "Transfer methods on one node", "Methods added in turn.", _places(WEAK, (1,))),
    _figure("12b", "Weak scaling of the exchange", "As many cells for each device.", _places(WEAK)),
    _figure(
        "12c", "Weak scaling, MPI aware of devices", "The same by MPI from device memory.", _places(WEAK)
    ),
    _figure("13", "Strong scaling of the exchange", "The same grid.", _places(STRONG), scaling="strong"),
)
