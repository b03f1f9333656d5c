"""The command `halocline explain`."""

from __future__ import annotations

import json

from case_measurements import halocline


def test_cases_are_explained_by_the_command(tmp_path):
    found = halocline("explain mhd-benchmark --n 16 --ranks 8 --order 2 --json e.json", tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("mhd-benchmark, 16 x 16 x 16 cells, order 2, rk3; a pass is a step\n")
    assert "8 ranks of 1 thread: 2 x 2 x 2 subdomains, optimal" in found.stdout
    told = json.loads((tmp_path / "e.json").read_text())
    assert (told["case"], told["shape"], told["order"], told["ranks"]) == ("mhd-benchmark", [16] * 3, 2, 8)
    assert told["parameters"]["nu"] == 5e-3
    assert told["pass"]["sweeps"] == 3
