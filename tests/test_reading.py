"""Fields out of stores and xarray: point for point, and from other resolutions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.run.interpolation import conservative, linear


def fields(shape: tuple[int, ...], *, walls: Any = "face", periodic: Any = False) -> hc.Simulation:
    grid = hc.Grid(shape, extent=(1.0, 2.0)[: len(shape)], walls=walls, periodic=periodic)
    grid.field("T", boundary=hc.Derivative(0.0))
    grid.field("v", location="face-x", boundary=hc.Derivative(0.0))
    return hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)


def stored(path: Path, shape: tuple[int, ...], **how: Any) -> hc.Simulation:
    sim = fields(shape, **how)
    draw = np.random.default_rng(3)
    for name in ("T", "v"):
        sim[name] = draw.uniform(size=sim.grid.fields[name].points)
    sim.run(steps=2, output=hc.Output(path, every=1))
    return sim


@pytest.mark.ranks(1, 3)
def test_what_was_written_is_read(shared_tmp_path: Path) -> None:
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
    sim["T"] = whole["T"].isel(time=0).transpose("y", "x")  # axes go by their names
    first = sim.gather("T")
    if first is not None:
        np.testing.assert_array_equal(first, whole["T"].values[0])


@pytest.mark.ranks(1, 2, 4)
def test_another_resolution_is_interpolated_with_the_same_bits_on_any_ranks(
    shared_tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = shared_tmp_path / "a.zarr"
    stored(path, (9, 12)).domain.comm.barrier()
    caplog.set_level("INFO", logger="halocline")
    sim = fields((14, 18))
    sim["T"] = path / "T"
    sim["v"] = path / "v"
    found = {name: sim.gather(name) for name in ("T", "v")}
    if sim.domain.comm.rank != 0:
        return
    assert (
        "field T is interpolated: x conservatively from 9 points, y conservatively from 12 points"
        in caplog.text
    )
    assert "field v is interpolated: x linearly from 10 points, y conservatively" in caplog.text
    source = xarray.open_zarr(path)
    T = source["T"].values[-1]
    assert found["T"].mean() == pytest.approx(T.mean(), rel=1e-14)
    # by a way of its own: averages of a fine sampling of the linear pieces
    np.testing.assert_allclose(found["T"], reference(reference(T, 14), 18, axis=1), rtol=1e-12)
    v = source["v"].values[-1]
    along = np.array([np.interp(np.arange(15) / 14, np.arange(10) / 9, v[:, j]) for j in range(12)]).T
    np.testing.assert_allclose(found["v"], reference(along, 18, axis=1), rtol=1e-12)


def reference(values: np.ndarray, count: int, axis: int = 0) -> np.ndarray:
    """Averages over `count` equal cells of what is linear in each of the old ones, sampled at the middle of
    the pieces that both kinds of cells cut the line into."""
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


edges = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=9, unique_by=lambda x: round(x, 3)).map(
    lambda inner: np.array([0.0, *sorted(inner), 1.0])
)


@given(edges, edges, st.booleans())
def test_conservative_weights_keep_the_integral_and_what_is_constant(
    old: np.ndarray, new: np.ndarray, periodic: bool
) -> None:
    weights = conservative(old, new, periodic=periodic)
    values = np.random.default_rng(len(old)).uniform(size=len(old) - 1)
    found = weights.apply(values, 0, 0, 0, len(new) - 1)
    assert np.dot(found, np.diff(new)) == pytest.approx(np.dot(values, np.diff(old)), abs=1e-12)
    np.testing.assert_allclose(weights.apply(np.full(len(old) - 1, 2.5), 0, 0, 0, len(new) - 1), 2.5)
    if not periodic and len(old) > 2:  # exact for what is linear
        middle = 0.5 * (old[1:] + old[:-1])
        np.testing.assert_allclose(
            weights.apply(3.0 - middle, 0, 0, 0, len(new) - 1), 3.0 - 0.5 * (new[1:] + new[:-1]), atol=1e-12
        )


@given(edges, edges)
def test_linear_weights_are_those_of_numpy(old: np.ndarray, new: np.ndarray) -> None:
    values = np.random.default_rng(len(old)).uniform(size=len(old))
    found = linear(old, new).apply(values, 0, 0, 0, len(new))
    np.testing.assert_allclose(found, np.interp(new, old, values), atol=1e-12)
    around = linear(old[:-1], new + 5.0, 1.0).apply(values[:-1], 0, 0, 0, len(new))
    np.testing.assert_allclose(around, np.interp(new, old[:-1], values[:-1], period=1.0), atol=1e-9)


def test_second_order_of_refinement(tmp_path: Path) -> None:
    """Averages of sin: the error falls four times when the source is twice as fine."""
    errors = []
    for n in (16, 32, 64):
        cells = (np.arange(n) + 0.5) / n
        average = np.sin(2 * np.pi * cells) * np.sinc(1 / n)
        source = xarray.DataArray(average, dims="x", coords={"x": cells})
        grid = hc.Grid(3 * n, periodic=True)
        grid.field("T")
        sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
        sim["T"] = source
        fine = (np.arange(3 * n) + 0.5) / (3 * n)
        errors.append(abs(sim["T"] - np.sin(2 * np.pi * fine) * np.sinc(1 / (3 * n))).max())
    assert np.log2(errors[0] / errors[1]) > 1.9
    assert np.log2(errors[1] / errors[2]) > 1.9


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            lambda path: path,
            r"is a store; give the path of one of its arrays, .*: T, step, time, v, x, x_face, y",
        ),
        (lambda path: path / "S", r"there is no array .*S; .*a\.zarr has T, step"),
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
            "has 2 points along x and no coordinates there; field 'T' has 9",
        ),
        (lambda path: xarray.open_zarr(path)["T"].isel(time=0)[::-1], "coordinates along x do not rise"),
    ],
)
def test_what_does_not_fit_is_refused(source: Any, words: str, tmp_path: Path) -> None:
    stored(tmp_path / "a.zarr", (9, 12))
    sim = fields((9, 12))
    with pytest.raises(InputError, match=words):
        sim["T"] = source(tmp_path / "a.zarr")


def test_what_has_no_coordinates_is_taken_point_for_point() -> None:
    sim, values = fields((9, 12)), np.random.default_rng(1).uniform(size=(9, 12))
    sim["T"] = xarray.DataArray(values, dims=("x", "y"))
    np.testing.assert_array_equal(sim["T"], values)
