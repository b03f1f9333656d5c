"""Columns of reports, and groups of measurements that several studies show."""

from __future__ import annotations

import pytest

from case_measurements import measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting.report import Column, Group


def cells(column: Column, group: Group) -> list[str]:
    """Return the cells of a column."""
    return [column.cell(m, group) for m in group.members]


def test_times_are_those_of_the_measurements() -> None:
    group = Group([measurement(8.0), measurement(5.0, ranks=2)])
    assert cells(c.NS, group) == ["8", "5"]
    assert cells(c.EFFICIENCY, group) == ["100%", "80%"]
    assert cells(c.RELATIVE_TIME, group) == ["1.60", "1.00"]
    assert cells(c.units(group), group) == ["1", "2"]
    assert c.units(group).head == "cores"
    assert cells(c.single_unit_time(group), group) == ["8", "8"]


def test_ideal_times_fall_with_the_cores() -> None:
    group = Group([measurement(8.0, ranks=2), measurement(5.0, ranks=4)])
    assert [c.ideal(n, group) for n in (1, 2, 4)] == pytest.approx([16.0, 8.0, 4.0])
    assert c.formula_share(group.first, group) is None


def test_columns_contain_only_known_values() -> None:
    assert c.optional_columns(Group([measurement(8.0)])) == []
    group = Group([measurement(8.0), measurement(8.0, joules_per_cell_step=2e-8)])
    assert c.optional_columns(group) == [c.ENERGY]
    assert cells(c.ENERGY, group) == ["", "50"]
    assert c.optional_columns(Group([measurement(8.0, ssspnt=1.5)])) == [c.SSSPNT]


def test_parts_of_steps_and_other_orders_are_separate() -> None:
    members = [
        measurement(8.0),
        measurement(6.0, only="compute"),
        measurement(7.0, halo="uniform"),
        measurement(5.0, order=2),
    ]
    group = Group(members)
    assert c.whole_runs(group).members == [members[0], members[3]]
    assert c.whole_steps(group).members == [members[0], members[3]]
    assert c.with_first_order(group).members == members[:3]


def test_each_size_has_one_panel() -> None:
    group = Group([measurement(8.0), measurement(8.0, n=64), measurement(4.0, threads=2)])
    panels = c.panels_of_sizes(group, line=lambda m: m["case"], label=lambda line: "x")
    assert [panel.title for panel in panels] == [
        "64³, 1 thread per rank", "256³, 1 thread per rank", "256³, 2 threads per rank",
    ]  # fmt: skip
