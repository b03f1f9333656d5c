"""The buoyancy-driven cavity of Virginia Tech: growth, ssspnt, ranks per node, MPI libraries."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from halocline.papers.paper import Paper, Row
from halocline.papers.published import published
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.growth import grown, grown_as_cut
from halocline.words import duration

CUTS = {"3d": "3d", "2d": "2d", "1d-k": "1d-x", "1d-i": "1d-z"}  # i, contiguous in Fortran, is our last axis
OURS = {1: lambda row: grown(_shape(256), row["ranks"]), 2: lambda row: grown_as_cut(_shape(256), *_cut(row))}
OF_A_NODE = 2  # devices
ON_ONE = 1e-7 / published("cavity-table3").values("ssspnt", method="single")[0]  # seconds per cell and step
FITTED = (
    "The pace of one device is that of Table 3. Two numbers of the predicted machine are fitted: to the "
    "baseline without GPUDirect, cut along i, of Table 3, and to the baseline with GPUDirect, cut along k, "
    "of Table 4. Cut along i, the baseline loses "
    "twice as much time in Table 4 as in Table 3, though its messages are the same; the model does not."
)


def _shape(n: int) -> tuple[int, ...]:
    return (n,) * 3


def _cut(row: Row) -> tuple[int, str]:
    return row["ranks"], CUTS[row["decomposition"]]


def _ijk(shape: Any) -> str:
    return " x ".join(map(str, reversed(shape)))


def _growth(kind: int) -> list[Row]:
    """Return the configurations of a table on weak scaling, with their devices and prediction options."""
    return [
        {
            **row,
            **{"n": 256, "devices": row["ranks"], "growth": kind, "strategy": CUTS[row["decomposition"]]},
            **_as_run("v3"),
            "nodes": max(1, row["ranks"] // OF_A_NODE),
            "ranks_per_node": min(OF_A_NODE, row["ranks"]),
            "shape": (row["n_k"], row["n_j"], row["n_i"]),
        }
        for row in published(f"cavity-table{kind}").rows
    ]


def _as_run(version: str, gpudirect: bool = False) -> Row:
    """Return options for the halo exchange of a code version (Section 4.6), with MPI also within a node."""
    communication = COMMUNICATIONS[version]
    methods = "gpu_aware,mpi" if gpudirect else "mpi"
    return {
        **{"halo": communication.halo, "packing": communication.packing, "overlap": communication.overlap},
        "methods": methods,
    }


def _versions(name: str) -> list[Row]:
    """Return the configurations of the versions on one device and on two, as the model requires them."""
    (one,) = published(name).values("ssspnt", method="single")
    places = []
    for row in published(name).rows:
        version, aware = "v3" if row["method"] == "single" else row["method"], row["gpudirect"] == "yes"
        places.append(
            {
                **{"n": 256, "nodes": 1, "devices": row["devices"], "ranks_per_node": row["devices"]},
                "version": row["method"] + ", GPUDirect" * aware,
                "cut": " x ".join(str(row[f"parts_{axis}"]) for axis in "ijk"),
                "strategy": "1d-z" if row["parts_i"] > 1 else "1d-x",
                "shape": (row["n_k"], row["n_j"], row["n_i"]),
                **{"ssspnt": row["ssspnt"], "single": one},
                **_as_run(version, aware),
            }
        )
    return places


def _of_single(value: float, first: float, row: Row) -> str:
    return f" ({value / row['single'] / row['devices']:.1%})"


def _efficiency(value: float, first: float, row: Row) -> str:
    return f" ({value / first / row['devices']:.1%})"


_study = partial(
    Paper,
    problem="cavity",
    # The code of the paper takes forward Euler steps on all grids (Section 2). It writes no residuals during
    # timing (Section 4.2).
    options={"steps": 102, "settings": ("stages=1", "watch=1e6")},
    local_runs={"n": "64", "ranks": "1,2", "threads": "1"},
)
_HERE = {"ranks": "1,2", "threads": "1"}
_STRONG, _WEAK = {"study": "strong", "n": "64"}, {"study": "weak", "n": "32", "growth": "2"}
# Two cores are too few for all cuts. Therefore a rank has several subdomains, which also exchange by MPI.
_CUT = {**_HERE, "subdomains_per_rank": 4, "communication": "v3"}
_ALL_CUTS = {**_CUT, "decomposition": "1d-x,1d-z,2d,3d"}
_ON_TWO = {**_HERE, "communication": "baseline,v3", "gpudirect": "off,on", "decomposition": "1d-x,1d-z"}
_OF_NODES = {"nodes": "1,2,4,8,16", "per_node": "1,2,4,8,14,28", "threads": "1", "decomposition": "3d"}
_LIBRARIES = {"communication": "v2,v3", "gpudirect": "off,on", "decomposition": "3d"}
AXES = "1d-x cuts the axis of the longest stride, k of the paper; 1d-z the contiguous one, i."
SUBDOMAINS = f"Each rank has four subdomains, which count as one core. {AXES}"
ON_CPU = "Processors measure what devices would with --device; there MPI takes nothing out of device memory."


def _strong_and_weak(options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the options for runs of strong scaling, and of weak scaling with growth 2 (Section 4.3)."""
    return {**options, **_STRONG}, {**options, **_WEAK}


_SSSPNT: dict[str, Any] = {  # values are the ssspnt of all devices together, as in the tables
    "machine": "newriver",
    "device_time": ON_ONE,
    "scale": lambda seconds, row: 1e-7 * prod(row["shape"]) / seconds,
    "format_value": "{:.1f}".format,
    "comparison_text": _efficiency,
    "column_key": "devices",
    "unit": "ssspnt of all devices together",
}
_GROWN = [row for kind in (1, 2) for row in _growth(kind)]
PAPERS = (
    *(
        _study(
            f"cavity-table{kind}",
            f"Growth {kind}",
            "Cells of the grid by decomposition and processors.",
            "weak",
            local_runs={**_HERE, "n": "24", "growth": f"{kind}", "decomposition": "1d-x,1d-z,2d,3d"},
            difference_note=AXES,
            value_key="shape",
            configurations=_growth(kind),
            formula=OURS[kind],
            row_key="decomposition",
            column_key="ranks",
            table_key="table",
            format_value=_ijk,
            unit="cells, i x j x k",
        )
        for kind in (1, 2)
    ),
    *(
        _study(
            f"cavity-table{number}",
            f"ssspnt, {scaling}",
            f"{problem_size}; ssspnt of all together, measured here of each. {FITTED}",
            scaling,
            local_runs={**_ON_TWO, **study_options},
            difference_note=f"{AXES} {ON_CPU}",
            configurations=_versions(f"cavity-table{number}"),
            value_key="ssspnt",
            **{**_SSSPNT, "row_key": "version", "column_key": "cut", "comparison_text": _of_single},
        )
        for number, scaling, problem_size, study_options in (
            (3, "strong", "256³ cells on two devices", _STRONG),
            (4, "weak", "256³ a device", _WEAK),
        )
    ),
    _study(
        "cavity-fig5",
        "Ranks of a node",
        "Ranks of a node varied; predicted at a fixed number of ranks, for the processors of NewRiver.",
        "strong",
        local_runs=_strong_and_weak(_OF_NODES),
        difference_note="Nodes here are groups of ranks of one host, which exchange by MPI in its memory.",
        machine="newriver-cpu",
        configurations=[
            {
                **{
                    "n": 256,
                    "ranks": 32,
                    "ranks_per_node": per_node,
                    "nodes": 32 // per_node,
                    "scaling": scaling,
                },
                **{"shape": shape, "strategy": "3d", "threads": 1},
                **_as_run("v3"),
            }
            for scaling, shape in (("strong", _shape(256)), ("weak", grown(_shape(256), 32)))
            for per_node in (2, 4, 8, 16)
        ],
        row_key="ranks",
        column_key="ranks_per_node",
        table_key="scaling",
        format_value=duration,
        unit="seconds of an iteration",
    ),
    _study(
        "cavity-fig10",
        "Growth 1 and 2",
        "Weak scaling by growth and decomposition; ssspnt and efficiency.",
        "weak",
        local_runs={**_ALL_CUTS, "n": "24", "growth": "1,2"},
        difference_note=SUBDOMAINS,
        configurations=_GROWN,
        row_key="decomposition",
        table_key="growth",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig11",
        "MPI libraries, strong",
        "Versions 2 and 3 by each MPI of --pythons; predicted without what a library adds.",
        "strong",
        local_runs={**_HERE, **_STRONG, **_LIBRARIES},
        difference_note=ON_CPU,
        configurations=[{**row, "shape": _shape(256)} for row in _growth(2) if row["decomposition"] == "3d"],
        row_key="decomposition",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig12",
        "MPI libraries, weak",
        "The same with growth 2; predicted without what a library adds. The text states no numbers.",
        "weak",
        local_runs={**_HERE, **_WEAK, **_LIBRARIES},
        difference_note="The caption has cuts along three axes, the text several cuts (Section 4.6.2). "
        f"{ON_CPU}",
        configurations=[row for row in _growth(2) if row["decomposition"] == "3d"],
        row_key="decomposition",
        **_SSSPNT,
    ),
    *(
        _study(
            f"cavity-fig{number}",
            title,
            about,
            "strong",
            local_runs=_strong_and_weak(study_options),
            difference_note=differs,
        )
        for number, title, about, study_options, differs in (
            (
                4,
                "Cuts on processors",
                "Strong and weak scaling by the axes that are cut.",
                _ALL_CUTS,
                SUBDOMAINS,
            ),
            (
                6,
                "Processors of platforms",
                "Platforms compared: `halocline study report NAME=FILE ...` joins what each has left by "
                "--json.",
                {**_CUT, "decomposition": "3d"},
                f"This machine alone. {SUBDOMAINS}",
            ),
            (8, "Cuts on devices", "As Fig. 4, on devices.", _ALL_CUTS, f"{SUBDOMAINS} {ON_CPU}"),
            (
                9,
                "Devices of platforms",
                "As Fig. 6, on devices.",
                {**_CUT, "decomposition": "3d"},
                f"This machine alone. {SUBDOMAINS} {ON_CPU}",
            ),
            (
                13,
                "Overlap",
                "Overlap of computing with communication against none. Nothing is predicted: messages of the "
                "model always progress, those of the paper not before MPI_Waitall (20 to 30 % slower).",
                {**_CUT, "communication": "v3,overlap", "decomposition": "3d"},
                "MPI makes progress between patches here, as in the paper's variant with MPI_Testall. "
                f"{SUBDOMAINS}",
            ),
        )
    ),
    _study(
        "cavity-fig7",
        "Versions",
        "Weak scaling of the versions of the code, by the axes that are cut.",
        "weak",
        local_runs={
            **_CUT,
            **_WEAK,
            "n": "24",
            "communication": "baseline,v1,v2,v3",
            "decomposition": "1d-x,2d,3d",
        },
        difference_note=f"{SUBDOMAINS} {ON_CPU}",
    ),
)
