"""What a study is: what it varies, what it holds, what its report shows; and what it is asked for.

A study is a declaration in a file of its own in `halocline.study.studies`, named STUDY or listed in STUDIES:
the command line, the engine, tables, plots and pages follow from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.grid import near
from halocline.problems.files import is_file
from halocline.ranges import Range, whole_numbers
from halocline.study.measurement import PLACE, Measurement
from halocline.study.reporting.report import Contents, Group
from halocline.words import joined, method

if TYPE_CHECKING:
    from halocline.problems.problem import Problem
    from halocline.study.measuring.command import Command
    from halocline.study.reporting.report import Report

N = 64  # cells along the first axis, where none are given
WARM_UP = 2  # steps, where there are more
CLOCK = (
    "Time is that of the loop over steps, from a barrier before to one after, without those at the start "
    "that warm up; the median of the runs."
)


@dataclass(frozen=True)
class Sweep:
    """An option of the command that a study varies.

    Parameters
    ----------
    option : str
        By its name with underscores: "patch".
    form : str
        What the study's own option looks like: "--patches B,B,...".
    help : str
    default : str
        The values, with commas between them.
    numbers : Range, optional
        The values are whole numbers of this range; texts by default.
    words : tuple of str
        The values that a text can have; any by default.
    """

    option: str
    form: str
    help: str
    default: str
    numbers: Range | None = None
    words: tuple[str, ...] = ()

    @property
    def keyword(self) -> str:
        """The name of the study's option, as Python has it."""
        return self.form.partition(" ")[0].lstrip("-").replace("-", "_")

    def values(self, text: str) -> list[Any]:
        """Return the single values of a list. Semicolons separate values that contain commas.

        Raises
        ------
        InputError
            A value is no number of the range, or none of the words.
        """
        flag = self.form.partition(" ")[0]
        if self.numbers is not None:
            return whole_numbers(text, flag, self.numbers)
        found = [each.strip() for each in text.split(";" if ";" in text else ",")]
        for value in found:
            if self.words and value not in self.words:
                raise InputError(
                    f"{flag} {text}: {value!r} is unknown{near(value, self.words)}; expected a list of "
                    f"{', '.join(self.words)}"
                )
        return found


@dataclass(frozen=True)
class Study:
    """A study of any problem.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
        Of its page.
    about : str
        One line, for a list.
    help : str
        What it does, further.
    examples : tuple of str
    contents : tuple of Contents
    sweeps : tuple of Sweep
        Options that are varied beside sizes, ranks and threads.
    variants : tuple of mapping, or function of what was asked
        Sets of options, each of which is run at each place.
    layouts : callable, optional
        ``layouts(ranks, threads)`` gives the pairs that are run, of lists; all pairs by default.
    grows : bool
        Whether the grid grows with the ranks.
    beside : mapping of str to str
        What it takes for a problem beside cases and files, and the command that runs it.
    files : tuple of str
        Pictures that `report` draws.
    report : callable, optional
        Makes the report of measurements, in the place of `contents`.
    plan : callable, optional
        ``plan(asked)`` gives the runs, where they are no product of lists.
    finish : callable, optional
        ``finish(runs, measurements)`` gives the measurements with what follows from all of them.
    options : tuple of (form, help, default)
        Further options of the command line, for `variants` and `plan`.
    to_the_end : bool
        Whether each run goes to the end of the problem, on one number of ranks and threads.
    ranks, threads : str
        The lists by default.
    formula : bool
        Whether the closed formula stands beside, whose constants take a run of the exchange alone.
    repeat : int
        How often each run is done by default.
    footer : str
    says : callable, optional
        What to say of a measurement when it is done.
    compares : tuple of str
        Conditions of a measurement that `plan` varies, beside sizes, ranks and threads.
    """

    name: str
    title: str
    about: str
    help: str
    examples: tuple[str, ...]
    contents: tuple[Contents, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    variants: tuple[Mapping[str, Any], ...] | Callable[[Asked], list[dict[str, Any]]] = ({},)
    layouts: Callable[[Sequence[int], Sequence[int]], list[tuple[int, int]]] | None = None
    grows: bool = False
    beside: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    report: Callable[[Group], Report] | None = None
    plan: Callable[[Asked], list[Run]] | None = None
    finish: Callable[[Sequence[Run], list[Measurement]], list[Measurement]] | None = None
    options: tuple[tuple[str, str, Any], ...] = ()
    to_the_end: bool = False
    ranks: str = "1,2"
    threads: str = "1"
    formula: bool = False
    repeat: int = 1
    footer: str = CLOCK
    says: Callable[[Measurement], str] | None = None
    compares: tuple[str, ...] = ()

    @property
    def axes(self) -> frozenset[str]:
        """Conditions that may differ among the measurements of one table, beside those of `variants`."""
        own = (*self.compares, *(sweep.option for sweep in self.sweeps))
        return frozenset((*own, *(("n", "shape") if self.to_the_end else PLACE)))


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
    scratch : Path
        A folder for what runs leave while the study goes on.
    drawn : Path, optional
        A folder for pictures that runs draw, where these are wanted.
    """

    study: Study
    command: Command
    sizes: tuple[int, ...] | None
    ranks: tuple[int, ...]
    threads: tuple[int, ...]
    given: Mapping[str, Any] = field(default_factory=dict)
    scratch: Path = Path()
    drawn: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a user's file."""
        return is_file(self.command.name)

    @cached_property
    def is_linear(self) -> bool:
        """Whether it is a linear problem: solved to its end, whose iterations are its steps."""
        from halocline.problems.files import case_names
        from halocline.problems.problem import Problem

        name = self.command.name
        return not self.is_file and name in case_names() and Problem(name).is_linear

    def ready(self, n: int | None, **options: Any) -> Problem:
        """The problem on its grid: what cannot be is found before anything runs."""
        own = self.command.but(**options) if options else self.command
        from halocline.problems.problem import problem_of

        cells = None if n is None else [n]
        return problem_of(own.name, cells, own.settings, dim=own.dim, order=own.order, scheme=own.scheme)

    @cached_property
    def problems(self) -> list[tuple[int | None, Problem]]:
        """The problem of each size, with what --n takes for it."""
        default = None if self.is_file or self.is_linear else N
        return [(n, self.ready(n)) for n in (self.sizes or (default,))]

    @property
    def layouts(self) -> list[tuple[int, int]]:
        """The pairs of ranks and threads."""
        if self.study.layouts is not None:
            return self.study.layouts(self.ranks, self.threads)
        return list(itertools.product(self.ranks, self.threads))

    def chosen(self) -> Asked:
        """With steps, warm-up, order and scheme of the case where they are not given."""
        if self.is_file or self.is_linear:
            return self
        ready = self.problems[0][1]
        steps = ready.known.steps if self.command.steps is None else self.command.steps
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
        own = {} if ready.is_program else {"order": ready.order, "scheme": ready.scheme}
        return replace(self, command=self.command.but(steps=steps, warm_up=warm_up, **own))


def studies() -> dict[str, Study]:
    """All studies by name, in the order of their files."""
    home = import_module("halocline.study.studies")
    found: dict[str, Study] = {}
    for module in sorted(each.name for each in iter_modules(home.__path__)):
        declared = import_module(f"halocline.study.studies.{module}")
        one = getattr(declared, "STUDY", None)
        for study in (*(() if one is None else (one,)), *getattr(declared, "STUDIES", ())):
            found[study.name] = study
    return found
