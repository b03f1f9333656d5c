"""Every example as a user runs it: from the command line, alone and under mpiexec, without a change."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from halocline.run.launch import mpiexec

EXAMPLES = Path(__file__).parents[1] / "examples"

# arguments that make it small, and for facts that it prints the greatest value that the physics allows
CASES = {
    "heat_3d": (["24"], {"heat gained": 1e-13, "error": 1e-3}),
    "wave_2d": (["40"], {"energy changed": 1e-13, "air changed": 1e-13}),
    "gray_scott": (["64", "2000"], {"matter made": 1e-15}),
    "own_operator": (["48"], {"error": 2e-3}),
    "l_shape": (["63"], {"error": 2e-2}),
    "channel": (["12"], {"error": 3e-4}),
    "euler_1d": (["120"], {"mass lost": 1e-14, "energy lost": 1e-14, "mean error": 4.5e-3}),
    "euler_2d": (
        ["40", "0.4"],
        {"mass lost": 1e-13, "energy lost": 1e-13, "flux balance": 1e-13, "skewness": 0.0},
    ),
}
FILES = {"gas", "hancock", "sod_exact"}  # what the Euler examples share


@functools.cache
def run(name: str, ranks: int, threads: int, folder: Path) -> dict[str, str]:
    """What an example prints, by the label of the line."""
    start = [] if ranks == 1 else [str(mpiexec()), "-n", str(ranks)]
    environment = os.environ | {
        "HALOCLINE_OUT": str(folder / f"{name}-{ranks}-{threads}"),
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
    }
    command = [*start, sys.executable, str(EXAMPLES / f"{name}.py"), *CASES[name][0]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("  ", 1) for line in done.stdout.splitlines()]
    assert all(len(line) == 2 for line in lines), done.stdout
    assert len({label for label, _ in lines}) == len(lines), f"printed more than once:\n{done.stdout}"
    return {label: value.strip() for label, value in lines}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == CASES.keys() | FILES


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) < 60


@pytest.mark.parametrize("name", CASES)
def test_facts_and_picture(name, folder):
    import matplotlib.image

    printed = run(name, 1, 1, folder)
    for fact, limit in CASES[name][1].items():
        assert abs(float(printed[fact].split()[0].rstrip(","))) <= limit, (fact, printed[fact])
    (picture,) = (folder / f"{name}-1-1").iterdir()
    image = matplotlib.image.imread(picture)
    assert min(image.shape[:2]) > 300
    middle = image[tuple(slice(n // 4, 3 * n // 4) for n in image.shape[:2])]
    assert np.ptp(middle[..., :3], axis=(0, 1)).max() > 0.3, "the middle of the picture is of one colour"


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_on_two_ranks(name, folder):
    assert run(name, 2, 1, folder)["checksum"] == run(name, 1, 1, folder)["checksum"]
    assert (folder / f"{name}-2-1" / f"{name}.png").is_file()


@pytest.mark.parametrize(
    ("name", "ranks", "threads"), [("euler_2d", 4, 1), ("heat_3d", 1, 2), ("euler_1d", 3, 2)]
)
def test_the_same_bits_on_other_ranks_and_threads(name, ranks, threads, folder):
    assert run(name, ranks, threads, folder)["checksum"] == run(name, 1, 1, folder)["checksum"]
