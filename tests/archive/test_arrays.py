"""Arrays on disk: written values are read again, and damage is reported with its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray

from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec, narrowed
from halocline.archive.files import write_json
from halocline.errors import InputError, RunError

SPEC = ArraySpec((4, 6), (2, 3), "float64", ("y", "x"), {"units": "m"})
VALUES = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("compression", arrays.COMPRESSIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_written_arrays_are_read_back_unchanged(compression: str, dtype: str, tmp_path: Path) -> None:
    spec = replace(SPEC, dtype=dtype, compression=compression)
    values = VALUES.astype(dtype)
    arrays.create(tmp_path / "a", spec).put((0, 0), values[:, :4])
    arrays.attach(tmp_path / "a", spec).put((0, 4), values[:, 4:])
    array = arrays.read(tmp_path / "a")
    assert array.shape == (4, 6)
    assert array.chunk == (2, 3)
    whole = array.read((0, 0), (4, 6))
    assert whole.dtype == dtype
    assert np.array_equal(whole, values)
    assert np.array_equal(array.read((1, 2), (3, 5)), values[1:3, 2:5])


def test_other_programs_read_a_store(tmp_path: Path) -> None:
    fixed = {"x": (ArraySpec((6,), (6,), "float64", ("x",)), np.linspace(0, 1, 6))}
    arrays.create_all(tmp_path, {"u": SPEC}, fixed)
    arrays.attach(tmp_path / "u", SPEC).put((0, 0), VALUES)
    specs = {"u": SPEC, "x": fixed["x"][0]}
    write_json(tmp_path / arrays.GROUP, arrays.group_metadata({"title": "t"}, specs))
    with xarray.open_dataset(tmp_path, engine="zarr", consolidated=False) as store:
        assert np.array_equal(store["u"], VALUES)
        assert store["u"].dims == ("y", "x")
        assert (store["u"].attrs["units"], store.attrs["title"]) == ("m", "t")
        assert np.array_equal(store["x"], np.linspace(0, 1, 6))


def test_overflows_to_infinity_are_counted() -> None:
    values = np.array([1.0, 1e300, -1e300, np.inf, np.nan])
    converted, count = narrowed(values, "float32")
    assert (converted.dtype, count) == (np.float32, 2)
    assert np.isinf(converted).tolist() == [False, True, True, True, False]
    same, count = narrowed(values, "float64")
    assert (same is values, count) == (True, 0)


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    arrays.create(tmp_path / "a", SPEC).put((0, 0), VALUES)
    chunk = next(path for path in (tmp_path / "a").iterdir() if path.name != arrays.GROUP)
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(InputError, match=f"{tmp_path / 'a'} is damaged: "):
        arrays.read(tmp_path / "a").read((0, 0), (4, 6))
    first = tuple(int(part) * size for part, size in zip(chunk.name.split(".")[1:], SPEC.chunk, strict=True))
    with pytest.raises(RunError, match=r"is damaged .*, so nothing was written to it"):
        arrays.attach(tmp_path / "a", SPEC).put(first, VALUES[:1, :1])  # a part of the chunk


def test_a_missing_array_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a cannot be read: "):
        arrays.read(tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="a cannot be written: "):
        arrays.create(tmp_path / "file" / "a", SPEC)
