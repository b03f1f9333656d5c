"""The study of strong scaling: one problem on more and more ranks and threads.

Tables in the form of UMBC HPCF-2018-10: threads a rank in rows and ranks in columns as its Table 4.1 has
processes and nodes, and ranks times threads of a constant product as its Table 7.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.quantities import unit, units
from halocline.study.reporting.table import Table, clock, counted, duration, in_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SHARE = "Bytes that an iteration must move a second, over those that {}."
YARDSTICKS = {True: "copies within the same devices move", False: "a += s * b moves on the same cores"}


def tables(measurements: Sequence[Measurement]) -> list[Table]:
    """For each N: wall clock, speed-up, efficiency, share of bandwidth, hybrid runs on equal cores."""
    made = []
    for n, found in _by_n(measurements):
        one = found[0]
        base = baseline(found)
        ups = [speedup(m, base) for m in found]
        times = [f"{clock(m['seconds'])}  {in_seconds(m['seconds']):>8}" for m in found]
        efficiencies = [f"{up / units(m):.2f}" for up, m in zip(ups, found, strict=True)]
        shares = [f"{m['bandwidth_share']:.0%}" if m["bandwidth_share"] else "" for m in found]
        share = SHARE.format(YARDSTICKS[bool(one["devices"])])
        heading = f"N = {n}: {one['dof']:,} unknowns, {one['case']} in {one['dim']}D, {one['method']}"
        made += [
            _grid("Wall clock, HH:MM:SS and seconds", found, times, heading=heading),
            _grid("Speed-up", found, [f"{up:.2f}" for up in ups]),
            _grid("Efficiency", found, efficiencies, f"Relative to {_layout(base)}."),
            _grid("Share of the measured bandwidth", found, shares, share),
        ]
        hybrid = _hybrid(f"Hybrid runs: equal {unit(one)}s", found)
        if hybrid:
            made.append(hybrid)
    return made


def baseline(measurements: Sequence[Measurement]) -> Measurement:
    """What speed-ups are relative to: the run on the fewest cores or devices, the fastest of them."""
    return min(measurements, key=lambda m: (units(m), m["seconds"]))


def speedup(measurement: Measurement, base: Measurement) -> float:
    """T_1 / T_p; where the base has more than one core or device it counts as that many times
    faster than one."""
    return float(units(base) * base["seconds"] / measurement["seconds"])


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """What the study shows, a sentence each."""
    said = []
    for n, found in _by_n(measurements):
        iterations = {m["iterations"] for m in found}
        sums = {m["checksum"] for m in found}
        runs = f"N = {n}: {len(found)} runs"
        if len(iterations) == len(sums) == 1:
            same = f"{iterations.pop():,} iterations, checksum {sums.pop()}"
            said.append(f"{runs}, all with the same bits: {same}.")
        else:
            said.append(f"{runs} gave {len(sums)} different results; please report this as a bug.")
        base, best = baseline(found), min(found, key=lambda m: m["seconds"])
        fastest = f"N = {n}: fastest with {_layout(best)}, {duration(best['seconds'])}"
        more = f": {speedup(best, base):.2f} times as fast as {_layout(base)}"
        said.append(fastest + ("." if best is base else f"{more}."))
    return said


def plot(measurements: Sequence[Measurement]) -> Figure:
    """Speed-up and efficiency over the number of cores or devices."""
    from matplotlib.figure import Figure

    from halocline.io.style import MARKERS, MUTED, doubling

    figure = Figure(figsize=(9.6, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    most = max(units(m) for m in measurements)
    least = min(units(m) for m in measurements)
    left.plot([least, most], [least, most], "--", color=MUTED, linewidth=0.9, label="ideal")
    right.axhline(1.0, color=MUTED, linestyle="--", linewidth=0.9)
    number = 0
    for n, found in _by_n(measurements):
        base = baseline(found)
        for threads in sorted({m["threads"] for m in found}):
            line = sorted((m for m in found if m["threads"] == threads), key=units)
            xs = [units(m) for m in line]
            ups = [speedup(m, base) for m in line]
            label = f"N = {n}, {counted(threads, 'thread')} a rank"
            style = {"marker": MARKERS[number % len(MARKERS)], "label": label}
            left.plot(xs, ups, **style)
            right.plot(xs, [up / x for up, x in zip(ups, xs, strict=True)], **style)
            number += 1
    ticks = sorted({units(m) for m in measurements})
    for ax, title in ((left, "Speed-up"), (right, "Efficiency")):
        ax.set_title(title)
        ax.set_xlabel("devices" if measurements[0]["devices"] else "cores (ranks times threads)")
        doubling(ax, ticks)
    left.set_yscale("log", base=2)
    left.set_yticks(ticks, [f"{t}" for t in ticks])
    right.set_ylim(0, None)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _by_n(measurements: Sequence[Measurement]) -> Iterator[tuple[int, list[Measurement]]]:
    for n in sorted({m["n"] for m in measurements}):
        yield n, [m for m in measurements if m["n"] == n]


def _grid(
    title: str, found: Sequence[Measurement], texts: Sequence[str], note: str = "", heading: str = ""
) -> Table:
    """One text per measurement: threads in rows, ranks in columns."""
    ranks = sorted({m["ranks"] for m in found})
    threads = sorted({m["threads"] for m in found})
    cell = {(m["threads"], m["ranks"]): text for m, text in zip(found, texts, strict=True)}
    heads = ("", *(counted(r, "rank") for r in ranks))
    rows = tuple((f"{counted(t, 'thread')} a rank", *(cell.get((t, r), "") for r in ranks)) for t in threads)
    return Table(title, heads, rows, note=note, heading=heading)


def _hybrid(title: str, measurements: Sequence[Measurement]) -> Table | None:
    """Equal cores or devices, shared out differently among ranks and threads; None without two such runs."""
    rows = []
    for count in sorted({units(m) for m in measurements}):
        equal = sorted((m for m in measurements if units(m) == count), key=lambda m: int(m["ranks"]))
        if len(equal) < 2:
            continue
        best = min(m["seconds"] for m in equal)
        for m in equal:
            slower = f"{m['seconds'] / best:.2f}"
            rows.append((_layout(m), f"{count}", clock(m["seconds"]), in_seconds(m["seconds"]), slower))
    if not rows:
        return None
    heads = ("", f"{unit(measurements[0])}s", "wall clock\nHH:MM:SS", "\nseconds", "over the\nfastest")
    return Table(title, heads, tuple(rows))


def _layout(measurement: Measurement) -> str:
    return f"{counted(measurement['ranks'], 'rank')} of {counted(measurement['threads'], 'thread')}"
