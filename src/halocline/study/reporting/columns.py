"""Columns that several studies have."""

from __future__ import annotations

from dataclasses import replace

from halocline.study.measurement import Measurement
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import Column, Group
from halocline.words import clock, counted, in_seconds


def of_formula(measurement: Measurement, group: Group) -> float | None:
    """What the closed formula gives over what was measured."""
    expected = group.formula(measurement)
    return None if expected is None else expected / q.ns(measurement)


def ideal(x: float, line: Group) -> float:
    """As many times as fast as there are more devices or cores."""
    return q.units(line.base) * q.pace(line.base) / x


def _formula(measurement: Measurement, group: Group) -> str:
    expected = group.formula(measurement)
    return "" if expected is None else q.nanoseconds(expected)


def _ns(measurement: Measurement, group: Group) -> str:
    """Return the time of a cell and step; empty for a solve that made no iteration."""
    return "" if measurement["ns_per_cell_step"] is None else q.nanoseconds(q.ns(measurement))


def has_energy(group: Group) -> bool:
    """Whether any run knows its energy."""
    return any(m["joules_per_cell_step"] for m in group.found)


LAYOUT = Column("", lambda m, g: q.layout(m))
SIZE = Column("cells", lambda m, g: q.size(m))
UNITS = Column(lambda g: f"{q.unit(g.one)}s", lambda m, g: f"{q.units(m)}")
MOST = Column("", lambda m, g: counted(q.units(m), q.unit(m)))
HERE = Column("", lambda m, g: "here")
NS = Column("ns a cell\nand step", _ns)
EACH = Column("ns a step and\ncell of a rank", lambda m, g: q.nanoseconds(q.each(m)))
ON_ONE = Column(
    lambda g: f"ns on one\n{q.unit(g.one)}", lambda m, g: q.nanoseconds(q.ns(g.base) * q.units(g.base))
)
IDEAL = Column("\nideal", lambda m, g: q.nanoseconds(ideal(q.units(m), g)))
FORMULA = Column("\nformula", _formula)
OF_FORMULA = Column("of the\nformula", lambda m, g: q.percent(of_formula(m, g)))
EFFICIENCY = Column("\nefficiency", lambda m, g: q.percent(q.efficiency(m, g.base)))
OF_BANDWIDTH = Column("of the\nbandwidth", lambda m, g: q.percent(m["share_of_bound"]))
OF_PEAK = Column("of the\npeak", lambda m, g: q.percent(m["share_of_peak"]))
SSSPNT = Column("ssspnt", lambda m, g: "" if m["ssspnt"] is None else f"{m['ssspnt']:.3g}")
OF_CAVITY = replace(SSSPNT, shown=lambda g: g.one["case"] == "cavity")
ENERGY = Column("million cells\na joule", lambda m, g: q.updates(m), has_energy)
SECONDS = Column("\nseconds", lambda m, g: in_seconds(m["seconds"]))
CLOCK = Column("wall clock\nHH:MM:SS", lambda m, g: clock(m["seconds"]))
SLOWER = Column("over the\nfastest", lambda m, g: f"{q.pace(m) / q.pace(g.best):.2f}")
