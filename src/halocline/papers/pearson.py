"""Node-aware exchange on Summit (Pearson et al. 2020, Section IV, Figs. 11 to 13)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from halocline.papers.facts import hardware_and_software, links_of_node
from halocline.papers.paper import Paper, Row
from halocline.plan.transfer import AWARE_SETS, SETS
from halocline.words import duration

PLACEMENTS = {name: name for name in ("trivial", "random", "aware")}
PLACED = (1440, 1452, 700)  # the worst case of placement
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
WEAK, STRONG = 750, 1363  # cells along an axis for a device, and in all on one node
ALIKE = "the model knows no copies through the host, so that methods differ little"


def _exchange(row: Row) -> Any:
    """Return the schedule of four fields of single precision with halos of three layers, and its grid."""
    from halocline.lang.grid import Grid
    from halocline.study.measuring.exchange import exchange_schedule, weak_shape

    shape = {None: PLACED, STRONG: (STRONG,) * 3}.get(row["n"]) or weak_shape(WEAK, 6 * row["nodes"])
    return exchange_schedule(Grid(shape, periodic=True), 4, "float32", 3), shape


def _places(
    n: int | None, names: Iterable[str], nodes: Iterable[int] = NODES, **options: dict[str, str]
) -> list[Row]:
    """Return places by nodes and names of options."""
    fixed = {"n": n, "ranks_per_node": 6, "strategy": "bisection"}
    return [
        {**fixed, "nodes": count, "transfer": name, **{key: known[name] for key, known in options.items()}}
        for count in nodes
        for name in names
    ]


_figure = partial(
    Paper,
    study="exchange",
    problem="exchange",
    here={"n": "32", "nodes": "1,2,4,8", "per_node": "1,2", "threads": "1"},
    machine="summit",
    make=_exchange,
    rows="transfer",
    text=duration,
    unit="seconds of an exchange",
    differs="Without --device, subdomains of processors take the place of devices, and +remote copies "
    "nothing through the host. No barrier stands between the exchanges of a run.",
)
_ON_A_NODE: dict[str, Any] = {
    "rows": "nodes",
    "columns": "transfer",
    "compared": lambda value, first, row: f" ({first / value:.2f})",
}
PAPERS = (
    Paper(
        "pearson-table1",
        "Hardware and software of a node",
        "A node of Summit, and this one.",
        facts=hardware_and_software,
    ),
    Paper(
        "pearson-fig10",
        "A node and its bandwidths",
        "The drawing has no readable numbers: links as the machine file has them, and those of this machine.",
        facts=links_of_node("summit"),
    ),
    _figure(
        "pearson-fig11",
        "Placement",
        "One node; behind times is the speed-up over the trivial placement.",
        places=_places(None, PLACEMENTS, (1,), placement=PLACEMENTS),
        study="placement",
        here={"n": "90", "ranks": "1", "threads": "1"},
        **{**_ON_A_NODE, "columns": "placement"},
    ),
    _figure(
        "pearson-fig12a",
        "Transfer methods on one node",
        f"Methods added in turn, speed-ups over MPI alone; {ALIKE}.",
        places=_places(WEAK, SETS, (1,), methods=SETS),
        here={"n": "32", "ranks": "1,2,6", "threads": "1", "subdomains": "6"},
        **_ON_A_NODE,
    ),
    _figure(
        "pearson-fig12b",
        "Weak scaling of the exchange",
        f"As many cells for each device; {ALIKE}.",
        places=_places(WEAK, SETS, methods=SETS),
    ),
    _figure(
        "pearson-fig12c",
        "Weak scaling, MPI aware of devices",
        "The same by MPI from device memory; `halocline study exchange exchange --device cuda` measures it "
        f"where MPI takes that memory, in rows with ca; {ALIKE}.",
        places=_places(WEAK, AWARE_SETS, methods=AWARE_SETS),
        study=None,
    ),
    _figure(
        "pearson-fig13",
        "Strong scaling of the exchange",
        f"The same grid; {ALIKE}.",
        places=_places(STRONG, SETS, methods=SETS),
        here={"n": "64", "nodes": "1,2,4,8", "per_node": "1,2", "threads": "1", "scaling": "strong"},
    ),
)
