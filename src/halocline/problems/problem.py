"""Problems: Python files that commands run, time, explain and study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from traceback import extract_tb
from typing import Any

from halocline.archive.arrays import Writing
from halocline.archive.reader import Store
from halocline.errors import HaloclineError, InputError
from halocline.lang import trace
from halocline.lang.callables import arguments_taken
from halocline.lang.expression import Operators
from halocline.lang.functions import abs as magnitude
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.program import Program, ProgramFunction
from halocline.lang.reductions import max as greatest
from halocline.lang.values import as_name, real_array
from halocline.problems.files import is_file, path_of
from halocline.problems.following import EndedError, Following, RunOptions, now
from halocline.problems.names import Names
from halocline.problems.record import Record, checksums, recorded
from halocline.problems.result import Result, fields_of, results
from halocline.problems.step_bench import StepBench
from halocline.run.fields.fields import Fields
from halocline.run.output.restart import Saved, newest
from halocline.run.ranks.mpi import communicator_of
from halocline.run.simulation import events as counters
from halocline.run.simulation.checks import Check
from halocline.run.simulation.observers import Observer, observing
from halocline.run.simulation.script import Script, Value
from halocline.run.simulation.settings import Setting, Settings, active
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.linear import Solution
from halocline.solvers.schemes import SCHEMES
from halocline.words import counted, joined, method

RESOLUTION = "n"  # the name that a file without settings gives its cells along the first axis
CHECK = "check"  # name of the check of a file that asserts
UNKNOWN = (  # facts of a part of the steps
    *("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series", "error", "events"),
)


# attributes of a problem that follow from the first simulation or linear problem of its file
KNOWN = (
    *("program", "grid", "fields", "order", "scheme", "is_linear", "is_program"),
    *("declared", "known", "_sizes", "_values"),
)


class Problem:
    """Problem file with the values of its parameters: a user's own file, or a case.

    Parameters
    ----------
    name : str
        Name of a case, or path of a file.
    n : sequence of int, optional
        Cells along the first axis, the others in the file's own proportion; or along each axis.
    given : mapping of str to float or str, optional
        Parameters that differ from the defaults.
    dim : int, optional
        Number of axes, for a file that declares several with `halocline.cells`.
    order : int, optional
        Order of the differences in space, in place of that in the file.
    scheme : str, optional
        Time integration scheme in place of that in the file: "euler", "rk2", "rk3", "rk4", "ssprk3".

    Attributes
    ----------
    name : str
        Name of the case or of the file, without its folder.
    spelling : str
        Name as it was given.
    script : Script
    has_settings : bool
        True for a file that declares its parameters with `halocline.setting` or `halocline.cells`. In other
        files, the numbers and texts at the top are parameters.

    program : Program
        Statements of a step or an iteration, without memory. This and the following attributes belong to the
        first simulation or linear problem of the file, which runs up to there.
    grid : Grid
    fields : tuple of Field
        Fields that the file has made by then.
    order : int or None
        Order of the differences in space; None for a program or a linear problem.
    scheme : str or None
        Time integration scheme, or the method of a linear problem.
    is_linear : bool
        True where the file solves a linear problem.
    is_program : bool
        True where the differences have no single order: a program, or a linear problem.
    declared : dict of str to Setting
        Settings of the file, by name.
    known : Names
        Names that the file has defined by then.

    Raises
    ------
    InputError
        There is no such file or case, or the file is no Python; a name or value that the file does not take.

    Notes
    -----
    The file runs as ``python FILE`` does: up to its first problem for the properties, and as a whole for
    `run`. An input error in a setting is raised then.

    Examples
    --------
    >>> from halocline.problems.problem import Problem
    >>> problem = Problem("alfven-decay", [16], {"nu": 0.1, "eta": 0.1})
    >>> problem.run(steps=4).record.cells
    16
    """

    program: Program
    grid: Grid
    fields: tuple[Field, ...]
    order: int | None
    scheme: str | None
    is_linear: bool
    is_program: bool
    declared: Mapping[str, Setting]
    known: Names

    def __init__(
        self,
        name: str,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        *,
        dim: int | None = None,
        order: int | None = None,
        scheme: str | None = None,
    ) -> None:
        file = path_of(name)
        self.spelling, self.is_file = name, is_file(name)
        self.name = file.name if self.is_file else name
        try:
            self.script = Script(file)
        except (SyntaxError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise InputError(f"{file}{where}: it is no Python: {error.args[0]}") from error
        self.has_settings = self.script.has_settings
        self.n, self.dim, self.order_given, self.scheme_given = n, dim, order, scheme
        self.given: dict[str, Any] = dict(given or {})
        if order is not None:
            trace.check_order(order)
        if not self.has_settings:
            if dim is not None:
                raise InputError(
                    f"--dim {dim}: {name} declares no axes to choose from: leave it out, or call hc.cells in "
                    "the file"
                )
            self.given = self._values_of_names()

    @classmethod
    def of_checkpoint(
        cls,
        name: str,
        path: str | Path,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        **options: Any,
    ) -> Problem:
        """Return the problem that left a checkpoint, with the cells, parameters, order and scheme of the
        checkpoint where others are not given.

        Raises
        ------
        InputError
            There is no checkpoint, or it is of another problem; and see `Problem`.
        """
        own = cls(name, n, given, **options)
        if not own.has_settings:
            return own
        saved = Saved(newest(Path(path)))
        facts = saved.facts.get("case") or _facts_of_solve(saved, own.name)
        if facts is None or facts["name"] != own.name:
            whose = "no case" if facts is None else f"case {facts['name']}"
            raise InputError(f"checkpoint {saved.folder} is of {whose}, not of {own.name}")
        asked = {"n": n, "dim": options.get("dim"), "method": (given or {}).get("method")}
        left = {"n": facts["n"], "dim": len(facts["n"]), "method": facts["given"].get("method")}
        asked |= {key: options.get(key) for key in ("order", "scheme")}
        left |= {key: facts[key] for key in ("order", "scheme")}
        if not own.is_linear:  # those may be others; the grid of the checkpoint is compared later
            asked |= {"n": None, "dim": None, "method": None}
        elif n is not None and len(n) == 1:
            left["n"] = facts["n"][:1]
        for key, value in asked.items():
            if value is not None and left[key] is not None and _plain(value) != _plain(left[key]):
                raise InputError(
                    f"{key} is {_plain(value)}, but checkpoint {saved.folder} is of a run with "
                    f"{_plain(left[key])}: leave it out"
                )
        return cls(
            name,
            facts["n"] if n is None else n,
            {**facts["given"], **(given or {})},
            dim=options.get("dim"),
            **{key: facts[key] if options.get(key) is None else options[key] for key in ("order", "scheme")},
        )

    # --- what it is ---

    def __getattr__(self, name: str) -> Any:
        """Run the file up to its first problem, which gives the attributes that depend on it."""
        if name not in KNOWN:
            raise AttributeError(f"a problem has no attribute {name!r}")
        observer = _First(self, {})
        self._execute(observer)
        if observer.problem is None:
            raise InputError(
                f"{self.script.file} makes no hc.Simulation or hc.LinearProblem, nor calls hc.solve"
            )
        return self.__dict__[name]

    def know(self, problem: Any) -> None:
        """Note the first problem that the file makes, before it takes memory; an observer calls this.

        Raises
        ------
        InputError
            A given parameter is not declared.
        """
        if self.is_known:
            return
        self.is_linear = not isinstance(problem, Simulation)
        settings = self._settings
        if self.has_settings:
            if "method" in settings.given and "method" not in settings.declared and not self.is_linear:
                raise InputError(
                    f"--method {self.given['method']}: {self.name} is no linear problem: leave it out"
                )
            settings.check_used()
        self.known = self.names
        if self.is_linear:
            self.grid, self.order, self.scheme = problem.unknown.grid, None, str(problem.method)
        else:
            self.grid = problem.grid
            self.order, self.scheme = _method_of(problem, self.known.scheme_name)
        self.is_program = self.order is None
        self.fields = tuple(f for f in self.grid.fields.values() if not self.grid.is_own(f))
        self.declared, self._sizes = settings.declared, settings.sizes
        self._values = settings.values if self.has_settings else {**self.script.names, **self.given}
        self.program = problem.program

    @property
    def is_known(self) -> bool:
        """True where the file has run up to its first problem."""
        return "program" in self.__dict__

    @property
    def names(self) -> Names:
        """Names at the top of the file that commands use, as far as it has run."""
        return Names.of(self.script.top, has_settings=self.has_settings)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.grid.shape

    @property
    def sizes(self) -> dict[int, tuple[int, ...]]:
        """Default cells by the number of axes."""
        return {len(size): size for size in sorted(self._sizes, key=len)}

    def default_cells(self, dim: int | None = None) -> tuple[int, ...]:
        """Return the default cells along each axis, for a number of axes.

        Raises
        ------
        InputError
            The problem cannot have that number of axes.
        """
        return Settings(dim=dim).shape(self._sizes or [self.shape])

    @property
    def values(self) -> dict[str, Any]:
        """Parameters with their values."""
        return dict(self._values)

    @property
    def unit(self) -> str:
        """Name of one pass of the loop."""
        return "iteration" if self.is_linear else "step"

    @property
    def one_pass(self) -> str:
        """Name of one pass of the loop, with its article."""
        return "an iteration" if self.is_linear else "a step"

    @property
    def method(self) -> str:
        """Order and scheme, as text."""
        return method(self.order, self.scheme)

    @property
    def title(self) -> str:
        """Heading of reports."""
        if self.is_linear and self.has_settings:
            what = f"{self.name.capitalize()} in {len(self.shape)}D, N = {self.shape[0]}"
            return f"{what}: {counted(self.grid.size, 'unknown')}, {self.scheme}"
        return joined(self.name, f"{' x '.join(f'{n:,}' for n in self.shape)} cells", self.method)

    @property
    def description(self) -> tuple[str, dict[str, Any]]:
        """Line for people, and facts for JSON."""
        facts = {
            "case": self.name,
            "shape": self.shape,
            "order": self.order,
            "scheme": self.scheme,
            "parameters": self.values,
        }
        return f"{self.title}; a pass is {self.one_pass}", facts

    @property
    def facts(self) -> dict[str, Any]:
        """Facts for checkpoints; see `of_checkpoint`."""
        return {
            "name": self.name,
            "n": list(self.shape),
            "given": self.values,
            "order": self.order,
            "scheme": None if self.is_program else self.scheme,
        }

    # --- running ---

    def bench(self, *, communicator: Any = None, **execution: Any) -> StepBench:
        """Return the steps or iterations of the first problem, to be timed whole and in parts; all ranks call
        this.

        Parameters
        ----------
        communicator, **execution
            Options of `halocline.Execution`, which replace those of the file.
        """
        observer = _First(self, _replaced(communicator, execution))
        self._execute(observer)
        return StepBench(fields_of(observer.problem), observer.problem.program)

    def run(self, arguments: Sequence[str] = (), *, communicator: Any = None, **options: Any) -> Result:
        """Run the file; all ranks call this.

        Parameters
        ----------
        arguments : sequence of str
            Arguments that the file finds in ``sys.argv``.
        communicator : mpi4py communicator, optional
            In place of that of the file.
        **options
            Those of `halocline.problems.following.RunOptions`, and of `halocline.Execution`, which replace
            those of the file. No bit of the result depends on the latter.

        Raises
        ------
        InputError
            An option has no effect on the file, or see `Problem`.
        RunError
            A value is not finite, or the run ends by a reason that is none of the file's `ends`.
        """
        known = {own.name for own in fields(RunOptions)}
        wanted = RunOptions(**{name: options.pop(name) for name in list(options) if name in known})
        observer = Following(self, wanted, communicator_of(communicator), _replaced(communicator, options))
        self._execute(observer, arguments)
        course = observer.course
        if wanted.only is not None and course.part is None and course.runs:
            observer.time_part(observer.problem, course.steps)
        return self._result(observer)

    def _execute(self, observer: Observer, arguments: Sequence[str] = ()) -> None:
        """Run the file under an observer."""
        given = self.given if self.has_settings else {}
        self._settings = Settings(given, self.n if self.has_settings else None, self.dim)
        try:
            with observing(observer), active(self._settings):
                words = arguments if self.is_file else None  # output names the command that ran a case
                self.script.run(words, None if self.has_settings else self.given)
        except EndedError:
            pass
        except SystemExit:
            if not isinstance(observer, _First):
                raise
        except HaloclineError:
            raise
        except (ArithmeticError, ValueError) as error:
            if not self.has_settings or observer.problem is not None:
                if isinstance(observer, _First):
                    raise self._of_file(error) from None
                raise
            changed = [f"{name}={value}" for name, value in self._settings.given.items()]
            raise InputError(
                f"parameters {', '.join(changed) or 'by default'} on this grid lead to an error "
                f"({error.args[-1]}); expected values for which all numbers of the problem are finite. "
                "Choose values closer to the defaults, or other units."
            ) from error
        except Exception as error:
            if not isinstance(observer, _First):
                raise
            raise self._of_file(error) from None

    def _of_file(self, error: Exception) -> InputError:
        """Return an error of the file itself as one line."""
        file = self.script.file
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(file)]
        where = f", line {lines[-1]}" if lines else ""
        return InputError(f"{file}{where}: {type(error).__name__}: {error}")

    def replaced(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a problem that the file makes, with the order and the scheme given here.

        Raises
        ------
        InputError
            The problem has an order or a scheme of its own.
        """
        if function is None and self.scheme_given is not None:
            raise InputError(
                f"--scheme {self.scheme_given}: {self.name} is a linear problem, which has no time: leave it "
                "out, or choose the method of the solve with --set method=NAME"
            )
        own = self.names.scheme_name if function is not None else self._settings.values.get("method")
        for what, value in (("order", self.order_given), ("scheme", self.scheme_given)):
            if value is not None and (function is None or isinstance(function, ProgramFunction)):
                of = f", {own}" if own else ""
                raise InputError(
                    f"{what} is {value}, but {self.name} is a program with a scheme of its own{of}: "
                    f"leave {what} out"
                )
        if self.scheme_given is not None:
            if self.scheme_given not in SCHEMES:
                raise unknown("scheme", self.scheme_given, list(SCHEMES))
            options["scheme"] = SCHEMES[self.scheme_given]
        if self.order_given is not None:
            options["order"] = self.order_given
        return options

    def _values_of_names(self) -> dict[str, Value]:
        """Return the values of the names of a file without settings."""
        texts = {name: str(value) for name, value in self.given.items()}
        if self.n is not None:
            text, file = ",".join(map(str, self.n)), self.script.file
            if len(self.n) != 1:
                raise InputError(f"--n {text}: expected one number for a file")
            if type(self.script.names.get(RESOLUTION)) is not int:
                raise InputError(
                    f"--n {text}: {file} sets no whole number {RESOLUTION} at its top; write {RESOLUTION} = "
                    f"128 there, and make the grid of {RESOLUTION} cells along its first axis"
                )
            texts[RESOLUTION] = text
        return self.script.values(texts)

    # --- results ---

    def _result(self, observer: Following) -> Result:
        """Return the result of a run; all ranks call this."""
        problem, course = observer.problem, observer.course
        if course.part is None and not course.runs and not course.series:
            return Result(None, None, None, None, None, (), observer, self.names)
        fields = fields_of(problem)
        is_simulation = isinstance(problem, Simulation)
        outcome = course.outcome
        facts = dict.fromkeys(UNKNOWN) if course.part is not None else self._facts_of(problem, course)
        writing = problem.writing if is_simulation else outcome.writing if outcome else Writing()
        if is_simulation:
            bytes_per_pass = problem.bytes_per_step
        else:
            bytes_per_pass = problem.prepared.bytes_per_pass * problem.unknown.grid.active_cells
        order, scheme = (
            _method_of(problem, self.names.scheme_name) if is_simulation else (None, problem.method)
        )
        facts |= {"steps": course.steps, "warm_up": course.warm_up, "only": observer.options.only}
        record, reference, peak = recorded(
            fields, course.timing, facts,
            case=self.name, order=order, scheme=scheme, parameters=self.values,
            schedule=problem.schedule, bytes_per_step=bytes_per_pass,
            writing=Writing() if course.part is not None else writing,
        )  # fmt: skip
        return Result(
            record, reference, peak, fields, outcome, tuple(results(fields)),
            tuned=None if is_simulation else problem.prepared.tuned,
            most=None if is_simulation else course.arguments.steps,
            rtol=course.arguments.rtol, observer=observer, names=self.names,
        )  # fmt: skip

    def _facts_of(self, problem: Any, course: Any) -> dict[str, Any]:
        """Return the facts of a record that follow from the fields and the series."""
        names, fields = self.names, fields_of(problem)
        if not isinstance(problem, Simulation):
            solution = course.outcome
            numbers = {
                "residual_relative": solution.residual_relative,
                "true_residual_relative": solution.true_residual_relative,
            }
            own = checksums(fields, results(fields))
            own["checksum"] = fields.checksum(problem.unknown)
            return {
                **dict.fromkeys(("time", "time_step", "limiter")),
                "diagnostics": numbers if self.has_settings else {},
                "series": [],
                "error": self._error(problem, 0.0, is_at_end=True),
                "events": {},
                **own,
            }
        sim = problem
        own, series = course.arguments, course.series
        events = getattr(sim, "events", None) or counters.counted(sim, names.events)
        if names.events and sim.domain.comm.rank == 0:
            counters.warn(names.events, events)
        row = series[-1] if series else now(sim, names)
        end = (sim.time, own.until) if own.until is not None else (sim.steps, own.steps)
        return {
            **{name: row[name] for name in ("time_step", "limiter")},
            "time": sim.time,
            **checksums(sim, results(sim)),
            "diagnostics": {name: row[name] for name in list(row)[4:]},
            "series": series,
            "error": self._error(sim, sim.time, is_at_end=end[0] == end[1]),
            "events": events,
        }

    def _error(self, problem: Any, time: float, *, is_at_end: bool) -> float | None:
        """Return the error of a run; None where the file knows none, or the run ended before its end."""
        names, fields = self.names, fields_of(problem)
        if names.error is not None:
            with trace.order(getattr(problem, "order", 2)):
                error = names.error(problem) if is_at_end else math.nan
            return error if math.isfinite(error) else None
        return difference(fields, time, names.exact) if callable(names.exact) else None

    def check(self, result: Result) -> list[Check]:
        """Return the checks of a run, the same on all ranks; all ranks call this.

        A check that asserts gives one `Check` with the reason of its failure; it passes where its value is 0.

        Raises
        ------
        InputError
            The file has no check, or the result is of a part of the steps alone.
        """
        own = result.names.check
        if own is None:
            raise InputError(f"case {self.name} has no check: it does not say what a run of it must satisfy")
        problem = _whole(result)
        if not callable(own):
            raise InputError(f"--check: {self.spelling} ended before it defined check(problem)")
        count = arguments_taken(
            own, f"check of {self.spelling}", (1, 2), "the problem, and perhaps the record"
        )
        comm = communicator_of(None) if problem is None else fields_of(problem).domain.comm
        checks, why = None, ""
        try:
            with trace.order(getattr(problem, "order", 2)):
                checks = own(*(problem, result.record)[:count])
        except AssertionError as error:
            why = str(error) or "an assertion does not hold"
        except SystemExit as end:
            why = "" if end.code in (None, 0) else f"it ended with status {end.code}"
        if any(comm.allgather(isinstance(checks, Sequence))):
            found: list[Check] = comm.bcast(list(checks or ()))
            return found
        why = next(filter(None, comm.allgather(why)), "")
        return [Check(CHECK, float(bool(why)), most=0.0, about=why)]

    def figures(self, result: Result) -> dict[str, Any]:
        """Return the figures of a run by name, on the first rank; None for each on the others. All ranks call
        this.

        Raises
        ------
        InputError
            The result is of a part of the steps alone.
        """
        problem, found = _whole(result), {}
        for name, figure in result.names.figures.items():
            comm = fields_of(problem).domain.comm
            with trace.order(getattr(problem, "order", 2)), comm.agreement(f"figure {name} of {self.name}"):
                found[name] = figure(problem)
        return found

    def pictures(self, result: Result) -> dict[str, Any]:
        """Return the quantities that pictures show, by name."""
        problem, own = _whole(result), result.names.pictures
        if own is not None:
            with trace.order(getattr(problem, "order", 2)):
                return dict(own())
        return {f.name: f for f in results(fields_of(problem))}

    def findings(self, result: Result) -> dict[str, Any]:
        """Return numbers of a run that readers of its JSON look for first."""
        solution, record, own = result.outcome, result.record, result.names.findings
        if own is not None and record is not None and record.diagnostics is not None:
            return dict(own(record.diagnostics, record.steps))
        if record is None or not isinstance(solution, Solution):
            return {}
        how = {"dim": len(self.shape), "method": self.scheme, "rtol": result.rtol}
        names = "iterations", "converged", "reason", "residual_relative", "true_residual_relative"
        more = "seconds_per_iteration", "bytes_per_iteration"
        return {
            **{"n": self.shape[0], "dof": record.cells, **how, "max_iterations": result.most},
            **{name: getattr(solution, name) for name in (*names, *more)},
            "error_max": record.error,
            "bandwidth_share": record.share_of_bound,
            "overlap": solution.overlap.on,
            "overlap_why": solution.overlap.why,
            "sweep_seconds_overlap": solution.overlap.seconds_on,
            "sweep_seconds_no_overlap": solution.overlap.seconds_off,
        }


def problem_of(
    name: str,
    n: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    *,
    method: str | None = None,
    **options: Any,
) -> Problem:
    """Return the problem that a command line names.

    Parameters
    ----------
    n : sequence of int, optional
        Cells, as ``--n`` takes them.
    settings : sequence of str
        Values of parameters, each as ``--set`` takes it.
    method : str, optional
        Method of a linear problem that has it as a setting.
    **options
        Options ``dim``, ``order`` and ``scheme`` of `Problem`.

    Raises
    ------
    InputError
    """
    given = settings_of(settings)
    if method is not None:
        if not Script(path_of(name)).has_settings:
            raise InputError(f"--method {method}: {name} is a file, which says that itself: leave it out")
        given["method"] = method
    return Problem(name, n, given, **options)


def settings_of(settings: Sequence[str]) -> dict[str, str]:
    """Return the values that --set gives parameters, as texts.

    Raises
    ------
    InputError
        A setting has no value, or is given twice.
    """
    given: dict[str, str] = {}
    for setting in settings:
        name, between, text = setting.partition("=")
        name = as_name(name, "parameter name")
        if not between:
            raise InputError(
                f"--set {setting}: expected {name}=VALUE; `halocline cases NAME` shows those of a case"
            )
        if name in given:
            raise InputError(f"--set {setting}: {name} is given twice")
        given[name] = text
    return given


class _FoundError(EndedError):
    """Ends a file that has made its first problem; no handler of the file takes it for an error."""


class _First(Observer):
    """Observer that ends a file at its first problem."""

    def __init__(self, subject: Problem, replaced: Mapping[str, Any]) -> None:
        super().__init__(replaced)
        self.subject = subject

    def replaced(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        return self.subject.replaced(function, options)

    def made(self, problem: Any) -> None:
        super().made(problem)
        self.subject.know(problem)
        raise _FoundError


def difference(fields: Fields, time: float, exact: Any) -> float:
    """Return the greatest difference from an exact solution; all ranks call this.

    Parameters
    ----------
    exact : callable
        ``exact(time)`` gives some fields expressions, functions of the coordinates, or arrays.
    """
    import numpy as np

    worst = 0.0
    arguments_taken(exact, "exact", (1,), "the time")
    for own, solution in dict(exact(time)).items():
        target = fields.stored(own)
        if isinstance(solution, Operators):
            worst = max(worst, float(fields.evaluate(greatest(magnitude(target - solution)))))
            continue
        found = fields.gather(target)
        if found is None:
            continue
        lines = np.meshgrid(*target.positions, indexing="ij")
        what = f"exact({time:g}) of field {target.name!r}"
        if callable(solution):
            arguments_taken(solution, what, (len(lines),), f"{len(lines)} coordinates")
            solution = solution(*lines)
        values = real_array(solution, f"{what} is").astype(np.float64)
        if values.shape not in ((), found.shape):
            raise InputError(
                f"exact({time:g}) gives field {target.name!r} shape {values.shape}; expected {found.shape}"
            )
        worst = max(worst, float(np.abs(found - values).max()))
    return float(fields.domain.comm.bcast(worst))


def _method_of(sim: Simulation, name: str | None) -> tuple[int | None, str | None]:
    """Return order and scheme of a simulation; None and the name of its scheme for a program."""
    if sim.scheme is None:
        return None, name
    known = (name for name, scheme in SCHEMES.items() if scheme == sim.scheme)
    return sim.order, next(known, type(sim.scheme).__name__)


def _replaced(communicator: Any, execution: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of problems, with a communicator where one is given."""
    return dict(execution) if communicator is None else {**execution, "communicator": communicator}


def _whole(result: Result) -> Any:
    """Return the problem of a run of whole steps; None where the file has made none."""
    record: Record | None = result.record
    if record is not None and record.only is not None:
        raise InputError(
            f"a run of {record.only} alone leaves fields that hold nonsense: nothing to check or draw"
        )
    return result.observer.problem


def _plain(value: Any) -> Any:
    """Return a value for a message; a list as text with commas."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _facts_of_solve(saved: Saved, name: str) -> dict[str, Any] | None:
    """Return the facts of the case poisson in a checkpoint that has none of its own."""
    u = Store(saved.folder).variables.get("u")
    if u is None or "method" not in saved.facts or name != "poisson":
        return None
    given = {"method": str(saved.facts["method"])}
    return {"name": name, "n": list(u.shape), "given": given, "order": None, "scheme": None}
