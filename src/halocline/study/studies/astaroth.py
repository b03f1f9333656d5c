"""Astaroth: high-order MHD on GPUs (Pekkilä et al. 2022, Section 5, Figs. 10 to 15)."""

from __future__ import annotations

from math import prod
from typing import Any

from halocline.study.papers import Paper, Row
from halocline.study.reporting.published import published
from halocline.study.reporting.quantities import nanoseconds

DEVICES = (1, 2, 4, 8, 16, 32, 64)


def _place(n: int, devices: int, **more: Any) -> Row:
    return {
        "n": n,
        "devices": devices,
        "nodes": max(1, devices // 4),
        "ranks_per_node": min(4, devices),
        **more,
    }


def _ns(seconds: float, row: Row) -> float:
    return 1e9 * seconds / float(prod(row["shape"]))


def _of_a_device(seconds: float, row: Row) -> float:
    return _ns(seconds, row) * float(row["devices"])


def _strong() -> list[Row]:
    """Times on 64 devices follow from that on one and the efficiency."""
    data = published("astaroth-fig10")
    (one,) = data.values("ns_per_cell_step", devices=1)
    found = []
    for n in (256, 512, 1024):
        (efficiency,) = data.values("efficiency", n=n, devices=64)
        known = {1: one, 64: one / 64 / efficiency}
        found += [_place(n, devices, ns_per_cell_step=known.get(devices)) for devices in DEVICES]
    return found


def _figure(number: str, title: str, about: str, study: str, **more: Any) -> Paper:
    """Nanoseconds of a cell and step over devices of Puhti."""
    return Paper(
        *(f"astaroth-fig{number}", title, about, study, "mhd-benchmark"),
        **{
            "options": {"steps": 10},
            "here": {"n": "32,64", "ranks": "1,2", "threads": "1"},
            "machine": "puhti",
            "value": "ns_per_cell_step",
            "scale": _ns,
            "on_one": published("astaroth-fig10").values("ns_per_cell_step", devices=1)[0],
            "rows": "n",
            "columns": "devices",
            "by": "unit",
            "text": nanoseconds,
            **more,
        },
    )


PAPERS = (
    _figure("10", "Strong scaling", "Devices varied for each size.", "strong", places=_strong()),
    _figure("11", "Strong scaling and its model", "The same beside the formula.", "strong", places=_strong()),
    _figure(
        *("12", "A step and its parts", "Computing and exchange apart, 256³ cells.", "parts"),
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(256, devices) for devices in DEVICES],
    ),
    _figure(
        *("13", "Weak scaling", "As many cells for each device.", "weak"),
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(n, devices) for n in (128, 256, 512) for devices in DEVICES],
        scale=_of_a_device,
        weak=True,
    ),
    _figure(
        *("14", "Orders", "Order of differences varied, 256³ cells.", "orders"),
        here={"n": "32", "ranks": "1,2", "threads": "1", "orders": "2,6"},
        places=[_place(256, devices, order=order) for order in (2, 4, 6, 8) for devices in DEVICES],
        on_one=None,  # of sixth order alone
        rows="order",
    ),
    *(
        _figure(f"15{part}", what, f"{what}, the Pencil Code beside it.", "strong", places=_strong())
        for part, what in (("a", "Against a CPU solver"), ("b", "Energy"))
    ),
)
