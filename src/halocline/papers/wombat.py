"""WOMBAT: patches and threads of MHD with shocks (Mendygral et al. 2017, Figs. 4, 5 and 9)."""

from __future__ import annotations

from functools import partial

from halocline.papers.paper import Paper
from halocline.papers.published import published
from halocline.study.reporting.quantities import wrapped
from halocline.study.reporting.reference import Reference
from halocline.study.reporting.report import Group

HERE = {"n": "128", "ranks": "1", "threads": "1,2"}
_figure = partial(Paper, problem="orszag-tang", options={"steps": 10}, here=HERE)
PAPERS = (
    _figure("wombat-fig4", "Threads of a node", "Threads varied on one node.", "strong"),
    _figure(
        "wombat-fig5",
        "Patches",
        "Edges of patches and ranks of a node varied on 27 nodes.",
        "patches",
        here={**HERE, "ranks": "1,2", "threads": "1", "patches": "16,32,64"},
    ),
    _figure(
        "wombat-fig9",
        "Schedules",
        "Static and guided schedules of the loop over patches.",
        "patches",
        here={**HERE, "threads": "2", "patches": "32,48", "schedules": "guided,static"},
    ),
)


def _note(group: Group) -> str:
    best = published("wombat-fig5")
    machines = dict.fromkeys(best.values("machine"))
    edges = [f"{best.values('patch', machine=name)[0]}³ on {name}" for name in machines]
    return wrapped(f"Mendygral et al. 2017, Fig. 5: the best patches there are {', '.join(edges)}.")


REFERENCES = {"patches": Reference(note=_note)}
