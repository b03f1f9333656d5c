"""Tables and figures of papers as studies: what is published, what the model predicts for that machine, and
the same study measured here, reduced to what this machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.study.reporting.published import Published, published
from halocline.words import clock, in_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.plan.machine import Machine

Row = dict[str, Any]  # n, nodes, ranks_per_node, threads; published and predicted


def _seconds(value: float) -> str:
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
    study : str
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
    value : str
        The column of the data file that is predicted.
    places : sequence of dict, optional
        Where to predict, where the data file does not say: n, nodes and so on.
    sizes : tuple of int
        Of `n`, those that are predicted by default.
    passes : callable, optional
        ``passes(n)`` gives the passes of the loop that the value is of; 1 by default.
    scale : callable, optional
        ``scale(seconds, row)`` makes the value of the seconds of these passes.
    on_one : float, optional
        The published value on one device: predicted sweeps take as long there.
    make : callable, optional
        ``make(row)`` gives the schedule and the shape of the grid, where it is no case.
    weak : bool
        Whether n is that of a rank.
    rows, columns, by : str
        What rows and columns of its tables are, and what each table is of.
    text, published_text : callable
        How a value is written, predicted and published.
    """

    name: str
    title: str
    about: str
    study: str
    problem: str
    options: Mapping[str, Any] = field(default_factory=dict)
    here: Mapping[str, Any] = field(default_factory=dict)
    machine: str | None = None
    network: Mapping[str, float] = field(default_factory=dict)
    value: str = "seconds"
    places: Sequence[Row] = ()
    sizes: tuple[int, ...] = ()
    passes: Callable[[int], float] = lambda n: 1.0
    scale: Callable[[float, Row], float] = lambda seconds, row: seconds
    on_one: float | None = None
    make: Callable[[Row], Any] | None = None
    weak: bool = False
    rows: str = "ranks_per_node"
    columns: str = "nodes"
    by: str = "n"
    text: Callable[[float], str] = _seconds
    published_text: Callable[[float], str] | None = None

    @property
    def data(self) -> Published:
        """What is published."""
        return published(self.name)

    def places_of(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Where values are published or predicted.

        Raises
        ------
        InputError
            None has such a size, or so many nodes.
        """
        known = self.places or [row for row in self.data.rows if row.get("n") and row.get("nodes")]
        found = [dict(row) for row in known]
        wanted = {"n": sizes or self.sizes or None, "nodes": nodes}
        for name, values in wanted.items():
            if values is not None and found:
                there = sorted({row[name] for row in found})
                found = [row for row in found if row[name] in set(values)]
                if not found:
                    given = ",".join(map(str, values))
                    expected = ", ".join(map(str, there)) or "no number"
                    raise InputError(f"--{name} {given}: {self.name} has {expected}")
        return found

    def there(self, name: str | None) -> Machine | None:
        """The machine that is predicted for."""
        from halocline.plan.machine import load_machine

        chosen = name or self.machine
        if chosen is None:
            return None
        machine = load_machine(chosen)
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
            key = row["n"], row.get("order")
            if key not in made:
                schedule, shape = self._made(row)
                made[key] = schedule, shape, self._pace(schedule, shape, machine)
            schedule, shape, pace = made[key]
            per_node = row.get("ranks_per_node") or _per_node(row, machine)
            if self.weak:
                shape = grown(shape, row["nodes"] * per_node)
            (one,) = predict(
                *(schedule, shape, machine, [row["nodes"]]),
                ranks_per_node=per_node,
                threads=row.get("threads"),
                methods=row.get("methods"),
                pace=pace,
            )
            seconds = one.seconds * self.passes(row["n"])
            own = {**row, "shape": list(shape)}
            found.append({**own, "predicted": self.scale(seconds, own)})
            if on_progress is not None:
                on_progress(number)
        return found

    def _pace(self, schedule: Any, shape: tuple[int, ...], machine: Machine) -> float:
        """How many times as long sweeps take as their bytes let expect, by the published value on one device:
        1/π of the formula of Pekkilä et al. 2022, which they measure on one device too."""
        from halocline.prediction.predict import predict

        if self.on_one is None:
            return 1.0
        (one,) = predict(schedule, shape, machine, [1], ranks_per_node=1)
        return self.on_one / self.scale(one.seconds, {"shape": shape, "devices": 1})

    def _made(self, row: Row) -> Any:
        """The schedule, and the shape of the grid of one rank or of all."""
        from halocline.prediction.predict import prepared

        if self.make is not None:
            return self.make(row)
        options = {name: self.options[name] for name in ("dim", "order", "scheme") if name in self.options}
        options |= {"order": row["order"]} if row.get("order") else {}
        settings = [f"method={self.options['method']}"] if "method" in self.options else []
        return prepared(self.problem, row["n"], settings=settings, **options)

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Published and predicted, tables for each n."""
        authors = self.data.source.partition(",")[0]
        where = self.data.machine.partition(";")[0]
        write = self.published_text or self.text
        kinds = [("Published", self.value, write, f"{authors} et al., {self.data.place}. {where}.")]
        if machine is not None:
            kinds.append(("Predicted", "predicted", self.text, f"By the model, for {machine.title}."))
        made = []
        for value in dict.fromkeys(row.get(self.by) for row in rows):
            own = [row for row in rows if row.get(self.by) == value]
            tables = [
                self._pivot(own, *kind) for kind in kinds if any(row.get(kind[1]) is not None for row in own)
            ]
            heading = self.title if value is None else f"{self.by} = {value}: {self.title}"
            made += [replace(table, heading="" if number else heading) for number, table in enumerate(tables)]
        return made

    def _pivot(
        self, rows: Sequence[Row], title: str, key: str, write: Callable[[float], str], note: str
    ) -> Table:
        names = self.rows, self.columns
        downward, across = (list(dict.fromkeys(row.get(name) for row in rows)) for name in names)
        cells = {
            tuple(row.get(name) for name in names): write(row[key])
            for row in rows
            if row.get(key) is not None
        }
        down, along = (name.replace("_", " ") for name in names)
        heads = (down, *(f"{each}\n{along}" if isinstance(each, int) else f"{each}" for each in across))
        body = tuple((f"{r}", *(cells.get((r, each), "") for each in across)) for r in downward)
        return Table(title, heads, body, note=note)

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Values over the columns, published and predicted."""
        from halocline.io.style import doubling
        from halocline.study.reporting.plots import figure_of, legend, legible_log, style

        sizes = list(dict.fromkeys(row.get(self.by) for row in rows))
        if not sizes:
            return None
        figure = figure_of(-(-len(sizes) // 2), min(2, len(sizes)))
        axes = figure.subplots(-(-len(sizes) // 2), min(2, len(sizes)), squeeze=False).flatten()
        for ax in axes[len(sizes) :]:
            ax.set_visible(False)
        drawn = False
        for ax, n in zip(axes, sizes, strict=False):
            own = [row for row in rows if row.get(self.by) == n]
            for number, down in enumerate(dict.fromkeys(row.get(self.rows) for row in own)):
                for key, line in ((self.value, "-"), ("predicted", "--")):
                    points = sorted(
                        (row[self.columns], row[key])
                        for row in own
                        if row.get(self.rows) == down and row.get(key)
                    )
                    if points:
                        drawn = True
                        what = "published" if key == self.value else "predicted"
                        label = f"{down} {self.rows.replace('_', ' ')}, {what}"
                        ax.plot(*zip(*points, strict=True), line, **style(number), label=label)
            doubling(ax, sorted({row[self.columns] for row in own}))
            ax.set_title(self.title if n is None else f"{self.by} = {n}")
            ax.set_xlabel(self.columns.replace("_", " "))
            ax.set_ylabel(self.value.replace("_", " "))
            if ax.lines:
                legible_log(ax)
        legend(figure, axes[0], 2)
        return figure if drawn else None


def _per_node(row: Row, machine: Machine) -> int:
    """Ranks of a node: a rank for each device."""
    devices = row.get("devices")
    return machine.device.count if devices is None else max(1, devices // row["nodes"])


def papers() -> dict[str, Paper]:
    """All tables and figures by name, in the order of their files."""
    home = import_module("halocline.study.studies")
    found: dict[str, Paper] = {}
    for module in sorted(each.name for each in iter_modules(home.__path__)):
        for paper in getattr(import_module(f"halocline.study.studies.{module}"), "PAPERS", ()):
            found[paper.name] = paper
    return found
