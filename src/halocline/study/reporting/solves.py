"""Convergence of linear solves, in the form of Table 3.1 of UMBC HPCF-2018-10."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from halocline.io.style import COLOURS, INK, MUTED, doubling
from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.measuring.command import layout_text
from halocline.study.reporting.plots import figure_of
from halocline.study.reporting.reference import references, with_notes
from halocline.study.reporting.report import Group
from halocline.words import clock, gigabytes, in_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VECTORS = 4  # number of vectors of conjugate gradients: x, r, p, and q or the next p
FOOTER = (
    "Times are wall-clock times of the solve, between two barriers. "
    "Observed memory is VmRSS on the host, summed over the ranks; 1 GB = 1024³ bytes."
)
HEADS = (*("N", "", "DOF", "error", "ratio", "iter."), *("time\nHH:MM:SS", "\nseconds"))
MEMORY = ("memory GB\npredicted", "\nobserved")
MEMORY_BESIDE_DEVICES = ("memory GB, devices\npredicted", "host\nobserved")


def predicted_bytes(n: int, dim: int) -> int:
    """Return the memory of the vectors of conjugate gradients, by UMBC HPCF-2018-10, Section 3.

    The four vectors have n^dim numbers of 8 bytes each.
    """
    return VECTORS * 8 * int(n**dim)


def published_for(measurement: Measurement) -> dict[str, Any] | None:
    """Return the published result of the same solve; None if nothing is published."""
    return next(
        (row for reference in references("convergence") if (row := reference.result(measurement))), None
    )


def table(measurements: Sequence[Measurement]) -> Table:
    """Return the table of measurements. The published row of the same N is below each measured row."""
    rows: list[tuple[str, ...]] = []
    published: list[int] = []
    ratios = [None, *(_ratio(coarse, fine) for coarse, fine in pairwise(measurements))]
    for m, ratio in zip(measurements, ratios, strict=True):
        iterations = f"{m['iterations']:,}" + ("" if m["converged"] else " (not converged)")
        results = _results(m["error_max"], ratio, iterations, m["seconds"])
        memory = gigabytes(predicted_bytes(m["n"], m["dim"])), gigabytes(m["memory_bytes"])
        rows.append((f"{m['n']}", "this machine", f"{m['dof']:,}", *results, *memory))
        if other := published_for(m):
            published.append(len(rows))
            iterations = f"{other['iterations']:,}"
            results = _results(other["error_max"], other["ratio"], iterations, other["seconds"])
            observed = f"{other['memory_observed_gb']:.2f}" if other["memory_observed_gb"] else "< 1"
            rows.append(("", "paper", "", *results, "", observed))
    note = with_notes("convergence", Group(measurements))
    first = measurements[0]
    title = f"Convergence study: {first['case']} in {first['dim']}D, {first['method']}, {layout_text(first)}"
    heads = HEADS + (MEMORY_BESIDE_DEVICES if first["devices"] else MEMORY)
    return Table(title, heads, tuple(rows), left=2, muted=tuple(published), note=note)


def _results(
    error: float | None, ratio: float | None, iterations: str, seconds: float
) -> tuple[str, str, str, str, str]:
    """Return the texts of the columns that measured and published rows have in common."""
    return (
        "unknown" if error is None else f"{error:.4e}",
        "" if ratio is None else f"{ratio:.2f}",
        *(iterations, clock(seconds), in_seconds(seconds)),
    )


def _ratio(coarse: Measurement, fine: Measurement) -> float | None:
    """Return the ratio of the errors on a coarse and a fine grid; None if an error is unknown or 0."""
    return coarse["error_max"] / fine["error_max"] if coarse["error_max"] and fine["error_max"] else None


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """Return sentences that compare the measurements with published results and with second order."""
    sentences = []
    for m in measurements:
        other = published_for(m)
        if other is None:
            continue
        difference = m["iterations"] - other["iterations"]
        iterations = f"{m['iterations']:,} iterations, " + (
            "as published" if not difference else f"{difference:+d}"
        )
        error = _agreement(m["error_max"], other["error_max"])
        sentences.append(f"N = {m['n']}: {iterations}; the error is {error}.")
    for coarse, fine in pairwise(measurements):
        if coarse["converged"] and fine["converged"] and fine["n"] == 2 * coarse["n"]:
            ratio = _ratio(coarse, fine)
            ratio_text = (
                "no ratio, because an error is 0 or unknown"
                if ratio is None
                else f"the error decreases by a factor of {ratio:.2f}"
            )
            sentences.append(f"N = {coarse['n']} to {fine['n']}: {ratio_text} (second order: 4).")
    return sentences


def _agreement(measured: float | None, published: float) -> str:
    """Return the measured error, compared with the published error, as text after "is"."""
    if measured is None:
        return f"unknown (published: {published:.4e})"
    measured_text, published_text = f"{measured:.4e}", f"{published:.4e}"
    if measured_text == published_text:
        return f"{measured_text}, as published in all digits"
    return f"{measured_text}, {abs(measured / published - 1):.2%} from the published {published_text}"


def plot(measurements: Sequence[Measurement]) -> Figure:
    """Return the figure of errors and iterations over N, with the published values."""
    figure, (errors, counts) = figure_of(2, 2)
    converged_runs = [m for m in measurements if m["converged"] and m["error_max"] and m["iterations"]]
    ns = [m["n"] for m in converged_runs]
    published = [row for row in map(published_for, converged_runs) if row]
    ring: dict[str, Any] = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": MUTED}
    for ax, key, title in ((errors, "error_max", "Maximum error"), (counts, "iterations", "Iterations")):
        if published:
            xs, ys = [row["n"] for row in published], [row[key] for row in published]
            ax.plot(xs, ys, "o", **ring, label="paper")
        ax.plot(ns, [m[key] for m in converged_runs], "o-", color=COLOURS[0], label="this machine")
        ax.set(yscale="log", title=title, xlabel="N, points along an axis")
        doubling(ax, ns)
    counts.set_yticks(
        [m["iterations"] for m in converged_runs], [f"{m['iterations']:,}" for m in converged_runs]
    )
    errors.set_yticks(
        [m["error_max"] for m in converged_runs], [f"{m['error_max']:.1e}" for m in converged_runs]
    )
    if len(converged_runs) > 1:
        first = converged_runs[0]["error_max"]
        line = [first * ((ns[0] + 1) / (n + 1)) ** 2 for n in ns]
        errors.plot(ns, line, "--", color=INK, linewidth=0.9, zorder=1, label="second order")
    errors.legend()
    return figure
