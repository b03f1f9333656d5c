"""The `halocline` command, in real processes on one rank and on several.

Most rejected command lines run in the process of the tests, since the start of a process takes longer.
"""

from __future__ import annotations

import re

import pytest

from command_lines import halocline


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_series_up_to_a_failure_is_kept(tmp_path, ranks):
    run = f"run orszag-tang-resistive --n 24 --set dt=0.12 --steps 60 --every 1 --ranks {ranks} --threads 1"
    result = halocline(f"{run} --csv series.csv", tmp_path)
    assert result.returncode == 1
    failed = int(re.search(r"step (\d+)", result.stderr)[1])
    rows = (tmp_path / "series.csv").read_text().splitlines()
    assert len(rows) > 3
    assert int(rows[-1].split(",")[0]) < failed + 1
    assert len(re.findall(r"^ *\d+ ", result.stdout, re.M)) == len(rows) - 1
