"""The elliptic problem against plain NumPy, the published numbers, and itself on other ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import preloaded
from halocline.solvers.cg import METHODS
from halocline.study.reporting.solves import predicted_bytes
from poisson_runs import agrees, record_of


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_table_3_1_at_2048(method):
    agrees(record_of(2048, method=method))


def test_memory_at_8192():
    """Of a process of its own: the most that this one ever had would count what other tests took."""
    made = "Problem('poisson', [8192], dim=2).run(steps=2)"
    script = f"from halocline.problems.problem import Problem; print({made}.record.memory_bytes)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 1.1 * predicted_bytes(8192, 2) + 60e6


LAYOUTS: dict[int, list[dict[str, Any]]] = {
    1: [{"patch": "16"}, {"patch": "7,128"}],
    2: [{"decomposition": "1d-y"}, {"decomposition": "1x2", "patch": "64,5", "threads": 2}],
    3: [{"decomposition": "1d-x"}, {"decomposition": "1x3", "patch": "33", "threads": 2}],
    4: [
        {"decomposition": "morton"},
        {"decomposition": "2x2", "patch": "5,1024"},
        {"decomposition": "4x1", "threads": 2},
        {"decomposition": "bisection", "patch": "256,40", "threads": 2},
    ],
}
SHORT = 60  # iterations


def by_command(n: int, folder: Path, **options: Any) -> SimpleNamespace:
    """What the command finds, on ranks of its own."""
    file = folder / "record.json"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {"json": file, **options}.items()]
    done = preloaded.halocline("solve", "poisson", f"--n={n}", *words)
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(**json.loads(file.read_text()))


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, int | None], set[tuple[int, str]]]:
    """Iterations and checksums of all runs so far, by method and limit."""
    return {(method, limit): set() for method in METHODS for limit in (None, SHORT)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ranks", LAYOUTS)
def test_table_3_1_at_1024_has_the_same_bits_on_any_ranks_threads_and_layout(method, ranks, seen, tmp_path):
    """To the end on any ranks and threads; in other layouts for sixty iterations: the sums of each carry what
    is wrong in one cell to all others."""
    for threads in (1, 2):
        record = by_command(1024, tmp_path, method=method, ranks=ranks, threads=threads)
        agrees(record)
        seen[method, None].add((record.iterations, record.checksum))
        assert len(seen[method, None]) == 1, (ranks, threads)
    for layout in ({}, *LAYOUTS[ranks]):
        options = {"threads": 1, **layout}
        record = by_command(1024, tmp_path, method=method, ranks=ranks, max_iterations=SHORT, **options)
        seen[method, SHORT].add((record.iterations, record.checksum))
        assert seen[method, SHORT] == {(SHORT, record.checksum)}, (ranks, options)
