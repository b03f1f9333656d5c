"""Restarts from checkpoints: bits of an uninterrupted run, after any kind of failure."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.archive import arrays as stored_arrays
from halocline.archive import reader as integrity
from halocline.archive.reader import Store
from halocline.errors import InputError, RunError, Stopped
from halocline.io.listing import described
from halocline.run.output import restart as checkpoints
from halocline.run.output import store as run_store
from halocline.run.simulation.course import STARTED, end_of_time
from hang import HANG
from loops import some

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import entered_files

from killed_runs import check_killed_run
from stopped_runs import NAMES, PROGRAMS, heat, results
from suites import cases


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """Return a function that returns the results of programs without interruption."""

    @functools.cache
    def of(*names: str) -> dict[str, str]:
        return results("whole", tmp_path_factory.mktemp("whole"), *names)

    return of


# -- equal bits ----------------------------------------------------------------------------------------------


# delayed time steps, values that pass to the next step, and a solve
SHORT = ("heat", "staggered", "poisson")
OTHERS = tuple(name for name in NAMES if name not in SHORT)


@cases("names", [SHORT, OTHERS], default=[SHORT], ids=["short", "others"])
@cases("before, after", [(2, 3), (4, 1), (1, 2), (3, 4)], default=[(2, 3)])
def test_a_run_restarts_with_the_same_bits_on_other_ranks(
    before: int,
    after: int,
    names: tuple[str, ...],
    whole: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    first = results("first", tmp_path, *names, ranks=before)
    assert set(first) == set(names)
    for name in some(names):
        assert first[name] != whole(*names)[name]
    assert results("resume", tmp_path, *names, ranks=after) == whole(*names)


@pytest.mark.ranks(1, 3, long=(1,))
def test_threads_patches_and_decomposition_may_change_at_a_restart(shared_tmp_path: Path) -> None:
    alone = heat()
    alone.run(steps=20)
    stopped = heat(threads=2, patch=5)
    stopped.run(steps=7, checkpoint=hc.Checkpoint(shared_tmp_path))
    for options in ({"patch": 3}, {"decomposition": "1d-y", "threads": 2}, {"subdomains_per_rank": 2}):
        sim = heat(**options)
        sim.resume(shared_tmp_path)
        sim.run(steps=20 - sim.steps)
        assert (sim.steps, sim.checksum("T")) == (20, alone.checksum("T"))


@pytest.mark.ranks(1, 2, long=(1,))
def test_successive_runs_share_a_folder_and_keep_the_requested_number(
    shared_tmp_path: Path,
) -> None:
    checkpoint = hc.Checkpoint(shared_tmp_path, every=hc.steps(3), keep=3)
    sim = heat()
    for _ in range(2):
        sim.run(steps=7, checkpoint=checkpoint)
    sim.domain.comm.barrier()
    assert [int(folder.name.split("-")[1]) for folder in checkpoints.folders(shared_tmp_path)] == [9, 12, 14]
    # a run that restarts from an older checkpoint removes the newer ones
    older = next(folder for folder in shared_tmp_path.iterdir() if "009-" in folder.name)
    sim.domain.comm.barrier()
    again = heat()
    again.resume(older)
    again.run(steps=1, checkpoint=checkpoint)
    again.domain.comm.barrier()
    assert [int(folder.name.split("-")[1]) for folder in checkpoints.folders(shared_tmp_path)] == [9, 10]


def test_parameters_may_be_changed_at_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sim = heat()
    sim.run(steps=5, checkpoint=hc.Checkpoint(tmp_path))
    sim.parameters["kappa"] = 0.2
    sim.run(steps=5)
    other = heat(kappa=0.2)
    with pytest.raises(
        InputError, match=r"parameter kappa is 0.2, but .* was written with 0.1\. .*change=\['kappa'\]"
    ):
        other.resume(tmp_path)
    with pytest.raises(InputError, match=r"'kapa' is unknown \(did you mean 'kappa'\?\)"):
        other.resume(tmp_path, change=["kapa"])
    other.resume(tmp_path, change=["kappa"])
    assert "parameter kappa is changed from 0.1 to 0.2" in caplog.text
    other.run(steps=5)
    assert other.checksum("T") == sim.checksum("T")
    slower = heat(dt=5e-4)
    with pytest.raises(InputError, match=r"parameter dt is 0\.0005"):
        slower.resume(tmp_path)
    slower.resume(tmp_path, change=["dt"])
    slower.run(steps=1)
    assert slower.time == pytest.approx(5.5e-3)


def test_parameters_that_the_run_itself_changed_are_kept(tmp_path: Path) -> None:
    def warmer(sim: hc.Simulation) -> None:
        sim.parameters["kappa"] *= 1.5

    alone = heat()
    alone.run(steps=12, every=hc.steps(4), callback=warmer)
    stopped = heat()
    stopped.run(
        steps=8, every=hc.steps(4), callback=warmer, checkpoint=hc.Checkpoint(tmp_path, every=hc.steps(4))
    )
    sim = heat()
    sim.resume(tmp_path)
    assert sim.parameters["kappa"] == 0.1 * 1.5 * 1.5
    sim.run(steps=4)
    assert sim.checksum("T") == alone.checksum("T")


# -- rejected checkpoints ------------------------------------------------------------------------------------


def other_scheme() -> hc.Simulation:
    return heat(scheme=hc.RK2())


def other_walls() -> hc.Simulation:
    grid = hc.Grid((12, 10), periodic=(True, False))
    grid.field("T", boundary=hc.Value(1.0))
    return hc.Simulation(
        grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": 0.1}, scheme=hc.RK3(),
        dt=1e-3, threads=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (other_scheme, r"its fields differ.*|its equations differ"),
        (
            other_walls,
            r"its grid differs .*\n  -y: 10 cells from 0.0 to 1.0, periodic\n  \+y: .* walls on a face",
        ),
        (lambda: heat(shape=(12, 11)), r"  -y: 10 cells .*\n  \+y: 11 cells"),
    ],
)
def test_another_program_is_rejected_with_the_differences(make: Any, words: str, tmp_path: Path) -> None:
    heat().run(steps=2, checkpoint=hc.Checkpoint(tmp_path))
    with pytest.raises(InputError, match=words) as refused:
        make().resume(tmp_path)
    assert "belongs to another program" in str(refused.value)


def saved(path: Path, **options: Any) -> Path:
    heat(shape=(40, 30)).run(steps=2, checkpoint=hc.Checkpoint(path, **options))
    return checkpoints.newest(path)


def resumed(path: Path) -> hc.Simulation:
    sim = heat(shape=(40, 30))
    sim.resume(path)
    return sim


def test_a_missing_checkpoint_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no checkpoint in .*: the folder does not exist"):
        resumed(tmp_path / "none")
    with pytest.raises(InputError, match="the folder contains no complete checkpoint"):
        resumed(tmp_path)
    (tmp_path / "newest.json").write_text('{"checkpoint": "../elsewhere"}')
    with pytest.raises(InputError, match=r"names '\.\./elsewhere', but this folder is not a checkpoint"):
        resumed(tmp_path)
    (tmp_path / "newest.json").write_text("{")
    with pytest.raises(InputError, match="not a JSON file of Halocline"):
        resumed(tmp_path)


@pytest.mark.parametrize("harm", ["a bit", "the end", "the file", "another chunk"])
def test_a_damaged_chunk_is_detected(harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_store, "chunk_shape", lambda shape, itemsize: (20, 30))
    folder = saved(tmp_path)
    chunk, other = folder / "T" / "c.0.0", folder / "T" / "c.1.0"
    content = bytearray(chunk.read_bytes())
    if harm == "a bit":
        content[len(content) // 2] ^= 4
        chunk.write_bytes(content)
    elif harm == "the end":
        chunk.write_bytes(content[: len(content) // 2])
    elif harm == "the file":
        chunk.unlink()
    else:
        chunk.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=r"is damaged"):
        resumed(tmp_path)


def test_subdomains_that_share_chunks_read_each_chunk_once(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(4, 6)
    spec = stored_arrays.ArraySpec((4, 6), (2, 3), "float64", ("y", "x"))
    stored_arrays.create(tmp_path, spec).put((0, 0), values)
    array = stored_arrays.read(tmp_path)
    chunks_read: list[tuple[Sequence[int], Sequence[int]]] = []

    class Counted:
        shape, chunk = array.shape, array.chunk

        def read(self, lo: Sequence[int], hi: Sequence[int]) -> Any:
            chunks_read.append((lo, hi))
            return array.read(lo, hi)

    memory = np.full((6, 8), -1.0)  # the halo has one value on each side
    inner = memory[1:-1, 1:-1]
    pieces = [((row, lo), inner[row : row + 1, lo : lo + 2]) for row in range(3) for lo in (0, 2)]
    checkpoints.read_pieces(Counted(), pieces, 2)  # type: ignore[arg-type]
    assert sorted(chunks_read) == [((y, x), (y + 2, x + 3)) for y in (0, 2) for x in (0, 3)]
    expected = np.full_like(memory, -1.0)
    expected[1:4, 1:5] = values[:3, :4]
    assert np.array_equal(memory, expected)
    checkpoints.read_pieces(array, [], 1)  # as for a rank without active points


@pytest.mark.ranks(2)
def test_one_rank_checks_the_arrays_of_a_checkpoint(
    shared_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other ranks read only their own points, but all ranks report a missing chunk."""
    sim = heat()
    sim.run(steps=2, checkpoint=hc.Checkpoint(shared_tmp_path))
    checked: list[str] = []
    check = integrity.check_chunks

    def counted(store: Path, info: integrity.ArrayInfo, *rows: Any) -> None:
        checked.append(info.name)
        check(store, info, *rows)

    monkeypatch.setattr(integrity, "check_chunks", counted)
    again = heat()
    again.resume(shared_tmp_path)
    assert again.checksum("T") == sim.checksum("T")
    rank = sim.domain.comm.rank
    fields = checkpoints.Saved(checkpoints.newest(shared_tmp_path)).facts["fields"]
    assert checked == ([*fields] if rank == 0 else [])
    sim.domain.comm.barrier()
    if rank == 0:
        (checkpoints.newest(shared_tmp_path) / "T" / "c.0.0").unlink()
    sim.domain.comm.barrier()
    again["T"] = 1.0
    with pytest.raises(
        InputError,
        match=r"T is damaged: its chunk c\.0\.0 is missing.*the folder contains no other complete checkpoint",
    ):
        again.resume(shared_tmp_path)
    assert (again.steps, float(np.max(again["T"]))) == (2, 1.0)  # unchanged


def test_stores_of_earlier_versions_are_continued(tmp_path: Path) -> None:
    """The archive contains a checkpoint at step 4 and output of 8 steps, from a run at commit 5e29331."""
    with zipfile.ZipFile(Path(__file__).parents[2] / "data" / "earlier_stores.zip") as archive:
        archive.extractall(tmp_path)
    grid = hc.Grid((6, 4), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-3, threads=1)
    output = [
        hc.Output(tmp_path / "fields.zarr", {"T": T, "mean": hc.time_mean(T)}, every=hc.steps(2)),
        hc.Output(tmp_path / "numbers.zarr", {"total": hc.sum(T)}, every=hc.steps(1)),
    ]
    paths = [Path(part.path) for part in output]
    before = [{name: store.read_all(name) for name in store.arrays} for store in map(Store, paths)]
    assert [len(arrays["step"]) for arrays in before] == [5, 9]
    sim.resume(tmp_path / "checkpoints")
    assert sim.steps == 4
    sim.run(steps=4, output=output)
    assert sim.checksum("T") == "4e5cb3c83191efc73a8d42ea49d7b005"
    for path, arrays in zip(paths, before, strict=True):
        store = Store(path)
        assert {*store.arrays} == {*arrays}
        for name, values in arrays.items():
            np.testing.assert_array_equal(store.read_all(name), values)
    assert described(checkpoints.newest(tmp_path / "checkpoints"))["arrays"]["T"]["shape"] == [6, 4]


def test_a_run_with_a_checkpoint_executes_code_of_few_files() -> None:
    """The bound is the current number; a change that exceeds it adds a layer."""
    calls = entered_files.run_checkpoint()
    assert calls["run/output/checkpoint.py"]
    assert len(calls) <= 25


def test_metadata_of_another_format_are_rejected(tmp_path: Path) -> None:
    group = saved(tmp_path) / "zarr.json"
    content = json.loads(group.read_text())
    content["attributes"]["halocline"]["format"] = 99
    group.write_text(json.dumps(content))
    with pytest.raises(InputError, match="has format 99; this version of Halocline reads format 1"):
        resumed(tmp_path)
    group.write_text(group.read_text()[:100])
    with pytest.raises(InputError, match="it is damaged"):
        resumed(tmp_path)


def test_checkpoints_of_another_run_are_not_overwritten_by_default(tmp_path: Path) -> None:
    before = saved(tmp_path)
    sim = heat()
    with pytest.raises(
        InputError, match=r"holds checkpoints of another run; .*\(--resume\).*\(--overwrite\)"
    ):
        sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path))
    assert sim.steps == 0
    assert before.is_dir()
    sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path, overwrite=True))
    assert not before.exists()
    assert resumed_steps(tmp_path) == 1


def resumed_steps(path: Path) -> int:
    sim = heat()
    sim.resume(path)
    return sim.steps


def test_unwritable_folders_are_detected_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sim = heat()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        with pytest.raises(RunError, match=f"{path}.* (is a file|cannot be)"):
            sim.run(steps=1, checkpoint=hc.Checkpoint(path))
    assert sim.steps == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0}, "every is 0; expected a positive time"),
        ({"every": "soon"}, "every is 'soon'; expected a time such as \"30 min\""),
        ({"every": -1.0}, "every is -1.0"),
        ({"every": "30 minutes"}, "every is '30 minutes'"),
        ({"keep": 0}, "keep is 0; expected a whole number from 1"),
        ({"time_limit": "long"}, "time_limit is 'long'"),
        ({"io_threads": 0}, "io_threads is 0"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        hc.Checkpoint("out", **options)


def test_a_full_disk_loses_no_complete_checkpoint(small_disk: Path) -> None:
    sim = heat(shape=(64, 64))
    sim["T"] = np.random.default_rng(1).uniform(size=(64, 64))
    sim.run(steps=2, checkpoint=hc.Checkpoint(small_disk))
    large = heat(shape=(64, 64))
    large.resume(small_disk)
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free - 20_000))
    with pytest.raises(
        RunError, match=r"checkpoint: .*No space left on device; the newest|cannot be written: No"
    ):
        large.run(steps=2, checkpoint=hc.Checkpoint(small_disk, every=hc.steps(1)))
    again = heat(shape=(64, 64))
    again.resume(small_disk)
    assert again.steps == 2
    assert len(checkpoints.folders(small_disk)) == 1  # no incomplete checkpoint remains


# -- requests to stop ----------------------------------------------------------------------------------------


def endless(path: Path, more: str = "") -> str:
    return (
        f"import sys; sys.path.insert(0, {str(PROGRAMS.parent)!r})\n"
        "from stopped_runs import *\n"
        "import threading\n"
        f"path = Path({str(path)!r})\n"
        "sim = heat(shape=(64, 48), dt=1e-6)\n"
        "sim.run(steps=1)\n"
        "hc.print('runs', flush=True)\n"
        f"sim.run(steps=10**9, checkpoint=hc.Checkpoint(path{more}))\n"
    )


@pytest.mark.parametrize(
    ("stop_request", "ranks", "io_ranks"),
    [
        ("SIGTERM", 2, 1), ("SIGINT", 2, 0), ("time", 1, 0),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (
            ("SIGUSR1", 1, 0), ("file", 2, 0), ("Slurm", 2, 0), ("SIGTERM", 2, 0), ("SIGINT", 2, 1),
        )),
    ],
)  # fmt: skip
def test_a_stop_request_leaves_a_checkpoint(
    stop_request: str, ranks: int, io_ranks: int, tmp_path: Path
) -> None:
    script, path = tmp_path / "endless.py", tmp_path / "out"
    script.write_text(endless(path, ", time_limit='62 s'" if stop_request == "time" else ""))
    environment = dict(os.environ)
    if stop_request == "Slurm":
        environment |= {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(int(time.time()) + 64)}
    run = [sys.executable, "-m", "halocline.cli", "run", str(script), "--ranks", str(ranks)]
    run += ["--io-ranks", str(io_ranks)]
    process = subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(0.5)
        if stop_request == "file":
            path.mkdir(exist_ok=True)
            (path / "stop").touch()
        elif stop_request.startswith("SIG"):
            process.send_signal(signal.Signals[stop_request])
        _, errors = process.communicate(timeout=HANG)
    finally:
        process.kill()
    match = re.search(
        r"after step (\d+) \(time \S+\).*; restart with --resume (\S+), or sim\.resume\(", errors
    )
    assert match, errors
    assert "Traceback" not in errors
    assert match[2] == str(path)
    sim = heat(shape=(64, 48), dt=1e-6)
    sim.resume(path)
    assert sim.steps == int(match[1])
    words = {
        "file": "the file",
        "time": "its time limit is nearly reached",
        "Slurm": "its time limit is nearly reached",
    }
    if stop_request == "SIGINT":
        assert "interrupted" in errors
        assert process.returncode == 130
    else:
        assert words.get(stop_request, stop_request) in errors
        assert process.returncode == 75
    assert not (path / "stop").exists() or stop_request == "file"


def test_the_end_of_a_job_is_read_from_slurm(tmp_path: Path) -> None:
    assert end_of_time(None, {}) is None
    start, seconds_left = time.monotonic(), 100
    soon = end_of_time(
        None, {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(int(time.time()) + seconds_left)}
    )
    assert soon is not None
    assert start + seconds_left - 2 < soon < time.monotonic() + seconds_left + 1
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho '  1-02:03:04'\n")
    squeue.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{before}"
    try:
        start, seconds_left = time.monotonic(), ((24 + 2) * 60 + 3) * 60 + 4
        late = end_of_time(None, {"SLURM_JOB_ID": "7"})
        assert late is not None
        assert start + seconds_left - 1 < late < time.monotonic() + seconds_left + 1
        squeue.write_text("#!/bin/sh\necho UNLIMITED\n")
        assert end_of_time(None, {"SLURM_JOB_ID": "7"}) is None
    finally:
        os.environ["PATH"] = before
    assert end_of_time("1 h 30 min", {}) == pytest.approx(end_of_time("90 min", {}))


@pytest.mark.ranks(1, 2, long=(1,))
def test_checkpoints_are_written_at_wall_clock_intervals(shared_tmp_path: Path) -> None:
    sim = heat(shape=(64, 48), dt=1e-6)
    sim.run(steps=1)  # compiles kernels before the measured time
    start = time.monotonic()
    with pytest.raises(Stopped, match="its time limit is nearly reached"):
        sim.run(
            steps=10**9,
            checkpoint=hc.Checkpoint(
                shared_tmp_path, every="0.3 s", keep=1000, time_limit=f"{uptime() + 62.0} s"
            ),
        )
    seconds = time.monotonic() - start
    sim.domain.comm.barrier()
    count = len(checkpoints.folders(shared_tmp_path))
    assert 2 <= count <= seconds / 0.3 + 1


def uptime() -> float:
    """Return the seconds since this process began, the reference of time limits."""
    return time.monotonic() - STARTED


# -- killed ranks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ranks", "whom"),
    [
        ("heat", 3, "I/O rank"),
        pytest.param("forced", 1, "all", marks=pytest.mark.long),
        pytest.param("heat", 2, "one", marks=pytest.mark.long),
        # extended, as the next test, which kills all programs in all ways
        pytest.param("heat", 1, "all", marks=pytest.mark.long),
        pytest.param("holes", 2, "all", marks=pytest.mark.long),
        pytest.param("staggered", 2, "one", marks=pytest.mark.long),
        pytest.param("poisson", 2, "one", marks=pytest.mark.long),
    ],
)
def test_the_newest_checkpoint_is_complete_after_a_kill(
    name: str, ranks: int, whom: str, whole: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    check_killed_run(name, tmp_path, ranks, whom, whole(name)[name], seed=1)


# -- callbacks change nothing --------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("every", ["3 steps", 0.0037, "0.01 s", None])
def test_callbacks_do_not_change_bits(every: float | str | None) -> None:
    alone, observed = heat(), heat()
    alone.run(until=0.05)
    maxima: list[float] = []
    observed.run(
        until=0.05,
        every=every,
        callback=lambda sim: maxima.append(sim.evaluate(hc.max(sim.grid.fields["T"]))),
    )
    assert (observed.steps, observed.checksum("T")) == (alone.steps, alone.checksum("T"))
    assert maxima
    if every == "3 steps":
        assert len(maxima) == alone.steps // 3 + 1
    if every == 0.0037:
        assert len(maxima) == 14  # after the first step past each multiple, and at the end


def test_exact_runs_end_steps_at_the_requested_times() -> None:
    times: list[float] = []
    sim = heat()
    sim.run(until=0.01, every=0.0037, exact=True, callback=lambda sim: times.append(sim.time))
    assert times == [0.0037, 2 * 0.0037, 0.01]


# -- other readers -------------------------------------------------------------------------------------------


def test_a_checkpoint_opens_in_xarray(tmp_path: Path) -> None:
    import xarray

    sim = heat(shape=(40, 30))
    sim.run(steps=2, checkpoint=hc.Checkpoint(tmp_path))
    opened = xarray.open_zarr(checkpoints.newest(tmp_path), consolidated=False)
    assert opened["T"].dims == ("x", "y")
    np.testing.assert_array_equal(opened["T"].values, sim["T"])
