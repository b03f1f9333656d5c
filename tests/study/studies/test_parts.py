"""Parts of a step."""

from __future__ import annotations

import json
import re

import pytest

from case_measurements import halocline, parts_of, report_of
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


def test_parts_of_a_run_report_only_times(tmp_path):
    run = "run alfven-decay --n 24 --steps 4 --ranks 2 --threads 1 --warm-up 1 --json r.json"
    nothing = ("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series")
    for only, bound in (("compute", True), ("exchange", False), ("synchronisation", False)):
        result = halocline(f"{run} --only {only}", tmp_path)
        assert result.returncode == 0, result.stderr
        record = json.loads((tmp_path / "r.json").read_text())
        assert (record["only"], record["halo"], record["steps"], record["warm_up"]) == (only, "read", 4, 1)
        assert record["ns_per_cell_step"] > 0
        assert [record[name] for name in nothing] == [None] * len(nothing)
        assert (record["share_of_bound"] is not None, record["share_of_peak"] is not None) == (bound, bound)
        assert re.search(rf"^timed +.*{only.removesuffix('e')}\w* alone, ", result.stdout, re.M)
        assert "checksum" not in result.stdout
        assert "diagnostics" not in result.stdout
