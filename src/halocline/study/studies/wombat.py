"""WOMBAT: patches and threads of MHD with shocks (Mendygral et al. 2017, Figs. 4, 5 and 9)."""

from __future__ import annotations

from halocline.study.papers import Paper


def _figure(number: str, title: str, about: str, study: str, **here: str) -> Paper:
    return Paper(
        *(f"wombat-fig{number}", title, about, study, "orszag-tang"),
        options={"steps": 10},
        here={"n": "128", "ranks": "1", "threads": "1,2", **here},
    )


PAPERS = (
    _figure("4", "Threads of a node", "Threads varied on one node.", "strong"),
    _figure(
        *("5", "Patches", "Edges of patches and ranks of a node varied on 27 nodes.", "patches"),
        ranks="1,2",
        threads="1",
        patches="16,32,64",
    ),
    _figure(
        *("9", "Schedules", "Static and guided schedules of the loop over patches.", "patches"),
        threads="2",
        patches="32,48",
        schedules="guided,static",
    ),
)
