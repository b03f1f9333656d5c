"""Tables and figures of papers as studies: what is published, what a formula or the model gives for that
machine, and the same study measured here, reduced to what this machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.study.reporting.published import Published, published
from halocline.study.reporting.quantities import wrapped
from halocline.study.reporting.report import Axis, Group, Panel, Pivot
from halocline.study.reporting.report import Figure as Panels
from halocline.words import amount, clock, duration, in_seconds, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.plan.machine import Machine

Row = dict[str, Any]  # n, nodes, ranks_per_node, threads; published, computed and predicted
PREDICT = ("threads", "methods", "placement", "strategy")  # what a place may say of its prediction
SHARES = ("share", "efficiency", "of_theory")
BOUNDS = {
    ("least", "most"): "{} to {}",
    ("least",): "at least {}",
    ("most",): "at most {}",
    ("about",): "about {}",
    (None,): "{}",
}


def seconds_text(value: float) -> str:
    """Wall clock and seconds."""
    return f"{clock(value)}  {in_seconds(value):>8}"


@dataclass(frozen=True)
class Paper:
    """A table or figure of a paper.

    Parameters
    ----------
    name : str
        Of its data file: "umbc-4.1".
    title : str
    about : str
        What it varies, what it holds, and what it shows.
    study : str, optional
        The study that measures the same here.
    problem : str
        A case.
    options : mapping
        Of the command.
    here : mapping
        What is measured here: "n", "ranks" and "threads" as on the command line, and options of the study.
    machine : str, optional
        The machine that is predicted for; without one there is no prediction.
    network : mapping
        Of that machine, where it is another than in its file: bandwidth and latency.
    value : str, optional
        The published value of a place, where the places are those of the data file; by default that file is
        shown row by row.
    places : sequence of dict, optional
        Of what is computed or predicted: n, nodes and so on; those of the data file where `value` is named.
    where : callable
        Which of the places are predicted.
    sizes : tuple of int
        Of `n`, those that are predicted by default.
    passes : callable, optional
        ``passes(n)`` gives the passes of the loop that the value is of; 1 by default.
    scale : callable, optional
        ``scale(seconds, row)`` makes the value of the seconds of these passes.
    on_one : float, optional
        Published seconds of a pass and cell on one device: predicted sweeps take as long.
    make : callable, optional
        ``make(row)`` gives the schedule and the shape of the grid, where it is no case.
    formula : callable, optional
        ``formula(row)`` is computed for each place.
    weak : bool
        Whether n is that of a rank.
    rows, columns, by : str
        What rows and columns of tables over places are, and what each table is of.
    text, published_text : callable
        How a value is written, predicted and published.
    compared : callable, optional
        ``compared(value, first, row)`` stands behind a value: what it is, compared with the first of its row.
    unit : str
        Of the values.
    """

    name: str
    title: str
    about: str
    study: str | None = None
    problem: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    here: Mapping[str, Any] = field(default_factory=dict)
    machine: str | None = None
    network: Mapping[str, float] = field(default_factory=dict)
    value: str | None = None
    places: Sequence[Row] = ()
    where: Callable[[Row], bool] = lambda row: True
    sizes: tuple[int, ...] = ()
    passes: Callable[[int], float] = lambda n: 1.0
    scale: Callable[[float, Row], float] = lambda seconds, row: seconds
    on_one: float | None = None
    make: Callable[[Row], Any] | None = None
    formula: Callable[[Row], Any] | None = None
    weak: bool = False
    rows: str = "ranks_per_node"
    columns: str = "nodes"
    by: str = "n"
    text: Callable[[Any], str] = seconds_text
    published_text: Callable[[Any], str] | None = None
    compared: Callable[[Any, Any, Row], str] | None = None
    unit: str = "seconds"

    @property
    def data(self) -> Published:
        """What is published."""
        return published(self.name)

    def places_of(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """The places, with what is computed for them.

        Raises
        ------
        InputError
            None has such a size, or so many nodes.
        """
        known = self.places or (self.data.rows if self.value else ())
        found = [dict(row) for row in known]
        for name, given, default in (("n", sizes, self.sizes or None), ("nodes", nodes, None)):
            values = given or default
            if values is None:
                continue
            there = sorted({row[name] for row in found if name in row})
            found = [row for row in found if row.get(name) in set(values)]
            if not found and given is not None:
                text = ",".join(map(str, given))
                expected = (
                    f"has {', '.join(map(str, there))}: give" if there else f"is not over {name}: leave"
                )
                raise InputError(
                    f"--{name} {text}: {self.name} {expected} {'one of them' if there else 'it out'}"
                )
        return found if self.formula is None else [{**row, "computed": self.formula(row)} for row in found]

    def there(self, name: str | None) -> Machine | None:
        """The machine that is predicted for.

        Raises
        ------
        InputError
            It is unknown, or nothing here can be predicted.
        """
        from halocline.prediction.host import machine_named

        if self.machine is None:
            if name is not None:
                raise InputError(f"--machine {name}: the model predicts nothing of {self.name}: leave it out")
            return None
        machine = machine_named(name or self.machine)
        return machine.model_copy(update={"network": machine.network.model_copy(update=dict(self.network))})

    def predict(
        self, places: Sequence[Row], machine: Machine, on_progress: Callable[[int], None] | None = None
    ) -> list[Row]:
        """The places with what the model predicts: the plan of every rank, executed by a model."""
        from halocline.plan.growth import grown
        from halocline.prediction.predict import predict

        made: dict[Any, Any] = {}
        found = []
        for number, row in enumerate(places, 1):
            row = {**row, "predicted": None}
            if self.where(row):
                key = tuple(row.get(name) for name in ("n", "order", "nodes" if self.make else ""))
                if key not in made:
                    schedule, shape = self._made(row)
                    made[key] = schedule, shape, self._pace(schedule, shape, machine)
                schedule, shape, pace = made[key]
                per_node = row.get("ranks_per_node") or machine.device.count
                shape = row.get("shape") or (grown(shape, row["nodes"] * per_node) if self.weak else shape)
                given = {name: row[name] for name in PREDICT if row.get(name)}
                (one,) = predict(
                    *(schedule, shape, machine, [row["nodes"]]), ranks_per_node=per_node, pace=pace, **given
                )
                row["shape"] = list(shape)
                row["predicted"] = self.scale(one.seconds * self.passes(row["n"]), row)
            found.append(row)
            if on_progress is not None:
                on_progress(number)
        return found

    def _pace(self, schedule: Any, shape: tuple[int, ...], machine: Machine) -> float:
        """How many times as long sweeps take as their bytes let expect, by the published time on one device:
        1/π of the formula of Pekkilä et al. 2022, which they measure on one device too."""
        from halocline.prediction.predict import predict

        if self.on_one is None:
            return 1.0
        (one,) = predict(schedule, shape, machine, [1], ranks_per_node=1)
        return self.on_one * prod(shape) / one.seconds

    def _made(self, row: Row) -> Any:
        """The schedule, and the shape of the grid of one rank or of all."""
        from halocline.prediction.predict import prepared

        if self.make is not None:
            return self.make(row)
        options = {name: self.options[name] for name in ("dim", "order", "scheme") if name in self.options}
        options |= {"order": row["order"]} if row.get("order") else {}
        settings = [*self.options.get("settings", ())]
        settings += [f"method={self.options['method']}"] if "method" in self.options else []
        return prepared(self.problem, row["n"], settings=settings, **options)

    # -- what is shown ---------------------------------------------------------------------------------------

    @property
    def _cited(self) -> list[str]:
        """Where the published is from, and the machines it was measured on."""
        data = self.data
        stated = data.machine.partition(":")[0] not in ("none", "not stated")
        source = f"{data.source.partition(',')[0]} et al., {data.place}."
        return [source, *([f"Machine: {data.machine}."] if stated else [])]

    @property
    def said(self) -> list[str]:
        """What it is, in sentences; with the source where no table of published values has it."""
        about = self.data.about
        cited = [] if self.data.rows else self._cited
        settings = self.options.get("settings", ())
        settings_used = (
            [f"Predicted and measured with {', '.join(settings)}, as in the paper."] if settings else []
        )
        return [f"{self.title}: {self.about}", *cited, about[0].upper() + about[1:], *settings_used]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """What is published, then tables of each n."""
        data, made = self.data, []
        if self.value is None and data.rows:
            units = "; ".join(
                part for part in data.units.split("; ") if not part.startswith(("bound:", "about "))
            )
            made.append(replace(_as_printed(data), note=wrapped(*self._cited, f"Units: {units}.")))
        write = self.published_text or self.text
        kinds = [("Published", self.value, write, wrapped(*self._cited))]
        kinds.append(("Computed here", "computed", self.text, ""))
        if machine is not None:
            network = machine.network
            other = f"its network exchanged for {amount(network.bandwidth)}/s and {duration(network.latency)}"
            said = joined(machine.title, other if self.network else None)
            kinds.append(("Predicted", "predicted", self.text, wrapped(f"By the model, for {said}.")))
        for value in dict.fromkeys(row.get(self.by) for row in rows):
            own = [row for row in rows if row.get(self.by) == value]
            found = [table for kind in kinds for table in self._pivot(own, *kind)]
            heading = "" if value is None else f"{self.by} = {value}: {self.title}"
            made += [replace(found[0], heading=heading), *found[1:]] if found else []
        return [replace(made[0], heading=made[0].heading or self.title), *made[1:]] if made else []

    def _axis(self, rows: Sequence[Row], name: str, end: str = "") -> Axis:
        """In the order of the rows; numbers have the name below them."""
        order = list(dict.fromkeys(row.get(name) for row in rows))
        return Axis(
            lambda m: order.index(m.get(name)),
            lambda m: f"{m.get(name)}" + (end if isinstance(m.get(name), int) else ""),
        )

    def _pivot(
        self, rows: Sequence[Row], title: str, key: Any, write: Callable[[Any], str], note: str
    ) -> list[Table]:
        down, along = (name.replace("_", " ") for name in (self.rows, self.columns))
        axes = self._axis(rows, self.rows), self._axis(rows, self.columns, f"\n{along}")
        rows = [row for row in rows if row.get(key) is not None]

        def cell(row: Row, group: Group) -> str:
            first = next(m for m in rows if m.get(self.rows) == row.get(self.rows))
            return write(row[key]) + (self.compared(row[key], first[key], row) if self.compared else "")

        return Pivot(f"{title}: {self.unit}", cell, *axes, down, note=note).tables(Group(rows))

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Values over columns that are numbers: published, computed, predicted; None where none are."""
        if not all(isinstance(row[self.columns], int) for row in rows):
            return None
        kinds = {"published": self.value, "computed": "computed", "predicted": "predicted"}
        order = self._axis(rows, self.rows).key
        down, along = (name.replace("_", " ") for name in (self.rows, self.columns))

        def label(value: Any) -> str:
            return value if isinstance(value, str) else f"{down} = {value}"

        def panel(what: str, key: str) -> Panel:
            return Panel(
                lambda m, g: m.get(key) or None,
                lambda own, whole: joined(
                    f"{self.by} = {own.one[self.by]}" if self.by in own.one else None, what
                ),
                self.unit,
                line=order,
                label=lambda line, own: label(line.one.get(self.rows)),
                x=lambda m: m[self.columns],
                xlabel=along,
            )

        panels = tuple(
            panel(what, key)
            for what, key in kinds.items()
            if key and any(isinstance(row.get(key), int | float) for row in rows)
        )
        figure = Panels("", panels, by=lambda m: m.get(self.by) or 0, title=self.title, shared=True)
        return figure.draw(Group(rows)) if panels else None


def _as_printed(data: Published) -> Table:
    """The rows of a data file, with ranges in one."""
    rows = list(_ranges(data.rows))
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    words = [name for name in names if isinstance(rows[0][name], str)]
    return Table(
        "Published",
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        left=len(words) if names[: len(words)] == words else 0,
    )


def _ranges(rows: Sequence[Row]) -> Iterator[Row]:
    """Rows whose least and most are one range; the value stands before `bound`."""
    if "bound" not in rows[0]:
        yield from rows
        return
    *names, value, _ = rows[0]
    found: dict[tuple[Any, ...], dict[Any, str]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), {})[row["bound"]] = _text(value, row[value])
    for own, bounds in found.items():
        yield dict(zip(names, own, strict=True)) | {value: BOUNDS[tuple(bounds)].format(*bounds.values())}


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name in SHARES:
        return f"{100 * value:.3g}%"
    if name == "seconds":
        return seconds_text(value)
    return f"{value:,.0f}" if value >= 1_000_000 else f"{value:g}"


def papers() -> dict[str, Paper]:
    """All tables and figures by name, in the order of their files."""
    home = import_module("halocline.study.studies")
    found: dict[str, Paper] = {}
    for module in sorted(each.name for each in iter_modules(home.__path__)):
        for paper in getattr(import_module(f"halocline.study.studies.{module}"), "PAPERS", ()):
            found[paper.name] = paper
    return found
