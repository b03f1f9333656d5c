"""The command `halocline solve`, interrupted and restarted."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kept_runs import run_command_line


def test_a_resumed_solve_has_the_size_of_its_checkpoint(tmp_path: Path) -> None:
    store, folder = tmp_path / "u.zarr", tmp_path / "c"
    keeps = ["--output", store, "--output-every", "20", "--checkpoint", folder]
    first = run_command_line("solve", "poisson", "--n", "24", "--dim", "3", "--rtol", "1e-3", *keeps)
    assert first.returncode == 0, first.stderr
    assert re.search(
        r"^written +\S+ \S+ +output and checkpoints; the run paused \S+ \S+ for writing", first.stdout, re.M
    )
    done = run_command_line("solve", "poisson", "--resume", folder, *keeps, "--io-ranks", "1", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["n"], result["dof"]) == (24, 24**3)
    assert result["io_ranks"] == 1
    assert result["written_bytes"] > 0
    whole = json.loads(run_command_line("solve", "poisson", "--n", "24", "--dim", "3", "--json", "-").stdout)
    assert result["checksum"] == whole["checksum"]
    missing = run_command_line("solve", "poisson")
    assert missing.returncode == 2
    assert "Missing option '--n'" in missing.stderr
