"""WOMBAT: patches and threads of MHD with shocks (Mendygral et al. 2017, Figs. 4, 5 and 9)."""

from __future__ import annotations

from typing import Any

from halocline.study.papers import Paper, Row
from halocline.study.reporting.published import published


def _figure(number: str, title: str, about: str, study: str, **more: Any) -> Paper:
    return Paper(
        *(f"wombat-fig{number}", title, about, study, "orszag-tang"),
        options={"steps": 10},
        **{
            "here": {"n": "128", "ranks": "1", "threads": "1,2"},
            "rows": "machine",
            "text": "{:g}".format,
            **more,
        },
    )


def _at(row: Row) -> str:
    ranks = "" if row["ranks_per_node"] is None else f"{row['ranks_per_node']} ranks a node"
    return f"{row['patch']}³" if row["patch"] else ranks


PAPERS = (
    _figure(
        *("4", "Threads of a node", "Threads varied on one node.", "strong"),
        value="speedup",
        columns="threads",
        places=[{**row, "n": None} for row in published("wombat-fig4").rows],
        by="nothing",
    ),
    _figure(
        *("5", "Patches", "Edges of patches and ranks of a node varied on 27 nodes.", "patches"),
        here={"n": "128", "ranks": "1,2", "threads": "1", "patches": "16,32,64"},
        value="zones_per_second",
        columns="at",
        places=[{**row, "n": None, "at": _at(row)} for row in published("wombat-fig5").rows],
        by="nothing",
    ),
    _figure(
        *("9", "Schedules", "Static and guided schedules of the loop over patches.", "patches"),
        here={"n": "128", "ranks": "1", "threads": "2", "patches": "32,48", "schedules": "guided,static"},
    ),
)
