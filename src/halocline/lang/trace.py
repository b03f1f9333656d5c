"""What is being traced now: the program under construction and the versions of its fields.

An expression remembers which assignment of a field it reads. So `e = u + 1; u.set(...); v.set(e)` means
what it means in NumPy, and where that value is gone the compiler can say so.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from halocline.errors import HaloclineError, InputError
from halocline.lang.expression import Expr, node
from halocline.ranges import ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    """What a function of the user's returns.

    Raises
    ------
    InputError
        The function raised something that is not an error of ours; that is the error's cause, with the
        user's line in its traceback.
    """
    try:
        return function(*arguments, **named)
    except HaloclineError:
        raise
    except Exception as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise InputError(f"function {name!r} raised {error!r}") from error


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
    whole = isinstance(accuracy, int) and not isinstance(accuracy, bool)
    if not whole or not ORDER.least <= accuracy <= ORDER.most or accuracy % 2:
        raise InputError(
            f"order {accuracy!r} is not an order of central differences: expected 2, 4, 6, 8 or any even "
            f"number up to {ORDER.most}"
        )
    return int(accuracy)
