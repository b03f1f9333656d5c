"""What is being traced now: the program under construction and the versions of its fields.

An expression remembers which assignment of a field it reads. So `e = u + 1; u.set(...); v.set(e)` means
what it means in NumPy, and where that value is gone the compiler can say so.
"""

from __future__ import annotations

import importlib
import math
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from halocline.errors import HaloclineError, InputError
from halocline.lang.axes import whole
from halocline.lang.callables import arguments_taken, captured, name_of
from halocline.lang.expression import Expr, as_expr, bare, node
from halocline.ranges import ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from halocline.lang.program import Program

# In the names of scalars and fields that are internal: no name of the user's can hold it.
OWN = "'"

_program: ContextVar[Program | None] = ContextVar("program", default=None)
_order: ContextVar[int] = ContextVar("order", default=2)


def version(thing: Any) -> int:
    """The version of a field or scalar in the program that is being traced; see Program.version."""
    program = _program.get()
    return 0 if program is None else program.version(thing)


def active() -> Program | None:
    """The program that is being traced, if one is."""
    return _program.get()


def current(what: str) -> Program:
    """The program that is being traced."""
    program = _program.get()
    if program is None:
        raise InputError(
            f"{what} is a statement of a program: use it inside a function decorated with @hc.program"
        )
    return program


@contextmanager
def tracing(program: Program) -> Iterator[Program]:
    """Make `program` the one that statements are added to."""
    token = _program.set(program)
    try:
        yield program
    finally:
        _program.reset(token)


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a function of the user's returns.

    Raises
    ------
    InputError
        The function raised something that is not an error of ours; that is the error's cause, with the
        user's line in its traceback. Or it drew random numbers of Python or NumPy, which would be constants.
    """
    with _without_draws(function):
        return attempt(function, *arguments, **named)


def attempt(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a function of the user's returns, without looking for random numbers; see `call`."""
    try:
        return function(*arguments, **named)
    except HaloclineError:
        raise
    except Exception as error:
        raise InputError(f"function {name_of(function)!r} raised {error!r}") from error


@contextmanager
def _without_draws(function: Callable[..., Any]) -> Iterator[None]:
    """Raise InputError where a random number generator that the function can reach changes its state."""
    generators = _generators(function)
    before = [state() for state in generators]
    yield
    if [state() for state in generators] != before:
        raise InputError(
            f"function {name_of(function)!r} draws random numbers while it is traced, which would stay "
            "constant; use hc.random(seed, index=grid.cell_number()), which gives one for each cell"
        )


def _generators(function: Callable[..., Any]) -> list[Callable[[], bytes]]:
    """Return functions that give the states of the random number generators of Python and NumPy, and of those
    that a function can reach."""
    reached = captured(function)
    if "numpy" in sys.modules and reached:
        importlib.import_module("numpy.random")  # which draws numbers for itself when it is loaded
    states: list[Callable[[], bytes]] = []
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    kinds: tuple[type, ...] = ()
    if python is not None:
        kinds += (python.Random,)
        states.append(lambda: _pickled(python.getstate()))
    if numpy is not None:
        kinds += (numpy.Generator, numpy.RandomState)
        states.append(lambda: _pickled(numpy.get_state(legacy=False)))
    return states + [partial(_pickled, found) for found in reached if isinstance(found, kinds)]


def _pickled(state: Any) -> bytes:
    """Return the bytes of a state; none for a generator without one, such as ``random.SystemRandom``."""
    import pickle

    try:
        return pickle.dumps(state)
    except Exception:
        return b""


def try_function(function: Callable[..., Any], coordinates: Sequence[Expr], what: str) -> Expr | Exception:
    """Return the expression of a function of the coordinates, or the reason why it cannot be traced.

    The function is called twice: one that is no function of its arguments gives another value then.

    Parameters
    ----------
    function : callable
    coordinates : sequence of Expr
    what : str
        Name of the function, for messages.

    Raises
    ------
    InputError
        It takes other arguments, returns None, gives another value when it is called again, draws random
        numbers, or raises an error that has nothing to do with tracing.
    """
    count = len(coordinates)
    arguments_taken(function, what, (count,), f"the {count} coordinates" if count > 1 else "the coordinate")
    with _without_draws(function):
        try:
            value, again = (attempt(function, *coordinates) for _ in range(2))
            expression, repeated = (
                as_expr(math.nan if each is None else each, f"the value of {what}") for each in (value, again)
            )
        except InputError as error:
            cause = error.__cause__
            if cause is None:
                return error
            if isinstance(cause, (TypeError, AttributeError)) and "Expr" in str(cause):
                return cause
            raise
    if value is None:
        raise InputError(f"{what} {RETURNS_NONE}")
    if not _same(expression, repeated):
        raise InputError(f"{what} {OTHER_VALUES}")
    return expression


def _same(a: Expr, b: Expr) -> bool:
    """Return whether two expressions are one formula, and can be formed at the same locations."""
    places = [None if e.placement is None else e.placement.places for e in (a, b)]
    return bare(a).digest == bare(b).digest and places[0] == places[1]


def trace_function(function: Callable[..., Any], coordinates: Sequence[Expr], what: str) -> Expr:
    """Return the expression of a function of the coordinates; see `try_function`.

    Raises
    ------
    InputError
        The function cannot be traced either.
    """
    found = try_function(function, coordinates, what)
    if isinstance(found, InputError):
        raise found
    if isinstance(found, Exception):
        raise InputError(f"function {name_of(function)!r} raised {found!r}") from found
    return found


RETURNS_NONE = "returns None; expected a value: does it lack a return statement?"
OTHER_VALUES = (
    "gives other values when it is called again; expected a function of the coordinates alone. For random "
    "numbers use hc.random(seed, index=grid.cell_number())"
)


def scalar(name: str, at: int = 0) -> Expr:
    """A run-time number of the program, the same in every cell."""
    return node("scalar", (), (name, at), key=(name, at), label=f"{name}|{at}".encode())


def default_order() -> int:
    """Order of accuracy of differences where none is given."""
    return _order.get()


@contextmanager
def order(accuracy: int) -> Iterator[None]:
    """Set the order of accuracy of all differences traced inside the block.

    Parameters
    ----------
    accuracy : int
        Even: 2, 4, 6, ...
    """
    check_order(accuracy)
    token = _order.set(accuracy)
    try:
        yield
    finally:
        _order.reset(token)


def check_order(accuracy: Any) -> int:
    """The order as an int, where it is one that central differences have."""
    order = whole(accuracy)
    if order is None or not ORDER.least <= order <= ORDER.most or order % 2:
        raise InputError(
            f"order {accuracy!r} is not an order of central differences: expected 2, 4, 6, 8 or any even "
            f"number up to {ORDER.most}"
        )
    return order
