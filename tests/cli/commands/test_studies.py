"""The commands of studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.study.reporting.errors import ORDER_TOLERANCE
from suites import cases

HAVE = (
    "Cases that have one of them are "
    "cavity, cavity-2d, cp-alfven, field-loop, heat, linear-wave, poisson, wave"
)
WRONG = [
    ("study convergence orszag-tang", "case orszag-tang has neither an exact solution nor"),
    ("study convergence orszag-tang", HAVE),
    (
        "study convergence linear-wav",
        "no case of that name (did you mean 'linear-wave'?)",
    ),
    ("study convergence poison --n 8", "no case of that name (did you mean 'poisson'?)"),
    ("study convergence linear-wave --n 16,x", "--n 16,x"),
    ("study convergence cp-alfven --n 15,30 --dim 3", "--n 15: expected a multiple of 2 for 3 axes"),
    ("study convergence linear-wave --n 16,16", "twice"),
    ("study convergence linear-wave --dim 2", "dim is 2; expected 1 or 3"),
    (
        "study convergence linear-wave --set wave=fst",
        "wave is 'fst' (did you mean 'fast'?); expected one of fast",
    ),
    ("study convergence linear-wave --n 16 --threads 0", "'--threads': 0; expected a whole number from 1"),
    (
        "study convergence heat --n 8 --dim 1 --csv /proc/halocline/c.csv",
        "cannot write /proc/halocline/c.csv",
    ),
    ("study convergence linear-wave --csv /proc/halocline/c.csv", "cannot write /proc/halocline/c.csv"),
    (
        "study convergence linear-wave --n 4,64 --dim 1 --set wave=fast --ranks 2",
        "the grid cannot be cut into 2 subdomains",
    ),
    ("study convergence cavity-2d --n 7,11", "--n 7,11: expected at least 3 numbers"),
    ("study convergence cavity --n 9", "--n 9: expected at least 3 numbers"),
    ("study convergence cavity-2d --n 7,11,11", "twice"),
    ("study convergence cavity-2d --n 2,7,11", "expected at least 4"),
    ("study convergence cavity-2d --n 7,x,11", "--n 7,x,11"),
    ("study convergence cavity --dim 2", "dim is 2; expected 3"),
    ("study convergence cavity-2d --set Ra=-1", "Ra is -1; expected a number above 0"),
    ("study convergence rotor", "neither an exact solution nor steady-state quantities"),
    ("study convergence linear-wave --order 4", "No such option"),
]


# these trace many programs before they are rejected
SLOW = (
    ("study convergence orszag-tang", HAVE),
    ("study convergence cp-alfven --n 15,30 --dim 3", "--n 15: expected a multiple of 2 for 3 axes"),
    ("study convergence linear-wave --csv /proc/halocline/c.csv", "cannot write /proc/halocline/c.csv"),
    ("study convergence rotor", "neither an exact solution nor steady-state quantities"),
)


@cases("line, words", WRONG, lambda case: case not in SLOW)
def test_invalid_options_are_rejected_before_any_run(
    line: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("halocline.study.measuring.command.measure", None)
    with pytest.raises(InputError) as refused:
        command(line.split())
    assert words in str(refused.value)


def test_a_group_without_a_case_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["study", "convergence", "--help"]) == 0
    out = capsys.readouterr().out
    assert "CASE" in out
    assert "linear-wave" in out
    assert ORDER_TOLERANCE < 0.5  # an order of 1 must never be accepted as 2
