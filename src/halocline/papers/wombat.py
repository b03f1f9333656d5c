"""Tables and figures of WOMBAT (Mendygral et al. 2017, Section 3): vectors, threads, patches and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

from halocline.papers.facts import (
    flags_row,
    memory_in_words,
    patch_rows,
    rows_below,
    software_in_words,
    system_row,
)
from halocline.papers.paper import Paper, Quotient, Row
from halocline.papers.polarised_wave import after_five_periods
from halocline.papers.published import published
from halocline.run.host.process import cores
from halocline.study.reporting.quantities import wrap_notes
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Group
from halocline.words import duration

# The paper does not name the timed flow. Every flow needs the same operations in each zone.
OPTIONS = {"dim": 3, "steps": 6, "patch": "32"}
THREAD_RUNS = {"n": "64", "ranks": "1", "threads": lambda: thread_counts(len(cores()))}
ALL_CORES = {**THREAD_RUNS, "threads": lambda: f"{len(cores())}"}
NODE_RUNS = {"n": "64", "nodes": "1,2,4,8,16", "per_node": "1,2,4", "threads": "1"}
NODE_NOTE = (
    "Groups of ranks on one host represent the nodes, and exchange messages by MPI in the memory of the host."
)
_figure = partial(Paper, problem="rj2a", options=OPTIONS, local_runs=THREAD_RUNS)
_PATCH_OPTIONS = {"dim": 3, "steps": 6}  # the study sets the patches


def thread_counts(cores: int) -> str:
    """Return the powers of two below a number of cores, followed by this number, as text."""
    return ",".join(map(str, (*(2**power for power in range((cores - 1).bit_length())), cores)))


# -- configurations of predictions ---------------------------------------------------------------------------

# Ranks per node and threads per rank for the efficiencies of Fig. 6. Except on XCKNL, they use all cores.
SPLITS = {"XEIL": (4, 4), "XCBDW": (2, 18), "XCKNL": (4, 16)}
# numbers of nodes along the axes, by the total number of nodes
NODE_GRIDS = {1: (1, 1, 1), 27: (3, 3, 3), 150: (5, 5, 6), 512: (8, 8, 8), 648: (8, 9, 9)}
NODE_GRIDS |= {4096: (16, 16, 16), 16224: (24, 26, 26)}
BLUE_WATERS_ZONES = (160, 160, 160)  # zones of a node of Blue Waters: 4.1 million, as in Fig. 7
MODEL_NOTE = (
    "The model contains neither the costs of MPI calls by several threads, nor bottlenecks of a torus or "
    "dragonfly network. These costs are not fitted, because the paper states too few numbers."
)
SPEED_NOTE = (
    "The predicted speed of all processors is fitted to the time of one thread on XCBDW (Table 4). This "
    "thread runs at the turbo clock rate."
)


def _zones(table: str, machine: str) -> tuple[int, ...]:
    """Return the number of zones along each axis, of a node or of the grid, from a table of set-ups."""
    (row,) = [row for row in published(table).rows if row["machine"] == machine]
    return tuple(row[f"patches_{axis}"] * row["patch"] for axis in (1, 2, 3))


def _configuration(machine: str, zones: tuple[int, ...], nodes: int, ranks: int, threads: int) -> Row:
    """Return the configuration for a grid of `zones` on several nodes of a machine."""
    host = {"machine": machine, "predicted_on": machine.lower().replace(" ", "-"), "nodes": nodes}
    split = {"run": f"{machine}, {ranks} x {threads}", "ranks_per_node": ranks, "threads": threads}
    return {"n": zones[0], "shape": zones, **host, **split}


def _weak_configuration(machine: str, zones: tuple[int, ...], nodes: int, ranks: int, threads: int) -> Row:
    """Return the configuration for a grid with `zones` on each of several nodes."""
    shape = tuple(n * count for n, count in zip(zones, NODE_GRIDS[nodes], strict=True))
    return _configuration(machine, shape, nodes, ranks, threads) | {"n": zones[0]}


def _node_quotients(name: str, value: str) -> Callable[[Sequence[Row]], Iterator[Quotient]]:
    """Return a function that yields efficiencies or speed-ups relative to one node."""

    def quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
        times = {(row["run"], row["nodes"]): row["predicted"] for row in rows}
        for row in published(name).rows:
            for (run, nodes), seconds in times.items():
                machine, _, split = run.partition(", ")
                is_row = nodes == row["nodes"] and split.startswith(f"{row['ranks_per_node']} x")
                if is_row and row.get("machine", machine) == machine and (run, 1) in times:
                    description = f"{value} on {nodes:,} nodes, {run}"
                    yield description, row[value], times[run, 1] / seconds

    return quotients


_NODE_TABLE: dict[str, Any] = {  # options of tables with nodes in columns
    "row_key": "run",
    "column_key": "nodes",
    "table_key": "grid",
    "unit": "seconds per update",
    "format_value": duration,
}

# -- figures and tables --------------------------------------------------------------------------------------

THREADS = _figure(
    "wombat-fig4",
    "Threads of a node",
    "Time per zone (cell) and update by number of threads, on one node.",
    "strong",
    difference_note="The grid has 64³ zones instead of 14 to 57 million (Table 5).",
)
WEAK = _figure(
    "wombat-fig6",
    "Weak scaling on three machines",
    "Time of an update by number of nodes, with a constant number of zones per node. "
    f"{SPEED_NOTE} {MODEL_NOTE}",
    "weak",
    machine="xeil",
    configurations=[
        _weak_configuration(machine, _zones("wombat-table6", machine), nodes, *SPLITS[machine])
        for machine, max_nodes in (("XEIL", 150), ("XCBDW", 512), ("XCKNL", 648))
        for nodes in (1, 27, max_nodes)
    ],
    quotients=_node_quotients("wombat-fig6", "efficiency"),
    **_NODE_TABLE,
    local_runs=NODE_RUNS,
    difference_note=f"{NODE_NOTE} Each rank has 64³ zones, but each node of the paper has 4 to 14 million "
    "(Table 6).",
)
STRONG = _figure(
    "wombat-fig8a",
    "Strong scaling",
    f"Time of an update by number of nodes, for a constant grid. {SPEED_NOTE} {MODEL_NOTE}",
    "strong",
    machine="xcbdw",
    configurations=[
        _configuration("XCBDW", _zones("wombat-table7", "XCBDW"), nodes, *SPLITS["XCBDW"])
        for nodes in (1, 4, 16, 64, 384)
    ],
    quotients=_node_quotients("wombat-fig8a", "speedup"),
    **_NODE_TABLE,
    local_runs=NODE_RUNS,
    difference_note=f"{NODE_NOTE} The grid has 64³ zones instead of 86 to 393 million (Table 7). The size "
    "of the patches is constant.",
)
PAPERS = (
    Paper(
        "wombat-table2",
        "Machines",
        "Machines of the performance studies, and this machine.",
        facts=rows_below(system_row, memory_in_words),
    ),
    _figure(
        "wombat-fig3",
        "Vector length",
        "Time of an update for vector lengths of 64 to 512 bits, on all cores of a node.",
        "vectors",
        local_runs=ALL_CORES,
        difference_note="The grid has 64³ zones instead of 30 million.",
    ),
    Paper(
        "wombat-table3",
        "Compiler flags and placement",
        "Compiler flags and placement of threads for each processor, and for this machine.",
        facts=rows_below(flags_row, software_in_words),
    ),
    _figure(
        "wombat-table4",
        "Compilers and vectors",
        "Number of instructions, time of an update and share of the peak, on one thread.",
        "vectors",
        local_runs={**THREAD_RUNS, "threads": "1"},
        difference_note="The number of zones is that of the paper. Instructions are counted in the "
        "disassembly, not by counters of the processor.",
    ),
    THREADS,
    Paper(
        "wombat-table5",
        "Set-up of thread scaling",
        "Patches of the domain in Fig. 4, and of `halocline study paper wombat-fig4` on this machine.",
        facts=rows_below(patch_rows(THREADS)),
    ),
    _figure(
        "wombat-fig5",
        "Patches",
        "Zones per second per node, as a function of the edge length of the patches and of the number of "
        "ranks per node. All cores of a node compute. On XCBDW and XCKNL, the published numbers are lower "
        f"bounds for the best patches. The predictions contain no cost of patches. {SPEED_NOTE} If all cores "
        "are busy, the clock rate is lower, and other processors reach a different share of their peak.",
        "patches",
        machine="xeil",
        compared_key="zones_per_second",
        configurations=[
            _weak_configuration(machine, _zones("wombat-table6", machine), 27, *SPLITS[machine])
            | {"zones_per_second": published("wombat-fig5").values("zones_per_second", machine=machine)[0]}
            for machine in SPLITS
        ],
        scale=lambda seconds, row: prod(row["shape"]) / seconds / row["nodes"],
        **{**_NODE_TABLE, "unit": "zones per second per node", "format_value": "{:,.0f}".format},
        options=_PATCH_OPTIONS,
        local_runs={**ALL_CORES, "patches": "16,32,64", "all_splits": True},
        difference_note="The measurements use one node instead of 27, and 64³ zones for all edge lengths.",
    ),
    Paper(
        "wombat-table6",
        "Set-up of weak scaling",
        "Patches of a node in Fig. 6, and of a rank of `halocline study paper wombat-fig6` on this machine.",
        facts=rows_below(patch_rows(WEAK)),
    ),
    WEAK,
    _figure(
        "wombat-fig7",
        "Weak scaling on Blue Waters",
        "Time of an update on up to 16,224 nodes, for ten steps. By default, predictions are for up to 512 "
        f"nodes. Predictions with --nodes 4096,16224 take some minutes each. {MODEL_NOTE}",
        "weak",
        machine="blue-waters-xe",
        configurations=[
            _weak_configuration("Blue Waters XE", BLUE_WATERS_ZONES, nodes, ranks, threads)
            for ranks, threads, max_nodes in ((4, 4, 4096), (1, 16, 16224))
            for nodes in (1, 27, 512, max_nodes)
        ],
        nodes=(1, 27, 512),
        quotients=_node_quotients("wombat-fig7", "efficiency"),
        **_NODE_TABLE,
        options={**OPTIONS, "steps": 10},
        local_runs=NODE_RUNS,
        difference_note=f"{NODE_NOTE} Each rank has 64³ zones, but each node of the paper has 4.1 million.",
    ),
    Paper(
        "wombat-table7",
        "Set-up of strong scaling",
        "Patches of the world grid in Fig. 8, and of `halocline study paper wombat-fig8a` on this machine.",
        facts=rows_below(patch_rows(STRONG, ranks_per_node=1)),
    ),
    STRONG,
    _figure(
        "wombat-fig8b",
        "Thread-hot RMA",
        "Time of an update by number of nodes. The paper compares two MPI libraries. In one library, one "
        "thread at a time uses one-sided communication. In the other library, all threads use it at once.",
        "rma",
        local_runs={"n": "48", "ranks": "2", "threads": "1,2"},
        difference_note="One-sided messages are compared with two-sided messages, because the second MPI "
        "library is not available. The threads of a rank call MPI one after the other. If there are fewer "
        "cores than threads, threads share cores.",
    ),
    _figure(
        "wombat-fig9",
        "Schedules of threads",
        "Zones per second with static and guided schedules of the loop over patches, for 2 and 2.5 equal "
        "patches per thread.",
        "patches",
        options=_PATCH_OPTIONS,
        local_runs={
            **{"n": "80", "ranks": "1", "threads": "2"},
            **{"patches": "20,80,80;16,80,80", "schedules": "guided,static"},
        },
        difference_note="The measurement uses one rank with 2 threads instead of 108 ranks with 16 threads.",
    ),
    Paper(
        "wombat-fig23b",
        "Circularly polarised wave",
        "B₂ of every zone against x₁ after five periods in 2D, on several grids.",
        problem="cp-alfven",
        facts=after_five_periods,
    ),
)

# -- references for measurements -----------------------------------------------------------------------------


def _best_patches(group: Group) -> str:
    data = published("wombat-fig5")
    machines = dict.fromkeys(data.values("machine"))
    sizes = [f"{data.values('patch', machine=name)[0]}³ on {name}" for name in machines]
    return wrap_notes(f"Mendygral et al. 2017, Fig. 5: the best patch sizes are {', '.join(sizes)}.")


def _vectors(group: Group) -> Iterator[Sequence[str]]:
    """Yield published rows: Table 4 for 64³ zones on one thread, and Fig. 3 for other runs in 3D."""
    shape = tuple(group.first["shape"])
    if shape == (64, 64, 64) and group.values("threads") == {1}:
        for row in published("wombat-table4").rows:
            bits = "256" if row["vector_ops"] else "64"
            yield (
                *(bits, row["compiler"], "1 Broadwell thread", f"{row['seconds_per_step']:g}", ""),
                *(f"{row['scalar_ops']:g}", f"{row['vector_ops']:g}", "", f"{row['peak_share']:.1%}"),
            )
    elif len(shape) == 3:
        data = published("wombat-fig3")
        for bits, precision in (("256", "about"), ("512", "almost")):
            (speedup,) = data.values("speedup", vector_bits=int(bits), against_bits=64)
            yield (bits, "CCE", "KNL, 68 threads", "", f"{precision} {speedup:g}", "", "", "", "")


VECTOR_NOTE = wrap_notes(
    "Mendygral et al. 2017, Table 4 (100 steps with 64³ zones) and Fig. 3. The times in Fig. 3 follow "
    "Amdahl's law, with about 0.65 of the time proportional to 1 / bits."
)
REFERENCES = {
    "patches": Reference(note=_best_patches),
    "vectors": Reference(
        _vectors,
        lambda group: VECTOR_NOTE if len(group.first["shape"]) == 3 else "",
    ),
}
