"""Runs in unusual environments give the result of an ordinary run, or one clear message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halocline.compile.cache import cache_folder
from halocline.errors import CompileError
from hang import HANG

HEAT = """
import halocline as hc
grid = hc.Grid((16, 16), periodic=True)
T = grid.field("T")
sim = hc.Simulation(grid, lambda T: {T: 0.5 * hc.laplacian(T) + 1.25}, scheme=hc.Euler(), dt=1e-3, threads=1)
sim[T] = lambda x, y: x
sim.run(steps=3)
hc.print(sim.checksum(T))
"""
C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ALONE = {
    "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "1",
    "SLURM_STEP_ID": "0", "SLURM_NNODES": "1", "SLURM_NODELIST": "nowhere",
    "SLURM_JOB_NODELIST": "nowhere", "SLURM_TASKS_PER_NODE": "1",
}  # fmt: skip
LONG = pytest.mark.long
BYTES = os.fsdecode(b"k\xff\xe4rnels")


def run(folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run heat from a file in this folder, and compile its kernels, except if the environment prevents it."""
    file = folder / "heat.py"
    file.write_text(HEAT)
    return subprocess.run(
        [sys.executable, "-m", "halocline.cli", "run", file, *options],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checksum(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = run(tmp_path_factory.mktemp("ordinary"), {})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "folder", "options"),
    [
        ({"HALOCLINE_CACHE": f"{{folder}}/{BYTES}"}, "plain", ()),
        pytest.param(ALONE | {"PMIX_RANK": "0"}, "plain", ("--ranks", "2"), marks=LONG),
        pytest.param(C | {"HALOCLINE_CACHE": "{folder}/Wärme"}, "größe", (), marks=LONG),
        pytest.param(C, "größe", ("--ranks", "2"), marks=LONG),
        pytest.param({"HALOCLINE_CACHE": "~/kernels", "HOME": "{folder}"}, "plain", (), marks=LONG),
        pytest.param({"PMIX_RANK": "1"}, "plain", ("--ranks", "2"), marks=LONG),
        pytest.param({"PMI_RANK": "0", "PMI_SIZE": "1"}, "plain", ("--ranks", "2"), marks=LONG),
        pytest.param({"LC_ALL": "tr_TR.UTF-8"}, "größe", (), marks=LONG),
        pytest.param({"LC_ALL": "de_DE.UTF-8", "HALOCLINE_TIMEOUT": "99.5"}, "plain", ("--ranks", "2"),
                     marks=LONG),
    ],
)  # fmt: skip
def test_a_run_has_the_same_result_in_any_environment(
    environment: dict[str, str], folder: str, options: tuple[str, ...], tmp_path: Path, checksum: str
) -> None:
    place = tmp_path / folder
    place.mkdir()
    variables = {name: value.format(folder=place) for name, value in environment.items()}
    done = run(place, variables, *options)
    assert (done.returncode, done.stdout) == (0, checksum), done.stderr
    assert done.stderr == ""
    if "HALOCLINE_CACHE" in variables:
        cache = Path(variables["HALOCLINE_CACHE"].replace("~", str(place)))
        assert list(cache.glob("*.so"))


def test_the_home_folder_of_the_cache_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HALOCLINE_CACHE", "~/kernels")
    assert cache_folder() == tmp_path / "kernels"
    monkeypatch.setenv("HALOCLINE_CACHE", "~no-such-user/kernels")
    with pytest.raises(
        CompileError, match="HALOCLINE_CACHE is '~no-such-user/kernels', but this home folder does not exist"
    ):
        cache_folder()
