"""VTK files, read by VTK."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray

from exported_stores import grid_of
from halocline.archive.reader import Store
from halocline.io.export import export


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_vtk_and_xarray_read_the_same_values(stores: Path, ndim: int, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / f"{ndim}.zarr")
    done: list[int] = []
    files = export(Store(stores / f"{ndim}.zarr"), tmp_path / "out" / "all.pvd", on_progress=done.append)
    assert files == [tmp_path / "out" / "all.pvd", tmp_path / "out" / "all"]
    assert done == [1, 2, 3, 4]
    listed = files[0].read_text()
    assert listed.count("<DataSet") == 8
    for n, time in enumerate(source["time"].values):
        assert f'timestep="{float(time)!r}"' in listed
        for name in ("T", "v"):
            space = source[name].dims[1:]
            file = files[1] / f"{'_'.join(space)}_{n:06}.vtr"
            assert f'file="all/{file.name}"' in listed
            lines, values = grid_of(file)
            assert list(values) == [name]
            np.testing.assert_array_equal(
                values[name].reshape(source[name].shape[1:]), source[name].values[n]
            )
            assert values[name].dtype == source[name].dtype
            for line, dimension in zip(lines, space, strict=False):
                np.testing.assert_array_equal(line, source[dimension].values)


def test_one_vtk_file_contains_the_last_time(stores: Path, tmp_path: Path) -> None:
    source = xarray.open_zarr(stores / "3.zarr")
    (file,) = export(Store(stores / "3.zarr"), tmp_path / "T.vtr", ["T"])
    _, values = grid_of(file)
    np.testing.assert_array_equal(values["T"], source["T"].values[-1])
    files = export(Store(stores / "3.zarr"), tmp_path / "all.vtr")
    assert [path.name for path in files] == ["all_x_y_z.vtr", "all_x_face_y_z.vtr"]
