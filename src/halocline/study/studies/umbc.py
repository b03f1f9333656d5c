"""UMBC HPCF-2018-10: conjugate gradients for the Poisson problem on clusters (Arora et al. 2018)."""

from __future__ import annotations

from halocline.study.papers import Paper, Row
from halocline.study.reporting.published import published
from halocline.words import clock, counted

NETWORKS = {  # bytes a second and seconds; latencies are round figures
    "Omni-Path": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "EDR InfiniBand": {"bandwidth": 1.25e10, "latency": 1.0e-6},
    "10 Gb Ethernet": {"bandwidth": 1.25e9, "latency": 2.0e-5},
}


def iterations(n: int) -> float:
    """That the paper counts for N x N points, or in between as many as they grow with N."""
    known = dict(zip(*(published("umbc-3.1").values(name) for name in ("n", "iterations")), strict=True))
    return float(known.get(n) or 1.57 * n)


def _cores(row: Row) -> str:
    """A column of Table 5.1."""
    each, most = (
        row["ranks_per_node"],
        max(published("umbc-5.1").values("ranks_per_node", machine=row["machine"])),
    )
    cores = "1 core" if each == 1 else "all cores" if each == most else f"{each} of {most} cores"
    return f"{counted(row['nodes'], 'node')}\n{cores}"


def _grid(name: str, what: str, study: str = "strong", **more: object) -> Paper:
    """Processes of a node in rows, nodes in columns."""
    return Paper(
        *(f"umbc-{name}", what, "Nodes and processes per node varied, for each N.", study, "poisson"),
        **{  # type: ignore[arg-type]
            "options": {"method": "cg"},
            "here": {"n": "256,512", "ranks": "1,2", "threads": "1"},
            "machine": "stampede2-skx",
            "sizes": (4096,),
            "passes": iterations,
            "value": "seconds",
            "published_text": clock,
            **more,
        },
    )


_HYBRID = {"rows": "ranks_per_node", "here": {"n": "512", "ranks": "2", "threads": "1"}}
PAPERS = (
    Paper(
        "umbc-3.1",
        "Convergence",
        "Finer and finer meshes on one core, and on 1024 cores for the largest.",
        *("convergence", "poisson"),
        options={"method": "cg"},
        here={"n": "256,512,1024", "ranks": "1", "threads": "1"},
        machine="stampede2-skx",
        places=[
            {**row, "threads": 1, "on": counted(row["ranks"], "rank")} for row in published("umbc-3.1").rows
        ],
        passes=iterations,
        rows="n",
        columns="on",
        by="mesh",
    ),
    _grid("4.1", "Strong scaling, threads bound close"),
    _grid("4.2", "Strong scaling, threads bound spread", "affinity"),
    _grid("4.3", "Strong scaling, threads bound by KMP scatter", "affinity"),
    _grid(
        *("5.1", "Generations of machines"),
        places=[{**row, "threads": 1, "cores": _cores(row)} for row in published("umbc-5.1").rows],
        where=lambda row: row["machine"] == "Stampede2",
        rows="machine",
        columns="cores",
        compared=lambda seconds, first, row: f"  ({first / seconds + 1e-9:.2f})",
    ),
    *(
        _grid(f"6.{number}", f"Networks: {name}", network=network)
        for number, (name, network) in enumerate(NETWORKS.items(), 1)
    ),
    _grid("7.1", "Hybrid runs, one thread a core", "hybrid", **_HYBRID),
    _grid("7.2", "Hybrid runs, two threads a core", "hybrid", **_HYBRID),
)
