"""Numbers that studies extrapolate from three grids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from halocline.cli.app import run as command
from halocline.errors import RunError
from halocline.io.style import styled
from halocline.study.reporting.extrapolation import limits, numbers, plot, tables, verdicts

# -- evaluation of measurements ------------------------------------------------------------------------


WHAT = {
    "names": ["flux", "speed"], "published": {"flux": 2.0}, "source": "a paper", "noise": 1e-6, "steps": 500,
}  # fmt: skip


def measurement(n: int, flux: float, speed: float, **instead: Any) -> dict[str, Any]:
    """Return the entries of a measurement that the report reads."""
    return {
        "case": "box", "shape": [n, n], "spacing": 1.0 / (n + 1), "panel": "Steady state", "line": "",
        "expected_order": 2, "flux": flux, "speed": speed, "extrapolated": {**WHAT, **instead},
    }  # fmt: skip


def with_options(**instead: Any) -> list[dict[str, Any]]:
    """Return measurements with changed entries of the file."""
    return [{**grid, "extrapolated": {**WHAT, **instead}} for grid in GRIDS]


FLUX = {n: 2.0 + 4.0 / (n + 1) ** 2 for n in (7, 15, 31, 63)}
GRIDS = [measurement(n, FLUX[n], speed) for n, speed in zip(FLUX, (1.0, 1.2, 1.1, 1.15), strict=True)]


def test_three_successive_grids_are_extrapolated() -> None:
    result = limits(GRIDS)
    assert [(row["name"], row["cells"]) for row in result] == [
        (name, cells) for name in WHAT["names"] for cells in ([7, 15, 31], [15, 31, 63])
    ]
    assert [row["trend"] for row in result] == ["falls", "falls", "oscillates", "oscillates"]
    one = result[1]
    assert one["order"] == pytest.approx(2.0)
    assert one["extrapolated"] == pytest.approx(2.0)
    assert one["difference"] == pytest.approx(0.0, abs=1e-12)
    assert one["values"] == [FLUX[n] for n in (15, 31, 63)]
    assert (result[3]["published"], result[3]["difference"]) == (None, None)
    json.dumps(result, allow_nan=False)
    assert limits(GRIDS[:2]) == []


def test_tables_show_the_results_of_three_successive_grids() -> None:
    table, leads = tables(GRIDS[:3], limits(GRIDS[:3]))
    assert table.heads == ("", "7²\nh = 0.125", "15²\nh = 0.0625", "31²\nh = 0.03125")
    assert table.rows[1] == ("speed", "1", "1.2", "1.1")
    assert leads.heads == (
        "",
        "ratio",
        "order",
        "extrapolated",
        "index %",
        "range",
        "published",
        "difference %",
    )
    flux, speed = leads.rows
    assert flux[:4] == ("flux", "4", "2.00", "2")
    assert flux[5:7] == ("0.99", "2")
    assert flux[7] in ("+0.00", "-0.00")
    assert speed == ("speed", "-2", "oscillates", "", "9.1*", "", "", "")  # 3 * 0.1 / 1.1 / 3
    assert "factor of 3" in leads.note
    assert "a paper" in leads.note
    longer = tables(GRIDS, limits(GRIDS))[1]
    assert longer.heads[1] == "N"
    assert [row[:2] for row in longer.rows] == [
        ("flux", "7, 15, 31"), ("", "15, 31, 63"), ("speed", "7, 15, 31"), ("", "15, 31, 63"),
    ]  # fmt: skip
    without = with_options(names=["flux"], published={})[:3]
    alone = tables(without, limits(without))[1]
    assert alone.heads[-1] == "range"
    assert "factor of 3" not in alone.note


def test_verdicts_state_no_order_without_convergence() -> None:
    sentences = verdicts(GRIDS, limits(GRIDS))
    assert sentences[0] == (
        "Steady state: the grids are not in the asymptotic range of order 2. Numbers with other orders: "
        "speed (oscillates). The indices are only estimates."
    )
    assert sentences[1].startswith("flux: 2 at spacing 0, order 2.00, index 0.061 % on 63²; 0.00 % from the ")
    assert sentences[2] == (
        "speed: the number oscillates, so order and limit are unknown; index 4.3 % on 63² (with order 2 and "
        "a factor of 3)."
    )
    assert len(sentences) == 3
    flux = with_options(names=["flux"])
    assert "in the asymptotic range, with orders within 0.2 of 2" in verdicts(flux, limits(flux))[0]
    steep = [measurement(n, 2.0 + 4.0 / (n + 1) ** 3, 1.0, names=["flux"]) for n in (7, 15, 31)]
    assert "probably too small where the order is above 2." in verdicts(steep, limits(steep))[0]
    constant = with_options(names=["flux"], noise=0.1)
    assert "no number changes" in verdicts(constant, limits(constant))[0]
    close = [measurement(n, 2.0 + 4.0 / (n + 1) ** 2, 1.0, names=["flux"]) for n in (15, 19, 24)]
    assert "15² and 19² differ only by a factor of 1.25" in verdicts(close, limits(close))[2]


def test_the_picture_shows_values_and_errors() -> None:
    with styled():
        numbers, distances = plot(GRIDS, limits(GRIDS)).axes
    labels = [line.get_label() for line in numbers.lines if not line.get_label().startswith("_")]
    assert labels == ["flux", "speed (oscillates), relative to 63²", "published"]
    # a number without a limit is omitted
    assert [line.get_label() for line in distances.lines] == ["flux", "slope 2"]
    start, *_, end = distances.lines[0].get_ydata()
    assert start / end == pytest.approx(64.0)
    published = numbers.lines[2]
    assert (list(published.get_xdata()), list(published.get_ydata())) == ([0.0], pytest.approx([0.0]))


def test_a_run_must_be_steady() -> None:
    named = dict.fromkeys(WHAT["names"], 1.0)
    done = {"command": "halocline run box", "steps": 400, "diagnostics": {**named, "more": 2.0}}
    done["extrapolated"] = WHAT
    assert numbers(done) == named
    with pytest.raises(RunError, match=r"run box:\nthe run is not steady after 500 steps"):
        numbers({**done, "steps": 500})
    with pytest.raises(RunError, match="these numbers are not finite: speed"):
        numbers({**done, "diagnostics": {**named, "speed": None}})


# -- the study -----------------------------------------------------------------------------------------


def test_a_case_has_reference_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["cases", "cavity"]) == 0
    text = "halocline study convergence cavity extrapolates results to grid spacing 0"
    assert text in capsys.readouterr().out
