"""Tables with the same form in a terminal and on a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from halocline.words import one_line

RULED = "    \n    \n ── \n    \n    \n    \n    \n    \n"  # line below the heads
WIDEST = 10_000  # width in characters that avoids line breaks

T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """Table of text with column heads.

    Parameters
    ----------
    title : str
    heads : tuple of str
        Column heads. A line break in a head starts a second line.
    rows : tuple of tuple of str
    left : int
        Number of leading columns that contain names, which are left-aligned; other columns are right-aligned.
    muted : tuple of int
        Indices of the rows in a less prominent style, such as rows from another source.
    note : str
        Text below the table.
    heading : str
        Heading above the title, for this table and the tables after it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    muted: tuple[int, ...] = ()
    note: str = ""
    heading: str = ""

    def text(self) -> str:
        """Return the table as text."""
        from rich.box import Box
        from rich.console import Console
        from rich.table import Table as Rich

        rich_table = Rich(box=Box(RULED), show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for i, head in enumerate(self.heads):
            side: Any = "left" if i < self.left else "right"
            rich_table.add_column(head, justify=side, vertical="bottom", no_wrap=True)
        for row in self.rows:
            rich_table.add_row(*map(one_line, row))
        console = Console(width=WIDEST, color_system=None, markup=False, emoji=False, highlight=False)
        with console.capture() as captured:
            console.print(rich_table)
        above = [self.heading, "=" * len(self.heading), ""] if self.heading else []
        lines = [line.rstrip() for line in captured.get().splitlines()]
        note = ["", *self.note.splitlines()] if self.note else []
        return "\n".join([*above, one_line(self.title), "", *lines, *note]) + "\n"


def table_of(
    title: str, records: Iterable[T], columns: Mapping[str, Callable[[T], str]], **options: Any
) -> Table:
    """Return a table with a row for each record.

    Each column is a function of a record; its key is the column head. For `options`, see `Table`.
    """
    rows = tuple(tuple(cell(record) for cell in columns.values()) for record in records)
    return Table(title, tuple(columns), rows, **options)


def as_rows(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as comma-separated values: a line of all names, then a line for each record."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()
