"""Cases: equations with everything that a run of them needs, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid, unknown


@dataclass(frozen=True)
class Parameter:
    """A number that a case takes.

    Parameters
    ----------
    default : float
    unit : str
        In terms of the case's own units of length, time, mass and temperature; "1" for a pure number.
    about : str
    least, above, most : float, optional
        It is at least so, or above that, and at most so.
    whole : bool
        It is a whole number.
    origin : str
        Where the default comes from: a paper, a sample of another code, or chosen here.
    """

    default: float
    unit: str
    about: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    whole: bool = False
    origin: str = "chosen here"

    @property
    def range(self) -> str:
        """What it can be, in words."""
        kind = "a whole number" if self.whole else "a number"
        if self.above is not None:
            kind += f" above {self.above:g}"
        elif self.least is not None:
            kind += f" from {self.least:g}" + (" on" if self.most is None else "")
        return kind if self.most is None else f"{kind} to {self.most:,.12g}"

    def check(self, name: str, value: float) -> None:
        """Raise InputError for a value that it cannot have."""
        if not isinstance(value, Real):
            raise InputError(f"{name} is {value!r}; expected {self.range}: {self.about}")
        fits = math.isfinite(value)
        fits = fits and (self.least is None or value >= self.least)
        fits = fits and (self.above is None or value > self.above)
        fits = fits and (self.most is None or value <= self.most)
        fits = fits and (not self.whole or value == math.floor(value))
        if not fits:
            unit = "" if self.unit == "1" else f", in {self.unit}"
            raise InputError(f"{name} is {value:.12g}; expected {self.range}{unit}: {self.about}")


def seed(about: str) -> Parameter:
    """The seed of random numbers."""
    return Parameter(0, "1", about, least=0, most=10**9, whole=True)


@dataclass(frozen=True)
class Setup:
    """A case on a grid, ready for `halocline.Simulation`.

    Parameters
    ----------
    grid : Grid
    equations : callable
        The time derivatives; see `Simulation`.
    parameters : mapping of str to float
        What the equations read.
    dt : float or callable
    start : mapping of Field to expression, number or function of the coordinates
    diagnostics : callable
        Numbers over the grid by name, as expressions; called while differences have the order of the run.
    terms : callable, optional
        The terms of each time derivative by name, to tell where a value comes from that is not finite.
    limit : callable, optional
        What limits the time step, in words, by the scalars that a run left.
    shown : tuple of str
        The diagnostics that tell most, for a table that fits a terminal.
    """

    grid: Grid
    equations: Callable[..., Any]
    parameters: Mapping[str, float]
    dt: float | Callable[..., Any]
    start: Mapping[Field, Any]
    diagnostics: Callable[[], Mapping[str, Expr]] = dict
    terms: Callable[[], Mapping[Field, Mapping[str, Expr]]] = dict
    limit: Callable[[Mapping[str, float]], str] | None = None
    shown: tuple[str, ...] = ()


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
    steps : int
        By default.
    parameters : mapping of str to Parameter
    make : callable
        ``make(shape, values)`` gives its Setup.
    least_axes : int, optional
        The case can do with so many axes too: with the last of them where it has walls.
    """

    about: str
    origin: str
    shape: tuple[int, ...]
    steps: int
    parameters: Mapping[str, Parameter]
    make: Callable[[tuple[int, ...], Mapping[str, float]], Setup] = field(repr=False)
    least_axes: int | None = None

    def values(self, given: Mapping[str, float]) -> dict[str, float]:
        """All parameters: those given, the others by default.

        Raises
        ------
        InputError
            A name that the case does not have, or a value that the parameter cannot have.
        """
        for name, value in given.items():
            if name not in self.parameters:
                units = [f"{n} [{own.unit}]" for n, own in self.parameters.items()]
                raise unknown("parameter", name, list(self.parameters), units)
            self.parameters[name].check(name, value)
        return {name: given.get(name, own.default) for name, own in self.parameters.items()}

    def shape_of(self, n: Sequence[int]) -> tuple[int, ...]:
        """The cells along each axis for one number, or one for each axis.

        Raises
        ------
        InputError
            Another count of numbers.
        """
        axes = len(self.shape)
        counts = range(self.least_axes or axes, axes + 1)
        if len(n) != 1 and len(n) not in counts:
            several = " or ".join(map(str, counts))
            given = ",".join(map(str, n))
            raise InputError(f"n is {given}; expected one number, or {several}, one for each axis")
        if len(n) in counts:
            return tuple(n)
        return tuple(max(1, n[0] * own // self.shape[0]) for own in self.shape)
