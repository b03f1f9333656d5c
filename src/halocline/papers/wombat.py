"""WOMBAT: vectors, threads, patches and ranks of MHD with shocks (Mendygral et al. 2017, Section 3)."""

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

# The paper does not name the flow in its timings. All flows need the same operations in each zone.
OPTIONS = {"dim": 3, "steps": 6, "patch": "32"}
HERE = {"n": "64", "ranks": "1", "threads": lambda: doubled(len(cores()))}
ALL_CORES = {**HERE, "threads": lambda: f"{len(cores())}"}
NODES = {"n": "64", "nodes": "1,2,4,8,16", "per_node": "1,2,4", "threads": "1"}
GROUPS = "Nodes here are groups of ranks of one host, which exchange by MPI in its memory."
_figure = partial(Paper, problem="rj2a", options=OPTIONS, local_runs=HERE)
_PATCHES = {"dim": 3, "steps": 6}  # the study sets the patches


def doubled(cores: int) -> str:
    """Return the powers of two below a number of cores, then this number, as text."""
    return ",".join(map(str, (*(2**power for power in range((cores - 1).bit_length())), cores)))


# -- configurations of predictions ---------------------------------------------------------------------------

# ranks per node, and threads per rank, that use all cores of a node, for the efficiencies of Fig. 6
SPLITS = {"XEIL": (4, 4), "XCBDW": (2, 18), "XCKNL": (4, 16)}
CUBES = {1: (1, 1, 1), 27: (3, 3, 3), 150: (5, 5, 6), 512: (8, 8, 8), 648: (8, 9, 9)}
CUBES |= {4096: (16, 16, 16), 16224: (24, 26, 26)}  # numbers of nodes along the axes
OF_A_NODE = (160, 160, 160)  # zones of a node of Blue Waters, 4.1 million as in Fig. 7
LEFT_OUT = (
    "The model knows neither what threads cost in MPI nor the bottlenecks of a torus or a dragonfly between "
    "nodes; nothing is fitted to these numbers, which are too few."
)
OF_TABLE_4 = "The pace of all processors is fitted to Table 4, one thread of XCBDW at its turbo clock."


def _zones(table: str, machine: str) -> tuple[int, ...]:
    """Return the numbers of zones of a node or of the grid, along the axes, from a table of set-ups."""
    (row,) = [row for row in published(table).rows if row["machine"] == machine]
    return tuple(row[f"patches_{axis}"] * row["patch"] for axis in (1, 2, 3))


def _place(machine: str, zones: tuple[int, ...], nodes: int, ranks: int, threads: int) -> Row:
    """Return the configuration of a machine and a number of nodes, with the zones of all nodes."""
    host = {"machine": machine, "predicted_on": machine.lower().replace(" ", "-"), "nodes": nodes}
    split = {"run": f"{machine}, {ranks} x {threads}", "ranks_per_node": ranks, "threads": threads}
    return {"n": zones[0], "shape": zones, **host, **split}


def _weak(machine: str, zones: tuple[int, ...], nodes: int, ranks: int, threads: int) -> Row:
    """Return a configuration whose grid consists of the grids of its nodes."""
    whole = tuple(of_node * count for of_node, count in zip(zones, CUBES[nodes], strict=True))
    return _place(machine, whole, nodes, ranks, threads) | {"n": zones[0]}


def _of_nodes(name: str, value: str) -> Callable[[Sequence[Row]], Iterator[Quotient]]:
    """Return a function that yields efficiencies or speed-ups over one node, published and predicted."""

    def quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
        times = {(row["run"], row["nodes"]): row["predicted"] for row in rows}
        for row in published(name).rows:
            for (run, nodes), seconds in times.items():
                machine, _, split = run.partition(", ")
                of_row = nodes == row["nodes"] and split.startswith(f"{row['ranks_per_node']} x")
                if of_row and row.get("machine", machine) == machine and (run, 1) in times:
                    description = f"{value} on {nodes:,} nodes, {run}"
                    yield description, row[value], times[run, 1] / seconds

    return quotients


_ON: dict[str, Any] = {
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
    "Threads varied on one node: time of a zone (cell) and update.",
    "strong",
    difference_note="The 14 to 57 million zones of Table 5 are 64³ here.",
)
WEAK = _figure(
    "wombat-fig6",
    "Weak scaling on three machines",
    f"Time of an update by nodes, as many zones on each. {OF_TABLE_4} {LEFT_OUT}",
    "weak",
    machine="xeil",
    configurations=[
        _weak(machine, _zones("wombat-table6", machine), nodes, *SPLITS[machine])
        for machine, most in (("XEIL", 150), ("XCBDW", 512), ("XCKNL", 648))
        for nodes in (1, 27, most)
    ],
    quotients=_of_nodes("wombat-fig6", "efficiency"),
    **_ON,
    local_runs=NODES,
    difference_note=f"{GROUPS} Each rank has 64³ zones; a node of the paper has 4 to 14 million (Table 6).",
)
STRONG = _figure(
    "wombat-fig8a",
    "Strong scaling",
    f"Speed-up by nodes. {OF_TABLE_4} {LEFT_OUT}",
    "strong",
    machine="xcbdw",
    configurations=[
        _place("XCBDW", _zones("wombat-table7", "XCBDW"), nodes, *SPLITS["XCBDW"])
        for nodes in (1, 4, 16, 64, 384)
    ],
    quotients=_of_nodes("wombat-fig8a", "speedup"),
    **_ON,
    local_runs=NODES,
    difference_note=f"{GROUPS} The 86 to 393 million zones of Table 7 are 64³ here, and patches keep their "
    "size.",
)
PAPERS = (
    Paper(
        "wombat-table2",
        "Machines",
        "Machines of the studies, and this one.",
        facts=rows_below(system_row, memory_in_words),
    ),
    _figure(
        "wombat-fig3",
        "Vector length",
        "Vectors of 64 to 512 bits on all cores of a node: time of an update.",
        "vectors",
        local_runs=ALL_CORES,
        difference_note="The 30 million zones of the paper are 64³ here.",
    ),
    Paper(
        "wombat-table3",
        "Compiler flags and placement",
        "Flags and placement of threads by processor, and here.",
        facts=rows_below(flags_row, software_in_words),
    ),
    _figure(
        "wombat-table4",
        "Compilers and vectors",
        "Instructions, time of an update and share of the peak on one thread.",
        "vectors",
        local_runs={**HERE, "threads": "1"},
        difference_note="As many zones as in the paper; instructions are counted in the disassembly, and "
        "not by counters of the processor.",
    ),
    THREADS,
    Paper(
        "wombat-table5",
        "Set-up of thread scaling",
        "Patches of the domain of Fig. 4, and of `halocline study paper wombat-fig4` here.",
        facts=rows_below(patch_rows(THREADS)),
    ),
    _figure(
        "wombat-fig5",
        "Patches",
        "Edges of patches and ranks of a node varied on all of its cores: zones per second and node. On "
        "XCBDW "
        "and XCKNL the published numbers are the least of the best patches. Predicted with patches of no "
        f"cost. {OF_TABLE_4} All cores have a lower clock, and other processors another share of their peak.",
        "patches",
        machine="xeil",
        compared_key="zones_per_second",
        configurations=[
            _weak(machine, _zones("wombat-table6", machine), 27, *SPLITS[machine])
            | {"zones_per_second": published("wombat-fig5").values("zones_per_second", machine=machine)[0]}
            for machine in SPLITS
        ],
        scale=lambda seconds, row: prod(row["shape"]) / seconds / row["nodes"],
        **{**_ON, "unit": "zones per second and node", "format_value": "{:,.0f}".format},
        options=_PATCHES,
        local_runs={**ALL_CORES, "patches": "16,32,64", "all_splits": True},
        difference_note="One node instead of 27, and 64³ zones for all edges.",
    ),
    Paper(
        "wombat-table6",
        "Set-up of weak scaling",
        "Patches of a node of Fig. 6, and of a rank of `halocline study paper wombat-fig6` here.",
        facts=rows_below(patch_rows(WEAK)),
    ),
    WEAK,
    _figure(
        "wombat-fig7",
        "Weak scaling on Blue Waters",
        "Time of an update on up to 16,224 nodes, ten steps; predicted to 512 nodes; --nodes takes 4096 and "
        f"16,224 too, some minutes each. {LEFT_OUT}",
        "weak",
        machine="blue-waters-xe",
        configurations=[
            _weak("Blue Waters XE", OF_A_NODE, nodes, ranks, threads)
            for ranks, threads, most in ((4, 4, 4096), (1, 16, 16224))
            for nodes in (1, 27, 512, most)
        ],
        nodes=(1, 27, 512),
        quotients=_of_nodes("wombat-fig7", "efficiency"),
        **_ON,
        options={**OPTIONS, "steps": 10},
        local_runs=NODES,
        difference_note=f"{GROUPS} Each rank has 64³ zones; a node of the paper has 4.1 million.",
    ),
    Paper(
        "wombat-table7",
        "Set-up of strong scaling",
        "Patches of the world grid of Fig. 8, and of `halocline study paper wombat-fig8a` here.",
        facts=rows_below(patch_rows(STRONG, ranks_per_node=1)),
    ),
    STRONG,
    _figure(
        "wombat-fig8b",
        "Thread-hot RMA",
        "Time of an update by nodes, with MPI that lets one thread into one-sided communication, and all.",
        "rma",
        local_runs={"n": "48", "ranks": "2", "threads": "1,2"},
        difference_note="One-sided and two-sided messages are compared instead of two MPI libraries: the "
        "lock-free one is not at hand. Threads take turns in MPI, and on the cores where there are fewer.",
    ),
    _figure(
        "wombat-fig9",
        "Schedules",
        "Static and guided schedules of the loop over patches: zones a second, with 2 and 2.5 equal patches "
        "of each thread.",
        "patches",
        options=_PATCHES,
        local_runs={
            **{"n": "80", "ranks": "1", "threads": "2"},
            **{"patches": "20,80,80;16,80,80", "schedules": "guided,static"},
        },
        difference_note="One rank of 2 threads instead of 108 ranks of 16.",
    ),
    Paper(
        "wombat-fig23b",
        "Circularly polarised wave",
        "B₂ of every zone over x₁ after five periods in the plane, on several grids.",
        problem="cp-alfven",
        facts=after_five_periods,
    ),
)

# -- references for measurements -----------------------------------------------------------------------------


def _best_patches(group: Group) -> str:
    best = published("wombat-fig5")
    machines = dict.fromkeys(best.values("machine"))
    edges = [f"{best.values('patch', machine=name)[0]}³ on {name}" for name in machines]
    return wrap_notes(f"Mendygral et al. 2017, Fig. 5: the best patches there are {', '.join(edges)}.")


def _vectors(group: Group) -> Iterator[Sequence[str]]:
    """Yield the rows of Table 4 for runs of its size on one thread; for other 3D runs, the rows of Fig. 3."""
    one = group.first
    if tuple(one["shape"]) == (64, 64, 64) and group.values("threads") == {1}:
        for row in published("wombat-table4").rows:
            bits = "256" if row["vector_ops"] else "64"
            yield (
                *(bits, row["compiler"], "1 Broadwell thread", f"{row['seconds_per_step']:g}", ""),
                *(f"{row['scalar_ops']:g}", f"{row['vector_ops']:g}", "", f"{row['peak_share']:.1%}"),
            )
    elif len(one["shape"]) == 3:
        data = published("wombat-fig3")
        for length, word in ((256, "about"), (512, "almost")):
            (speedup,) = data.values("speedup", vector_bits=length, against_bits=64)
            yield (f"{length}", "CCE", "KNL, 68 threads", "", f"{word} {speedup:g}", "", "", "", "")


VECTORS = wrap_notes(
    "Mendygral et al. 2017, Table 4 (of 100 steps of 64³ zones) and Fig. 3, whose time follows Amdahl's law "
    "with about 0.65."
)
REFERENCES = {
    "patches": Reference(note=_best_patches),
    "vectors": Reference(
        _vectors,
        lambda group: VECTORS if len(group.first["shape"]) == 3 else "",
    ),
}
