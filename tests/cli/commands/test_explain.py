"""The command `halocline explain`."""

from __future__ import annotations

import json

from case_measurements import halocline


def test_the_command_explains_cases(tmp_path):
    result = halocline("explain mhd-benchmark --n 16 --ranks 8 --order 2 --json e.json", tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("mhd-benchmark, 16 x 16 x 16 cells, order 2, rk3; a pass is a step\n")
    assert "8 ranks of 1 thread: 2 x 2 x 2 subdomains, decomposition optimal" in result.stdout
    explanation = json.loads((tmp_path / "e.json").read_text())
    assert (explanation["case"], explanation["shape"], explanation["order"], explanation["ranks"]) == (
        "mhd-benchmark",
        [16] * 3,
        2,
        8,
    )
    assert explanation["parameters"]["nu"] == 5e-3
    assert explanation["pass"]["sweeps"] == 3
