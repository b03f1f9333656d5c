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
ALONE = {  # options for short runs, and the lines of a run that has no steps of a case
    "run": ["--steps", "3", "--n", "16"],
    "bench": ["--n", "16"],
    "study": ["--n", "16,32"],
}


def reduce_papers(patch: pytest.MonkeyPatch) -> None:
    """Make papers measure small grids and few steps, without predictions of the model."""
    measurements = {name: paper.measured_studies for name, paper in papers().items()}

    def small(study: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        steps = {"steps"} & {*options}
        reduced = (
            TO_THE_END if studies()[study].runs_to_end else {name: SMALL[name] for name in ("n", *steps)}
        )
        if "subdomains_per_rank" in options:  # eight subdomains along one axis
            reduced = {**reduced, "n": "32"}
        return study, {**options, **reduced, "repeat": 1}

    def measured(self: Paper) -> list[tuple[str, dict[str, Any]]]:
        return [small(*study) for study in measurements[self.name]]

    patch.setattr(Paper, "measured_studies", property(measured))
    patch.setattr(Paper, "predict", lambda self, places, *rest: [{**p, "predicted": 1.0} for p in places])


def words_of(entry: Entry, folder: Path) -> list[str]:
    """Return the command of an entry, on a small grid and with its files in a folder."""
    words = shlex.split(entry.command)
    if words[:2] == ["study", "paper"]:
        return [*words, "--json", str(folder / "found.json"), "--html", str(folder / "page.html")]
    if words[0] == "explain":
        return words
    remaining: list[str] = []
    iterator = iter(words)
    for word in iterator:
        if word in REMOVED:
            next(iterator)
        else:
            remaining.append(word)
    files = {"run": ["--pictures", str(folder)], "study": ["--pictures", str(folder)]}
    return [*remaining, *ALONE[words[0]], *files.get(words[0], ["--trace", str(folder / "t.json")])]
