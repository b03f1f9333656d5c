"""Functions that users give: their names, and the arguments that they take.

A parameter with a default never receives a positional argument: it is an option of the user's, such as
``lambda x, k=k: ...``. Only a callback whose one parameter has a default receives it.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any

from halocline.errors import InputError
from halocline.words import counted


def name_of(function: Any) -> str:
    """Return the name of a function; of an object that can be called that of its class."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def signature_of(function: Any, what: str) -> inspect.Signature | None:
    """Return the signature of a function; None where Python knows none, as for some built-in functions.

    Raises
    ------
    InputError
        It cannot be called; `what` is its name in the message.
    """
    if not callable(function):
        raise InputError(f"{what} is {function!r}; expected a function")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def arguments_taken(function: Any, what: str, counts: Sequence[int], expected: str) -> int:
    """Return the number of positional arguments to call a function with.

    Parameters
    ----------
    function : callable
        A function, method, ``functools.partial`` or object with ``__call__``; functions of NumPy too.
    what : str
        Name of the function, for messages.
    counts : sequence of int
        Numbers of arguments that are possible, in ascending order.
    expected : str
        The arguments in words.

    Returns
    -------
    int
        The number of parameters without a default; the greatest of `counts` for a function with ``*args`` and
        where no signature is known.

    Raises
    ------
    InputError
        It cannot be called, takes another number of arguments, or needs one by keyword.
    """
    signature, inputs = signature_of(function, what), getattr(function, "nin", None)
    if isinstance(inputs, int):  # a universal function of NumPy
        required, any_more = inputs, False
    elif signature is None:
        return counts[-1]
    else:
        parameters = signature.parameters.values()
        needed = [p for p in parameters if p.default is p.empty]
        by_keyword = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
        if by_keyword:
            raise InputError(
                f"{what} needs the keyword argument {by_keyword[0]!r}; give it a default, or a value by "
                "functools.partial"
            )
        required = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed)
        any_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if any_more and required <= counts[-1]:
        return counts[-1]
    if required not in counts:
        raise InputError(
            f"{what} takes {counted(required, 'argument')} without a default; expected {expected}"
        )
    return required


def check_callback(function: Any, what: str, expected: str) -> None:
    """Check that a function can be called with one argument, also where its only parameter has a default.

    Parameters
    ----------
    function : callable
    what : str
        Name of the function, for messages.
    expected : str
        The argument in words.

    Raises
    ------
    InputError
        It cannot be called, takes another number of arguments, or needs one by keyword.
    """
    signature = signature_of(function, what)
    parameters = [] if signature is None else list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if len(positional) != 1 or by_keyword:
        arguments_taken(function, what, (1,), expected)


def fixed_by_partial(function: Any) -> set[str]:
    """Return the names of the keyword arguments that ``functools.partial`` has given values."""
    names: set[str] = set()
    while isinstance(function, partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def rebound_arguments(function: Any) -> dict[str, int]:
    """Return the arguments that a function assigns by ``name = ...``, with the line of the first one."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return {}
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lines: dict[str, int] = {}
    for name, line in _stores(code):
        if name in arguments:
            lines.setdefault(name, line)
    return lines


def _stores(code: Any) -> Iterator[tuple[str, int]]:
    """Yield the local names that instructions assign, with their lines."""
    for instruction in dis.get_instructions(code):
        if not instruction.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            continue
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith("STORE_FAST_LOAD"):
            names = names[:1]
        position = instruction.positions
        for name in names:
            yield name, (position.lineno if position else None) or code.co_firstlineno


MANY = 1000  # entries of a container that holds data, and no generators of random numbers


def captured(function: Any) -> list[Any]:
    """Return the objects that a user's function can reach besides its arguments.

    They are those of closures, globals and defaults, entries of containers, and of objects, classes and
    modules the attributes that the text names. Functions among them lead further.
    """
    names, known = {"__call__"}, 0
    found: list[Any] = []
    while len(names) > known:  # a function that is reached late may name an attribute of an earlier object
        known = len(names)
        found = _reached(function, names)
    return found


def _reached(function: Any, names: set[str]) -> list[Any]:
    """Return what a function reaches by attributes of these names, and add the names in functions on the
    way."""
    waiting, seen = [function], dict[int, Any]()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen[id(found)] = found
        if isinstance(found, partial):
            waiting += [found.func, *found.args, *found.keywords.values()]
        elif inspect.isfunction(found):
            if not _is_library(found):
                names.update(_names(found.__code__))
                waiting += _read_by(found)
        elif inspect.ismethod(found):
            waiting += [found.__func__, found.__self__]
        elif inspect.isbuiltin(found):
            waiting.append(found.__self__)
        elif isinstance(found, (dict, list, tuple, set)):
            if len(found) <= MANY:
                waiting.extend(found.values() if isinstance(found, dict) else found)  # not Vector's `+=`
        elif not _is_library(found):
            waiting += _attributes(found, names)
        elif callable(found) and not inspect.isclass(found):
            waiting += getattr(found, "__dict__", {}).values()  # a program or a cache holds a function
    del seen[id(function)]
    return list(seen.values())


def _is_library(thing: Any) -> bool:
    """Return whether a function, class, module or object is of Python itself or installed."""
    if inspect.ismodule(thing):
        name = thing.__name__
    else:
        named = thing if inspect.isfunction(thing) or inspect.isclass(thing) else type(thing)
        name = str(named.__module__)
    root = name.partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    if root in ("halocline", "numpy", "scipy") or "site-packages" in file:
        return True
    own = os.path.dirname(os.__file__)  # a file of the user's may have the name of a module of Python
    return root in sys.stdlib_module_names and (not file or file.startswith(own))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes in the text of a function, and of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _read_by(function: FunctionType) -> Iterator[Any]:
    """Yield the objects that the text of a function names, and its defaults."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
        elif name in sys.modules:  # which the function imports
            yield sys.modules[name]
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _attributes(thing: Any, names: Iterable[str]) -> Iterator[Any]:
    """Yield attributes of an object, class or module, and the functions behind them, without calling any."""
    for name in names:
        found = inspect.getattr_static(thing, name, None)
        if isinstance(found, MemberDescriptorType) and not inspect.isclass(thing):
            found = getattr(thing, name, None)
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, (classmethod, staticmethod)):
            found = found.__func__
        elif isinstance(found, cached_property):
            found = found.func
        yield found
