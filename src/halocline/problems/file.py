"""The problem of a user's file, which every verb takes in the place of a case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

from halocline.errors import HaloclineError, InputError
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from halocline.problems.step_bench import StepBench
from halocline.run.simulation.observers import Observer, observing
from halocline.run.simulation.script import Script, Value
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.schemes import SCHEMES
from halocline.words import joined

RESOLUTION = "n"  # the name that a file gives its cells along the first axis


class FileProblem:
    """The first problem that a user's file makes, known before it takes memory.

    Parameters
    ----------
    file : path
    n : int, optional
        For the name ``n`` at its top: cells along the first axis.
    given : mapping of str to str, optional
        Other values of names at its top, as texts.

    Raises
    ------
    InputError
        There is no such file, name or problem.

    Attributes
    ----------
    name : str
        Of the file.
    script : Script
    grid : Grid
    program : Program
        What a step or an iteration is.
    order : int or None
        Of the differences; None for a program or a linear problem.
    scheme : str or None
        How time is integrated, or the method of a linear problem.
    one_pass : str
        What a pass of its loop is.
    """

    def __init__(self, file: Path, n: int | None = None, given: Mapping[str, str] | None = None) -> None:
        try:
            self.name, self.script = file.name, Script(file)
        except (SyntaxError, ValueError) as error:
            where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise InputError(f"{file}{where}: it is no Python: {error.args[0]}") from None
        self.given = values_of(self.script, n, given or {})
        problem = _first(self.script, self.given)
        self.one_pass = "a step" if isinstance(problem, Simulation) else "an iteration"
        self.order, self.scheme = method_of(problem)
        self.program: Program = problem.program
        self.grid: Grid = grid_of(problem)

    @property
    def title(self) -> str:
        """What it is, for a heading."""
        return joined(self.name, f"{' x '.join(f'{n:,}' for n in self.shape)} cells", self.method)

    def bench(self, **execution: Any) -> StepBench:
        """Its steps or iterations, to be timed whole and in parts; all ranks call this.

        Parameters
        ----------
        **execution
            `communicator`, and options of halocline.Execution, which replace those of the file.
        """
        problem = _first(self.script, self.given, execution)
        return StepBench(problem if isinstance(problem, Simulation) else problem.fields, problem.program)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.grid.shape

    @property
    def is_program(self) -> bool:
        """Whether differences have no one order: of a program, or a linear problem."""
        return self.order is None

    @property
    def method(self) -> str:
        """Order and scheme, in words."""
        return joined(None if self.order is None else f"order {self.order}", self.scheme)

    @property
    def values(self) -> dict[str, Value]:
        """The names at the top of the file, with their values here."""
        return {**self.script.names, **self.given}


def values_of(script: Script, n: int | None, given: Mapping[str, str]) -> dict[str, Value]:
    """The values that ``--n`` and ``--set`` give a file.

    Raises
    ------
    InputError
        A name that the file does not have at its top.
    """
    if n is not None and type(script.names.get(RESOLUTION)) is not int:
        raise InputError(
            f"--n {n}: {script.file} sets no whole number {RESOLUTION} at its top; write {RESOLUTION} = 128 "
            f"there, and make the grid of {RESOLUTION} cells along its first axis"
        )
    texts = dict(given) | ({} if n is None else {RESOLUTION: str(n)})
    return script.values(texts)


def grid_of(problem: Any) -> Grid:
    """The grid of a simulation or a linear problem."""
    grid: Grid = problem.grid if isinstance(problem, Simulation) else problem.unknown.grid
    return grid


def method_of(problem: Any) -> tuple[int | None, str | None]:
    """Order and scheme of a simulation; None and the method of a linear problem."""
    if not isinstance(problem, Simulation):
        return None, str(problem.method)
    if problem.scheme is None:
        return None, None
    known = (name for name, scheme in SCHEMES.items() if scheme == problem.scheme)
    return problem.order, next(known, type(problem.scheme).__name__)


class _FoundError(BaseException):
    """Ends a file that has made its problem; no handler of the user's takes it for an error."""


class _First(Observer):
    def made(self, problem: Any) -> None:
        super().made(problem)
        raise _FoundError


def _first(script: Script, given: Mapping[str, Value], execution: Mapping[str, Any] | None = None) -> Any:
    """The first problem that it makes."""
    observer = _First(execution)
    try:
        with observing(observer):
            script.run(given=given)
    except (_FoundError, SystemExit):
        pass
    except HaloclineError:
        raise
    except Exception as error:  # of the file itself
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(script.file)]
        where = f", line {lines[-1]}" if lines else ""
        raise InputError(f"{script.file}{where}: {type(error).__name__}: {error}") from None
    if observer.problem is None:
        raise InputError(f"{script.file} makes no hc.Simulation or hc.LinearProblem, nor calls hc.solve")
    return observer.problem
