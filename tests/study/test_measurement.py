"""Studies of cases: reports of measurements, and the commands with few small runs."""

from __future__ import annotations

import re

import pytest

from halocline.errors import InputError
from halocline.problems.problem import Problem
from suites import cases

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


# -- studies -------------------------------------------------------------------------------------------


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


@cases("line, words", WRONG, default=WRONG[::3])
def test_invalid_options_are_rejected(line, words, monkeypatch, tmp_path):
    from halocline.cli.app import run

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(words)):
        run(line.split())
