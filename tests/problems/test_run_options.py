"""Options of a command for the runs of a file: wrong values, and options without an effect."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.problems.run_options import RunOptions, without_end


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": -1}, "steps is -1; expected a whole number from 0"),
        ({"steps": 0, "only": "compute"}, "steps is 0; expected a whole number from 1"),
        ({"only": "computing"}, "part of a step 'computing' is unknown (did you mean 'compute'?)"),
        ({"every": 0}, "every is 0"),
        ({"until": -1.0}, "until is -1.0; expected a finite time of at least 0"),
        ({"until": float("inf")}, "until is inf"),
        ({"warm_up": -1}, "warm_up is -1"),
        ({"warm_up": 5, "steps": 5}, "warm_up is 5; expected a whole number from 0, fewer than the 5 steps"),
    ],
)
def test_wrong_values_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hc.InputError) as error:
        RunOptions(**options)
    assert words in str(error.value)


def test_options_are_known_by_their_names_on_the_command_line() -> None:
    options = RunOptions(steps=3, until=0.5, output=hc.Output("a.zarr"), overwrite=True)
    assert options.option_texts == {
        "--steps": "--steps 3",
        "--until": "--until 0.5",
        "--output": "--output a.zarr",
        "--overwrite": "--overwrite",
    }
    assert options.has_end
    assert not RunOptions(warm_up=2).has_end


def test_an_option_without_effect_is_an_error_with_its_reason() -> None:
    options = RunOptions(until=0.5, checkpoint=hc.Checkpoint("c", every="5 steps"))
    assert set(options.option_texts) == {"--until", "--checkpoint"}
    options.check_used(set(), "a.py")
    with pytest.raises(hc.InputError, match=r"--checkpoint c: a.py runs no simulation and solves no linear"):
        options.check_used({"--checkpoint"}, "a.py")


def test_output_at_the_end_is_omitted_in_a_resumed_run() -> None:
    at_end, often = hc.Output("a.zarr"), hc.Output("b.zarr", every="2 steps")
    assert without_end([at_end, often])[1] == often
    assert without_end([at_end, often])[0] != at_end
