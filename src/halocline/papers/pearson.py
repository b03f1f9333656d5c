"""Node-aware exchange on Summit (Pearson et al. 2020, Section IV, Figs. 11 to 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from halocline.papers.facts import hardware_and_software, links_of_node
from halocline.papers.paper import Paper, Quotient, Row
from halocline.papers.published import published
from halocline.plan.transfer import AWARE_SETS, SETS
from halocline.words import duration

PLACEMENTS = {name: name for name in ("trivial", "random", "aware")}
PLACED = (1440, 1452, 700)  # cells of the worst case for placement
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OF_A_NODE = 6  # devices
# cells along an axis, for one device and for all devices of one node: scripts/summit/run_256node_weak_spec.sh
# and run_256node_strong_spec.sh of cwpearson/stencil, the repository that the paper names
WEAK, STRONG = 750, 1363
FLAT = "The network of the model has no bottlenecks but the cards of nodes"


def _exchange(row: Row) -> Any:
    """Return the schedule of four single-precision fields with halos of three layers, and the shape."""
    from halocline.lang.grid import Grid
    from halocline.study.measuring.exchange import exchange_schedule, weak_shape

    shape = {None: PLACED, STRONG: (STRONG,) * 3}.get(row["n"]) or weak_shape(WEAK, OF_A_NODE * row["nodes"])
    return exchange_schedule(Grid(shape, periodic=True), 4, "float32", 3), shape


def _places(
    n: int | None,
    names: Iterable[str],
    nodes: Iterable[int] = NODES,
    ranks: int = OF_A_NODE,
    **options: dict[str, str],
) -> list[Row]:
    """Return a configuration for each number of nodes and each name of options, with six devices per node."""
    aware = "/ca" * any("gpu_aware" in text for known in options.values() for text in known.values())
    fixed = {"n": n, "ranks_per_node": ranks, "subdomains_per_rank": OF_A_NODE // ranks, "passes": 2}
    return [
        {
            **{**fixed, "strategy": "bisection", "nodes": count, "transfer": name},
            "run": f"{count}n/{ranks}r/{OF_A_NODE}g{aware}",
            **{key: known[name] for key, known in options.items()},
        }
        for count in nodes
        for name in names
    ]


def _speedups(
    name: str, *stated: tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]
) -> Callable[[Sequence[Row]], Iterator[Quotient]]:
    """Return a function that yields the speed-ups stated by the paper, published and predicted.

    An entry of `stated` consists of a description, the conditions of the published row, and the conditions of
    the slower and of the faster configuration.
    """

    def quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
        for description, published_row, slower, faster in stated:
            times = [
                [row["predicted"] for row in rows if all(row[key] == end[key] for key in end)]
                for end in (slower, faster)
            ]
            if all(times):
                (published_speedup,) = published(name).values("speedup", **published_row)
                yield description, published_speedup, times[0][0] / times[1][0]

    return quotients


_figure = partial(
    Paper,
    study="exchange",
    problem="exchange",
    local_runs={"n": "32", "nodes": "1,2,4,8", "per_node": "1,2", "threads": "1"},
    machine="summit",
    make_schedule=_exchange,
    row_key="transfer",
    format_value=duration,
    unit="seconds of an exchange",
    difference_note="Without --device, subdomains of processors take the place of devices, and +remote "
    "copies nothing through the host. There is no barrier between the exchanges of a run.",
)
_ON_A_NODE: dict[str, Any] = {
    "row_key": "run",
    "column_key": "transfer",
    "comparison_text": lambda value, first, row: f" ({first / value:.2f})",
}
_SCALING: dict[str, Any] = {
    **{
        "comparison_text": _ON_A_NODE["comparison_text"],
        "comparison_axis": "columns",
        "nodes": (1, 8, 64, 256),
    }
}
_STAGED, _KERNEL, _AWARE = (
    {"run": f"1n/6r/6g{aware}", "transfer": name}
    for name, aware in (("+remote", ""), ("+kernel", ""), ("+remote", "/ca"))
)
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
        configurations=_places(None, PLACEMENTS, (1,), ranks=1, placement=PLACEMENTS),
        quotients=_speedups(
            "pearson-fig11",
            ("aware over trivial placement", {}, {"placement": "trivial"}, {"placement": "aware"}),
        ),
        study="placement",
        local_runs={"n": "90", "ranks": "1", "threads": "1"},
        **{**_ON_A_NODE, "column_key": "placement"},
    ),
    _figure(
        "pearson-fig12a",
        "Transfer methods on one node",
        "Methods added in turn, with 1, 2 and 6 ranks of the same six devices; behind times is the speed-up "
        "over MPI alone. Rows with ca have MPI that is aware of devices.",
        configurations=[
            place
            for sets in (SETS, AWARE_SETS)
            for ranks in (1, 2, 6)
            for place in _places(WEAK, sets, (1,), ranks, methods=sets)
        ],
        quotients=_speedups(
            "pearson-fig12a",
            ("+kernel over +remote", {"method": "+kernel", "against": "staged"}, _STAGED, _KERNEL),
            ("+kernel over +remote, ca", {"method": "+kernel", "against": "cuda-aware"}, _AWARE, _KERNEL),
            ("+remote, ca over +remote", {"method": "cuda-aware"}, _STAGED, _AWARE),
        ),
        local_runs={"n": "32", "ranks": "1,2,6", "threads": "1", "subdomains": "6"},
        **_ON_A_NODE,
    ),
    _figure(
        "pearson-fig12b",
        "Weak scaling of the exchange",
        f"As many cells for each device; behind times is the speed-up over MPI alone. {FLAT}.",
        configurations=_places(WEAK, SETS, methods=SETS),
        quotients=_speedups(
            "pearson-fig12b",
            (
                "+kernel over +remote, 256 nodes",
                {},
                {"nodes": 256, "transfer": "+remote"},
                {"nodes": 256, "transfer": "+kernel"},
            ),
        ),
        **_SCALING,
    ),
    _figure(
        "pearson-fig12c",
        "Weak scaling, MPI aware of devices",
        "The same by MPI from device memory; `halocline study exchange exchange --device cuda` measures it "
        f"where MPI takes that memory, in rows with ca. {FLAT}.",
        configurations=_places(WEAK, AWARE_SETS, methods=AWARE_SETS),
        study=None,
        **_SCALING,
    ),
    _figure(
        "pearson-fig13",
        "Strong scaling of the exchange",
        f"The same grid; behind times is the speed-up over MPI alone. {FLAT}.",
        configurations=_places(STRONG, SETS, methods=SETS),
        **_SCALING,
        local_runs={"n": "64", "nodes": "1,2,4,8", "per_node": "1,2", "threads": "1", "scaling": "strong"},
    ),
)
