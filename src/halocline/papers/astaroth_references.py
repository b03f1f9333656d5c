"""Published results of Astaroth in the reports of studies (Pekkilä et al. 2022, Section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from halocline.io.table import Table
from halocline.papers.astaroth import CASE, ORDER, ns_on_64_devices, ns_on_node
from halocline.papers.published import published
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Column, Group, row_table

SECTION = "Pekkilä et al. 2022, Section 5"
CLUSTERS = ("Puhti", "Puhti and Mahti")


def _is_same_problem(group: Group) -> bool:
    """Return True if the measurements use the case and the order of the paper."""
    return bool(group.first["case"] == CASE and group.first["order"] == ORDER)


def _rows_on_64_devices(group: Group) -> Iterator[Sequence[str]]:
    """Yield the published rows for 64 V100. Their times follow from 1/π and the efficiencies."""
    if not _is_same_problem(group):
        return
    measured, formula = published("astaroth-fig10"), published("astaroth-fig11")
    (ns,) = measured.values("ns_per_cell_step", devices=1)
    for n in (256, 512, 1024):
        (efficiency,) = measured.values("efficiency", n=n, devices=64)
        yield (
            *(f"{n}³", "paper", "64 V100", f"{ns:g}", q.nanoseconds(ns_on_64_devices(n))),
            *(q.percent(efficiency), q.percent(*formula.values("of_theory", n=n))),
        )


def _node() -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """Return the time on the four V100 of a node in ns, and two ranges of its speed-up over the Pencil Code.

    Both ranges are for one node. The first range is for Puhti, and the second range for both clusters.
    """
    puhti, both_clusters = (
        published("astaroth-fig15a").values("speedup", machine=name, nodes=1) for name in CLUSTERS
    )
    return ns_on_node(), puhti, both_clusters


def _speedup_over_node(m: Measurement, group: Group) -> str:
    """Return the speed-up relative to the Pencil Code on a CPU node of Puhti, as text."""
    ns, puhti, _ = _node()
    return "–".join(f"{ns * speedup / q.ns(m):.2g}" for speedup in puhti)


def _speedup_over_core(m: Measurement, group: Group) -> str:
    """Return the speed per core relative to the Pencil Code on one core, as text; empty on devices."""
    core = published("pencil-code").values("ns_per_cell_step", n=m["n"])
    if not core or m["devices"] or len(set(m["shape"])) > 1:
        return ""
    return f"{core[0] / (q.ns(m) * q.units(m)):.1f}"


def _pencil_code_tables(group: Group) -> Iterator[Table]:
    """Yield the table that compares the measurements with the Pencil Code."""
    if not _is_same_problem(group):
        return
    ns, puhti, (minimum, maximum) = _node()
    low, high = (q.nanoseconds(ns * speedup) for speedup in puhti)
    yield row_table(
        "Comparison with the Pencil Code",
        (
            *(c.SIZE, c.THIS_MACHINE, c.UNIT_COUNT, c.NS),
            Column("speed-up over\none CPU node", _speedup_over_node),
            Column("speed-up over one\ncore, per core", _speedup_over_core),
        ),
        [(size.best, size) for size in group.split(q.grid)],
        published=[
            ("", "paper", "4 V100", f"{ns:g}", "–".join(map(str, puhti)), ""),
            ("", "Pencil Code", "40 cores", f"{low}–{high}", "1", ""),
            *(
                (f"{row['n']}³", "Pencil Code", "1 core", q.nanoseconds(row["ns_per_cell_step"]), "", "1")
                for row in published("pencil-code").rows
            ),
        ],
        note=q.wrap_notes(
            f"Paper: {SECTION}, and Section 6. A CPU node of Puhti has two Xeon Gold 6230. Over both "
            f"clusters and all sizes, the published speed-up is {minimum}–{maximum}. The time of the Pencil "
            "Code on one core was measured by this project on a machine with AVX-512. For the last "
            "column, this time is divided by the product of the number of cores and the measured time."
        ),
        left=3,
    )


def _parts(group: Group) -> Iterator[Sequence[str]]:
    if group.first["case"] == CASE:
        data = published("astaroth-fig12")
        shares = [data.values("share", quantity=name) for name in ("overhead", "synchronisation", "corners")]
        overhead, synchronisation, corners = (
            "to ".join(f"{s:.2%} ".replace(".00%", "%") for s in bounds).strip() for bounds in shares
        )
        yield ("paper, 256³", "1-64 V100", overhead, synchronisation, "", corners)


def _weak(group: Group) -> str:
    (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=1)
    return f"{SECTION}: {ns:g} ns on one V100." if _is_same_problem(group) else ""


def _of_case(*sentences: str) -> Callable[[Group], str]:
    """Return a function for the notes of a group: these sentences if the group has the case of the paper."""
    return lambda group: q.wrap_notes(*sentences) if group.first["case"] == CASE else ""


REFERENCES = {
    "strong": Reference(
        _rows_on_64_devices,
        lambda g: (
            f"Paper: {SECTION}. The times of the paper follow from 1/π and the efficiencies."
            * _is_same_problem(g)
        ),
        _pencil_code_tables,
    ),
    "weak": Reference(note=_weak),
    "parts": Reference(
        _parts,
        _of_case(
            f"Paper: {SECTION}. The shares are rough ranges over all numbers of devices, relative to the "
            "running time."
        ),
    ),
    "devices": Reference(tables=_pencil_code_tables),
    "layouts": Reference(
        note=_of_case(f"{SECTION}: after one step, a CPU solver differs by at most 2 ulps.")
    ),
    "orders": Reference(
        note=_of_case(
            f"{SECTION}, 256³ cells: second order scales to 32 devices. From 8 devices on, the exchange "
            "limits eighth order."
        )
    ),
}
