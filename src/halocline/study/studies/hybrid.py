"""Hybrid runs: the same cores shared out among ranks and threads (UMBC HPCF-2018-10, Tables 7.1 and 7.2)."""

from __future__ import annotations

from halocline.study.measuring.command import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Column, Group, Rows


def equals(measurement: Measurement, group: Group) -> Group:
    """Those on as many cores or devices."""
    return group.those(lambda m: q.units(m) == q.units(measurement))


HYBRID = Rows(
    lambda group: f"Hybrid runs: equal {q.unit(group.one)}s",
    (
        c.LAYOUT,
        c.UNITS,
        c.CLOCK,
        c.SECONDS,
        Column("over the\nfastest", lambda m, g: f"{q.pace(m) / q.pace(equals(m, g).best):.2f}"),
    ),
    where=lambda m, g: len(equals(m, g).found) > 1,
)
