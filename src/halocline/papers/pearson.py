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
WORST_CASE_SHAPE = (1440, 1452, 700)  # cells of the worst case for placement
NODE_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEVICES_PER_NODE = 6
# Cells along an axis for one device, and for all devices of one node. The numbers come from the scripts
# scripts/summit/run_256node_weak_spec.sh and run_256node_strong_spec.sh of cwpearson/stencil, the repository
# that the paper names.
WEAK_CELLS, STRONG_CELLS = 750, 1363
NETWORK_NOTE = "In the model, only the network cards of the nodes limit the bandwidth between nodes."
SPEEDUP_NOTE = "In brackets: speed-up over MPI only."


def _exchange(row: Row) -> Any:
    """Return the schedule of an exchange of four single-precision fields, and the shape of the grid."""
    from halocline.lang.grid import Grid
    from halocline.study.measuring.exchange import exchange_schedule, weak_shape

    fixed_shapes = {None: WORST_CASE_SHAPE, STRONG_CELLS: (STRONG_CELLS,) * 3}
    shape = fixed_shapes.get(row["n"]) or weak_shape(WEAK_CELLS, DEVICES_PER_NODE * row["nodes"])
    return exchange_schedule(Grid(shape, periodic=True), 4, "float32", 3), shape


def _configurations(
    n: int | None,
    names: Iterable[str],
    nodes: Iterable[int] = NODE_COUNTS,
    ranks: int = DEVICES_PER_NODE,
    **options: dict[str, str],
) -> list[Row]:
    """Return a configuration for each number of nodes and each name, with six devices per node.

    An entry of `options` contains the value of this option for each name.
    """
    is_aware = any("gpu_aware" in text for values in options.values() for text in values.values())
    common = {"n": n, "ranks_per_node": ranks, "subdomains_per_rank": DEVICES_PER_NODE // ranks, "passes": 2}
    return [
        {
            **{**common, "strategy": "bisection", "nodes": count, "transfer": name},
            "run": f"{count}n/{ranks}r/{DEVICES_PER_NODE}g{'/ca' * is_aware}",
            **{key: values[name] for key, values in options.items()},
        }
        for count in nodes
        for name in names
    ]


def _speedups(
    name: str, *comparisons: tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]
) -> Callable[[Sequence[Row]], Iterator[Quotient]]:
    """Return a function that yields the published and predicted values of speed-ups.

    A comparison consists of a description, the conditions of the published row, the conditions of the slower
    configuration, and those of the faster configuration.
    """

    def quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
        for description, published_row, slower, faster in comparisons:
            times = [
                [row["predicted"] for row in rows if all(row[key] == conditions[key] for key in conditions)]
                for conditions in (slower, faster)
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
    unit="seconds per exchange",
    difference_note="Without --device, subdomains on cores replace the devices, and +remote needs no copies "
    "through host memory. There is no barrier between the exchanges of a run.",
)
_NODE_TABLE: dict[str, Any] = {
    "row_key": "run",
    "column_key": "transfer",
    "comparison_text": lambda value, first, row: f" ({first / value:.2f})",
}
_SCALING_TABLE: dict[str, Any] = {
    "comparison_text": _NODE_TABLE["comparison_text"],
    "comparison_axis": "columns",
    "nodes": (1, 8, 64, 256),
}
_MPI_ONLY, _ALL_METHODS, _AWARE_MPI_ONLY = (
    {"run": f"1n/6r/6g{aware}", "transfer": name}
    for name, aware in (("+remote", ""), ("+kernel", ""), ("+remote", "/ca"))
)
PAPERS = (
    Paper(
        "pearson-table1",
        "Hardware and software of a node",
        "Properties of a node of Summit and of this host.",
        facts=hardware_and_software,
    ),
    Paper(
        "pearson-fig10",
        "Bandwidths within a node",
        "Bandwidths of the links in the machine file, and of the links of this machine. The drawing in the "
        "paper has no readable numbers.",
        facts=links_of_node("summit"),
    ),
    _figure(
        "pearson-fig11",
        "Placement",
        "Time of an exchange on one node by placement. In brackets: speed-up over the trivial placement.",
        configurations=_configurations(None, PLACEMENTS, (1,), ranks=1, placement=PLACEMENTS),
        quotients=_speedups(
            "pearson-fig11",
            ("aware over trivial placement", {}, {"placement": "trivial"}, {"placement": "aware"}),
        ),
        study="placement",
        local_runs={"n": "90", "ranks": "1", "threads": "1"},
        **{**_NODE_TABLE, "column_key": "placement"},
    ),
    _figure(
        "pearson-fig12a",
        "Transfer methods on one node",
        "Time of an exchange with transfer methods added one by one, for 1, 2 and 6 ranks on the same six "
        f"devices. {SPEEDUP_NOTE} Rows with ca use CUDA-aware MPI.",
        configurations=[
            configuration
            for sets in (SETS, AWARE_SETS)
            for ranks in (1, 2, 6)
            for configuration in _configurations(WEAK_CELLS, sets, (1,), ranks, methods=sets)
        ],
        quotients=_speedups(
            "pearson-fig12a",
            ("+kernel over +remote", {"method": "+kernel", "against": "staged"}, _MPI_ONLY, _ALL_METHODS),
            (
                "+kernel over +remote with CUDA-aware MPI",
                {"method": "+kernel", "against": "cuda-aware"},
                _AWARE_MPI_ONLY,
                _ALL_METHODS,
            ),
            (
                "+remote with CUDA-aware MPI over +remote",
                {"method": "cuda-aware"},
                _MPI_ONLY,
                _AWARE_MPI_ONLY,
            ),
        ),
        local_runs={"n": "32", "ranks": "1,2,6", "threads": "1", "subdomains": "6"},
        **_NODE_TABLE,
    ),
    _figure(
        "pearson-fig12b",
        "Weak scaling of the exchange",
        f"Time of an exchange with a constant number of cells per device. {SPEEDUP_NOTE} {NETWORK_NOTE}",
        configurations=_configurations(WEAK_CELLS, SETS, methods=SETS),
        quotients=_speedups(
            "pearson-fig12b",
            (
                "+kernel over +remote, 256 nodes",
                {},
                {"nodes": 256, "transfer": "+remote"},
                {"nodes": 256, "transfer": "+kernel"},
            ),
        ),
        **_SCALING_TABLE,
    ),
    _figure(
        "pearson-fig12c",
        "Weak scaling of the exchange with CUDA-aware MPI",
        "Time of an exchange with a constant number of cells per device, with MPI messages from device "
        "memory. If MPI supports device memory, `halocline study exchange exchange --device cuda` measures "
        f"this time (rows with ca). {SPEEDUP_NOTE} {NETWORK_NOTE}",
        configurations=_configurations(WEAK_CELLS, AWARE_SETS, methods=AWARE_SETS),
        study=None,
        **_SCALING_TABLE,
    ),
    _figure(
        "pearson-fig13",
        "Strong scaling of the exchange",
        f"Time of an exchange for a grid of constant size. {SPEEDUP_NOTE} {NETWORK_NOTE}",
        configurations=_configurations(STRONG_CELLS, SETS, methods=SETS),
        **_SCALING_TABLE,
        local_runs={"n": "64", "nodes": "1,2,4,8", "per_node": "1,2", "threads": "1", "scaling": "strong"},
    ),
)
