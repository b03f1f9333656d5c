"""Inspection of user functions: their names, their arguments, and the objects that they can reach.

A parameter with a default never receives a positional argument, because users bind values to such parameters,
as in ``lambda x, k=k: ...``. The only exception is a callback with a single parameter. This parameter
receives the argument even if it has a default.
"""

from __future__ import annotations

import dis
import gc
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from types import CodeType
from typing import Any

from halocline.errors import InputError
from halocline.words import counted, short_repr


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of another callable object."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def signature_of(function: Any, label: str) -> inspect.Signature | None:
    """Return the signature of a function, or None if Python does not know it, as for some built-in functions.

    Raises
    ------
    InputError
        The function cannot be called. `label` names the function in the message.
    """
    if not callable(function):
        raise InputError(f"{label} is {short_repr(function)}; expected a function")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def argument_count(function: Any, label: str, counts: Sequence[int], expected: str) -> int:
    """Return the number of positional arguments with which a function can be called.

    Parameters
    ----------
    function : callable
        A function (also of NumPy), method, ``functools.partial`` or object with ``__call__``.
    label : str
        Name of the function, for messages.
    counts : sequence of int
        Accepted numbers of arguments, in ascending order.
    expected : str
        Description of the arguments, for messages.

    Returns
    -------
    int
        Number of parameters without a default. For a function with ``*args`` or without a known signature,
        the maximum of `counts`.

    Raises
    ------
    InputError
        The function cannot be called, has another number of parameters, or requires a keyword argument.
    """
    signature, inputs = signature_of(function, label), getattr(function, "nin", None)
    if isinstance(inputs, int):  # a universal function of NumPy
        required, has_varargs = inputs, False
    elif signature is None:
        return counts[-1]
    else:
        parameters = signature.parameters.values()
        without_default = [p for p in parameters if p.default is p.empty]
        keywords = [p.name for p in without_default if p.kind is p.KEYWORD_ONLY]
        if keywords:
            raise InputError(
                f"{label} needs the keyword argument {keywords[0]!r}. Add a default, or a value with "
                "functools.partial."
            )
        required = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in without_default)
        has_varargs = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if has_varargs and required <= counts[-1]:
        return counts[-1]
    if required not in counts:
        raise InputError(
            f"{label} takes {counted(required, 'argument')} without a default; expected {expected}"
        )
    return required


def check_callback(function: Any, label: str, expected: str) -> None:
    """Check that a function can be called with one argument, even if its only parameter has a default.

    Parameters
    ----------
    function : callable
    label : str
        Name of the function, for messages.
    expected : str
        Description of the argument, for messages.

    Raises
    ------
    InputError
        The function cannot be called, has another number of parameters, or requires a keyword argument.
    """
    signature = signature_of(function, label)
    parameters = [] if signature is None else list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needs_keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if len(positional) != 1 or needs_keyword:
        argument_count(function, label, (1,), expected)


def fixed_by_partial(function: Any) -> set[str]:
    """Return the names of the keyword arguments that ``functools.partial`` binds."""
    names: set[str] = set()
    while isinstance(function, partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def rebound_arguments(function: Any) -> dict[str, int]:
    """Return the line number of the first assignment to each argument that a function rebinds."""
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
    """Yield the local names that a code object assigns, with their lines."""
    for instruction in dis.get_instructions(code):
        if not instruction.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            continue
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith("STORE_FAST_LOAD"):
            names = names[:1]
        position = instruction.positions
        for name in names:
            yield name, (position.lineno if position else None) or code.co_firstlineno


MANY = 1000  # A container with more entries is data: it is not searched for random number generators.


def reachable_objects(function: Any) -> list[Any]:
    """Return the objects that a user function can reach besides its arguments.

    The objects are closure variables, globals, defaults, entries of containers and attributes of objects.
    Attributes of classes and modules are included if their names occur in the code. The search continues in
    each function that it reaches.
    """
    names, count = {"__call__"}, 0
    objects: list[Any] = []
    while len(names) > count:  # a function found late may name an attribute of an object found earlier
        count = len(names)
        objects = _search(function, names)
    return objects


def _search(function: Any, names: set[str]) -> list[Any]:
    """Return the objects that a function reaches through attributes with the given names.

    For each function that the search reaches, it adds the names in the code of the function to `names`.
    """
    pending, visited = [function], dict[int, Any]()
    while pending:
        thing = pending.pop()
        if id(thing) not in visited:
            visited[id(thing)] = thing
            pending += _referents(thing, names)
    return [thing for thing in visited.values() if thing is not None and thing is not function]


def _referents(thing: Any, names: set[str]) -> list[Any]:
    """Return the objects that an object refers to; see `_search`."""
    if inspect.isfunction(thing):
        if _is_library(thing):
            return []
        used_names = [*_names(thing.__code__)]
        names.update(used_names)
        values = [
            thing.__globals__.get(name, sys.modules.get(name)) for name in used_names
        ]  # sys.modules: the code may import a module
        return [*values, thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
    if inspect.isclass(thing) or inspect.ismodule(thing):
        return [] if _is_library(thing) else [inspect.getattr_static(thing, name, None) for name in names]
    if isinstance(thing, (dict, list, tuple, set)) and len(thing) > MANY:
        return []
    if type(thing).__module__ in ("builtins", "functools") or not _is_library(thing):
        return gc.get_referents(thing)
    # a program holds its function as an attribute
    return [*getattr(thing, "__dict__", {}).values()] if callable(thing) else []


def _is_library(thing: Any) -> bool:
    """Return True for a function, class, module or object of Python or of an installed package."""
    if inspect.ismodule(thing):
        name = thing.__name__
    else:
        owner = thing if inspect.isfunction(thing) or inspect.isclass(thing) else type(thing)
        name = str(owner.__module__)
    root = name.partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    if root in ("halocline", "numpy", "scipy") or "site-packages" in file:
        return True
    library = os.path.dirname(os.__file__)  # a user file may have the name of a module of Python
    return root in sys.stdlib_module_names and (not file or file.startswith(library))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in a code object and in the code objects nested in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
