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

NETWORKS = {  # bandwidth in B/s and latency in s; latencies are round numbers
    "Omni-Path": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "EDR InfiniBand": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "10 Gb Ethernet": {"bandwidth": 1.25e9, "latency": 2.0e-5},
}


def poisson_convergence() -> dict[int, dict[str, Any]]:
    """Return the published convergence study, by N."""
    return {row["n"]: row for row in published("umbc-3.1").rows}


def iterations(n: int) -> float:
    """Return the published number of iterations for N x N points.

    For other N, the result is an estimate that grows with N.
    """
    row = poisson_convergence().get(n)
    return float(row["iterations"]) if row else 1.57 * n


def published_for(measurement: Measurement) -> dict[str, Any] | None:
    """Return the published result of the same problem with the same tolerance; None if there is none."""
    same = measurement["case"] == "poisson" and measurement["dim"] == 2 and measurement["rtol"] == 1e-6
    return poisson_convergence().get(measurement["n"]) if same and measurement["converged"] else None


def _note(group: Group) -> str:
    if not any(map(published_for, group.members)):
        return ""
    return "paper: UMBC HPCF-2018-10, Table 3.1; one core of a Skylake 8160 up to N = 16384, 1024 beyond."


def _cores(row: Row) -> str:
    """Return the head of the column of Table 5.1 that contains a row."""
    ranks = row["ranks_per_node"]
    most = max(published("umbc-5.1").values("ranks_per_node", machine=row["machine"]))
    cores = "1 core" if ranks == 1 else "all cores" if ranks == most else f"{ranks} of {most} cores"
    return f"{counted(row['nodes'], 'node')}\n{cores}"


OF_THE_SOLVE = "Times here are of the solve alone; those of the paper also have the start of the program."
GROUPS = f"Nodes here are groups of ranks of one host, which exchange by MPI in its memory. {OF_THE_SOLVE}"
# This is the part of Table 4.1 for which this host has enough cores. The grid of the paper is cut along one
# axis, and MPI transfers all messages (Section 2).
_GRID = {
    **{"n": "512,1024", "nodes": "1,2,4,8,16", "per_node": "1,2,4,8,16,32", "threads": "1"},
    **{"decomposition": "1d", "methods": "mpi", "affinity": "close"},
}


def _cut(name: str) -> list[Row]:
    """Return the configurations of a table, with the grid cut along one axis (Section 2)."""
    return [{**row, "strategy": "1d"} for row in published(name).rows]


# rows: processes of a node; columns: nodes
_grid = partial(
    Paper,
    about="Nodes and processes per node varied, for each N.",
    study="strong",
    problem="poisson",
    options={"method": "cg"},
    local_runs=_GRID,
    difference_note=GROUPS,
    machine="stampede2-skx",
    sizes=(4096,),
    pass_count=iterations,
    value_key="seconds",
    format_published=clock,
)
_hybrid = partial(
    _grid,
    about="Processes times threads of a node varied, on more and more nodes.",
    study="hybrid",
)
_HYBRID = {"n": "512,1024", "decomposition": "1d", "methods": "mpi"}
PAPERS = (
    Paper(
        "umbc-3.1",
        "Convergence",
        "Finer and finer meshes on one core, and on 1024 cores for the largest.",
        "convergence",
        "poisson",
        options={"method": "cg"},
        local_runs={"n": "512,1024,2048", "ranks": "1", "threads": "1"},
        difference_note=OF_THE_SOLVE,
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
        "Mesh plots of the numerical solution and of its error (--pictures, --html).",
        problem="poisson",
        options={"method": "cg"},
        facts=solution_and_error,
    ),
    _grid("umbc-4.1", "Strong scaling, threads bound close", configurations=_cut("umbc-4.1")),
    _grid(
        "umbc-4.2",
        "Strong scaling, threads bound spread",
        configurations=_cut("umbc-4.2"),
        local_runs={**_GRID, "affinity": "close,spread"},
    ),
    _grid(
        "umbc-4.3",
        "Strong scaling, threads bound by KMP scatter",
        configurations=_cut("umbc-4.3"),
        local_runs={**_GRID, "affinity": "close,scatter"},
        difference_note=f"The OpenMP library here may not read KMP_AFFINITY (libgomp does not). {GROUPS}",
    ),
    _grid(
        "umbc-5.1",
        "Generations of machines",
        about="One core, all cores of a node, and both on 32 nodes, of seven machines.",
        configurations=[{**row, "threads": 1, "cores": _cores(row)} for row in published("umbc-5.1").rows],
        is_predicted=lambda row: row["machine"] == "Stampede2",
        row_key="machine",
        column_key="cores",
        comparison_text=lambda seconds, first, row: f"  ({first / seconds + 1e-9:.2f})",
    ),
    *(
        _grid(
            f"umbc-6.{number}",
            f"Networks: {name}",
            configurations=_cut(f"umbc-6.{number}"),
            machine="dell-zenith",
            network=network,
            difference_note=f"One host has no network: these are the runs of Table 4.1. {GROUPS}",
        )
        for number, (name, network) in enumerate(NETWORKS.items(), 1)
    ),
    _hybrid(
        "umbc-7.1",
        "Hybrid runs, one thread a core",
        configurations=_cut("umbc-7.1"),
        local_runs={**_HYBRID, "nodes": "1,2", "per_node": "1,2", "threads": "1"},
    ),
    _hybrid(
        "umbc-7.2",
        "Hybrid runs, two threads a core",
        configurations=_cut("umbc-7.2"),
        local_runs={**_HYBRID, "ranks": "2", "threads": "2"},
        difference_note=f"Measured on one node. {OF_THE_SOLVE}",
    ),
)
REFERENCES = {"convergence": Reference(note=_note, result=published_for)}
