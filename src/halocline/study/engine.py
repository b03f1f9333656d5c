"""What carries a study out: which runs it takes, their measurements, and the report."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.physics.cases import case_named
from halocline.study.growth import grown, grown_as_cut
from halocline.study.measurement import Measurement, is_file
from halocline.study.measuring.command import Command, measure
from halocline.study.problems.named import problem_of
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Group, Report, report
from halocline.study.reporting.table import counted, duration, joined, method
from halocline.study.reporting.theory import Theory, Travels, travels
from halocline.study.study import Study

if TYPE_CHECKING:
    from halocline.study.problems.case import CaseRun
    from halocline.study.problems.file import FileProblem

N = 64  # cells along the first axis, where none are given
WARM_UP = 2  # steps, where there are more
RESOLUTION = "n"  # the name that a file gives its cells along the first axis


@dataclass(frozen=True)
class Run:
    """A run of a study.

    Parameters
    ----------
    command : Command
    n : int
        Points or cells along the first axis, for the measurement.
    shape : tuple of int
        Cells along each axis.
    ranks, threads : int
    at : int, tuple of int or None
        What --n takes.
    facts : mapping
        For the measurement, beside what the command reports.
    extra : mapping of str to str
        Options for its first run alone, such as pictures.
    """

    command: Command
    n: int
    shape: tuple[int, ...]
    ranks: int
    threads: int
    at: int | tuple[int, ...] | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """What it is, for a line."""
        own = self.command
        device = own.words().get("--device")
        where = joined(f"ranks {self.ranks}", f"threads {self.threads}", device and f"device {device}")
        if own.verb == "solve":
            return joined(f"N = {self.n}", where)
        cells = f"{'x'.join(map(str, self.shape))} cells"
        part = "" if own.only is None else f", {own.only} alone"
        part += "" if own.halo == "read" else ", with corners"
        return joined(cells, *own.settings, method(own.order, None), where) + part


@dataclass(frozen=True)
class Asked:
    """What a study is asked for.

    Parameters
    ----------
    study : Study
    command : Command
        What is measured.
    sizes : tuple of int, optional
    ranks, threads : tuple of int
    given : mapping
        Options of this study alone.
    """

    study: Study
    command: Command
    sizes: tuple[int, ...] | None
    ranks: tuple[int, ...]
    threads: tuple[int, ...]
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether it is a user's file."""
        return is_file(self.command.name)

    def ready(self, n: int | None, **options: Any) -> CaseRun | FileProblem:
        """The problem on its grid: what cannot be is found before anything runs."""
        own = self.command.but(**options) if options else self.command
        cells = None if n is None else [n]
        if own.verb == "solve":
            settings = [f"method={own.method}", f"rtol={own.rtol}"]
            return problem_of(own.name, cells, settings, dim=own.dim)
        return problem_of(own.name, cells, own.settings, dim=own.dim, order=own.order, scheme=own.scheme)

    @cached_property
    def problems(self) -> list[tuple[int | None, CaseRun | FileProblem]]:
        """The problem of each size, with what --n takes for it."""
        default = None if self.is_file else N
        return [(n, self.ready(n)) for n in (self.sizes or (default,))]

    @property
    def layouts(self) -> list[tuple[int, int]]:
        """The pairs of ranks and threads."""
        if self.study.layouts is not None:
            return self.study.layouts(self.ranks, self.threads)
        return list(itertools.product(self.ranks, self.threads))

    def chosen(self) -> Asked:
        """With steps, warm-up, order and scheme of the case where they are not given."""
        if self.command.verb == "solve" or self.is_file:
            return self
        case = case_named(self.command.name)
        steps = case.steps if self.command.steps is None else self.command.steps
        if steps is None:
            raise InputError(
                f"{self.command.name} runs to a time, but a study measures a number of steps: give --steps"
            )
        warm_up = self.given.get("warm_up")
        warm_up = min(WARM_UP, steps - 1) if warm_up is None else warm_up
        if not 0 <= warm_up < steps:
            raise InputError(
                f"--warm-up {warm_up}: expected a whole number from 0, fewer than the {steps} steps"
            )
        ready = self.problems[0][1]
        own = {} if ready.is_program else {"order": ready.order, "scheme": ready.scheme}
        return replace(self, command=self.command.but(steps=steps, warm_up=warm_up, **own))


# -- runs ----------------------------------------------------------------------------------------------------


def plan(asked: Asked) -> list[Run]:
    """The runs of a study: each size on each layout, with each set of options."""
    if asked.study.plan is not None:
        return asked.study.plan(asked)
    asked = asked.chosen()
    commands = [_varied(asked.command, options) for options in variants(asked)]
    runs = []
    for (at, ready), (ranks, threads) in itertools.product(asked.problems, asked.layouts):
        n, shape, at = larger(asked, at, ready, ranks)
        runs += [Run(command, n, shape, ranks, threads, at) for command in commands]
    if asked.study.formula and not any(run.command.only == "exchange" for run in runs):
        runs += _exchange(asked, runs)
    return runs


def _varied(command: Command, options: Mapping[str, Any]) -> Command:
    """With options of the command; "environment" and "python" are its own fields."""
    own = {name: value for name, value in options.items() if name in ("environment", "python")}
    return replace(command, **own).but(**{k: v for k, v in options.items() if k not in own})


def variants(asked: Asked) -> list[dict[str, Any]]:
    """The sets of options that are run at each place."""
    study = asked.study
    found = study.variants(asked) if callable(study.variants) else list(study.variants)
    swept = [
        [{sweep.option: value} for value in sweep.values(asked.given.get(sweep.keyword) or sweep.default)]
        for sweep in study.sweeps
    ]
    return [
        dict(base) | {k: v for each in sets for k, v in each.items()}
        for base in found
        for sets in itertools.product(*swept)
    ]


def larger(
    asked: Asked, at: int | None, ready: CaseRun | FileProblem, ranks: int
) -> tuple[int, tuple[int, ...], Any]:
    """N, the cells along each axis, and what --n takes, on so many ranks."""
    n = at if asked.is_file and at is not None else ready.shape[0]
    if not asked.study.grows:
        whole = asked.command.verb == "run" and not asked.is_file
        return n, ready.shape, ready.shape if whole else at
    if asked.command.verb == "run" and not asked.is_file:
        as_cut = asked.given.get("growth") == 2
        cut = asked.command.decomposition
        shape = grown_as_cut(ready.shape, ranks, cut) if as_cut else grown(ready.shape, ranks)
        return n, shape, shape
    if asked.is_file:
        n = own_size(asked, ready)
    more = round(n * ranks ** (1 / len(ready.shape)))
    return n, asked.ready(more).shape, more


def own_size(asked: Asked, ready: Any) -> int:
    """The value of n in a file."""
    n = ready.values.get(RESOLUTION)
    if type(n) is not int:
        raise InputError(
            f"{asked.command.name} sets no whole number {RESOLUTION} at its top, from which a larger grid "
            f"could be made for more ranks: write {RESOLUTION} = 128 there, and make the grid of it"
        )
    return n


def _exchange(asked: Asked, runs: Sequence[Run]) -> list[Run]:
    """What 1/β is taken from: the exchange alone of the largest grid on the fewest ranks; none on one, nor of
    what whole runs alone are timed."""
    between = [run for run in runs if run.ranks > 1]
    if not between or asked.is_file or asked.command.verb == "solve":
        return []
    one = min(between, key=lambda run: (run.ranks, -run.n, run.threads))
    return [replace(one, command=one.command.but(only="exchange"))]


# -- measurements --------------------------------------------------------------------------------------------


def formula_of(asked: Asked, runs: Sequence[Run]) -> dict[int | None, Travels]:
    """What travels in each kind of run; grids that cannot be cut as asked for are found here."""
    from halocline.run.domain.execution import chosen_devices

    found: dict[Any, Travels] = {}
    on_cpu = chosen_devices(asked.command.device).interface == "cpu"
    for run in runs:
        key = (run.command.order, run.command.dim, run.command.settings)
        if key not in found:
            own = replace(asked, command=run.command)
            found[key] = travels(own.ready(run.at if isinstance(run.at, int) else run.n))
        if on_cpu:
            found[key].check(run.shape, run.ranks, run.command.decomposition)
    made: dict[int | None, Travels] = {}
    for (order, *_), each in found.items():
        made.setdefault(order, each)
    if asked.is_file and runs:
        made[asked.problems[0][1].order] = made[None]  # its record says which order it has
    return made


def outcome(measurement: Measurement) -> str:
    """The result of a run in a few words."""
    if q.is_solve(measurement):
        return f"{measurement['iterations']:,} iterations, {duration(measurement['seconds'])}"
    if measurement["ns_per_cell_step"] is None:
        return duration(measurement["seconds"])
    return f"{q.nanoseconds(q.ns(measurement))} ns a cell and step"


def carry_out(
    runs: Sequence[Run],
    repeat: int,
    note: Callable[[str], None],
    *,
    study: str,
    says: Callable[[Measurement], str] = outcome,
) -> list[Measurement]:
    """All measurements; `note` takes lines of text before and after each."""
    found = []
    for number, run in enumerate(runs, 1):
        note(f"[{number}/{len(runs)}] {run.words}")
        made = measure(
            run.command, run.at, ranks=run.ranks, threads=run.threads, repeat=repeat, extra=run.extra
        )
        found.append({"study": study, "n": run.n, **made, **run.facts})
        note(f"      {says(found[-1])}")
    return found


# -- the report ----------------------------------------------------------------------------------------------


def theory_of(travelling: Mapping[int | None, Travels], found: Sequence[Measurement]) -> Theory:
    """The closed formula with the constants that were measured."""
    return Theory.of(travelling, [m for m in found if m["only"] == "exchange"])


def reported(study: Study, found: Sequence[Measurement], theory: Theory | None) -> Report:
    """What a study shows of its measurements."""
    group = Group(found, theory)
    made = report(study.contents, group) if study.report is None else study.report(group)
    facts = dict(made.facts)
    if theory is not None and study.formula:
        facts["theory"] = {"per_byte": theory.per_byte, "measured_on": theory.measured_on}
        facts["theory"]["travels"] = [[order, asdict(each)] for order, each in theory.travels.items()]
    one = found[0]
    what = made.what or joined(one["scheme"] or one.get("method"), counted(one["steps"], "step"))
    return replace(made, facts=facts, what=what, footer=made.footer or study.footer)
