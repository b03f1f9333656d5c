"""A user's file, run as `python FILE` runs it, perhaps with other values of the names at its top."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from halocline.errors import InputError
from halocline.lang.grid import unknown

Value = int | float | str


class Script:
    """A Python file.

    Parameters
    ----------
    file : path

    Raises
    ------
    InputError
        There is no such file, or it is no text.
    SyntaxError
        It is no Python.

    Attributes
    ----------
    names : dict of str to int, float or str
        What the file sets at its top level, once, to a number or a text: ``n = 200``. These can be given
        other values.
    functions : frozenset of str
        What it defines at its top level.
    about : str
        The first line of its docstring.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"there is no file {file}" if not file.exists() else f"{file} is no file")
        self.file = file
        self._tree = ast.parse(file.read_bytes(), str(file))
        self.names: dict[str, Value] = {}
        twice = set()
        for name, value in self._settings():
            if name in self.names:
                twice.add(name)
            self.names[name] = ast.literal_eval(value)
        for name in twice:
            del self.names[name]
        self.functions = frozenset(s.name for s in self._tree.body if isinstance(s, ast.FunctionDef))
        text = ast.get_docstring(self._tree) or ""
        self.about = text.partition("\n")[0]

    def _settings(self) -> Iterator[tuple[str, ast.expr]]:
        for statement in self._tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target: ast.expr = statement.targets[0]
            elif isinstance(statement, ast.AnnAssign):
                target = statement.target
            else:
                continue
            value = statement.value
            if isinstance(target, ast.Name) and value is not None and _is_plain(value):
                yield target.id, value

    def values(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """The values that texts give names, of the kind that the file has.

        Raises
        ------
        InputError
            A name that the file does not set, or a text that is no such value.
        """
        found: dict[str, Value] = {}
        for name, text in texts.items():
            if name not in self.names:
                raise unknown(f"{self.file}: number or text", name, list(self.names))
            kind = type(self.names[name])
            try:
                found[name] = kind(text)
            except ValueError:
                expected = "a whole number" if kind is int else "a number"
                raise InputError(
                    f"{name} is {text}; expected {expected}: {self.file} has {name} = {self.names[name]}"
                ) from None
        return found

    def run(self, arguments: Sequence[str] = (), given: Mapping[str, Value] | None = None) -> dict[str, Any]:
        """Run it, and return what it has at its top level then, or when it ended by ``sys.exit(0)``.

        Parameters
        ----------
        arguments : sequence of str
            What it finds in ``sys.argv``.
        given : mapping of str to int, float or str, optional
            Other values of some of `names`.

        Raises
        ------
        SystemExit
            With a status that is not 0.
        """
        tree = self._tree
        if given:
            tree = ast.parse(self.file.read_bytes(), str(self.file))
            for statement in tree.body:
                if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                    if isinstance(target, ast.Name) and target.id in given and statement.value is not None:
                        value = ast.copy_location(ast.Constant(given[target.id]), statement.value)
                        statement.value = value
        code = compile(tree, str(self.file), "exec")
        module = ModuleType("__main__")
        module.__file__ = str(self.file)
        with _as_main(self.file, arguments, module):
            try:
                exec(code, module.__dict__)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
        return module.__dict__


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression is a number or a text, perhaps with a sign."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.UAdd, ast.USub)):
        value = value.operand
        return isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float, str)


@contextmanager
def _as_main(file: Path, arguments: Sequence[str], module: ModuleType) -> Iterator[None]:
    """Arguments, import path and main module as `python FILE` would find them, and as they were after it."""
    before = sys.argv, sys.path[:], sys.modules.get("__main__")
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is not None:
            sys.modules["__main__"] = before[2]
