"""Origins of statements: lines of user files, and labels of statements that the framework records."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import PurePath
from types import CodeType, FrameType, FunctionType
from typing import Any

PACKAGE = __name__.partition(".")[0]
LANGUAGE = __name__.rpartition(".")[0]
STEPPING = f"{LANGUAGE}.stepping"  # module that records statements of the framework
CASES = "cases"  # package of problem files, which count as user files


@dataclass(frozen=True)
class Line:
    """Origin of a statement.

    Attributes
    ----------
    file : str
        Path of the user file; empty if the framework records the statement.
    number : int
        Line number in the file, from 1.
    description : str
        Label that replaces the text of the line: an entry of a mapping, or a description by the framework.
    """

    file: str
    number: int
    description: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.file else self.description

    @property
    def text(self) -> str:
        """Label or source text of the statement; empty if there is no source text."""
        return self.description or linecache.getline(self.file, self.number).strip()

    @property
    def label(self) -> str:
        """Text of the statement, followed by the name of the user file and the line number."""
        place = f"{PurePath(self.file).name}:{self.number}" if self.file else ""
        return f"{self.text}  ({place})" if self.text and place else self.text or place


def framework_origin(description: str) -> Line:
    """Return the origin of a statement that the framework records."""
    return Line("", 0, description)


def is_framework(module: Any) -> bool:
    """Return True for the name of a module of the package that is not a problem file."""
    package, *inner = str(module).split(".")
    return package == PACKAGE and inner[:1] != [CASES]


def calling_frames() -> Iterator[FrameType]:
    """Yield the stack frames in halocline.lang, innermost first, and then the frame of their caller."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        module = str(frame.f_globals.get("__name__"))
        frame = frame.f_back if module.startswith(LANGUAGE) and module != STEPPING else None


def calling_line() -> Line | None:
    """Return the user line that calls halocline.lang, or None if the caller belongs to the framework."""
    for frame in calling_frames():  # a list of frames is a reference cycle, which keeps fields in memory
        caller = frame
    if is_framework(caller.f_globals.get("__name__", "")):
        return None
    return Line(caller.f_code.co_filename, caller.f_lineno)


def plain_function(function: Any) -> FunctionType | None:
    """Return the Python function of a method, partial, decorated function or callable object."""
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = inspect.getattr_static(type(function), "__call__", None)
    function = inspect.unwrap(getattr(function, "__func__", function))
    return function if isinstance(function, FunctionType) else None


def returned_lines(function: Any, count: int = 1) -> list[Line] | None:
    """Return the origins of the values that a user function returns.

    Parameters
    ----------
    function : callable
    count : int
        Number of entries of the mapping that the function returned.

    Returns
    -------
    list of Line or None
        Origin of each entry. If a return statement contains a mapping with `count` entries, the origins are
        these entries. Otherwise, each origin is the last return statement, or the first line of a function
        without source text. None for a function of the framework, or a function without code.
    """
    plain = plain_function(function)
    if plain is None or is_framework(plain.__globals__.get("__name__", "")):
        return None
    code = plain.__code__
    lines = [Line(code.co_filename, code.co_firstlineno)] * count
    for number, value_text in _returned_values(code):
        is_lambda = code.co_name == "<lambda>"
        statement = Line(code.co_filename, number, " ".join(value_text.split()) if is_lambda else "")
        lines = _entries(statement, value_text, count) or [statement] * count
    return lines


def _returned_values(code: CodeType) -> Iterator[tuple[int, str]]:
    """Yield the line number and the source text of each value that a code object returns, in code order.

    The text is empty if there is no source.
    """
    rows = linecache.getlines(code.co_filename)
    for value, following in pairwise(dis.get_instructions(code)):
        place = value.positions  # column offsets count bytes
        if not following.opname.startswith("RETURN_VALUE") or place is None or place.lineno is None:
            continue
        text = [row.encode() for row in rows[place.lineno - 1 : place.end_lineno]]
        if text:
            text[-1] = text[-1][: place.end_col_offset]
            text[0] = text[0][place.col_offset :]
        yield place.lineno, b"".join(text).decode(errors="replace")


def _entries(statement: Line, returned: str, count: int) -> list[Line] | None:
    """Return the entries of a mapping that a statement returns; None if their number is not `count`."""
    try:
        value = ast.parse(returned, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(value, ast.Dict) or len(value.keys) != count:
        return None
    lines = []
    for key, entry in zip(value.keys, value.values, strict=True):
        if key is None:
            return None
        words = f"{ast.get_source_segment(returned, key)}: {ast.get_source_segment(returned, entry)}"
        lines.append(Line(statement.file, statement.number + key.lineno - 1, " ".join(words.split())))
    return lines
