"""Declaration of a study with its runs and its report, and the request of a user for a study.

A study is the value STUDY of a module in a package that `halocline.applications` lists. Halocline derives the
command, the runs, the tables, the plots and the HTML page from this declaration.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from halocline.errors import InputError
from halocline.lang.grid import suggestion
from halocline.problems.files import RESOLUTION, is_file
from halocline.ranges import Range, whole_numbers
from halocline.study.layout import Layout
from halocline.study.measurement import (
    SOLVE_CONDITIONS,
    SOLVE_RESULTS,
    TABLE_CONDITIONS,
    Measurement,
    is_solve,
)
from halocline.study.registry import declared
from halocline.study.reporting.quantities import nanoseconds, ns
from halocline.study.reporting.report import Contents, Group, Report, report
from halocline.words import duration, joined, method

if TYPE_CHECKING:
    from halocline.problems.problem import Problem
    from halocline.study.measuring.command import Command

N = 64  # default number of cells along the first axis
WARM_UP = 2  # default number of warm-up steps, for runs with more than two steps
# options that have no effect on a single subdomain
SUBDOMAIN_OPTIONS = ("communication", "gpudirect", "decomposition")
ITERATIONS = 100  # default number of iterations, if only a part of a solve is timed


def keyword(form: str) -> str:
    """Return the parameter name of an option, such as "orders" for the form "--orders O,O,..."."""
    return form.partition(" ")[0].lstrip("-").replace("-", "_")


@dataclass(frozen=True)
class VariedOption:
    """Option of the command that a study varies.

    Parameters
    ----------
    name : str
        Name of the option of a run with underscores, such as "patch". Several varied options may set
        variables of the option "environment".
    form : str
        Form of the option of the study, such as "--patches B,B,...".
    help : str
        Help text of the option.
    default : str, optional
        Default values, separated by commas; None to leave the option constant by default.
    numbers : Range, optional
        Range of the values, which are whole numbers; by default the values are texts.
    words : tuple of str
        Accepted texts; any text by default.
    convert : callable
        Function that converts an element of the list to the value of the option.
    determined_conditions : tuple of str
        Names of other conditions of a measurement that the option determines.
    """

    name: str
    form: str
    help: str
    default: str | None = None
    numbers: Range | None = None
    words: tuple[str, ...] = ()
    convert: Callable[[str], Any] = lambda value: value
    determined_conditions: tuple[str, ...] = ()

    def values(self, text: str) -> list[Any]:
        """Return the values in a text. Commas separate the values, or semicolons if values contain commas.

        Raises
        ------
        InputError
            A value is not a whole number in the range `numbers`, is not in `words`, or occurs twice.
        """
        flag = self.form.partition(" ")[0]
        if self.numbers is not None:
            return whole_numbers(text, flag, self.numbers)
        values = [value.strip() for value in text.split(";" if ";" in text else ",")]
        if len({*values}) < len(values):
            raise InputError(f"{flag} {text}: a value is given twice. Leave one out.")
        for value in values:
            if self.words and value not in self.words:
                raise InputError(
                    f"{flag} {text}: {value!r} is unknown{suggestion(value, self.words)}; expected a list of "
                    f"{', '.join(self.words)}"
                )
        return [self.convert(value) for value in values]


@dataclass(frozen=True)
class Run:
    """Run of a study.

    Parameters
    ----------
    command : Command
    n : int
        Number of points or cells along the first axis, as recorded in the measurement.
    shape : tuple of int
        Number of cells along each axis.
    layout : Layout
    size_option : int, tuple of int or None
        Value of the option --n.
    facts : mapping
        Entries of the measurement, in addition to those that the command reports.
    extra : mapping of str to str
        Options for the first repetition only, such as --pictures.
    on_devices : callable, optional
        Function that adapts the run to the devices of this machine. Job scripts are written without this
        step, because the machine that writes them may have no devices.
    """

    command: Command
    n: int
    shape: tuple[int, ...]
    layout: Layout
    size_option: int | tuple[int, ...] | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    on_devices: Callable[[Run], Run] | None = None

    @property
    def on_this_machine(self) -> Run:
        """Run, adapted to the devices of this machine. InputError is raised if the devices are unsuitable."""
        return self if self.on_devices is None else self.on_devices(self)

    @property
    def description(self) -> str:
        """One-line description of the run."""
        command = self.command
        device = command.arguments().get("--device")
        layout_text = joined(self.layout.description, device and f"device {device}")
        cells = f"{'x'.join(map(str, self.shape))} cells"
        part = "" if command.only is None else f", {command.only} alone"
        part += {"faces": ", all faces", "edges": ", with all edges", "uniform": ", with corners"}.get(
            command.halo, ""
        )
        options = [f"{name} {value}" for name in SUBDOMAIN_OPTIONS if (value := command.options.get(name))]
        environment = " ".join(f"{name}={value}" for name, value in command.environment.items() if value)
        method_text = method(command.order, None, command.dtype)
        return joined(cells, *command.settings, method_text, layout_text, *options, environment) + part


@dataclass(frozen=True)
class StudyRequest:
    """Request for a study.

    Parameters
    ----------
    study : Study
    command : Command
        Problem, and options of all runs.
    sizes : tuple of int, optional
        Values of the option --n.
    ranks, threads : tuple of int
        Numbers of ranks, and numbers of threads per rank. With `nodes`, the numbers of ranks are per node.
    study_options : mapping
        Options of the study that are not options of its runs.
    scratch : Path
        Folder for files that runs write during the study.
    picture_folder : Path, optional
        Folder for pictures of runs; None for no pictures.
    problem_cache : dict
        Cache of the problems by their options.
    nodes : tuple of int
        Numbers of nodes; empty if the launcher distributes the ranks.
    cores : int, optional
        Maximum total number of threads for layouts on `nodes`; by default there is no limit.
    """

    study: Study
    command: Command
    sizes: tuple[int, ...] | None
    ranks: tuple[int, ...]
    threads: tuple[int, ...]
    study_options: Mapping[str, Any] = field(default_factory=dict)
    scratch: Path = Path()
    picture_folder: Path | None = None
    problem_cache: dict[Any, Problem] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()
    cores: int | None = None

    @property
    def layouts(self) -> list[Layout]:
        """Requested layouts of ranks, threads and nodes."""
        if not self.nodes:
            return list(itertools.starmap(Layout, itertools.product(self.ranks, self.threads)))
        combinations = itertools.product(self.nodes, self.ranks, self.threads)
        all_layouts = [
            Layout(nodes * per_node, threads, per_node) for nodes, per_node, threads in combinations
        ]
        return [
            layout
            for layout in all_layouts
            if self.cores is None or layout.ranks * layout.threads <= self.cores
        ]

    @cached_property
    def has_settings(self) -> bool:
        """True for a case, and for a file that declares settings."""
        return not is_file(self.command.name) or self.build_problem().has_settings

    @cached_property
    def is_linear(self) -> bool:
        """True for a linear problem. Each run solves it completely, and its iterations count as steps."""
        from halocline.problems.files import case_names

        name = self.command.name
        is_problem = is_file(name) or name in case_names()  # not a benchmark
        return is_problem and self.has_settings and self.build_problem().is_linear

    def number(self, name: str, numbers: Range) -> int | None:
        """Return the whole number of an option of this study; None if the option is not given."""
        text = self.study_options.get(name)
        if text is None:
            return None
        option = f"--{name.replace('_', '-')}"
        number, *more_numbers = whole_numbers(text, option, numbers)
        if more_numbers:
            raise InputError(f"{option} {text}: expected one whole number")
        return number

    def build_problem(self, *n: int) -> Problem:
        """Return the problem on its grid.

        Raises
        ------
        InputError
            The problem or the grid is invalid.
        """
        from halocline.problems.problem import problem_of

        command = self.command
        options = {name: getattr(command, name) for name in ("dim", "order", "scheme", "dtype")}
        key = (command.name, n, command.settings, *options.values())
        if key not in self.problem_cache:
            self.problem_cache[key] = problem_of(command.name, n or None, command.settings, **options)
        return self.problem_cache[key]

    @cached_property
    def problems(self) -> list[tuple[int | None, Problem]]:
        """Value of the option --n and the problem, for each size."""
        default = None if is_file(self.command.name) or self.is_linear else N
        return [
            (n, self.build_problem() if n is None else self.build_problem(n))
            for n in (self.sizes or (default,))
        ]

    def size_of_file(self, problem: Any) -> int:
        """Return the number of cells along the first axis, which a file sets by its variable n or hc.cells.

        Raises
        ------
        InputError
            The file sets no whole number n.
        """
        n = problem.shape[0] if problem.has_settings else problem.values.get(RESOLUTION)
        if type(n) is not int:
            raise InputError(
                f"{self.command.name} sets no whole number {RESOLUTION} at its top, so Halocline cannot "
                f"derive larger grids for more ranks. Write {RESOLUTION} = 128 there, and create the grid "
                f"from {RESOLUTION}."
            )
        return n

    def with_defaults(self) -> StudyRequest:
        """Return the request, with the steps, warm-up, order and scheme of the problem as defaults.

        For a file without `steps`, the result is the unchanged request.
        """
        if not self.has_settings or self.is_linear:
            return self
        problem = self.problems[0][1]
        steps = problem.known.steps if self.command.steps is None else self.command.steps
        if steps is None and problem.is_file:
            return self
        if steps is None:
            raise InputError(
                f"{self.command.name} runs until a given time, but a study measures a given number of steps. "
                "Set --steps."
            )
        warm_up = self.study_options.get("warm_up")
        warm_up = min(WARM_UP, steps - 1) if warm_up is None else warm_up
        if not 0 <= warm_up < steps:
            raise InputError(
                f"--warm-up {warm_up}: expected a whole number from 0, fewer than the {steps} steps"
            )
        differences = {} if problem.is_program else {"order": problem.order, "scheme": problem.scheme}
        return replace(self, command=self.command.with_options(steps=steps, warm_up=warm_up, **differences))


@dataclass(frozen=True)
class Study:
    """Study of any problem; a study with special runs or a special report derives from this class.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Title of the page of results.
    about : str
        One-line description for the list of studies.
    help : str
        Further help text.
    examples : tuple of str
    contents : tuple of Contents
    varied_options : tuple of VariedOption
        Options that are varied, in addition to sizes, ranks and threads.
    variants : tuple of mapping, or function of the request
        Sets of options. The study runs each set for each size and layout.
    options : tuple of (form, help, default)
        Further options of the command, which `variants` and `runs` use.
    subcommand : {"run", "bench"}
        Command of the runs.
    runs_to_end : bool
        True if each run continues to the end of the problem, on one number of ranks and threads.
    ranks, threads : str
        Default lists of ranks and threads.
    has_formula : bool
        True if the report includes the closed formula. One constant of the formula requires an additional
        run of the exchange alone.
    repeat : int
        Default number of repetitions of each run.
    compared_conditions : tuple of str
        Conditions of a measurement that `runs` varies, in addition to sizes, ranks and threads.
    """

    name: str
    title: str
    about: str
    help: str
    examples: tuple[str, ...]
    contents: tuple[Contents, ...] = ()
    varied_options: tuple[VariedOption, ...] = ()
    variants: tuple[Mapping[str, Any], ...] | Callable[[StudyRequest], list[dict[str, Any]]] = ({},)
    options: tuple[tuple[str, str, Any], ...] = ()
    subcommand: str = "run"
    runs_to_end: bool = False
    ranks: str = "1,2"
    threads: str = "1"
    has_formula: bool = False
    repeat: int = 1
    compared_conditions: tuple[str, ...] = ()

    footer: ClassVar[str] = (
        "Times are those of the loop over steps between two barriers, without the warm-up steps. Each time "
        "is the median of the runs."
    )

    @property
    def axes(self) -> frozenset[str]:
        """Conditions that may differ within one table, in addition to those of `variants`."""
        names = (*self.compared_conditions, *(option.name for option in self.varied_options))
        return frozenset((*names, *(("n", "shape") if self.runs_to_end else TABLE_CONDITIONS)))

    def determined_conditions(self, measurement: Measurement) -> frozenset[str]:
        """Return the names of the conditions that the options in `varied_options` determine."""
        present_options = (
            option for option in self.varied_options if measurement.get(option.name) is not None
        )
        return frozenset(name for option in present_options for name in option.determined_conditions)

    @property
    def pictures(self) -> tuple[str, ...]:
        """File names of all figures."""
        return tuple(dict.fromkeys(file for part in self.contents for file in part.figures))

    # -- runs ------------------------------------------------------------------------------------------------

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return the runs for each size, layout and set of options."""
        request = request.with_defaults()
        option_sets = self.option_sets(request)
        commands = [request.command.with_options(**options) for options in option_sets]
        if request.is_linear and any(command.only for command in commands):
            # a solve of which only a part is timed does not converge
            commands = [command.with_options(steps=command.steps or ITERATIONS) for command in commands]
        runs = []
        for (size_option, problem), layout in itertools.product(request.problems, self.layouts(request)):
            for command, options in _distinct_commands(commands, option_sets, layout):
                run = self.run_on_layout(replace(request, command=command), size_option, problem, layout)
                runs.append(replace(run, facts={**run.facts, **_varied_facts(request, options)}))
        if (
            self.has_formula
            and len(self.option_combinations(request)) == 1
            and not any(run.command.only == "exchange" for run in runs)
        ):
            runs += _exchange_runs(request, runs)
        return runs

    def layouts(self, request: StudyRequest) -> list[Layout]:
        """Return the layouts of the runs."""
        return request.layouts

    def run_on_layout(
        self, request: StudyRequest, size_option: int | None, problem: Problem, layout: Layout
    ) -> Run:
        """Return the run of a problem on a layout, with the options of the command of the request."""
        n = size_option if size_option is not None and not request.has_settings else problem.shape[0]
        return Run(
            request.command, n, problem.shape, layout, problem.shape if request.has_settings else size_option
        )

    def option_sets(self, request: StudyRequest) -> list[dict[str, Any]]:
        """Return the sets of options that the study runs for each size and layout."""
        bases = self.variants(request) if callable(self.variants) else self.variants
        return [dict(base) | options for base in bases for options in self.option_combinations(request)]

    def option_combinations(self, request: StudyRequest) -> list[dict[str, Any]]:
        """Return all combinations of the values of `varied_options`, as sets of options."""
        texts = [
            request.study_options.get(keyword(option.form)) or option.default
            for option in self.varied_options
        ]
        values: list[list[dict[str, Any]]] = [
            [{option.name: value} for value in option.values(text)] if text else [{}]
            for option, text in zip(self.varied_options, texts, strict=True)
        ]
        return [_merge_options(sets) for sets in itertools.product(*values)]

    # -- measurements ----------------------------------------------------------------------------------------

    def result_text(self, measurement: Measurement) -> str:
        """Return the result of a run in a few words."""
        if is_solve(measurement):
            return f"{measurement['iterations']:,} iterations, {duration(measurement['seconds'])}"
        if measurement["ns_per_cell_step"] is None:
            return duration(measurement["seconds"])
        return f"{nanoseconds(ns(measurement))} ns per cell and step"

    def add_derived_results(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        """Return the measurements, extended by results that depend on several measurements."""
        return measurements

    def report(self, group: Group) -> Report:
        """Return the report of a group of measurements."""
        return report(self.contents, group)


def _merge_options(sets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the union of several sets of options. Mappings of the same option are merged."""
    options: dict[str, Any] = {}
    for name, value in itertools.chain.from_iterable(options_of_set.items() for options_of_set in sets):
        options[name] = {**options[name], **value} if name in options else value
    return options


def _distinct_commands(
    commands: Sequence[Command], option_sets: Sequence[Mapping[str, Any]], layout: Layout
) -> list[tuple[Command, Mapping[str, Any]]]:
    """Return the distinct commands on a layout, with their sets of options.

    On one subdomain, options that act between subdomains have no effect. Commands that differ only in such
    options count as equal.
    """
    from halocline.run.domain.execution import chosen_devices

    pairs = list(zip(commands, option_sets, strict=True))
    first = commands[0]
    if layout.ranks * first.subdomains_per_rank > 1 or str(chosen_devices(first.device)) != "cpu":
        return pairs
    distinct: dict[str, Any] = {}
    for command, options in pairs:
        distinct.setdefault(
            repr({k: v for k, v in options.items() if k not in SUBDOMAIN_OPTIONS}), (command, options)
        )
    return list(distinct.values())


def _varied_facts(request: StudyRequest, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the study varies in a run, and the requested values of these options.

    A run that times only a part of a solve has a fixed number of iterations. Its base values are nevertheless
    those of the whole solve.
    """
    command = request.command
    base = {name: getattr(command, name) for name in options}
    if request.is_linear:
        base |= {name: command.options.get(name) for name in (*SOLVE_RESULTS, *SOLVE_CONDITIONS)}
    return {"varied": options, "base": base}


def _exchange_runs(request: StudyRequest, runs: Sequence[Run]) -> list[Run]:
    """Return the run that measures 1/β: an exchange alone, with the largest grid on the fewest ranks.

    The list is empty if all runs have one rank. It is also empty for a linear problem, which is timed only as
    a whole.
    """
    parallel_runs = [run for run in runs if run.layout.ranks > 1]
    if not parallel_runs or request.is_linear:
        return []
    smallest = min(
        parallel_runs, key=lambda run: (run.layout.nodes, run.layout.ranks, -run.n, run.layout.threads)
    )
    return [replace(smallest, command=smallest.command.with_options(only="exchange"))]


def studies() -> dict[str, Study]:
    """Return all studies by name, in the order of their files."""
    return {study.name: study for study in declared("STUDY")}
