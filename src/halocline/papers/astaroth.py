"""Figures and tables of Astaroth on GPUs (Pekkilä et al. 2022, Section 5, Figs. 10 to 15, and Table B.1).

The model executes plans of the program of the paper. Subdomains are assigned in Z-order to the devices of all
ranks, in sequence. Each exchange contains the sides and edges of all eight fields.
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
DEVICES, NODES = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16)
OF_A_NODE = 4  # devices
CASE, ORDER = "mhd-benchmark", 6
WATTS, WATTS_OF_CPUS = 300, {"Puhti": 2 * 125, "Mahti": 2 * 280}  # power of a V100, and of a node's CPUs
MEMORY = {"V100": 863, "Xeon Gold 6230": 131}  # GiB/s (Section 3.1)
BYTES = 3 * 8 * 8  # per halo cell and step: eight numbers in each of three exchanges
PER_CELL, PER_HALO_CELL = 2.2e-9, 3.9e-9  # 1/π of a device, and 1/β of a node: 192 B at 46 GiB/s (Section 5)

# bandwidth of a network card in B/s, fitted to 43 % for 512³ on 64 devices (Fig. 10); measured: 1.095e10
NETWORK = {"bandwidth": 8.3e9}

PER_HALO_CELL_WITHIN = BYTES / (270 * 2**30)  # 1/β of a device in a node, at its NVLink bandwidth (Section 5)

# -- configurations ------------------------------------------------------------------------------------------


def _place(n: int, devices: int, **more: Any) -> Row:
    """Return a configuration with Z-order over all devices, placement in sequence, and GPU-aware MPI."""
    nodes = max(1, devices // OF_A_NODE)
    layout = {"n": n, "devices": devices, "nodes": nodes, "ranks_per_node": devices // nodes}
    options = {"strategy": "morton", "placement": "trivial", "methods": "self,gpu_aware,mpi"}
    return {**layout, **options, **more}


def _ns(seconds: float, row: Row) -> float:
    return 1e9 * seconds / float(prod(row["shape"]))


def _efficiency(value: float, first: float, row: Row) -> str:
    return f"  ({first / value / row['devices']:.1%})"


# -- formula -------------------------------------------------------------------------------------------------


@cache
def operations(order: int) -> float:
    """Return the number of operations of the benchmark per cell and step."""
    return float(sum(sweep.flops for sweep in _compiled(order, "read").pass_sweeps()))


def relative_operations(order: int) -> float:
    """Return the number of operations per cell and step, divided by the number at sixth order."""
    return operations(order) / operations(ORDER)


def _traffic(radius: int, corners: bool) -> Traffic:
    """Return the traffic of sides and edges, or also of corners, in cells."""
    offsets = product((-radius, 0, radius), repeat=3)
    segments = Footprint.from_offsets(o for o in offsets if corners or 0 in o)
    return Traffic.of([(segments, 1)], 3)


def step(row: Row, *, corners: bool = True) -> StepTime:
    """Return the time of a step by Eqs. 4 to 12, with the decomposition of Eq. 5.

    Eqs. 2 and 3 count all segments of the halo. For other orders, 1/π is scaled by the number of operations.
    """
    from halocline.model import step_time

    order = row.get("order", ORDER)
    return step_time(
        (row["n"],) * 3,
        row["nodes"],
        row["ranks_per_node"],
        traffic=_traffic(order // 2, corners),
        per_cell=PER_CELL * (relative_operations(order) if order != ORDER else 1.0),
        per_halo_cell=PER_HALO_CELL,
        per_halo_cell_within=PER_HALO_CELL_WITHIN,
    )


def _exchange(row: Row, corners: bool) -> float:
    time = step(row, corners=corners)
    return max(time.between, time.within)


PARTS: dict[str, Callable[[Row], float] | None] = {  # seconds of the parts of a step by the formula
    "step": lambda row: step(row).seconds,
    "computing": lambda row: step(row).work,
    "exchange": lambda row: _exchange(row, corners=False),
    "exchange with corners": lambda row: _exchange(row, corners=True),
    "synchronisation": None,  # not part of the formula
}
STEP, COMPUTING, EXCHANGE, CORNERS, SYNCHRONISATION = PARTS


def formula(row: Row) -> float | None:
    """Return the nanoseconds per cell and step, or of a part of the step, by the formula."""
    seconds = PARTS[row.get("part", STEP)]
    return None if seconds is None else 1e9 * seconds(row) / row["n"] ** 3


# -- predictions ---------------------------------------------------------------------------------------------


@cache
def _compiled(order: int, halo: str) -> Any:
    """Return the schedule of the benchmark, which is the same for grids of all sizes."""
    from halocline.compile.compiler import compile_program
    from halocline.problems.problem import problem_of

    ready = problem_of(CASE, [64], order=order)
    return compile_program(ready.program, ready.grid, halo=halo)


def _schedule(row: Row) -> Any:
    """Return the schedule and the grid shape of a configuration, for a step or a part of it.

    For the time of the exchange alone, kernels take no time. For the time of computation alone, the schedule
    has no exchanges.
    """
    part = row.get("part", STEP)
    schedule = _compiled(row.get("order", ORDER), "uniform" if part == CORNERS else "edges")
    changes: dict[str, Any] = {}
    if part == COMPUTING:
        changes = {"exchange": {}}
    elif part in (EXCHANGE, CORNERS):
        changes = {"bytes": 0.0, "flops": 0.0}
    return replace(schedule, operations=_changed(schedule.operations, changes)), (row["n"],) * 3


def _changed(operations: Sequence[Operation], changes: dict[str, Any]) -> tuple[Operation, ...]:
    """Return the operations with changed attributes of all sweeps."""
    return tuple(
        replace(operation, body=_changed(operation.body, changes))
        if isinstance(operation, Loop)
        else replace(operation, **changes)
        if isinstance(operation, Sweep)
        else operation
        for operation in operations
    )


def _on_one(row: Row) -> float | None:
    """Return the seconds per cell and step on one device: 2.2 ns at order 6, else scaled by operations."""
    if row.get("part") in (EXCHANGE, CORNERS):
        return None
    return PER_CELL * relative_operations(row.get("order") or ORDER)


# -- derived tables ------------------------------------------------------------------------------------------


def on_most(n: int) -> float:
    """Return the nanoseconds per cell and step on 64 devices.

    This number follows from the time on one device and the published efficiency (Fig. 10).
    """
    (one,), (efficiency,) = (
        published("astaroth-fig10").values("ns_per_cell_step", devices=1),
        published("astaroth-fig10").values("efficiency", n=n, devices=64),
    )
    return float(one / 64 / efficiency)


def on_node() -> float:
    """Return the nanoseconds per cell and step on a node (Section 6)."""
    (ns,) = published("astaroth-section6").values("ns_per_cell_step", way="processes, MPI")
    return float(ns)


def _predicted(rows: Sequence[Row], **conditions: Any) -> float | None:
    """Return the predicted value of a configuration; None if it is not predicted."""
    values = (
        row.get("predicted") for row in rows if all(row[name] == value for name, value in conditions.items())
    )
    return next(values, None)


def _over(value: float | None, other: float | None) -> str:
    return f"{value / other:.2f}" if value is not None and other else ""


def _quotients(rows: Sequence[Row]) -> Iterator[Quotient]:
    """Yield published and predicted numbers: efficiencies on 64 devices, times on a device and on a node."""
    data = published("astaroth-fig10")
    for n in SIZES.values():
        (efficiency,) = data.values("efficiency", n=n, devices=64)
        one, most = (_predicted(rows, n=n, devices=devices) for devices in (1, 64))
        if one is not None and most is not None:
            yield f"efficiency of {n}³ cells on 64 devices", efficiency, one / 64 / most
    (ns,) = data.values("ns_per_cell_step", devices=1)
    for place, devices, stated in (("one device", 1, ns), ("a node", OF_A_NODE, on_node())):
        predicted = _predicted(rows, n=256, devices=devices)
        if predicted is not None:
            yield f"ns per cell and step on {place}, of 256³ cells here (not stated)", stated, predicted


def _theory(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of measured performance over the formula, with published values (Figs. 10, 11)."""
    most = [row for row in rows if row["devices"] == 64]
    if not most:
        return
    yield table_of(
        "Measured performance over the formula, 64 devices",
        most,
        {
            "cells": lambda row: f"{row['n']}³",
            "measured\nns": lambda row: q.nanoseconds(on_most(row["n"])),
            "formula\nns": lambda row: q.nanoseconds(row["computed"]),
            "share of the formula\nderived": lambda row: f"{row['computed'] / on_most(row['n']):.1%}",
            "\npublished": lambda row: q.percent(
                *published("astaroth-fig11").values("of_theory", n=row["n"])
            ),
            "bound by": lambda row: step(row).bound,
        },
        note=q.wrap_notes(
            f"1/π = {1e9 * PER_CELL:.1f} ns per cell of a device. 1/β = {1e9 * PER_HALO_CELL:.1f} ns per "
            "halo "
            f"cell of a node: {BYTES} B at 46 GiB/s are {1e9 * BYTES / (46 * 2**30):.3f} ns. Q is that of a "
            "node (Eq. 7). Measured times follow from the efficiencies of Fig. 10."
        ),
    )


def _shares(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of predicted shares of the parts of a step, with the published ranges."""
    counts = [count for count in DEVICES if _predicted(rows, part=STEP, devices=count)]

    def time(part: str, devices: int) -> float:
        return _predicted(rows, part=part, devices=devices) or 0.0

    def longer(devices: int) -> float:
        return max(time(COMPUTING, devices), time(EXCHANGE, devices))

    if not counts:
        return
    columns: dict[str, Callable[[int], str]] = {
        "devices": lambda devices: f"{devices}",
        "exchange over\ncomputing": lambda devices: _over(time(EXCHANGE, devices), time(COMPUTING, devices)),
        "exchange over\nthat on 4": lambda devices: _over(time(EXCHANGE, devices), time(EXCHANGE, OF_A_NODE)),
        "step beyond\nthe longer": lambda devices: f"{time(STEP, devices) / longer(devices) - 1:+.1%}",
        "corners\nof the step": lambda devices: (
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
    published_shares = ("paper", "below 1 to 4", "steady, 4 to 16", shares["overhead"], shares["corners"])
    yield replace(
        predicted,
        rows=(*predicted.rows, published_shares),
        muted=(len(predicted.rows),),
        note=q.wrap_notes(
            "Published ranges are rough ones over all devices; the exchange is hidden up to 4 devices and "
            f"stagnates from 4 to 16. Synchronisation takes {shares['synchronisation']} of a step there; the "
            "model has no barrier. Study parts measures it. A step can be shorter than its exchange alone: "
            "links carry messages in the order in which these come, and computing changes that order."
        ),
    )


def _orders(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the table of the paper's statements on orders, next to results of the formula and the model."""

    def bound(order: int) -> str:
        limits = [count for count in DEVICES if step(_place(256, count, order=order)).bound != "work"]
        return f"{limits[0]} devices" if limits else "none"

    def efficiency(order: int, key: str) -> str:
        one, many = (
            next(row.get(key) for row in rows if (row["order"], row["devices"]) == (order, count))
            for count in (1, 32)
        )
        return "" if one is None or many is None else q.percent(one / 32 / many)

    if {row["devices"] for row in rows} >= {1, 32}:
        yield table_of(
            "Statements",
            sorted({row["order"] for row in rows}),
            {
                "order": lambda order: f"{order}",
                "operations per\ncell and step": lambda order: f"{operations(order):,.0f}",
                "bound by exchange\nfrom, formula": bound,
                "\npublished": lambda order: "8 devices" if order == 8 else "",
                "efficiency on 32\nformula": lambda order: efficiency(order, "computed"),
                "\npredicted": lambda order: efficiency(order, "predicted"),
                "\npublished ": lambda order: "relatively high" if order == 2 else "",
            },
            note=q.wrap_notes(
                f"One device takes {1e9 * PER_CELL:.1f} ns at sixth order, as published, and at other orders "
                "as much more as these have more operations."
            ),
        )


SPEEDUPS: dict[str, Callable[[Any], str]] = {  # columns of published speed-ups
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


def _against(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the times of the Pencil Code, derived from speed-ups, with predicted times of Astaroth."""

    def time(entry: Any) -> float:
        return on_node() if entry[1] == 1 else on_most(SIZES[entry[0]])

    by_bandwidth = OF_A_NODE * MEMORY["V100"] / (2 * MEMORY["Xeon Gold 6230"])
    puhti = published("astaroth-fig15a").values("speedup", machine="Puhti", nodes=1)
    yield table_of(
        "Speed-up over the Pencil Code, published",
        _speedups(),
        {
            **SPEEDUPS,
            "Astaroth\nns": lambda entry: q.nanoseconds(time(entry)),
            "the Pencil Code\nns, derived": lambda entry: " to ".join(
                q.nanoseconds(times * time(entry)) for times in entry[2:]
            ),
            "Astaroth\npredicted": lambda entry: q.nanoseconds(
                _predicted(rows, n=SIZES[entry[0] or "small"], nodes=entry[1])
            ),
        },
        note=q.wrap_notes(
            "Speed-ups are ranges over both clusters; the least are those over Mahti. By the bandwidth of "
            f"memory of a node of Puhti, {by_bandwidth:.1f} was expected (published: roughly 13), and "
            f"{puhti[0]} to {puhti[1]} measured."
        ),
    )


def _energy(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the ratios of energy efficiency, derived from speed-ups and design powers."""
    devices = OF_A_NODE * WATTS

    def ratio(entry: Any) -> str:
        least, most = (
            times * WATTS_OF_CPUS[name] / devices
            for times, name in zip(entry[2:], ("Mahti", "Puhti"), strict=True)
        )
        return f"{least:.1f} to {most:.1f}"

    def printed(entry: Any) -> str:
        values = published("astaroth-fig15b").values("energy_ratio", size=entry[0], nodes=entry[1])
        return " to ".join(f"{value:g}" for value in values)

    yield table_of(
        "Energy efficiency over that of the Pencil Code, by design power",
        _speedups(),
        {
            **SPEEDUPS,
            "ratio,\nderived": ratio,
            "\npublished": printed,
        },
        note=q.wrap_notes(
            f"Derived: speed-up times the design power of a node's processors ({WATTS_OF_CPUS['Mahti']} W on "
            f"Mahti for the least, {WATTS_OF_CPUS['Puhti']} W on Puhti for the most) over the {devices} W of "
            "its devices."
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
    configurations=[_place(n, devices) for n in (256, 512, 1024) for devices in DEVICES],
    scale=_ns,
    device_time=_on_one,
    row_key="n",
    column_key="devices",
    table_key="grid",
    format_value=q.nanoseconds,
    unit="ns per cell and step",
)
_OF_NODES = [_place(n, OF_A_NODE * nodes) for n in SIZES.values() for nodes in NODES]
_SMALL = {"n": "32", "ranks": "1,2", "threads": "1"}
FIELDS = {  # fields of the benchmark, for Table B.1
    "Logarithmic density": ("lnrho", "1"),
    "Velocity": ("u_x, u_y, u_z", "length/time"),
    "Specific entropy": ("s", "length²/(time² temperature)"),
    "Magnetic vector potential": ("A_x, A_y, A_z", "field length"),
}

PAPERS = (
    _figure(
        "astaroth-fig10",
        "Strong scaling",
        "Devices varied for each size; behind times is the efficiency.",
        "strong",
        local_runs={"n": "32,64", "ranks": "1,2", "threads": "1", "repeat": 3},
        comparison_text=_efficiency,
        quotients=_quotients,
    ),
    _figure(
        "astaroth-fig11",
        "Strong scaling by the formula",
        "The longer of computing and exchange; behind times is the efficiency. `astaroth-fig10` is measured.",
        "strong",
        formula=formula,
        is_predicted=lambda row: False,
        machine=None,
        comparison_text=_efficiency,
        derive=_theory,
        difference_note="In the formula beside measurements each rank is a node, and sends the halos that "
        "are read.",
    ),
    _figure(
        "astaroth-fig12",
        "A step and its parts",
        "Computing, exchanges and synchronisation apart, 256³ cells.",
        "parts",
        local_runs=_SMALL,
        configurations=[
            _place(256, devices, part=part)
            for part in PARTS
            for devices in DEVICES
            if part != SYNCHRONISATION
        ],
        formula=formula,
        row_key="part",
        derive=_shares,
    ),
    _figure(
        "astaroth-fig13",
        "Weak scaling",
        "As many cells for each device.",
        "weak",
        local_runs={"n": "32,64", "ranks": "1,2", "threads": "1", "repeat": 3},
        configurations=[_place(n, devices) for n in (128, 256, 512) for devices in DEVICES],
        scale=lambda seconds, row: _ns(seconds, row) * row["devices"],
        is_weak=True,
        unit="ns per step and cell of a device",
    ),
    _figure(
        "astaroth-fig14",
        "Orders",
        "Order of differences varied, 256³ cells.",
        "orders",
        local_runs={**_SMALL, "orders": "2,4,6,8"},
        configurations=[_place(256, devices, order=order) for order in (2, 4, 6, 8) for devices in DEVICES],
        formula=formula,
        row_key="order",
        derive=_orders,
    ),
    _figure(
        "astaroth-fig15a",
        "Against a CPU solver",
        "Nodes varied. Predicted is Astaroth's time; measured here are processors and devices.",
        "devices",
        local_runs=_SMALL,
        configurations=_OF_NODES,
        column_key="nodes",
        derive=_against,
        difference_note="The solver on processors is the same program, not the Pencil Code.",
    ),
    _figure(
        "astaroth-fig15b",
        "Energy",
        "Cell updates per joule by the design power of devices, which `study strong --watts` takes too.",
        "strong",
        local_runs=_SMALL,
        configurations=_OF_NODES,
        column_key="nodes",
        scale=lambda seconds, row: 1e-6 * prod(row["shape"]) / (seconds * WATTS * row["devices"]),
        unit="million cells per joule",
        derive=_energy,
    ),
    Derived(
        "astaroth-verification",
        "Differences between layouts",
        "Maximum difference of a field value after a step, in units in the last place.",
        "layouts",
        CASE,
        options={"steps": 1},
        local_runs={"n": "32", "ranks": "1,2,4", "threads": "1"},
        difference_note="Runs are compared with the first of them, not with another solver.",
    ),
    Derived(
        "astaroth-section6",
        "Processes of a node",
        "One process with copies between subdomains, cut along one axis, and a process for each with MPI.",
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
        "Fields of the equations, and those of `mhd-benchmark`. The paper states no units; those here follow "
        "from the equations.",
        configurations=published("astaroth-b.1").rows,
        entries={
            "field": lambda row: row["field"],
            "symbol": lambda row: row["symbol"],
            "here": lambda row: FIELDS[row["field"]][0],
            "unit": lambda row: FIELDS[row["field"]][1],
        },
        left=4,
    ),
)
