"""Tables and figures of papers: published, computed and predicted values, and studies that measure them.

A configuration is one point of a table or figure: size, nodes, ranks and further options.
"""

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

# configuration with n, nodes, ranks_per_node, threads, and published, computed and predicted values
Row = dict[str, Any]

PREDICT = (  # options of the prediction that a configuration can contain
    *("threads", "subdomains_per_rank", "strategy", "placement"),
    *("methods", "packing", "overlap", "passes"),
)
Quotient = tuple[str, float, float]
LEAST_PACE = 0.01  # minimum pace, used if launches and copies alone exceed the published time
NEAR = 1.5  # maximum ratio of prediction and published value that counts as near
SHARES = ("share", "peak_share", "efficiency", "of_theory")
BOUNDS = {
    ("least", "most"): "{} to {}",
    ("least",): "at least {}",
    ("most",): "at most {}",
    ("about",): "about {}",
    (None,): "{}",
}


def seconds_text(value: float) -> str:
    """Return a time as wall clock and in seconds."""
    return f"{clock(value)}  {in_seconds(value):>8}"


@dataclass(frozen=True)
class Paper:
    """Table or figure of a paper.

    Parameters
    ----------
    name : str
        Name of the data file, such as "umbc-4.1".
    title : str
    about : str
        Text on the quantities that vary, that are constant, and that are shown.
    study : str, optional
        Study that measures the same quantity on this machine.
    problem : str
        Name of a case.
    options : mapping
        Options of the command.
    local_runs : mapping, or sequence of mappings
        Measurements on this machine: "n", "ranks" and "threads" as on the command line, and options of the
        study. "study" names a study other than `study`. A value that depends on this machine is the result of
        a function.
    machine : str, optional
        Machine of the predictions; None for no prediction. A configuration with an entry "predicted_on" is
        predicted for the machine of this name instead.
    network : mapping
        Bandwidth and latency of the network of `machine`, if they differ from those in its machine file.
    value_key : str, optional
        Key of the published value of a configuration, if the configurations are those of the data file. By
        default, the rows of the file are shown.
    compared_key : str, optional
        Key of the published value for the ratio to the prediction; `value_key` by default.
    configurations : sequence of dict, optional
        Configurations that are computed or predicted: n, nodes and so on. By default, they are those of the
        data file if `value_key` is set.
    is_predicted : callable
        ``is_predicted(row)`` is True for configurations that are predicted.
    sizes : tuple of int
        Values of `n` that are predicted by default.
    nodes : tuple of int
        Numbers of nodes that are predicted by default.
    pass_count : callable, optional
        ``pass_count(n)`` returns the number of passes of the loop that the value covers; 1 by default.
    scale : callable, optional
        ``scale(seconds, row)`` converts the seconds of these passes to the value.
    device_time : float or callable, optional
        Published seconds per pass and cell on one device of `machine`, or ``device_time(row)`` for a
        configuration. Predicted sweeps on such devices are scaled to this time.
    make_schedule : callable, optional
        ``make_schedule(row)`` returns the schedule and the shape of the grid, for a problem that is not a
        case.
    formula : callable, optional
        ``formula(row)`` returns the computed value of a configuration.
    is_weak : bool
        True if n is the size of the grid of one rank.
    row_key, column_key, table_key : str
        Keys of a configuration for the rows and columns of tables, and for separate tables.
    format_value, format_published : callable
        Format of a predicted and of a published value.
    comparison_text : callable, optional
        ``comparison_text(value, first, row)`` returns the text after a value: its comparison with the first
        value of the row or column.
    comparison_axis : {"rows", "columns"}
        Direction of this comparison.
    quotients : callable, optional
        ``quotients(rows)`` yields numbers that the text of the paper states: name, published and predicted
        value.
    unit : str
        Unit of the values.
    difference_note : str
        Sentence on the difference between the measured quantity and that of the paper. Further differences
        follow from the measurements.
    facts : callable, optional
        ``facts(paper)`` returns the report of a table or figure that no study measures, such as facts of this
        machine. The tables of this report include the published values.
    """

    name: str
    title: str
    about: str
    study: str | None = None
    problem: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    local_runs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(default_factory=dict)
    machine: str | None = None
    network: Mapping[str, float] = field(default_factory=dict)
    value_key: str | None = None
    compared_key: str | None = None
    configurations: Sequence[Row] = ()
    is_predicted: Callable[[Row], bool] = lambda row: True
    sizes: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    pass_count: Callable[[int], float] = lambda n: 1.0
    scale: Callable[[float, Row], float] = lambda seconds, row: seconds
    device_time: float | Callable[[Row], float | None] | None = None
    make_schedule: Callable[[Row], Any] | None = None
    formula: Callable[[Row], Any] | None = None
    is_weak: bool = False
    row_key: str = "ranks_per_node"
    column_key: str = "nodes"
    table_key: str = "n"
    format_value: Callable[[Any], str] = seconds_text
    format_published: Callable[[Any], str] | None = None
    comparison_text: Callable[[Any, Any, Row], str] | None = None
    comparison_axis: str = "rows"
    quotients: Callable[[Sequence[Row]], Iterable[Quotient]] | None = None
    unit: str = "seconds"
    difference_note: str = ""
    facts: Callable[[Paper], Report] | None = None

    @property
    def measured_studies(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and options of each study that measures on this machine."""
        if self.study is None:
            return []
        every = [self.local_runs] if isinstance(self.local_runs, Mapping) else self.local_runs
        options = [{**self.options, **mapping} for mapping in every]
        values = [{k: v() if callable(v) else v for k, v in mapping.items()} for mapping in options]
        return [(mapping.pop("study", self.study), mapping) for mapping in values]

    def differences(self, measurements: Sequence[Measurement]) -> str:
        """Return sentences on the differences from the paper in machine, size and quantity."""
        most = max(measurements, key=lambda m: int(m["cores_or_devices"]))
        places = counted(most["cores_or_devices"], "device" if most["devices"] else "core")
        hardware = most["devices"][0]["name"] if most["devices"] else most["machine"]["cpu"]
        stated = re.split("[;:]", self.data.machine)[0]
        machine = "" if stated in ("none", "not stated") else f", instead of {stated}"
        sizes = [q.size(m) for m in sorted(measurements, key=q.grid)]
        published = sorted({row["n"] for row in self.data.rows if row.get("n")})
        paper_sizes = f" (the paper: n = {', '.join(map(str, published))})" if published else ""
        return " ".join(
            [
                f"Differences from the paper: {hardware}, {places} at most{machine};",
                f"{most['case']} on {', '.join(dict.fromkeys(sizes))}{paper_sizes}.",
                *([self.difference_note] if self.difference_note else []),
            ]
        )

    @property
    def data(self) -> Published:
        """Published data."""
        return published(self.name)

    def select_configurations(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the configurations, with their computed values.

        Raises
        ------
        InputError
            No configuration has a requested size or number of nodes.
        """
        places = [dict(row) for row in self.configurations or (self.data.rows if self.value_key else ())]
        for name, chosen, default in (("n", sizes, self.sizes), ("nodes", nodes, self.nodes)):
            values = chosen or default
            if not values:
                continue
            known = sorted({row[name] for row in places if name in row})
            places = [row for row in places if row.get(name) in set(values)]
            if chosen is not None and not set(chosen) <= set(known):
                text = ",".join(map(str, chosen))
                if not known:
                    raise InputError(f"--{name} {text}: {self.name} is not over {name}: leave it out")
                raise InputError(
                    f"--{name} {text}: {self.name} has {', '.join(map(str, known))}: give some of them"
                )
        if self.formula is None:
            return places
        return [{**row, "computed": self.formula(row)} for row in places]

    def prediction_machine(self, name: str | None) -> Machine | None:
        """Return the machine of the predictions; None if nothing is predicted.

        Raises
        ------
        InputError
            The machine is unknown, nothing can be predicted, or configurations have their own machines.
        """
        if self.machine is None:
            if name is not None:
                raise InputError(f"--machine {name}: the model predicts nothing of {self.name}: leave it out")
            return None
        if name is not None and (machines := list(dict.fromkeys(self._machine_names(self.configurations)))):
            raise InputError(
                f"--machine {name}: {self.name} is predicted for {', '.join(machines)}: leave it out"
            )
        return self._machine_named(name or self.machine)

    def _machine_named(self, name: str) -> Machine:
        """Return a machine by name; for `self.machine`, `self.network` replaces numbers of its network."""
        from halocline.study.measuring.host import machine_named

        machine, network = machine_named(name), dict(self.network) if name == self.machine else {}
        return machine.model_copy(update={"network": machine.network.model_copy(update=network)})

    @staticmethod
    def _machine_names(places: Iterable[Row]) -> Iterator[str]:
        """Yield the machine names of those configurations that define their own machine."""
        return (row["predicted_on"] for row in places if "predicted_on" in row)

    def predict(
        self,
        places: Sequence[Row],
        machine: Machine,
        on_progress: Callable[[int], None] = lambda number: None,
    ) -> list[Row]:
        """Return the configurations with predictions of the model, which executes the plans of all ranks."""
        from halocline.plan.growth import grown
        from halocline.study.measuring.predict import predict

        prepared: dict[Any, Any] = {}  # machine, schedule, shape of the grid and pace
        rows = []
        for number, place in enumerate(places, 1):
            row = {**place, "predicted": None}
            if self.is_predicted(row):
                names = ("predicted_on", "n", "order", "halo", "part", "nodes" if self.make_schedule else "")
                key = tuple(row.get(name) for name in names)
                if key not in prepared:
                    schedule, shape = self._prepare_schedule(row)
                    target = self._machine_named(row["predicted_on"]) if "predicted_on" in row else machine
                    prepared[key] = target, schedule, shape, self._pace(schedule, shape, target, row)
                target, schedule, shape, pace = prepared[key]
                per_node = row.get("ranks_per_node") or target.device.count
                shape = row.get("shape") or (grown(shape, row["nodes"] * per_node) if self.is_weak else shape)
                options = {name: row[name] for name in PREDICT if row.get(name) is not None}
                (prediction,) = predict(
                    schedule, shape, target, [row["nodes"]], ranks_per_node=per_node, pace=pace, **options
                )
                row["shape"] = list(shape)
                row["predicted"] = self.scale(prediction.seconds * self.pass_count(row["n"]), row)
                published_value = row.get(self.compared_key or self.value_key or "")
                if published_value:
                    row["predicted_ratio"] = row["predicted"] / published_value
            rows.append(row)
            on_progress(number)
        return rows

    def _pace(self, schedule: Any, shape: tuple[int, ...], machine: Machine, row: Row) -> float:
        """Return the factor that scales sweep times so that one device takes the published time.

        The published time is 1/π of the formula of Pekkilä et al. 2022, who also measure it on one device.
        The factor is 1 for devices other than those of `machine`.
        """
        from halocline.study.measuring.predict import predict

        on_one = self.device_time(row) if callable(self.device_time) else self.device_time
        if (
            on_one is None
            or self.machine is None
            or machine.device != self._machine_named(self.machine).device
        ):
            return 1.0
        times = [
            predict(schedule, shape, machine, [1], ranks_per_node=1, pace=pace)[0].seconds for pace in (1, 2)
        ]
        sweeps, target = times[1] - times[0], on_one * prod(shape)  # without launches and copies
        return max(1.0 + (target - times[0]) / sweeps, LEAST_PACE)

    def _prepare_schedule(self, row: Row) -> Any:
        """Return the schedule, and the shape of the grid of one rank or of all ranks."""
        from halocline.study.measuring.predict import prepare

        if self.make_schedule is not None:
            return self.make_schedule(row)
        names = ("dim", "order", "scheme", "dtype")
        options = {name: self.options[name] for name in names if name in self.options}
        options |= {"order": row["order"]} if row.get("order") else {}
        settings = [*self.options.get("settings", ())]
        settings += [f"method={self.options['method']}"] if "method" in self.options else []
        halo = row.get("halo", "read")
        return prepare(self.problem, row["n"], halo=halo, settings=settings, **options)

    # -- report ----------------------------------------------------------------------------------------------

    @property
    def _citation(self) -> list[str]:
        """Source of the published values, and their machine."""
        data = self.data
        stated = data.machine.partition(":")[0] not in ("none", "not stated")
        source = f"{data.source.partition(',')[0]} et al., {data.place}."
        return [source, *([f"Machine: {data.machine}."] if stated else [])]

    @property
    def sentences(self) -> list[str]:
        """Sentences on the table or figure, with the source if no table of published values contains it."""
        about, settings = self.data.about, ", ".join(self.options.get("settings", ()))
        return [
            f"{self.title}: {self.about}",
            *([] if self.data.rows else self._citation),
            about[0].upper() + about[1:],
            *([f"Predicted and measured with {settings}, as in the paper."] if settings else []),
        ]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the published table, then the tables for each value of the key `table_key`."""
        data, tables = self.data, list[Table]()
        if self.value_key is None and data.rows:
            tables.append(self.published_table())
        notes = {"published": q.wrap_notes(*self._citation), "computed": ""}
        if machine is not None:
            network = machine.network
            other = f"its network exchanged for {amount(network.bandwidth)}/s and {duration(network.latency)}"
            is_exchanged = self.network and self.network.items() <= dict(network).items()
            titles = dict.fromkeys(self._machine_named(name).title for name in self._machine_names(rows))
            model = joined("; ".join(titles) or machine.title, other if is_exchanged else None)
            notes["predicted"] = q.wrap_notes(f"By the model, for {model}.")
            notes["predicted_ratio"] = ""
        for value in dict.fromkeys(row.get(self.table_key) for row in rows):
            same = [row for row in rows if row.get(self.table_key) == value]
            heading = "" if value is None else f"{self.table_key} = {value}: {self.title}"
            for kind, note in notes.items():
                key = self._value_keys[kind]
                rows_with_value = [row for row in same if key and row.get(key) is not None]
                if rows_with_value:
                    tables.append(self._pivot_table(kind, key, rows_with_value, same, note, heading))
                    heading = ""
        if self.quotients is not None and machine is not None:
            stated = list(self.quotients(rows))
            tables += [_compared(stated)] if stated else []
        return [replace(tables[0], heading=tables[0].heading or self.title), *tables[1:]] if tables else []

    @property
    def note(self) -> str:
        """Text below the table of the published rows: their source, machine and units."""
        units = self.data.units.split("; ")
        named_units = "; ".join(unit for unit in units if not unit.startswith(("bound:", "about ", "none")))
        return q.wrap_notes(*self._citation, *([f"Units: {named_units}."] if named_units else []))

    def published_table(self, local_rows: Sequence[Row] = ()) -> Table:
        """Return a table with the rows of the data file, then rows with the same facts of this machine."""
        return _published_table(self.data, self.note, local_rows)

    @property
    def _value_keys(self) -> dict[str, str | None]:
        """Key under which a configuration stores each kind of value, such as "predicted"."""
        kinds = ("computed", "predicted", "predicted_ratio")
        return {"published": self.value_key} | {kind: kind for kind in kinds}

    def _axis(self, rows: Sequence[Row], name: str, end: str = "") -> Axis:
        """Return an axis in the order of the rows, with `end` after labels that are numbers."""
        order = list(dict.fromkeys(row.get(name) for row in rows))
        return Axis(
            lambda m: order.index(m.get(name)),
            lambda m: f"{m.get(name)}" + (end if isinstance(m.get(name), int) else ""),
        )

    def _pivot_table(
        self,
        kind: str,
        key: Any,
        rows_with_value: Sequence[Row],
        rows: Sequence[Row],
        note: str,
        heading: str,
    ) -> Table:
        """Return the table of one kind of values."""
        down, along = (name.replace("_", " ") for name in (self.row_key, self.column_key))
        write = self.format_published if kind == "published" and self.format_published else self.format_value

        def cell(row: Row, group: Group) -> str:
            if kind == "predicted_ratio":
                return f"{row[key]:.2f}"
            same = self.row_key if self.comparison_axis == "rows" else self.column_key
            first = next(m for m in rows_with_value if m.get(same) == row.get(same))
            return write(row[key]) + (
                self.comparison_text(row[key], first[key], row) if self.comparison_text else ""
            )

        title = f"{kind.capitalize()}{' here' * (kind == 'computed')}: {self.unit}"
        if kind == "predicted_ratio":
            title, note = "Predicted over published", _spread([row[key] for row in rows_with_value])
        return pivot_table(
            title,
            Group(rows_with_value),
            cell,
            rows=self._axis(rows, self.row_key),
            columns=self._axis(rows, self.column_key, f"\n{along}"),
            head=down,
            note=note,
            heading=heading,
        )

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return the figure of values against the column key; None if values of this key are not integers."""
        if not all(isinstance(row[self.column_key], int) for row in rows):
            return None
        down, along = (name.replace("_", " ") for name in (self.row_key, self.column_key))
        order = self._axis(rows, self.row_key).key

        def label(line: Group) -> str:
            value = line.first.get(self.row_key)
            return value if isinstance(value, str) else f"{down} = {value}"

        def panel(kind: str, key: str, group: Group) -> Panel:
            value = (
                f"{self.table_key} = {group.first[self.table_key]}" if self.table_key in group.first else None
            )
            return Panel(
                group,
                lambda m, g: m.get(key) or None,
                joined(value, kind),
                self.unit,
                line=order,
                label=label,
                x=lambda m: m[self.column_key],
                xlabel=along,
            )

        panels = [
            panel(kind, key, group)
            for group in Group(rows).split(lambda m: m.get(self.table_key) or 0)
            for kind, key in self._value_keys.items()
            if key
            and kind != "predicted_ratio"
            and any(isinstance(row.get(key), int | float) for row in rows)
        ]
        return draw(panels, title=self.title, share_y=True)


def _spread(ratios: Sequence[float]) -> str:
    """Return a sentence on the minimum and maximum ratio of predicted to published values."""
    near_count = sum(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    least, most = min(ratios), max(ratios)
    near_text = f"{near_count} of {len(ratios)} ratios are within a factor of {NEAR:g}"
    return f"{near_text}; all are from {least:.2f} to {most:.2f}."


def _compared(quotients: Sequence[Quotient]) -> Table:
    """Return the table of stated and predicted numbers."""
    columns: dict[str, Callable[[Quotient], str]] = {
        "stated": lambda quotient: quotient[0],
        "published": lambda quotient: f"{quotient[1]:.3g}",
        "predicted": lambda quotient: f"{quotient[2]:.3g}",
        "predicted over\npublished": lambda quotient: f"{quotient[2] / quotient[1]:.2f}",
    }
    return table_of("Numbers stated in the text", quotients, columns)


def _published_table(data: Published, note: str, local_rows: Sequence[Row] = ()) -> Table:
    """Return the table of the rows of a data file and of `local_rows`, with each range in one column."""
    rows = [*_ranges(data.rows), *local_rows]
    if local_rows and not isinstance(
        next(iter(rows[0].values())), str
    ):  # no column contains the origin of a row
        rows = [{"": "this machine" if row in local_rows else "paper", **row} for row in rows]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    words = [name for name in names if isinstance(rows[0][name], str)]
    return Table(
        "Published, and this machine" if local_rows else "Published",
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        left=len(words) if names[: len(words)] == words else 0,
        muted=tuple(range(len(rows) - len(local_rows))) if local_rows else (),
        note=note,
    )


def _ranges(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows in which a minimum and a maximum are merged into a range.

    The values are in the column before the column `bound`.
    """
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
