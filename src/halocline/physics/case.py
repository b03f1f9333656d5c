"""Cases: equations with everything that a run of them needs, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """

    default: float
    unit: str
    about: str


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
            A name that the case does not have.
        """
        for name in given:
            if name not in self.parameters:
                raise unknown("parameter", name, [f"{n} [{own.unit}]" for n, own in self.parameters.items()])
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
