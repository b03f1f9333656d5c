"""Groups of measurements, tables of groups, and the report of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from halocline.io.table import Table
from halocline.study.measurement import Measurement, group_by, ranks_of_node
from halocline.study.reporting.quantities import Key, host_text, layout, nodes, pace, units, wrap_notes
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.study.reporting.theory import Theory


class Group:
    """Measurements of one table, panel or line.

    Parameters
    ----------
    members : sequence of dict
    theory : Theory, optional
        Closed formula with its constants.
    """

    def __init__(self, members: Iterable[Measurement], theory: Theory | None = None) -> None:
        self.members, self.theory = list(members), theory

    @property
    def first(self) -> Measurement:
        """First measurement, for properties that all measurements have in common."""
        return self.members[0]

    @cached_property
    def base(self) -> Measurement:
        """Reference of speed-ups: the fastest measurement on the fewest devices or cores."""
        return min(self.members, key=lambda m: (units(m), pace(m)))

    @property
    def best(self) -> Measurement:
        """Fastest measurement."""
        return min(self.members, key=pace)

    @property
    def last(self) -> Measurement:
        """Fastest measurement on the most cores or devices."""
        return max(self.members, key=lambda m: (units(m), -pace(m)))

    def select(self, condition: Callable[[Measurement], Any]) -> Group:
        """Return the group of the measurements for which a condition is true."""
        return Group([m for m in self.members if condition(m)], self.theory)

    def with_same_threads(self, measurement: Measurement) -> Group:
        """Return the runs with as many threads per rank as a measurement, for 1/π and the efficiency."""
        return self.select(lambda m: m["threads"] == measurement["threads"])

    def split(self, key: Key) -> list[Group]:
        """Return a group for each value of a key, sorted by value."""
        members = group_by(self.members, key)
        return [Group(members[value], self.theory) for value in sorted(members)]

    def values(self, name: str) -> set[Any]:
        """Return the distinct values of a key of the measurements."""
        return {m[name] for m in self.members}

    def formula(self, measurement: Measurement) -> float | None:
        """Return the time of the closed formula in ns per cell and step; None without its constants."""
        theory = self.theory
        return None if theory is None else theory.ns(measurement, self.with_same_threads(measurement).base)


# -- tables --------------------------------------------------------------------------------------------------

Cell = Callable[[Measurement, Group], str]


class Column(NamedTuple):
    """Column of a table: head, and function that returns the text of a cell."""

    head: str
    cell: Cell


class Axis(NamedTuple):
    """Axis of a pivot table: functions that return the sort key and the label of a measurement."""

    key: Key
    label: Callable[[Measurement], str]


def by_layout(measurement: Measurement) -> Any:
    """Return the layout of a run as a sort key: cores or devices, ranks, threads, nodes and hosts."""
    hosts = measurement.get("hosts") or 1
    return units(measurement), measurement["ranks"], measurement["threads"], nodes(measurement), hosts


def row_table(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Measurement, Group]],
    *,
    published: Iterable[Sequence[str]] = (),
    left: int = 1,
    note: str = "",
    heading: str = "",
) -> Table:
    """Return a table with a row for each pair of a measurement and its group.

    The rows in `published` follow below these rows. For the other parameters see `halocline.io.table.Table`.
    """
    measured = [tuple(column.cell(m, group) for column in columns) for m, group in rows]
    published_rows = [tuple(row) for row in published]
    muted = tuple(range(len(measured), len(measured) + len(published_rows)))
    heads = tuple(column.head for column in columns)
    return Table(title, heads, (*measured, *published_rows), left, muted, note, heading)


def ordered_rows(group: Group, key: Key = by_layout) -> list[tuple[Measurement, Group]]:
    """Return the pairs of measurement and group for `row_table`, sorted by a key."""
    return [(m, group) for m in sorted(group.members, key=key)]


def _ranks(measurement: Measurement) -> tuple[int, ...]:
    devices, hosts = units(measurement) if measurement["devices"] else 0, measurement.get("hosts") or 1
    return measurement["ranks"], devices, nodes(measurement), hosts


def _ranks_label(measurement: Measurement) -> str:
    devices = f"\n{counted(units(measurement), 'device')}" if measurement["devices"] else ""
    node_text = f"\non {counted(nodes(measurement), 'node')}{host_text(measurement)}"
    on_nodes = node_text if nodes(measurement) > 1 else ""
    return f"{counted(measurement['ranks'], 'rank')}{devices}{on_nodes}"


RANKS = Axis(_ranks, _ranks_label)
THREADS = Axis(lambda m: m["threads"], lambda m: f"{counted(m['threads'], 'thread')} per rank")
NODES = Axis(
    lambda m: (nodes(m), m.get("hosts") or 1), lambda m: counted(nodes(m), "node") + host_text(m, "\n")
)
PER_NODE = Axis(ranks_of_node, lambda m: f"{counted(ranks_of_node(m), 'rank')} per node")
RANKS_AND_THREADS = Axis(
    lambda m: (ranks_of_node(m), m["threads"]),
    lambda m: f"{counted(ranks_of_node(m), 'rank')} per node, {counted(m['threads'], 'thread')} each",
)
LAYOUTS = Axis(by_layout, lambda m: layout(m).replace(" of ", "\nof ").replace(" on ", "\non "))


def pivot_table(
    title: str,
    group: Group,
    cell: Cell,
    *,
    rows: Axis = THREADS,
    columns: Axis = RANKS,
    head: str = "",
    lead: Sequence[Column] = (),
    note: str = "",
    heading: str = "",
) -> Table:
    """Return a table with one cell for each pair of row and column.

    Parameters
    ----------
    rows, columns : Axis
    head : str
        Head of the column of row labels.
    lead : sequence of Column
        Columns to the left of the cells. They show the base measurement of each row.
    """
    # a cell contains several values if runs with the same conditions gave different bits
    cells: dict[Any, str] = {}
    for m in group.members:
        position, text = (rows.key(m), columns.key(m)), cell(m, group)
        cells[position] = f"{cells[position]}; {text}" if position in cells else text
    column_groups = group.split(columns.key)
    body = tuple(
        (
            rows.label(row.first),
            *(column.cell(row.base, row) for column in lead),
            *(cells.get((rows.key(row.first), columns.key(column.first)), "") for column in column_groups),
        )
        for row in group.split(rows.key)
    )
    heads = (
        head,
        *(column.head for column in lead),
        *(columns.label(column.first) for column in column_groups),
    )
    return Table(title, heads, body, note=note, heading=heading)


# -- reports -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """Tables, sentences and figures of a study.

    Attributes
    ----------
    tables : list of Table
    sentences : list of str
        Sentences above the tables.
    figures : callable
        Function that returns the figures by file name.
    facts : dict
        Entries of the JSON file, in addition to the measurements.
    subject : str
        Description of the measured runs; by default the scheme and the number of steps.
    footer : str
        Explanation of the measured quantities.
    """

    tables: list[Table]
    sentences: list[str]
    figures: Callable[[], dict[str, Figure]] = dict
    facts: dict[str, Any] = field(default_factory=dict)
    subject: str = ""
    footer: str = ""


@dataclass(frozen=True)
class Contents:
    """Functions that create a part of a report from a group of measurements.

    Parameters
    ----------
    tables : callable
        Function that returns the tables of the group.
    sentences : callable
        Function that returns the sentences on the group.
    figures : mapping of str to callable
        Functions that return a figure or None, by file name.
    select_group : callable
        Function that selects the group from the group of all measurements. If the selected group is empty,
        the report omits the part.
    """

    tables: Callable[[Group], Iterable[Table]] = lambda group: ()
    sentences: Callable[[Group], Iterable[str]] = lambda group: ()
    figures: Mapping[str, Callable[[Group], Figure | None]] = field(default_factory=dict)
    select_group: Callable[[Group], Group] = lambda group: group


def with_note(tables: Iterable[Table], note: str) -> list[Table]:
    """Return tables with an additional note below each table that has a heading.

    If no table has a heading, the note is below the first table.
    """
    all_tables = list(tables)
    numbers = [n for n, table in enumerate(all_tables) if table.heading] or [0]
    return [
        replace(table, note=f"{table.note}\n{wrap_notes(note)}".strip()) if n in numbers else table
        for n, table in enumerate(all_tables)
    ]


def report(contents: Iterable[Contents], group: Group) -> Report:
    """Return the report of a group of measurements, which joins the parts in `contents`."""
    parts = [(part, part_group) for part in contents if (part_group := part.select_group(group)).members]

    def figures() -> dict[str, Figure]:
        figures_by_file = (
            (file, draw(part_group)) for part, part_group in parts for file, draw in part.figures.items()
        )
        return {file: figure for file, figure in figures_by_file if figure is not None}

    tables = [table for part, part_group in parts for table in part.tables(part_group)]
    sentences = [text for part, part_group in parts for text in part.sentences(part_group)]
    return Report(tables, list(dict.fromkeys(sentences)), figures)
