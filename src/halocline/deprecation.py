"""Earlier names of arguments and attributes, which are accepted with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from halocline.errors import InputError

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")


def warn_of_rename(subject: str, old: str, new: str, stacklevel: int = 2, *, file: str = "") -> None:
    """Warn that a name has been replaced.

    Parameters
    ----------
    subject : str
        Object to which the renamed argument or attribute belongs, as text for the message.
    old, new : str
        Earlier name and present name.
    stacklevel : int
        Level of the line that the warning names, as for `warnings.warn`.
    file : str
        Problem file that contains the name. The warning then names this file instead of a line of the stack.
    """
    message = f"{subject}: {old} has been renamed to {new}, and a later release rejects {old}; write {new}"
    if file:
        # by default, Python shows deprecation warnings of the main module only; so the warning names __main__
        warnings.warn_explicit(message, DeprecationWarning, file, 1, module="__main__")
    else:
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


def with_present_names(
    arguments: Mapping[str, Any], renamed: Mapping[str, str], subject: str, stacklevel: int = 2
) -> dict[str, Any]:
    """Return keyword arguments with earlier names replaced by the present ones.

    Parameters
    ----------
    arguments : mapping of str to object
    renamed : mapping of str to str
        Present name of each earlier name.
    subject : str
        Object that receives the arguments, for messages.
    stacklevel : int
        Level of the line that a warning names, as for `warnings.warn`.

    Raises
    ------
    InputError
        An argument is given under both names.
    """
    result = dict(arguments)
    for old, new in renamed.items():
        if old in result:
            if new in result:
                raise InputError(f"{subject}: {old} and {new} are the same; leave {old} out")
            warn_of_rename(subject, old, new, stacklevel + 1)
            result[new] = result.pop(old)
    return result


def accept_earlier_names(renamed: Mapping[str, str]) -> Callable[[type[C]], type[C]]:
    """Return a class decorator that accepts earlier names of keyword arguments and attributes.

    Parameters
    ----------
    renamed : mapping of str to str
        Present name of each earlier name.
    """

    def decorate(kind: type[C]) -> type[C]:
        present_init: Callable[..., None] = kind.__init__

        @wraps(present_init)
        def init(self: C, *arguments: Any, **keywords: Any) -> None:
            present_init(self, *arguments, **with_present_names(keywords, renamed, kind.__name__))

        def read_only(old: str, new: str) -> property:
            def value(self: C) -> Any:
                warn_of_rename(kind.__name__, old, new)
                return getattr(self, new)

            return property(value)

        setattr(kind, "__init__", init)  # noqa: B010
        for old, new in renamed.items():
            setattr(kind, old, read_only(old, new))
        return kind

    return decorate


def accept_earlier_argument(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for a function that accepts the earlier name of a keyword argument."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> T:
            if old not in keywords:
                return function(*arguments, **keywords)
            present: Any = with_present_names(keywords, {old: new}, function.__name__)
            return function(*arguments, **present)

        return call

    return decorate
