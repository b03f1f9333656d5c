"""What a study declares of its report, and how that is made of measurements: tables, figures, sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting.quantities import Key, baseline, by, layout, nodes, pace, unit, units
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn

    from halocline.study.reporting.theory import Theory


class Group:
    """Measurements that stand together, in a table, a panel or on a line.

    Parameters
    ----------
    found : sequence of dict
    theory : Theory, optional
        The closed formula with its constants.
    """

    def __init__(self, found: Sequence[Measurement], theory: Theory | None = None) -> None:
        self.found, self.theory = list(found), theory

    @property
    def one(self) -> Measurement:
        """Any of them, for what all have in common."""
        return self.found[0]

    @cached_property
    def base(self) -> Measurement:
        """What speed-ups are relative to."""
        return baseline(self.found)

    @property
    def best(self) -> Measurement:
        """The fastest."""
        return min(self.found, key=pace)

    @property
    def last(self) -> Measurement:
        """On the most cores or devices, the fastest of these."""
        return max(self.found, key=lambda m: (units(m), -pace(m)))

    def those(self, where: Callable[[Measurement], Any]) -> Group:
        """Some of them."""
        return Group([m for m in self.found if where(m)], self.theory)

    def alike(self, measurement: Measurement) -> Group:
        """Those with as many threads a rank, since 1/π and efficiencies of ranks are of these."""
        return self.those(lambda m: m["threads"] == measurement["threads"])

    def by(self, key: Key) -> list[Group]:
        """A group for each value, in its order."""
        return [Group(found, self.theory) for _, found in by(self.found, key)]

    def formula(self, measurement: Measurement) -> float | None:
        """Nanoseconds of a cell and step by the closed formula; None where it has no constants."""
        theory = self.theory
        return None if theory is None else theory.ns(measurement, self.alike(measurement).found)


Words = str | Callable[[Group], str]


def words(text: Words, group: Group) -> str:
    """A text, or what is said of a group."""
    return text if isinstance(text, str) else text(group)


# -- tables --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    head : str, or function of the group
    cell : callable
        What stands in the row of a measurement, by that and its group.
    shown : callable
        Whether the table of a group has it.
    """

    head: Words
    cell: Callable[[Measurement, Group], str]
    shown: Callable[[Group], Any] = lambda group: True


def by_layout(measurement: Measurement) -> Any:
    """Return the key of the cores or devices, ranks, threads and nodes of a run."""
    return units(measurement), measurement["ranks"], measurement["threads"], nodes(measurement)


@dataclass(frozen=True)
class Rows:
    """A table with a row for each measurement, or for one of each of some groups.

    Parameters
    ----------
    title : str, or function of the group
    columns : tuple of Column
    order : callable
        What rows are sorted by.
    note : str, or function of the group
    beside : callable
        Rows of another source, such as a paper, that follow.
    where : callable
        Which measurements have a row, by them and the group.
    of : (key, choice), optional
        A row for the choice among those of each value of a key, compared with these.
    left : int
        How many columns hold names.
    shown : callable
        Whether a group has this table.
    """

    title: Words
    columns: tuple[Column, ...]
    order: Key | None = by_layout
    note: Words = ""
    beside: Callable[[Group], Sequence[Sequence[str]]] = lambda group: ()
    where: Callable[[Measurement, Group], Any] = lambda measurement, group: True
    of: tuple[Key, Callable[[Group], Measurement]] | None = None
    left: int = 1
    shown: Callable[[Group], Any] = lambda group: True

    def tables(self, group: Group) -> list[Table]:
        """The table, if it is shown."""
        if not group.found or not self.shown(group):
            return []
        columns = [column for column in self.columns if column.shown(group)]
        if self.of is not None:
            key, choice = self.of
            pairs = [(choice(own), own) for own in group.by(key)]
        else:
            ordered = group.found if self.order is None else sorted(group.found, key=self.order)
            pairs = [(m, group) for m in ordered if self.where(m, group)]
        if not pairs:
            return []
        rows = [tuple(column.cell(m, own) for column in columns) for m, own in pairs]
        beside = [tuple(row) for row in self.beside(group)]
        return [
            Table(
                words(self.title, group),
                tuple(words(column.head, group) for column in columns),
                (*rows, *beside),
                left=self.left,
                muted=tuple(range(len(rows), len(rows) + len(beside))),
                note=words(self.note, group),
            )
        ]


@dataclass(frozen=True)
class Axis:
    """Rows or columns of a pivot table: sorted by a key, each with a label."""

    key: Key
    label: Callable[[Measurement], str]


def _ranks(measurement: Measurement) -> tuple[int, int, int]:
    return measurement["ranks"], units(measurement) if measurement["devices"] else 0, nodes(measurement)


def _ranks_label(measurement: Measurement) -> str:
    devices = f"\n{counted(units(measurement), 'device')}" if measurement["devices"] else ""
    on_nodes = f"\non {counted(nodes(measurement), 'node')}" if nodes(measurement) > 1 else ""
    return f"{counted(measurement['ranks'], 'rank')}{devices}{on_nodes}"


RANKS = Axis(_ranks, _ranks_label)
THREADS = Axis(lambda m: m["threads"], lambda m: f"{counted(m['threads'], 'thread')} a rank")
LAYOUTS = Axis(by_layout, lambda m: layout(m).replace(" of ", "\nof ").replace(" on ", "\non "))


@dataclass(frozen=True)
class Pivot:
    """A table with a cell for each measurement, by two of its properties.

    Parameters
    ----------
    title : str
    cell : callable
        As of a Column.
    rows, columns : Axis
    head : str
        Of the labels of rows.
    lead : tuple of Column
        Further columns before the cells, of the measurements of a row.
    note : str, or function of the group
    shown : callable
        Whether a group has this table.
    """

    title: Words
    cell: Callable[[Measurement, Group], str]
    rows: Axis = THREADS
    columns: Axis = RANKS
    head: str = ""
    lead: tuple[Column, ...] = ()
    note: Words = ""
    shown: Callable[[Group], Any] = lambda group: True

    def tables(self, group: Group) -> list[Table]:
        """The table, if it is shown."""
        if not group.found or not self.shown(group):
            return []
        downward, across = group.by(self.rows.key), group.by(self.columns.key)
        cells: dict[Any, str] = {}  # holds both values if two runs of one place gave different bits
        for m in group.found:
            place, text = (self.rows.key(m), self.columns.key(m)), self.cell(m, group)
            cells[place] = f"{cells[place]}; {text}" if place in cells else text
        places = [self.columns.key(column.one) for column in across]
        rows = tuple(
            (
                self.rows.label(row.one),
                *(column.cell(row.base, row) for column in self.lead),
                *(cells.get((self.rows.key(row.one), place), "") for place in places),
            )
            for row in downward
        )
        lead = [words(column.head, group) for column in self.lead]
        heads = (self.head, *lead, *(self.columns.label(column.one) for column in across))
        return [Table(words(self.title, group), heads, rows, note=words(self.note, group))]


@dataclass(frozen=True)
class Block:
    """Tables under one heading, for each value of a key.

    Parameters
    ----------
    parts : tuple of Rows or Pivot
    by : callable, optional
        One block for all by default.
    heading : str, or function of the group
    where : callable
        Which measurements belong to it.
    """

    parts: tuple[Rows | Pivot, ...]
    by: Key = lambda measurement: 0
    heading: Words = ""
    where: Callable[[Measurement], Any] = lambda measurement: True

    def tables(self, group: Group) -> list[Table]:
        """All that are shown; the heading belongs to the first."""
        made: list[Table] = []
        for own in group.those(self.where).by(self.by):
            found = [table for part in self.parts for table in part.tables(own)]
            made += [replace(found[0], heading=words(self.heading, own)), *found[1:]] if found else []
        return made


# -- figures -------------------------------------------------------------------------------------------------

COLUMNS = 2  # of panels: more would make text small on a page


@dataclass(frozen=True)
class Panel:
    """Lines over the number of cores or devices, or over something else.

    Parameters
    ----------
    y : callable
        What is drawn of a measurement, by that and the group of its line; None for nothing.
    title : str, or function
        ``title(panel, all)`` of both as groups.
    ylabel : str
    line : callable
        Measurements of one value make a line.
    label : callable
        ``label(line, panel)`` names a line of the panel, both as groups.
    ideal : callable, optional
        ``ideal(x, line)`` is drawn dotted.
    base : callable, optional
        Measurements of one value are compared with each other; those of a line by default.
    x : callable
    xlabel : str, or function of the group
    log : bool
        Whether y is logarithmic.
    """

    y: Callable[[Measurement, Group], float | None]
    title: str | Callable[[Group, Group], str]
    ylabel: str
    line: Key
    label: Callable[[Group, Group], str]
    ideal: Callable[[float, Group], float] | None = None
    base: Key | None = None
    x: Callable[[Measurement], int] = units
    xlabel: Words = lambda group: f"{unit(group.one)}s"
    log: bool = True

    def draw(self, ax: Axes, panel: Group, whole: Group, ylabel: str) -> None:
        """The lines, then scales and names of axes."""
        from halocline.io.style import doubling
        from halocline.study.reporting.plots import draw_ideal, legible_log, style

        for number, line in enumerate(panel.by(self.line)):
            with_ = line if self.base is None else self._compared(line, panel, self.base)
            points = sorted((self.x(m), y) for m in line.found if (y := self.y(m, with_)) is not None)
            if not points:
                continue
            ax.plot(*zip(*points, strict=True), **style(number), label=self.label(line, panel))
            if self.ideal is not None:
                xs = sorted({self.x(m) for m in line.found})
                draw_ideal(ax, xs, [self.ideal(x, with_) for x in xs])
        doubling(ax, sorted({self.x(m) for m in panel.found}))
        ax.set_xlabel(words(self.xlabel, panel))
        ax.set_ylabel(ylabel)
        ax.set_title(self.title if isinstance(self.title, str) else self.title(panel, whole))
        if self.log:
            legible_log(ax)
        else:
            ax.set_ylim(0, None)

    @staticmethod
    def _compared(line: Group, panel: Group, base: Key) -> Group:
        own = base(line.one)
        return panel.those(lambda m: base(m) == own)


@dataclass(frozen=True)
class Figure:
    """A file with panels.

    Parameters
    ----------
    file : str
        Its name.
    panels : tuple of Panel
    by : callable, optional
        All panels for each value of this key.
    where : callable
        Which measurements are drawn; without any there is no figure.
    title : str
        Above all panels.
    columns : int
        Of the legend.
    shared : bool
        Whether all panels have one scale of y.
    """

    file: str
    panels: tuple[Panel, ...]
    by: Key = lambda measurement: 0
    where: Callable[[Measurement], Any] = lambda measurement: True
    title: str = ""
    columns: int = 3
    shared: bool = False

    def draw(self, group: Group) -> Drawn | None:
        """The figure; None where nothing belongs to it."""
        from halocline.study.reporting.plots import figure_of, legend

        found = group.those(self.where)
        if not found.found:
            return None
        drawn = [(panel, own) for own in found.by(self.by) for panel in self.panels]
        columns = min(COLUMNS, len(drawn))
        rows = -(-len(drawn) // columns)
        figure = figure_of(rows, columns, title=self.title)
        axes = figure.subplots(rows, columns, squeeze=False, sharey=self.shared).flatten()
        for ax in axes[len(drawn) :]:
            ax.set_visible(False)
        for number, (ax, (panel, own)) in enumerate(zip(axes, drawn, strict=False)):
            repeated = number % columns and panel.ylabel == drawn[number - 1][0].ylabel
            panel.draw(ax, own, found, "" if repeated else panel.ylabel)
        legend(figure, axes[0], self.columns)
        return figure


# -- the whole -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What a study shows.

    Attributes
    ----------
    tables : list of Table
    said : list of str
        Sentences.
    figures : callable
        Draws them, by the names of their files.
    facts : dict
        For the JSON, beside the measurements.
    what : str
        What was measured, for the page; the scheme and the steps by default.
    footer : str
        What the numbers mean.
    """

    tables: list[Table]
    said: list[str]
    figures: Callable[[], dict[str, Drawn]]
    facts: dict[str, Any] = field(default_factory=dict)
    what: str = ""
    footer: str = ""


@dataclass(frozen=True)
class Contents:
    """What a report is made of.

    Parameters
    ----------
    blocks : tuple of Block
    figures : tuple of Figure
    sentences : tuple of callable
        Each gives what it has to say of all measurements.
    of : callable
        ``of(all)`` gives those that all of this is about; nothing is shown without any.
    """

    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    sentences: tuple[Callable[[Group], Iterable[str]], ...] = ()
    of: Callable[[Group], Group] = lambda group: group

    def tables(self, group: Group) -> list[Table]:
        """All tables."""
        own = self.of(group)
        return [table for block in self.blocks for table in block.tables(own)]

    def said(self, group: Group) -> list[str]:
        """All sentences."""
        own = self.of(group)
        return [text for each in self.sentences if own.found for text in each(own)]

    def draw(self, group: Group) -> dict[str, Drawn]:
        """All figures, by file."""
        own = self.of(group)
        drawn = {figure.file: figure.draw(own) for figure in self.figures}
        return {file: figure for file, figure in drawn.items() if figure is not None}


def report(contents: Sequence[Contents], group: Group) -> Report:
    """The report of several contents about the same measurements."""

    def figures() -> dict[str, Any]:
        return {file: drawn for each in contents for file, drawn in each.draw(group).items()}

    tables = [table for each in contents for table in each.tables(group)]
    said = list(dict.fromkeys(text for each in contents for text in each.said(group)))
    return Report(tables, said, figures)
