"""State of tracing: the program that is being recorded, and the versions of its fields.

For each read of a field, an expression stores the number of the latest assignment to this field. Therefore,
`e = u + 1; u.set(...); v.set(e)` has the same meaning as in NumPy. If an expression reads a value that no
longer exists, the compiler can report this.
"""

from __future__ import annotations

import importlib
import math
import sys
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from halocline.errors import HaloclineError, InputError
from halocline.lang.advice import CombinesPointsError
from halocline.lang.axes import whole_number
from halocline.lang.callables import argument_count, name_of, reachable_objects
from halocline.lang.expression import Expr, as_expr, node, without_location
from halocline.lang.origin import is_framework
from halocline.ranges import ORDER
from halocline.words import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from halocline.lang.program import Program

V = TypeVar("V")

# Marks the names of internal scalars and fields: no user name can contain it.
INTERNAL = "'"

_program: ContextVar[Program | None] = ContextVar("program", default=None)
_order: ContextVar[int] = ContextVar("order", default=2)


def version(thing: Any) -> int:
    """Return the version of a field or scalar in the program that is being traced; see `Program.version`."""
    program = _program.get()
    return 0 if program is None else program.version(thing)


def active() -> Program | None:
    """Return the program that is being traced, or None if there is none."""
    return _program.get()


def current(label: str) -> Program:
    """Return the program that is being traced; raise InputError if there is none.

    Parameters
    ----------
    label : str
        Statement that requires a program, for the message.
    """
    program = _program.get()
    if program is None:
        raise InputError(
            f"{label} is a statement of a program: use it inside a function decorated with @hc.program"
        )
    return program


@contextmanager
def setting(variable: ContextVar[V], value: V) -> Iterator[V]:
    """Set a context variable in a with block."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def tracing(program: Program) -> AbstractContextManager[Program]:
    """Set the program to which the statements in a with block are added."""
    return setting(_program, program)  # type: ignore[arg-type]


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the result of a user function.

    Raises
    ------
    InputError
        The function raises an error that is not a HaloclineError. The original error, with the user line in
        its traceback, is the cause of the InputError. Or the function draws random numbers of Python or
        NumPy, which would become constants.
    """
    with _without_draws(function):
        return attempt(function, *arguments, **named)


def attempt(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the result of a user function, without the check for random numbers; see `call`."""
    try:
        return function(*arguments, **named)
    except HaloclineError:
        raise
    except Exception as error:
        raise InputError(f"function {name_of(function)!r} raised {error!r}{_line_of(error)}") from error


def _line_of(error: Exception) -> str:
    """Return the user line at which an error was raised, as " at file:line"."""
    step, place = error.__traceback__, ""
    while step is not None:
        code, module = step.tb_frame.f_code, str(step.tb_frame.f_globals.get("__name__"))
        known = is_framework(module) or module.partition(".")[0] == "numpy"
        if not known and not code.co_filename.startswith("<"):
            place = f" at {code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return place


@contextmanager
def _without_draws(function: Callable[..., Any]) -> Iterator[None]:
    """Raise InputError if a random number generator that a function can reach changes its state."""
    states = _generator_states(function)
    before = [state() for state in states]
    yield
    if [state() for state in states] != before:
        raise InputError(
            f"function {name_of(function)!r} draws random numbers while it is traced, and these numbers "
            "stay constant. Use hc.random(seed, index=grid.cell_number()), which returns one number per cell."
        )


def _generator_states(function: Callable[..., Any]) -> list[Callable[[], Any]]:
    """Return functions that return the states of random number generators.

    These are the global generators of Python and NumPy, and all other generators that `function` can reach.
    """
    objects = reachable_objects(function)
    if "numpy" in sys.modules and objects:
        importlib.import_module("numpy.random")  # the import itself draws random numbers
    states: list[Callable[[], Any]] = []
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    kinds: tuple[type, ...] = ()
    if python is not None:
        kinds += (python.Random,)
        states.append(python.getstate)
    if numpy is not None:
        kinds += (numpy.Generator, numpy.RandomState)
        states.append(lambda: _pickled(numpy.get_state(legacy=False)))
    return states + [partial(_pickled, thing) for thing in objects if isinstance(thing, kinds)]


def _pickled(state: Any) -> bytes:
    """Return a state as bytes; empty for a generator without a state, such as ``random.SystemRandom``."""
    import pickle

    try:
        return pickle.dumps(state)
    except Exception:
        return b""


def try_function(function: Callable[..., Any], coordinates: Sequence[Expr], label: str) -> Expr | Exception:
    """Return the expression of a function of the coordinates, or the error that prevents tracing.

    The function is called twice, to detect values that depend on more than the arguments.

    Parameters
    ----------
    function : callable
    coordinates : sequence of Expr
    label : str
        Name of the function, for messages.

    Raises
    ------
    InputError
        The function has other parameters, returns None, or returns another value in the second call. The
        function draws random numbers, combines the values of several points, or raises an error that tracing
        does not cause.
    """
    count = len(coordinates)
    argument_count(function, label, (count,), f"the {count} coordinates" if count > 1 else "the coordinate")
    with _without_draws(function):
        try:
            values = [attempt(function, *coordinates) for _ in range(2)]
            expression, repeated = (
                as_expr(math.nan if value is None else value, f"the value of {label}") for value in values
            )
        except InputError as error:
            cause = error.__cause__
            if isinstance(error, CombinesPointsError):
                raise InputError(f"{label} {COMBINES_POINTS} ({error})") from None
            if cause is None:
                return error
            if isinstance(cause, (TypeError, AttributeError)) and "Expr" in str(cause):
                return cause
            raise
    if values[0] is None:
        raise InputError(f"{label} {RETURNS_NONE}")
    if not _is_same(expression, repeated):
        raise InputError(f"{label} {OTHER_VALUES}")
    return expression


def _is_same(a: Expr, b: Expr) -> bool:
    """Return True if two expressions have the same formula and can be evaluated at the same locations."""
    places = [None if e.placement is None else e.placement.places for e in (a, b)]
    return without_location(a).digest == without_location(b).digest and places[0] == places[1]


def trace_function(function: Callable[..., Any], coordinates: Sequence[Expr], label: str) -> Expr:
    """Return the expression of a function of the coordinates; see `try_function`.

    Raises
    ------
    InputError
        `try_function` raises InputError, or the function cannot be traced.
    """
    result = try_function(function, coordinates, label)
    if isinstance(result, InputError):
        raise result
    if isinstance(result, Exception):
        raise InputError(f"function {name_of(function)!r} raised {result!r}") from result
    return result


COMBINES_POINTS = (
    "combines values of several points; expected one value per point. Compute such a number outside of the "
    "function."
)
RETURNS_NONE = "returns None; expected a value: does it lack a return statement?"
OTHER_VALUES = (
    "returns other values in a second call; expected a function of the coordinates alone. For random "
    "numbers use hc.random(seed, index=grid.cell_number())"
)


def scalar(name: str, at: int = 0) -> Expr:
    """Return the expression of a scalar of the program; `at` is the version of its value."""
    return node("scalar", (), (name, at), key=(name, at), label=f"{name}|{at}".encode())


def default_order() -> int:
    """Return the default order of accuracy of differences."""
    return _order.get()


def order(accuracy: int) -> AbstractContextManager[int]:
    """Set the order of accuracy of all differences that are traced in a with block.

    Parameters
    ----------
    accuracy : int
        Even order: 2, 4, 6, ...
    """
    return setting(_order, check_order(accuracy))


def check_order(accuracy: Any) -> int:
    """Return an order of central differences as an int, or raise InputError for any other value."""
    order = whole_number(accuracy)
    if order is None or not ORDER.least <= order <= ORDER.most or order % 2:
        raise InputError(
            f"order {short_repr(accuracy)} is not an order of central differences: expected 2, 4, 6, 8 or "
            f"any even number up to {ORDER.most}"
        )
    return order
