"""Cases: equations with everything that a run of them needs, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid, near, unknown
from halocline.lang.program import ProgramFunction
from halocline.ranges import POINTS

if TYPE_CHECKING:
    from halocline.io.figure import Figure
    from halocline.run.simulation.simulation import Simulation


@dataclass(frozen=True)
class Parameter:
    """A number, or one of some words, that a case takes.

    Parameters
    ----------
    default : float or str
    unit : str
        In terms of the case's own units of length, time, mass and temperature; "1" for a pure number
        or a word.
    about : str
    least, above, most, below : float, optional
        It is at least so, or above that, and at most so, or below that.
    whole : bool
        It is a whole number.
    origin : str
        Where the default comes from: a paper, a sample of another code, or chosen here.
    words : tuple of str
        It is one of these words, and no number.
    """

    default: float | str
    unit: str
    about: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    whole: bool = False
    origin: str = "chosen here"
    words: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """What it can be, in words."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        kind = "a whole number" if self.whole else "a number"
        if self.above is not None:
            kind += f" above {self.above:g}"
        elif self.least is not None:
            kind += f" from {self.least:g}" + (" on" if self.most is None and self.below is None else "")
        if self.most is not None:
            kind += f" to {self.most:,.12g}"
        return kind if self.below is None else f"{kind}, below {self.below:g}"

    def check(self, name: str, value: float | str) -> None:
        """Raise InputError for a value that it cannot have."""
        if self.words:
            if value not in self.words:
                hint = near(value, self.words) if isinstance(value, str) else ""
                raise InputError(f"{name} is {value!r}{hint}; expected {self.range}: {self.about}")
            return
        if not isinstance(value, Real):
            raise InputError(f"{name} is {value!r}; expected {self.range}: {self.about}")
        fits = math.isfinite(value)
        fits = fits and (self.least is None or value >= self.least)
        fits = fits and (self.above is None or value > self.above)
        fits = fits and (self.most is None or value <= self.most)
        fits = fits and (self.below is None or value < self.below)
        fits = fits and (not self.whole or value == math.floor(value))
        if not fits:
            unit = "" if self.unit == "1" else f", in {self.unit}"
            raise InputError(f"{name} is {value:.12g}; expected {self.range}{unit}: {self.about}")


def complete(parameters: Mapping[str, Parameter], given: Mapping[str, float | str]) -> dict[str, Any]:
    """All parameters: those given, the others by default.

    Raises
    ------
    InputError
        A name that is not among them, or a value that the parameter cannot have.
    """
    for name, value in given.items():
        if name not in parameters:
            units = [f"{n} [{own.unit}]" for n, own in parameters.items()]
            raise unknown("parameter", name, list(parameters), units)
        parameters[name].check(name, value)
    return {name: given.get(name, own.default) for name, own in parameters.items()}


def seed(about: str) -> Parameter:
    """The seed of random numbers."""
    return Parameter(0, "1", about, least=0, most=10**9, whole=True)


def cell_at(number: float, shape: Sequence[int]) -> list[int]:
    """The index of the cell that `hc.first` gives the number of."""
    import numpy as np

    return [int(index) for index in np.unravel_index(int(number), tuple(shape))]


@dataclass(frozen=True)
class Event:
    """Something that a program of a case counts, such as cells where a floor acted.

    The program sets three scalars, which it makes with ``hc.scalar`` and may read, since they start as said:
    ``{scalar}_count``, the cells so far, at first 0; ``{scalar}_cell``, the number of the first cell in C
    order over the grid, at first inf; ``{scalar}_step``, the step in which that was, at first inf.

    Parameters
    ----------
    name : str
        In words: "pressure floor".
    scalar : str
        What the names of the scalars begin with.
    about : str
        What it means for the result.
    warn_above : float
        The share of all cell updates above which a run warns; 0 for never.
    """

    name: str
    scalar: str
    about: str
    warn_above: float = 0.0

    @property
    def scalars(self) -> dict[str, float]:
        """The scalars that the program sets, by name, as they are at the start."""
        return {
            f"{self.scalar}_count": 0.0,
            f"{self.scalar}_cell": math.inf,
            f"{self.scalar}_step": math.inf,
        }


@dataclass(frozen=True)
class Check:
    """A number that a finished run must have within bounds.

    Parameters
    ----------
    name : str
    value : float
    most, least : float, optional
    about : str
        What is compared with what.
    compared : bool
        False where nothing is known to compare with, which `about` explains; see `not_compared`.
    """

    name: str
    value: float
    most: float | None = None
    least: float | None = None
    about: str = ""
    compared: bool = True

    @classmethod
    def not_compared(cls, name: str, why: str) -> Check:
        """Of a run that has no reference: it has no value, and does not fail."""
        return cls(name, math.nan, about=f"not compared: {why}", compared=False)

    @property
    def passed(self) -> bool:
        """Whether the value is a number within the bounds, or is not compared."""
        if not self.compared:
            return True
        fits = not math.isnan(self.value)
        fits = fits and (self.most is None or self.value <= self.most)
        return bool(fits and (self.least is None or self.value >= self.least))

    @property
    def bound(self) -> str:
        """The bounds, in words."""
        if not self.compared:
            return "not compared"
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        if self.most is not None:
            return f"at most {self.most:g}"
        return "a number" if self.least is None else f"at least {self.least:g}"


@dataclass(frozen=True)
class Checked:
    """A finished run, for the check, the error and the figures of its case.

    Attributes
    ----------
    simulation : Simulation
        At the end; the field ``f`` is ``simulation.gather(f)`` on the first rank, and None on the others.
    setup : Setup
    values : mapping of str to float or str
        All parameters of the case.
    shape : tuple of int
        Cells along each axis.
    time : float
    steps : int
    series : sequence of mapping
        The diagnostics with "step" and "time", at the start, perhaps meanwhile, and at the end.
    events : mapping of str to mapping
        As in the record of the run.
    """

    simulation: Simulation
    setup: Setup
    values: Mapping[str, Any]
    shape: tuple[int, ...]
    time: float
    steps: int
    series: Sequence[Mapping[str, Any]]
    events: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Setup:
    """A case on a grid, ready for `halocline.Simulation`.

    Parameters
    ----------
    grid : Grid
    equations : callable or program
        The time derivatives; or a program (``hc.program``) that does the whole step, and then no scheme is
        needed. See `Simulation`.
    parameters : mapping of str to float
        What the equations read.
    dt : float, callable or None
        None for a program that sets ``t`` itself, or has no time.
    start : mapping of Field to expression, number or function of the coordinates
    diagnostics : callable
        Numbers over the grid by name, as expressions; called while differences have the order of the run.
    terms : callable, optional
        The terms of each time derivative by name, to find out where a value comes from that is not finite. By
        default there are none, and a run that fails is not repeated to find the step that went wrong.
    limit : callable, optional
        What limits the time step, in words, by the scalars that a run left.
    advice : callable, optional
        What to say of a run that failed, by the scalars that it left: which limit it broke, and what to do.
    progress : callable, optional
        What to show beside the steps while it runs, by the scalars as they are.
    shown : tuple of str
        The most important diagnostics, for a table that fits a terminal.
    time_step : {"exact", "delayed"}
        See `Simulation`.
    scheme_name : str, optional
        How a program integrates, for the record: "mhdtvd".
    events : tuple of Event
        What a program counts.
    derived : callable
        Quantities by name, as expressions, that pictures show instead of the fields; called while differences
        have the order of the run.
    scalars : mapping of str to float
        Numbers that a program reads before it sets them, as they are at the start.
    ends : tuple of str
        Reasons for which a program may end a run before its last step, and all is well: "steady".
    check_start : callable, optional
        Called with the simulation on all ranks, after the fields are set and before the first step; raises
        InputError for a start that cannot be.
    until : float, optional
        The time that a run goes to by default, where it depends on the parameters.
    exact : callable, optional
        For a case whose exact solution is known: ``exact(time)`` gives its fields at a time, in the same form
        as `start`.
    automatic : mapping of str to float
        Values of the automatic parameters that the case has chosen by its grid, and that are part of the
        algorithm. A study gives all its runs the same values.
    """

    grid: Grid
    equations: Callable[..., Any] | ProgramFunction
    parameters: Mapping[str, float]
    dt: float | Callable[..., Any] | None
    start: Mapping[Field, Any]
    diagnostics: Callable[[], Mapping[str, Expr]] = dict
    terms: Callable[[], Mapping[Field, Mapping[str, Expr]]] = dict
    limit: Callable[[Mapping[str, float]], str] | None = None
    advice: Callable[[Mapping[str, float]], str] | None = None
    progress: Callable[[Mapping[str, float]], str] | None = None
    shown: tuple[str, ...] = ()
    time_step: str = "exact"
    scheme_name: str | None = None
    events: tuple[Event, ...] = ()
    derived: Callable[[], Mapping[str, Expr]] = dict
    scalars: Mapping[str, float] = field(default_factory=dict)
    ends: tuple[str, ...] = ()
    check_start: Callable[[Simulation], None] | None = None
    until: float | None = None
    exact: Callable[[float], Mapping[Field, Any]] | None = None
    automatic: Mapping[str, float] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """Numbers that follow from the parameters of the case, by name; all are finite."""
        others = {"dt": self.dt, "until": self.until}
        return {**self.parameters, **{k: n for k, n in others.items() if isinstance(n, float | int)}}


@dataclass(frozen=True)
class LinearSetup:
    """A linear problem on a grid, ready for `halocline.LinearProblem`.

    Parameters
    ----------
    operator : callable
        Takes a field and returns the expression of A applied to it.
    unknown : Field
    rhs : expression
        Evaluated straight into the residual.
    method : str
        See `halocline.LinearProblem`.
    rtol : float
        Iterations end where the norm of the residual has fallen to so much of the first.
    exact : expression, optional
        The solution of the differential equation at the points, where it is known.
    title : str
        What a heading calls it: "Poisson".
    """

    operator: Callable[[Any], Expr]
    unknown: Field
    rhs: Expr
    method: str
    rtol: float
    exact: Expr | None = None
    title: str = "linear problem"

    @property
    def grid(self) -> Grid:
        """Where it is solved."""
        return self.unknown.grid


@dataclass(frozen=True)
class Family:
    """Runs whose errors a convergence study shows together.

    Parameters
    ----------
    title : str
        Of their panel; families of the same title share one.
    dim : int
        Axes of the grids.
    sizes : tuple of int
        Cells along the first axis by default, each for one run. Where there are none, the family runs only
        with sizes that are given.
    lines : tuple of mapping of str to float or str
        The parameters of each line that are not those by default.
    order : int
        The power of the spacing that the error is expected to fall with.
    """

    title: str
    dim: int
    sizes: tuple[int, ...]
    lines: tuple[Mapping[str, float | str], ...] = ({},)
    order: int = 2


@dataclass(frozen=True)
class Extrapolated:
    """Numbers of a steady state that a convergence study extrapolates to a spacing of zero.

    Parameters
    ----------
    names : tuple of str
        The diagnostics that are checked.
    published : callable
        ``published(shape, values)`` gives what is known of them, by name, at these parameters; nothing where
        nothing is.
    source : str
        Where that comes from.
    noise : callable
        ``noise(values)`` gives how far a number may be from the steady one at the end of a run, over the
        number: smaller differences between grids mean nothing.
    """

    names: tuple[str, ...]
    published: Callable[[tuple[int, ...], Mapping[str, Any]], Mapping[str, float]] = lambda shape, values: {}
    source: str = ""
    noise: Callable[[Mapping[str, Any]], float] = lambda values: 0.0


@dataclass(frozen=True)
class Case:
    """A problem that can be run by its name.

    Parameters
    ----------
    about : str
        One line.
    origin : str
        Where the problem and its numbers come from.
    shape : tuple of int
        Cells by default, as many numbers as the case has axes.
    steps : int or None
        By default; where there is `until`, only of what times steps. None where `until` alone ends a run.
    parameters : mapping of str to Parameter
    make : callable
        ``make(shape, values)`` gives its Setup, or its LinearSetup.
    linear : bool
        Whether it is a linear problem, with a LinearSetup.
    least_axes : int, optional
        The case can do with this number of axes too: with the last of them where it has walls.
    shapes : mapping of int to tuple of int
        Further numbers of axes that the case can have, and its cells by default with these.
    until : float, optional
        The time that a run goes to by default.
    end : str
        When that is, in words, where it depends on the parameters.
    order : int
        Of differences by default. A program, whose order cannot be chosen, has this one.
    check : callable, optional
        What a finished run must satisfy. All ranks call it; what it gives on the first rank counts.
    error : callable, optional
        How far a run that ended where the case ends is from what is known of it exactly: what convergence
        studies draw. All ranks call it, and it gives the same on all of them.
    error_name : str
        What that is, in a few words.
    findings : callable, optional
        ``findings(diagnostics, steps)`` gives, by name, what a reader of the JSON of a run looks for first,
        from the diagnostics at its end.
    extrapolated : Extrapolated, optional
        For a case without exact solution that ends when it is steady, before its last step: what convergence
        studies look at instead of an error.
    families : tuple of Family
        What a convergence study runs by default.
    figures : mapping of str to callable
        Figures of a finished run beside the pictures of `Setup.derived`, by the names of their files. All
        ranks call each; what it gives on the first rank is drawn.
    """

    about: str
    origin: str
    shape: tuple[int, ...]
    steps: int | None
    parameters: Mapping[str, Parameter]
    make: Callable[[tuple[int, ...], Mapping[str, Any]], Setup | LinearSetup] = field(repr=False)
    linear: bool = False
    least_axes: int | None = None
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    until: float | None = None
    end: str = ""
    order: int = 6
    check: Callable[[Checked], Sequence[Check]] | None = field(default=None, repr=False)
    error: Callable[[Checked], float] | None = field(default=None, repr=False)
    error_name: str = "error"
    findings: Callable[[Mapping[str, float | None], int], Mapping[str, Any]] | None = field(
        default=None, repr=False
    )
    extrapolated: Extrapolated | None = None
    families: tuple[Family, ...] = ()
    figures: Mapping[str, Callable[[Checked], Figure | None]] = field(default_factory=dict, repr=False)

    def values(self, given: Mapping[str, float | str]) -> dict[str, Any]:
        """All parameters: those given, the others by default.

        Raises
        ------
        InputError
            A name that the case does not have, or a value that the parameter cannot have.
        """
        return complete(self.parameters, given)

    def setup(self, shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup | LinearSetup:
        """Return the setup on a grid.

        Parameters
        ----------
        shape : tuple of int
            Cells along each axis.
        values : mapping of str to float or str
            All parameters, as `values` returns them.

        Raises
        ------
        InputError
            A number that follows from the parameters is not finite.
        """
        try:
            made = self.make(shape, values)
        except InputError:
            raise
        except (ArithmeticError, ValueError) as error:  # a division by 0, an overflow, the logarithm of 0
            raise self._out_of_range(values, f"lead to an error ({error.args[-1]})") from error
        if isinstance(made, Setup):
            for name, number in made.numbers.items():
                if not math.isfinite(number):
                    raise self._out_of_range(values, f"make {name} {number}")
        return made

    def _out_of_range(self, values: Mapping[str, Any], what: str) -> InputError:
        """Return the error for parameters that together exceed the range of floating-point numbers."""
        changed = [
            f"{name}={value}" for name, value in values.items() if value != self.parameters[name].default
        ]
        named = ", ".join(changed) or "by default"
        return InputError(
            f"parameters {named} on this grid {what}; expected values for which all numbers of the case are "
            "finite. Choose values closer to the defaults, or other units."
        )

    @property
    def is_extrapolated(self) -> bool:
        """True where a convergence study extrapolates numbers, since the case has no exact error."""
        return self.extrapolated is not None and self.error is None

    @property
    def sizes(self) -> dict[int, tuple[int, ...]]:
        """The cells by default for each number of axes that the case can have."""
        axes = len(self.shape)
        fewer = {count: self.shape[-count:] for count in range(self.least_axes or axes, axes + 1)}
        return dict(sorted((fewer | dict(self.shapes)).items()))

    def shape_of(self, n: Sequence[int] | None = None, dim: int | None = None) -> tuple[int, ...]:
        """The cells along each axis.

        Parameters
        ----------
        n : sequence of int, optional
            One number, for the first axis, the others in the case's own proportion; or one for each axis.
        dim : int, optional
            Axes; by default as many as there are numbers, or else those of `shape`.

        Raises
        ------
        InputError
            Another count of numbers, or axes that the case does not have.
        """
        sizes = self.sizes
        for each in n or ():
            POINTS.check("n", each)
        if dim is not None and (isinstance(dim, bool) or dim not in sizes):
            known = " or ".join(map(str, sizes))
            raise InputError(f"dim is {dim}; expected {known}, the axes that this case can have")
        own = self.shape if dim is None else sizes[dim]
        if n is None:
            return own
        counts = list(sizes) if dim is None else [dim]
        if len(n) > 1 and len(n) in counts:
            return tuple(n)
        if len(n) != 1:
            several = " or ".join(map(str, counts))
            given = ",".join(map(str, n))
            raise InputError(f"n is {given}; expected one number, or {several}, one for each axis")
        return tuple(max(1, n[0] * each // own[0]) for each in own)
