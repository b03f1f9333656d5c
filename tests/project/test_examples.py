"""Every example, unchanged, as a user runs it: from the command line, alone and under mpiexec."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from example_runs import BITWISE, CASES, EXAMPLES, NEEDS
from hang import HANG
from loops import some
from started_examples import run
from suites import cases

LINES = {"sedov": 120, "fit_conductivity": 80}  # other examples: fewer than 60
FILES = {"gas", "hancock", "sod_exact"}  # code that the Euler examples share


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == CASES.keys() | FILES


def test_the_gallery_shows_every_example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES.parent / "tools"))
    import gallery

    assert gallery.RUNS.keys() == CASES.keys()
    for name in gallery.RUNS:
        assert gallery.description(EXAMPLES / f"{name}.py").endswith(".")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) < LINES.get(path.stem, 60)


# an explicit step, a solve, a projection within a step, and shocks
@cases("name", CASES, default=["heat_3d", "own_operator", "obstacle_flow", "sedov", "fit_conductivity"])
def test_examples_print_correct_results_and_draw_a_picture(name, folder):
    import matplotlib.image

    printed = run(name, 1, 1, folder)
    for fact, limit in CASES[name][1].items():
        assert abs(float(printed[fact].split()[0].rstrip(","))) <= limit, (fact, printed[fact])
    (picture,) = (file for file in (folder / f"{name}-1-1").iterdir() if file.suffix != ".zarr")
    image = matplotlib.image.imread(picture)
    assert min(image.shape[:2]) > 300
    middle = image[tuple(slice(n // 4, 3 * n // 4) for n in image.shape[:2])]
    assert np.ptp(middle[..., :3], axis=(0, 1)).max() > 0.3, "the middle of the picture is of one colour"


def test_examples_without_their_packages_end_with_a_message(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for name in some(NEEDS):
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG)
        assert (done.returncode, done.stderr) == (0, "")
        assert "PyTorch is missing" in done.stdout


@cases("name", BITWISE, default=["own_operator"])
def test_examples_have_the_same_bits_on_two_ranks(name, folder):
    assert run(name, 2, 1, folder)["checksum"] == run(name, 1, 1, folder)["checksum"]
    assert (folder / f"{name}-2-1" / f"{name}.png").is_file()


@cases(
    "name, ranks, threads",
    [("euler_2d", 4, 1), ("heat_3d", 1, 2), ("euler_1d", 3, 2)],
    default=[("heat_3d", 1, 2)],
)
def test_examples_have_the_same_bits_on_other_ranks_and_threads(name, ranks, threads, folder):
    assert run(name, ranks, threads, folder)["checksum"] == run(name, 1, 1, folder)["checksum"]


# -- Sedov's blast -----------------------------------------------------------------------------------


def test_the_blast_falls_back_and_stays_physical(folder):
    printed = run("sedov", 1, 1, folder)
    assert float(printed["pressure ratio"]) > 1e7
    assert int(printed["fallbacks"]) > 0
    shares = [float(printed[f"of {part}"]) for part in ("all faces", "vectors of 8", "pieces of 128")]
    assert 0 < shares[0] < shares[1] < shares[2] < 0.01
    assert float(printed["least density"]) > 0
    assert float(printed["least pressure"]) > 0


def test_the_radius_of_the_blast_agrees_with_the_similarity_solution():
    """The energy of R = t^(1/2) follows from its equations, integrated inwards from a strong shock."""
    from scipy.integrate import quad, solve_ivp

    gamma, source = 1.4, (EXAMPLES / "sedov.py").read_text()
    alpha = float(source.split("ALPHA = ")[1].split()[0])

    def slopes(x, state):
        u, rho, p = state
        system = [[rho, u - x, 0], [u - x, 0, 1 / rho], [0, -(u - x) * gamma * p / rho, u - x]]
        return np.linalg.solve(system, [-rho * u / x, u, 2 * p])

    shock = [2 / (gamma + 1), (gamma + 1) / (gamma - 1), 2 / (gamma + 1)]
    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-14, "dense_output": True}
    inside = solve_ivp(slopes, (1, 1e-3), shock, **options).sol

    def energy(x):
        u, rho, p = inside(x)
        return 2 * np.pi * x * (0.5 * rho * u * u + p / (gamma - 1))

    assert 0.25 * quad(energy, 1e-3, 1)[0] == pytest.approx(alpha, rel=2e-4)
