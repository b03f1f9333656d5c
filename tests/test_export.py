"""Stores in the formats of other programs, read by these; and what `halocline ls` tells."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLRectilinearGridReader

import halocline as hc
from halocline.archive.reader import Store
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.io.export import export


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
        how = {"checkpoint": hc.Checkpoint(path / "checkpoints", every=2)} if len(shape) == 2 else {}
        outputs = [
            hc.Output(path / f"{len(shape)}.zarr", every=1, units={"T": "K"}),
            hc.Output(path / f"numbers{len(shape)}.zarr", {"sum": hc.sum(T)}, every=1),
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


@pytest.mark.parametrize("ndim", [2, 3])
def test_hdf5_holds_what_xarray_reads_and_xdmf_says_where(stores: Path, ndim: int, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    described, data = export(Store(stores / f"{ndim}.zarr"), tmp_path / "all.xdmf")
    with h5py.File(data) as file:
        np.testing.assert_array_equal(file["time"][:], source["time"].values)
        for name in ("T", "v"):
            values = file[name][:]
            np.testing.assert_array_equal(np.transpose(values, (0, *range(ndim, 0, -1))), source[name].values)
    from xml.etree import ElementTree

    root = ElementTree.parse(described).getroot()
    collections = root.findall("./Domain/Grid")
    assert [each.get("Name") for each in collections] == [
        "-".join(source[name].dims[1:]) for name in ("T", "v")
    ]
    for collection, name in zip(collections, ("T", "v"), strict=True):
        grids = collection.findall("Grid")
        assert [float(each.find("Time").get("Value")) for each in grids] == list(source["time"].values)
        for n, each in enumerate(grids):
            slab, array = each.find("Attribute/DataItem").findall("DataItem")
            numbers = np.array(slab.text.split(), int).reshape(3, -1)
            where, _, dataset = array.text.partition(":/")
            assert where == data.name
            with h5py.File(data) as file:
                first, stride, count = numbers
                picked = tuple(slice(f, f + s * c, s) for f, s, c in zip(first, stride, count, strict=True))
                found = file[dataset][picked][0]
            np.testing.assert_array_equal(found.T, source[name].values[n])
            size = [int(part) for part in each.find("Topology").get("Dimensions").split()]
            assert np.prod(size) == source[name].values[n].size


@pytest.mark.parametrize(
    ("name", "target", "fields", "words"),
    [
        ("3.zarr", "a.foo", None, r"expected a name that ends in \.pvd, \.vtr, \.xdmf"),
        ("3.zarr", "a.pvd", ["U"], "field 'U' is unknown"),
        ("numbers3.zarr", "a.pvd", None, "holds no fields"),
        ("none.zarr", "a.pvd", None, "there is nothing"),
        ("3.zarr/T", "a.pvd", None, "is an array, not a store"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    stores: Path, name: str, target: str, fields: list[str] | None, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        export(Store(stores / name), tmp_path / target, fields)
    assert not list(tmp_path.iterdir())


def test_files_are_not_overwritten_unasked(stores: Path, tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_text("mine")
    with pytest.raises(InputError, match=r"a\.h5 is there already"):
        export(Store(stores / "2.zarr"), tmp_path / "a.xdmf")
    export(Store(stores / "2.zarr"), tmp_path / "a.xdmf", overwrite=True)


# -- the commands --------------------------------------------------------------------------------------------


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
    with pytest.raises(InputError, match="there is nothing"):
        run(["ls", str(stores / "none")])
    with pytest.raises(InputError, match="there is no Zarr store"):
        run(["ls", str(stores)])


def test_export_by_its_command(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "T.pvd"
    assert run(["export", str(stores / "2.zarr"), str(target), "--fields", "T"]) == 0
    assert str(target) in capsys.readouterr().err
    assert len(list((tmp_path / "T").iterdir())) == 4
