"""Problems: Python files that commands run, time, explain and study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from traceback import extract_tb
from typing import Any

from halocline.errors import HaloclineError, InputError
from halocline.lang import trace
from halocline.lang.dtype import DTYPES, using_dtype
from halocline.lang.grid import Field, Grid, unknown_name_error
from halocline.lang.program import Program, ProgramFunction
from halocline.lang.values import as_name
from halocline.problems.files import RESOLUTION, is_file, path_of
from halocline.problems.following import EndedError, FileObserver, Following
from halocline.problems.names import OF_EVERY_FILE, Names, names_in
from halocline.problems.result import Result, fields_of, method_of, result_of
from halocline.problems.run_options import RunOptions
from halocline.problems.step_bench import StepBench
from halocline.run.ranks.mpi import communicator_of
from halocline.run.simulation.observers import Observer, observing
from halocline.run.simulation.script import Script, Value
from halocline.run.simulation.settings import Setting, Settings, active
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.schemes import SCHEMES
from halocline.words import counted, joined, method


class Problem:
    """Problem file with the values of its parameters: a user's own file, or a case.

    Parameters
    ----------
    name : str
        Name of a case, or path of a file.
    n : sequence of int, optional
        Number of cells. A single number sets the cells along the first axis, and the other axes keep the
        proportions of the file. Several numbers set the cells along each axis.
    replacements : mapping of str to float or str, optional
        Parameters that differ from the defaults.
    dim : int, optional
        Number of axes, for a file that declares several with `halocline.cells`.
    order : int, optional
        Order of the differences in space, which replaces the order in the file.
    scheme : str, optional
        Time integration scheme, which replaces the scheme in the file: "euler", "rk2", "rk3", "rk3-previous",
        "rk4", "ssprk3".
    dtype : {"float64", "float32"}, optional
        Precision of the fields for which the file sets none.

    Attributes
    ----------
    name : str
        Name of the case or of the file, without its folder.
    spelling : str
        Name as the user has written it.
    script : Script
    has_settings : bool
        True for a file that declares its parameters with `halocline.setting` or `halocline.cells`. In other
        files, the numbers and texts at the top level are parameters.

    program : Program
        Statements of a step or an iteration. This attribute and the following ones belong to the first
        simulation or linear problem of the file. The file runs up to this problem.
    grid : Grid
    fields : tuple of Field
        Fields that the file has created before its first problem.
    order : int or None
        Order of the differences in space; None for a program or a linear problem.
    scheme : str or None
        Time integration scheme, or the method of a linear problem.
    is_linear : bool
        True if the file solves a linear problem.
    is_program : bool
        True for a program or a linear problem, whose differences have no single order.
    dtype : str
        Precision of the fields: "float64", "float32", or "float32 and float64".
    declared : dict of str to Setting
        Settings of the file, by name.
    known : Names
        Names that the file has defined before its first problem.

    Raises
    ------
    InputError
        There is no such file or case, the file has a syntax error, or the file rejects a name or value.

    Notes
    -----
    The file runs as with ``python FILE``. The first access to an attribute runs the file up to its first
    problem, and `run` runs it to its end. An input error in a setting is raised during these runs.

    Examples
    --------
    >>> from halocline.problems.problem import Problem
    >>> problem = Problem("alfven-decay", [16], {"nu": 0.1, "eta": 0.1})
    >>> problem.run(steps=4).record.cells
    16
    """

    # attributes of the first simulation or linear problem of the file
    program: Program
    grid: Grid
    fields: tuple[Field, ...]
    order: int | None
    scheme: str | None
    is_linear: bool
    is_program: bool
    dtype: str
    declared: Mapping[str, Setting]
    known: Names
    _sizes: Sequence[tuple[int, ...]]
    _values: Mapping[str, Any]

    def __init__(
        self,
        name: str,
        n: Sequence[int] | None = None,
        replacements: Mapping[str, float | str] | None = None,
        *,
        dim: int | None = None,
        order: int | None = None,
        scheme: str | None = None,
        dtype: str | None = None,
    ) -> None:
        file = path_of(name)
        self.spelling, self.is_file = name, is_file(name)
        self.name = file.name if self.is_file else name
        try:
            self.script = Script(file)
        except (SyntaxError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            location = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise InputError(f"{file}{location}: the file is not valid Python: {error.args[0]}") from error
        self.has_settings = self.script.has_settings
        self.n, self.dim, self.requested_order, self.requested_scheme = n, dim, order, scheme
        if dtype is not None and dtype not in DTYPES:
            raise unknown_name_error("dtype", dtype, DTYPES)
        self.requested_dtype = dtype
        self.replacements: dict[str, Any] = dict(replacements or {})
        if order is not None:
            trace.check_order(order)
        if not self.has_settings:
            if dim is not None:
                raise InputError(
                    f"--dim {dim}: the number of axes of {name} is fixed. Leave the option out, or "
                    "call hc.cells in the file."
                )
            self.replacements = self._values_of_names()

    # --- properties ---

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that depends on the first problem of the file.

        The file is run up to this problem first.
        """
        if name not in Problem.__annotations__:
            raise AttributeError(f"a problem has no attribute {name!r}")
        observer = FirstProblemObserver(self, {})
        self._execute(observer)
        if observer.problem is None:
            raise InputError(
                f"{self.script.file} creates no hc.Simulation or hc.LinearProblem and does not call hc.solve"
            )
        return self.__dict__[name]

    def store_facts(self, problem: Any) -> None:
        """Store the attributes of the first problem of the file; an observer calls this before allocation.

        Raises
        ------
        InputError
            A replaced parameter is not declared.
        """
        if self.is_known:
            return
        self.is_linear = not isinstance(problem, Simulation)
        settings = self._settings
        if self.has_settings:
            settings.check_used()
            for option, value in (("--n", self.n), ("--dim", self.dim)):
                if value is not None and not settings.sizes:
                    text = f"{value}" if isinstance(value, int) else ",".join(map(str, value))
                    raise InputError(
                        f"{option} {text}: {self.spelling} declares no cells. Leave the option out, or call "
                        "hc.cells in the file."
                    )
        elif settings.declared or settings.sizes:
            raise InputError(
                f"{self.spelling}: hc.cells or hc.setting is called under another name, which commands do "
                "not detect. Write hc.cells(...) and hc.setting(...), or import these names from halocline."
            )
        self.check_names()
        self.known = self.names
        if self.is_linear:
            self.grid, self.order, self.scheme = problem.unknown.grid, None, str(problem.method)
        else:
            self.grid = problem.grid
            self.order, self.scheme = method_of(problem, self.known.scheme_name)
        self.is_program = self.order is None
        self.fields = tuple(f for f in self.grid.fields.values() if not self.grid.is_work_field(f))
        self.dtype = dtype_of(self.fields)
        takes_dtype = any(f.has_default_dtype for f in self.fields)
        if self.requested_dtype not in (None, self.dtype) and not takes_dtype:
            raise InputError(
                f"--dtype {self.requested_dtype} has no effect: {self.spelling} sets {self.dtype} for its "
                "grid or all its fields. Leave out the option, or dtype= in the file"
            )
        self.declared, self._sizes = settings.declared, settings.sizes
        self._values = settings.values if self.has_settings else {**self.script.names, **self.replacements}
        self.program = problem.program

    @property
    def is_known(self) -> bool:
        """True if the file has run up to its first problem."""
        return "program" in self.__dict__

    @property
    def names(self) -> Names:
        """Names that commands use and that the file has defined so far.

        Names with a value of a wrong type are excluded; see `complaints`.
        """
        return self._read_names()[0]

    @property
    def complaints(self) -> dict[str, str]:
        """Complaints about names whose value has a wrong type for commands, by name."""
        return self._read_names()[1]

    def check_names(self) -> None:
        """Raise InputError for a name with a value of a wrong type, in a file with settings.

        The check takes place before the first run. A file without settings may use these names for other
        purposes.
        """
        for complaint in self.complaints.values() if self.has_settings else ():
            raise InputError(complaint)

    def _read_names(self) -> tuple[Names, dict[str, str]]:
        top, names = self.script.top, [name.name for name in fields(Names)]
        if not self.has_settings:
            names = [name for name in OF_EVERY_FILE if callable(top.get(name))]
        return names_in(top, names, self.spelling)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.grid.shape

    @property
    def sizes(self) -> dict[int, tuple[int, ...]]:
        """Default number of cells along each axis, for each number of axes that has a default."""
        return {len(size): size for size in sorted(self._sizes, key=len)}

    def default_cells(self, dim: int | None = None) -> tuple[int, ...]:
        """Return the default cells along each axis, for a number of axes.

        Raises
        ------
        InputError
            The problem does not support this number of axes.
        """
        return Settings(dim=dim).shape(self._sizes or [self.shape])

    @property
    def values(self) -> dict[str, Any]:
        """Parameters with their values."""
        return dict(self._values)

    @property
    def unit(self) -> str:
        """Name of one pass of the loop: "step" or "iteration"."""
        return "iteration" if self.is_linear else "step"

    @property
    def title(self) -> str:
        """Heading of reports."""
        if self.is_linear and self.has_settings:
            heading = f"{self.name.capitalize()} in {len(self.shape)}D, N = {self.shape[0]}"
            return joined(
                f"{heading}: {counted(self.grid.size, 'unknown')}", method(None, self.scheme, self.dtype)
            )
        cells = f"{' x '.join(f'{n:,}' for n in self.shape)} cells"
        return joined(self.name, cells, method(self.order, self.scheme, self.dtype))

    @property
    def description(self) -> tuple[str, dict[str, Any]]:
        """Title line for users, and facts for JSON."""
        facts = {
            "case": self.name,
            "shape": self.shape,
            "order": self.order,
            "scheme": self.scheme,
            "dtype": self.dtype,
            "parameters": self.values,
        }
        return f"{self.title}; a pass is {'an iteration' if self.is_linear else 'a step'}", facts

    @property
    def facts(self) -> dict[str, Any]:
        """Facts for checkpoints; see `halocline.problems.checkpointed`."""
        return {
            "name": self.name,
            "n": list(self.shape),
            "given": self.values,
            "order": self.order,
            "scheme": None if self.is_program else self.scheme,
            "dtype": self.requested_dtype or DTYPES[0],
        }

    # --- running ---

    def bench(self, *, communicator: Any = None, **execution: Any) -> StepBench:
        """Return a timer of the steps or iterations of the first problem; all ranks call this.

        Parameters
        ----------
        communicator, **execution
            Options of `halocline.Execution`, which replace the options in the file.
        """
        observer = FirstProblemObserver(self, _add_communicator(communicator, execution))
        self._execute(observer)
        return StepBench(fields_of(observer.problem), observer.problem.program)

    def run(self, arguments: Sequence[str] = (), *, communicator: Any = None, **options: Any) -> Result:
        """Run the file; all ranks call this.

        Parameters
        ----------
        arguments : sequence of str
            Arguments of the file in ``sys.argv``.
        communicator : mpi4py communicator, optional
            Communicator, which replaces the communicator in the file.
        **options
            Options of `halocline.problems.run_options.RunOptions` and of `halocline.Execution`, which replace
            the options in the file. The bits of the result do not depend on the options of `Execution`.

        Raises
        ------
        InputError
            An option has no effect on the file; see also `Problem`.
        RunError
            A value is not finite, or the run ends for a reason that is not in `ends` of the file.
        """
        known = {option.name for option in fields(RunOptions)}
        run_options = RunOptions(**{name: options.pop(name) for name in list(options) if name in known})
        observer = Following(
            self, run_options, communicator_of(communicator), _add_communicator(communicator, options)
        )
        self._execute(observer, arguments)
        runs = observer.runs
        if run_options.only is not None and runs.part is None and runs.timed_runs:
            observer.time_part(observer.problem, runs.steps)
        return result_of(observer)

    def _execute(self, observer: Observer, arguments: Sequence[str] = ()) -> None:
        """Run the file under an observer."""
        parameters = self.replacements if self.has_settings else {}
        self._settings = Settings(parameters, self.n if self.has_settings else None, self.dim)
        try:
            with observing(observer), active(self._settings), using_dtype(self.requested_dtype):
                words = arguments if self.is_file else None  # for a case, output contains the command
                self.script.run(words, None if self.has_settings else self.replacements)
        except EndedError:
            return
        except SystemExit:
            if not isinstance(observer, FirstProblemObserver):
                raise
        except HaloclineError:
            raise
        except Exception as error:
            is_of_parameters = self.has_settings and observer.problem is None
            if is_of_parameters and isinstance(error, (ArithmeticError, ValueError)):
                changed = [f"{name}={value}" for name, value in self._settings.replacements.items()]
                raise InputError(
                    f"parameters {', '.join(changed) or 'by default'} on this grid cause an error "
                    f"({error.args[-1]}); expected values for which all numbers of the problem are finite. "
                    "Choose values closer to the defaults, or other units."
                ) from error
            if not isinstance(observer, FirstProblemObserver):
                raise
            raise self._error_of_file(error) from None

    def _error_of_file(self, error: Exception) -> InputError:
        """Return an InputError with the location and message of an error in the file, in one line."""
        file = self.script.file
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(file)]
        location = f", line {lines[-1]}" if lines else ""
        return InputError(f"{file}{location}: {type(error).__name__}: {error}")

    def replace_options(self, function: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a problem in the file, with the order and the scheme of the command.

        Raises
        ------
        InputError
            The problem has a fixed order or a fixed scheme.
        """
        if function is None and self.requested_scheme is not None:
            raise InputError(
                f"--scheme {self.requested_scheme}: {self.name} is a linear problem without time steps. "
                "Leave the option out, or choose the method of the solve with --set method=NAME."
            )
        scheme_of_file = (
            self.names.scheme_name if function is not None else self._settings.values.get("method")
        )
        for option, value in (("order", self.requested_order), ("scheme", self.requested_scheme)):
            if value is not None and (function is None or isinstance(function, ProgramFunction)):
                of = f", {scheme_of_file}" if scheme_of_file else ""
                raise InputError(
                    f"{option} is {value}, but {self.name} is a program with its own scheme{of}. Leave "
                    f"{option} out."
                )
        if self.requested_scheme is not None:
            if self.requested_scheme not in SCHEMES:
                raise unknown_name_error("scheme", self.requested_scheme, list(SCHEMES))
            options["scheme"] = SCHEMES[self.requested_scheme]
        if self.requested_order is not None:
            options["order"] = self.requested_order
        return options

    def _values_of_names(self) -> dict[str, Value]:
        """Return the values of the names at the top level of a file without settings."""
        texts = {name: str(value) for name, value in self.replacements.items()}
        if self.n is not None:
            text, file = ",".join(map(str, self.n)), self.script.file
            if len(self.n) != 1:
                raise InputError(f"--n {text}: expected one number for a file without settings")
            if type(self.script.names.get(RESOLUTION)) is not int:
                raise InputError(
                    f"--n {text}: {file} sets no whole number {RESOLUTION} at its top level. Write "
                    f"{RESOLUTION} = 128 there, and create the grid with {RESOLUTION} cells along its first "
                    "axis."
                )
            texts[RESOLUTION] = text
        return self.script.values(texts)


def problem_of(
    name: str,
    n: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    *,
    method: str | None = None,
    **options: Any,
) -> Problem:
    """Return the problem for the arguments of a command line.

    Parameters
    ----------
    n : sequence of int, optional
        Cells, as for ``--n``.
    settings : sequence of str
        Values of parameters, each as for ``--set``.
    method : str, optional
        Method of a linear problem that has a setting for the method.
    **options
        Options ``dim``, ``order``, ``scheme`` and ``dtype`` of `Problem`.

    Raises
    ------
    InputError
    """
    values = settings_of(settings)
    if method is not None:
        problem = Problem(name, n, values, **options)
        if not problem.has_settings:
            raise InputError(
                f"--method {method}: {name} is a file, which sets the method itself. Leave the option out."
            )
        if not problem.is_linear:
            raise InputError(f"--method {method}: {name} is not a linear problem. Leave the option out.")
        values["method"] = method
    return Problem(name, n, values, **options)


def settings_of(settings: Sequence[str]) -> dict[str, str]:
    """Return the values of the parameters in --set, as texts by name.

    Raises
    ------
    InputError
        A setting has no value, or occurs twice.
    """
    values: dict[str, str] = {}
    for setting in settings:
        name, between, text = setting.partition("=")
        name = as_name(name, "parameter name")
        if not between:
            raise InputError(
                f"--set {setting}: expected {name}=VALUE; `halocline cases NAME` lists the parameters"
            )
        if name in values:
            raise InputError(f"--set {setting}: {name} is given twice")
        values[name] = text
    return values


def dtype_of(fields: Iterable[Field]) -> str:
    """Return the precision of fields: "float64", "float32", or "float32 and float64"."""
    return " and ".join(sorted({f.dtype for f in fields})) or "float64"


class FirstProblemObserver(FileObserver):
    """Observer that ends a file at its first problem."""

    def on_created(self, problem: Any) -> None:
        super().on_created(problem)
        raise EndedError


def _add_communicator(communicator: Any, execution: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of problems, with the communicator if there is one."""
    return dict(execution) if communicator is None else {**execution, "communicator": communicator}
