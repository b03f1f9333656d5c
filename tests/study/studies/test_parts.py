"""Parts of a step."""

from __future__ import annotations

import re

import pytest

from case_measurements import parts_of, report_of
from halocline.errors import InputError
from halocline.problems.problem import Problem
from halocline.study.studies.parts import PARTS_OF_A_STEP

# -- tables --------------------------------------------------------------------------------------------


def test_the_table_shows_the_parts_of_a_step():
    result = [*parts_of(1, 8.0, 8.0, 0.5, 0.6, 0.6, 0.004), *parts_of(2, 6.0, 4.0, 5.0, 5.3, 5.6, 0.03)]
    times, shares = report_of(PARTS_OF_A_STEP, result).tables
    assert times.rows[0][2:] == ("8", "8", "0.5", "0.6", "0.6", "0.004")
    assert times.rows[1][2:] == ("6", "4", "5", "5.3", "5.6", "0.03")
    assert shares.rows[0][2:] == ("+0%", "0.05%", "+1.2%", "+0.0%")
    assert shares.rows[1][2:] == ("+20%", "0.50%", "+5.0%", "+5.0%")
    assert shares.rows[2][2:] == ("15% to 20%", "0.02% to 2%", "", "0.03% to 10%")
    assert shares.muted == (2,)
    assert report_of(PARTS_OF_A_STEP, result).sentences == [
        "256³ on 2 ranks of 1 thread: the exchange takes 1.25 times as long as computation. A step takes 20% "
        "longer than exchange alone."
    ]
    hidden = parts_of(2, 3.9, 4.0, 2.0, 2.0, 2.0, 0.1)
    assert (
        report_of(PARTS_OF_A_STEP, hidden).sentences[0].endswith("A step takes no longer than compute alone.")
    )


# -- runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"only": "waiting"}, "compute, exchange"),
        ({"only": "compute", "steps": 0}, "steps is 0"),
        (
            {"only": "compute", "steps": 2, "warm_up": 2},
            "warm_up is 2; expected a whole number from 0, fewer",
        ),
    ],
)
def test_unsupported_parts_are_rejected(options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Problem("alfven-decay", [16]).run(**options)
