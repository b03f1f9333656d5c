"""Report of a study that compares variants of the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Column, Contents, Group, by_layout, ordered_rows, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison(
    head: str,
    label: Callable[[Measurement], str],
    *further_columns: Column,
    order: Callable[[Measurement], Any] | None = None,
    note: Callable[[Group], str] = lambda group: "",
    base: str | None = None,
    layout: Callable[[Measurement], Any] = by_layout,
    figures: Mapping[str, Callable[[Group], Figure | None]] | None = None,
) -> Contents:
    """Return the contents of a comparison: tables of times for each size, and sentences on the fastest runs.

    Parameters
    ----------
    head : str
        Head of the column of labels.
    label : callable
        Function that returns the name of the variant of a run.
    *further_columns : Column
    order : callable, optional
        Sort key of the rows of a layout; `label` by default.
    note : callable
        Function that returns the note of the table of a group.
    base : str, optional
        Label of the reference run; by default the reference is the fastest run.
    layout : callable
        Function that returns the key of the layout of a run. Runs with equal keys are compared with each
        other.
    figures : mapping of str to callable, optional
        Functions that draw a figure of a group, by file name.
    """
    row_key = order or label

    def reference(same_layout: Group) -> Measurement:
        base_runs = same_layout.select(lambda m: label(m) == base).members
        return base_runs[0] if base_runs else same_layout.best

    def relative_time(m: Measurement, group: Group) -> str:
        same_layout = group.select(lambda other: layout(other) == layout(m))
        return f"{q.pace(m) / q.pace(reference(same_layout)):.2f}"

    def tables(group: Group) -> Iterator[Table]:
        names = Column(head, lambda m, g: label(m))
        ratios = Column(f"relative to\n{base or 'the fastest'}", relative_time)
        for size in group.split(q.grid):
            rows = ordered_rows(size, lambda m: (layout(m), row_key(m)))
            heading = q.heading(size.first)
            columns = (names, c.LAYOUT, c.NS, ratios, *further_columns)
            yield row_table("Times", columns, rows, left=2, note=note(size), heading=heading)

    def sentences(group: Group) -> Iterator[str]:
        for runs in group.split(lambda m: (q.grid(m), layout(m))):
            slowest, compared_run = max(runs.members, key=q.pace), reference(runs)
            compared_run = runs.best if compared_run is slowest else compared_run
            ratio = q.pace(slowest) / q.pace(compared_run)
            fastest = f"{q.size(runs.first)} on {q.layout(runs.first)}: fastest with {label(runs.best)}"
            slowest_text = (
                f"; a run with {label(slowest)} takes {ratio:.2f} times as long as with {label(compared_run)}"
            )
            yield f"{fastest}{slowest_text if len(runs.members) > 1 else ''}."

    return Contents(tables, sentences, figures or {})
