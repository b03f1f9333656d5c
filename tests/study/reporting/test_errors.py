"""Convergence studies of cases: the report of measurements, the error of a run, and one small study."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.io.style import styled
from halocline.problems.files import case_names
from halocline.problems.names import Family
from halocline.problems.problem import Problem
from halocline.run.ranks.communicator import Communicator
from halocline.study.reporting.errors import lines, order, orders, plot, tables, verdicts
from known_cases import known
from suites import cases

__all__ = ["known"]  # a fixture


def measurement(
    error: float | None, *shape: int, line: str = "fast", panel: str = "Waves", expected: int = 2
) -> dict[str, Any]:
    """Return the entries of a measurement that the report reads."""
    return {
        "case": "linear-wave", "n": shape[0], "shape": list(shape), "error": error, "panel": panel,
        "line": line, "expected_order": expected,
    }  # fmt: skip


# -- lines of a study ----------------------------------------------------------------------------------


def labels(families: list[tuple[str, Family]]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(family.title, label, family.sizes) for label, family in families]


def test_the_families_of_a_case_are_run_by_default() -> None:
    result = lines(Problem("linear-wave"), {})
    panels = {
        one.title: [label for label, family in result if family.title == one.title] for _, one in result
    }
    assert panels == {
        "Hydrodynamic modes in 1D": ["sound", "shear_y", "shear_z", "entropy_hydro"],
        "MHD modes in 1D": ["fast", "alfven", "slow", "entropy"],
        "MHD modes in 3D": ["fast", "alfven", "slow", "entropy"],
    }
    assert {(family.dim, family.sizes) for _, family in result} == {(1, (64, 128, 256)), (3, (32, 64))}
    assert result[1][1].lines == ({"wave": "shear_y"},)


def test_options_select_families() -> None:
    case = Problem("linear-wave")
    assert [label for label, _ in lines(case, {}, 3, (16,))] == ["fast", "alfven", "slow", "entropy"]
    one = lines(case, {"wave": "slow", "courant": 0.4}, 1, (16, 32))
    assert one == [("slow", Family("MHD modes in 1D", 1, (16, 32), ({"wave": "slow"},), 2))]
    # no family has a sound wave in three dimensions: the case itself, on its grid and coarser ones
    assert lines(case, {"wave": "sound"}, 3) == [("error", Family("3D", 3, (16, 32, 64)))]
    with pytest.raises(InputError, match="dim is 2; expected 1 or 3"):
        lines(case, {}, 2)


def test_lines_of_one_panel_are_labelled_by_different_axes() -> None:
    case = Problem("cp-alfven")
    assert labels(lines(case, {}, None, (16, 32))) == [
        ("After one period", "2D", (16, 32)),
        ("After one period", "3D", (16, 32)),
    ]
    assert labels(lines(case, {}, 3, (16,))) == [("After one period", "error", (16,))]


def test_a_case_without_families_runs_on_its_own_grid_and_coarser_ones(known: Callable[..., None]) -> None:
    known(decay=DECAY.replace("families =", "no_families =").replace("hc.cells(8)", "hc.cells(3)"))
    assert labels(lines(Problem("decay"), {}))[0] == ("1D", "error", (1, 3))


@cases(
    "selected, least",
    [(("cavity-2d", "heat", "poisson", "wave"), 4), (case_names(), 21)],
    lambda case: case[1] == 4,
    ids=["some", "all"],
)
def test_the_families_of_every_case_can_be_run(selected: Sequence[str], least: int) -> None:
    count = 0
    for name in selected:
        names = Problem(name).known
        assert not (names.families and names.error is None and names.extrapolated is None), name
        for family in names.families:
            for line in family.lines:
                for n in family.sizes:
                    count += 1
                    assert Problem(name, [n], line, dim=family.dim).shape[0] == n
    assert count >= least


# -- evaluation of measurements ------------------------------------------------------------------------


def test_the_order_refers_to_the_shorter_side() -> None:
    assert order(measurement(8e-3, 32, 16, 16), measurement(2e-3, 64, 32, 32)) == pytest.approx(2.0)
    assert order(measurement(2.7e-2, 10), measurement(1e-3, 30)) == pytest.approx(3.0)
    for coarse, fine in ((0.0, 1.0), (1.0, 0.0), (None, 1.0)):
        assert order(measurement(coarse, 8), measurement(fine, 16)) is None
    assert order(measurement(1.0, 8), measurement(0.5, 8)) is None


def test_each_panel_has_a_table() -> None:
    result = [
        *(measurement(e, n) for e, n in ((4e-3, 64), (1e-3, 128), (5e-4, 256))),
        *(measurement(e, n, line="slow") for e, n in ((1e-3, 128), (None, 64))),
        measurement(0.1, 32, 16, 16, panel="Across"),
    ]
    waves, across = tables(result, "L1 error")
    assert (waves.heading, waves.title) == ("linear-wave: Waves", "L1 error")
    assert waves.heads == ("", "N", "error", "order")
    assert waves.rows == (
        ("fast", "64", "4.0000e-03", ""),
        ("", "128", "1.0000e-03", "2.00"),
        ("", "256", "5.0000e-04", "1.00"),
        ("slow", "64", "unknown", ""),
        ("", "128", "1.0000e-03", ""),
    )
    assert across.heads == ("", "cells", "N", "error", "order")
    assert across.rows == (("fast", "32 x 16 x 16", "16", "1.0000e-01", ""),)
    assert "shorter side" in across.note
    assert "shorter side" not in waves.note


def test_each_line_has_a_sentence() -> None:
    fast = [measurement(e, n) for e, n in ((4e-3, 64), (1e-3, 128), (5e-4, 256))]
    slow = [measurement(e, n, line="slow") for e, n in ((8e-3, 32), (1e-3, 64))]
    exact = [measurement(e, n, line="exact") for e, n in ((0.0, 32), (0.0, 64))]
    assert verdicts([*fast, *slow, *exact, measurement(1.0, 8, line="alone")]) == [
        "Waves, alone: no order, because there is only one grid.",
        "Waves, fast: order 1.50 from N = 64 to 256, 1.00 from 128 on; expected 2 (not reached).",
        "Waves, slow: order 3.00 from N = 32 to 64; expected 2.",
        "Waves, exact: no order, because an error is 0 or unknown.",
    ]
    reached, missed = (
        [measurement(1.0, 32), measurement(0.26, 64)],
        [measurement(1.0, 32), measurement(0.3, 64)],
    )
    assert "not reached" not in verdicts(reached)[0]  # 1.94
    assert "not reached" in verdicts(missed)[0]  # 1.74
    one = orders(slow)[0]
    assert (one["cells"], one["expected_order"]) == ([32, 64], 2)
    assert one["order"] == one["last_order"] == pytest.approx(3.0)


def test_the_picture_has_a_panel_for_each_title_and_the_slope_expected() -> None:
    result = [measurement(1.0 / n**2, n, line=line) for line in ("a", "b") for n in (16, 32)]
    result += [measurement(e, 2 * n, n, panel="Across", expected=4) for e, n in ((1e-2, 8), (0.0, 16))]
    with styled():
        waves, across = plot(result, "L1 error").axes
    assert [line.get_label() for line in waves.lines] == ["a", "b", "slope -2"]
    start, end = waves.lines[2].get_ydata()
    assert start / end == pytest.approx(4.0)
    assert start > 1.0 / 16**2  # above the lines
    assert (waves.get_title(loc="left"), waves.get_ylabel()) == ("Waves", "L1 error")
    assert (waves.get_xlabel(), across.get_xlabel()) == ("N, cells", "N, cells along the shorter side")
    assert list(across.lines[0].get_xdata()) == [8]  # an error of 0 cannot be drawn on this axis


# -- the error of a run --------------------------------------------------------------------------------


DECAY = '''"""Decay.

Source: this test.
"""

import halocline as hc


steps = 2
first = hc.setting("first", 1.0, "1", "u at the start")
grid = hc.Grid(hc.cells(8), periodic=True)
u = grid.field("u")
families = (hc.Family("Decay", 1, (4, 8), ({}, {"first": 2.0})),)


def error(sim):
    return sim.evaluate(hc.max(u)) * sim.steps


sim = hc.Simulation(grid, lambda: {u: -1.0 * u}, scheme=hc.RK3(), dt=0.125, order=6)
sim[u] = first
sim.run(steps=steps)
'''
UNTIL = DECAY.replace("sim.run(steps=steps)", "sim.run(until=0.2)")
WITHOUT = DECAY.replace("def error", "def no_error")


def test_a_run_to_the_end_of_its_case_has_an_error(known: Callable[..., None]) -> None:
    known(decay=DECAY, until=UNTIL, without=WITHOUT)
    at_end = Problem("decay").run(threads=1).record
    assert at_end.error == pytest.approx(2 * 0.7788, rel=1e-4)  # exp(-1/4)
    assert Problem("decay").run(steps=2, threads=1).record.error == at_end.error
    assert Problem("until").run(until=0.2, threads=1).record.error == pytest.approx(2 * 0.8187, rel=1e-4)
    results = [
        Problem("decay").run(steps=1, threads=1),
        Problem("until").run(until=0.1, threads=1),
        Problem("without").run(threads=1),
        Problem("decay").run(only="compute", threads=1),
    ]
    assert [result.record.error for result in results] == [None] * 4
    known(odd=DECAY.replace("* sim.steps", '* float("nan")'))
    assert Problem("odd").run(threads=1).record.error is None  # JSON has no NaN


@pytest.mark.ranks(2)
def test_the_error_is_equal_on_all_ranks(known: Callable[..., None]) -> None:
    known(decay=DECAY)
    result = Problem("decay", [16]).run(threads=1)
    alone = Problem("decay", [16]).run(threads=1, communicator=Communicator())
    assert (result.record.ranks, alone.record.ranks) == (2, 1)
    assert result.record.error == alone.record.error == pytest.approx(2 * 0.7788, rel=1e-4)


def test_a_run_prints_its_error(
    known: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    known(
        decay=DECAY.replace("steps = 2", 'steps, error_name = 2, "difference from exp(-t)"'), without=WITHOUT
    )
    file = tmp_path / "r.json"
    assert command(["run", "decay", "--json", str(file)]) == 0
    assert json.loads(file.read_text())["error"] == pytest.approx(1.5576, rel=1e-4)
    assert re.search(
        r"^error +1\.5576e\+00 +difference from exp\(-t\)$", capsys.readouterr().out, re.MULTILINE
    )
    assert command(["run", "without"]) == 0
    assert "\nerror " not in capsys.readouterr().out
    assert command(["cases", "decay"]) == 0
    assert "halocline study convergence decay shows the error on finer grids" in capsys.readouterr().out


# -- the study -----------------------------------------------------------------------------------------
