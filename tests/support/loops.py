"""Loops of tests that must not be empty, and tests that check nothing if their loops are empty."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
CHECKS = ("np.testing", "pytest.raises", "pytest.fail", "pytest.warns", "assert_", "check")
SAME_LENGTH = ("enumerate", "list", "reversed", "set", "sorted", "tuple", "zip")
METHODS = ("items", "keys", "split", "values")
COMBINATIONS = ("combinations", "permutations", "product")


def some(items: Iterable[T]) -> Iterator[T]:
    """Yield the items.

    Raises
    ------
    AssertionError
        There is no item.
    """
    empty = True
    for item in items:
        empty = False
        yield item
    assert not empty, "a loop of a test has no items, so that the test checks nothing"


def unsafe_tests(tree: ast.Module) -> dict[str, list[str]]:
    """Return the tests that check nothing if a loop has no items.

    Returns
    -------
    dict of str to list of str
        For each test, the iterables that may be empty. In an unsafe test each check is in the body of such a
        loop: its iterable is neither written out nor passed through `some`.
    """
    constants = _nonempty_names(tree.body, set())
    unsafe = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test_"):
            continue
        names = _nonempty_names(ast.walk(function), constants)
        checks = list(_checks(function.body, ()))
        doubtful = [[loop for loop in loops if not _is_nonempty(loop, names)] for loops in checks]
        if doubtful and all(doubtful):
            unsafe[function.name] = sorted({ast.unparse(loop) for loops in doubtful for loop in loops})
    return unsafe


def _nonempty_names(nodes: Iterable[ast.AST], names: set[str]) -> set[str]:
    """Return these names and those to which the nodes assign an iterable that has items."""
    names = set(names)
    for node in nodes:
        for target, value in _assignments(node):
            if _is_nonempty(value, names):
                names.add(ast.unparse(target))
    return names


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a statement with their values."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value


def _is_nonempty(node: ast.expr, names: set[str]) -> bool:
    """Return True if the form of an iterable, or of its number of items, guarantees items.

    `names` are the variables to which such a value is assigned.
    """
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(
                not isinstance(element, ast.Starred) or _is_nonempty(element.value, names)
                for element in elements
            )
        case ast.Dict(keys=keys):
            return bool(keys)
        case ast.Constant(value=value):
            return value not in ("", None)
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_nonempty(left, names) or _is_nonempty(right, names)
        case ast.IfExp(body=body, orelse=other):
            return _is_nonempty(body, names) and _is_nonempty(other, names)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return all(not part.ifs and _is_nonempty(part.iter, names) for part in node.generators)
        case ast.Call(func=ast.Name(id="some")):
            return True
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            return all(isinstance(end, ast.UnaryOp) or _is_nonempty(end, names) for end in arguments[-2:])
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in SAME_LENGTH:
            return any(_is_nonempty(argument, names) for argument in arguments)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in METHODS:
            return _is_nonempty(value, names)
        case ast.Call(func=ast.Attribute(attr=method) | ast.Name(id=method), args=arguments):
            return method in COMBINATIONS and all(_is_nonempty(argument, names) for argument in arguments)
    return False


def _checks(nodes: Iterable[ast.AST], loops: tuple[ast.expr, ...]) -> Iterator[tuple[ast.expr, ...]]:
    """Yield the iterables of the loops around each check."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Assert) or (
            isinstance(node, ast.Call) and ast.unparse(node.func).startswith(CHECKS)
        ):
            yield loops
        if isinstance(node, ast.For):
            yield from _checks(node.body, (*loops, node.iter))
            yield from _checks([node.iter, *node.orelse], loops)
        else:
            yield from _checks(ast.iter_child_nodes(node), loops)
