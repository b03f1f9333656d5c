"""UMBC HPCF-2018-10: conjugate gradients for the Poisson problem on clusters (Arora et al. 2018)."""

from __future__ import annotations

from functools import partial
from typing import Any

from halocline.papers.meshes import solution_and_error
from halocline.papers.paper import Paper, Row
from halocline.papers.published import published
from halocline.study.measurement import Measurement
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Group
from halocline.words import clock, counted

# Bandwidths in B/s and latencies in s. The latencies are typical rounded values.
NETWORKS = {
    "Omni-Path": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "EDR InfiniBand": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "10 Gb Ethernet": {"bandwidth": 1.25e9, "latency": 2.0e-5},
}


def poisson_convergence() -> dict[int, dict[str, Any]]:
    """Return the rows of the published convergence study, by N."""
    return {row["n"]: row for row in published("umbc-3.1").rows}


def iterations(n: int) -> float:
    """Return the published number of iterations for N x N points.

    If the paper has no such grid, the result is an estimate that is proportional to N.
    """
    row = poisson_convergence().get(n)
    return float(row["iterations"]) if row else 1.57 * n


def published_for(measurement: Measurement) -> dict[str, Any] | None:
    """Return the published result of the same problem with the same tolerance; None if there is none."""
    is_poisson_2d = measurement["case"] == "poisson" and measurement["dim"] == 2
    if not (is_poisson_2d and measurement["rtol"] == 1e-6 and measurement["converged"]):
        return None
    return poisson_convergence().get(measurement["n"])


def _note(group: Group) -> str:
    if not any(map(published_for, group.members)):
        return ""
    return (
        "paper: UMBC HPCF-2018-10, Table 3.1. The runs use one core of a Skylake 8160 up to N = 16384,\n"
        "and 1024 cores for larger N."
    )


def _cores(row: Row) -> str:
    """Return the head of the column in Table 5.1 that contains the configuration of a row."""
    ranks = row["ranks_per_node"]
    all_ranks = max(published("umbc-5.1").values("ranks_per_node", machine=row["machine"]))
    cores = "1 core" if ranks == 1 else "all cores" if ranks == all_ranks else f"{ranks} of {all_ranks} cores"
    return f"{counted(row['nodes'], 'node')}\n{cores}"


SOLVE_TIME_NOTE = (
    "Measured times are those of the solve alone; published times include the start of the program."
)
NODE_NOTE = (
    "Groups of ranks on one host represent the nodes, and exchange messages by MPI in the memory of the "
    f"host. {SOLVE_TIME_NOTE}"
)
# The measurements are those configurations of Table 4.1 for which this host has enough cores. The paper
# divides the grid along one axis, and transfers all messages by MPI (Section 2).
_LOCAL_RUNS = {
    **{"n": "512,1024", "nodes": "1,2,4,8,16", "per_node": "1,2,4,8,16,32", "threads": "1"},
    **{"decomposition": "1d", "methods": "mpi", "affinity": "close"},
}


def _configurations(name: str) -> list[Row]:
    """Return the configurations of a table, with a decomposition along one axis (Section 2)."""
    return [{**row, "strategy": "1d"} for row in published(name).rows]


# tables with the processes per node in rows, and the nodes in columns
_scaling_table = partial(
    Paper,
    about="Wall-clock time by number of nodes and processes per node, for each N.",
    study="strong",
    problem="poisson",
    options={"method": "cg"},
    local_runs=_LOCAL_RUNS,
    difference_note=NODE_NOTE,
    machine="stampede2-skx",
    sizes=(4096,),
    pass_count=iterations,
    value_key="seconds",
    format_published=clock,
)
_hybrid_table = partial(
    _scaling_table,
    about="Wall-clock time for divisions of the cores of each node into processes and threads, by number of "
    "nodes.",
    study="hybrid",
)
_HYBRID_RUNS = {"n": "512,1024", "decomposition": "1d", "methods": "mpi"}
PAPERS = (
    Paper(
        "umbc-3.1",
        "Convergence",
        "Errors, iterations and times on successively finer meshes. The runs use one core, and 1024 cores "
        "for the two finest meshes.",
        "convergence",
        "poisson",
        options={"method": "cg"},
        local_runs={"n": "512,1024,2048", "ranks": "1", "threads": "1"},
        difference_note=SOLVE_TIME_NOTE,
        machine="stampede2-skx",
        compared_key="seconds",
        configurations=[
            {**row, "threads": 1, "on": counted(row["ranks"], "rank")} for row in published("umbc-3.1").rows
        ],
        pass_count=iterations,
        row_key="n",
        column_key="on",
        table_key="mesh",
    ),
    Paper(
        "umbc-fig3.1",
        "Solution and error",
        "Mesh plots of the numerical solution and of its error. The options --pictures and --html draw them.",
        problem="poisson",
        options={"method": "cg"},
        facts=solution_and_error,
    ),
    _scaling_table(
        "umbc-4.1", "Strong scaling, thread binding close", configurations=_configurations("umbc-4.1")
    ),
    _scaling_table(
        "umbc-4.2",
        "Strong scaling, thread binding spread",
        configurations=_configurations("umbc-4.2"),
        local_runs={**_LOCAL_RUNS, "affinity": "close,spread"},
    ),
    _scaling_table(
        "umbc-4.3",
        "Strong scaling, thread binding by KMP_AFFINITY=scatter",
        configurations=_configurations("umbc-4.3"),
        local_runs={**_LOCAL_RUNS, "affinity": "close,scatter"},
        difference_note="KMP_AFFINITY has no effect with OpenMP libraries that do not read it, such as "
        f"libgomp. {NODE_NOTE}",
    ),
    _scaling_table(
        "umbc-5.1",
        "Generations of clusters",
        about="Wall-clock time on one core and on all cores of a node, for one node and for 32 nodes of "
        "seven clusters.",
        configurations=[{**row, "threads": 1, "cores": _cores(row)} for row in published("umbc-5.1").rows],
        is_predicted=lambda row: row["machine"] == "Stampede2",
        row_key="machine",
        column_key="cores",
        comparison_text=lambda seconds, first, row: f"  ({first / seconds + 1e-9:.2f})",
    ),
    *(
        _scaling_table(
            f"umbc-6.{number}",
            f"Comparison of networks: {name}",
            configurations=_configurations(f"umbc-6.{number}"),
            machine="dell-zenith",
            network=network,
            difference_note="One host has no network, so the measurements are those for Table 4.1. "
            f"{NODE_NOTE}",
        )
        for number, (name, network) in enumerate(NETWORKS.items(), 1)
    ),
    _hybrid_table(
        "umbc-7.1",
        "Hybrid runs, one thread per core",
        configurations=_configurations("umbc-7.1"),
        local_runs={**_HYBRID_RUNS, "nodes": "1,2", "per_node": "1,2", "threads": "1"},
    ),
    _hybrid_table(
        "umbc-7.2",
        "Hybrid runs, two threads per core",
        configurations=_configurations("umbc-7.2"),
        local_runs={**_HYBRID_RUNS, "ranks": "2", "threads": "2"},
        difference_note=f"The measurements use one node. {SOLVE_TIME_NOTE}",
    ),
)
REFERENCES = {"convergence": Reference(note=_note, result=published_for)}
