"""Strong scaling: one problem on more and more ranks and threads.

Solves in the form of UMBC HPCF-2018-10, Tables 4.1 and 7.1; steps as Pekkilä et al. 2022, Figs. 10, 11, 15.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.labels import (
    SAME_BITS,
    of_the_paper,
    own_order,
    size_label,
    solves,
    whole_steps,
)
from halocline.study.reporting.published import ASTAROTH, published
from halocline.study.reporting.report import Block, Column, Contents, Figure, Group, Panel, Pivot, Rows
from halocline.study.studies.hybrid import HYBRID, has_equals
from halocline.study.studies.orders import ORDERS, of_several
from halocline.study.studies.parts import PARTS_OF_A_STEP, VARIANTS
from halocline.study.study import Asked, Study
from halocline.words import clock, counted, duration, in_seconds

# -- solves --------------------------------------------------------------------------------------------------


def _yardstick(group: Group) -> str:
    copies, triad = "copies within the same devices move", "a += s * b moves on the same cores"
    what = copies if group.one["devices"] else triad
    return f"Bytes that an iteration must move a second, over those that {what}."


def _unknowns(group: Group) -> str:
    m = group.one
    return f"N = {m['n']}: {m['dof']:,} unknowns, {m['case']} in {m['dim']}D, {m['method']}"


def _of_solves(group: Group) -> list[str]:
    said = []
    for own in group.by(lambda m: m["n"]):
        n, best, base = own.one["n"], own.best, own.base
        iterations, sums = ({m[key] for m in own.found} for key in ("iterations", "checksum"))
        same = f", all with the same bits: {max(iterations):,} iterations, checksum {max(sums)}."
        several = f" gave {len(sums)} different results; please report this as a bug."
        said.append(f"N = {n}: {len(own.found)} runs{same if len(iterations) == len(sums) == 1 else several}")
        times = f": {q.speedup(best, base):.2f} times as fast as {q.layout(base)}"
        fastest = f"N = {n}: fastest with {q.layout(best)}, {duration(best['seconds'])}"
        said.append(f"{fastest}{'' if best is base else times}.")
    return said


def _over_n(group: Group, panel: Group) -> str:
    return f"N = {group.one['n']}, {counted(group.one['threads'], 'thread')} a rank"


SOLVES = Contents(
    blocks=(
        Block(
            (
                Pivot(
                    "Wall clock, HH:MM:SS and seconds",
                    lambda m, g: f"{clock(m['seconds'])}  {in_seconds(m['seconds']):>8}",
                ),
                Pivot("Speed-up", lambda m, g: f"{q.speedup(m, g.base):.2f}"),
                Pivot(
                    "Efficiency",
                    lambda m, g: f"{q.efficiency(m, g.base):.2f}",
                    note=lambda g: f"Relative to {q.layout(g.base)}.",
                ),
                Pivot(
                    "Share of the measured bandwidth",
                    lambda m, g: f"{m['bandwidth_share']:.0%}" if m["bandwidth_share"] else "",
                    note=_yardstick,
                ),
                replace(HYBRID, where=has_equals),
            ),
            by=lambda m: m["n"],
            heading=_unknowns,
        ),
    ),
    figures=(
        Figure(
            "strong.png",
            tuple(
                Panel(
                    *(y, title, ""),
                    line=lambda m: (m["n"], m["threads"]),
                    label=_over_n,
                    base=lambda m: m["n"],
                    ideal=ideal,
                    log=log,
                )
                for title, y, ideal, log in (
                    ("Speed-up", lambda m, g: q.speedup(m, g.base), lambda x, line: x, True),
                    ("Efficiency", lambda m, g: q.efficiency(m, g.base), lambda x, line: 1.0, False),
                )
            ),
        ),
    ),
    sentences=(_of_solves,),
    of=solves,
)

# -- steps ---------------------------------------------------------------------------------------------------


def _constants(group: Group) -> str:
    said = (
        f"Efficiency is relative to {q.layout(group.base)}. The formula is max(work, exchange), with 1/π as "
        "measured on the fewest ranks of as many threads"
    )
    theory = group.theory
    if theory is not None and theory.per_byte is not None:
        subs = f"{theory.measured_on} subdomains"
        said += f", and 1/β = {1e9 * theory.per_byte:.3g} ns a byte, from an exchange alone between {subs}"
    return q.wrapped(f"{said}.")


def _paper(group: Group) -> list[tuple[str, ...]]:
    """Of 64 V100; times follow from 1/π and the efficiencies."""
    if not of_the_paper(group):
        return []
    fig10, fig11 = published("astaroth-fig10"), published("astaroth-fig11")
    (one,) = fig10.values("ns_per_cell_step", devices=1)
    return [
        (
            *(f"{n}³", "paper", "64 V100", f"{one:g}", q.nanoseconds(one / 64 / efficiency)),
            *(q.percent(efficiency), q.percent(*fig11.values("of_theory", n=n))),
        )
        for n in (256, 512, 1024)
        for efficiency in fig10.values("efficiency", n=n, devices=64)
    ]


def _node() -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """Nanoseconds on the four V100 of a node, and how many times as long the Pencil Code takes on one: of
    Puhti, and over both clusters."""
    (ns,) = published("astaroth-fig10").values("ns_per_cell_step", devices=4, method=None)
    times = published("astaroth-fig15a")
    clusters = ("Puhti", "Puhti and Mahti")
    puhti, both = (times.values("speedup", machine=name, nodes=1) for name in clusters)
    return ns, puhti, both


def _over_node(m: Measurement, group: Group) -> str:
    ns, puhti, _ = _node()
    return "–".join(f"{ns * times / q.ns(m):.2g}" for times in puhti)


def _over_core(m: Measurement, group: Group) -> str:
    core = published("pencil-code").values("ns_per_cell_step", n=m["n"])
    if not core or m["devices"] or len(set(m["shape"])) > 1:
        return ""
    return f"{core[0] / (q.ns(m) * q.units(m)):.1f}"


def _pencil(group: Group) -> list[tuple[str, ...]]:
    ns, puhti, _ = _node()
    low, high = (q.nanoseconds(ns * times) for times in puhti)
    return [
        ("", "paper", "4 V100", f"{ns:g}", "–".join(map(str, puhti)), ""),
        ("", "Pencil Code", "40 cores", f"{low}–{high}", "1", ""),
        *(
            (f"{row['n']}³", "Pencil Code", "1 core", q.nanoseconds(row["ns_per_cell_step"]), "", "1")
            for row in published("pencil-code").rows
        ),
    ]


def _pencil_note(group: Group) -> str:
    fewest, most = _node()[2]
    return q.wrapped(
        f"Paper: {ASTAROTH}, and 6: a node of two Xeon Gold 6230; {fewest}–{most} times over both clusters, "
        "all sizes. One core: the Pencil Code as measured by this project on a machine with AVX-512, over "
        "core times time here."
    )


def _of_steps(group: Group) -> list[str]:
    said = []
    for own in group.by(q.grid):
        base, best = own.base, own.best
        fastest = (
            f"{q.size(base)}: fastest with {q.layout(best)}, {q.nanoseconds(q.ns(best))} ns a cell and step"
        )
        if best is not base:
            share = c.of_formula(best, own)
            fastest += f": {q.ns(base) / q.ns(best):.2f} times as fast as {q.layout(base)}"
            fastest += "" if share is None else f", {q.percent(share)} of the speed by the formula"
        said.append(f"{fastest}.")
    return said


def _lines(measurement: Measurement) -> Any:
    return q.grid(measurement), measurement["threads"]


STEPS = Contents(
    blocks=(
        Block(
            (
                Rows(
                    "Time of a cell and step",
                    (
                        *(c.LAYOUT, c.UNITS, c.NS, c.IDEAL, c.FORMULA, c.EFFICIENCY),
                        *(c.OF_FORMULA, c.OF_BANDWIDTH, c.OF_PEAK, c.OF_CAVITY, c.ENERGY),
                    ),
                    note=_constants,
                ),
            ),
            by=q.grid,
            heading=lambda g: f"{q.size(g.base)}: {g.base['cells']:,} cells, {q.named(g.base)}",
        ),
        Block(
            (
                Rows(
                    "On the most cores or devices",
                    (c.SIZE, c.HERE, c.MOST, c.ON_ONE, c.NS, c.EFFICIENCY, c.OF_FORMULA),
                    of=(q.grid, lambda group: group.last),
                    beside=_paper,
                    note=lambda g: (
                        f"Paper: {ASTAROTH}; its times follow from 1/π and the efficiencies."
                        * of_the_paper(g)
                    ),
                    left=3,
                ),
                Rows(
                    "Against a CPU solver",
                    (
                        *(c.SIZE, c.HERE, c.MOST, c.NS),
                        Column("times as fast\nas its node", _over_node),
                        Column("as its core,\na core", _over_core),
                    ),
                    of=(q.grid, lambda group: group.best),
                    beside=_pencil,
                    note=_pencil_note,
                    left=3,
                    shown=of_the_paper,
                ),
            ),
            heading="All sizes",
        ),
    ),
    figures=(
        Figure(
            "strong.png",
            tuple(
                Panel(y, title, "ns a cell and step", line=_lines, label=size_label, ideal=c.ideal)
                for title, y in (
                    ("Measured", lambda m, g: q.ns(m)),
                    ("Closed formula", lambda m, g: g.formula(m)),
                )
            ),
            shared=True,
        ),
        Figure(
            "energy.png",
            (
                Panel(
                    lambda m, g: 1e-6 / m["joules_per_cell_step"],
                    lambda g, whole: f"Energy efficiency, of {' and '.join(g.one['joules_of'])}",
                    "million cells and steps a joule",
                    line=_lines,
                    label=size_label,
                    log=False,
                ),
            ),
            where=lambda m: m["joules_per_cell_step"],
        ),
    ),
    sentences=(_of_steps,),
    of=lambda group: own_order(whole_steps(group)),
)


def _variants(asked: Asked) -> list[dict[str, Any]]:
    """Parts of a step, and other orders, where they are asked for."""
    from halocline.ranges import ORDER, whole_numbers

    own = asked.command.order
    text = asked.given.get("orders")
    orders = [] if text is None else sorted({own or 0, *whole_numbers(text, "--orders", ORDER)} - {0})
    parts = list(VARIANTS) if asked.given.get("parts") else [{}]
    return [*parts, *({"order": order} for order in orders if order != own)]


STUDY = Study(
    "strong",
    title="Strong scaling",
    about="One problem on more and more ranks and threads: time, speed-up, efficiency, hybrid runs.",
    help="Each N on each number of ranks and threads: a linear problem in the form of UMBC HPCF-2018-10, "
    "Tables 4.1 and 7.1, steps as in Figs. 10 to 12, 14 and 15 of Pekkilä et al. 2022, beside their closed "
    "formula, max(work, exchange), with constants that were measured too.",
    examples=(
        "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
        "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --parts",
    ),
    contents=(SAME_BITS, SOLVES, STEPS, PARTS_OF_A_STEP, replace(ORDERS, of=of_several)),
    variants=_variants,
    options=(
        (
            "--orders 2,4,6,8",
            "The same with differences of these orders too: a table and a picture, a line for each.",
            None,
        ),
        (
            "--parts",
            "Time computing alone, the exchange alone, and the exchange with all edges and corners too.",
            False,
        ),
    ),
    formula=True,
)
