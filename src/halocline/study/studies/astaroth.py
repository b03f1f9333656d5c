"""Astaroth: high-order MHD on GPUs (Pekkilä et al. 2022, Figs. 5 and 10 to 15)."""

from __future__ import annotations

from math import prod
from typing import Any

from halocline.study.papers import Paper, Row
from halocline.study.reporting.published import published
from halocline.study.reporting.quantities import nanoseconds

DEVICES = (1, 2, 4, 8, 16, 32, 64)
RADIUS, OF_A_NODE, WATTS = 3, 4, 300  # layers of halo, devices, thermal design power of a device
PER_CELL, PER_HALO_CELL = 2.2e-9, 3.9e-9  # seconds of a step: on a device, and of what a node exchanges
PARTS = {"step": "seconds", "computing": "work", "exchange between nodes": "between"}  # of the formula


def _place(n: int, devices: int, **more: Any) -> Row:
    nodes = max(1, devices // OF_A_NODE)
    return {"n": n, "devices": devices, "nodes": nodes, "ranks_per_node": devices // nodes, **more}


def _ns(seconds: float, row: Row) -> float:
    return 1e9 * seconds / float(prod(row["shape"]))


def _formula(row: Row) -> float:
    """Nanoseconds of a step and cell, or of its parts (Eqs. 4 to 12)."""
    from halocline.model import step_time

    shape, ranks = (row["n"],) * 3, row["ranks_per_node"]
    made = step_time(
        shape, row["nodes"], ranks, radius=RADIUS, per_cell=PER_CELL, per_halo_cell=PER_HALO_CELL
    )
    return float(1e9 * getattr(made, PARTS[row.get("part", "step")]) / prod(shape))


def _exchanged(row: Row) -> int | None:
    """Cells that the worst-placed subdomain exchanges: Q of Eq. 7; None where slabs would be too thin."""
    from halocline.errors import InputError
    from halocline.plan.decompose import decompose

    try:
        return decompose((row["n"],) * 3, row["subdomains"], strategy=row["cut"], radius=RADIUS).cost
    except InputError:
        return None


def _efficiency(value: float, first: float, row: Row) -> str:
    return f"  ({first / value / row['devices']:.1%})"


def _figure(number: str, title: str, about: str, study: str, **more: Any) -> Paper:
    """Nanoseconds of a cell and step over devices of Puhti."""
    return Paper(
        *(f"astaroth-fig{number}", title, about, study, "mhd-benchmark"),
        **{
            "options": {"steps": 10},
            "here": {"n": "32,64", "ranks": "1,2", "threads": "1"},
            "machine": "puhti",
            "places": [_place(n, devices) for n in (256, 512, 1024) for devices in DEVICES],
            "scale": _ns,
            "on_one": 1e-9 * published("astaroth-fig10").values("ns_per_cell_step", devices=1)[0],
            "rows": "n",
            "columns": "devices",
            "by": "grid",
            "text": nanoseconds,
            "unit": "ns a cell and step",
            **more,
        },
    )


PAPERS = (
    Paper(
        "astaroth-fig5",
        "Size of the halo",
        "Cells that a subdomain of 512³ exchanges, by how many there are and the axes that are cut.",
        places=[
            {"n": 512, "cut": cut, "subdomains": 2**k}
            for cut in ("1d", "2d", "3d", "optimal")
            for k in range(1, 10)
        ],
        formula=_exchanged,
        rows="cut",
        columns="subdomains",
        text="{:,}".format,
        unit="cells",
    ),
    _figure(
        *("10", "Strong scaling", "Devices varied for each size; behind times is the efficiency.", "strong"),
        compared=_efficiency,
    ),
    _figure(
        *(
            "11",
            "Strong scaling and its formula",
            "The formula, and the model's execution of plans.",
            "strong",
        ),
        formula=_formula,
        compared=_efficiency,
    ),
    _figure(
        *("12", "A step and its parts", "Computing and exchange apart, 256³ cells.", "parts"),
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(256, devices, part=part) for part in PARTS for devices in DEVICES],
        formula=_formula,
        where=lambda row: row["part"] == "step",
        rows="part",
    ),
    _figure(
        *("13", "Weak scaling", "As many cells for each device.", "weak"),
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(n, devices) for n in (128, 256, 512) for devices in DEVICES],
        scale=lambda seconds, row: _ns(seconds, row) * row["devices"],
        weak=True,
        unit="ns a step and cell of a device",
    ),
    _figure(
        *("14", "Orders", "Order of differences varied, 256³ cells.", "orders"),
        here={"n": "32", "ranks": "1,2", "threads": "1", "orders": "2,6"},
        places=[_place(256, devices, order=order) for order in (2, 4, 6, 8) for devices in DEVICES],
        on_one=None,  # of sixth order alone
        rows="order",
    ),
    _figure(
        "15a", "Against a CPU solver", "Over the Pencil Code; predicted is Astaroth's time alone.", "strong"
    ),
    _figure(
        *("15b", "Energy", "Cell updates a joule, of the design power of devices.", "strong"),
        scale=lambda seconds, row: 1e-6 * prod(row["shape"]) / (seconds * WATTS * row["devices"]),
        unit="million cells a joule",
    ),
)
