"""Checkpoints, and restarts that have the bits of an uninterrupted run, for any process that died."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from killed_runs import check_killed_run
from stopped_runs import NAMES, results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the results of uninterrupted runs."""
    return results("whole", tmp_path_factory.mktemp("whole"))


# -- identical bits ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("opencl")
def test_a_run_restarts_with_the_same_bits_on_devices_and_back(whole: dict[str, str], tmp_path: Path) -> None:
    results("first", tmp_path / "cpu")
    assert results("resume", tmp_path / "cpu", device="opencl:0,1") == whole
    results("first", tmp_path / "opencl", device="opencl:0,1")
    assert results("resume", tmp_path / "opencl", ranks=2) == whole


# -- ranks that die ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", NAMES)
def test_the_newest_checkpoint_is_complete_after_a_hundred_kills(
    name: str, seed: int, whole: dict[str, str], tmp_path: Path
) -> None:
    draw = random.Random(f"{name} {seed}")
    check_killed_run(
        name, tmp_path, draw.choice([2, 3]), draw.choice(["one", "all", "I/O rank"]), whole[name], seed
    )
