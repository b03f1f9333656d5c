"""Who sends how much to whom, and how, as a picture."""

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

MOST = 128  # subdomains that can be told apart in a picture


def traffic(schedule: Schedule, transfers: Transfers) -> dict[tuple[int, int], tuple[str, int]]:
    """What subdomains send each other in one pass of the loop.

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
        More than 128 subdomains.
    """
    count = transfers.layout.decomposition.count
    if count > MOST:
        raise InputError(f"a picture of {count} subdomains cannot be read; expected at most {MOST}")
    sent: dict[tuple[int, int], tuple[str, int]] = {}
    for number in range(count):
        plan = plan_subdomain(schedule, transfers, number)
        for peer, _, size in plan.arrivals(schedule.pass_numbers()):
            before = sent.get((peer, number), ("", 0))[1]
            sent[peer, number] = transfers.method(peer, number), before + size
    return sent


def plot(schedule: Schedule, transfers: Transfers) -> Figure:
    """Draw the communication matrix: a square for each pair, coloured by method, larger for more bytes.

    Raises
    ------
    InputError
        More than 128 subdomains.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    from halocline.io.style import COLOURS, FAINT, MUTED

    sent, layout = traffic(schedule, transfers), transfers.layout
    count = layout.decomposition.count
    order = [number for rank in range(layout.ranks) for number in layout.owned(rank)]
    place = {number: i for i, number in enumerate(order)}
    most = max((size for _, size in sent.values()), default=1)
    colours = dict(zip(METHODS, COLOURS, strict=False))
    figure = Figure(figsize=(6.4, 7.1))
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.08)  # inches
    axes = figure.subplots()
    for (sender, receiver), (method, size) in sent.items():
        edge = 0.92 * max(0.25, (size / most) ** 0.5)
        corner = place[receiver] - edge / 2, place[sender] - edge / 2
        axes.add_patch(Rectangle(corner, edge, edge, facecolor=colours[method], linewidth=0))
    for rank in range(layout.ranks + 1):
        node = rank in (0, layout.ranks) or layout.node(rank) != layout.node(rank - 1)
        at = rank * layout.subdomains_per_rank - 0.5
        for line in (axes.axhline, axes.axvline):
            line(at, color=MUTED if node else FAINT, linewidth=1.2 if node else 0.6, zorder=0)
    step = max(1, count // 16)
    ticks = range(0, count, step)
    axes.set_xticks(ticks, [f"{order[i]}" for i in ticks])
    axes.set_yticks(ticks, [f"{order[i]}" for i in ticks])
    axes.set(
        aspect="equal",
        xlim=(-0.5, count - 0.5),
        ylim=(count - 0.5, -0.5),
        xlabel="to subdomain (lines: ranks, dark: nodes)",
        ylabel="from subdomain",
        title=f"One pass of the loop; the largest square is {amount(most)}",
    )
    sums: Counter[str] = Counter()
    for method, size in sent.values():
        sums[method] += size
    labels = {m: f"{m}, {amount(sums[m])} in all" for m in METHODS if m in sums}
    handles = [Patch(color=colours[m], label=label) for m, label in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
