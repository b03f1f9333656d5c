"""Register of all tables and figures of the papers."""

from __future__ import annotations

import re
import shlex

import pytest

from halocline.cli.app import run as command
from halocline.papers.register import REGISTER, Entry
from halocline.problems.files import case_names
from halocline.study.registry import papers, register
from loops import some

COUNTS = {  # the last number of each kind, as counted in the papers
    "umbc": {},
    "astaroth": {"Fig.": 15},
    "pearson": {"Fig.": 13},
    "cavity": {"Fig.": 13, "Table": 4, "Listing": 2},
    "wombat": {"Fig.": 23, "Table": 7},
}
OTHERS = {  # results that are not numbered from 1 on
    "umbc": ["3.1", "4.1", "4.2", "4.3", "5.1", "6.1", "6.2", "6.3", "7.1", "7.2"],
    "astaroth": ["A.1", "A.2", "B.1", "B.2"],
    "pearson": ["I"],
}


def test_the_register_contains_all_studies() -> None:
    assert tuple(register()) == REGISTER


def test_numbers_are_consecutive() -> None:
    for paper, counts in COUNTS.items():
        results = [entry.result for entry in REGISTER if entry.paper == paper]
        for kind, last in counts.items():
            numbers = re.findall(rf"{re.escape(kind)} (\d+)", " ".join(results))
            assert sorted(set(map(int, numbers))) == list(range(1, last + 1)), (paper, kind)
        other_results = [result for result in results if result.split()[0] not in counts]
        assert [
            name.removeprefix("Table ") for name in other_results if name.startswith("Table")
        ] == OTHERS.get(paper, [])
    assert {entry.result for entry in REGISTER if "Fig. 3.1" in entry.result} == {
        "Fig. 3.1 (a)",
        "Fig. 3.1 (b)",
    }
    assert {entry.paper for entry in REGISTER} == set(COUNTS)


@pytest.mark.parametrize("entry", REGISTER, ids=lambda entry: f"{entry.paper}-{entry.result}")
def test_each_entry_has_a_command_or_a_reason(entry: Entry) -> None:
    assert bool(entry.command) != bool(entry.reason)
    assert entry.subject
    assert entry.kind in ("result", "computed", "set-up", "schematic", "listing")
    if not entry.command:
        return
    verb, *words = shlex.split(entry.command)
    if verb == "bench":
        assert words[0] == "exchange"
        return
    name = words[1] if verb == "study" else words[0]
    assert name in (papers() if words[0] == "paper" else case_names())


def test_each_declared_paper_is_in_the_register() -> None:
    commands = {entry.command for entry in REGISTER}
    for name in some(papers()):
        assert f"study paper {name}" in commands


def test_the_command_prints_the_register(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["study", "papers"]) == 0
    out = capsys.readouterr().out
    for entry in REGISTER:
        assert (entry.command or entry.reason) in out
    assert f"of {len(REGISTER)} tables and figures have a command" in out
