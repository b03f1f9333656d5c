"""Additions of a case to its equations, on two small cases.

Additions are further grids, words, an end time, a step function, events, and checks of the result. Others
are pictures of derived quantities, and a check of the start.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.run.simulation.settings import Setting
from suites import cases

SINK = '''"""Something that falls until it lies on a floor.

A program: u falls evenly down to a floor, which the last cells reach first.

Source: this test.
"""

import halocline as hc

RATES = {"slow": 1.0, "fast": 2.0, "faster": 4.0}
FLOOR = hc.Event("floor", "floored", "the sink takes less than it should", warn_above=0.01)

shape = hc.cells(8, also=[(6, 4), (4, 2, 2)])
floor = hc.setting("floor", 0.25, "1", "where u ends", minimum=0.0)
most = hc.setting("most", 2.0, "1", "of u at the start")
rate = hc.setting("rate", "slow", "1", "of the fall", words=tuple(RATES))
until = 1.0

grid = hc.Grid(shape, extent=tuple(0.25 * n for n in shape), periodic=True)
u = grid.field("u")
key_diagnostics = ("mean",)
scheme_name = "evenly"
events = (FLOOR,)
ends = ()


@hc.program
def fall(dt, step, floor):
    count, first, when = (hc.scalar(name) for name in FLOOR.scalars)
    lower = u - RATES[rate] * dt
    low = lower < floor
    now = hc.sum(hc.where(low, 1.0, 0.0))
    begins = (count < 0.5) & (now > 0.5)
    first.set(hc.where(begins, hc.min(hc.where(low, grid.cell_number(), float(grid.size))), first))
    when.set(hc.where(begins, step + 1.0, when))
    count.set(count + now)
    u.set(hc.maximum(lower, floor))


def diagnostics():
    return {"mean": hc.sum(u) / grid.size}


def pictures():
    return {"depth": 1.0 - u, "square": u**2}


def check(sim, record):
    values = sim.gather("u")
    if values is None:
        return []
    lost = record.series[0]["mean"] - record.series[-1]["mean"]
    return [
        hc.Check("least u", values.min(), minimum=floor),
        hc.Check("loss", lost, minimum=0.1, maximum=RATES[rate] * sim.time, about="of the mean of u"),
        hc.Check("floored", record.events["floor"]["count"], maximum=0.0),
    ]


sim = hc.Simulation(
    grid, fall, parameters={"floor": floor}, dt=lambda: 0.25 + 0.0 * hc.max(u), time_step="delayed"
)
sim[u] = most - 0.5 * grid.cell_number() / grid.size  # the number of the cell tells how much there is
least = sim.evaluate(hc.min(u))
if least < floor:
    raise hc.InputError(f"u is {least:g} at the start; expected at least floor = {floor:g}")
sim.run(until=until)
'''
DECAY = '''"""Decay.

Source: this test.
"""

import halocline as hc

steps = 2
grid = hc.Grid(hc.cells(8, 4, also=[(4,)]), periodic=True)
u = grid.field("u")
sim = hc.Simulation(grid, lambda: {u: -1.0 * u}, scheme=hc.RK3(), dt=0.125, order=6)
sim[u] = 1.0
sim.run(steps=steps)
'''

Using = Callable[..., None]


@pytest.fixture(autouse=True)
def use(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Using:
    """Return a function that registers cases by their texts; these two are registered at first."""

    def known(**cases: str) -> None:
        folder = tmp_path_factory.mktemp("cases")
        for name, text in cases.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr("halocline.problems.files.CASES", folder)

    known(sink=SINK, decay=DECAY)
    return known


def refused(*words: str) -> str:
    with pytest.raises(InputError) as raised:
        command(list(words))
    return str(raised.value)


# -- shapes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "dim", "shape"),
    [
        (None, None, (8,)),
        (None, 2, (6, 4)),
        ([4], None, (4,)),
        ([12], 2, (12, 8)),
        ([12, 8], None, (12, 8)),
        ([12, 8], 2, (12, 8)),
        ([8], 3, (8, 4, 4)),
        ([5, 3, 2], None, (5, 3, 2)),
    ],
)
def test_axes_are_chosen_by_dim_or_by_n(n: Sequence[int] | None, dim: int | None, shape: tuple[int, ...]):
    ready = Problem("sink", n, dim=dim)
    assert ready.shape == ready.grid.shape == shape


def test_axes_that_a_case_lacks_are_rejected():
    with pytest.raises(
        InputError, match="dim is 3; expected 1 or 2, the numbers of axes that this problem supports"
    ):
        _ = Problem("decay", dim=3).program
    assert Problem("decay", dim=1).shape == (4,)  # the last of its axes
    for n, dim, words in (
        ([4, 4], 3, "n is 4,4; expected one number, or as many numbers as axes: 3"),
        ([4] * 4, None, "n is 4,4,4,4; expected one number, or as many numbers as axes: 1 or 2 or 3"),
    ):
        with pytest.raises(InputError, match=words):
            _ = Problem("sink", n, dim=dim).program
    assert "dim is 3; expected 1 or 2" in refused("run", "decay", "--dim", "3")
    assert "'--dim': 4; expected a whole number from 1 to 3" in refused("run", "sink", "--dim", "4")


# -- words ---------------------------------------------------------------------------------------------


def test_a_parameter_with_words_keeps_the_chosen_word(tmp_path: Path):
    fast = Problem("sink", replacements={"rate": "fast"}).run(steps=1, threads=1).record
    assert fast.parameters == {"floor": 0.25, "most": 2.0, "rate": "fast"}
    line = ["run", "sink", "--set", "rate=fast", "--steps", "1", "--json", f"{tmp_path / 'a.json'}"]
    assert command(line) == 0
    record_data = json.loads((tmp_path / "a.json").read_text())
    assert (record_data["parameters"]["rate"], record_data["checksum"]) == ("fast", fast.checksum)
    assert "checks" not in record_data


def test_unknown_words_are_rejected(capsys: pytest.CaptureFixture[str]):
    for value, words in (
        (
            "fsat",
            r"rate is 'fsat' \(did you mean 'fast'\?\); expected one of slow, fast, faster: of the fall",
        ),
        (1.0, r"rate is 1.0; expected one of slow, fast, faster"),
    ):
        with pytest.raises(InputError, match=words):
            _ = Problem("sink", replacements={"rate": value}).program
    with pytest.raises(InputError, match="floor is 'deep'; expected a number from 0 on: where u ends"):
        _ = Problem("sink", replacements={"floor": "deep"}).program
    message = refused("run", "sink", "--set", "rate=slwo")
    assert message == "rate is 'slwo' (did you mean 'slow'?); expected one of slow, fast, faster: of the fall"
    assert "rate is given twice" in refused("run", "sink", "--set", "rate=slow", "--set", "rate=slow")
    command(["cases", "sink"])
    page = capsys.readouterr().out
    assert "one of slow, fast, faster" in page
    assert "8 cells, to time 1\n" in page
    assert "4 x 2 x 2 cells with --dim 3" in page


# -- end of a run --------------------------------------------------------------------------------------


def test_a_case_runs_to_its_default_end_time(use: Using):
    assert Problem("sink").run(threads=1).record.time == 1.0
    assert Problem("sink").run(threads=1, steps=2).record.time == 0.5
    assert Problem("sink").run(threads=1, until=0.75).record.steps == 3
    # without a number of steps in the file, the timed part has the steps of the run
    assert Problem("sink").run(only="compute", threads=1).record.steps == 4
    use(sink=SINK.replace("sim.run(until=until)", "sim.run(steps=3)"))
    assert Problem("sink").run(threads=1).record.steps == 3


# -- programs ------------------------------------------------------------------------------------------


def test_a_program_declares_its_scheme(capsys: pytest.CaptureFixture[str]):
    ready = Problem("sink")
    record = ready.run(steps=2, threads=1).record
    assert (record.order, record.scheme, record.events["floor"]["count"]) == (None, "evenly", 0)
    assert ready.program.name == "fall"
    other = Problem("decay", order=4).run(threads=1).record
    assert (other.order, other.scheme, other.steps, other.events) == (4, "rk3", 2, {})
    for option, value in (("--scheme", "rk4"), ("--order", "4")):
        name = option[2:]
        message = refused("run", "sink", option, value)
        assert message == (
            f"{name} is {value}, but sink is a program with its own scheme, evenly. Leave {name} out."
        )
    command(["run", "sink", "--steps", "1"])
    out = capsys.readouterr().out
    assert out.startswith("sink, 8 cells, evenly, 1 rank")
    assert re.search("^events +none +monitored: floor$", out, re.MULTILINE)
    command(["explain", "sink", "--dim", "2"])
    assert capsys.readouterr().out.startswith("sink, 6 x 4 cells, evenly; a pass is a step")


# -- events --------------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2, long=(1,))
def test_events_of_a_program_are_counted(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
):
    # the last cell has the minimum: it begins at 1.02, and is at 0.27 after 3 steps
    with caplog.at_level(logging.WARNING):
        result = Problem("sink", [4, 6], {"most": 1.5}).run(threads=1, every=1)
    event = result.record.events["floor"]
    count = sum(1.5 - 0.5 * i / 24 - 1.0 < 0.25 for i in range(24))
    assert 0 < count < 24
    assert event["count"] == count
    assert event["share"] == count / (24 * 4)
    number = 24 - count
    assert (event["first_cell"], event["first_step"]) == ([number // 6, number % 6], 4)
    first = result.simulation.domain.comm.rank == 0
    warned = [r.getMessage() for r in caplog.records if "limit of 1 %" in r.getMessage()]
    assert len(warned) == first
    if first:
        assert warned[0].endswith("the sink takes less than it should")
    # the interval of checks changes no bit, although the time step is delayed
    whole = Problem("sink", [4, 6], {"most": 1.5}).run(threads=1).record
    assert (whole.checksum, whole.events) == (result.record.checksum, result.record.events)
    capsys.readouterr()
    command(["run", "sink", "--n", "4,6", "--set", "most=1.5"])
    out = capsys.readouterr().out
    cells = ["floor", str(count), f"{count / 96:.2g}", f"{(number // 6, number % 6)}", "4"]
    assert (re.search("^" + " +".join(map(re.escape, cells)) + "$", out, re.M) is not None) == first


def test_an_event_without_assignment_is_an_error(use: Using):
    use(sink=SINK.replace("events = (FLOOR,)", 'events = (hc.Event("roof", "roofed", ""),)'))
    with pytest.raises(
        InputError,
        match="event 'roof': the program 'fall' does not set roofed_cell, roofed_count, roofed_step; it must",
    ):
        Problem("sink").run(threads=1)


# -- checks --------------------------------------------------------------------------------------------


def test_a_check_has_bounds():
    for check, passed, bound in (
        (hc.Check("a", 1.0, maximum=1.0), True, "at most 1"),
        (hc.Check("a", 1.5, maximum=1.0), False, "at most 1"),
        (hc.Check("a", 1.0, minimum=2.0), False, "at least 2"),
        (hc.Check("a", 1.0, minimum=0.5, maximum=2.0), True, "0.5 to 2"),
        (hc.Check("a", math.nan, maximum=1.0), False, "at most 1"),
        (hc.Check("a", math.nan), False, "a number"),
        (hc.Check("a", math.inf, minimum=1.0), True, "at least 1"),
        (hc.Check.not_compared("a", "nothing is known"), True, "not compared"),
    ):
        assert (check.passed, check.bound) == (passed, bound)


@pytest.mark.ranks(1, 2, long=(1,))
def test_all_ranks_get_the_same_checks():
    ready = Problem("sink", replacements={"rate": "fast"})
    checks = ready.run(threads=1).check()
    assert [(check.name, check.passed) for check in checks] == [
        ("least u", True),
        ("loss", True),
        ("floored", False),
    ]


@pytest.mark.ranks(1, 2, long=(1,))
def test_the_command_checks_and_prints_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    line = ["run", "sink", "--check", "--json", f"{tmp_path / 'a.json'}", "--pictures", f"{tmp_path}"]
    from halocline.run.ranks.mpi import world

    first = world().rank == 0
    assert command(line) == 0
    assert ("All checks passed." in capsys.readouterr().out) == first
    assert command([*line, "--set", "rate=fast"]) == 1
    out = capsys.readouterr().out
    world().barrier()
    if first:
        assert "1 of 3 checks failed." in out
        assert "FAILED" in out
        checks = json.loads((tmp_path / "a.json").read_text())["checks"]
        assert [check["passed"] for check in checks] == [True, True, False]
        assert checks[1]["about"] == "of the mean of u"
        assert (checks[2]["value"], checks[2]["most"], checks[2]["least"]) == (
            11.0,
            0.0,
            None,
        )  # 3 in step 3, 8 in step 4
        assert sorted(p.name for p in tmp_path.glob("*.png")) == ["depth.png", "square.png"]
    assert command(["run", "--check", "sink"]) == 0  # an option before the name takes no value


def test_a_value_that_is_nan_fails_and_is_null(use: Using, capsys: pytest.CaptureFixture[str]):
    use(
        sink=SINK.replace(
            "sim.run(until", 'check = lambda sim: [hc.Check("odd", float("nan"))]\nsim.run(until'
        )
    )
    assert command(["run", "sink", "--check", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["checks"][0]["value"] is None


def test_checks_without_comparison_do_not_fail(use: Using, capsys: pytest.CaptureFixture[str]):
    none = 'check = lambda sim: [hc.Check.not_compared("odd", "nothing is known")]\nsim.run(until'
    use(sink=SINK.replace("sim.run(until", none))
    assert command(["run", "sink", "--check"]) == 0
    assert "nothing is known" in capsys.readouterr().out


@pytest.mark.parametrize(("value", "fits"), [(0.0, True), (0.4999, True), (0.5, False), (-0.1, False)])
def test_a_parameter_below_its_minimum_is_rejected(value: float, fits: bool):
    share = Setting(0.1, "1", "a share", minimum=0.0, below=0.5)
    assert share.range == "a number from 0, below 0.5"
    if fits:
        share.check("share", value)
    else:
        with pytest.raises(InputError, match=r"expected a number from 0, below 0\.5"):
            share.check("share", value)


def test_invalid_checks_are_rejected():
    message = refused("run", "decay", "--check")
    assert message == "--check: decay has no check. `halocline cases NAME` shows whether a case has a check."
    message = refused("run", "sink", "--check", "--only", "compute", "--steps", "2")
    assert message.startswith("--check: --only compute measures a fixed number of steps")
    ready = Problem("decay")
    with pytest.raises(InputError, match="case decay has no check"):
        ready.run(threads=1).check()
    ready = Problem("sink")
    with pytest.raises(InputError, match="a run of compute alone"):
        ready.run(only="compute", steps=2, threads=1).check()


# -- pictures and start --------------------------------------------------------------------------------


@cases("dim", ["1", "2", "3"], default=["2"])
def test_pictures_show_derived_quantities(tmp_path: Path, dim: str):
    assert command(["run", "sink", "--dim", dim, "--steps", "1", "--pictures", f"{tmp_path}"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["depth.png", "square.png"]


@pytest.mark.ranks(1, 2, long=(1,))
def test_an_invalid_initial_state_is_rejected_before_the_first_step():
    with pytest.raises(InputError, match=r"u is -0.\d+ at the start; expected at least floor = 0.25"):
        Problem("sink", replacements={"most": 0.2}).run(threads=1)
