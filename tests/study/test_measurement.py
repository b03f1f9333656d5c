"""Studies of cases: reports of measurements, and the commands with few small runs."""

from __future__ import annotations

import json
import re

import pytest

from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.study.layout import Layout
from halocline.study.measuring.command import Command, measure

# -- runs ----------------------------------------------------------------------------------------------


def test_warm_up_steps_change_only_the_time():
    cold, warm = (Problem("alfven-decay", [16]).run(steps=5, warm_up=w, threads=1).record for w in (0, 3))
    assert (warm.checksum, warm.steps, warm.series) == (cold.checksum, 5, cold.series)
    assert warm.warm_up == 3
    record = Problem("alfven-decay", [16]).run(steps=5, warm_up=3, every=2, threads=1).record
    assert [at["step"] for at in record.series] == [0, 2, 4, 5]
    # the clock stops before the end of a run that is shorter than expected
    short = Problem("alfven-decay", [16]).run(until=1e-3, warm_up=3, threads=1).record
    assert (short.steps, short.warm_up, short.ns_per_cell_step) == (1, 1, None)
    assert short.series[-1]["time"] == 1e-3


def test_all_schemes_run():
    times = {s: Problem("alfven-decay", [16], {"dt": 0.01}, scheme=s).run(steps=2, threads=1) for s in
             ("euler", "rk2", "rk3", "rk3-previous", "rk4", "ssprk3")}  # fmt: skip
    ends = {scheme: result.record.diagnostics["u_rms"] for scheme, result in times.items()}
    assert len({result.record.checksum for result in times.values()}) == 5
    assert ends["rk3"] == pytest.approx(ends["rk4"], rel=1e-7)
    assert ends["rk3"] == pytest.approx(ends["ssprk3"], rel=1e-9)


# -- studies -------------------------------------------------------------------------------------------


def test_a_measurement_agrees_with_the_command():
    case = Command("run", "alfven-decay", {"order": 4, "steps": 3}, ("nu=0.1", "eta=0.1"))
    result = measure(case, (16,), Layout(1, 1), repeat=2)
    assert result["command"] == (
        "halocline run alfven-decay --n 16 --order 4 --steps 3 --ranks 1 --threads 1 --set nu=0.1 "
        "--set eta=0.1"
    )
    assert (result["shape"], result["parameters"]["nu"], result["settings"]) == ([16], 0.1, "nu=0.1 eta=0.1")
    assert len(result["times"]) == 2
    json.dumps(result, allow_nan=False)


WRONG = [
    ("study strong mhd-benchmrk", "no case of that name (did you mean 'mhd-benchmark'?)"),
    ("study weak poison", "no case of that name (did you mean 'poisson'?); cases: "),
    ("explain poison --n 8", "there is no file poison and no case of that name (did you mean 'poisson'?)"),
    ("study strong mhd-benchmark --n 16,x", "--n 16,x"),
    ("study strong alfven-decay --n 4 --ranks 1,2", "the grid cannot be cut into 2 subdomains"),
    ("study strong alfven-decay --ranks 0", "--ranks 0"),
    ("study strong alfven-decay --threads 1,1", "twice"),
    ("study strong alfven-decay --orders 2,3", "order 3 is not an order of central differences"),
    ("study strong alfven-decay --scheme rk5", "scheme 'rk5'"),
    ("study strong alfven-decay --set nuu=1", "parameter 'nuu' is unknown (did you mean 'nu'?)"),
    ("study strong alfven-decay --steps 0", "'--steps': 0; expected a whole number from 1"),
    ("study weak alfven-decay --steps 4 --warm-up 4", "--warm-up 4: expected a whole number from 0, fewer"),
    ("study weak alfven-decay --repeat 0", "'--repeat': 0; expected a whole number from 1"),
    ("study weak alfven-decay --html /proc/halocline/w.html", "cannot write /proc/halocline/w.html"),
    ("explain mhd-benchmark --ranks 0", "'--ranks': 0; expected a whole number from 1 to 10,000,000"),
    ("explain mhd-benchmark --n 8 --ranks 2 --rank 2", "rank is 2; expected a number from 0 to 1"),
    ("explain mhd-benchmark --set nu", "--set nu: expected nu=VALUE"),
    ("run alfven-decay --only waiting", "--only waiting: expected one of compute, exchange"),
    (
        "run alfven-decay --only compute --csv a.csv",
        "--csv a.csv: --only compute measures a fixed number of steps",
    ),
    (
        "run alfven-decay --only exchange --until 1",
        "--until 1.0: --only exchange measures a fixed number of steps",
    ),
    ("run alfven-decay --only exchange --every 1", "Leave --every out."),
    ("run alfven-decay --only exchange --pictures p", "Leave --pictures out."),
    ("run alfven-decay --steps 3 --warm-up 3", "warm_up is 3"),
    ("run alfven-decay --warm-up -1", "'--warm-up': -1; expected a whole number from 0"),
]


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_invalid_options_are_rejected(line, words, monkeypatch, tmp_path):
    from halocline.cli.app import run

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(words)):
        run(line.split())
