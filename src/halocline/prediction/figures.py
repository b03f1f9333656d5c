"""The figures of the papers that the model draws: halo sizes, theoretical strong scaling, ranks of a node.

Astaroth: J. Pekkilä et al., Parallel Computing 111 (2022), Figs. 5 and 11. The cavity code: the study of
ranks per node of its Section 4.4, Fig. 5, on a machine file in the place of its clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.model import execute, step_time
from halocline.plan.decompose import decompose
from halocline.plan.fit import least_thickness
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine
from halocline.plan.traffic import Traffic
from halocline.words import counted, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RADIUS = 3
PER_CELL, PER_HALO_CELL = 2.2e-9, 3.9e-9  # seconds on the four V100 of a node of Puhti, Section 5
DEVICES = 4  # of such a node
CUTS = ("1d", "2d", "3d", "optimal")


def halo_sizes(
    shape: Sequence[int] = (512,) * 3, most: int = 512, radius: int = RADIUS
) -> dict[str, dict[int, int]]:
    """The cells that the worst-placed subdomain exchanges, by kind of cut and number of subdomains (powers of
    two); a number that an axis cannot be cut into is left out. Q of Eq. 7."""
    found: dict[str, dict[int, int]] = {cut: {} for cut in CUTS}
    for cut, line in found.items():
        count = 2
        while count <= most:
            try:
                line[count] = decompose(shape, count, strategy=cut, radius=radius).cost
            except InputError:
                break
            count *= 2
    return found


def theoretical_scaling(
    sizes: Sequence[int] = (256, 512, 1024), most: int = 64
) -> dict[int, dict[int, float]]:
    """Seconds of a step by the closed formula, by cells along an axis and number of devices (Fig. 11)."""
    found: dict[int, dict[int, float]] = {}
    for n in sizes:
        count = 1
        while count <= most:
            nodes, devices = max(1, count // DEVICES), min(count, DEVICES)
            made = step_time(
                (n,) * 3,
                nodes,
                devices,
                radius=RADIUS,
                per_cell=PER_CELL,
                per_halo_cell=PER_HALO_CELL,
            )
            found.setdefault(n, {})[count] = made.seconds
            count *= 2
    return found


def ranks_of_a_node(
    schedule: Schedule, shape: Sequence[int], machine: Machine, ranks: int, per_node: Sequence[int]
) -> dict[int, float]:
    """Seconds of a pass on so many ranks, by how many of them share a node: fewer have more memory bandwidth
    and more of a network card each, and their neighbours farther away."""
    found = {}
    for many in per_node:
        if ranks % many:
            raise InputError(f"{ranks} ranks cannot be put {many} on a node: they leave a node half empty")
        layout = lay_out(
            shape,
            ranks,
            ranks_per_node=many,
            traffic=Traffic.of_schedule(schedule),
            thickness=least_thickness(schedule),
            periodic=schedule.periodic,
        )
        found[many] = execute(schedule, layout, machine).seconds
    return found


def draw_halo_sizes(found: dict[str, dict[int, int]]) -> Figure:
    """Fig. 5 of Astaroth."""
    from halocline.io.style import logarithmic

    figure, ax = _figure("Cells that a subdomain exchanges", "subdomains")
    for cut, line in found.items():
        ax.plot(list(line), list(line.values()), "s--" if cut == "optimal" else "o-", label=cut)
    logarithmic(ax, lambda cells: f"{cells / 1e6:g} million")
    _end(ax, sorted({count for line in found.values() for count in line}))
    return figure


def draw_theoretical_scaling(found: dict[int, dict[int, float]]) -> Figure:
    """Fig. 11 of Astaroth."""
    from halocline.io.style import MUTED, logarithmic

    figure, ax = _figure("Time of a step and cell", "devices")
    for n, line in found.items():
        ax.plot(list(line), [t / n**3 for t in line.values()], "o-", label=f"{n}³")
    counts = sorted({count for line in found.values() for count in line})
    ax.plot(counts, [PER_CELL / count for count in counts], ":", color=MUTED, label="ideal")
    logarithmic(ax, lambda seconds: f"{1e9 * seconds:g} ns")
    _end(ax, counts)
    return figure


def draw_ranks_of_a_node(found: dict[int, float], ranks: int) -> Figure:
    """As Fig. 5 of the cavity code."""
    figure, ax = _figure(f"Time of a pass on {counted(ranks, 'rank')}", "ranks of a node")
    ax.plot(list(found), list(found.values()), "o-")
    ax.set_ylim(0, None)
    ax.yaxis.set_major_formatter(lambda seconds, _: duration(seconds) if seconds else "0")
    _end(ax, list(found), legend=False)
    return figure


def _figure(title: str, along: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.set_title(title)
    ax.set_xlabel(along)
    return figure, ax


def _end(ax: Axes, ticks: Sequence[int], *, legend: bool = True) -> None:
    from halocline.io.style import doubling

    doubling(ax, ticks)
    if legend:
        ax.legend()
