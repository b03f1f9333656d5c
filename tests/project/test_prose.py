"""The linter of prose and names finds each kind of fault, and the check of commit messages does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def lint(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module of the linter."""
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "prose"))
    return importlib.import_module("lint")


LONG = " ".join(["word"] * 26) + "."

PAGES = {
    "sentence": f"# Title\n\n{LONG}\n",
    "sentence in a list": f"# Title\n\n- {LONG}\n",
    "sentence in a table": f"# Title\n\n| a | b |\n| --- | --- |\n| c | {LONG} |\n",
    "phrase": "# Title\n\nThe run\ngoes on.\n",
    "heading": "# Title\n\n### Too deep\n",
    "heading with a full stop": "# Title\n\n## Wrong.\n",
    "heading of a second title": "# Title\n\n# Title\n",
}
PHRASE = "goes on"
MODULES = {
    "docstring": '"""Whether it is so."""\n',
    "docstring without a full stop": '"""Return a value\n\nOf a kind.\n"""\n',
    "name": "found = 1\n",
    "name of an argument": "def f(own):\n    return own\n",
    "name of a function": "def _kept():\n    pass\n",
    "name of an attribute": "x.told = 1\n",
    "phrase in a message": f'print("the run of this program {PHRASE}")\n',
    "sentence in a message": f'print(f"{LONG}")\n',
    "sentence in a comment": f"# {LONG[:65]}\n# {LONG[65:]}\n",
}
NATIVE = {
    "name": "  const auto found = 1;\n",
    "sentence in a comment": f"// {LONG}\n",
    "phrase in a message": 'throw Error("the run of this rank goes on");\n',
}
FILES = [
    *(("page.md", fault, text) for fault, text in PAGES.items()),
    *(("module.py", fault, text) for fault, text in MODULES.items()),
    *(("native.cpp", fault, text) for fault, text in NATIVE.items()),
]


@pytest.mark.parametrize(
    ("name", "fault", "text"), FILES, ids=[f"{name}-{fault}" for name, fault, _ in FILES]
)
def test_each_kind_of_finding_is_reported(lint, name, fault, text, tmp_path):
    (tmp_path / name).write_text(text)
    rules = {rule for _, rule, _ in lint.check(tmp_path / name)}
    assert rules == {fault.split()[0]}


GOOD = '''"""Return the sum.

The sum has 25 words at most (this part does not count, however long it is and whatever it contains at all).
"""

value = "a text of several words"  # `code` counts one word


def total(a: float, b: float) -> float:
    """Return a + b.

    >>> total(1, 2)
    3
    """
    return a + b
'''


def test_plain_text_has_no_findings(lint, tmp_path):
    (tmp_path / "module.py").write_text(GOOD)
    (tmp_path / "page.md").write_text(
        f"# Title\n\n## Part\n\nText: `code`, *words*.\n\n```text\n{LONG}\n```\n"
    )
    assert list(lint.check(tmp_path / "module.py")) == []
    assert list(lint.check(tmp_path / "page.md")) == []


@pytest.mark.parametrize(
    ("text", "is_prose"),
    [
        ("the run of this program ends at once", True),
        ("expected one of a, b, c and d", True),
        ("the sum and the product", True),
        ("import numpy as np\nvalue = np.zeros(some_number)\n", False),
        ("    for name in names:\n        print(name)\n", False),
    ],
)
def test_embedded_programs_are_not_prose(lint, text, is_prose):
    assert lint.is_prose(text) is is_prose


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("Add a linter of prose\n", None),
        ("Bring back the check\n\nIt was lost in a merge.\n", None),
        ('Revert "A very long subject that is longer than seventy-two characters, as it was"\n', None),
        ("", "empty"),
        ("Add " + "x" * 72, "76 characters"),
        ("Added a linter", "Added"),
        ("Adding a linter", "Adding"),
        ("The linter", "The"),
        ("add a linter", "capital"),
        ("Add a linter.", "full stop"),
        ("Add a linter\nof prose", "second line"),
    ],
)
def test_commit_messages_are_checked(message, word, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "prose"))
    faults = importlib.import_module("commit_message").faults(message)
    assert len(faults) == (word is not None)
    assert word is None or word in faults[0]
