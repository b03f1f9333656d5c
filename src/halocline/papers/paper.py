"""Tables and figures of papers: published values, those of a formula or the model for the same machine, and
the study that measures the same here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table, table_of
from halocline.papers.published import Published, published
from halocline.study.measurement import Measurement
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.report import Axis, Group, Report, pivot_table
from halocline.words import amount, clock, counted, duration, in_seconds, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.plan.machine import Machine

Row = dict[str, Any]  # n, nodes, ranks_per_node, threads; published, computed and predicted
PREDICT = (  # what a place may say of its prediction
    *("threads", "subdomains_per_rank", "strategy", "placement"),
    *("methods", "packing", "overlap", "passes"),
)
Quotient = tuple[str, float, float]
LEAST_PACE = 0.01  # of sweeps, where launches and copies alone take as long as published
NEAR = 1.5  # factor within which a prediction counts as near
SHARES = ("share", "peak_share", "efficiency", "of_theory")
BOUNDS = {
    ("least", "most"): "{} to {}",
    ("least",): "at least {}",
    ("most",): "at most {}",
    ("about",): "about {}",
    (None,): "{}",
}


def seconds_text(value: float) -> str:
    """Return the wall clock and the seconds."""
    return f"{clock(value)}  {in_seconds(value):>8}"


@dataclass(frozen=True)
class Paper:
    """Table or figure of a paper.

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
    here : mapping, or sequence of mappings
        What is measured here: "n", "ranks" and "threads" as on the command line, and options of the study;
        "study" names another than `study`. A function returns a value that depends on this machine.
    machine : str, optional
        The machine that is predicted for; without one there is no prediction. A place whose "predicted_on"
        names another machine is predicted for that one.
    network : mapping
        Of that machine, where it is another than in its file: bandwidth and latency.
    value : str, optional
        The published value of a place, where the places are those of the data file; by default that file is
        shown row by row.
    compare : str, optional
        The published value of a place that its prediction is divided by; `value` by default.
    places : sequence of dict, optional
        Of what is computed or predicted: n, nodes and so on; those of the data file where `value` is named.
    where : callable
        Which of the places are predicted.
    sizes : tuple of int
        Of `n`, those that are predicted by default.
    nodes : tuple of int
        Of the numbers of nodes, those that are predicted by default.
    passes : callable, optional
        ``passes(n)`` gives the passes of the loop that the value is of; 1 by default.
    scale : callable, optional
        ``scale(seconds, row)`` makes the value of the seconds of these passes.
    on_one : float or callable, optional
        Published seconds of a pass and cell on one device of `machine`, or ``on_one(row)`` of a place:
        predicted sweeps on such devices take as long.
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
        ``compared(value, first, row)`` stands behind a value: what it is, compared with the first of its row,
        or of its column.
    compared_along : {"rows", "columns"}
        Of which it is the first.
    quotients : callable, optional
        ``quotients(rows)`` gives numbers that the text states: a name, the published and the predicted value.
    unit : str
        Of the values.
    differs : str
        How the quantity that is measured here differs from that of the paper, a sentence; the rest of what
        differs follows from the measurements.
    facts : callable, optional
        ``facts(paper)`` gives the report of a table or figure that no study measures, such as facts of this
        machine; its tables hold what is published too.
    """

    name: str
    title: str
    about: str
    study: str | None = None
    problem: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    here: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    machine: str | None = None
    network: Mapping[str, float] = field(default_factory=dict)
    value: str | None = None
    compare: str | None = None
    places: Sequence[Row] = ()
    where: Callable[[Row], bool] = lambda row: True
    sizes: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    passes: Callable[[int], float] = lambda n: 1.0
    scale: Callable[[float, Row], float] = lambda seconds, row: seconds
    on_one: float | Callable[[Row], float | None] | None = None
    make: Callable[[Row], Any] | None = None
    formula: Callable[[Row], Any] | None = None
    weak: bool = False
    rows: str = "ranks_per_node"
    columns: str = "nodes"
    by: str = "n"
    text: Callable[[Any], str] = seconds_text
    published_text: Callable[[Any], str] | None = None
    compared: Callable[[Any, Any, Row], str] | None = None
    compared_along: str = "rows"
    quotients: Callable[[Sequence[Row]], Iterable[Quotient]] | None = None
    unit: str = "seconds"
    differs: str = ""
    facts: Callable[[Paper], Report] | None = None

    @property
    def measured(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and options of each study that is measured here."""
        if self.study is None:
            return []
        every = [self.here] if isinstance(self.here, Mapping) else self.here
        options = [{**self.options, **each} for each in every]
        values = [{k: v() if callable(v) else v for k, v in each.items()} for each in options]
        return [(each.pop("study", self.study), each) for each in values]

    def differences(self, measurements: Sequence[Measurement]) -> str:
        """Return how measurements differ from the paper in machine, size and quantity, in sentences."""
        most = max(measurements, key=lambda m: int(m["cores_or_devices"]))
        places = counted(most["cores_or_devices"], "device" if most["devices"] else "core")
        what = most["devices"][0]["name"] if most["devices"] else most["machine"]["cpu"]
        stated = re.split("[;:]", self.data.machine)[0]
        machine = "" if stated in ("none", "not stated") else f", instead of {stated}"
        sizes = [q.size(m) for m in sorted(measurements, key=q.grid)]
        published = sorted({row["n"] for row in self.data.rows if row.get("n")})
        there = f" (the paper: n = {', '.join(map(str, published))})" if published else ""
        return " ".join(
            [
                f"Not as in the paper: {what}, {places} at most{machine};",
                f"{most['case']} on {', '.join(dict.fromkeys(sizes))}{there}.",
                *([self.differs] if self.differs else []),
            ]
        )

    @property
    def data(self) -> Published:
        """Published data."""
        return published(self.name)

    def places_of(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the places, with their computed values.

        Raises
        ------
        InputError
            A size or number of nodes is that of no place.
        """
        places = [dict(row) for row in self.places or (self.data.rows if self.value else ())]
        for name, given, default in (("n", sizes, self.sizes), ("nodes", nodes, self.nodes)):
            values = given or default
            if not values:
                continue
            known = sorted({row[name] for row in places if name in row})
            places = [row for row in places if row.get(name) in set(values)]
            if given is not None and not set(given) <= set(known):
                text = ",".join(map(str, given))
                if not known:
                    raise InputError(f"--{name} {text}: {self.name} is not over {name}: leave it out")
                raise InputError(
                    f"--{name} {text}: {self.name} has {', '.join(map(str, known))}: give some of them"
                )
        if self.formula is None:
            return places
        return [{**row, "computed": self.formula(row)} for row in places]

    def there(self, name: str | None) -> Machine | None:
        """Return the machine of the predictions; None where nothing is predicted.

        Raises
        ------
        InputError
            It is unknown, or nothing here can be predicted, or places have machines of their own.
        """
        if self.machine is None:
            if name is not None:
                raise InputError(f"--machine {name}: the model predicts nothing of {self.name}: leave it out")
            return None
        if name is not None and (own := list(dict.fromkeys(self._machines(self.places)))):
            raise InputError(f"--machine {name}: {self.name} is predicted for {', '.join(own)}: leave it out")
        return self._named(name or self.machine)

    def _named(self, name: str) -> Machine:
        """Return a machine; that of this table or figure with its network."""
        from halocline.study.measuring.host import machine_named

        machine, network = machine_named(name), dict(self.network) if name == self.machine else {}
        return machine.model_copy(update={"network": machine.network.model_copy(update=network)})

    @staticmethod
    def _machines(places: Iterable[Row]) -> Iterator[str]:
        """Yield the names of the machines of places that have their own."""
        return (row["predicted_on"] for row in places if "predicted_on" in row)

    def predict(
        self,
        places: Sequence[Row],
        machine: Machine,
        on_progress: Callable[[int], None] = lambda number: None,
    ) -> list[Row]:
        """Return the places with the predictions of the model, which executes the plans of all ranks."""
        from halocline.plan.growth import grown
        from halocline.study.measuring.predict import predict

        prepared: dict[Any, Any] = {}  # machine, schedule, shape of the grid and pace
        rows = []
        for number, place in enumerate(places, 1):
            row = {**place, "predicted": None}
            if self.where(row):
                names = ("predicted_on", "n", "order", "halo", "part", "nodes" if self.make else "")
                key = tuple(row.get(name) for name in names)
                if key not in prepared:
                    schedule, shape = self._prepared(row)
                    own = self._named(row["predicted_on"]) if "predicted_on" in row else machine
                    prepared[key] = own, schedule, shape, self._pace(schedule, shape, own, row)
                own, schedule, shape, pace = prepared[key]
                per_node = row.get("ranks_per_node") or own.device.count
                shape = row.get("shape") or (grown(shape, row["nodes"] * per_node) if self.weak else shape)
                options = {name: row[name] for name in PREDICT if row.get(name) is not None}
                (prediction,) = predict(
                    schedule, shape, own, [row["nodes"]], ranks_per_node=per_node, pace=pace, **options
                )
                row["shape"] = list(shape)
                row["predicted"] = self.scale(prediction.seconds * self.passes(row["n"]), row)
                published_value = row.get(self.compare or self.value or "")
                if published_value:
                    row["predicted_ratio"] = row["predicted"] / published_value
            rows.append(row)
            on_progress(number)
        return rows

    def _pace(self, schedule: Any, shape: tuple[int, ...], machine: Machine, row: Row) -> float:
        """Return how many times as long sweeps take as predicted where one device takes the published time.

        It is 1/π of the formula of Pekkilä et al. 2022, which they measure on one device too. It is 1 on
        other devices than those of `machine`.
        """
        from halocline.study.measuring.predict import predict

        on_one = self.on_one(row) if callable(self.on_one) else self.on_one
        if on_one is None or self.machine is None or machine.device != self._named(self.machine).device:
            return 1.0
        times = [
            predict(schedule, shape, machine, [1], ranks_per_node=1, pace=pace)[0].seconds for pace in (1, 2)
        ]
        sweeps, target = times[1] - times[0], on_one * prod(shape)  # without launches and copies
        return max(1.0 + (target - times[0]) / sweeps, LEAST_PACE)

    def _prepared(self, row: Row) -> Any:
        """Return the schedule, and the shape of the grid of one rank or of all."""
        from halocline.study.measuring.predict import prepared

        if self.make is not None:
            return self.make(row)
        names = ("dim", "order", "scheme", "dtype")
        options = {name: self.options[name] for name in names if name in self.options}
        options |= {"order": row["order"]} if row.get("order") else {}
        settings = [*self.options.get("settings", ())]
        settings += [f"method={self.options['method']}"] if "method" in self.options else []
        halo = row.get("halo", "read")
        return prepared(self.problem, row["n"], halo=halo, settings=settings, **options)

    # -- report ----------------------------------------------------------------------------------------------

    @property
    def _cited(self) -> list[str]:
        """Source of the published values, and their machine."""
        data = self.data
        stated = data.machine.partition(":")[0] not in ("none", "not stated")
        source = f"{data.source.partition(',')[0]} et al., {data.place}."
        return [source, *([f"Machine: {data.machine}."] if stated else [])]

    @property
    def said(self) -> list[str]:
        """Sentences on the table or figure, with the source where no table of published values has it."""
        about, settings = self.data.about, ", ".join(self.options.get("settings", ()))
        return [
            f"{self.title}: {self.about}",
            *([] if self.data.rows else self._cited),
            about[0].upper() + about[1:],
            *([f"Predicted and measured with {settings}, as in the paper."] if settings else []),
        ]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the published table, then tables of each value of `by`."""
        data, tables = self.data, list[Table]()
        if self.value is None and data.rows:
            tables.append(self.printed())
        notes = {"published": q.wrapped(*self._cited), "computed": ""}
        if machine is not None:
            network = machine.network
            other = f"its network exchanged for {amount(network.bandwidth)}/s and {duration(network.latency)}"
            is_exchanged = self.network and self.network.items() <= dict(network).items()
            titles = dict.fromkeys(self._named(name).title for name in self._machines(rows))
            model = joined("; ".join(titles) or machine.title, other if is_exchanged else None)
            notes["predicted"] = q.wrapped(f"By the model, for {model}.")
            notes["predicted_ratio"] = ""
        for value in dict.fromkeys(row.get(self.by) for row in rows):
            same = [row for row in rows if row.get(self.by) == value]
            heading = "" if value is None else f"{self.by} = {value}: {self.title}"
            for kind, note in notes.items():
                key = self._kinds[kind]
                shown = [row for row in same if key and row.get(key) is not None]
                if shown:
                    tables.append(self._pivot(kind, key, shown, same, note, heading))
                    heading = ""
        if self.quotients is not None and machine is not None:
            stated = list(self.quotients(rows))
            tables += [_compared(stated)] if stated else []
        return [replace(tables[0], heading=tables[0].heading or self.title), *tables[1:]] if tables else []

    @property
    def note(self) -> str:
        """Text below the table of the published rows: their source, machine and units."""
        every = self.data.units.split("; ")
        named = "; ".join(unit for unit in every if not unit.startswith(("bound:", "about ", "none")))
        return q.wrapped(*self._cited, *([f"Units: {named}."] if named else []))

    def printed(self, here: Sequence[Row] = ()) -> Table:
        """Return the table of the rows of the data file, then those of the same facts here."""
        return _as_printed(self.data, self.note, here)

    @property
    def _kinds(self) -> dict[str, str | None]:
        """Keys of the values of a place, by kind."""
        kinds = ("computed", "predicted", "predicted_ratio")
        return {"published": self.value} | {kind: kind for kind in kinds}

    def _axis(self, rows: Sequence[Row], name: str, end: str = "") -> Axis:
        """Return an axis in the order of the rows; below numbers stands the name."""
        order = list(dict.fromkeys(row.get(name) for row in rows))
        return Axis(
            lambda m: order.index(m.get(name)),
            lambda m: f"{m.get(name)}" + (end if isinstance(m.get(name), int) else ""),
        )

    def _pivot(
        self, kind: str, key: Any, shown: Sequence[Row], rows: Sequence[Row], note: str, heading: str
    ) -> Table:
        """Return the table of one kind of values."""
        down, along = (name.replace("_", " ") for name in (self.rows, self.columns))
        write = self.published_text if kind == "published" and self.published_text else self.text

        def cell(row: Row, group: Group) -> str:
            if kind == "predicted_ratio":
                return f"{row[key]:.2f}"
            same = self.rows if self.compared_along == "rows" else self.columns
            first = next(m for m in shown if m.get(same) == row.get(same))
            return write(row[key]) + (self.compared(row[key], first[key], row) if self.compared else "")

        title = f"{kind.capitalize()}{' here' * (kind == 'computed')}: {self.unit}"
        if kind == "predicted_ratio":
            title, note = "Predicted over published", _spread([row[key] for row in shown])
        return pivot_table(
            title,
            Group(shown),
            cell,
            rows=self._axis(rows, self.rows),
            columns=self._axis(rows, self.columns, f"\n{along}"),
            head=down,
            note=note,
            heading=heading,
        )

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return the figure of values over columns that are numbers; None where columns are names."""
        if not all(isinstance(row[self.columns], int) for row in rows):
            return None
        down, along = (name.replace("_", " ") for name in (self.rows, self.columns))
        order = self._axis(rows, self.rows).key

        def label(line: Group) -> str:
            value = line.first.get(self.rows)
            return value if isinstance(value, str) else f"{down} = {value}"

        def panel(kind: str, key: str, group: Group) -> Panel:
            value = f"{self.by} = {group.first[self.by]}" if self.by in group.first else None
            return Panel(
                group,
                lambda m, g: m.get(key) or None,
                joined(value, kind),
                self.unit,
                line=order,
                label=label,
                x=lambda m: m[self.columns],
                xlabel=along,
            )

        panels = [
            panel(kind, key, group)
            for group in Group(rows).by(lambda m: m.get(self.by) or 0)
            for kind, key in self._kinds.items()
            if key
            and kind != "predicted_ratio"
            and any(isinstance(row.get(key), int | float) for row in rows)
        ]
        return draw(panels, title=self.title, share_y=True)


def _spread(ratios: Sequence[float]) -> str:
    """Return a sentence on the least and greatest ratio of predicted to published values."""
    near = sum(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    least, most = min(ratios), max(ratios)
    return f"{near} of {len(ratios)} are within a factor of {NEAR:g}; from {least:.2f} to {most:.2f}."


def _compared(quotients: Sequence[Quotient]) -> Table:
    """Return the table of stated and predicted numbers."""
    columns: dict[str, Callable[[Quotient], str]] = {
        "stated": lambda quotient: quotient[0],
        "published": lambda quotient: f"{quotient[1]:.3g}",
        "predicted": lambda quotient: f"{quotient[2]:.3g}",
        "predicted over\npublished": lambda quotient: f"{quotient[2] / quotient[1]:.2f}",
    }
    return table_of("Numbers of the text", quotients, columns)


def _as_printed(data: Published, note: str, here: Sequence[Row] = ()) -> Table:
    """Return the table of the rows of a data file, with both ends of a range in one, and of rows here."""
    rows = [*_ranges(data.rows), *here]
    if here and not isinstance(next(iter(rows[0].values())), str):  # no column says where a row is from
        rows = [{"": "here" if row in here else "paper", **row} for row in rows]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    words = [name for name in names if isinstance(rows[0][name], str)]
    return Table(
        "Published and here" if here else "Published",
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        left=len(words) if names[: len(words)] == words else 0,
        muted=tuple(range(len(rows) - len(here))) if here else (),
        note=note,
    )


def _ranges(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows whose least and most are one range; the value stands before `bound`."""
    if "bound" not in rows[0]:
        yield from rows
        return
    *names, value, _ = rows[0]
    ranges: dict[tuple[Any, ...], dict[Any, str]] = {}
    for row in rows:
        ranges.setdefault(tuple(row[name] for name in names), {})[row["bound"]] = _text(value, row[value])
    for entries, bounds in ranges.items():
        text = BOUNDS[tuple(bounds)].format(*bounds.values())
        yield dict(zip(names, entries, strict=True)) | {value: text}


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name in SHARES:
        return f"{100 * value:.3g}%"
    if name == "seconds":
        return seconds_text(value)
    return f"{value:,.0f}" if value >= 1_000_000 else f"{value:g}"
