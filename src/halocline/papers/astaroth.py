"""Figures and tables of Astaroth on GPUs (Pekkilä et al. 2022, Section 5, Figs. 10 to 15, and Table B.1).

The model executes plans of the paper's program. The subdomains are in Z-order over the devices of all
ranks, which are numbered consecutively. Each exchange contains the sides and edges of all eight fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.compile.footprint import Footprint
from halocline.compile.schedule import Loop, Operation, Sweep
from halocline.io.table import Table, table_of
from halocline.papers.derived import Derived, Listing
from halocline.papers.paper import Quotient, Row
from halocline.papers.published import published
from halocline.plan.traffic import Traffic
from halocline.study.reporting import quantities as q

if TYPE_CHECKING:
    from halocline.model import StepTime

SIZES = {"small": 256, "medium": 512, "large": 1024}
DEVICE_COUNTS, NODE_COUNTS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16)
DEVICES_PER_NODE = 4
CASE, ORDER = "mhd-benchmark", 6
# design power in watts of a V100, and of the two CPUs of a node
DEVICE_POWER, CPU_POWER = 300, {"Puhti": 2 * 125, "Mahti": 2 * 280}
MEMORY_BANDWIDTH = {"V100": 863, "Xeon Gold 6230": 131}  # in GiB/s (Section 3.1)
BYTES_PER_HALO_CELL = 3 * 8 * 8  # per step: eight numbers of 8 bytes in each of three exchanges
# 1/π of a device, and 1/β of a node: 192 B at 46 GiB/s (Section 5)
SECONDS_PER_CELL, SECONDS_PER_HALO_CELL = 2.2e-9, 3.9e-9
# 1/β of a device within a node, at its NVLink bandwidth (Section 5)
SECONDS_PER_HALO_CELL_WITHIN_NODE = BYTES_PER_HALO_CELL / (270 * 2**30)

# The bandwidth of a network card, in B/s, is fitted to the published efficiency of 43 % for 512³ cells on 64
# devices (Fig. 10). The measured bandwidth is 1.095e10 B/s.
NETWORK = {"bandwidth": 8.3e9}

# -- configurations ------------------------------------------------------------------------------------------


def _configuration(n: int, devices: int, **further_options: Any) -> Row:
    """Return a configuration with subdomains in Z-order over all devices, and GPU-aware MPI."""
    nodes = max(1, devices // DEVICES_PER_NODE)
    layout = {"n": n, "devices": devices, "nodes": nodes, "ranks_per_node": devices // nodes}
    options = {"strategy": "morton", "placement": "trivial", "methods": "self,gpu_aware,mpi"}
    return {**layout, **options, **further_options}


def _nanoseconds(seconds: float, row: Row) -> float:
    """Return a time in nanoseconds per cell of the grid."""
    return 1e9 * seconds / float(prod(row["shape"]))


def _efficiency(value: float, first: float, row: Row) -> str:
    """Return the efficiency relative to the time `first` on one device, as text."""
    return f"  ({first / value / row['devices']:.1%})"


# -- formula -------------------------------------------------------------------------------------------------


@cache
def operations(order: int) -> float:
    """Return the number of operations of the benchmark per cell and step."""
    return float(sum(sweep.flops for sweep in _compile_benchmark(order, "read").pass_sweeps()))


def relative_operations(order: int) -> float:
    """Return the number of operations per cell and step, divided by the number at sixth order."""
    return operations(order) / operations(ORDER)


def _traffic(radius: int, corners: bool) -> Traffic:
    """Return the traffic of sides and edges, and of corners if `corners` is true, in cells."""
    offsets = product((-radius, 0, radius), repeat=3)
    segments = Footprint.from_offsets(o for o in offsets if corners or 0 in o)
    return Traffic.of([(segments, 1)], 3)


def step(row: Row, *, corners: bool = True) -> StepTime:
    """Return the time of a step by Eqs. 4 to 12, with the decomposition of Eq. 5.

    Eqs. 2 and 3 of the paper count all segments of the halo. For orders other than 6, 1/π is scaled by the
    number of operations.
    """
    from halocline.model import step_time

    order = row.get("order", ORDER)
    return step_time(
        (row["n"],) * 3,
        row["nodes"],
        row["ranks_per_node"],
        traffic=_traffic(order // 2, corners),
        per_cell=SECONDS_PER_CELL * (relative_operations(order) if order != ORDER else 1.0),
        per_halo_cell=SECONDS_PER_HALO_CELL,
        per_halo_cell_within=SECONDS_PER_HALO_CELL_WITHIN_NODE,
    )


def _exchange_seconds(row: Row, corners: bool) -> float:
    """Return the time that the formula gives for the exchange in a step, in seconds."""
    time = step(row, corners=corners)
    return max(time.between, time.within)


PARTS: dict[
    str, Callable[[Row], float] | None
] = {  # functions that return the time that the formula gives for a part of a step, in seconds
    "step": lambda row: step(row).seconds,
    "computing": lambda row: step(row).work,
    "exchange": lambda row: _exchange_seconds(row, corners=False),
    "exchange with corners": lambda row: _exchange_seconds(row, corners=True),
    "synchronisation": None,  # not part of the formula
}
STEP, COMPUTING, EXCHANGE, CORNERS, SYNCHRONISATION = PARTS


def formula(row: Row) -> float | None:
    """Return the time that the formula gives for a step or a part of it, in nanoseconds per cell."""
    seconds = PARTS[row.get("part", STEP)]
    return None if seconds is None else 1e9 * seconds(row) / row["n"] ** 3


# -- predictions ---------------------------------------------------------------------------------------------


@cache
def _compile_benchmark(order: int, halo: str) -> Any:
    """Return the schedule of the benchmark, which is the same for grids of all sizes."""
    from halocline.compile.compiler import compile_program
    from halocline.problems.problem import problem_of

    ready = problem_of(CASE, [64], order=order)
    return compile_program(ready.program, ready.grid, halo=halo)


def _schedule(row: Row) -> Any:
    """Return the schedule and the grid shape of a configuration, for a step or a part of it.

    In the schedule of the exchange alone, kernels take no time. The schedule of computation alone has no
    exchanges.
    """
    part = row.get("part", STEP)
    schedule = _compile_benchmark(row.get("order", ORDER), "uniform" if part == CORNERS else "edges")
    changes: dict[str, Any] = {}
    if part == COMPUTING:
        changes = {"exchange": {}}
    elif part in (EXCHANGE, CORNERS):
        changes = {"bytes": 0.0, "flops": 0.0}
    return replace(schedule, operations=_with_changes(schedule.operations, changes)), (row["n"],) * 3


def _with_changes(operations: Sequence[Operation], changes: dict[str, Any]) -> tuple[Operation, ...]:
    """Return the operations of a schedule, with changed attributes of all sweeps."""
    return tuple(
        replace(operation, body=_with_changes(operation.body, changes))
        if isinstance(operation, Loop)
        else replace(operation, **changes)
        if isinstance(operation, Sweep)
        else operation
        for operation in operations
    )


def _device_time(row: Row) -> float | None:
    """Return the time per cell and step on one device, in seconds; None for the parts without computation.

    The time is 2.2 ns at order 6. At other orders, it is scaled by the number of operations.
    """
    if row.get("part") in (EXCHANGE, CORNERS):
        return None
    return SECONDS_PER_CELL * relative_operations(row.get("order") or ORDER)


# -- derived tables ------------------------------------------------------------------------------------------


def ns_on_64_devices(n: int) -> float:
    """Return the time on 64 devices, in nanoseconds per cell and step.

    The time follows from the published time on one device and the published efficiency (Fig. 10).
    """
    (ns_on_one,), (efficiency,) = (
        published("astaroth-fig10").values("ns_per_cell_step", devices=1),
        published("astaroth-fig10").values("efficiency", n=n, devices=64),
    )
    return float(ns_on_one / 64 / efficiency)


def ns_on_node() -> float:
    """Return the published time on one node, in nanoseconds per cell and step (Section 6)."""
    (ns,) = published("astaroth-section6").values("ns_per_cell_step", way="processes, MPI")
    return float(ns)


def _predicted_value(rows: Sequence[Row], **conditions: Any) -> float | None:
    """Return the predicted value of the configuration with these entries; None if there is none."""
    values = (
        row.get("predicted") for row in rows if all(row[name] == value for name, value in conditions.items())
    )
    return next(values, None)


def _ratio_text(numerator: float | None, denominator: float | None) -> str:
    return f"{numerator / denominator:.2f}" if numerator is not None and denominator else ""


def _quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
    """Yield the published and predicted efficiencies on 64 devices, and times on one device and one node."""
    data = published("astaroth-fig10")
    for n in SIZES.values():
        (efficiency,) = data.values("efficiency", n=n, devices=64)
        time_on_one, time_on_64 = (_predicted_value(rows, n=n, devices=devices) for devices in (1, 64))
        if time_on_one is not None and time_on_64 is not None:
            yield f"efficiency for {n}³ cells on 64 devices", efficiency, time_on_one / 64 / time_on_64
    (ns,) = data.values("ns_per_cell_step", devices=1)
    for units, devices, published_ns in (
        ("one device", 1, ns),
        ("one node", DEVICES_PER_NODE, ns_on_node()),
    ):
        predicted = _predicted_value(rows, n=256, devices=devices)
        if predicted is not None:
            description = (
                f"ns per cell and step on {units} (predicted for 256³ cells; published without grid size)"
            )
            yield description, published_ns, predicted


def _formula_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of measured performance relative to the formula (Figs. 10, 11)."""
    rows_on_64 = [row for row in rows if row["devices"] == 64]
    if not rows_on_64:
        return
    yield table_of(
        "Measured performance relative to the formula, 64 devices",
        rows_on_64,
        {
            "cells": lambda row: f"{row['n']}³",
            "measured\nns": lambda row: q.nanoseconds(ns_on_64_devices(row["n"])),
            "formula\nns": lambda row: q.nanoseconds(row["computed"]),
            "share of the formula\nderived": lambda row: (
                f"{row['computed'] / ns_on_64_devices(row['n']):.1%}"
            ),
            "\npublished": lambda row: q.percent(
                *published("astaroth-fig11").values("of_theory", n=row["n"])
            ),
            "limited by": lambda row: step(row).bound,
        },
        note=q.wrap_notes(
            f"1/π = {1e9 * SECONDS_PER_CELL:.1f} ns per cell of a device. 1/β = "
            f"{1e9 * SECONDS_PER_HALO_CELL:.1f} ns per halo cell of a node, because a transfer of "
            f"{BYTES_PER_HALO_CELL} B at 46 GiB/s takes {1e9 * BYTES_PER_HALO_CELL / (46 * 2**30):.3f} ns. Q "
            "is the traffic of a node (Eq. 7). The measured times follow from the efficiencies of Fig. 10."
        ),
    )


def _share_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of predicted shares of the parts of a step, with the published ranges."""
    counts = [count for count in DEVICE_COUNTS if _predicted_value(rows, part=STEP, devices=count)]

    def time(part: str, devices: int) -> float:
        return _predicted_value(rows, part=part, devices=devices) or 0.0

    def longer(devices: int) -> float:
        return max(time(COMPUTING, devices), time(EXCHANGE, devices))

    if not counts:
        return
    columns: dict[str, Callable[[int], str]] = {
        "devices": lambda devices: f"{devices}",
        "exchange /\ncomputation": lambda devices: _ratio_text(
            time(EXCHANGE, devices), time(COMPUTING, devices)
        ),
        "exchange / exchange\non 4 devices": lambda devices: _ratio_text(
            time(EXCHANGE, devices), time(EXCHANGE, DEVICES_PER_NODE)
        ),
        "excess of the step\nover the longer part": lambda devices: (
            f"{time(STEP, devices) / longer(devices) - 1:+.1%}"
        ),
        "share of\ncorners": lambda devices: (
            f"{(time(CORNERS, devices) - time(EXCHANGE, devices)) / time(STEP, devices):.2%}"
        ),
    }
    shares = {
        name: "{:.3g}% to {:.3g}%".format(
            *(100 * s for s in published("astaroth-fig12").values("share", quantity=name))
        )
        for name in ("overhead", "corners", "synchronisation")
    }
    predicted = table_of("Shares, predicted", counts, columns, left=0)
    published_shares = (
        *("paper", "below 1 for 1 to 4 devices", "constant for 4 to 16 devices"),
        *(shares["overhead"], shares["corners"]),
    )
    yield replace(
        predicted,
        rows=(*predicted.rows, published_shares),
        muted=(len(predicted.rows),),
        note=q.wrap_notes(
            "Published ranges are rough and cover all numbers of devices. According to the paper, the "
            "exchange is hidden on up to 4 devices, and its time is constant from 4 to 16 devices. "
            f"Synchronisation takes {shares['synchronisation']} of a step in the paper. The model has no "
            "barrier, but `study parts` measures one. A predicted step can be shorter than its exchange "
            "alone, because the order of the messages on a link depends on the computation."
        ),
    )


def _order_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of the paper's statements on orders, with results of the formula and of the model."""

    def first_bound_count(order: int) -> str:
        limits = [
            count for count in DEVICE_COUNTS if step(_configuration(256, count, order=order)).bound != "work"
        ]
        return f"{limits[0]} devices" if limits else "none"

    def efficiency(order: int, key: str) -> str:
        time_on_one, time_on_32 = (
            next(row.get(key) for row in rows if (row["order"], row["devices"]) == (order, count))
            for count in (1, 32)
        )
        if time_on_one is None or time_on_32 is None:
            return ""
        return q.percent(time_on_one / 32 / time_on_32)

    if {row["devices"] for row in rows} >= {1, 32}:
        yield table_of(
            "Statements",
            sorted({row["order"] for row in rows}),
            {
                "order": lambda order: f"{order}",
                "operations per\ncell and step": lambda order: f"{operations(order):,.0f}",
                "limited by exchange\nfrom (formula)": first_bound_count,
                "\npublished": lambda order: "8 devices" if order == 8 else "",
                "efficiency on 32\ndevices (formula)": lambda order: efficiency(order, "computed"),
                "\npredicted": lambda order: efficiency(order, "predicted"),
                "\npublished ": lambda order: "relatively high" if order == 2 else "",
            },
            note=q.wrap_notes(
                f"The time on one device is {1e9 * SECONDS_PER_CELL:.1f} ns at sixth order, as published. At "
                "other orders, it is proportional to the number of operations."
            ),
        )


SPEEDUP_COLUMNS: dict[str, Callable[[Any], str]] = {  # columns of published speed-ups
    "size": lambda entry: entry[0] or "any",
    "nodes": lambda entry: f"{entry[1]}",
    "speed-up": lambda entry: f"{entry[2]} to {entry[3]}",
}


def _speedups() -> list[tuple[str | None, int, float, float]]:
    """Return published speed-ups over the Pencil Code on both clusters: size, nodes, minimum, maximum."""
    rows = published("astaroth-fig15a").rows
    keys = dict.fromkeys((row["size"], row["nodes"]) for row in rows)
    clusters = "Puhti and Mahti"
    return [
        (
            size,
            nodes,
            *published("astaroth-fig15a").values("speedup", size=size, nodes=nodes, machine=clusters),
        )
        for size, nodes in keys
    ]


def _pencil_code_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the times of the Pencil Code, derived from speed-ups, with predicted times of Astaroth."""

    def time(entry: Any) -> float:
        return ns_on_node() if entry[1] == 1 else ns_on_64_devices(SIZES[entry[0]])

    cpu_bandwidth = 2 * MEMORY_BANDWIDTH["Xeon Gold 6230"]
    bandwidth_ratio = DEVICES_PER_NODE * MEMORY_BANDWIDTH["V100"] / cpu_bandwidth
    puhti = published("astaroth-fig15a").values("speedup", machine="Puhti", nodes=1)
    yield table_of(
        "Speed-up over the Pencil Code, published",
        _speedups(),
        {
            **SPEEDUP_COLUMNS,
            "Astaroth\nns": lambda entry: q.nanoseconds(time(entry)),
            "Pencil Code\nns, derived": lambda entry: " to ".join(
                q.nanoseconds(times * time(entry)) for times in entry[2:]
            ),
            "Astaroth\nns, predicted": lambda entry: q.nanoseconds(
                _predicted_value(rows, n=SIZES[entry[0] or "small"], nodes=entry[1])
            ),
        },
        note=q.wrap_notes(
            "Speed-ups are ranges over both clusters. The lower end is relative to the Pencil Code on Mahti. "
            f"From the memory bandwidths of a node of Puhti, a speed-up of {bandwidth_ratio:.1f} was "
            f"expected (published: roughly 13). The paper measured {puhti[0]} to {puhti[1]}."
        ),
    )


def _energy_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the ratios of energy efficiency, derived from speed-ups and design powers."""
    device_power = DEVICES_PER_NODE * DEVICE_POWER

    def derived_ratio(entry: Any) -> str:
        minimum, maximum = (
            speedup * CPU_POWER[name] / device_power
            for speedup, name in zip(entry[2:], ("Mahti", "Puhti"), strict=True)
        )
        return f"{minimum:.1f} to {maximum:.1f}"

    def published_ratio(entry: Any) -> str:
        values = published("astaroth-fig15b").values("energy_ratio", size=entry[0], nodes=entry[1])
        return " to ".join(f"{value:g}" for value in values)

    yield table_of(
        "Energy efficiency relative to the Pencil Code, by design power",
        _speedups(),
        {
            **SPEEDUP_COLUMNS,
            "ratio,\nderived": derived_ratio,
            "\npublished": published_ratio,
        },
        note=q.wrap_notes(
            "The derived ratio is the speed-up times the design power of the CPUs of a node, divided by the "
            f"{device_power} W of its devices. The lower end is for Mahti ({CPU_POWER['Mahti']} W), and "
            f"the upper end for Puhti ({CPU_POWER['Puhti']} W)."
        ),
    )


# -- figures -------------------------------------------------------------------------------------------------

_figure = partial(
    Derived,
    problem=CASE,
    options={"steps": 10},
    local_runs={"n": "32,64", "ranks": "1,2", "threads": "1"},
    machine="puhti",
    network=NETWORK,
    make_schedule=_schedule,
    configurations=[_configuration(n, devices) for n in (256, 512, 1024) for devices in DEVICE_COUNTS],
    scale=_nanoseconds,
    device_time=_device_time,
    row_key="n",
    column_key="devices",
    table_key="grid",
    format_value=q.nanoseconds,
    unit="ns per cell and step",
)
_NODE_CONFIGURATIONS = [
    _configuration(n, DEVICES_PER_NODE * nodes) for n in SIZES.values() for nodes in NODE_COUNTS
]
_SMALL_RUNS = {"n": "32", "ranks": "1,2", "threads": "1"}
FIELDS = {  # fields of the benchmark and their units, by the names in Table B.1
    "Logarithmic density": ("lnrho", "1"),
    "Velocity": ("u_x, u_y, u_z", "length/time"),
    "Specific entropy": ("s", "length²/(time² temperature)"),
    "Magnetic vector potential": ("A_x, A_y, A_z", "field length"),
}

PAPERS = (
    _figure(
        "astaroth-fig10",
        "Strong scaling",
        "Time per cell and step by number of devices, for each size. The efficiency is in brackets.",
        "strong",
        local_runs={"n": "32,64", "ranks": "1,2", "threads": "1", "repeat": 3},
        comparison_text=_efficiency,
        quotients=_quotients,
    ),
    _figure(
        "astaroth-fig11",
        "Strong scaling by the formula",
        "The time is the longer of computation and exchange. The efficiency is in brackets. `study paper "
        "astaroth-fig10` shows the measured efficiencies.",
        "strong",
        formula=formula,
        is_predicted=lambda row: False,
        machine=None,
        comparison_text=_efficiency,
        derive=_formula_tables,
        difference_note="For the measurements, the formula treats each rank as a node. Ranks exchange only "
        "the halos that kernels read.",
    ),
    _figure(
        "astaroth-fig12",
        "A step and its parts",
        "Times of computation, exchange and synchronisation, timed separately, for 256³ cells.",
        "parts",
        local_runs=_SMALL_RUNS,
        configurations=[
            _configuration(256, devices, part=part)
            for part in PARTS
            for devices in DEVICE_COUNTS
            if part != SYNCHRONISATION
        ],
        formula=formula,
        row_key="part",
        derive=_share_tables,
    ),
    _figure(
        "astaroth-fig13",
        "Weak scaling",
        "Time of a step with a constant number of cells per device.",
        "weak",
        local_runs={"n": "32,64", "ranks": "1,2", "threads": "1", "repeat": 3},
        configurations=[_configuration(n, devices) for n in (128, 256, 512) for devices in DEVICE_COUNTS],
        scale=lambda seconds, row: _nanoseconds(seconds, row) * row["devices"],
        is_weak=True,
        unit="ns per step and cell of a device",
    ),
    _figure(
        "astaroth-fig14",
        "Orders of differences",
        "Strong scaling for several orders of differences, with 256³ cells.",
        "orders",
        local_runs={**_SMALL_RUNS, "orders": "2,4,6,8"},
        configurations=[
            _configuration(256, devices, order=order) for order in (2, 4, 6, 8) for devices in DEVICE_COUNTS
        ],
        formula=formula,
        row_key="order",
        derive=_order_tables,
    ),
    _figure(
        "astaroth-fig15a",
        "Comparison with a CPU solver",
        "Times by number of nodes. Predictions are for Astaroth. Measurements compare the cores and the "
        "devices of this machine.",
        "devices",
        local_runs=_SMALL_RUNS,
        configurations=_NODE_CONFIGURATIONS,
        column_key="nodes",
        derive=_pencil_code_tables,
        difference_note="The CPU solver of the measurements is Halocline, not the Pencil Code.",
    ),
    _figure(
        "astaroth-fig15b",
        "Energy",
        "Cell updates per joule, computed from the design power of the devices. `study strong --watts` also "
        "uses the design power.",
        "strong",
        local_runs=_SMALL_RUNS,
        configurations=_NODE_CONFIGURATIONS,
        column_key="nodes",
        scale=lambda seconds, row: 1e-6 * prod(row["shape"]) / (seconds * DEVICE_POWER * row["devices"]),
        unit="million cells per joule",
        derive=_energy_tables,
    ),
    Derived(
        "astaroth-verification",
        "Differences between layouts",
        "Maximum difference of a field value after one step, in units in the last place.",
        "layouts",
        CASE,
        options={"steps": 1},
        local_runs={"n": "32", "ranks": "1,2,4", "threads": "1"},
        difference_note="Each run is compared with the first run, not with another solver.",
    ),
    Derived(
        "astaroth-section6",
        "Processes of a node",
        "One process that copies halos between its subdomains, compared with one process per subdomain and "
        "MPI. The single process divides the grid along one axis.",
        "processes",
        CASE,
        options={"steps": 10},
        local_runs={"n": "64", "ranks": "2", "threads": "1"},
        value_key="ns_per_cell_step",
        configurations=published("astaroth-section6").rows,
        table_key="grid",
        row_key="way",
        column_key="nodes",
        format_value=q.nanoseconds,
        unit="ns per cell and step",
    ),
    Listing(
        "astaroth-b.1",
        "Fields",
        "Fields of the equations in the paper, and the fields of `mhd-benchmark`. The paper states no units. "
        "The units in the table follow from the equations.",
        configurations=published("astaroth-b.1").rows,
        entries={
            "field": lambda row: row["field"],
            "symbol": lambda row: row["symbol"],
            "in Halocline": lambda row: FIELDS[row["field"]][0],
            "unit": lambda row: FIELDS[row["field"]][1],
        },
        left=4,
    ),
)
