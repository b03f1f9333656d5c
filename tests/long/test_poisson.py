"""The elliptic problem compared with NumPy, with published numbers, and with itself on other ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import preloaded
from halocline.run.ranks.communicator import Communicator
from halocline.solvers.cg import METHODS
from halocline.study.reporting.solves import predicted_bytes
from poisson_runs import check_published, record_of


@pytest.mark.parametrize("method", ["cg", "cg-fused"])
def test_table_3_1_is_reproduced_at_2048(method):
    check_published(record_of(2048, method=method))


def test_memory_at_8192_is_that_of_the_fields():
    """A new process measures its peak memory, which excludes the memory of other tests."""
    problem_text = "Problem('poisson', [8192], dim=2).run(steps=2)"
    script = f"from halocline.problems.problem import Problem; print({problem_text}.record.memory_bytes)"
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
    """Return the results of the command on its own ranks."""
    file = folder / "record.json"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {"json": file, **options}.items()]
    done = preloaded.halocline("solve", "poisson", f"--n={n}", *words)
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(**json.loads(file.read_text()))


@pytest.fixture(scope="module")
def results() -> dict[tuple[str, int | None], set[tuple[int, str]]]:
    """Return the iterations and checksums of all earlier runs, by method and limit."""
    return {(method, limit): set() for method in METHODS for limit in (None, SHORT)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ranks", LAYOUTS)
def test_table_3_1_at_1024_has_the_same_bits_on_any_layout(method, ranks, results, tmp_path):
    """Any ranks and threads give the same bits at convergence, other layouts after sixty iterations.

    The sums of each iteration spread an error of one cell to all others.
    """
    for threads in (1, 2):
        record = by_command(1024, tmp_path, method=method, ranks=ranks, threads=threads)
        check_published(record)
        results[method, None].add((record.iterations, record.checksum))
        assert len(results[method, None]) == 1, (ranks, threads)
    for layout in ({}, *LAYOUTS[ranks]):
        options = {"threads": 1, **layout}
        record = by_command(1024, tmp_path, method=method, ranks=ranks, max_iterations=SHORT, **options)
        results[method, SHORT].add((record.iterations, record.checksum))
        assert results[method, SHORT] == {(SHORT, record.checksum)}, (ranks, options)


@pytest.mark.ranks(2, 4)
def test_solutions_have_the_same_bits_in_one_and_three_dimensions():
    for n, dim in ((101, 1), (20, 3)):
        cuts = ("optimal", "1d", *(["2d", "3d"] if dim == 3 else []))
        records = [record_of(n, dim, threads=2, decomposition=cut) for cut in cuts]
        alone = record_of(n, dim, threads=1, communicator=Communicator())
        for result in records:
            assert (result.iterations, result.checksum) == (alone.iterations, alone.checksum)


def test_table_3_1_is_reproduced_at_1024():
    check_published(record_of(1024, threads=2))
