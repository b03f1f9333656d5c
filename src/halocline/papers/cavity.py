"""Tables and figures of the cavity code of Virginia Tech (Xue and Roy 2020)."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from halocline.papers.paper import Paper, Row
from halocline.papers.published import published
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.growth import grown, grown_as_cut
from halocline.words import duration

# Strategies by the decompositions of the paper. Axis i of the paper, contiguous in Fortran, is the last axis
# of Halocline.
STRATEGIES = {"3d": "3d", "2d": "2d", "1d-k": "1d-x", "1d-i": "1d-z"}
GROWN_SHAPES = {  # functions that return the shape of the grid, by growth type
    1: lambda row: grown(_shape(256), row["ranks"]),
    2: lambda row: grown_as_cut(_shape(256), row["ranks"], STRATEGIES[row["decomposition"]]),
}
DEVICES_PER_NODE = 2
SECONDS_PER_CELL = 1e-7 / published("cavity-table3").values("ssspnt", method="single")[0]  # on one device
FITTED_NOTE = (
    "The predicted time per cell on one device is the published time of Table 3. Two numbers of the "
    "machine file are fitted: one to the baseline without GPUDirect and with decomposition along i (Table "
    "3), and one to the baseline with GPUDirect and decomposition along k (Table 4). For the baseline with "
    "decomposition along i, the published extra time beyond ideal scaling is twice as large in Table 4 as in "
    "Table 3. The messages have the same size in both tables, so the model does not explain this difference."
)


def _shape(n: int) -> tuple[int, ...]:
    return (n,) * 3


def _ijk_text(shape: Any) -> str:
    """Return a shape in the order of the axes i, j and k of the paper, as text."""
    return " x ".join(map(str, reversed(shape)))


def _growth_configurations(growth: int) -> list[Row]:
    """Return the configurations of Table 1 or 2 (growth type 1 or 2), with options of the prediction."""
    return [
        {
            **row,
            **{"n": 256, "devices": row["ranks"], "growth": growth},
            "strategy": STRATEGIES[row["decomposition"]],
            **_exchange_options("v3"),
            "nodes": max(1, row["ranks"] // DEVICES_PER_NODE),
            "ranks_per_node": min(DEVICES_PER_NODE, row["ranks"]),
            "shape": (row["n_k"], row["n_j"], row["n_i"]),
        }
        for row in published(f"cavity-table{growth}").rows
    ]


def _exchange_options(version: str, gpudirect: bool = False) -> Row:
    """Return the options of the exchange of a code version (Section 4.6), with MPI also within a node."""
    communication = COMMUNICATIONS[version]
    methods = "gpu_aware,mpi" if gpudirect else "mpi"
    return {
        **{"halo": communication.halo, "packing": communication.packing, "overlap": communication.overlap},
        "methods": methods,
    }


def _version_configurations(name: str) -> list[Row]:
    """Return the configurations of the code versions on one device and on two devices."""
    (single,) = published(name).values("ssspnt", method="single")
    configurations = []
    for row in published(name).rows:
        version = "v3" if row["method"] == "single" else row["method"]
        gpudirect = row["gpudirect"] == "yes"
        configurations.append(
            {
                **{"n": 256, "nodes": 1, "devices": row["devices"], "ranks_per_node": row["devices"]},
                "version": row["method"] + ", GPUDirect" * gpudirect,
                "cut": " x ".join(str(row[f"parts_{axis}"]) for axis in "ijk"),
                "strategy": "1d-z" if row["parts_i"] > 1 else "1d-x",
                "shape": (row["n_k"], row["n_j"], row["n_i"]),
                **{"ssspnt": row["ssspnt"], "single": single},
                **_exchange_options(version, gpudirect),
            }
        )
    return configurations


def _efficiency_to_single(value: float, first: float, row: Row) -> str:
    """Return the efficiency relative to the published value of one device, as text."""
    return f" ({value / row['single'] / row['devices']:.1%})"


def _efficiency(value: float, first: float, row: Row) -> str:
    """Return the efficiency relative to the first value of the row, as text."""
    return f" ({value / first / row['devices']:.1%})"


_study = partial(
    Paper,
    problem="cavity",
    # The code of the paper takes forward Euler steps on all grids (Section 2). It writes no residuals during
    # timing (Section 4.2).
    options={"steps": 102, "settings": ("stages=1", "watch=1e6")},
    local_runs={"n": "64", "ranks": "1,2", "threads": "1"},
)
_RANKS = {"ranks": "1,2", "threads": "1"}
_STRONG, _WEAK = {"study": "strong", "n": "64"}, {"study": "weak", "n": "32", "growth": "2"}
# Two ranks with one subdomain each cannot have every decomposition. Therefore each rank has several
# subdomains, which also exchange messages by MPI.
_SUBDOMAINS = {**_RANKS, "subdomains_per_rank": 4, "communication": "v3"}
_ALL_DECOMPOSITIONS = {**_SUBDOMAINS, "decomposition": "1d-x,1d-z,2d,3d"}
_VERSIONS = {**_RANKS, "communication": "baseline,v3", "gpudirect": "off,on", "decomposition": "1d-x,1d-z"}
_NODE_RUNS = {"nodes": "1,2,4,8,16", "per_node": "1,2,4,8,14,28", "threads": "1", "decomposition": "3d"}
_LIBRARIES = {"communication": "v2,v3", "gpudirect": "off,on", "decomposition": "3d"}
AXIS_NOTE = (
    "1d-x divides the axis with the longest stride (k in the paper), and 1d-z divides the contiguous axis "
    "(i in the paper)."
)
SUBDOMAIN_NOTE = f"Each rank has four subdomains, but counts as one core. {AXIS_NOTE}"
CPU_NOTE = (
    "The measurements use cores by default, and devices with --device. On cores, MPI does not access device "
    "memory."
)
JOIN_RESULTS = (
    "`halocline study report NAME=FILE ...` joins the results of several machines. The option --json of a "
    "study writes such a file."
)


def _strong_and_weak(options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the options for runs of strong scaling, and of weak scaling with growth type 2 (Section 4.3)."""
    return {**options, **_STRONG}, {**options, **_WEAK}


_SSSPNT: dict[str, Any] = {  # options of tables that show the ssspnt of all devices together
    "machine": "newriver",
    "device_time": SECONDS_PER_CELL,
    "scale": lambda seconds, row: 1e-7 * prod(row["shape"]) / seconds,
    "format_value": "{:.1f}".format,
    "comparison_text": _efficiency,
    "column_key": "devices",
    "unit": "ssspnt of all devices together",
}
_ALL_GROWTHS = [row for growth in (1, 2) for row in _growth_configurations(growth)]
PAPERS = (
    *(
        _study(
            f"cavity-table{growth}",
            f"Growth type {growth}",
            "Number of cells along each axis of the grid, by decomposition and number of processors.",
            "weak",
            local_runs={**_RANKS, "n": "24", "growth": f"{growth}", "decomposition": "1d-x,1d-z,2d,3d"},
            difference_note=AXIS_NOTE,
            value_key="shape",
            configurations=_growth_configurations(growth),
            formula=GROWN_SHAPES[growth],
            row_key="decomposition",
            column_key="ranks",
            table_key="table",
            format_value=_ijk_text,
            unit="cells, i x j x k",
        )
        for growth in (1, 2)
    ),
    *(
        _study(
            f"cavity-table{number}",
            f"ssspnt, {scaling} scaling",
            f"The problem has {problem_size}. Published and predicted values are the ssspnt of all devices "
            f"together. Measured values are divided by the number of cores or devices. {FITTED_NOTE}",
            scaling,
            local_runs={**_VERSIONS, **study_options},
            difference_note=f"{AXIS_NOTE} {CPU_NOTE}",
            configurations=_version_configurations(f"cavity-table{number}"),
            value_key="ssspnt",
            **{**_SSSPNT, "row_key": "version", "column_key": "cut"}
            | {"comparison_text": _efficiency_to_single},
        )
        for number, scaling, problem_size, study_options in (
            (3, "strong", "256³ cells on two devices", _STRONG),
            (4, "weak", "256³ cells per device", _WEAK),
        )
    ),
    _study(
        "cavity-fig5",
        "Ranks per node",
        "Time of an iteration by number of ranks per node. The prediction is for 32 ranks on the CPUs of "
        "NewRiver.",
        "strong",
        local_runs=_strong_and_weak(_NODE_RUNS),
        difference_note="Groups of ranks on one host represent the nodes, and exchange messages by MPI in "
        "the memory of the host.",
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
                **_exchange_options("v3"),
            }
            for scaling, shape in (("strong", _shape(256)), ("weak", grown(_shape(256), 32)))
            for per_node in (2, 4, 8, 16)
        ],
        row_key="ranks",
        column_key="ranks_per_node",
        table_key="scaling",
        format_value=duration,
        unit="seconds per iteration",
    ),
    _study(
        "cavity-fig10",
        "Growth types 1 and 2",
        "ssspnt and efficiency in weak scaling, by growth type and decomposition.",
        "weak",
        local_runs={**_ALL_DECOMPOSITIONS, "n": "24", "growth": "1,2"},
        difference_note=SUBDOMAIN_NOTE,
        configurations=_ALL_GROWTHS,
        row_key="decomposition",
        table_key="growth",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig11",
        "MPI libraries, strong scaling",
        "Code versions 2 and 3 with each MPI library of --mpis. The predictions contain no costs of MPI "
        "libraries.",
        "strong",
        local_runs={**_RANKS, **_STRONG, **_LIBRARIES},
        difference_note=CPU_NOTE,
        configurations=[
            {**row, "shape": _shape(256)} for row in _growth_configurations(2) if row["decomposition"] == "3d"
        ],
        row_key="decomposition",
        **_SSSPNT,
    ),
    _study(
        "cavity-fig12",
        "MPI libraries, weak scaling",
        "Code versions 2 and 3 with each MPI library of --mpis, for growth type 2. The predictions "
        "contain no costs of MPI libraries. The text of the paper states no numbers.",
        "weak",
        local_runs={**_RANKS, **_WEAK, **_LIBRARIES},
        difference_note="According to the caption, the figure shows decompositions along three axes. "
        f"According to the text, it shows several kinds of decomposition (Section 4.6.2). {CPU_NOTE}",
        configurations=[row for row in _growth_configurations(2) if row["decomposition"] == "3d"],
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
            difference_note=note,
        )
        for number, title, about, study_options, note in (
            (
                4,
                "Decompositions on CPUs",
                "Strong and weak scaling on CPUs by decomposition.",
                _ALL_DECOMPOSITIONS,
                SUBDOMAIN_NOTE,
            ),
            (
                6,
                "CPUs of several platforms",
                f"Strong and weak scaling on the CPUs of several platforms. {JOIN_RESULTS}",
                {**_SUBDOMAINS, "decomposition": "3d"},
                f"The measurements are only for this machine. {SUBDOMAIN_NOTE}",
            ),
            (
                8,
                "Decompositions on devices",
                "Strong and weak scaling on devices by decomposition.",
                _ALL_DECOMPOSITIONS,
                f"{SUBDOMAIN_NOTE} {CPU_NOTE}",
            ),
            (
                9,
                "Devices of several platforms",
                f"Strong and weak scaling on the devices of several platforms. {JOIN_RESULTS}",
                {**_SUBDOMAINS, "decomposition": "3d"},
                f"The measurements are only for this machine. {SUBDOMAIN_NOTE} {CPU_NOTE}",
            ),
            (
                13,
                "Overlap",
                "Runs with overlap of computation and communication, compared with runs without overlap. "
                "There is no prediction, because messages in the model always make progress. In the paper, "
                "messages make no progress before MPI_Waitall, and runs with overlap are 20 to 30 % slower.",
                {**_SUBDOMAINS, "communication": "v3,overlap", "decomposition": "3d"},
                "In Halocline, MPI makes progress between patches, as in the variant of the paper with "
                f"MPI_Testall. {SUBDOMAIN_NOTE}",
            ),
        )
    ),
    _study(
        "cavity-fig7",
        "Code versions",
        "Weak scaling of the code versions, by decomposition.",
        "weak",
        local_runs={
            **_SUBDOMAINS,
            **_WEAK,
            "n": "24",
            "communication": "baseline,v1,v2,v3",
            "decomposition": "1d-x,2d,3d",
        },
        difference_note=f"{SUBDOMAIN_NOTE} {CPU_NOTE}",
    ),
)
