"""HDF5 and XDMF files, read by h5py and VTK."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import xarray
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkRectilinearGrid
from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

from halocline.archive.reader import Store
from halocline.io.export import export
from loops import some


def numbers(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split()]


def read_item(described: Path, item: Any) -> np.ndarray:
    """Return the data of an item of an XDMF file, and check them against the attributes of the item."""
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
        return picked.reshape(size)  # fails if the slab has another number of values
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
    """The reader of ParaView reads the values at their points at every time."""
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
def test_hdf5_has_the_values_of_xarray_and_xdmf_refers_to_them(
    stores: Path, ndim: int, tmp_path: Path
) -> None:
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    described, data = export(Store(stores / f"{ndim}.zarr"), tmp_path / "all.xdmf")
    with h5py.File(data) as file:
        np.testing.assert_array_equal(file["time"][:], source["time"].values)
        for name in ("T", "v"):
            values = file[name][:]
            np.testing.assert_array_equal(np.transpose(values, (0, *range(ndim, 0, -1))), source[name].values)
    root = ElementTree.parse(described).getroot()
    collections = root.findall("./Domain/Grid")
    assert [grid.get("Name") for grid in collections] == [
        "-".join(source[name].dims[1:]) for name in ("T", "v")
    ]
    for collection, name in zip(collections, ("T", "v"), strict=True):
        grids = collection.findall("Grid")
        assert [float(grid.find("Time").get("Value")) for grid in grids] == list(source["time"].values)
        for n, grid in enumerate(grids):
            values = source[name].values[n]
            # the last dimension of XDMF is x; absent axes have one point
            size = [*[1] * (3 - ndim), *reversed(values.shape)]
            assert grid.find("Topology").get("TopologyType") == "3DRectMesh"
            assert numbers(grid.find("Topology").get("Dimensions")) == size
            assert grid.find("Geometry").get("GeometryType") == "VXVYVZ"
            lines = [read_item(described, item) for item in grid.findall("Geometry/DataItem")]
            expected = [source[d].values for d in source[name].dims[1:]] + [np.zeros(1)] * (3 - ndim)
            for line, coordinates in zip(lines, expected, strict=True):
                np.testing.assert_array_equal(line, coordinates)
            assert grid.find("Attribute").get("Name") == name
            assert grid.find("Attribute").get("Center") == "Node"
            actual = read_item(described, grid.find("Attribute/DataItem"))
            np.testing.assert_array_equal(actual, values.T.reshape(size))
