"""Table columns, groups, panels and line labels that several studies share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from halocline.study.measurement import Measurement, is_solve
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel
from halocline.study.reporting.report import Column, Contents, Group
from halocline.words import clock, counted, in_seconds, joined, method


def formula_share(measurement: Measurement, group: Group) -> float | None:
    """Return the time of the closed formula divided by the measured time; None if a constant is unknown."""
    expected = group.formula(measurement)
    return None if expected is None else expected / q.ns(measurement)


def ideal(x: float, line: Group) -> float:
    """Return the time on `x` cores or devices if the base run of a group scaled ideally."""
    return q.units(line.base) * q.pace(line.base) / x


def _updates_per_joule(measurement: Measurement) -> float | None:
    """Return the millions of cell updates per joule; None if the energy is unknown."""
    joules = measurement["joules_per_cell_step"]
    return 1e-6 / joules if joules else None


def _updates_by_design_power(measurement: Measurement) -> float | None:
    """Return the millions of cell updates per joule, computed from the design power."""
    watts = measurement.get("watts")
    return 1e3 / (q.ns(measurement) * q.units(measurement) * watts) if watts else None


LAYOUT = Column("", lambda m, g: q.layout(m))
SIZE = Column("cells", lambda m, g: q.size(m))
UNIT_COUNT = Column("", lambda m, g: counted(q.units(m), q.unit(m)))
THIS_MACHINE = Column("", lambda m, g: "this machine")
NS = Column("ns per cell\nand step", lambda m, g: q.nanoseconds(m["ns_per_cell_step"]))
UPDATE = Column("seconds\nper update", lambda m, g: q.text(q.update_seconds(m)))
RATE = Column("million cells per\nsecond and node", lambda m, g: q.text(q.node_rate(m)))
PER_RANK = Column("ns per step and\ncell of a rank", lambda m, g: q.nanoseconds(q.rank_ns(m)))
IDEAL = Column("\nideal", lambda m, g: q.nanoseconds(ideal(q.units(m), g)))
FORMULA = Column("\nformula", lambda m, g: q.nanoseconds(g.formula(m)))
FORMULA_SHARE = Column("share of the\nformula", lambda m, g: q.percent(formula_share(m, g)))
SPEEDUP = Column("\nspeed-up", lambda m, g: f"{q.speedup(m, g.base):.2f}")
EFFICIENCY = Column("\nefficiency", lambda m, g: q.percent(q.efficiency(m, g.base)))
BANDWIDTH_SHARE = Column("share of the\nbandwidth", lambda m, g: q.percent(m["share_of_bound"]))
PEAK_SHARE = Column("share of the\npeak", lambda m, g: q.percent(m["share_of_peak"]))
SSSPNT = Column("ssspnt", lambda m, g: q.text(m["ssspnt"]))
ENERGY = Column("million cells\nper joule", lambda m, g: q.text(_updates_per_joule(m)))
SECONDS = Column("\nseconds", lambda m, g: in_seconds(m["seconds"]))
CLOCK = Column("wall clock\nHH:MM:SS", lambda m, g: clock(m["seconds"]))
RELATIVE_TIME = Column("relative to\nthe fastest", lambda m, g: f"{q.pace(m) / q.pace(g.best):.2f}")


def wall_clock(measurement: Measurement, group: Group) -> str:
    """Return the time of a run as text, in the form HH:MM:SS and in seconds."""
    return f"{clock(measurement['seconds'])}  {in_seconds(measurement['seconds']):>8}"


def units(group: Group) -> Column:
    """Return the column of the number of cores or devices."""
    return Column(f"{q.unit(group.first)}s", lambda m, g: f"{q.units(m)}")


def single_unit_time(group: Group) -> Column:
    """Return the column of the time on one core or device, extrapolated from the base by ideal scaling."""
    head = f"ns on one\n{q.unit(group.first)}"
    return Column(head, lambda m, g: q.nanoseconds(q.ns(g.base) * q.units(g.base)))


def optional_columns(group: Group) -> list[Column]:
    """Return the columns of ssspnt, measured energy and design power for which any run has a value."""
    power = f"{group.first.get('watts') or 0:g} W each"
    by_design = Column(f"million cells per\njoule, {power}", lambda m, g: q.text(_updates_by_design_power(m)))
    columns = {"ssspnt": SSSPNT, "joules_per_cell_step": ENERGY, "watts": by_design}
    return [column for key, column in columns.items() if any(m.get(key) for m in group.members)]


# -- selection of measurements -------------------------------------------------------------------------------


def whole_runs(group: Group) -> Group:
    """Return the runs of whole solves or steps, with default halos or the option --communication."""
    return group.select(lambda m: m["only"] is None and (m["halo"] == "read" or m.get("communication")))


def whole_steps(group: Group) -> Group:
    """Return the runs of whole steps, with default halos or the option --communication."""
    return whole_runs(group).select(lambda m: not is_solve(m))


def with_first_order(group: Group) -> Group:
    """Return the measurements whose order is that of the first measurement."""
    return group.select(lambda m: m["order"] == group.first["order"])


def size_label(line: Group, panel: Group) -> str:
    """Return the grid size of a line, with the number of threads if it varies within the panel."""
    threads = f", {counted(line.first['threads'], 'thread')} per rank"
    return q.size(line.first) + (threads if len(panel.values("threads")) > 1 else "")


def panels_of_sizes(
    group: Group,
    line: q.Key,
    label: Callable[[Group], str],
    ideal: Callable[[float, Group], float] | None = None,
) -> list[Panel]:
    """Return one panel of times per cell and step for each size and number of threads; see `Panel`."""
    return [
        Panel(
            *(size, lambda m, g: q.ns(m), size_label(size, group), "ns per cell and step"),
            line=line,
            label=label,
            ideal=ideal,
        )
        for size in group.split(lambda m: (q.grid(m), m["threads"]))
    ]


def _same_bits(group: Group) -> Iterator[str]:
    """Yield a sentence for each problem, which compares the checksums of its runs."""

    def problem(m: Measurement) -> tuple[Any, ...]:
        names = ("case", "settings", "scheme", "dtype", "method")
        return (*m["shape"], m["order"] or 0, m["steps"], *(str(m.get(name) or "") for name in names))

    for same_problem in group.select(lambda m: m["checksum"] is not None).split(problem):
        first, count, sums = same_problem.first, len(same_problem.members), same_problem.values("checksum")
        method_text = method(first["order"], None, first.get("dtype"))
        problem_text = joined(q.size(first), method_text, counted(first["steps"], "step"))
        run_text = f"{problem_text}: {counted(count, 'run')}"
        if len(sums) > 1:
            yield f"{run_text} gave {len(sums)} different results; please report this as a bug."
        elif count > 1:
            yield f"{run_text}, all with the same bits: checksum {sums.pop()}."


SAME_BITS = Contents(sentences=_same_bits, select_group=whole_steps)
