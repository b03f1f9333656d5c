"""Origins of statements: lines of the user's files, and words for what the framework records itself."""

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
STEPPING = f"{LANGUAGE}.stepping"  # records statements of its own
CASES = "cases"  # package of problem files, which are written as a user writes them


@dataclass(frozen=True)
class Line:
    """Origin of a statement.

    Attributes
    ----------
    file : str
        Path of the user's file; empty where the framework records the statement.
    number : int
        Line in that file, from 1.
    words : str
        Label in place of the text of the line: an entry of a mapping, or words for what the framework does.
    """

    file: str
    number: int
    words: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.file else self.words

    @property
    def text(self) -> str:
        """Text of the statement, or words for what it does; empty where there is no source text."""
        return self.words or linecache.getline(self.file, self.number).strip()

    @property
    def label(self) -> str:
        """Text of the statement, followed by the name of the user's file and the line."""
        place = f"{PurePath(self.file).name}:{self.number}" if self.file else ""
        return f"{self.text}  ({place})" if self.text and place else self.text or place


def worded(words: str) -> Line:
    """Return the origin of a statement that the framework records."""
    return Line("", 0, words)


def is_framework(module: Any) -> bool:
    """Return True for the name of a module of the package that is not a problem file."""
    package, *inner = str(module).split(".")
    return package == PACKAGE and inner[:1] != [CASES]


def calling_frames() -> Iterator[FrameType]:
    """Yield the frames of the language, innermost first, and the frame that calls it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        module = str(frame.f_globals.get("__name__"))
        frame = frame.f_back if module.startswith(LANGUAGE) and module != STEPPING else None


def calling_line() -> Line | None:
    """Return the line that calls the language; None where the framework calls it."""
    for frame in calling_frames():  # a list of them would be a cycle, which keeps fields in memory
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
    """Return the origins of the values that a function of the user returns.

    Parameters
    ----------
    function : callable
    count : int
        Number of entries of the mapping that it returned.

    Returns
    -------
    list of Line or None
        An origin for each entry. They differ where a return statement holds a mapping with `count` entries;
        otherwise each is the last return statement, or the first line of a function without source text.
        None for a function of the framework, or without code.
    """
    plain = plain_function(function)
    if plain is None or is_framework(plain.__globals__.get("__name__", "")):
        return None
    code = plain.__code__
    lines = [Line(code.co_filename, code.co_firstlineno)] * count
    for number, returned in _returned_values(code):
        is_lambda = code.co_name == "<lambda>"
        statement = Line(code.co_filename, number, " ".join(returned.split()) if is_lambda else "")
        lines = _entries(statement, returned, count) or [statement] * count
    return lines


def _returned_values(code: CodeType) -> Iterator[tuple[int, str]]:
    """Yield the line and the source text of each value that a code object returns, in the order of its code.

    The text is empty where there is no source.
    """
    rows = linecache.getlines(code.co_filename)
    for value, following in pairwise(dis.get_instructions(code)):
        place = value.positions  # columns count bytes
        if not following.opname.startswith("RETURN_VALUE") or place is None or place.lineno is None:
            continue
        text = [row.encode() for row in rows[place.lineno - 1 : place.end_lineno]]
        if text:
            text[-1] = text[-1][: place.end_col_offset]
            text[0] = text[0][place.col_offset :]
        yield place.lineno, b"".join(text).decode(errors="replace")


def _entries(statement: Line, returned: str, count: int) -> list[Line] | None:
    """Return the entries of a mapping that a statement returns; None for another number of entries."""
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
