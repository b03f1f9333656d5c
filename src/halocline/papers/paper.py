"""Tables and figures of papers: published, computed and predicted values, and studies that measure them.

A configuration describes one entry of a table or one point of a figure: its size, numbers of nodes and ranks,
and further options.
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

# configuration: options such as n, nodes, ranks_per_node and threads, and published, computed and predicted
# values
Row = dict[str, Any]

PREDICTION_OPTIONS = (  # options of the prediction that a configuration can contain
    *("threads", "subdomains_per_rank", "strategy", "placement"),
    *("methods", "packing", "overlap", "passes"),
)
Quotient = tuple[str, float, float]  # description of a ratio, its published value and its predicted value
# minimum factor for the times of sweeps, used if launches and copies alone exceed the published time
MIN_PACE = 0.01
CLOSE_FACTOR = 1.5  # a prediction within this factor of the published value counts as close
SHARES = ("share", "peak_share", "efficiency", "of_theory")  # columns that tables show in percent
BOUND_FORMATS = {  # texts of the values of one quantity, by the entries of the column `bound`
    ("least", "most"): "{} to {}",
    ("least",): "at least {}",
    ("most",): "at most {}",
    ("about",): "about {}",
    (None,): "{}",
}


def seconds_text(value: float) -> str:
    """Return a duration in the form HH:MM:SS, followed by the duration in seconds."""
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
        Sentences on the contents: the varied quantities and the values.
    study : str, optional
        Study that measures the same quantity on this machine.
    problem : str
        Name of a case.
    options : mapping
        Options of the command.
    local_runs : mapping, or sequence of mappings
        Measurements on this machine: "n", "ranks" and "threads" as on the command line, and options of the
        study. The entry "study" replaces `study`. A value may be a function, which is called if the value
        depends on this machine.
    machine : str, optional
        Name of the machine of the predictions; None for no prediction. The entry "predicted_on" of a
        configuration replaces this name.
    network : mapping
        Bandwidth and latency of the network of `machine`, if they differ from those in its machine file.
    value_key : str, optional
        Key of the published value of a configuration. If `configurations` is empty, each row of the data
        file is then a configuration. By default, a table shows all columns of the data file.
    compared_key : str, optional
        Key of the published value for the ratio to the prediction; `value_key` by default.
    configurations : sequence of dict, optional
        Configurations that are computed or predicted. By default, they are the rows of the data file if
        `value_key` is set.
    is_predicted : callable
        ``is_predicted(row)`` is True for configurations that are predicted.
    sizes : tuple of int
        Values of `n` that are predicted by default.
    nodes : tuple of int
        Numbers of nodes that are predicted by default.
    pass_count : callable, optional
        ``pass_count(n)`` returns the number of passes of the loop that the published time covers; 1 by
        default.
    scale : callable, optional
        ``scale(seconds, row)`` converts the time of these passes to the unit of the values.
    device_time : float or callable, optional
        Published time per pass and cell on one device of `machine`, in seconds. A function
        ``device_time(row)`` returns this time for a configuration. The predicted times of sweeps on these
        devices are scaled to the published time.
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
        ``comparison_text(value, first, row)`` returns the text after a value, which compares the value with
        the first value of its row or column.
    comparison_axis : {"rows", "columns"}
        "rows" for the first value of the row, "columns" for the first value of the column.
    quotients : callable, optional
        ``quotients(rows)`` yields the ratios that the text of the paper states: description, published value
        and predicted value.
    unit : str
        Unit of the values.
    difference_note : str
        Sentences on differences between the measurement and the paper, in addition to the differences that
        follow from the measurements.
    facts : callable, optional
        ``facts(paper)`` returns the report of a table or figure that no study measures, such as a table of
        machines. The tables of this report include the published values.
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
        """Pairs of name and options, one for each study that measures on this machine."""
        if self.study is None:
            return []
        all_runs = [self.local_runs] if isinstance(self.local_runs, Mapping) else self.local_runs
        options = [{**self.options, **mapping} for mapping in all_runs]
        values = [{k: v() if callable(v) else v for k, v in mapping.items()} for mapping in options]
        return [(mapping.pop("study", self.study), mapping) for mapping in values]

    def differences(self, measurements: Sequence[Measurement]) -> str:
        """Return sentences on the differences from the paper in machine, size and quantity."""
        largest_run = max(measurements, key=lambda m: int(m["cores_or_devices"]))
        units = counted(largest_run["cores_or_devices"], "device" if largest_run["devices"] else "core")
        devices = largest_run["devices"]
        hardware = devices[0]["name"] if devices else largest_run["machine"]["cpu"]
        published_machine = re.split("[;:]", self.data.machine)[0]
        is_stated = published_machine not in ("none", "not stated")
        machine = f", instead of {published_machine}" if is_stated else ""
        sizes = [q.size(m) for m in sorted(measurements, key=q.grid)]
        published = sorted({row["n"] for row in self.data.rows if row.get("n")})
        paper_sizes = f" (in the paper: n = {', '.join(map(str, published))})" if published else ""
        return " ".join(
            [
                f"Differences from the paper: measurements on at most {units} of {hardware}{machine}.",
                f"The problem is {largest_run['case']} with {', '.join(dict.fromkeys(sizes))} "
                f"cells{paper_sizes}.",
                *([self.difference_note] if self.difference_note else []),
            ]
        )

    @property
    def data(self) -> Published:
        """Published data, from the data file."""
        return published(self.name)

    def select_configurations(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the configurations, with their computed values.

        Raises
        ------
        InputError
            No configuration has a requested size or number of nodes.
        """
        rows = [dict(row) for row in self.configurations or (self.data.rows if self.value_key else ())]
        for name, requested, default in (("n", sizes, self.sizes), ("nodes", nodes, self.nodes)):
            values = requested or default
            if not values:
                continue
            known = sorted({row[name] for row in rows if name in row})
            rows = [row for row in rows if row.get(name) in set(values)]
            if requested is not None and not set(requested) <= set(known):
                text = ",".join(map(str, requested))
                if not known:
                    raise InputError(
                        f"--{name} {text}: {self.name} does not depend on {name}. Leave the option out."
                    )
                raise InputError(
                    f"--{name} {text}: {self.name} has only {', '.join(map(str, known))}. Use some of these "
                    "values."
                )
        if self.formula is None:
            return rows
        return [{**row, "computed": self.formula(row)} for row in rows]

    def prediction_machine(self, name: str | None) -> Machine | None:
        """Return the machine of the predictions; None if nothing is predicted.

        Raises
        ------
        InputError
            The machine is unknown, the paper has no predictions, or configurations define their own machines.
        """
        if self.machine is None:
            if name is not None:
                raise InputError(
                    f"--machine {name}: there is no prediction of {self.name}. Leave the option out."
                )
            return None
        if name is not None and (machines := list(dict.fromkeys(self._machine_names(self.configurations)))):
            raise InputError(
                f"--machine {name}: the configurations of {self.name} define their machines "
                f"({', '.join(machines)}). Leave the option out."
            )
        return self._machine_named(name or self.machine)

    def _machine_named(self, name: str) -> Machine:
        """Return a machine by name. For `machine`, `network` replaces numbers of the machine file."""
        from halocline.study.measuring.host import machine_named

        machine, network = machine_named(name), dict(self.network) if name == self.machine else {}
        return machine.model_copy(update={"network": machine.network.model_copy(update=network)})

    @staticmethod
    def _machine_names(rows: Iterable[Row]) -> Iterator[str]:
        """Yield the names of the machines that configurations define."""
        return (row["predicted_on"] for row in rows if "predicted_on" in row)

    def predict(
        self,
        configurations: Sequence[Row],
        machine: Machine,
        on_progress: Callable[[int], None] = lambda number: None,
    ) -> list[Row]:
        """Return the configurations with predicted values. The model executes the plans of all ranks."""
        from halocline.plan.growth import grown
        from halocline.study.measuring.predict import predict

        prepared: dict[Any, Any] = {}  # machine, schedule, shape of the grid and factor for times of sweeps
        rows = []
        for number, configuration in enumerate(configurations, 1):
            row = {**configuration, "predicted": None}
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
                options = {name: row[name] for name in PREDICTION_OPTIONS if row.get(name) is not None}
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
        """Return the factor that scales the times of sweeps so that one device takes the published time.

        The published time is the constant 1/π in the formula of Pekkilä et al. 2022, which the authors also
        measure on one device. The factor is 1 for devices other than those of `machine`.
        """
        from halocline.study.measuring.predict import predict

        device_time = self.device_time(row) if callable(self.device_time) else self.device_time
        if (
            device_time is None
            or self.machine is None
            or machine.device != self._machine_named(self.machine).device
        ):
            return 1.0
        times = [
            predict(schedule, shape, machine, [1], ranks_per_node=1, pace=pace)[0].seconds for pace in (1, 2)
        ]
        sweep_time = times[1] - times[0]  # without launches and copies
        return max(1.0 + (device_time * prod(shape) - times[0]) / sweep_time, MIN_PACE)

    def _prepare_schedule(self, row: Row) -> Any:
        """Return the schedule and the shape of the grid.

        The shape is that of the grid of one rank if `is_weak`, otherwise that of the grid of all ranks.
        """
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
        is_stated = data.machine.partition(":")[0] not in ("none", "not stated")
        source = f"{data.source.partition(',')[0]} et al., {data.place}."
        return [source, *([f"Machine: {data.machine}."] if is_stated else [])]

    @property
    def sentences(self) -> list[str]:
        """Sentences on the table or figure. Without a table of published values, they cite the source."""
        about, settings = self.data.about, ", ".join(self.options.get("settings", ()))
        return [
            f"{self.title}: {self.about}",
            *([] if self.data.rows else self._citation),
            about[0].upper() + about[1:],
            *([f"Predicted and measured with {settings}, as in the paper."] if settings else []),
        ]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the table of the data file, and the tables for each value of the key `table_key`."""
        data, tables = self.data, list[Table]()
        if self.value_key is None and data.rows:
            tables.append(self.published_table())
        notes = {"published": q.wrap_notes(*self._citation), "computed": ""}
        if machine is not None:
            network = machine.network
            rate, latency = amount(network.bandwidth), duration(network.latency)
            network_text = f"with a network of {rate}/s and a latency of {latency}"
            is_replaced = self.network and self.network.items() <= dict(network).items()
            titles = dict.fromkeys(self._machine_named(name).title for name in self._machine_names(rows))
            machine_text = joined("; ".join(titles) or machine.title, network_text if is_replaced else None)
            notes["predicted"] = q.wrap_notes(f"Predicted by the model for {machine_text}.")
            notes["predicted_ratio"] = ""
        for value in dict.fromkeys(row.get(self.table_key) for row in rows):
            table_rows = [row for row in rows if row.get(self.table_key) == value]
            heading = "" if value is None else f"{self.table_key} = {value}: {self.title}"
            for kind, note in notes.items():
                key = self._value_keys[kind]
                rows_with_value = [row for row in table_rows if key and row.get(key) is not None]
                if rows_with_value:
                    tables.append(self._pivot_table(kind, key, rows_with_value, table_rows, note, heading))
                    heading = ""
        if self.quotients is not None and machine is not None:
            quotients = list(self.quotients(rows))
            tables += [_quotient_table(quotients)] if quotients else []
        return [replace(tables[0], heading=tables[0].heading or self.title), *tables[1:]] if tables else []

    @property
    def note(self) -> str:
        """Text below the table of the data file: source, machine and units."""
        units = self.data.units.split("; ")
        named_units = "; ".join(unit for unit in units if not unit.startswith(("bound:", "about ", "none")))
        return q.wrap_notes(*self._citation, *([f"Units: {named_units}."] if named_units else []))

    def published_table(self, local_rows: Sequence[Row] = ()) -> Table:
        """Return a table with the rows of the data file, followed by rows of this machine."""
        return _published_table(self.data, self.note, local_rows)

    @property
    def _value_keys(self) -> dict[str, str | None]:
        """Keys of a configuration by the kind of value, such as "predicted"."""
        kinds = ("computed", "predicted", "predicted_ratio")
        return {"published": self.value_key} | {kind: kind for kind in kinds}

    def _axis(self, rows: Sequence[Row], name: str, end: str = "") -> Axis:
        """Return the axis of a key in the order of the rows. Labels that are numbers end with `end`."""
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
        row_name, column_name = (name.replace("_", " ") for name in (self.row_key, self.column_key))
        format_value = self.format_value
        if kind == "published" and self.format_published is not None:
            format_value = self.format_published

        def cell(row: Row, group: Group) -> str:
            if kind == "predicted_ratio":
                return f"{row[key]:.2f}"
            axis = self.row_key if self.comparison_axis == "rows" else self.column_key
            first = next(m for m in rows_with_value if m.get(axis) == row.get(axis))
            return format_value(row[key]) + (
                self.comparison_text(row[key], first[key], row) if self.comparison_text else ""
            )

        title = f"{kind.capitalize()}{' by Halocline' * (kind == 'computed')}: {self.unit}"
        if kind == "predicted_ratio":
            title = "Predicted values divided by published values"
            note = _spread([row[key] for row in rows_with_value])
        return pivot_table(
            title,
            Group(rows_with_value),
            cell,
            rows=self._axis(rows, self.row_key),
            columns=self._axis(rows, self.column_key, f"\n{column_name}"),
            head=row_name,
            note=note,
            heading=heading,
        )

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return the figure of values over the column key; None if values of this key are not integers."""
        if not all(isinstance(row[self.column_key], int) for row in rows):
            return None
        row_name, column_name = (name.replace("_", " ") for name in (self.row_key, self.column_key))
        order = self._axis(rows, self.row_key).key

        def label(line: Group) -> str:
            value = line.first.get(self.row_key)
            return value if isinstance(value, str) else f"{row_name} = {value}"

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
                xlabel=column_name,
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
    close_count = sum(1 / CLOSE_FACTOR <= ratio <= CLOSE_FACTOR for ratio in ratios)
    return (
        f"{close_count} of {len(ratios)} ratios are within a factor of {CLOSE_FACTOR:g}. The ratios range "
        f"from {min(ratios):.2f} to {max(ratios):.2f}."
    )


def _quotient_table(quotients: Sequence[Quotient]) -> Table:
    """Return the table of numbers in the text of the paper, with their predictions."""
    columns: dict[str, Callable[[Quotient], str]] = {
        "quantity": lambda quotient: quotient[0],
        "published": lambda quotient: f"{quotient[1]:.3g}",
        "predicted": lambda quotient: f"{quotient[2]:.3g}",
        "predicted /\npublished": lambda quotient: f"{quotient[2] / quotient[1]:.2f}",
    }
    return table_of("Numbers stated in the text", quotients, columns)


def _published_table(data: Published, note: str, local_rows: Sequence[Row] = ()) -> Table:
    """Return the table of a data file and of `local_rows`. One column contains both ends of a range."""
    rows = [*_ranges(data.rows), *local_rows]
    if local_rows and not isinstance(
        next(iter(rows[0].values())), str
    ):  # without a name in the first column, a further column names the origin of each row
        rows = [{"": "this machine" if row in local_rows else "paper", **row} for row in rows]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    text_columns = [name for name in names if isinstance(rows[0][name], str)]
    return Table(
        "Published values, and values of this machine" if local_rows else "Published values",
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        left=len(text_columns) if names[: len(text_columns)] == text_columns else 0,
        muted=tuple(range(len(rows) - len(local_rows))) if local_rows else (),
        note=note,
    )


def _ranges(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of a data file, with the minimum and maximum of a quantity merged into one row.

    The last column is `bound`, and the values are in the column before it.
    """
    if "bound" not in rows[0]:
        yield from rows
        return
    *names, value, _ = rows[0]
    ranges: dict[tuple[Any, ...], dict[Any, str]] = {}
    for row in rows:
        ranges.setdefault(tuple(row[name] for name in names), {})[row["bound"]] = _text(value, row[value])
    for entries, bounds in ranges.items():
        text = BOUND_FORMATS[tuple(bounds)].format(*bounds.values())
        yield dict(zip(names, entries, strict=True)) | {value: text}


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name in SHARES:
        return f"{100 * value:.3g}%"
    if name == "seconds":
        return seconds_text(value)
    return f"{value:,.0f}" if value >= 1_000_000 else f"{value:g}"
