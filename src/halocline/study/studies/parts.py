"""A step and its parts: whole, computing alone, the exchange alone, the exchange with corners too (Pekkilä et
al. 2022, Fig. 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halocline.study.measuring.command import Measurement
from halocline.study.reporting.plots import panels, style
from halocline.study.reporting.published import ASTAROTH, MHD_CASE, MHD_CORNERS, MHD_OVERHEAD
from halocline.study.reporting.quantities import by, layout, nanoseconds, ns, size, unit, units, wrapped
from halocline.study.reporting.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what is timed, by --only and --halo
PARTS = {
    "whole step": (None, "read"),
    "compute alone": ("compute", "read"),
    "exchange alone": ("exchange", "read"),
    "exchange with corners": ("exchange", "uniform"),
}
WHOLE, COMPUTE, EXCHANGE, CORNERS = PARTS


def parts_of(measurements: Sequence[Measurement]) -> dict[str, Measurement]:
    """Those of one layout, by the names of PARTS."""
    kinds = {kind: name for name, kind in PARTS.items()}
    found = {kinds[m["only"], m["halo"]]: m for m in measurements}
    return {name: found[name] for name in PARTS if name in found}


def overhead(parts: dict[str, Measurement]) -> float:
    """What a step takes beyond the longer of computing and exchange: nothing, were each hidden behind the
    other."""
    return ns(parts[WHOLE]) / max(ns(parts[COMPUTE]), ns(parts[EXCHANGE])) - 1


def tables(measurements: Sequence[Measurement]) -> list[Table]:
    """One for each size: layouts in rows, parts in columns."""
    made = []
    for _, found in by(measurements, lambda m: m["cells"]):
        one, rows = found[0], []
        for own in _layouts(found):
            parts = parts_of(own)
            times = [nanoseconds(ns(parts[name])) for name in PARTS]
            more = f"{ns(parts[CORNERS]) / ns(parts[EXCHANGE]) - 1:+.0%}"
            rows.append((layout(own[0]), f"{units(own[0])}", *times, f"{overhead(parts):+.0%}", more))
        own_rows = len(rows)
        notes = [
            "ns a cell and step. Beyond the longer: the whole step over the longer of compute and exchange."
        ]
        if one["case"] == MHD_CASE:
            rows.append(
                ("paper, 256³", "1-64 V100", "", "", "", "", _range(MHD_OVERHEAD), _range(MHD_CORNERS))
            )
            notes.append(f"Paper: {ASTAROTH}; what corners add there is of the whole step.")
        heads = (
            *("", f"{unit(one)}s", "whole\nstep", "compute\nalone", "exchange\nalone", "with\ncorners"),
            *("beyond the\nlonger", "corners\nadd"),
        )
        made.append(
            Table(
                "A step and its parts",
                heads,
                tuple(rows),
                muted=tuple(range(own_rows, len(rows))),
                note=wrapped(*notes),
                heading=f"{size(one)}: compute and exchange apart",
            )
        )
    return made


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """For each size, what takes the time on the most devices."""
    said = []
    for _, found in by(measurements, lambda m: m["cells"]):
        last = _layouts(found)[-1]
        parts = parts_of(last)
        longer = max((COMPUTE, EXCHANGE), key=lambda name: ns(parts[name]))
        ratio, more = ns(parts[EXCHANGE]) / ns(parts[COMPUTE]), overhead(parts)
        step = f"{more:.0%} more than that" if more >= 0.005 else "no more than that"
        said.append(
            f"{size(last[0])} on {layout(last[0])}: {longer} takes longer (the exchange {ratio:.2f} times as "
            f"long as computing), and a step {step}."
        )
    return said


def plot(measurements: Sequence[Measurement]) -> Figure:
    """A panel for each size and number of threads, a line for each part."""
    figure, each = panels(measurements, "A step and its parts")
    for ax, found in each:
        for number, (name, (only, halo)) in enumerate(PARTS.items()):
            line = sorted((m for m in found if (m["only"], m["halo"]) == (only, halo)), key=units)
            ax.plot([units(m) for m in line], [ns(m) for m in line], **style(number), label=name)
    return figure


def _layouts(found: Sequence[Measurement]) -> list[list[Measurement]]:
    """All parts of each layout."""
    return [own for _, own in by(found, lambda m: (units(m), m["ranks"]))]


def _range(shares: tuple[float, float]) -> str:
    return "to ".join(f"{share:.2%} ".replace(".00%", "%") for share in shares).strip()
