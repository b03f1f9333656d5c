"""The buoyancy-driven cavity of Virginia Tech: growth, ssspnt, ranks of a node, MPI libraries."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from halocline.papers.paper import Paper, Row
from halocline.papers.published import published
from halocline.plan.growth import grown, grown_as_cut
from halocline.words import duration

CUTS = {"3d": "3d", "2d": "2d", "1d-k": "1d-x", "1d-i": "1d-z"}  # i, contiguous in Fortran, is our last axis
OURS = {1: lambda row: grown(_shape(256), row["ranks"]), 2: lambda row: grown_as_cut(_shape(256), *_cut(row))}
OF_A_NODE = 2  # devices
ON_ONE = 1e-7 / published("cavity-table3").values("ssspnt", method="single")[0]  # seconds of a cell
PLACE = "Puhti, with two of its V100 a node, in the place of the paper's clusters"


def _shape(n: int) -> tuple[int, ...]:
    return (n,) * 3


def _cut(row: Row) -> tuple[int, str]:
    return row["ranks"], CUTS[row["decomposition"]]


def _ijk(shape: Any) -> str:
    return " x ".join(map(str, reversed(shape)))


def _growth(kind: int) -> list[Row]:
    """Return the places of a table, with the layout on devices and the options of a prediction."""
    return [
        {
            **row,
            **{"n": 256, "devices": row["ranks"], "growth": kind, "strategy": CUTS[row["decomposition"]]},
            "nodes": max(1, row["ranks"] // OF_A_NODE),
            "ranks_per_node": min(OF_A_NODE, row["ranks"]),
            "shape": (row["n_k"], row["n_j"], row["n_i"]),
        }
        for row in published(f"cavity-table{kind}").rows
    ]


def _versions(name: str) -> list[Row]:
    """Return the places of the versions that the model knows: all packed, on one device and on two."""
    return [
        {
            **{"n": 256, "nodes": 1, "devices": row["devices"], "ranks_per_node": row["devices"]},
            **{"version": "v3", "cut": " x ".join(str(row[f"parts_{axis}"]) for axis in "ijk")},
            "strategy": "1d-z" if row["parts_i"] > 1 else "1d-x",
            "shape": (row["n_k"], row["n_j"], row["n_i"]),
        }
        for row in published(name).rows
        if row["method"] == "single" or (row["method"], row["gpudirect"]) == ("v3", "yes")
    ]


def _efficiency(value: float, first: float, row: Row) -> str:
    return f" ({value / first / row['devices']:.1%})"


_study = partial(
    Paper,
    problem="cavity",
    # the paper's code takes forward Euler steps (Section 2), whatever the grid
    options={"steps": 20, "settings": ("stages=1",)},
    here={"n": "32", "ranks": "1,2", "threads": "1"},
)


_SSSPNT: dict[str, Any] = {  # of all devices together, as the tables have it
    "machine": "puhti",
    "on_one": ON_ONE,
    "scale": lambda seconds, row: 1e-7 * prod(row["shape"]) / seconds,
    "text": "{:.1f}".format,
    "compared": _efficiency,
    "columns": "devices",
    "unit": "ssspnt of all devices together",
}
_WEAK = [row for kind in (1, 2) for row in _growth(kind)]
PAPERS = (
    *(
        _study(
            f"cavity-table{kind}",
            f"Growth {kind}",
            "Cells of the grid by decomposition and processors.",
            "weak",
            here={"n": "24", "ranks": "1,2", "threads": "1", "growth": kind},
            value="shape",
            places=_growth(kind),
            formula=OURS[kind],
            rows="decomposition",
            columns="ranks",
            by="table",
            text=_ijk,
            unit="cells, i x j x k",
        )
        for kind in (1, 2)
    ),
    *(
        _study(
            f"cavity-table{number}",
            f"ssspnt, {scaling}",
            f"{what}; ssspnt of all together, measured here of each. {PLACE}.",
            scaling,
            places=_versions(f"cavity-table{number}"),
            **{**_SSSPNT, "rows": "version", "columns": "cut"},
        )
        for number, scaling, what in (
            (3, "strong", "256³ cells on two devices"),
            (4, "weak", "256³ a device"),
        )
    ),
    _study(
        "cavity-fig5",
        "Ranks of a node",
        "Ranks of a node varied at a fixed number; Stampede2 in the place of the paper's clusters.",
        "nodes",
        here={"n": "32", "ranks": "2"},
        machine="stampede2-skx",
        places=[
            {
                **{"n": 256, "ranks": 192, "ranks_per_node": each, "nodes": 192 // each, "scaling": scaling},
                **{"shape": shape, "strategy": "3d"},
            }
            for scaling, shape in (("strong", _shape(256)), ("weak", grown(_shape(256), 192)))
            for each in (2, 4, 8, 16, 24, 48)
        ],
        rows="ranks",
        columns="ranks_per_node",
        by="scaling",
        text=duration,
        unit="seconds of an iteration",
    ),
    _study(
        "cavity-fig10",
        "Growth 1 and 2",
        f"Weak scaling by growth and decomposition; ssspnt and efficiency. {PLACE}.",
        "weak",
        here={"n": "24", "ranks": "1,2", "growth": 2},
        places=_WEAK,
        rows="decomposition",
        by="growth",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig11",
        "MPI libraries, strong",
        f"Predicted without what a library adds. {PLACE}.",
        "libraries",
        places=[{**row, "shape": _shape(256)} for row in _growth(2) if row["decomposition"] == "3d"],
        rows="decomposition",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig12",
        "MPI libraries, weak",
        f"Growth 2, predicted without what a library adds. {PLACE}.",
        "libraries",
        places=[row for row in _growth(2) if row["decomposition"] == "3d"],
        rows="decomposition",
        **_SSSPNT,
    ),
)
