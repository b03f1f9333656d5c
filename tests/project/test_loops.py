"""No test may pass because its loops have no items."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from loops import some, unsafe_tests

TESTS = sorted(Path(__file__).parents[1].rglob("test_*.py"))


def test_some_yields_the_items_and_rejects_none() -> None:
    assert list(some(iter("ab"))) == ["a", "b"]
    with pytest.raises(AssertionError, match="no items"):
        list(some([]))


@pytest.mark.parametrize(
    ("test", "unsafe"),
    [
        ("for x in found():\n  assert x", ["found()"]),
        ("for x in (1, 2):\n  for y in x.parts:\n    assert y", ["x.parts"]),
        ("for x in found():\n  with pytest.raises(ValueError):\n    x()", ["found()"]),
        ("names = [x for x in (1, 2) if x > a]\nfor x in names:\n  assert x", ["names"]),
        ("for x in range(count):\n  assert x", ["range(count)"]),
        ("for x in []:\n  assert x", ["[]"]),
        ("for x in found():\n  assert x\nassert x", []),
        ("for x in some(found()):\n  for y in x.parts:\n    assert y\n  assert x", []),
        ("names = ['a', *found()]\nfor x in enumerate(names):\n  assert x", []),
        ("names: list[str] = [str(x) for x in range(3)]\nfor x in zip(names, a):\n  assert x", []),
        ("for x in product((1, 2), 'ab'):\n  assert x", []),
        ("for x in CASES.items():\n  assert x", []),
        ("found()", []),
    ],
)
def test_checks_in_possibly_empty_loops_are_found(test: str, unsafe: list[str]) -> None:
    body = "".join(f"  {line}\n" for line in test.splitlines())
    source = f"CASES = {{'a': 1}}\n\ndef test_x(a, count):\n{body}"
    assert unsafe_tests(ast.parse(source)) == ({"test_x": unsafe} if unsafe else {})


def test_no_test_checks_only_in_possibly_empty_loops() -> None:
    assert len(TESTS) > 100
    result = {
        f"{path}::{name}": iterables
        for path in TESTS
        for name, iterables in unsafe_tests(ast.parse(path.read_text())).items()
    }
    assert result == {}, "wrap one of these iterables in loops.some"
