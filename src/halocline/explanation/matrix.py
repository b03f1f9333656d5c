"""Picture of the communication matrix: volume and method of the transfers between subdomains."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.plan.rank import plan_subdomain
from halocline.plan.transfer import METHODS, Transfers
from halocline.words import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SUBDOMAINS = 128  # for more subdomains, the squares of the picture are too small


def traffic(schedule: Schedule, transfers: Transfers) -> dict[tuple[int, int], tuple[str, int]]:
    """Return the traffic between subdomains in one pass of the loop.

    Parameters
    ----------
    schedule : Schedule
    transfers : Transfers

    Returns
    -------
    dict of (sender, receiver) to (method, bytes)

    Raises
    ------
    InputError
        There are more than 128 subdomains.
    """
    count = transfers.layout.decomposition.count
    if count > MAX_SUBDOMAINS:
        raise InputError(f"the picture would show {count} subdomains; expected at most {MAX_SUBDOMAINS}")
    volumes: dict[tuple[int, int], tuple[str, int]] = {}
    for number in range(count):
        plan = plan_subdomain(schedule, transfers, number)
        for peer, _, size in plan.arrivals(schedule.pass_numbers()):
            previous = volumes.get((peer, number), ("", 0))[1]
            volumes[peer, number] = transfers.method(peer, number), previous + size
    return volumes


def plot(schedule: Schedule, transfers: Transfers) -> Figure:
    """Draw the communication matrix with one square per pair of subdomains.

    The colour of a square shows the transfer method, and the size of the square shows the bytes.

    Raises
    ------
    InputError
        There are more than 128 subdomains.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    from halocline.io.style import COLOURS, FAINT, MUTED

    volumes, layout = traffic(schedule, transfers), transfers.layout
    count = layout.decomposition.count
    order = [number for rank in range(layout.ranks) for number in layout.subdomains_of(rank)]
    positions = {number: i for i, number in enumerate(order)}
    largest = max((size for _, size in volumes.values()), default=1)
    colours = dict(zip(METHODS, COLOURS, strict=False))
    figure = Figure(figsize=(6.4, 7.1))
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.08)  # inches
    axes = figure.subplots()
    for (sender, receiver), (method, size) in volumes.items():
        edge = 0.92 * max(0.25, (size / largest) ** 0.5)
        corner = positions[receiver] - edge / 2, positions[sender] - edge / 2
        axes.add_patch(Rectangle(corner, edge, edge, facecolor=colours[method], linewidth=0))
    for rank in range(layout.ranks + 1):
        is_node = rank in (0, layout.ranks) or layout.node(rank) != layout.node(rank - 1)
        offset = rank * layout.subdomains_per_rank - 0.5
        for line in (axes.axhline, axes.axvline):
            line(offset, color=MUTED if is_node else FAINT, linewidth=1.2 if is_node else 0.6, zorder=0)
    step = max(1, count // 16)
    ticks = range(0, count, step)
    axes.set_xticks(ticks, [f"{order[i]}" for i in ticks])
    axes.set_yticks(ticks, [f"{order[i]}" for i in ticks])
    axes.set(
        aspect="equal",
        xlim=(-0.5, count - 0.5),
        ylim=(count - 0.5, -0.5),
        xlabel="receiving subdomain (lines separate ranks, dark lines nodes)",
        ylabel="sending subdomain",
        title=f"One pass of the loop; the largest square is {amount(largest)}",
    )
    sums: Counter[str] = Counter()
    for method, size in volumes.values():
        sums[method] += size
    labels = {m: f"{m}, {amount(sums[m])} in total" for m in METHODS if m in sums}
    handles = [Patch(color=colours[m], label=label) for m, label in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
