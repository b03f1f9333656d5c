"""Execution of a user's file like `python FILE`, optionally with other values of its top-level names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from halocline.errors import InputError
from halocline.lang.grid import unknown_name_error

Value = int | float | str


class Script:
    """Python file of a user.

    Parameters
    ----------
    file : path

    Raises
    ------
    InputError
        The file does not exist, or is not a text file.
    SyntaxError
        The file is not valid Python.

    Attributes
    ----------
    names : dict of str to int, float or str
        Replaceable names and their values. The file sets each of them once at its top level to a number or a
        text, as in ``n = 200``, ``g, H = 9.81, 100.0`` or ``a = b = 1``.
    reasons : dict of str to str
        Reasons why other top-level names are not replaceable, with line numbers.
    defined : frozenset of str
        All names that the file defines at its top level.
    has_settings : bool
        True if the file calls ``cells`` or ``setting`` of Halocline. These calls then declare the parameters,
        and `names` is empty.
    default_cells : list of tuple of int
        Grid shapes in the first ``cells`` call, the default shape first; empty if an argument is not a
        literal, or if there is no such call.
    about : str
        First line of the docstring.
    origin : str
        Paragraph of the docstring that begins with "Source:", without this word.
    top : dict of str to object
        Top-level names with their values after the last run; during a run, the names defined so far.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"there is no file {file}" if not file.exists() else f"{file} is not a file")
        self.file = file
        self._tree = ast.parse(file.read_bytes(), str(file))
        self.names: dict[str, Value] = {}
        self.reasons: dict[str, str] = {}
        self._read_names()
        self.defined = frozenset(name for s in self._tree.body for name in _defined(s))
        calls = _halocline_calls(self._tree)
        self.has_settings = any(name in ("cells", "setting") for name, _ in calls)
        if self.has_settings:
            self.names = {}
        cells = [call for name, call in calls if name == "cells"]
        self.default_cells = _literal_cells(cells[0]) if cells else []
        text = ast.get_docstring(self._tree) or ""
        self.about = text.partition("\n")[0]
        source = text.partition("Source:")[2].partition("\n\n")[0]
        self.origin = " ".join(source.split()).removesuffix(".")
        self.top: dict[str, Any] = {}

    def _read_names(self) -> None:
        """Collect the replaceable top-level names, and the reasons why the others are not replaceable."""
        lines: dict[str, int] = {}
        for statement in self._tree.body:
            for name, value, form in _settings(statement):
                if name in lines and (value is not None or not _reads(statement, name)):
                    self.reasons[name] = f"lines {lines[name]} and {statement.lineno} set it"
                    self.names.pop(name, None)
                elif value is None:
                    self.reasons.setdefault(name, f"line {statement.lineno} sets it {form}")
                else:
                    lines[name] = statement.lineno
                    self.names[name] = ast.literal_eval(value)

    def values(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """Return each text of `texts` by name, converted to the type of the value that the file sets.

        Raises
        ------
        InputError
            The file does not set a name, or a text cannot be converted.
        """
        values: dict[str, Value] = {}
        for name, text in texts.items():
            if name not in self.names:
                if name in self.reasons:
                    raise InputError(
                        f"{self.file}: {name} cannot be changed: {self.reasons[name]}; expected one "
                        f"assignment of a number or a text, such as {name} = 1.0"
                    )
                raise unknown_name_error(f"{self.file}: number or text", name, list(self.names))
            kind = type(self.names[name])
            try:
                values[name] = kind(text)
            except ValueError:
                expected = "a whole number" if kind is int else "a number"
                raise InputError(
                    f"{name} is {text}; expected {expected}, because {self.file} sets {name} = "
                    f"{self.names[name]}"
                ) from None
        return values

    def run(
        self, arguments: Sequence[str] | None = (), replacements: Mapping[str, Value] | None = None
    ) -> dict[str, Any]:
        """Run the file, and return its top-level names at its end or at ``sys.exit(0)``.

        Parameters
        ----------
        arguments : sequence of str, optional
            Arguments of the file in ``sys.argv``; None for the arguments of this process.
        replacements : mapping of str to int, float or str, optional
            Replacement values for entries of `names`.

        Raises
        ------
        SystemExit
            The file exits with a non-zero status.
        """
        tree = self._tree
        if replacements:
            tree = ast.Module([], self._tree.type_ignores)
            for statement in self._tree.body:
                tree.body.append(statement)
                for name, value, _ in _settings(statement):
                    if name in replacements and value is not None:
                        tree.body.append(_assignment(name, replacements[name], statement))
        code = compile(tree, str(self.file), "exec")
        module = ModuleType("__main__")
        module.__file__ = str(self.file)
        self.top = module.__dict__
        with _as_main(self.file, arguments, module):
            try:
                exec(code, module.__dict__)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
        return module.__dict__


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that an import, a function or an assignment defines."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.FunctionDef):
        yield statement.name
    else:
        yield from (name for name, _, _ in _settings(statement))


def _halocline_calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """Return the calls of Halocline functions, such as ``hc.cells(64)``, with their function names."""
    modules: set[str] = set()
    functions: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            modules |= {a.asname or a.name for a in statement.names if a.name == "halocline"}
        elif isinstance(statement, ast.ImportFrom) and statement.module == "halocline":
            functions |= {a.asname or a.name: a.name for a in statement.names}
            if any(a.name == "*" for a in statement.names):
                functions |= {name: name for name in ("cells", "setting")}
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id in functions:
                calls.append((functions[function.id], node))
            elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                calls += [(function.attr, node)] if function.value.id in modules else []
    return calls


def _literal_cells(call: ast.Call) -> list[tuple[int, ...]]:
    """Return the grid shapes in a call of ``cells``; empty if an argument is not a literal."""
    try:
        shape = tuple(ast.literal_eval(argument) for argument in call.args)
        also = [ast.literal_eval(keyword.value) for keyword in call.keywords]
        return [shape, *(tuple(cells) for several in also for cells in several)]
    except (ValueError, TypeError):  # `cells` raises the error at run time
        return []


class _Setting(NamedTuple):
    """Assignment of one name by a statement.

    Attributes
    ----------
    name : str
    value : ast.expr or None
        Number or text that is assigned; None for any other value.
    form : str
        Description of the assignment for messages, if `value` is None.
    """

    name: str
    value: ast.expr | None
    form: str = ""


def _settings(statement: ast.stmt) -> Iterator[_Setting]:
    """Yield the names that an assignment sets, each with the part of the value that it receives."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _parts(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _parts(statement.target, statement.value)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[_Setting]:
    """Yield the names in the target of an assignment, each with the part of the value that it receives."""
    if isinstance(target, ast.Name):
        if _is_plain(value):
            yield _Setting(target.id, value)
        else:
            yield _Setting(target.id, None, "to an expression")
    elif isinstance(target, (ast.Tuple, ast.List)):
        is_starred = any(isinstance(entry, ast.Starred) for entry in (*target.elts, *_entries(value)))
        if len(target.elts) == len(_entries(value)) and not is_starred:
            for entry, part in zip(target.elts, _entries(value), strict=True):
                yield from _parts(entry, part)
            return
        reason = "with a starred target or value" if is_starred else "to a part of an expression"
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield _Setting(node.id, None, reason)


def _reads(statement: ast.stmt, name: str) -> bool:
    """Return True if a statement reads a name, so that an earlier value of the name has an effect."""
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name)
    return any(isinstance(node.ctx, ast.Load) for node in nodes)


def _entries(value: ast.expr) -> Sequence[ast.expr]:
    """Return the entries of a literal tuple or list; empty for any other expression."""
    return value.elts if isinstance(value, (ast.Tuple, ast.List)) else ()


def _assignment(name: str, value: Value, statement: ast.stmt) -> ast.stmt:
    """Return the assignment of a value to a name, with the line number of a statement."""
    target = ast.Name(name, ast.Store())
    assignment = ast.copy_location(ast.Assign([target], ast.Constant(value)), statement)
    return ast.fix_missing_locations(assignment)


def _is_plain(value: ast.expr) -> bool:
    """Return True if an expression is a number or a text, optionally with a sign."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.UAdd, ast.USub)):
        value = value.operand
        return isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float, str)


@contextmanager
def _as_main(file: Path, arguments: Sequence[str] | None, module: ModuleType) -> Iterator[None]:
    """Set arguments, import path and main module as for `python FILE` during the block, then restore them."""
    before = sys.argv, sys.path[:], sys.modules.get("__main__")
    if arguments is not None:
        sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is not None:
            sys.modules["__main__"] = before[2]
