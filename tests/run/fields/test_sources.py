"""Fields from stores and xarray: point by point, and from other resolutions."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import halocline as hc
from halocline.archive.reader import Store
from halocline.errors import InputError
from halocline.io.export import export
from halocline.io.listing import described
from halocline.io.views import Selection, view
from halocline.run.fields.interpolation import Weights
from halocline.run.fields.sources import source_of
from suites import cases


def fields(shape: tuple[int, ...], *, walls: Any = "face", periodic: Any = False) -> hc.Simulation:
    grid = hc.Grid(shape, extent=(1.0, 2.0)[: len(shape)], walls=walls, periodic=periodic)
    flat = None if all(grid.periodic) else hc.Derivative(0.0)
    grid.field("T", boundary=flat)
    grid.field("v", location="face-x", boundary=flat)
    return hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)


def stored(path: Path, shape: tuple[int, ...], **options: Any) -> hc.Simulation:
    sim = fields(shape, **options)
    draw = np.random.default_rng(3)
    for name in ("T", "v"):
        sim[name] = draw.uniform(size=sim.grid.fields[name].points)
    sim.run(steps=2, output=hc.Output(path, every=hc.steps(1)))
    return sim


@pytest.mark.ranks(1, 3, long=(1,))
def test_written_fields_are_read_back(shared_tmp_path: Path) -> None:
    path = shared_tmp_path / "a.zarr"
    before = stored(path, (9, 12))
    before.domain.comm.barrier()
    whole = xarray.open_zarr(path)
    for source in (
        lambda name: f"{path}/{name}",
        lambda name: whole[name].isel(time=-1),
        lambda name: path / name,
    ):
        sim = fields((9, 12))
        for name in ("T", "v"):
            sim[name] = source(name)
            assert sim.checksum(name) == before.checksum(name)
    sim = fields((9, 12))
    sim["T"] = whole["T"].isel(time=0).transpose("y", "x")  # the names of axes decide, not their order
    first = sim.gather("T")
    if first is not None:
        np.testing.assert_array_equal(first, whole["T"].values[0])


@pytest.mark.ranks(1, 2, 4, long=(1, 2))
def test_another_resolution_is_interpolated_with_the_same_bits_on_any_ranks(
    shared_tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = shared_tmp_path / "a.zarr"
    stored(path, (9, 12)).domain.comm.barrier()
    caplog.set_level("INFO", logger="halocline")
    sim = fields((14, 18))
    sim["T"] = path / "T"
    sim["v"] = path / "v"
    gathered = {name: sim.gather(name) for name in ("T", "v")}
    if sim.domain.comm.rank != 0:
        return
    assert (
        "field T is interpolated: x conservatively from 9 points, y conservatively from 12 points"
        in caplog.text
    )
    assert "field v is interpolated: x linearly from 10 points, y conservatively" in caplog.text
    source = xarray.open_zarr(path)
    T = source["T"].values[-1]
    assert gathered["T"].mean() == pytest.approx(T.mean(), rel=1e-14)
    # independent reference: averages of a fine sampling of the linear pieces
    np.testing.assert_allclose(gathered["T"], reference(reference(T, 14), 18, axis=1), rtol=1e-12)
    v = source["v"].values[-1]
    along = np.array([np.interp(np.arange(15) / 14, np.arange(10) / 9, v[:, j]) for j in range(12)]).T
    np.testing.assert_allclose(gathered["v"], reference(along, 18, axis=1), rtol=1e-12)


def test_a_checkpoint_is_read_on_another_resolution(tmp_path: Path) -> None:
    before = stored(tmp_path / "a.zarr", (9, 12))
    before.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "c"))
    saved = next((tmp_path / "c").glob("step-*"))
    sim = fields((14, 18))
    for name, axes in (("T", ("x", "y")), ("v", ("x_face", "y"))):
        coordinates = dict(zip(axes, before.grid.fields[name].positions, strict=True))
        sim[name] = xarray.DataArray(before.gather(name), coordinates, axes)
        expected = sim.checksum(name)
        sim[name] = 0.0
        sim[name] = saved / name
        assert sim.checksum(name) == expected


def test_a_field_may_have_the_name_of_an_axis(tmp_path: Path) -> None:
    """A field in a checkpoint with the name of an axis is not read as a coordinate."""
    grid = hc.Grid((8, 6), periodic=True)
    x, T = grid.field("x"), grid.field("T")
    sim = hc.Simulation(grid, lambda x, T: {x: -x, T: -T}, scheme=hc.RK3(), dt=0.1, threads=1)
    sim[x] = lambda x, y: np.sin(2 * np.pi * x) + y
    sim[T] = lambda x, y: x * y
    sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "c"))
    saved = next((tmp_path / "c").glob("step-*"))
    expected = [sim.checksum(f) for f in (x, T)]
    sim[x], sim[T] = 0.0, 0.0
    sim[x], sim[T] = saved / "x", saved / "T"
    assert [sim.checksum(f) for f in (x, T)] == expected
    assert described(saved)["arrays"].keys() == {"x", "T", "x_w", "T_w"}
    store = Store(saved)
    assert store.results == ["T", "x"]
    finer = hc.Grid((16, 12), periodic=True)
    T = finer.field("T")
    other = hc.Simulation(finer, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
    with pytest.raises(InputError, match="no coordinates along this axis"):
        other[T] = saved / "T"


def reference(values: np.ndarray, count: int, axis: int = 0) -> np.ndarray:
    """Return averages over `count` equal cells of a function that is linear in each old cell.

    The function is sampled at the middle of the pieces that both sets of cells cut the line into.
    """
    values = np.moveaxis(values, axis, 0)
    n = len(values)
    padded = np.concatenate((values[:1], values, values[-1:]))
    span = np.array([1.0, *[2.0] * (n - 2), 1.0])[:, None]
    slopes = (padded[2:] - padded[:-2]) / span
    fine = n * count
    x = (np.arange(fine) + 0.5) / fine
    cell = np.minimum((x * n).astype(int), n - 1)
    sampled = values[cell] + slopes[cell] * (x * n - cell - 0.5)[:, None]
    return np.moveaxis(sampled.reshape(count, n, -1).mean(axis=1), 0, axis)


def whole(weights: Weights, values: np.ndarray) -> np.ndarray:
    """Return all new values, computed from all old ones."""
    return weights.apply(values, 0, [(0, len(values))], 0, len(weights.index))


@pytest.mark.ranks(1, 2, long=(1,))
def test_ranks_read_the_same_time_of_a_store_that_grows(shared_tmp_path: Path) -> None:
    """All ranks read the time that the first rank sees, although the other ranks see a later one."""
    early, late = shared_tmp_path / "early.zarr", shared_tmp_path / "late.zarr"
    for path, steps in ((early, 1), (late, 2)):
        sim = fields((9, 12))
        sim["T"] = lambda x, y: x + y
        sim.run(steps=steps, output=hc.Output(path, every=hc.steps(1)))
    first = sim.domain.comm.rank == 0
    sim.domain.comm.barrier()
    sim["T"] = (early if first else late) / "T"
    gathered = sim.gather("T")
    if gathered is not None:
        assert Store(early).times.tolist() == [0.0, 0.1]
        np.testing.assert_array_equal(gathered, xarray.open_zarr(early)["T"].values[1])
    if sim.domain.comm.size == 1:
        message = (
            r"T contains 2 output times so far\. Index 2 does not exist yet\. Read the array again later\."
        )
        with pytest.raises(InputError, match=message):
            source_of(early / "T", sim.grid.fields["T"], 2).read((0, 0), (9, 12))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            lambda path: path,
            r"is a store; expected the path of one of its arrays, .*: T, step, time, v, x, x_face, y",
        ),
        (lambda path: path / "S", r"there is no array .*S; .*a\.zarr contains T, step"),
        (lambda path: "nowhere/T", "there is no array nowhere/T"),
        (lambda path: path / "v", "field 'T' has axes x, y, but .*v has x_face, y"),
        (lambda path: xarray.open_zarr(path)["T"], "has 3 times; choose one"),
        (
            lambda path: xarray.open_zarr(path)["T"].isel(time=0, y=0),
            "has axes x, y, but DataArray 'T' has x",
        ),
        (lambda path: xarray.open_zarr(path)["T"].isel(time=0, x=slice(0, 5)), "does not cover field 'T'"),
        (
            lambda path: xarray.open_zarr(path)["T"].isel(time=0).drop_vars(["x", "y"]).isel(x=slice(2)),
            "has 2 points along x but no coordinates along this axis; field 'T' has 9",
        ),
        (lambda path: xarray.open_zarr(path)["T"].isel(time=0)[::-1], "coordinates along x do not increase"),
    ],
)
def test_mismatched_sources_are_rejected(source: Any, words: str, tmp_path: Path) -> None:
    stored(tmp_path / "a.zarr", (9, 12))
    sim = fields((9, 12))
    with pytest.raises(InputError, match=words):
        sim["T"] = source(tmp_path / "a.zarr")


def test_arrays_without_coordinates_are_read_point_by_point() -> None:
    sim, values = fields((9, 12)), np.random.default_rng(1).uniform(size=(9, 12))
    sim["T"] = xarray.DataArray(values, dims=("x", "y"))
    np.testing.assert_array_equal(sim["T"], values)


# -- damaged stores ------------------------------------------------------------------------------------------


VERBS: dict[str, Callable[[Path, Path], Any]] = {
    "sim[T] =": lambda path, _: fields((9, 12)).__setitem__("T", path / "T"),
    "view": lambda path, out: view(Store(path), out / "a.png", Selection()),
    "view a film": lambda path, out: view(Store(path), out / "a.gif", Selection()),
    "export to VTK": lambda path, out: export(Store(path), out / "a.vtr"),
    "export to XDMF": lambda path, out: export(Store(path), out / "a.xdmf"),
    "ls": lambda path, _: described(path),
}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intact") / "a.zarr"
    stored(path, (9, 12))
    return path


def chunk(change: Callable[[bytes], bytes], name: str = "T/c.2.0.0") -> Callable[[Path], Any]:
    return lambda path: (path / name).write_bytes(change((path / name).read_bytes()))


def metadata(change: Callable[[Any], Any], name: str = "T") -> Callable[[Path], Any]:
    file = f"{name}/zarr.json"
    return lambda path: (path / file).write_text(json.dumps(change(json.loads((path / file).read_text()))))


def array(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a change of the metadata that a store has of T."""

    def changed(group: Any) -> Any:
        known = group["consolidated_metadata"]["metadata"]
        known["T"] = change(known["T"])
        return group

    return changed


def without(*keys: str) -> Callable[[Any], Any]:
    return lambda entries: {key: value for key, value in entries.items() if key not in keys}


# damage of the store, error message, and True if `ls`, which reads no fields, succeeds
DAMAGES: dict[str, tuple[Callable[[Path], Any], str, bool]] = {
    "a bit of a chunk": (
        chunk(lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:]),
        "T is damaged: .*igest",
        True,
    ),
    "half a chunk": (chunk(lambda b: b[: len(b) // 2]), "T is damaged: ", True),
    "an empty chunk": (chunk(lambda b: b""), "T is damaged: .* is empty", False),
    "no chunk": (lambda path: (path / "T/c.2.0.0").unlink(), r"chunk c\.2\.0\.0 is missing", False),
    "no chunk of x": (lambda path: (path / "x/c.0").unlink(), r"chunk c\.0 is missing", False),
    "half a chunk of y": (chunk(lambda b: b[:9], "y/c.0"), "y is damaged: ", True),
    "more points": (metadata(lambda a: {**a, "shape": [3, 9, 13]}), r"has shape \(3, 9, 13\), but", False),
    "fewer times": (metadata(lambda a: {**a, "shape": [2, 9, 12]}), r"has shape \(2, 9, 12\), but", False),
    "a shape that is none": (
        metadata(lambda a: {**a, "shape": 3}),
        r"T/zarr\.json is damaged.*its shape is 3",
        False,
    ),
    "another type": (
        metadata(lambda a: {**a, "data_type": "float32"}),
        "has type float32, but .* has float64",
        False,
    ),
    "a codec there is not": (
        metadata(lambda a: {**a, "codecs": [{"name": "none"}]}),
        "is damaged.*codec",
        False,
    ),
    "codecs that are none": (metadata(lambda a: {**a, "codecs": 3}), r"T/zarr\.json is damaged", False),
    "names of too few axes": (metadata(lambda a: {**a, "dimension_names": ["x"]}), "1 axis names", False),
    "no chunk grid": (metadata(without("chunk_grid")), "array 'T' has no 'chunk_grid'", False),
    "a list": (metadata(lambda a: [a]), r"T/zarr\.json is damaged.*expected an object", False),
    "half a file": (
        lambda path: (path / "T/zarr.json").write_text('{"shape": ['),
        r"T/zarr\.json is not a JSON",
        False,
    ),
    "no folder": (
        lambda path: shutil.rmtree(path / "T"),
        "no array .*T|array 'T' no longer exists",
        False,
    ),
    "an array of the group without shape": (
        metadata(array(without("shape")), "."),
        r"a\.zarr/zarr\.json.*array 'T' has no 'shape'",
        False,
    ),
    "an array of the group that is none": (
        metadata(array(lambda a: 3), "."),
        r"a\.zarr/zarr\.json.*contains entries that are not objects",
        False,
    ),
    "other points in the group": (
        metadata(array(lambda a: {**a, "shape": [3, 8, 12]}), "."),
        "8 points along x, which has 9 coordinates|has shape",
        False,
    ),
    "attributes of the group": (metadata(lambda g: {**g, "attributes": [1]}, "."), "attributes are", False),
    "a group that is none": (metadata(lambda g: [], "."), r"a\.zarr/zarr\.json.*expected an object", False),
}


@cases(
    "verb, damage", itertools.product(VERBS, DAMAGES), default=list(itertools.product(VERBS, DAMAGES))[::3]
)
def test_a_damaged_store_is_rejected_by_every_command(
    intact: Path, verb: str, damage: str, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.zarr", tmp_path / "out"
    shutil.copytree(intact, path)
    apply_damage, words, listed = DAMAGES[damage]
    apply_damage(path)
    if listed and verb == "ls":
        assert "T" in described(path)["arrays"]
        return
    with pytest.raises(InputError, match=f"(?s){words}"):
        VERBS[verb](path, out)
    assert not list(out.glob("*"))


def test_nan_and_missing_values_are_read_if_allowed(tmp_path: Path) -> None:
    """NaN is read from a stored chunk, and a missing chunk of another program is read as zeros."""
    path, values = tmp_path / "a.zarr", np.zeros((9, 12))
    values[0, :3] = np.nan
    dataset = xarray.Dataset({"T": (("x", "y"), values)})
    encoding = {"chunks": (3, 4), "_FillValue": None, "fill_value": 0.0}
    dataset.to_zarr(path, encoding={"T": encoding}, zarr_format=3, consolidated=False)
    assert not (path / "T" / "c" / "2" / "2").exists()
    np.testing.assert_array_equal(Store(path).read("T"), values)
    sim = fields((9, 12))
    sim["T"] = path / "T"
    np.testing.assert_array_equal(sim["T"], values)


def test_an_array_without_a_group_is_read(intact: Path, tmp_path: Path) -> None:
    for name in ("T", "x", "y"):
        shutil.copytree(intact / name, tmp_path / name)
    sim = fields((9, 12))
    sim["T"] = tmp_path / "T"
    np.testing.assert_array_equal(sim["T"], Store(intact).read("T", 2))


def test_a_dataset_is_rejected_as_an_array() -> None:
    dataset = xarray.Dataset({"T": (("x", "y"), np.zeros((9, 12))), "v": (("x", "y"), np.zeros((9, 12)))})
    with pytest.raises(
        InputError, match=r"a Dataset of T, v; expected a DataArray\. Select one by dataset\[NAME\]"
    ):
        fields((9, 12))["T"] = dataset


def test_the_time_axis_grows_in_the_presence_of_a_step_axis(tmp_path: Path) -> None:
    """The time axis grows if there is also a step axis, as in forecasts with a start time."""
    values = np.arange(24.0).reshape(2, 3, 4)
    dataset = xarray.Dataset({"T": (("time", "step", "x"), values)})
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    store = Store(tmp_path / "a.zarr")
    info = store.arrays["T"]
    assert (store.axis, info.growing, info.space, info.times) == ("time", "time", ("step", "x"), 2)
    np.testing.assert_array_equal(store.read("T", 1), values[1])
