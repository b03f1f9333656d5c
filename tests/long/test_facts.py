"""Figures of papers that no study measures."""

from __future__ import annotations

import pytest

from halocline.papers import polarised_wave
from halocline.papers.polarised_wave import after_five_periods
from halocline.study.registry import papers


def test_the_wave_has_a_curve_for_each_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polarised_wave, "SIDES", (8, 16))
    monkeypatch.setattr(polarised_wave, "PERIODS", 1)
    report = after_five_periods(papers()["wombat-fig23b"])
    rows = report.tables[0].rows
    assert [row[1] for row in rows] == ["16 x 8", "32 x 16"] * 2
    for coarse, fine in (rows[:2], rows[2:]):
        (kept_amplitude, error), (kept_fine, error_fine) = (
            tuple(map(float, row[2:])) for row in (coarse, fine)
        )
        assert 0.3 < kept_amplitude <= 1.0
        assert abs(1.0 - kept_fine) < abs(1.0 - kept_amplitude)
        assert error_fine < error < 1.0
    figure = report.figures()["wombat-fig23b.png"]
    for axes in figure.axes[:2]:
        assert [line.get_label() for line in axes.lines] == ["N = 8", "N = 16", "exact solution"]
        assert len(axes.lines[0].get_xdata()) == 16 * 8  # type: ignore[arg-type]
