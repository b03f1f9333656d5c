"""Stores in the formats of other programs, read by these; and what `halocline ls` tells."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import xarray
import zarr
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkRectilinearGrid
from vtkmodules.vtkIOXdmf2 import vtkXdmfReader
from vtkmodules.vtkIOXML import vtkXMLRectilinearGridReader

import halocline as hc
from halocline.archive.reader import FACTS, Store
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.io.export import export
from halocline.run.output.restart import newest
from loops import some


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output in one to three dimensions, with fields on faces, and checkpoints."""
    path = tmp_path_factory.mktemp("stores")
    for shape in ((7,), (7, 5), (7, 5, 6)):
        grid = hc.Grid(shape, extent=(1.4, 1.0, 3.0)[: len(shape)])
        T = grid.field("T", boundary=hc.Value(0.0))
        v = grid.field("v", location="face-x", dtype="float32", boundary=hc.Value(0.0))
        sim = hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)
        for f in (T, v):
            sim[f] = np.random.default_rng(len(shape)).uniform(size=f.points)
        how = (
            {"checkpoint": hc.Checkpoint(path / "checkpoints", every=hc.steps(2))} if len(shape) == 2 else {}
        )
        outputs = [
            hc.Output(path / f"{len(shape)}.zarr", every=hc.steps(1), units={"T": "K"}),
            hc.Output(path / f"numbers{len(shape)}.zarr", {"sum": hc.sum(T)}, every=hc.steps(1)),
        ]
        sim.run(steps=3, output=outputs, **how)
    return path


def grid_of(path: Path) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Coordinates, and arrays by axes x, y, z."""
    reader = vtkXMLRectilinearGridReader()
    reader.SetFileName(str(path))
    reader.Update()
    found = reader.GetOutput()
    lines = [vtk_to_numpy(getattr(found, f"Get{a}Coordinates")()) for a in "XYZ"]
    data, shape = found.GetPointData(), found.GetDimensions()
    values = {
        data.GetArrayName(n): vtk_to_numpy(data.GetArray(n)).reshape(shape[::-1]).T
        for n in range(data.GetNumberOfArrays())
    }
    return lines, values


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_vtk_reads_what_xarray_reads(stores: Path, ndim: int, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    done: list[int] = []
    made = export(Store(stores / f"{ndim}.zarr"), tmp_path / "out" / "all.pvd", on_progress=done.append)
    assert made == [tmp_path / "out" / "all.pvd", tmp_path / "out" / "all"]
    assert done == [1, 2, 3, 4]
    listed = made[0].read_text()
    assert listed.count("<DataSet") == 8
    for n, time in enumerate(source["time"].values):
        assert f'timestep="{float(time)!r}"' in listed
        for name in ("T", "v"):
            space = source[name].dims[1:]
            file = made[1] / f"{'_'.join(space)}_{n:06}.vtr"
            assert f'file="all/{file.name}"' in listed
            lines, values = grid_of(file)
            assert list(values) == [name]
            np.testing.assert_array_equal(
                values[name].reshape(source[name].shape[1:]), source[name].values[n]
            )
            assert values[name].dtype == source[name].dtype
            for line, dimension in zip(lines, space, strict=False):
                np.testing.assert_array_equal(line, source[dimension].values)


def test_one_vtk_file_of_the_last_time(stores: Path, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / "3.zarr")
    (made,) = export(Store(stores / "3.zarr"), tmp_path / "T.vtr", ["T"])
    _, values = grid_of(made)
    np.testing.assert_array_equal(values["T"], source["T"].values[-1])
    both = export(Store(stores / "3.zarr"), tmp_path / "all.vtr")
    assert [each.name for each in both] == ["all_x_y_z.vtr", "all_x_face_y_z.vtr"]


def numbers(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split()]


def read_item(described: Path, item: Any) -> np.ndarray:
    """What an item of an XDMF file refers to, which must be as the item says."""
    size = numbers(item.get("Dimensions"))
    if item.get("ItemType") == "HyperSlab":
        slab, array = item.findall("DataItem")
        assert slab.get("Format") == "XML"
        first, stride, count = np.array(slab.text.split(), int).reshape(numbers(slab.get("Dimensions")))
        last = first + stride * (count - 1)
        whole = read_item(described, array)
        assert len(first) == whole.ndim
        assert all(last < whole.shape)
        picked = whole[tuple(slice(f, l + 1, s) for f, l, s in zip(first, last, stride, strict=True))]
        assert list(picked.shape) == list(count)
        return picked.reshape(size)  # fails where the slab has another number of values
    if item.get("Format") == "XML":
        values = np.array(item.text.split(), float)
        assert list(values.shape) == size
        return values
    assert item.get("Format") == "HDF"
    file, _, dataset = item.text.partition(":/")
    with h5py.File(described.parent / file) as data:
        assert dataset in data
        assert list(data[dataset].shape) == size
        assert data[dataset].dtype == {"4": "f4", "8": "f8"}[item.get("Precision")]
        assert item.get("NumberType") == "Float"
        return data[dataset][:]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_vtk_reads_xdmf(stores: Path, ndim: int, tmp_path: Path) -> None:
    """The reader that ParaView has finds the values at their points, at every time."""
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    described, _ = export(Store(stores / f"{ndim}.zarr"), tmp_path / "v.xdmf", ["v"])
    reader = vtkXdmfReader()
    reader.SetFileName(str(described))
    for n, time in some(enumerate(source["time"].values)):
        reader.UpdateTimeStep(float(time))
        grid = reader.GetOutputDataObject(0)
        while not isinstance(grid, vtkRectilinearGrid):
            grid = grid.GetBlock(0)
        shape = source["v"].shape[1:]
        assert grid.GetDimensions() == (*shape, *[1] * (3 - ndim))
        for axis, dimension in zip("XYZ", source["v"].dims[1:], strict=False):
            line = vtk_to_numpy(getattr(grid, f"Get{axis}Coordinates")())
            np.testing.assert_array_equal(line, source[dimension].values)
        values = vtk_to_numpy(grid.GetPointData().GetArray("v"))
        np.testing.assert_array_equal(values.reshape(shape[::-1]).T, source["v"].values[n])


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_hdf5_holds_what_xarray_reads_and_xdmf_says_where(stores: Path, ndim: int, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    described, data = export(Store(stores / f"{ndim}.zarr"), tmp_path / "all.xdmf")
    with h5py.File(data) as file:
        np.testing.assert_array_equal(file["time"][:], source["time"].values)
        for name in ("T", "v"):
            values = file[name][:]
            np.testing.assert_array_equal(np.transpose(values, (0, *range(ndim, 0, -1))), source[name].values)
    root = ElementTree.parse(described).getroot()
    collections = root.findall("./Domain/Grid")
    assert [each.get("Name") for each in collections] == [
        "-".join(source[name].dims[1:]) for name in ("T", "v")
    ]
    for collection, name in zip(collections, ("T", "v"), strict=True):
        grids = collection.findall("Grid")
        assert [float(each.find("Time").get("Value")) for each in grids] == list(source["time"].values)
        for n, each in enumerate(grids):
            values = source[name].values[n]
            # the last dimension of XDMF is x; axes that are not there have one point
            size = [*[1] * (3 - ndim), *reversed(values.shape)]
            assert each.find("Topology").get("TopologyType") == "3DRectMesh"
            assert numbers(each.find("Topology").get("Dimensions")) == size
            assert each.find("Geometry").get("GeometryType") == "VXVYVZ"
            lines = [read_item(described, item) for item in each.findall("Geometry/DataItem")]
            expected = [source[d].values for d in source[name].dims[1:]] + [np.zeros(1)] * (3 - ndim)
            for line, coordinates in zip(lines, expected, strict=True):
                np.testing.assert_array_equal(line, coordinates)
            assert each.find("Attribute").get("Name") == name
            assert each.find("Attribute").get("Center") == "Node"
            found = read_item(described, each.find("Attribute/DataItem"))
            np.testing.assert_array_equal(found, values.T.reshape(size))


@pytest.mark.parametrize(
    ("name", "target", "fields", "words"),
    [
        ("3.zarr", "a.foo", None, r"expected a name that ends in \.pvd, \.vtr, \.xdmf"),
        ("3.zarr", "a.pvd", ["U"], "field 'U' is unknown"),
        ("numbers3.zarr", "a.pvd", None, "holds no fields"),
        ("none.zarr", "a.pvd", None, "no such file or folder"),
        ("3.zarr/T", "a.pvd", None, "is a single array"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    stores: Path, name: str, target: str, fields: list[str] | None, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        export(Store(stores / name), tmp_path / target, fields)
    assert not list(tmp_path.iterdir())


def altered(store: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a store, where a program with other ideas has changed what it says of its arrays."""
    shutil.copytree(store, to)
    group = json.loads((to / "zarr.json").read_text())
    known = group["consolidated_metadata"]["metadata"]
    change(known)
    (to / "zarr.json").write_text(json.dumps(group))
    for name, each in known.items():
        (to / name).mkdir(parents=True, exist_ok=True)
        (to / name / "zarr.json").write_text(json.dumps(each))
    return to


@pytest.mark.parametrize("suffix", [".pvd", ".vtr", ".xdmf"])
@pytest.mark.parametrize("name", ["../../x", "/x", "a/x", "..", ".", "a\\x", "a&x", "a\nx", "f.h5:x"])
def test_names_that_lead_elsewhere_are_refused(stores: Path, name: str, suffix: str, tmp_path: Path) -> None:
    def change(known: dict[str, Any]) -> None:
        known["T"]["dimension_names"] = ["time", name, "y"]

    store = Store(altered(stores / "2.zarr", tmp_path / "a.zarr", change))
    out = tmp_path / "a" / "b" / "out"
    out.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="'T' cannot be exported: the name of its axis is") as caught:
        export(store, out / f"all{suffix}")
    assert repr(name) in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert export(store, out / f"all{suffix}", ["v"])


def test_names_of_arrays_are_checked_too(stores: Path, tmp_path: Path) -> None:
    def nested(known: dict[str, Any]) -> None:
        known["a/T"] = known.pop("T")

    path = altered(stores / "2.zarr", tmp_path / "a.zarr", nested)
    group = json.loads((path / "zarr.json").read_text())
    del group["attributes"][FACTS]  # stores of other programs lack this attribute
    (path / "zarr.json").write_text(json.dumps(group))
    store = Store(path)
    with pytest.raises(InputError, match="array 'a/T' cannot be exported: its name is 'a/T'"):
        export(store, tmp_path / "all.xdmf")
    # nor does a store read what is not its own
    group = json.loads((stores / "2.zarr" / "zarr.json").read_text())
    known = group["consolidated_metadata"]["metadata"]
    known["../1.zarr/T"] = known.pop("T")
    (tmp_path / "b.zarr").mkdir()
    (tmp_path / "b.zarr" / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(
        InputError, match=r"an array '\.\./1\.zarr/T': expected a name that stays in the store"
    ):
        Store(tmp_path / "b.zarr")


def test_fields_of_a_checkpoint_are_exported(stores: Path, tmp_path: Path) -> None:
    """Where they are in the grid, but no work arrays."""
    store = Store(max((stores / "checkpoints").glob("step-*")))
    source = xarray.open_zarr(stores / "2.zarr")
    export(store, tmp_path / "all.xdmf")
    shown = {each.get("Name") for each in ElementTree.parse(tmp_path / "all.xdmf").iter("Attribute")}
    assert shown == {"T", "v"}
    for name in ("T", "v"):
        lines, values = grid_of(export(store, tmp_path / f"{name}.vtr", [name])[0])
        np.testing.assert_array_equal(lines[0], source[source[name].dims[1]].values)
        np.testing.assert_array_equal(values[name][..., 0], source[name].values[-1])


def test_fields_with_other_points_along_an_axis_go_one_by_one(tmp_path: Path) -> None:
    """Of other programs, where they have the same name."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, count in (("T", 7), ("v", 8)):
        group.create_array(name, shape=(count, 4), dtype="f8", dimension_names=("x", "y"))
    with pytest.raises(InputError, match="'T' has 7 points along x, and 'v' has 8: export them one by one"):
        export(Store(tmp_path / "a.zarr"), tmp_path / "all.xdmf")


def test_types_that_vtk_does_not_have_are_refused(tmp_path: Path) -> None:
    made = xarray.Dataset({"n": (("x", "y"), np.ones((3, 4), "int16")), "T": (("x", "y"), np.ones((3, 4)))})
    made.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    store = Store(tmp_path / "a.zarr")
    with pytest.raises(
        InputError, match=r"array 'n' cannot be exported: it has type int16; expected float64"
    ):
        export(store, tmp_path / "a.vtr")
    _, values = grid_of(export(store, tmp_path / "a.vtr", ["T"])[0])
    np.testing.assert_array_equal(values["T"][..., 0], np.ones((3, 4)))


def test_arrays_without_points_are_rejected(tmp_path: Path) -> None:
    made = xarray.Dataset({"T": (("x", "y"), np.ones((0, 4)))})
    made.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(InputError, match="array 'T' holds no points"):
        export(Store(tmp_path / "a.zarr"), tmp_path / "a.vtr")


def test_times_without_coordinates_are_numbered(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    xarray.Dataset({"T": (("time", "x", "y"), values)}).to_zarr(
        tmp_path / "a.zarr", zarr_format=3, consolidated=False
    )
    export(Store(tmp_path / "a.zarr"), tmp_path / "a.pvd")
    for n in range(2):
        _, found = grid_of(tmp_path / "a" / f"x_y_{n:06}.vtr")
        np.testing.assert_array_equal(found["T"][..., 0], values[n])


def test_files_are_not_overwritten_unasked(stores: Path, tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_text("mine")
    with pytest.raises(InputError, match=r"a\.h5 is there already"):
        export(Store(stores / "2.zarr"), tmp_path / "a.xdmf")
    export(Store(stores / "2.zarr"), tmp_path / "a.xdmf", overwrite=True)


def test_a_collection_is_whole_or_not_there(stores: Path, tmp_path: Path) -> None:
    def stop(times: int) -> None:
        if times == 2:
            raise KeyboardInterrupt

    store = Store(stores / "2.zarr")
    with pytest.raises(KeyboardInterrupt):
        export(store, tmp_path / "a.pvd", on_progress=stop)
    assert not list(tmp_path.iterdir())
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("mine")
    export(store, tmp_path / "a.pvd", overwrite=True)
    assert (tmp_path / "a" / "notes.txt").read_text() == "mine"
    assert len(list((tmp_path / "a").glob("*.vtr"))) == 8


# -- the commands --------------------------------------------------------------------------------------------


def test_ls_says_what_to_go_on_from(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", folder)
    last = max(folder.glob("step-*"))

    def said() -> str:
        assert run(["ls", str(folder)]) == 0
        return capsys.readouterr().out

    assert f"Go on from the newest with --resume {folder}." in said()
    (folder / "newest.json").unlink()
    text = said()
    assert " has no newest.json, which names the newest. Go on from the last whole one" in text
    assert f"--resume {last}" in text
    with pytest.raises(InputError, match=f"whole ones there, the latest last: .*{last.name}$"):
        newest(folder)
    (folder / "newest.json").write_text(json.dumps({"checkpoint": ""}))
    assert "names '', which is no checkpoint there. Go on from the last whole one" in said()
    (folder / "newest.json").write_text("{")
    assert "newest.json is no JSON file that Halocline wrote, or it is damaged. Go on" in said()
    (folder / "newest.json").write_text(json.dumps({"checkpoint": last.name}))
    (last / "zarr.json").unlink()
    assert f"names {last.name!r}, which is no checkpoint there. Go on from the last whole one" in said()
    for each in folder.glob("step-*/zarr.json"):
        each.unlink()
    assert "None was ever completed." in said()


def test_ls_tells_what_is_there(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = str(tmp_path / "ls.json")
    assert run(["ls", str(stores / "2.zarr"), "--json", kept]) == 0
    text = capsys.readouterr().out
    assert "4 times, t = 0 to 0.3, steps 0 to 3" in text
    assert " ".join(["T", "time,", "x,", "y", "4", "x", "7", "x", "5", "float64", "K"]) in " ".join(
        text.split()
    )
    assert "time, x_face, y" in text
    assert "T = " not in text
    found = json.loads(Path(kept).read_text())
    assert found["kind"] == "output"
    assert found["steps"] == [0, 1, 2, 3]
    assert found["arrays"]["v"]["shape"] == [4, 8, 5]
    assert run(["ls", str(stores / "2.zarr"), "--equations"]) == 0
    assert "T = " in capsys.readouterr().out
    assert run(["ls", str(stores / "checkpoints")]) == 0
    text = capsys.readouterr().out
    assert text.count("step-") == 2
    assert "newest" in text
    assert "--resume" in text
    newest = max((stores / "checkpoints").glob("step-*"))
    assert run(["ls", str(newest), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["step"]) == ("checkpoint", 3)
    assert found["arrays"]["T"]["location"] == "cell"
    with pytest.raises(InputError, match="no such file or folder"):
        run(["ls", str(stores / "none")])
    expected = "no Zarr store; expected the path of output or of a checkpoint, such as"
    with pytest.raises(InputError, match=rf"{expected} \S+ in it$"):
        run(["ls", str(stores)])
    with pytest.raises(InputError, match=rf"{expected} {re.escape(str(newest))} in it$"):
        run(["view", str(newest.parent), str(stores / "T.png")])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: facts.pop("time"), "it lacks time"),
        (lambda facts: facts["fields"].pop("T"), "its facts of the run are not those that were written"),
        (lambda facts: facts.update(time=3), ""),
        (lambda facts: facts.update(identity=[]), ""),
    ],
)
def test_ls_of_a_damaged_checkpoint(stores: Path, change: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", path)
    newest = max(path.glob("step-*"))
    group = json.loads((newest / "zarr.json").read_text())
    change(group["attributes"]["halocline"])
    (newest / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(InputError, match=rf"{newest.name}/zarr\.json is damaged.*{words}"):
        run(["ls", str(newest)])
    (newest / "zarr.json").write_text("[]")
    with pytest.raises(InputError, match=r"zarr\.json is damaged"):
        run(["ls", str(path)])


def test_ls_names_the_checkpoint_that_lost_a_chunk(
    stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "checkpoints"
    shutil.copytree(stores / "checkpoints", path)
    older, last = sorted(path.glob("step-*"))
    next(last.glob("T/c.*")).unlink()
    assert run(["ls", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{last.name} not whole 3" in text
    assert "its chunk c.0.0 is missing: restore the file from a copy of the store. Go on from" in text
    assert f"Go on from the last whole one with --resume {older}" in text
    next(older.glob("v/c.*")).unlink()
    assert run(["ls", str(path)]) == 0
    assert "is missing: restore the file from a copy of the store." in " ".join(
        capsys.readouterr().out.split()
    )


def test_export_by_its_command(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "T.pvd"
    assert run(["export", str(stores / "2.zarr"), str(target), "--fields", "T"]) == 0
    assert str(target) in capsys.readouterr().err
    assert len(list((tmp_path / "T").iterdir())) == 4


@pytest.mark.parametrize("cut", [{"x": 0.5}, {"y": 0.5}, {"z": 1.2}, {"x": 0.5, "z": 1.2}])
def test_slices_lie_where_they_were_cut(cut: dict[str, float], tmp_path: Path) -> None:
    grid = hc.Grid((7, 5, 6), extent=(1.4, 1.0, 3.0))
    T = grid.field("T", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[T] = np.random.default_rng(3).uniform(size=T.points)
    sim.run(steps=1, output=hc.Output(tmp_path / "s.zarr", region=hc.Slice(**cut)))
    store, index = Store(tmp_path / "s.zarr"), [slice(None)] * 3
    for axis, line in enumerate(grid.positions()):
        if "xyz"[axis] in cut:
            nearest = int(np.abs(line - cut["xyz"[axis]]).argmin())
            index[axis] = slice(nearest, nearest + 1)
    lines, values = grid_of(export(store, tmp_path / "s.vtr")[0])
    for axis, line in enumerate(grid.positions()):
        np.testing.assert_allclose(lines[axis], line[index[axis]])
    np.testing.assert_array_equal(values["T"], np.array(sim[T])[tuple(index)])
    reader = vtkXdmfReader()
    reader.SetFileName(str(export(store, tmp_path / "s.xdmf")[0]))
    reader.UpdateTimeStep(float(store.times[-1]))
    found = reader.GetOutputDataObject(0)
    while not isinstance(found, vtkRectilinearGrid):
        found = found.GetBlock(0)
    for axis, line in enumerate(grid.positions()):
        read = vtk_to_numpy(getattr(found, f"Get{'XYZ'[axis]}Coordinates")())
        np.testing.assert_allclose(read, line[index[axis]])
    read = vtk_to_numpy(found.GetPointData().GetArray("T")).reshape(values["T"].shape[::-1]).T
    np.testing.assert_array_equal(read, values["T"])
