"""Astaroth: high-order MHD on GPUs (Pekkilä et al. 2022, Figs. 5 and 10 to 15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.papers.paper import Paper, Row
from halocline.papers.published import published
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Column, Group, row_table

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
    """Return the nanoseconds of a step and cell, or of its parts (Eqs. 4 to 12)."""
    from halocline.model import step_time

    shape, ranks = (row["n"],) * 3, row["ranks_per_node"]
    made = step_time(
        shape, row["nodes"], ranks, radius=RADIUS, per_cell=PER_CELL, per_halo_cell=PER_HALO_CELL
    )
    return float(1e9 * getattr(made, PARTS[row.get("part", "step")]) / prod(shape))


def _exchanged(row: Row) -> int | None:
    """Return the cells that the worst-placed subdomain exchanges (Q of Eq. 7); None for too thin slabs."""
    from halocline.plan.decompose import decompose

    try:
        return decompose((row["n"],) * 3, row["subdomains"], strategy=row["cut"], radius=RADIUS).cost
    except InputError:
        return None


def _efficiency(value: float, first: float, row: Row) -> str:
    return f"  ({first / value / row['devices']:.1%})"


# nanoseconds of a cell and step over devices of Puhti
_figure = partial(
    Paper,
    problem="mhd-benchmark",
    options={"steps": 10},
    here={"n": "32,64", "ranks": "1,2", "threads": "1"},
    machine="puhti",
    places=[_place(n, devices) for n in (256, 512, 1024) for devices in DEVICES],
    scale=_ns,
    on_one=1e-9 * published("astaroth-fig10").values("ns_per_cell_step", devices=1)[0],
    rows="n",
    columns="devices",
    by="grid",
    text=q.nanoseconds,
    unit="ns a cell and step",
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
        "astaroth-fig10",
        "Strong scaling",
        "Devices varied for each size; behind times is the efficiency.",
        "strong",
        compared=_efficiency,
    ),
    _figure(
        "astaroth-fig11",
        "Strong scaling and its formula",
        "The formula, and the model's execution of plans.",
        "strong",
        formula=_formula,
        compared=_efficiency,
    ),
    _figure(
        "astaroth-fig12",
        "A step and its parts",
        "Computing and exchange apart, 256³ cells.",
        "parts",
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(256, devices, part=part) for part in PARTS for devices in DEVICES],
        formula=_formula,
        where=lambda row: row["part"] == "step",
        rows="part",
    ),
    _figure(
        "astaroth-fig13",
        "Weak scaling",
        "As many cells for each device.",
        "weak",
        here={"n": "32", "ranks": "1,2", "threads": "1"},
        places=[_place(n, devices) for n in (128, 256, 512) for devices in DEVICES],
        scale=lambda seconds, row: _ns(seconds, row) * row["devices"],
        weak=True,
        unit="ns a step and cell of a device",
    ),
    _figure(
        "astaroth-fig14",
        "Orders",
        "Order of differences varied, 256³ cells.",
        "orders",
        here={"n": "32", "ranks": "1,2", "threads": "1", "orders": "2,6"},
        places=[_place(256, devices, order=order) for order in (2, 4, 6, 8) for devices in DEVICES],
        on_one=None,  # of sixth order alone
        rows="order",
    ),
    _figure(
        "astaroth-fig15a",
        "Against a CPU solver",
        "Over the Pencil Code; predicted is Astaroth's time alone.",
        "strong",
    ),
    _figure(
        "astaroth-fig15b",
        "Energy",
        "Cell updates a joule, of the design power of devices.",
        "strong",
        scale=lambda seconds, row: 1e-6 * prod(row["shape"]) / (seconds * WATTS * row["devices"]),
        unit="million cells a joule",
    ),
)

# -- beside measurements -------------------------------------------------------------------------------------

SECTION = "Pekkilä et al. 2022, Section 5"
CASE, ORDER = "mhd-benchmark", 6
CLUSTERS = ("Puhti", "Puhti and Mahti")


def _is_same(group: Group) -> bool:
    """Return whether these are the steps that the paper measures."""
    return bool(group.first["case"] == CASE and group.first["order"] == ORDER)


def _on_most_devices(group: Group) -> Iterator[Sequence[str]]:
    """Yield the rows of 64 V100, whose times follow from 1/π and the efficiencies."""
    if not _is_same(group):
        return
    measured, formula = published("astaroth-fig10"), published("astaroth-fig11")
    (ns,) = measured.values("ns_per_cell_step", devices=1)
    for n in (256, 512, 1024):
        for efficiency in measured.values("efficiency", n=n, devices=64):
            yield (
                *(f"{n}³", "paper", "64 V100", f"{ns:g}", q.nanoseconds(ns / 64 / efficiency)),
                *(q.percent(efficiency), q.percent(*formula.values("of_theory", n=n))),
            )


def _node() -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """Return the nanoseconds on the four V100 of a node, and how many times as long the Pencil Code takes on
    one node: of Puhti, and over both clusters."""
    (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=4, method=None)
    puhti, both = (published("astaroth-fig15a").values("speedup", machine=name, nodes=1) for name in CLUSTERS)
    return ns, puhti, both


def _over_node(m: Measurement, group: Group) -> str:
    ns, puhti, _ = _node()
    return "–".join(f"{ns * times / q.ns(m):.2g}" for times in puhti)


def _over_core(m: Measurement, group: Group) -> str:
    core = published("pencil-code").values("ns_per_cell_step", n=m["n"])
    if not core or m["devices"] or len(set(m["shape"])) > 1:
        return ""
    return f"{core[0] / (q.ns(m) * q.units(m)):.1f}"


def _against_a_cpu_solver(group: Group) -> Iterator[Table]:
    if not _is_same(group):
        return
    ns, puhti, (fewest, most) = _node()
    low, high = (q.nanoseconds(ns * times) for times in puhti)
    yield row_table(
        "Against a CPU solver",
        (
            *(c.SIZE, c.HERE, c.MOST, c.NS),
            Column("times as fast\nas its node", _over_node),
            Column("as its core,\na core", _over_core),
        ),
        [(size.best, size) for size in group.by(q.grid)],
        published=[
            ("", "paper", "4 V100", f"{ns:g}", "–".join(map(str, puhti)), ""),
            ("", "Pencil Code", "40 cores", f"{low}–{high}", "1", ""),
            *(
                (f"{row['n']}³", "Pencil Code", "1 core", q.nanoseconds(row["ns_per_cell_step"]), "", "1")
                for row in published("pencil-code").rows
            ),
        ],
        note=q.wrapped(
            f"Paper: {SECTION}, and 6: a node of two Xeon Gold 6230; {fewest}–{most} times over both "
            "clusters, all sizes. One core: the Pencil Code as measured by this project on a machine with "
            "AVX-512, over core times time here."
        ),
        left=3,
    )


def _parts(group: Group) -> Iterator[Sequence[str]]:
    if group.first["case"] == CASE:
        data = published("astaroth-fig12")
        shares = [data.values("share", quantity=name) for name in ("overhead", "corners")]
        ranges = ["to ".join(f"{s:.2%} ".replace(".00%", "%") for s in ends).strip() for ends in shares]
        yield ("paper, 256³", "1-64 V100", "", "", "", "", *ranges)


def _weak(group: Group) -> str:
    (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=1)
    return f"{SECTION}: {ns:g} ns on one V100." if _is_same(group) else ""


def _of_case(*sentences: str) -> Callable[[Group], str]:
    """Return a note on the measurements of the paper's case."""
    return lambda group: q.wrapped(*sentences) if group.first["case"] == CASE else ""


REFERENCES = {
    "strong": Reference(
        _on_most_devices,
        lambda g: f"Paper: {SECTION}; its times follow from 1/π and the efficiencies." * _is_same(g),
        _against_a_cpu_solver,
    ),
    "weak": Reference(note=_weak),
    "parts": Reference(_parts, _of_case(f"Paper: {SECTION}; what corners add there is of the whole step.")),
    "orders": Reference(
        note=_of_case(
            f"{SECTION}, 256³: second order scales to 32 devices, eighth order is bound by the exchange "
            "from 8 on."
        )
    ),
}
