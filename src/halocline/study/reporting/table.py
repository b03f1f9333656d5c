"""Tables that look the same in a terminal and on a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halocline.run.devices.devices import OnDevice

RULED = "    \n    \n ── \n    \n    \n    \n    \n    \n"  # a line below the heads
WIDEST = 10_000  # characters: nothing is wrapped


@dataclass(frozen=True)
class Table:
    """Rows of text under column heads.

    Parameters
    ----------
    title : str
    heads : tuple of str
        A line break in a head makes a second line.
    rows : tuple of tuple of str
    left : int
        How many of the first columns hold names, set to the left; numbers are set to the right.
    muted : tuple of int
        Rows that stand back, such as those of another source.
    note : str
        Below the table.
    heading : str
        Above the title, of this table and those that follow it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    muted: tuple[int, ...] = ()
    note: str = ""
    heading: str = ""

    def text(self) -> str:
        """The table in characters."""
        from rich.box import Box
        from rich.console import Console
        from rich.table import Table as Rich

        made = Rich(box=Box(RULED), show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for i, head in enumerate(self.heads):
            side: Any = "left" if i < self.left else "right"
            made.add_column(head, justify=side, vertical="bottom", no_wrap=True)
        for row in self.rows:
            made.add_row(*row)
        console = Console(width=WIDEST, color_system=None, markup=False, emoji=False, highlight=False)
        with console.capture() as captured:
            console.print(made)
        above = [self.heading, "=" * len(self.heading), ""] if self.heading else []
        lines = [line.rstrip() for line in captured.get().splitlines()]
        note = ["", *self.note.splitlines()] if self.note else []
        return "\n".join([*above, self.title, "", *lines, *note]) + "\n"


def as_rows(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as comma-separated values: a line of names, then one line each."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def counted(number: int, what: str) -> str:
    """A number of things: "1 rank", "2 ranks"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def joined(*parts: str | None) -> str:
    """The parts that are not empty, with commas between them."""
    return ", ".join(filter(None, parts))


def method(order: int | None, scheme: str | None) -> str:
    """How a case is solved: "order 6, rk3"; either may be missing."""
    return joined(None if order is None else f"order {order}", scheme)


def where(ranks: int, threads: int, places: Sequence[OnDevice] = ()) -> str:
    """Where something ran: "2 ranks of 4 threads", or "2 ranks, devices cuda:0, cuda:1 (NVIDIA H100)"."""
    if places:
        from halocline.run.devices.devices import summary

        return f"{counted(ranks, 'rank')}, {summary(places)}"
    return f"{counted(ranks, 'rank')} of {counted(threads, 'thread')}"


def clock(seconds: float) -> str:
    """Seconds as HH:MM:SS, rounded as the tables of UMBC HPCF-2018-10 are."""
    whole = int(seconds + 0.5)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def in_seconds(seconds: float) -> str:
    """Seconds as a number: two decimals, as the tables of UMBC HPCF-2018-10 have; three digits below one."""
    return f"{seconds:,.2f}" if seconds >= 1 else f"{Decimal(f'{seconds:.2e}'):f}"


def gigabytes(size: float) -> str:
    """Bytes as GB of 1024³ bytes."""
    value = size / 2**30
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def amount(size: float) -> str:
    """Bytes with the unit that suits them."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"


def duration(seconds: float) -> str:
    """Seconds with the unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            break
    return f"{seconds / scale:.3g} {unit}"
