"""Strong scaling of a case: the same grid on more and more devices or cores (Pekkilä et al. 2022, Figs. 10,
11 and 15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.plots import (
    NS,
    draw_ideal_scaling,
    figure_of,
    label,
    legend,
    style,
    times_over_units,
)
from halocline.study.reporting.published import (
    ASTAROTH,
    MHD_CASE,
    MHD_NODE_NS,
    MHD_NS,
    MHD_ORDER,
    MHD_SCALING,
    PENCIL_CORES,
    PENCIL_ONE_CORE_NS,
    PENCIL_OVER_NODE,
    PENCIL_OVER_NODE_ANY,
)
from halocline.study.reporting.quantities import (
    baseline,
    by,
    layout,
    named,
    nanoseconds,
    ns,
    percent,
    size,
    unit,
    units,
    updates,
    wrapped,
)
from halocline.study.reporting.table import Table, counted
from halocline.study.reporting.theory import Theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def efficiency(measurement: Measurement, base: Measurement) -> float:
    """Parallel: how much of the devices or cores that were added shows in the time."""
    return units(base) * ns(base) / (units(measurement) * ns(measurement))


def of_theory(measurement: Measurement, found: Sequence[Measurement], theory: Theory) -> float | None:
    """What the formula gives over what was measured."""
    told = theory.ns(measurement, _alike(measurement, found))
    return None if told is None else told / ns(measurement)


def tables(measurements: Sequence[Measurement], theory: Theory) -> list[Table]:
    """For each size, every layout; each size on the most devices, beside the paper; and a CPU solver."""
    made = []
    energy = any(m["joules_per_cell_step"] for m in measurements)
    for _, found in _sizes(measurements):
        base = baseline(found)
        what = unit(base)
        rows = []
        for m in sorted(found, key=lambda m: (units(m), m["ranks"])):
            told = theory.ns(m, _alike(m, found))
            row = [
                layout(m),
                f"{units(m)}",
                nanoseconds(ns(m)),
                nanoseconds(ns(base) * units(base) / units(m)),
                "" if told is None else nanoseconds(told),
                percent(efficiency(m, base)),
                percent(of_theory(m, found, theory)),
                percent(m["share_of_bound"]),
                percent(m["share_of_peak"]),
            ]
            rows.append((*row, updates(m)) if energy else tuple(row))
        heads = (
            *("", f"{what}s", "ns a cell\nand step", "\nideal", "\nformula", "\nefficiency"),
            *("of the\nformula", "of the\nbandwidth", "of the\npeak"),
            *(["million cells\na joule"] if energy else []),
        )
        made.append(
            Table(
                "Time of a cell and step",
                heads,
                tuple(rows),
                heading=f"{size(base)}: {base['cells']:,} cells, {named(base)}",
                note=_note(base, theory),
            )
        )
    made.append(_summary(measurements, theory))
    return [*made, _against_pencil(measurements)] if _of_the_paper(measurements[0]) else made


def _note(base: Measurement, theory: Theory) -> str:
    said = (
        f"Efficiency is relative to {layout(base)}. The formula is max(work, exchange), with 1/π as measured "
        "on the fewest ranks of as many threads"
    )
    if theory.per_byte is not None:
        subs = f"{theory.measured_on} subdomains"
        said += f", and 1/β = {1e9 * theory.per_byte:.3g} ns a byte, from an exchange alone between {subs}"
    return wrapped(f"{said}.")


def _summary(measurements: Sequence[Measurement], theory: Theory) -> Table:
    """Each size on the most devices, and the paper's rows where it is the same problem."""
    rows = []
    for _, found in _sizes(measurements):
        base, last = baseline(found), max(found, key=lambda m: (units(m), -ns(m)))
        rows.append(
            (
                *(size(base), "here", counted(units(last), unit(last))),
                *(nanoseconds(ns(base) * units(base)), nanoseconds(ns(last))),
                *(percent(efficiency(last, base)), percent(of_theory(last, found, theory))),
            )
        )
    own = len(rows)
    one = measurements[0]
    if _of_the_paper(one):
        rows += [
            (
                *(f"{each.n}³", "paper", f"{each.devices} V100"),
                *(f"{MHD_NS:g}", nanoseconds(MHD_NS / each.devices / each.efficiency)),
                *(percent(each.efficiency), percent(each.of_theory)),
            )
            for each in MHD_SCALING
        ]
    note = f"Paper: {ASTAROTH}; its times follow from 1/π and the efficiencies." if len(rows) > own else ""
    return Table(
        "On the most of them",
        (
            "cells",
            "",
            "",
            f"ns on one\n{unit(one)}",
            "ns a cell\nand step",
            "\nefficiency",
            "of the\nformula",
        ),
        tuple(rows),
        left=3,
        muted=tuple(range(own, len(rows))),
        note=note,
        heading="All sizes",
    )


def _of_the_paper(measurement: Measurement) -> bool:
    return bool(measurement["case"] == MHD_CASE and measurement["order"] == MHD_ORDER)


def _against_pencil(measurements: Sequence[Measurement]) -> Table:
    """Fig. 15a: a CPU solver with the same equations and methods takes so many times as long."""
    node = [MHD_NODE_NS * times for times in PENCIL_OVER_NODE]
    rows = []
    for _, found in _sizes(measurements):
        best = min(found, key=ns)
        what = counted(units(best), unit(best))
        over = [f"{pace / ns(best):.2g}" for pace in node]
        core = PENCIL_ONE_CORE_NS.get(best["n"]) if len(set(best["shape"])) == 1 else None
        one = "" if core is None or best["devices"] else f"{core / (ns(best) * units(best)):.1f}"
        rows.append((size(best), "here", what, nanoseconds(ns(best)), "–".join(over), one))
    own = len(rows)
    low, high = (nanoseconds(pace) for pace in node)
    times = "–".join(map(str, PENCIL_OVER_NODE))
    rows.append(("", "paper", "4 V100", f"{MHD_NODE_NS:g}", times, ""))
    rows.append(("", "Pencil Code", f"{PENCIL_CORES} cores", f"{low}–{high}", "1", ""))
    rows += [
        (f"{n}³", "Pencil Code", "1 core", nanoseconds(pace), "", "1")
        for n, pace in PENCIL_ONE_CORE_NS.items()
    ]
    fewest, most = PENCIL_OVER_NODE_ANY
    note = wrapped(
        f"Paper: {ASTAROTH}, and 6: a node of two Xeon Gold 6230; {fewest}–{most} times over both clusters, "
        "all sizes. One core: the Pencil Code as measured by this project on a machine with AVX-512, over "
        "core times time here."
    )
    return Table(
        "Against a CPU solver",
        ("cells", "", "", "ns a cell\nand step", "times as fast\nas its node", "as its core,\na core"),
        tuple(rows),
        left=3,
        muted=tuple(range(own, len(rows))),
        note=note,
    )


def verdicts(measurements: Sequence[Measurement], theory: Theory) -> list[str]:
    """What the study shows, a sentence each."""
    said = []
    for _, found in _sizes(measurements):
        base, best = baseline(found), min(found, key=ns)
        fastest = f"{size(base)}: fastest with {layout(best)}, {nanoseconds(ns(best))} ns a cell and step"
        if best is not base:
            share = of_theory(best, found, theory)
            fastest += f": {ns(base) / ns(best):.2f} times as fast as {layout(base)}"
            fastest += "" if share is None else f", {percent(share)} of what the formula lets expect"
        said.append(f"{fastest}.")
    return said


def plot(measurements: Sequence[Measurement], theory: Theory) -> Figure:
    """Fig. 10, effective scaling, and Fig. 11, the formula, with lines of ideal scaling."""
    figure = figure_of(1, 2)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, found in enumerate(_lines(measurements)):
        how = {**style(number), "label": label(found[0], measurements)}
        left.plot([units(m) for m in found], [ns(m) for m in found], **how)
        told = [(units(m), value) for m in found if (value := theory.ns(m, found)) is not None]
        right.plot(*zip(*told, strict=True), **how)
        for ax in (left, right):
            draw_ideal_scaling(ax, found)
    times_over_units(left, measurements, NS)
    times_over_units(right, measurements, "")
    left.set_title("Measured")
    right.set_title("Closed formula")
    legend(figure, left, 3)
    return figure


def plot_energy(measurements: Sequence[Measurement]) -> Figure | None:
    """Fig. 15b: cells and steps a joule; None where no run knows its energy."""
    from halocline.io.style import doubling

    known = [m for m in measurements if m["joules_per_cell_step"]]
    if not known:
        return None
    figure = figure_of()
    ax = figure.subplots()
    for number, found in enumerate(_lines(known)):
        how = {**style(number), "label": label(found[0], known)}
        ax.plot([units(m) for m in found], [1e-6 / m["joules_per_cell_step"] for m in found], **how)
    doubling(ax, sorted({units(m) for m in known}))
    ax.set_ylim(0, None)
    ax.set_title(f"Energy efficiency, of {' and '.join(known[0]['joules_of'])}")
    ax.set_xlabel(f"{unit(known[0])}s")
    ax.set_ylabel("million cells and steps a joule")
    legend(figure, ax, 3)
    return figure


def _sizes(measurements: Sequence[Measurement]) -> list[tuple[int, list[Measurement]]]:
    return list(by(measurements, lambda m: m["cells"]))


def _alike(measurement: Measurement, found: Sequence[Measurement]) -> list[Measurement]:
    """Those with as many threads a rank: 1/π is of a rank."""
    return [m for m in found if m["threads"] == measurement["threads"]]


def _lines(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    """A line for each size and number of threads, over the number of ranks."""
    return [sorted(own, key=units) for _, own in by(measurements, lambda m: (m["cells"], m["threads"]))]
