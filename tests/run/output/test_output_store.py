"""Output stores: written during a run, and read by xarray as an independent implementation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.archive.reader import Store
from halocline.cli.app import run
from halocline.errors import InputError, RunError
from halocline.io import views
from halocline.run.output import store as run_store
from halocline.run.simulation import course
from hang import HANG
from output_runs import heat
from output_statistics import statistics
from stores import open_content
from suites import cases

RECEIVERS = [(0.1, 0.5, 0.3), (1.19, 0.01, 0.79)]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use chunks that match no decomposition of the grid."""
    monkeypatch.setattr(
        run_store, "chunk_shape", lambda shape, itemsize: tuple(max(1, (n + 1) // 3) for n in shape)
    )


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 2, 4))
@pytest.mark.usefixtures("small_chunks")
def test_a_store_contains_the_values_of_fields(shared_tmp_path: Path) -> None:
    """A store contains the values of each time, for every kind of region and any number of ranks."""
    sim, path = heat(), shared_tmp_path
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    snapshots: list[dict[str, Any]] = []

    def keep(sim: hc.Simulation) -> None:
        snapshots.append(
            {"T": sim.gather(T), "v": sim.gather(v), "sum": sim.evaluate(hc.sum(T)), "t": sim.time}
        )

    keep(sim)
    outputs = [
        hc.Output(path / "all.zarr", every=hc.steps(4), units={"T": "K", "time": "s", "x": "m"}),
        hc.Output(
            path / "slice.zarr",
            {"twice": 2 * T, "v": v},
            every=hc.steps(4),
            region=hc.Slice(z=0.31),
            dtype=np.float32,
        ),
        hc.Output(
            path / "box.zarr",
            [T, "v"],
            every=hc.steps(4),
            region=hc.Box(x=(0.2, 0.75), y=(0.0, 0.5)),
            compression="none",
        ),
        hc.Output(path / "coarse.zarr", {"T": T, "square": T**2}, every=hc.steps(4), region=hc.Coarsen(2)),
        hc.Output(
            path / "points.zarr",
            [T],
            every=hc.steps(4),
            region=hc.Points([(0.1, 0.5, 0.3), (1.19, 0.01, 0.79)]),
        ),
        hc.Output(path / "line.zarr", [T], every=hc.steps(4), region=hc.Slice(x=0.0, y=1.0)),
        hc.Output(
            path / "numbers.zarr", {"sum": hc.sum(T), "kappa": hc.parameter("kappa")}, every=hc.steps(4)
        ),
    ]
    sim.run(steps=10, every=hc.steps(4), callback=keep, output=outputs)
    sim.domain.comm.barrier()
    if sim.domain.comm.rank != 0:
        return
    snapshots = snapshots[:3]  # without the last step, which is no multiple of the interval
    T_kept, v_kept = (np.array([snapshot[name] for snapshot in snapshots]) for name in ("T", "v"))
    whole = open_content(path / "all.zarr")
    np.testing.assert_array_equal(whole["T"].values, T_kept)
    np.testing.assert_array_equal(whole["v"].values, v_kept)
    assert whole["v"].dims == ("time", "x", "y_face", "z")
    assert whole["v"].dtype == np.float32
    np.testing.assert_array_equal(whole["step"].values, [0, 4, 8])
    np.testing.assert_array_equal(whole["time"].values, [snapshot["t"] for snapshot in snapshots])
    for dimension, line in zip("xyz", sim.grid.positions(), strict=True):
        np.testing.assert_array_equal(whole[dimension].values, line)
    np.testing.assert_array_equal(whole["y_face"].values, v.positions[1])
    assert (whole["T"].units, whole["x"].units) == ("K", "m")
    # the lower of two equidistant points; v has other points along y
    k = 3
    plane = open_content(path / "slice.zarr")
    np.testing.assert_array_equal(plane["twice"].values, (2 * T_kept[..., k]).astype(np.float32))
    np.testing.assert_array_equal(plane["v"].values, v_kept[..., k])
    assert plane["twice"].z == pytest.approx(sim.grid.positions()[2][k])
    box = open_content(path / "box.zarr")
    np.testing.assert_array_equal(
        box["T"].values, whole["T"].sel(x=slice(0.2, 0.75), y=slice(0.0, 0.5)).values
    )
    np.testing.assert_array_equal(
        box["v"].values, whole["v"].sel(x=slice(0.2, 0.75), y_face=slice(0.0, 0.5)).values
    )
    coarse = open_content(path / "coarse.zarr")
    means = whole["T"].coarsen(x=2, y=2, z=2).mean()
    np.testing.assert_allclose(coarse["T"].values, means.values, rtol=1e-15)
    np.testing.assert_allclose(
        coarse["square"].values, (whole["T"] ** 2).coarsen(x=2, y=2, z=2).mean().values, rtol=4e-16 * 8
    )
    np.testing.assert_allclose(coarse["x"].values, means["x"].values, rtol=1e-15)
    points = open_content(path / "points.zarr")
    for axis, line in zip("xyz", np.transpose(RECEIVERS), strict=True):
        np.testing.assert_array_equal(points[axis].values, line)
    around = whole["T"].pad(x=1, z=1, mode="wrap")  # the two cells at the wall along y are extrapolated
    around = around.assign_coords(x=-0.05 + 0.1 * np.arange(14), z=-0.05 + 0.1 * np.arange(10))
    places = {axis: ("point", line) for axis, line in zip("xyz", np.transpose(RECEIVERS), strict=True)}
    expected = around.interp(**places, kwargs={"fill_value": None})
    np.testing.assert_allclose(points["T"].values, expected.values, rtol=1e-13)
    np.testing.assert_array_equal(open_content(path / "line.zarr")["T"].values, T_kept[:, 0, -1, :])
    numbers = open_content(path / "numbers.zarr")
    np.testing.assert_array_equal(numbers["sum"].values, [snapshot["sum"] for snapshot in snapshots])
    np.testing.assert_array_equal(numbers["kappa"].values, 0.1)


@pytest.mark.ranks(1, 3, long=(1,))
@pytest.mark.usefixtures("small_chunks")
def test_a_store_does_not_depend_on_stops_of_the_run(shared_tmp_path: Path) -> None:
    path = shared_tmp_path

    def outputs(folder: str) -> list[hc.Output]:
        return [
            hc.Output(path / folder / "fields.zarr", every=hc.steps(3)),
            hc.Output(
                path / folder / "numbers.zarr", {"most": hc.max(sim.grid.fields["T"])}, every=hc.steps(1)
            ),
        ]

    sim = heat()
    sim.run(steps=14, output=outputs("whole"))
    sim = heat()
    sim.run(
        steps=8,
        output=outputs("parts"),
        checkpoint=hc.Checkpoint(path / "checkpoints", every=hc.steps(5), keep=9),
    )
    older = next(folder for folder in (path / "checkpoints").iterdir() if "005-" in folder.name)
    sim = heat()
    sim.resume(older)  # steps 6 to 8 are repeated
    sim.run(steps=9, output=outputs("parts"))
    sim.domain.comm.barrier()
    for name in ("fields.zarr", "numbers.zarr"):
        whole, parts = open_content(path / "whole" / name), open_content(path / "parts" / name)
        assert whole.equals(parts)
        assert list(whole["step"].values) == list(range(0, 15, 3 if name == "fields.zarr" else 1))
    assert sorted(p.name for p in (path / "parts" / "fields.zarr" / "T").iterdir()) == sorted(
        p.name for p in (path / "whole" / "fields.zarr" / "T").iterdir()
    )


@pytest.mark.ranks(1, 2, long=(1,))
def test_inactive_blocks_are_zero(shared_tmp_path: Path) -> None:
    active = np.ones((3, 3), bool)
    active[1, 1] = False
    grid = hc.Grid((12, 12), periodic=True, active=active)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[u] = 1.0
    sim.run(steps=2, output=hc.Output(shared_tmp_path / "u.zarr", every=hc.steps(2)))
    gathered = sim.gather(u)
    sim.domain.comm.barrier()
    if gathered is not None:
        stored = open_content(shared_tmp_path / "u.zarr")["u"].values[-1]
        np.testing.assert_array_equal(stored, gathered)
        assert (stored[4:8, 4:8] == 0).all()


def test_output_changes_no_bits_and_is_not_in_checkpoints(tmp_path: Path) -> None:
    alone, written = heat(), heat()
    T = written.grid.fields["T"]
    alone.run(steps=9)
    written.run(
        steps=9,
        output=hc.Output(tmp_path / "E.zarr", {"E": T * T}, every=0.0021),
        checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )
    assert written.checksum("T") == alone.checksum("T")
    saved = next(folder for folder in (tmp_path / "checkpoints").iterdir() if folder.is_dir())
    assert sorted(folder.name for folder in saved.iterdir() if folder.is_dir()) == sorted(
        [*(f.name for f in alone.program_fields), "x", "y", "y_face", "z"]
    )


def test_iterations_are_written(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    solution = hc.solve(
        lambda u: -hc.laplacian(u), u, 1.0, rtol=1e-6, threads=1,
        output=hc.Output(tmp_path / "u.zarr", {"u": u, "most": hc.max(u)}, every=hc.steps(10)),
    )  # fmt: skip
    stored = open_content(tmp_path / "u.zarr")
    assert list(stored["step"].values) == list(range(0, solution.iterations + 1, 10))
    assert stored["most"].values[-1] == stored["u"].values[-1].max()


def test_programs_without_time_have_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid, path = hc.Grid((16, 16), walls="node"), tmp_path / "u.zarr"
    u = grid.field("u", boundary=hc.Value(0.0))
    output = hc.Output(path, {"u": u, "most": hc.max(u)}, every=hc.steps(10))
    points = hc.Output(tmp_path / "p.zarr", {"u": u}, every=hc.steps(10), region=hc.Points([(0.5, 0.5)]))
    solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0, threads=1, output=[output, points])
    stored, few = open_content(path), open_content(tmp_path / "p.zarr")
    count = solution.iterations // 10 + 1
    assert dict(stored.sizes) == {"step": count, "x": 16, "y": 16}
    assert stored["u"].dims == ("step", "x", "y")
    assert (stored["most"].dims, few["u"].dims) == (("step",), ("step", "point"))
    assert set(stored.coords) == {"step", "x", "y"}
    assert set(few.coords) == {"step", "x", "y"}
    store = Store(path)
    assert (store.axis, list(store.times)) == ("step", list(stored["step"].values))
    solution.fields[u] = path / "u"
    np.testing.assert_array_equal(solution.fields.gather(u), stored["u"].values[-1])
    solution.fields[u] = stored["u"].isel(step=[-1])
    np.testing.assert_array_equal(solution.fields.gather(u), stored["u"].values[-1])
    assert run(["ls", str(path)]) == 0
    assert f"{count} steps, from 0 to {10 * (count - 1)}" in capsys.readouterr().out
    assert views._title(store, 1) == "cg-fused, step 10"


# -- visibility for readers ----------------------------------------------------------------------------------


def test_readers_see_only_complete_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees only complete times, also during the run."""
    monkeypatch.setattr(course, "PUBLISH", 0.05)
    sim, path, counts = heat(), tmp_path / "T.zarr", []

    def look(sim: hc.Simulation) -> None:
        stored = open_content(path)
        assert np.isfinite(stored["T"].values).all()
        counts.append(len(stored["time"]))
        time.sleep(0.05)  # gives the writer time

    sim.run(steps=40, every=hc.steps(3), callback=look, output=hc.Output(path, every=hc.steps(2)))
    assert counts == sorted(counts)
    assert counts[-1] > 5
    assert len(open_content(path)["time"]) == 21


def test_a_store_describes_its_run(tmp_path: Path) -> None:
    sim = heat()
    sim.run(steps=1, output=hc.Output(tmp_path / "a.zarr"))
    stored = open_content(tmp_path / "a.zarr")
    assert stored.attrs["Conventions"] == "CF-1.11"
    assert "Halocline" in stored.attrs["source"]
    facts = stored.attrs["halocline"]
    assert facts["parts"][0]["parameters"] == {"kappa": 0.1}
    assert facts["contents"]["expressions"] == {"T": "T", "v": "v"}
    assert "laplacian" not in stored.attrs["equations"]
    assert "T = " in stored.attrs["equations"]
    assert "x: 12 cells from 0.0 to 1.2, periodic" in facts["contents"]["grid"]
    assert list(stored["step"].values) == [0, 1]


# -- rejected output -----------------------------------------------------------------------------------------


def test_a_resumed_run_rejects_other_output(tmp_path: Path) -> None:
    sim = heat()
    sim.run(
        steps=2,
        output=hc.Output(tmp_path / "a.zarr", every=hc.steps(1)),
        checkpoint=hc.Checkpoint(tmp_path / "checkpoints"),
    )
    again = heat()
    again.resume(tmp_path / "checkpoints")
    with pytest.raises(InputError, match="holds other output of this run"):
        again.run(steps=1, output=hc.Output(tmp_path / "a.zarr", ["T"], every=hc.steps(1)))
    group = tmp_path / "a.zarr" / "zarr.json"
    group.write_text(json.dumps({"zarr_format": 3}))
    with pytest.raises(InputError, match="a store of another program"):
        again.run(steps=1, output=hc.Output(tmp_path / "a.zarr", every=hc.steps(1)))


@cases(
    "other",
    [
        {"compression": "none"},
        {"dtype": "float32"},
        {"fields": {"T": "2 T"}},
        {"fields": {"T": "T", "sum": "sum"}},
        {"region": hc.Points([(0.1, 0.5, 0.3), (1.1, 0.5, 0.3)])},
        {"region": hc.Slice(z=0.31)},
        {"units": {"T": "K"}},
    ],
    lambda other: "fields" in other,
    ids=str,
)
def test_a_resumed_run_writes_the_same_output(other: dict[str, Any], tmp_path: Path) -> None:
    """Other output is rejected, since one array cannot contain two kinds of values."""
    path, region = tmp_path / "a.zarr", hc.Points([(0.1, 0.5, 0.3), (1.1, 0.01, 0.3)])

    def output(sim: hc.Simulation, **options: Any) -> hc.Output:
        T = sim.grid.fields["T"]
        known = {"T": T, "2 T": 2 * T, "sum": hc.sum(T)}
        options = {"fields": {"T": "T"}, "region": region, **options}
        options["fields"] = {name: known[value] for name, value in options["fields"].items()}
        return hc.Output(path, every=hc.steps(1), **options)

    sim = heat()
    sim.run(steps=2, output=output(sim), checkpoint=hc.Checkpoint(tmp_path / "checkpoints"))
    before = open_content(path)
    again = heat()
    again.resume(tmp_path / "checkpoints")
    with pytest.raises(InputError, match="holds other output of this run"):
        again.run(steps=1, output=output(again, **other))
    assert open_content(path).equals(before)
    again.run(steps=1, output=output(again))
    assert len(open_content(path)["time"]) == 4
    again.run(steps=1, output=output(again, **other, overwrite=True))
    assert list(open_content(path)["step"].values) == [3, 4]


def test_a_store_records_the_part_of_a_run_that_wrote_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zarr"
    monkeypatch.setattr(sys, "argv", ["first.py"])
    heat().run(steps=3, output=hc.Output(path, every=hc.steps(1)), checkpoint=hc.Checkpoint(tmp_path / "c"))
    monkeypatch.setattr(sys, "argv", ["second.py", "--set", "kappa=0.2"])
    again = heat(parameters={"kappa": 0.2})
    again.resume(tmp_path / "c", change=["kappa"])
    again.run(steps=2, output=hc.Output(path, every=hc.steps(1)))
    again.run(steps=2, output=hc.Output(path, every=hc.steps(1)))  # the same output again
    stored = open_content(path)
    parts = stored.attrs["halocline"]["parts"]
    assert [(part["step"], part["command"][0], part["parameters"]) for part in parts] == [
        (0, "first.py", {"kappa": 0.1}),
        (3, "second.py", {"kappa": 0.2}),
    ]
    assert [line.partition(": ")[2] for line in stored.attrs["history"].splitlines()] == [
        "first.py",
        "second.py --set kappa=0.2",
    ]
    assert len(stored["time"]) == 8


def test_a_full_disk_ends_the_run_and_keeps_complete_rows(small_disk: Path) -> None:
    sim, path = heat((32, 32, 16)), small_disk / "a.zarr"
    with pytest.raises(RunError, match=r"a\.zarr.* cannot be written: No space left on device"):
        sim.run(
            steps=40, output=hc.Output(path, every=hc.steps(1)), every=hc.steps(1),
            callback=lambda sim: time.sleep(0.02),
        )  # fmt: skip
    stored = open_content(path)
    assert 1 < len(stored["time"]) < 30
    assert np.isfinite(stored["T"].values).all()


def test_a_folder_without_rights_is_reported() -> None:
    sim, root = heat(), os.geteuid() == 0
    sim.run(steps=1)  # compiles its kernels
    if root:
        os.seteuid(65534)  # a user without permissions
    try:
        for path in (Path("/usr/a.zarr"), Path("/proc/a.zarr")):
            for options in ({"output": hc.Output(path)}, {"checkpoint": hc.Checkpoint(path)}):
                with pytest.raises(RunError, match=rf"{path} cannot be created: \w+"):
                    sim.run(steps=1, **options)
    finally:
        if root:
            os.seteuid(0)
    assert sim.steps == 1


# -- statistics over time ------------------------------------------------------------------------------------


def courant(T: Any) -> Any:
    return 1e-3 / (1.0 + hc.max(abs(T)))


@pytest.mark.ranks(1, 3, long=(1,))
@cases("window", ["output", "run"], default=["output"])
def test_statistics_over_time_agree_with_numpy(window: str, shared_tmp_path: Path) -> None:
    """Means over time weight each step by its length."""
    sim, alone = (heat(dt=courant, time_step="delayed") for _ in range(2))
    steps: list[tuple[float, Any, Any]] = []
    alone.run(
        steps=11,
        every=hc.steps(1),
        callback=lambda sim: steps.append((sim.time, sim.gather("T"), sim.gather("v"))),
    )
    sim.run(steps=11, output=statistics(shared_tmp_path / "s.zarr", sim, window=window))
    assert sim.checksum("T") == alone.checksum("T")
    sim.domain.comm.barrier()
    if sim.domain.comm.rank != 0:
        return
    stored = open_content(shared_tmp_path / "s.zarr")
    assert list(stored["step"].values) == [0, 5, 10]
    assert len(steps) == 11
    times = np.array([0.0, *(t for t, _, _ in steps)])
    dt, T, v = np.diff(times), *(np.array([step[n] for step in steps]) for n in (1, 2))
    for n, end in ((1, 5), (2, 10)):
        window_steps = slice(end - 5 if window == "output" else 0, end)
        weights = (dt[window_steps] / dt[window_steps].sum())[:, None, None, None]
        mean = (weights * T[window_steps]).sum(axis=0)
        at = stored.isel(time=n)
        np.testing.assert_allclose(
            at["mean"].values, (weights * T[window_steps] ** 2).sum(axis=0), rtol=1e-12
        )
        np.testing.assert_allclose(
            at["variance"].values,
            (weights * (T[window_steps] - mean) ** 2).sum(axis=0),
            rtol=1e-8,
            atol=1e-18,
        )
        np.testing.assert_array_equal(at["least"].values, T[window_steps].min(axis=0))
        np.testing.assert_array_equal(at["greatest"].values, v[window_steps].max(axis=0))


def test_statistics_without_samples_are_nan_with_metadata(tmp_path: Path) -> None:
    sim = heat()
    sim.run(steps=5, output=statistics(tmp_path / "s.zarr", sim))
    stored = open_content(tmp_path / "s.zarr")
    for name, method in (
        ("mean", "mean"),
        ("variance", "variance"),
        ("least", "minimum"),
        ("greatest", "maximum"),
    ):
        assert np.isnan(stored[name].values[0]).all()
        assert np.isfinite(stored[name].values[1]).all()
        assert stored[name].cell_methods == f"time: {method}"
    assert np.isfinite(stored["T"].values).all()


@pytest.mark.ranks(1, 2, long=(1,))
def test_statistics_continue_after_a_restart(shared_tmp_path: Path) -> None:
    path = shared_tmp_path
    whole = heat(dt=courant, time_step="delayed")
    whole.run(steps=12, output=statistics(path / "whole" / "s.zarr", whole))
    first = heat(dt=courant, time_step="delayed")
    first.run(
        steps=8,
        output=statistics(path / "parts" / "s.zarr", first),
        checkpoint=hc.Checkpoint(path / "checkpoints", every=hc.steps(7)),
    )
    second = heat(dt=courant, time_step="delayed")
    second.resume(path / "checkpoints")
    second.run(steps=4, output=statistics(path / "parts" / "s.zarr", second))
    second.domain.comm.barrier()
    assert second.checksum("T") == whole.checksum("T")
    assert open_content(path / "whole" / "s.zarr").equals(open_content(path / "parts" / "s.zarr"))


def test_statistics_need_time(tmp_path: Path) -> None:
    grid = hc.Grid((24, 24), walls="node")
    u = grid.field("u", boundary=hc.Value(0.0))
    with pytest.raises(InputError, match="has statistics over time, but this program has no time"):
        hc.solve(lambda u: -hc.laplacian(u), u, 1.0, threads=1, output=hc.Output(
            tmp_path / "u.zarr", {"mean": hc.time_mean(u)}))  # fmt: skip
    assert not list(tmp_path.iterdir())


INTERRUPTED = """
import os, signal, sys
from halocline.archive import arrays

def interrupt(event, arguments):
    global sent
    if event == "import" and arguments[0] == "ml_dtypes" and not sent:  # by the code of TensorStore in C++
        sent = True
        os.kill(os.getpid(), signal.SIGINT)

sent = False
sys.addaudithook(interrupt)
try:
    arrays.context(1)
except KeyboardInterrupt:
    assert sent
    print("interrupted")
"""


def test_an_interrupt_during_the_import_of_tensorstore_is_no_import_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
