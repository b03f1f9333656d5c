"""What a study is: what it varies, what it holds, and what its report shows.

A study is a declaration in a file of its own in `halocline.study.studies`, named STUDY or listed in STUDIES:
the command line, the engine, tables, plots and pages follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from halocline.study.measurement import Measurement
from halocline.study.reporting.report import Contents, Group

if TYPE_CHECKING:
    from halocline.study.engine import Asked, Run
    from halocline.study.reporting.report import Report

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
    """

    option: str
    form: str
    help: str
    default: str

    @property
    def keyword(self) -> str:
        """The name of the study's option, as Python has it."""
        return self.form.partition(" ")[0].lstrip("-").replace("-", "_")

    def values(self, text: str) -> list[str]:
        """The single values; where one has commas, semicolons stand between them."""
        return [each.strip() for each in text.split(";" if ";" in text else ",")]


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
    report : callable, optional
        Makes the report of measurements, in the place of `contents`.
    plan : callable, optional
        ``plan(asked)`` gives the runs, where they are no product of lists.
    finish : callable, optional
        ``finish(runs, measurements)`` gives the measurements with what only all of them tell.
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
