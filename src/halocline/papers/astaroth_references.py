"""Results of Astaroth for comparison with measurements of studies (Pekkilä et al. 2022, Section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from halocline.io.table import Table
from halocline.papers.astaroth import CASE, ORDER, on_most, on_node
from halocline.papers.published import published
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Column, Group, row_table

SECTION = "Pekkilä et al. 2022, Section 5"
CLUSTERS = ("Puhti", "Puhti and Mahti")


def _is_same(group: Group) -> bool:
    """Return True if the measurements have the case and the order of the paper."""
    return bool(group.first["case"] == CASE and group.first["order"] == ORDER)


def _on_most_devices(group: Group) -> Iterator[Sequence[str]]:
    """Yield the published rows for 64 V100; their times follow from 1/π and the efficiencies."""
    if not _is_same(group):
        return
    measured, formula = published("astaroth-fig10"), published("astaroth-fig11")
    (ns,) = measured.values("ns_per_cell_step", devices=1)
    for n in (256, 512, 1024):
        (efficiency,) = measured.values("efficiency", n=n, devices=64)
        yield (
            *(f"{n}³", "paper", "64 V100", f"{ns:g}", q.nanoseconds(on_most(n))),
            *(q.percent(efficiency), q.percent(*formula.values("of_theory", n=n))),
        )


def _node() -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """Return the nanoseconds on the four V100 of a node, and two ranges of speed-ups over the Pencil Code.

    Both ranges are for one node. The first range is for Puhti, the second for both clusters together.
    """
    puhti, both_clusters = (
        published("astaroth-fig15a").values("speedup", machine=name, nodes=1) for name in CLUSTERS
    )
    return on_node(), puhti, both_clusters


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
            *(c.SIZE, c.HERE, c.UNIT_COUNT, c.NS),
            Column("times as fast\nas its node", _over_node),
            Column("as its core,\na core", _over_core),
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
            f"Paper: {SECTION}, and 6: a node of two Xeon Gold 6230; {fewest}–{most} times over both "
            "clusters, all sizes. One core: the Pencil Code as measured by this project on a machine with "
            "AVX-512, over core times time here."
        ),
        left=3,
    )


def _parts(group: Group) -> Iterator[Sequence[str]]:
    if group.first["case"] == CASE:
        data = published("astaroth-fig12")
        shares = [data.values("share", quantity=name) for name in ("overhead", "synchronisation", "corners")]
        overhead, synchronisation, corners = (
            "to ".join(f"{s:.2%} ".replace(".00%", "%") for s in ends).strip() for ends in shares
        )
        yield ("paper, 256³", "1-64 V100", overhead, synchronisation, "", corners)


def _weak(group: Group) -> str:
    (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=1)
    return f"{SECTION}: {ns:g} ns on one V100." if _is_same(group) else ""


def _of_case(*sentences: str) -> Callable[[Group], str]:
    """Return a function that returns these sentences if the measurements use the case of the paper."""
    return lambda group: q.wrap_notes(*sentences) if group.first["case"] == CASE else ""


REFERENCES = {
    "strong": Reference(
        _on_most_devices,
        lambda g: f"Paper: {SECTION}; its times follow from 1/π and the efficiencies." * _is_same(g),
        _against_a_cpu_solver,
    ),
    "weak": Reference(note=_weak),
    "parts": Reference(
        _parts, _of_case(f"Paper: {SECTION}; rough ranges over all devices, of the running time.")
    ),
    "devices": Reference(tables=_against_a_cpu_solver),
    "layouts": Reference(
        note=_of_case("Pekkilä et al. 2022, Section 5: at most 2 ulps after one step, from a CPU solver.")
    ),
    "orders": Reference(
        note=_of_case(
            f"{SECTION}, 256³: second order scales to 32 devices, eighth order is bound by the exchange "
            "from 8 on."
        )
    ),
}
