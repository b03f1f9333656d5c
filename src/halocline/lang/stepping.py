"""Programs of steps in time, traced from the equations and options of a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Protocol

from halocline.errors import InputError
from halocline.lang import program as lang
from halocline.lang import trace
from halocline.lang.boundary import with_wall_values
from halocline.lang.callables import name_of
from halocline.lang.clock import begin_step, reach, shorten_step
from halocline.lang.expression import Expr, as_expr, text, walk
from halocline.lang.grid import Field, Grid, Vector, unknown_name_error
from halocline.lang.location import form_at_target
from halocline.lang.origin import Line, framework_origin, is_framework, plain_function, returned_lines
from halocline.lang.values import as_quantity
from halocline.words import short_repr

TIME_STEPS = ("exact", "delayed")
BAD_STEP = "the time step is not a positive number"
# public names of the schemes in halocline.solvers
SCHEMES = ("Euler", "RK2", "RK3", "RK3Previous", "RK4", "SSPRK3")


class Scheme(Protocol):
    """Interface of a time integration scheme; see halocline.solvers.schemes."""

    def step(
        self, rhs: Callable[[float], Mapping[Field, Expr]], dt: Expr, make: Callable[[Field, str], Field]
    ) -> None:
        """Record one step."""


class Counting(Protocol):
    """Quantity that accumulates values after each step; see halocline.run.output.output.

    Attributes
    ----------
    weight : Scalar
        Total weight of the accumulated steps.
    """

    weight: lang.Scalar

    def add(self, weight: Expr) -> None:
        """Record the statements that accumulate the values after a step, with the given weight."""


@dataclass(frozen=True)
class Recorded:
    """Numbers that are computed after steps and stored in the history of the run.

    Attributes
    ----------
    steps : int
        Interval between two computations of the numbers, in steps.
    numbers : tuple of Expr
        Numbers of a row of the history, computed from the fields after a step.
    """

    steps: int
    numbers: tuple[Expr, ...]


@dataclass(frozen=True)
class Stepping:
    """Program that advances in time.

    The scalar "steps" limits the number of steps, and the last step ends at the time "until". With a
    varying time step, no step begins once the scalar `REACHED` is at least `PAUSE`; see halocline.lang.clock.

    Attributes
    ----------
    program : Program
    first : Program or None
        Program that computes the first time step, for a delayed time step.
    constant_dt : float or None
        Constant time step: the value of the scalar `CONSTANT_STEP` of halocline.lang.clock.
    has_time_step : bool
        True if the steps advance the time.
    carried_scalars : set of str
        Scalars that one step passes to the next: the user scalars that the program sets, and the weights of
        counted quantities.
    """

    program: lang.Program
    first: lang.Program | None
    constant_dt: float | None
    has_time_step: bool
    carried_scalars: frozenset[str]


def stepping(
    grid: Grid,
    function: Callable[..., Any] | lang.ProgramFunction,
    *,
    parameters: Collection[str] = (),
    scheme: Scheme | None = None,
    dt: float | Callable[..., Any] | None = None,
    time_step: str = "exact",
    order: int = 2,
    after_step: Callable[..., Any] | None = None,
    counting: Sequence[Counting] = (),
    recorded: Sequence[Recorded] = (),
) -> Stepping:
    """Return the program of a simulation, traced from its equations and options.

    The parameters that are not listed here are those of `halocline.Simulation`.

    Parameters
    ----------
    parameters : collection of str
        Names of the parameters of the simulation.
    counting : sequence of Counting
        Quantities that accumulate values after each step.
    recorded : sequence of Recorded
        Numbers in the history of a run, in the columns after the time and the step. The history has one row
        for each step. If the numbers are not computed in a step, its row repeats those of the previous row.

    Raises
    ------
    InputError
        An argument is invalid, or a function cannot be traced.
    """
    if not isinstance(time_step, str) or time_step not in TIME_STEPS:
        raise unknown_name_error("time_step", time_step, TIME_STEPS)
    if time_step == "delayed" and not callable(dt):
        raise InputError(
            f"time_step='delayed' needs a dt that is reduced over fields, such as a function that returns "
            f"hc.min(...); got dt={short_repr(dt)}"
        )
    function = lang.program_in(function) or function
    plain = function.function if isinstance(function, lang.ProgramFunction) else function
    if not callable(plain):
        raise InputError(f"equations are {function!r}; expected a function of fields and parameters")
    title = name_of(plain)
    program = lang.Program(title)
    _check_scheme(scheme)
    program.scheme = scheme
    program.parameter("until")
    steps, pause, reached = (
        program.parameter("steps"),
        program.internal_scalar("pause"),
        program.internal_scalar("t_reached"),
    )
    if isinstance(function, lang.ProgramFunction):
        has_time_step = dt is not None
    else:
        has_time_step = True
        if scheme is None:
            raise InputError(
                f"function {title!r} returns time derivatives and needs a scheme, such as scheme=hc.RK3(). "
                "If the function performs the whole step, decorate it with @hc.program."
            )
        if dt is None:
            raise InputError(
                f"function {title!r} returns time derivatives and needs a time step: dt=0.01, or a function"
            )
    constant_step = time_step_of(dt) if has_time_step and not callable(dt) else None
    first: lang.Program | None = None
    counters = lang.TIME_SCALARS if has_time_step else lang.TIME_SCALARS[1:]
    names = {n: program.parameter(n) for n in counters} | {n: lang.Scalar(n) for n in parameters}
    t, number = names["t"], names["step"]

    def bind_arguments(function: Callable[..., Any]) -> dict[str, Any]:
        arguments = lang.bind(function, grid, names)
        program.parameters |= {n: a for n, a in arguments.items() if isinstance(a, lang.Scalar)}
        return arguments

    registers: dict[tuple[Field, str], Field] = {}
    equations: dict[Field, Line] = {}  # origins of time derivatives, for fields and registers

    def register(field: Field, suffix: str) -> Field:
        key = (field, suffix)
        if key not in registers:
            registers[key] = field.like(f"{field.name}_{suffix}", homogeneous=True)
            equations[registers[key]] = equations[field]
        return registers[key]

    is_constant = constant_step is not None
    loop_end = {"limit": steps} if is_constant else {"until": reached >= pause, "limit": steps}
    recorded_scalars = [[program.unnamed_scalar("recorded") for _ in row.numbers] for row in recorded]
    record = (t, number, *chain.from_iterable(recorded_scalars)) if recorded else ()
    with trace.tracing(program), trace.order(order), lang.loop(**loop_end, record=record):
        set_next_step: Callable[[], None] | None = None
        time = time_before = None
        if has_time_step:
            step = names["dt"]
            if is_constant:
                time = begin_step(program, step, number)
            else:
                assert callable(dt)
                if time_step == "delayed":
                    next_step = program.internal_scalar("dt_next")
                    step.set(next_step)
                else:
                    with program.label_statements(_origin(dt, "time step")):
                        step.set(_time_step_scalar(trace.call(dt, **bind_arguments(dt))))
                time = shorten_step(program, t, step, step)
                lang.stop(~((step > 0.0) & (step < math.inf) & (time > t)), BAD_STEP)
                if time_step == "delayed":
                    first, value = _delayed_time_step(program, dt, bind_arguments(dt))
                    set_next_step = partial(next_step.set, value)
        arguments = bind_arguments(plain)
        if isinstance(function, lang.ProgramFunction):
            functions = [plain] if after_step is None else [plain, after_step]
            if not has_time_step and any(
                t is argument for function in functions for argument in bind_arguments(function).values()
            ):
                time_before = program.internal_scalar("t_before")
                time_before.set(t)
            with _reject_assigned_time_scalars(program, title, has_time_step):
                function.record(arguments)
        else:
            assert scheme is not None
            starts: list[lang.Scalar] = []  # time at the start of the step, if a stage needs it

            def rhs(fraction: float) -> dict[Field, Expr]:
                if fraction and not starts:
                    starts.append(program.unnamed_scalar("start"))
                    starts[0].set(t)
                if fraction:
                    t.set(starts[0] + fraction * step)
                with program.evaluation():
                    slopes = _derivatives(plain, trace.call(plain, **arguments), equations)
                    # All reductions are computed before any field changes.
                    with program.label_statements(_origin(plain, "time derivatives")):
                        return dict(zip(slopes, program.extract_reductions(*slopes.values()), strict=True))

            with program.label_statements(equations):
                scheme.step(rhs, step.expr, register)
            for start in starts:
                t.set(start)
        if set_next_step is not None:
            set_next_step()
        if time is not None:
            if not is_constant:
                reach(reached, t, time)
            t.set(time)
        number.set(number + 1.0)
        if after_step is not None:
            with _reject_assigned_time_scalars(program, "after_step", has_time_step, follows_time=True):
                (lang.program_in(after_step) or lang.ProgramFunction(after_step)).record(
                    bind_arguments(after_step), stops=True
                )
        if time_before is not None and "t" in program.assigned_scalars():
            reach(reached, time_before, t)
        # Output has separate sweeps, so that fields have the same bits with and without output.
        for quantity in counting:
            program.cut()
            quantity.add(names["dt"].expr if has_time_step else as_expr(1.0))
        for row, scalars in zip(recorded, recorded_scalars, strict=True):
            program.cut()
            with nullcontext() if row.steps == 1 else lang.every(row.steps):
                for scalar, value in zip(scalars, row.numbers, strict=True):
                    with program.label_statements(f"recorded output: {text(value, lang.SHOWN_DEPTH)}"):
                        scalar.set(lang.with_current_values(value))
    assigned_scalars = frozenset(program.assigned_scalars())
    _check_walls(program, assigned_scalars)
    weights = frozenset(quantity.weight.name for quantity in counting)
    return Stepping(
        program, first, constant_step, has_time_step or "t" in assigned_scalars, assigned_scalars | weights
    )


def time_derivatives(
    grid: Grid, function: Callable[..., Any], parameters: Collection[str], order: int
) -> dict[Field, Expr]:
    """Return the time derivatives that a plain function of equations returns, by field.

    The expressions contain no statements of a scheme. The parameters are those of `stepping`.
    """
    program = lang.Program(name_of(function))
    names = {n: program.parameter(n) for n in lang.TIME_SCALARS} | {n: lang.Scalar(n) for n in parameters}
    with trace.tracing(program), trace.order(order), program.evaluation():
        arguments = lang.bind(function, grid, names)
        return _derivatives(function, trace.call(function, **arguments), {})


@contextmanager
def _reject_assigned_time_scalars(
    program: lang.Program, name: str, has_time_step: bool, *, follows_time: bool = False
) -> Iterator[None]:
    """Check that user statements do not set the scalars that count time and steps.

    The check applies to the statements that are recorded in this context.

    Parameters
    ----------
    name : str
        Name of the function that records the statements.
    has_time_step : bool
        True if a time step is given.
    follows_time : bool
        True if the statements follow the statements that advance the time.

    Raises
    ------
    InputError
        A statement sets "step". If a time step is given: a statement sets "dt", or a statement sets "t" after
        the statements that advance the time.
    """
    count = sum(1 for _ in program.all_statements())
    yield
    statements = islice(program.all_statements(), count, None)
    names = {s.scalar.name for s in statements if isinstance(s, lang.AssignScalar)}
    if "step" in names:
        raise InputError(
            f"{name!r} sets step, which counts the steps of the run; use a scalar of another name"
        )
    if has_time_step and "dt" in names:
        raise InputError(
            f"{name!r} sets dt, the time step of the run; give a function as dt=, such as "
            "dt=lambda u: 0.4 * hc.min(h / abs(u)), or use a scalar of another name"
        )
    if has_time_step and "t" in names:
        if follows_time:
            raise InputError(f"{name!r} sets t, which advances by dt; use a scalar of another name")
        program.notices.append(
            f"program {name} sets t, but each step adds dt to t and overwrites this value. Leave out either "
            "dt= or this statement."
        )


def _delayed_time_step(
    program: lang.Program, dt: Any, arguments: dict[str, Any]
) -> tuple[lang.Program, Expr]:
    """Return a program that computes the first time step, and an expression for the next time step.

    This function also records statements that compute the reductions in the expression from the present
    fields. The expression itself is evaluated at the end of the step.
    """
    stored_arguments = dict(arguments)
    for name, argument in arguments.items():
        if isinstance(argument, lang.Scalar) and name in lang.TIME_SCALARS:
            stored_arguments[name] = program.unnamed_scalar(name)
            stored_arguments[name].set(argument)
    first = lang.Program("first_time_step")
    first.scheme = program.scheme
    label = _origin(dt, "time step")
    with trace.tracing(first), first.label_statements(label):
        first.internal_scalar("dt_next").set(_time_step_scalar(trace.call(dt, **arguments)))
    with program.label_statements(label):
        (value,) = program.extract_reductions(_time_step_scalar(trace.call(dt, **stored_arguments)))
    return first, value


def _check_scheme(scheme: Any) -> None:
    """Raise InputError if the scheme is a text, a class or another value that is not a scheme."""
    if scheme is None or (not isinstance(scheme, type) and callable(getattr(scheme, "step", None))):
        return
    name = scheme if isinstance(scheme, str) else getattr(scheme, "__name__", "")
    known = {scheme_name.lower(): scheme_name for scheme_name in SCHEMES}
    match = known.get(name.lower().removesuffix("()").removeprefix("hc."))
    advice = f"; write scheme=hc.{match}()" if match else ""
    raise InputError(
        f"scheme is {short_repr(scheme)}; expected a time integration scheme, such as "
        f"{', '.join(f'hc.{scheme_name}()' for scheme_name in SCHEMES)}{advice}"
    )


def _check_walls(program: lang.Program, changing: Collection[str]) -> None:
    """Raise InputError if the value of points on a wall depends on a scalar that the program changes.

    Such a value would be ambiguous: the statements that set these points may come before or after the
    change.
    """
    assigned = dict.fromkeys(
        f for s in program.all_statements() if isinstance(s, lang.Assign) for f in s.values
    )
    for field in assigned:
        leaves = walk((with_wall_values(field, as_expr(0.0)),))
        names = sorted({leaf.attribute[0] for leaf in leaves if leaf.op == "scalar"} & {*changing})
        if names:
            raise InputError(
                f"points of field {field.name!r} lie on a wall. The value on this wall reads {names[0]}, "
                "which changes while the program runs; expected a value of numbers, parameters and "
                "coordinates, or a field whose points do not lie on the wall"
            )


def _time_step_scalar(value: Any) -> Expr:
    """Return a time step as a scalar expression."""
    number = as_expr(value, "dt")
    if number.varies:
        raise InputError("dt varies from cell to cell; reduce it with hc.min")
    return number


def time_step_of(dt: Any) -> float:
    """Return a time step as a number.

    Raises
    ------
    InputError
        `dt` is not a positive, finite number.
    """
    number = as_quantity(dt)
    if number is None or not (math.isfinite(number) and number > 0):
        raise InputError(f"dt is {short_repr(dt)}; expected a positive number, or a function of fields")
    return number


def _origin(function: Callable[..., Any], description: str) -> Line:
    """Return the origin of the value of a function; `description` for a function of the framework."""
    lines = returned_lines(function)
    return framework_origin(description) if lines is None else lines[0]


def _derivatives(function: Callable[..., Any], result: Any, origins: dict[Field, Line]) -> dict[Field, Expr]:
    """Return the time derivatives of all fields, and add their origins to `origins`."""
    if not isinstance(result, Mapping) or not result:
        raise InputError(
            f"function {name_of(function)!r} returned {result!r}; expected a mapping of fields to time "
            "derivatives, such as "
            "{T: kappa * hc.laplacian(T)}"
        )
    for target in result:
        if not isinstance(target, (Field, Vector)):
            raise InputError(
                f"function {name_of(function)!r} returned a derivative of {target!r}; keys must be fields"
            )
    plain = plain_function(function)
    is_from_framework = plain is not None and is_framework(plain.__module__)
    words = (
        getattr(plain, "labels", {}) if is_from_framework else {}
    )  # labels of equations, by the name of the field
    lines = returned_lines(function, len(result)) or [
        framework_origin(words.get(target.name, f"time derivative of {target.name}")) for target in result
    ]
    for target, line in zip(result, lines, strict=True):
        origins |= dict.fromkeys(target if isinstance(target, Vector) else (target,), line)
    return {field: _slope_at_points(field, value) for field, value in lang.by_field(result)}


def _slope_at_points(target: Field, value: Any) -> Expr:
    """Return the time derivative of a field, formed at the points of the field."""
    return form_at_target(as_expr(value), target.staggered, f"the time derivative of field {target.name!r}")
