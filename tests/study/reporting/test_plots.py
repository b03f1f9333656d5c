"""Figures of studies: panels, lines, scales and the legend."""

from __future__ import annotations

import pytest

from case_measurements import measurement
from halocline.study.reporting import plots
from halocline.study.reporting.plots import IDEAL, Panel, draw, figure_of
from halocline.study.reporting.report import Group

GROUP = Group(
    [
        measurement(8.0),
        measurement(5.0, ranks=2),
        measurement(9.0, n=64),
        measurement(4.5, ranks=2, n=64),
        measurement(3.0, ranks=4),
    ]
)


def panel(**other: object) -> Panel:
    """Return a panel with a line for each size."""
    options = {"ideal": lambda x, line: 8.0 / x, **other}
    return Panel(
        GROUP,
        lambda m, g: None if m["ranks"] == 4 else m["ns_per_cell_step"],
        *("Times", "ns"),
        line=lambda m: m["n"],
        label=lambda line: f"{line.first['n']}",
        **options,
    )


def test_without_panels_there_is_no_figure() -> None:
    assert draw([]) is None


def test_a_line_has_the_measurements_of_its_value() -> None:
    figure = draw([panel()])
    (ax,) = figure.axes
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["64", IDEAL, "256"]
    assert lines["256"].get_xydata().tolist() == [[1.0, 8.0], [2.0, 5.0]]  # no value on four ranks
    assert lines["64"].get_xydata().tolist() == [[1.0, 9.0], [2.0, 4.5]]
    assert lines[IDEAL].get_xydata().tolist() == [[1.0, 8.0], [2.0, 4.0]]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("cores", "ns", "Times")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["64", "256", IDEAL]


def test_ordinates_are_logarithmic_or_begin_at_zero() -> None:
    (ax,) = draw([panel()]).axes
    assert ax.get_yscale() == "log"
    (ax,) = draw([panel(log=False, xlabel="ranks")]).axes
    assert (ax.get_yscale(), ax.get_ylim()[0], ax.get_xlabel()) == ("linear", 0.0, "ranks")


def test_panels_of_a_row_share_the_name_of_their_ordinate() -> None:
    figure = draw([panel(), panel(), panel()])
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_visible()] == ["ns", "", "ns"]


@pytest.mark.parametrize(("count", "columns", "rows"), [(1, 2, 1), (3, 2, 2), (4, 3, 2)])
def test_panels_are_in_rows(count: int, columns: int, rows: int) -> None:
    figure, axes = figure_of(count, columns, title="T")
    assert len(axes) == count
    assert figure.axes[0].get_gridspec().nrows == rows
    assert sum(ax.get_visible() for ax in figure.axes) == count


def test_lines_are_distinguishable() -> None:
    styles = [plots.style(number) for number in range(len(plots.COLOURS))]
    assert len({(style["color"], style["marker"]) for style in styles}) == len(styles)
    assert plots.style(len(plots.COLOURS))["color"] == styles[0]["color"]
