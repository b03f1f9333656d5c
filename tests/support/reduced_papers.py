"""Commands of the register of papers, reduced to small runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from halocline.papers.paper import Paper
from halocline.papers.register import Entry
from halocline.study.registry import papers
from halocline.study.study import studies

SMALL = {"n": "16", "steps": 4, "repeat": 1}
TO_THE_END = {"n": "8,16,32"}
REMOVED = ("--n", "--pictures", "--trace", "--timeline")
ALONE = {  # what makes a run short, and the lines of a run that is no steps of a case
    "run": ["--steps", "3", "--n", "16"],
    "bench": ["--n", "16"],
    "study": ["--n", "16,32"],
}


def reduce(patch: pytest.MonkeyPatch) -> None:
    """Have papers measure small grids and few steps, and not execute the model; other tests predict."""
    every = {name: own.measured for name, own in papers().items()}

    def small(study: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        steps = {"steps"} & {*options}
        own = TO_THE_END if studies()[study].to_the_end else {name: SMALL[name] for name in ("n", *steps)}
        if "subdomains_per_rank" in options:  # eight of them along one axis
            own = {**own, "n": "32"}
        return study, {**options, **own, "repeat": 1}

    def measured(self: Paper) -> list[tuple[str, dict[str, Any]]]:
        return [small(*each) for each in every[self.name]]

    patch.setattr(Paper, "measured", property(measured))
    patch.setattr(Paper, "predict", lambda self, places, *rest: [{**p, "predicted": 1.0} for p in places])


def words_of(entry: Entry, folder: Path) -> list[str]:
    """Return the words of the command of an entry, on a small grid; files go to a folder."""
    words = shlex.split(entry.command)
    if words[:2] == ["study", "paper"]:
        return [*words, "--json", str(folder / "found.json"), "--html", str(folder / "page.html")]
    if words[0] == "explain":
        return words
    kept: list[str] = []
    taken = iter(words)
    for word in taken:
        if word in REMOVED:
            next(taken)
        else:
            kept.append(word)
    files = {"run": ["--pictures", str(folder)], "study": ["--pictures", str(folder)]}
    return [*kept, *ALONE[words[0]], *files.get(words[0], ["--trace", str(folder / "t.json")])]
