"""The page of a study."""

from __future__ import annotations

import csv
import io
from typing import Any

from case_measurements import measurement, parts_of, report_of, sides, weak
from halocline.study.measuring.command import csv_text
from halocline.study.reporting.page import facts_of_measurements, page
from halocline.study.reporting.report import Report
from halocline.study.reporting.theory import Theory
from halocline.study.studies.orders import ORDERS
from halocline.study.studies.parts import PARTS, PARTS_OF_A_STEP
from halocline.study.studies.strong import STEPS
from halocline.study.studies.weak import WEAK


def curves(ax: Any) -> list[tuple[list[float], list[float]]]:
    """Return the abscissas and ordinates of all lines of a panel."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]


def test_a_page_contains_all_parts_of_a_study():
    theory = Theory({6: sides(), 4: sides()}, 1e-12, 2)
    result = [
        *parts_of(1, 8.0, 8.0, 0.5, 0.6, 0.7, 0.01),
        *parts_of(2, 6.0, 4.0, 5.0, 5.3, 5.5, 0.03),
        measurement(3.0, order=4),
    ]
    whole = [m for m in result if m["only"] is None and m["order"] == 6]
    figures = [
        report_of(STEPS, whole, theory).figures()["strong.png"],
        report_of(PARTS_OF_A_STEP, result).figures()["parts.png"],
        report_of(ORDERS, result, theory).figures()["orders.png"],
        report_of(WEAK, weak()).figures()["weak.png"],
    ]
    for figure, panels in zip(figures, (2, 1, 1, 1), strict=True):
        assert len(figure.axes) == panels
        for ax in figure.axes:
            assert ax.get_xlabel() == "cores"
            assert ax.lines
        assert "ns" in figure.axes[0].get_ylabel()
    assert curves(figures[0].axes[0]) == [([1, 2], [8.0, 6.0]), ([1, 2], [8.0, 4.0])]  # measured, ideal
    assert curves(figures[1].axes[0]) == [
        ([1, 2], ys) for ys in ([8, 6], [8, 4], [0.5, 5], [0.6, 5.3], [0.7, 5.5], [0.01, 0.03])
    ]
    assert [ys for _, ys in curves(figures[2].axes[0])] == [[3], [3], [8, 6], [8, 4]]  # orders 4 and 6
    assert curves(figures[3].axes[0]) == [([1, 2, 4], [8, 10, 10]), ([1, 2, 4], [8, 8, 8])]
    assert [text.get_text() for text in figures[1].legends[0].get_texts()] == list(PARTS)
    texts = {"title": "Strong", "lead": "", "command": "halocline"}
    text = page(Report([], []), figures, [], facts=facts_of_measurements(result), **texts)
    assert text.count("<svg") == 4
    assert "scheme rk3, steps 10, warm up 2, settings nu=1" in text


def test_cells_of_a_table_contain_no_lists():
    rows = list(
        csv.DictReader(io.StringIO(csv_text([measurement(1.0), measurement(2.0, ranks=2, checksum=None)])))
    )
    assert [(row["shape"], row["ns_per_cell_step"], row["checksum"]) for row in rows] == [
        ("256x256x256", "1.0", "0" * 32),
        ("256x256x256", "2.0", ""),
    ]
    assert not {"series", "parameters", "diagnostics"} & set(rows[0])
