"""Ranks of a node at a fixed number of ranks (the cavity code, Section 4.4 and Fig. 5)."""

from __future__ import annotations

from halocline.ranges import RANKS_PER_NODE
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting.comparison import comparison
from halocline.study.study import Study, Sweep


def per_node(measurement: Measurement) -> int:
    """Return the number of ranks that count as one node."""
    return int(measurement.get("ranks_per_node") or measurement["ranks"])


STUDY = Study(
    "nodes",
    title="Ranks of a node",
    about="The same ranks on fewer or more nodes.",
    help="Every R ranks count as a node, whatever they run on: those of one node share memory, others "
    "send messages by MPI. As Fig. 5 of the cavity code of Virginia Tech; `halocline study paper "
    "cavity-fig5` predicts nodes of a real machine.",
    examples=("halocline study nodes cavity --n 32 --ranks 4 --ranks-of-node 1,2,4",),
    contents=(
        comparison(
            "ranks of\na node",
            lambda m: f"{per_node(m)}",
            c.SSSPNT,
            order=per_node,
            layout=lambda m: (m["ranks"], m["threads"]),
        ),
    ),
    sweeps=(Sweep("ranks_per_node", "--ranks-of-node R,R,...", "Ranks of a node.", "1,2", RANKS_PER_NODE),),
    ranks="2",
    repeat=3,
)
