"""The buoyancy-driven cavity of Virginia Tech: growth, ssspnt, ranks of a node, MPI libraries."""

from __future__ import annotations

from typing import Any

from halocline.study.papers import Paper, Row
from halocline.study.reporting.published import published


def _ssspnt(name: str) -> list[Row]:
    """By version, and how the grid is cut over two devices."""
    rows = []
    for row in published(name).rows:
        cut = "x".join(str(row[f"parts_{axis}"]) for axis in "ijk")
        direct = ", GPUDirect" if row["gpudirect"] == "yes" else ""
        rows.append({**row, "n": 256, "version": f"{row['method']}{direct}", "cut": cut})
    return rows


def _study(name: str, title: str, about: str, study: str, **more: Any) -> Paper:
    return Paper(
        *(f"cavity-{name}", title, about, study, "cavity"),
        **{"options": {"steps": 20}, "here": {"n": "32", "ranks": "1,2", "threads": "1"}, **more},
    )


_GROWTH: dict[str, Any] = {"rows": "decomposition", "columns": "ranks", "value": "n_i", "text": str}
_SSSPNT: dict[str, Any] = {"rows": "version", "columns": "cut", "value": "ssspnt", "text": str}
PAPERS = (
    *(
        _study(
            *(f"table{kind}", f"Growth {kind}", "Cells of the grid by decomposition and processors.", "weak"),
            here={"n": "24", "ranks": "1,2", "threads": "1", "growth": kind},
            places=[{**row, "n": 256, "nodes": 1} for row in published(f"cavity-table{kind}").rows],
            **_GROWTH,
        )
        for kind in (1, 2)
    ),
    _study(
        "table3",
        "ssspnt, strong",
        "256³ cells on two devices.",
        "strong",
        places=_ssspnt("cavity-table3"),
        **_SSSPNT,
    ),
    _study(
        "table4", "ssspnt, weak", "256³ cells a device.", "weak", places=_ssspnt("cavity-table4"), **_SSSPNT
    ),
    _study(
        "fig5",
        "Ranks of a node",
        "Ranks of a node varied at a fixed number.",
        "nodes",
        here={"n": "32", "ranks": "2"},
    ),
    _study(
        "fig10",
        "Growth 1 and 2",
        "Weak scaling by growth.",
        "weak",
        here={"n": "24", "ranks": "1,2", "growth": 2},
    ),
    _study("fig11", "MPI libraries, strong", "Open MPI, MVAPICH2 and MVAPICH2-GDR.", "libraries"),
    _study("fig12", "MPI libraries, weak", "Open MPI, MVAPICH2 and MVAPICH2-GDR.", "libraries"),
)
