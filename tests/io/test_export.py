"""Stores in formats of other programs, read by these programs, and the listing of `halocline ls`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray
import zarr
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkRectilinearGrid
from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

import halocline as hc
from exported_stores import grid_of
from halocline.archive.reader import FACTS, Store
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.io.export import export


@pytest.mark.parametrize(
    ("name", "target", "fields", "words"),
    [
        ("3.zarr", "a.foo", None, r"expected a name that ends in \.pvd, \.vtr, \.xdmf"),
        ("3.zarr", "a.pvd", ["U"], "field 'U' is unknown"),
        ("numbers3.zarr", "a.pvd", None, "contains no fields"),
        ("none.zarr", "a.pvd", None, "no such file or folder"),
        ("3.zarr/T", "a.pvd", None, "is a single array"),
    ],
)
def test_invalid_exports_are_rejected(
    stores: Path, name: str, target: str, fields: list[str] | None, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        export(Store(stores / name), tmp_path / target, fields)
    assert not list(tmp_path.iterdir())


def altered(store: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Return a copy of a store with changed metadata of its arrays, as another program may write them."""
    shutil.copytree(store, to)
    group = json.loads((to / "zarr.json").read_text())
    known = group["consolidated_metadata"]["metadata"]
    change(known)
    (to / "zarr.json").write_text(json.dumps(group))
    for name, metadata in known.items():
        (to / name).mkdir(parents=True, exist_ok=True)
        (to / name / "zarr.json").write_text(json.dumps(metadata))
    return to


@pytest.mark.parametrize("suffix", [".pvd", ".vtr", ".xdmf"])
@pytest.mark.parametrize("name", ["../../x", "/x", "a/x", "..", ".", "a\\x", "a&x", "a\nx", "f.h5:x"])
def test_names_that_leave_the_folder_are_rejected(
    stores: Path, name: str, suffix: str, tmp_path: Path
) -> None:
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


def test_names_of_arrays_are_checked(stores: Path, tmp_path: Path) -> None:
    def nested(known: dict[str, Any]) -> None:
        known["a/T"] = known.pop("T")

    path = altered(stores / "2.zarr", tmp_path / "a.zarr", nested)
    group = json.loads((path / "zarr.json").read_text())
    del group["attributes"][FACTS]  # stores of other programs lack this attribute
    (path / "zarr.json").write_text(json.dumps(group))
    store = Store(path)
    with pytest.raises(InputError, match="array 'a/T' cannot be exported: its name is 'a/T'"):
        export(store, tmp_path / "all.xdmf")
    # a store does not read arrays of other programs
    group = json.loads((stores / "2.zarr" / "zarr.json").read_text())
    known = group["consolidated_metadata"]["metadata"]
    known["../1.zarr/T"] = known.pop("T")
    (tmp_path / "b.zarr").mkdir()
    (tmp_path / "b.zarr" / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(
        InputError, match=r"an array '\.\./1\.zarr/T'; expected the name of an array inside the store"
    ):
        Store(tmp_path / "b.zarr")


def test_fields_of_a_checkpoint_are_exported(stores: Path, tmp_path: Path) -> None:
    """The fields of a checkpoint are exported at their place in the grid, without work arrays."""
    store = Store(max((stores / "checkpoints").glob("step-*")))
    source = xarray.open_zarr(stores / "2.zarr")
    export(store, tmp_path / "all.xdmf")
    names = {
        attribute.get("Name") for attribute in ElementTree.parse(tmp_path / "all.xdmf").iter("Attribute")
    }
    assert names == {"T", "v"}
    for name in ("T", "v"):
        lines, values = grid_of(export(store, tmp_path / f"{name}.vtr", [name])[0])
        np.testing.assert_array_equal(lines[0], source[source[name].dims[1]].values)
        np.testing.assert_array_equal(values[name][..., 0], source[name].values[-1])


def test_fields_with_different_points_are_exported_separately(tmp_path: Path) -> None:
    """Fields with other points along an axis are exported separately, also if programs gave them one name."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, count in (("T", 7), ("v", 8)):
        group.create_array(name, shape=(count, 4), dtype="f8", dimension_names=("x", "y"))
    with pytest.raises(InputError, match=r"'T' has 7 points along x, and 'v' has 8\. Export them one by one"):
        export(Store(tmp_path / "a.zarr"), tmp_path / "all.xdmf")


def test_types_without_vtk_equivalent_are_rejected(tmp_path: Path) -> None:
    dataset = xarray.Dataset(
        {"n": (("x", "y"), np.ones((3, 4), "int16")), "T": (("x", "y"), np.ones((3, 4)))}
    )
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    store = Store(tmp_path / "a.zarr")
    with pytest.raises(
        InputError, match=r"array 'n' cannot be exported: it has type int16; expected float64"
    ):
        export(store, tmp_path / "a.vtr")
    _, values = grid_of(export(store, tmp_path / "a.vtr", ["T"])[0])
    np.testing.assert_array_equal(values["T"][..., 0], np.ones((3, 4)))


def test_arrays_without_points_are_rejected(tmp_path: Path) -> None:
    dataset = xarray.Dataset({"T": (("x", "y"), np.ones((0, 4)))})
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(InputError, match="array 'T' holds no points"):
        export(Store(tmp_path / "a.zarr"), tmp_path / "a.vtr")


def test_steps_without_time_coordinates_are_numbered(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    xarray.Dataset({"T": (("time", "x", "y"), values)}).to_zarr(
        tmp_path / "a.zarr", zarr_format=3, consolidated=False
    )
    export(Store(tmp_path / "a.zarr"), tmp_path / "a.pvd")
    for n in range(2):
        _, result = grid_of(tmp_path / "a" / f"x_y_{n:06}.vtr")
        np.testing.assert_array_equal(result["T"][..., 0], values[n])


def test_files_are_not_overwritten_without_the_option(stores: Path, tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_text("mine")
    with pytest.raises(InputError, match=r"a\.h5 exists already"):
        export(Store(stores / "2.zarr"), tmp_path / "a.xdmf")
    export(Store(stores / "2.zarr"), tmp_path / "a.xdmf", overwrite=True)


def test_a_collection_is_written_completely_or_not_at_all(stores: Path, tmp_path: Path) -> None:
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


def test_the_command_exports(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "T.pvd"
    assert run(["export", str(stores / "2.zarr"), str(target), "--fields", "T"]) == 0
    assert str(target) in capsys.readouterr().err
    assert len(list((tmp_path / "T").iterdir())) == 4


@pytest.mark.parametrize("cut", [{"x": 0.5}, {"y": 0.5}, {"z": 1.2}, {"x": 0.5, "z": 1.2}])
def test_slices_have_the_coordinates_of_the_cut(cut: dict[str, float], tmp_path: Path) -> None:
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
    result = reader.GetOutputDataObject(0)
    while not isinstance(result, vtkRectilinearGrid):
        result = result.GetBlock(0)
    for axis, line in enumerate(grid.positions()):
        read = vtk_to_numpy(getattr(result, f"Get{'XYZ'[axis]}Coordinates")())
        np.testing.assert_allclose(read, line[index[axis]])
    read = vtk_to_numpy(result.GetPointData().GetArray("T")).reshape(values["T"].shape[::-1]).T
    np.testing.assert_array_equal(read, values["T"])
