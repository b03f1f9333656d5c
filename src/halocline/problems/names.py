"""Variables and functions at the top level of a problem file that commands use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import halocline
from halocline.deprecation import warn_of_rename
from halocline.errors import InputError
from halocline.lang.axes import is_sequence
from halocline.lang.callables import argument_count
from halocline.lang.values import as_name, as_number, as_texts
from halocline.ranges import AXES, ORDER, POINTS, SOME_STEPS, Range
from halocline.run.simulation.events import Event
from halocline.words import short_repr

_POWER = Range(1, ORDER.most)

_EARLIER_NAMES = {"key_diagnostics": "shown"}  # accepted with a warning
OF_EVERY_FILE = ("exact", "check")  # all other names apply only to files that declare their parameters


@dataclass(frozen=True)
class Family:
    """Group of runs whose errors a convergence study shows in one panel.

    Parameters
    ----------
    title : str
        Title of the panel. Families with the same title share a panel.
    dim : int
        Number of axes.
    sizes : tuple of int
        Default numbers of cells along the first axis, one run for each. A family without default sizes runs
        only if the user sets sizes.
    lines : tuple of mapping of str to float or str
        For each line of the panel, the parameters that differ from the defaults.
    order : int
        Expected order of convergence: the error falls with this power of the spacing.

    Raises
    ------
    InputError
        An argument has a wrong type or is out of range.
    """

    title: str
    dim: int
    sizes: tuple[int, ...]
    lines: tuple[Mapping[str, float | str], ...] = ({},)
    order: int = 2

    def __post_init__(self) -> None:
        as_name(self.title, "title of a family")
        label = f"family {self.title!r}"
        AXES.check(f"{label}: dim", self.dim)
        _POWER.check(f"{label}: order", self.order)
        if not is_sequence(self.sizes):
            raise InputError(
                f"{label}: sizes are {short_repr(self.sizes)}; expected numbers, such as (16, 32)"
            )
        sizes = tuple(POINTS.check(f"{label}: a size", size) for size in self.sizes)
        object.__setattr__(self, "sizes", sizes)
        lines = self.lines
        if not is_sequence(lines) or not all(isinstance(line, Mapping) for line in lines):
            raise InputError(
                f"{label}: lines are {short_repr(lines)}; expected mappings of parameters to values"
            )
        object.__setattr__(self, "lines", tuple(lines))


@dataclass(frozen=True)
class Extrapolated:
    """Steady-state results that a convergence study extrapolates to a spacing of zero.

    Parameters
    ----------
    names : tuple of str
        Diagnostics to extrapolate.
    published : callable
        ``published(shape, values)`` returns published values by name, for a grid of `shape` cells and
        the parameters `values`. The mapping is empty if no value is known.
    source : str
        Source of the published values.
    noise : callable
        ``noise(values)`` returns the relative difference between a diagnostic at the end of a run and its
        value in steady state. Smaller differences between grids are not significant.

    Raises
    ------
    InputError
        An argument has a wrong type.
    """

    names: tuple[str, ...]
    published: Callable[[tuple[int, ...], Mapping[str, Any]], Mapping[str, float]] = lambda shape, values: {}
    source: str = ""
    noise: Callable[[Mapping[str, Any]], float] = lambda values: 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", as_texts(self.names, "names of extrapolated numbers"))
        as_name(self.source, "source of published values")
        argument_count(self.published, "published", (2,), "a shape and the values of parameters")
        argument_count(self.noise, "noise", (1,), "the values of parameters")


@dataclass(frozen=True)
class Names:
    """Variables and functions at the top level of a problem file that commands use; all are optional.

    Attributes
    ----------
    until, steps : float, int, optional
        End time and number of steps, which the list of cases shows. `steps` is also the default number of
        steps of measurements.
    exact : callable, optional
        ``exact(time)`` returns the exact solution: expressions, functions of the coordinates or arrays by
        field.
    error : callable, optional
        ``error(sim)`` returns a number, the error at the end of the run. All ranks call it. By
        default, the error is the maximum difference from `exact`.
    error_name : str
        Description of the error.
    check : callable, optional
        ``check(sim)`` or ``check(sim, record)`` asserts properties of a finished run, or returns a list of
        `halocline.Check`. All ranks call it, but only the list of the first rank is used. The record contains
        the series of diagnostics and the events; see `halocline.problems.record.Record`.
    start : callable, optional
        ``start(sim)`` sets the initial fields. If a run with ``terms=`` fails, it is repeated after a call of
        this function, so that no copy of the initial fields is necessary.
    diagnostics : callable, optional
        ``diagnostics()`` returns reductions by name.
    key_diagnostics : tuple of str
        Most important diagnostics, for a table on a terminal.
    pictures : callable, optional
        ``pictures()`` returns quantities by name. They replace the fields in the pictures of a run.
    figures : mapping of str to callable
        ``figure(sim)`` returns a `halocline.io.figure.Figure` on the first rank. All ranks call it.
    findings : callable, optional
        ``findings(diagnostics, steps)`` returns further numbers for the JSON of a run.
    limit, advice, progress : callable, optional
        Functions of the scalars of a run that return a text: the limit of the time step, the advice for a
        failed run, and the progress line.
    ends : tuple of str, optional
        Reasons of ``hc.stop`` that end a run successfully; any other reason is an error. If the file
        does not define `ends`, every reason ends a run successfully.
    events : tuple of Event
        Events that the program counts.
    scheme_name : str, optional
        Name of the time integration of a program.
    automatic : mapping of str to float
        Values of parameters that the file has chosen according to the grid. A study uses the same values for
        all runs.
    families : tuple of Family
        Default runs of a convergence study.
    extrapolated : Extrapolated, optional
        Steady-state results, for the convergence study of a problem without exact solution.
    """

    until: float | None = None
    steps: int | None = None
    exact: Callable[[float], Mapping[Any, Any]] | None = None
    error: Callable[[Any], float] | None = None
    error_name: str = "maximum difference from the exact solution"
    check: Callable[..., Any] | None = None
    start: Callable[[Any], None] | None = None
    diagnostics: Callable[[], Mapping[str, Any]] | None = None
    key_diagnostics: tuple[str, ...] = ()
    pictures: Callable[[], Mapping[str, Any]] | None = None
    figures: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    findings: Callable[[Mapping[str, float | None], int], Mapping[str, Any]] | None = None
    limit: Callable[[Mapping[str, float]], str] | None = None
    advice: Callable[[Mapping[str, float]], str] | None = None
    progress: Callable[[Mapping[str, float]], str] | None = None
    ends: tuple[str, ...] | None = None
    events: Sequence[Event] = ()
    scheme_name: str | None = None
    automatic: Mapping[str, float] = field(default_factory=dict)
    families: tuple[Family, ...] = ()
    extrapolated: Extrapolated | None = None

    @property
    def is_extrapolated(self) -> bool:
        """True if a convergence study extrapolates results, because there is no exact solution."""
        return self.extrapolated is not None and self.error is None and self.exact is None


def names_in(top: Mapping[str, Any], requested: Sequence[str], file: str) -> tuple[Names, dict[str, str]]:
    """Return the names of a file that commands use, and complaints about names with a value of a wrong type.

    Names that the file imports from Halocline, such as ``hc.steps``, are ignored.

    Parameters
    ----------
    top : mapping
        Variables and functions at the top level of the file, by name.
    requested : sequence of str
        Names that the caller needs.
    file : str
        Name of the file, for messages.
    """
    values, complaints = {}, {}
    for name in requested:
        value = top.get(name)
        old = _EARLIER_NAMES.get(name)
        if value is None and old is not None and top.get(old) is not None:
            warn_of_rename(file, old, name, file=file)
            value = top[old]
        if value is None or (name in halocline.__all__ and value is getattr(halocline, name)):
            continue
        try:
            values[name] = _FORMS[name](value, f"{file}: {name}")
        except InputError as error:
            complaints[name] = (
                f"{error}. Commands use the name {name}: rename it if the file needs it for something else"
            )
    return Names(**values), complaints


def checked_mapping(value: Any, label: str, example: str) -> dict[str, Any]:
    """Return as a dict the mapping that a function of a file returned.

    Raises
    ------
    InputError
        The value is not a mapping with names as keys. The message contains the call `label` and the mapping
        `example`.
    """
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InputError(
            f"{label} returns {short_repr(value)}; expected a mapping of names to values, such as {example}"
        )
    return dict(value)


def _function(counts: Sequence[int], expected: str) -> Callable[[Any, str], Any]:
    """Return a converter that accepts functions with one of the given numbers of arguments."""

    def convert(value: Any, label: str) -> Any:
        argument_count(value, label, counts, expected)
        return value

    return convert


def _text(value: Any, label: str) -> Callable[[Mapping[str, float]], str]:
    """Return a function of the scalars of a run, with a check that its result is a text."""
    argument_count(value, label, (1,), "the scalars of the run")
    return lambda scalars: as_name(value(scalars), f"{label}(scalars)")


def _end_time(value: Any, label: str) -> float:
    time = as_number(value, label)
    if not 0 <= time < inf:
        raise InputError(f"{label} is {time:g}; expected a finite time of at least 0")
    return time


def _figures(value: Any, label: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{label} is {short_repr(value)}; expected a mapping of names to functions")
    for name, function in value.items():
        argument_count(function, f"{label}[{as_name(name, 'name of a figure')!r}]", (1,), "the simulation")
    return dict(value)


def _numbers(value: Any, label: str) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InputError(f"{label} is {short_repr(value)}; expected a mapping of names to numbers")
    return {as_name(name, label): as_number(number, f"{label}[{name!r}]") for name, number in value.items()}


def _sequence_of(kind: type) -> Callable[[Any, str], Any]:
    """Return a converter for sequences of objects of a class."""

    def convert(value: Any, label: str) -> Any:
        if not is_sequence(value) or not all(isinstance(item, kind) for item in value):
            raise InputError(f"{label} is {short_repr(value)}; expected a sequence of hc.{kind.__name__}")
        return tuple(value)

    return convert


def _extrapolated(value: Any, label: str) -> Extrapolated:
    if not isinstance(value, Extrapolated):
        raise InputError(f"{label} is {short_repr(value)}; expected hc.Extrapolated")
    return value


_FORMS: dict[str, Callable[[Any, str], Any]] = {  # converters, which raise InputError
    "until": _end_time,
    "steps": lambda value, label: SOME_STEPS.check(label, value),
    "exact": _function((1,), "the time"),
    "error": _function((1,), "the simulation"),
    "error_name": as_name,
    "check": _function((1, 2), "the problem, and perhaps the record"),
    "start": _function((1,), "the simulation"),
    "diagnostics": _function((0,), "none"),
    "key_diagnostics": as_texts,
    "pictures": _function((0,), "none"),
    "figures": _figures,
    "findings": _function((2,), "diagnostics and steps"),
    "limit": _text,
    "advice": _text,
    "progress": _text,
    "ends": as_texts,
    "events": _sequence_of(Event),
    "scheme_name": as_name,
    "automatic": _numbers,
    "families": _sequence_of(Family),
    "extrapolated": _extrapolated,
}
