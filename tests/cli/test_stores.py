"""Texts of `halocline ls` for given listings."""

from __future__ import annotations

from typing import Any

import pytest

from halocline.cli.stores import TEXTS

OUTPUT: dict[str, Any] = {
    "path": "a.zarr", "title": "heat", "source": "Halocline 0.1.0", "history": "halocline run heat",
    "times": [0.0, 0.5], "steps": [0, 1000], "parameters": {"kappa": 0.1}, "equations": "u = 2 u",
    "arrays": {"u": {"dimensions": ["time", "x"], "shape": [2, 8], "dtype": "float64", "units": "",
                     "bytes": 2048}},
}  # fmt: skip
CHECKPOINT: dict[str, Any] = {
    "path": "c/step-7", "step": 7000, "time": 0.25, "made": "2026-01-01", "version": "0.1.0",
    "command": ["halocline", "run", "my file.py"], "case": {"name": "heat"}, "parameters": {},
    "equations": "", "arrays": {"u": {"location": "cell", "shape": [8, 8], "dtype": "float64", "bytes": 512}},
}  # fmt: skip
WHOLE = {"name": "a", "newest": True, "whole": True, "step": 7, "time": 0.5, "made": "now", "bytes": 10}
BROKEN = {"name": "b", "newest": False, "whole": False, "step": None, "time": None, "made": None, "bytes": 5}


def test_output_has_its_times_and_arrays() -> None:
    lines = TEXTS["output"](OUTPUT, False).splitlines()
    assert lines[:4] == [
        "a.zarr: output of heat, Halocline 0.1.0",
        "written by   halocline run heat",
        "times        2 times, t = 0 to 0.5, steps 0 to 1,000",
        "parameters   kappa = 0.1",
    ]
    assert [line.split()[:6] for line in lines if line.startswith("u ")] == [
        ["u", "time,", "x", "2", "x", "8"],
    ]  # fmt: skip
    assert TEXTS["output"](OUTPUT, True).endswith("Equations\n\nu = 2 u")


@pytest.mark.parametrize(
    ("times", "steps", "line"),
    [
        ([], [], "times        none yet"),
        (None, [3, 9], "steps        2 steps, from 3 to 9"),
        (None, None, ""),
    ],
)
def test_output_may_have_no_time(times: Any, steps: Any, line: str) -> None:
    text = TEXTS["output"]({**OUTPUT, "times": times, "steps": steps, "history": ""}, False)
    assert [
        printed_line for printed_line in text.splitlines() if printed_line.startswith(("times", "steps"))
    ] == [line] * bool(line)


def test_a_checkpoint_has_the_command_that_wrote_it() -> None:
    lines = TEXTS["checkpoint"](CHECKPOINT, False).splitlines()
    assert lines[:3] == [
        "c/step-7: checkpoint of step 7,000 (time 0.25)",
        "written      2026-01-01 by Halocline 0.1.0: halocline run 'my file.py'",
        "case         heat",
    ]


@pytest.mark.parametrize(
    ("checkpoints", "note"),
    [
        ([BROKEN, WHOLE], "Restart from the newest checkpoint with --resume c."),
        (
            [{**WHOLE, "newest": False}, BROKEN],
            "b is damaged. Restart from the last complete checkpoint with --resume c/a.",
        ),
        ([BROKEN], "None of these checkpoints is complete."),
        ([{**BROKEN, "step": 3}], "b is damaged; it lost T."),
    ],
)
def test_a_listing_shows_the_checkpoint_to_resume_from(checkpoints: list[dict[str, Any]], note: str) -> None:
    listing = {"path": "c", "checkpoints": checkpoints, "problem": "b is damaged; it lost T"}
    assert TEXTS["checkpoints"](listing, False).endswith(note)
