"""Runs in jobs of a real Slurm: every launch method, the end of a job's time, and a signal.

Without Slurm these tests are skipped, or fail if HALOCLINE_TEST_SLURM is "required".
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halocline.run.host.mpi_library import kind_of, mpi_library
from halocline.run.ranks import launch
from hang import HANG
from local_slurm import PACKAGES, Slurm, missing, slurm_of

pytestmark = pytest.mark.long

HALOCLINE = Path(sys.executable).parent / "halocline"
MPIEXEC = launch.mpiexec()
# Interface between srun and MPI: MPICH contains pmi2, Open MPI needs a Slurm with PMIx.
OPEN_MPI = kind_of(mpi_library()) == "Open MPI"
INTERFACE = "pmix" if OPEN_MPI else "pmi2"
WAYS = {
    "srun": f"srun --mpi={INTERFACE} --kill-on-bad-exit=1 {HALOCLINE} run CASE",
    "mpiexec": f"{MPIEXEC} -n 2 {HALOCLINE} run CASE",
    "--ranks": f"{HALOCLINE} run CASE --ranks 2",
}


def check_installed() -> None:
    if absent := missing():
        reason = f"Slurm is not installed: there is no {', '.join(absent)} (Debian: {PACKAGES})"
        if os.environ.get("HALOCLINE_TEST_SLURM") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """Start a Slurm of one node with four CPUs."""
    check_installed()
    with slurm_of() as started:
        yield started


@pytest.fixture
def two_nodes() -> Iterator[Slurm]:
    """Start a Slurm of two nodes with four CPUs each, both on this host."""
    check_installed()
    with slurm_of(2) as started:
        yield started


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, slurm: Slurm) -> str:
    """Return the line of a script that starts two ranks."""
    if request.param == "srun" and (reason := lack(slurm)):
        pytest.skip(reason)
    return WAYS[request.param]


def lack(slurm: Slurm) -> str:
    """Return the reason why srun cannot start the ranks of this MPI, or ""."""
    done = slurm.call("srun", f"--mpi={INTERFACE}", "true")
    return "" if done.returncode == 0 else f"this Slurm has no {INTERFACE}: {done.stderr}"


def script(folder: Path, lines: str, time: str = "10") -> Path:
    path = folder / "job.sh"
    path.write_text(
        f"#!/bin/bash\n#SBATCH --ntasks=2 --time={time} --output={folder}/job.out\n"
        f"export OMP_NUM_THREADS=1\ncd {folder}\n{lines}\n"
    )
    return path


def submit(slurm: Slurm, path: Path) -> tuple[int, str]:
    """Run a job to its end and return its status and output."""
    done = slurm.call("sbatch", "--wait", path, **launch.environment())
    out = path.with_name("job.out")
    return done.returncode, out.read_text() if out.exists() else done.stderr


def alone(folder: Path, *options: str) -> dict[str, Any]:
    """Return the results of a run without Slurm, which also compiles the kernels of the jobs."""
    file = folder / "alone.json"
    subprocess.run(
        [HALOCLINE, "run", "heat", "--n", "16,16,16", "--threads", "1", *options, "--json", file],
        check=True,
        capture_output=True,
        timeout=HANG,
    )
    return json.loads(file.read_text())


def newest(folder: Path) -> int:
    """Return the step of the newest checkpoint."""
    return int(json.loads((folder / "newest.json").read_text())["checkpoint"].split("-")[1])


def test_jobs_have_the_bits_of_runs_without_slurm(slurm: Slurm, way: str, tmp_path: Path) -> None:
    checksum = alone(tmp_path, "--steps", "4")["checksum"]
    run = way.replace("CASE", "heat --n 16,16,16 --steps 4 --json job.json")
    status, output = submit(slurm, script(tmp_path, run))
    assert status == 0, output
    job = json.loads((tmp_path / "job.json").read_text())
    assert (job["ranks"], job["threads"]) == (2, 1)
    assert job["checksum"] == checksum


def test_a_job_near_its_time_limit_leaves_a_checkpoint(slurm: Slurm, way: str, tmp_path: Path) -> None:
    """The run ends one minute before the end of its job, which Slurm limits to one minute."""
    alone(tmp_path, "--steps", "1")
    steps = 10**7
    run = way.replace("CASE", f"heat --n 16,16,16 --steps {steps} --checkpoint left")
    status, output = submit(slurm, script(tmp_path, run, time="1"))
    assert status == 75, output
    assert "its time limit is nearly reached; restart with --resume left" in output
    steps = newest(tmp_path / "left") + 5
    more = way.replace("CASE", f"heat --steps {steps} --resume left --json job.json")
    status, output = submit(slurm, script(tmp_path, more))
    assert status == 0, output
    job = json.loads((tmp_path / "job.json").read_text())
    assert (job["ranks"], job["steps"]) == (2, steps)
    assert job["checksum"] == alone(tmp_path, "--steps", str(steps))["checksum"]


@pytest.mark.parametrize(("exception", "status"), [("hc.Stopped('enough')", 75), ("ValueError('wrong')", 1)])
def test_ranks_terminated_by_slurm_keep_the_exit_status(
    slurm: Slurm, tmp_path: Path, exception: str, status: int
) -> None:
    """srun ends with the highest status; this was once 143, of a rank that ended later than the others."""
    if reason := lack(slurm):
        pytest.skip(reason)
    (tmp_path / "case.py").write_text(f"""\
import ctypes, os
import halocline as hc
libc = ctypes.CDLL(None)  # it sleeps when Python and MPI are through
sleep = ctypes.cast(libc.sleep, ctypes.c_void_p)
libc.__cxa_atexit(sleep, ctypes.c_void_p(2 * int(os.environ["SLURM_PROCID"])), None)
raise {exception}
""")
    ended, output = submit(slurm, script(tmp_path, WAYS["srun"].replace("CASE", "case.py")))
    assert ended == status, output


def test_a_signal_of_slurm_reaches_the_ranks(slurm: Slurm, way: str, tmp_path: Path) -> None:
    """The signal reaches the steps of the job, not its script, as with --signal=USR1@120."""
    if OPEN_MPI and "srun" not in way:
        pytest.skip("on the script's own node, Open MPI's mpiexec starts ranks as part of the script")
    alone(tmp_path, "--steps", "1")
    run = way.replace("CASE", f"heat --n 16,16,16 --steps {10**7} --checkpoint left --checkpoint-every 50")
    path = script(tmp_path, f"{run}\necho status $?")
    submitted = slurm.call("sbatch", "--parsable", path, **launch.environment())
    assert submitted.returncode == 0, submitted.stderr
    job, out = submitted.stdout.strip(), tmp_path / "job.out"
    wait(lambda: (tmp_path / "left" / "newest.json").exists(), out)
    assert slurm.call("scancel", "--signal=USR1", job).returncode == 0
    wait(lambda: job not in slurm.jobs(), out)
    assert "SIGUSR1" in out.read_text()
    assert out.read_text().endswith("status 75\n")


def wait(until: Any, out: Path) -> None:
    end = time.monotonic() + HANG
    while not until():
        assert time.monotonic() < end, out.read_text()
        time.sleep(0.2)


def test_srun_without_an_mpi_interface_reports_the_option(slurm: Slurm, tmp_path: Path) -> None:
    """With MpiDefault none srun starts two processes that are not connected by MPI."""
    if OPEN_MPI:
        pytest.skip("Open MPI says so itself")
    status, output = submit(slurm, script(tmp_path, f"srun {HALOCLINE} run heat --n 16,16,16 --steps 4"))
    assert status == 1
    assert output.count("the launcher (Slurm) started 2 processes, but MPI sees only one") == 1
    assert "srun --mpi=" in output


def test_the_job_of_the_guide_resubmits_itself(slurm: Slurm, tmp_path: Path) -> None:
    """The job is queued again after one minute, which is too short, and then runs for ten.

    Slurm would send a signal two minutes before the end at once, and the run may not have started. Hence the
    script requests no signal.
    """
    if reason := lack(slurm):
        pytest.skip(reason)
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "restart.md").read_text()
    text = "#!/bin/bash\n" + guide.partition("#!/bin/bash\n")[2].partition("```")[0]
    options = "--nodes=4 --ntasks-per-node=16 --time=12:00:00 --signal=USR1@120"
    assert text.count(options) == 1
    text = text.replace(options, "--ntasks=2 --time=1 ")
    assert text.count("--n 256 --until 200") == text.count("--mpi=pmi2") == text.count('sbatch "$0"') == 1
    text = text.replace("--n 256 --until 200", f"--n 16 --steps {10**7}").replace("pmi2", INTERFACE)
    text = text.replace('sbatch "$0"', f'cp "$0" {tmp_path}/again.sh')
    (tmp_path / "job.sh").write_text(text)
    more = {"PATH": f"{HALOCLINE.parent}:{slurm.environment['PATH']}", "OMP_NUM_THREADS": "1"}
    warm_up = [HALOCLINE, "run", "mhd-benchmark", "--n", "16", "--steps", "1", "--ranks", "2"]
    subprocess.run(warm_up, check=True, capture_output=True, timeout=HANG, env=os.environ | more)
    job = ["sbatch", "--wait", f"--chdir={tmp_path}", "--open-mode=append", f"--output={tmp_path}/job.out"]
    done = slurm.call(*job, tmp_path / "job.sh", **more)
    assert done.returncode == 0, (tmp_path / "job.out").read_text()
    steps = newest(tmp_path / "out" / "mhd") + 3
    resubmission = tmp_path / "again.sh"
    resubmission.write_text(
        resubmission.read_text().replace(f"--steps {10**7}", f"--steps {steps}").replace("=1 ", "=10 ")
    )
    done = slurm.call(*job, resubmission, **more)
    output = (tmp_path / "job.out").read_text()
    assert done.returncode == 0, output
    assert f"after {steps:,} steps" in output


def run_jobs(slurm: Slurm, folder: Path, words: str) -> list[Path]:
    """Write the scripts of a study, run them, and return the files that they leave."""
    written = subprocess.run([HALOCLINE, *words.split()], cwd=folder, capture_output=True, text=True)
    assert written.returncode == 0, written.stderr
    scripts = sorted(folder.glob("*.sh"))
    for job in scripts:
        done = slurm.call("sbatch", "--wait", f"--chdir={folder}", job, **launch.environment())
        assert done.returncode == 0, job.with_suffix(".log").read_text()
    return [job.with_suffix(".json") for job in scripts]


def report_of(folder: Path, files: list[Path]) -> str:
    words = [HALOCLINE, "study", "report", *files]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_study_runs_through_jobs(slurm: Slurm, tmp_path: Path) -> None:
    """The scripts of --submit run, and the report contains their results."""
    words = "study strong heat --n 16 --dim 2 --steps 4 --submit slurm --per-node 2 --time 00:10:00"
    (file,) = run_jobs(slurm, tmp_path, words)
    assert file.name == "strong-heat-n-16-dim-2-steps-4-1-thread-2-per-node-1-node.json"
    left = json.loads(file.read_text())["measurements"]
    assert {m["ranks"] for m in left} == {2}
    assert left[0]["checksum"] == alone(tmp_path, "--dim", "2", "--n", "16", "--steps", "4")["checksum"]
    assert "Time per cell and step" in report_of(tmp_path, [file])


def test_jobs_on_two_nodes_have_the_decomposition_of_nodes_and_ranks(
    two_nodes: Slurm, tmp_path: Path
) -> None:
    """Ranks of a node are rows and nodes are columns (UMBC HPCF-2018-10, Table 4.1)."""
    if OPEN_MPI:
        pytest.skip(
            "Open MPI has its daemons find each other by the names of the nodes, which are one host's"
        )
    words = "study strong poisson --method cg --n 32 --nodes 1,2 --per-node 1,2 --submit slurm --exclusive"
    files = run_jobs(two_nodes, tmp_path, f"{words} --time 00:10:00")
    assert len(files) == 4
    measurements = [m for file in files for m in json.loads(file.read_text())]
    places = {(m["nodes"], m["hosts"], m["ranks_per_node"], m["ranks"]) for m in measurements}
    assert places == {(1, 1, 1, 1), (1, 1, 2, 2), (2, 2, 1, 2), (2, 2, 2, 4)}
    assert len({m["checksum"] for m in measurements}) == 1
    assert {tuple(m["methods_used"]) for m in measurements if m["nodes"] == m["ranks"] == 2} == {("mpi",)}
    printed = report_of(tmp_path, files)
    assert re.search(r"\n +1 node +2 nodes\n", printed)
    rows = re.findall(r"(?m)^(\d ranks? a node) +(\S+) +(\S+) +(\S+) +(\S+)$", printed)
    assert [row[0] for row in rows[:2]] == ["1 rank per node", "2 ranks per node"]
    assert all(
        ":" in row[1] and float(row[2]) > 0 and ":" in row[3] and float(row[4]) > 0 for row in rows[:2]
    )
