"""The contents of a study that compares the same run done in several ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import (
    Block,
    Column,
    Contents,
    Figure,
    Group,
    Rows,
    Words,
    by_layout,
)


def comparison(
    head: str,
    label: Callable[[Measurement], str],
    *more: Column,
    order: Callable[[Measurement], Any] | None = None,
    note: Words = "",
    base: str | None = None,
    layout: Callable[[Measurement], Any] = by_layout,
    figures: tuple[Figure, ...] = (),
) -> Contents:
    """A table for each size, with times by a label, and which is fastest.

    Parameters
    ----------
    head : str
        Of the column of labels.
    label : callable
        What a run is called.
    *more : Column
        Further columns.
    order : callable, optional
        What rows of a layout are sorted by; the label by default.
    note : str, or function of the group
    base : str, optional
        The label of the run that others are compared with; the fastest by default.
    layout : callable
        Key of the layout: runs of the same layout are compared with each other.
    figures : tuple of Figure
    """
    within = order or label

    def sort(m: Measurement) -> Any:
        return layout(m), within(m)

    def like(m: Measurement, group: Group) -> Group:
        """Return the runs on the same layout."""
        return group.those(lambda o: layout(o) == layout(m))

    def reference(own: Group) -> Measurement:
        named = own.those(lambda m: label(m) == base).found
        return named[0] if named else own.best

    def over(m: Measurement, group: Group) -> str:
        return f"{q.pace(m) / q.pace(reference(like(m, group))):.2f}"

    def sentences(group: Group) -> list[str]:
        said = []
        for own in group.by(lambda m: (q.grid(m), layout(m))):
            slowest = max(own.found, key=q.pace)
            times = q.pace(slowest) / q.pace(reference(own))
            what = f"{q.size(own.one)} on {q.layout(own.one)}: fastest with {label(own.best)}"
            more = f"; with {label(slowest)} {times:.2f} times as long as with {label(reference(own))}"
            said.append(f"{what}{more if len(own.found) > 1 else ''}.")
        return said

    columns = (
        Column(head, lambda m, g: label(m)),
        c.LAYOUT,
        c.NS,
        Column(f"over\n{base or 'the fastest'}", over),
    )
    rows = Rows("Times", (*columns, *more), order=sort, note=note, left=2)
    heading = lambda g: f"{q.size(g.one)}: {g.one['cells']:,} cells, {q.named(g.one)}"  # noqa: E731
    return Contents((Block((rows,), by=q.grid, heading=heading),), figures, (sentences,))
