"""Weights of interpolation."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import halocline as hc
from halocline.run.fields.interpolation import Weights, conservative, polynomial
from halocline.run.fields.sources import Reader, Source


def whole(weights: Weights, values: np.ndarray) -> np.ndarray:
    """Return all new values, computed from all old ones."""
    return weights.apply(values, 0, [(0, len(values))], 0, len(weights.index))


edges = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=9, unique_by=lambda x: round(x, 3)).map(
    lambda inner: np.array([0.0, *sorted(inner), 1.0])
)


@given(edges, edges, st.booleans())
def test_conservative_weights_preserve_integrals_and_constants(
    old: np.ndarray, new: np.ndarray, periodic: bool
) -> None:
    weights = conservative(old, new, periodic=periodic)
    values = np.random.default_rng(len(old)).uniform(size=len(old) - 1)
    averages = whole(weights, values)
    assert np.dot(averages, np.diff(new)) == pytest.approx(np.dot(values, np.diff(old)), abs=1e-12)
    np.testing.assert_allclose(whole(weights, np.full(len(old) - 1, 2.5)), 2.5)
    if not periodic and len(old) > 2:  # exact for linear functions
        middle = 0.5 * (old[1:] + old[:-1])
        np.testing.assert_allclose(whole(weights, 3.0 - middle), 3.0 - 0.5 * (new[1:] + new[:-1]), atol=1e-12)


@given(edges, edges)
def test_linear_weights_agree_with_numpy(old: np.ndarray, new: np.ndarray) -> None:
    values = np.random.default_rng(len(old)).uniform(size=len(old))
    interpolated = whole(polynomial(old, new, 2), values)
    np.testing.assert_allclose(interpolated, np.interp(new, old, values), atol=1e-12)
    around = whole(polynomial(old[:-1], new + 5.0, 2, 1.0), values[:-1])
    np.testing.assert_allclose(around, np.interp(new, old[:-1], values[:-1], period=1.0), atol=1e-9)


@given(edges, edges, st.sampled_from(["conservative", "linear", "around"]), st.data())
def test_a_part_reads_at_most_two_ranges_and_has_the_same_bits(
    old: np.ndarray, new: np.ndarray, kind: str, data: st.DataObject
) -> None:
    if kind == "conservative":
        weights = conservative(old, new, periodic=data.draw(st.booleans()))
        values = np.random.default_rng(len(old)).uniform(size=len(old) - 1)
    else:
        weights = polynomial(old, new + 0.3, 2, 1.5 if kind == "around" else None)
        values = np.random.default_rng(len(old)).uniform(size=len(old))
    lo = data.draw(st.integers(0, len(weights.index) - 1))
    hi = data.draw(st.integers(lo + 1, len(weights.index)))
    runs = weights.runs_read(lo, hi)
    assert 1 <= len(runs) <= 2
    flat = [end for run in runs for end in run]
    assert flat == sorted(set(flat))  # neither empty nor adjacent
    read = [n for first, end in runs for n in range(first, end)]
    assert {*weights.index[lo:hi].ravel()} <= {*read}
    np.testing.assert_array_equal(
        weights.apply(values[read], 0, runs, lo, hi), whole(weights, values)[lo:hi], strict=True
    )


@pytest.mark.parametrize("location", ["cell", "face-x"])
def test_parts_at_a_periodic_end_do_not_read_the_whole_array(location: str) -> None:
    """Each of two parts along each axis reads a few points of the other part, on both of its sides."""
    grid = hc.Grid((40, 48), extent=(1.0, 2.0), periodic=True)
    field = grid.field("T", location=location)
    other = hc.Grid((64, 56), extent=(1.0, 2.0), periodic=True).field("T", location=location)
    values = np.random.default_rng(4).uniform(size=other.points)
    names = ("x" if location == "cell" else "x_face", "y")
    read: list[int] = []

    def box(lo: Any, hi: Any) -> np.ndarray:
        read.append(int(np.prod(np.subtract(hi, lo))))
        return values[tuple(map(slice, lo, hi))].T

    source = Source(
        "T", names[::-1], values.shape[::-1], dict(zip(names, other.positions, strict=True)),
        lambda lo, hi: box(lo[::-1], hi[::-1]),
    )  # fmt: skip
    reader = Reader(field, source)
    all_at_once = reader.read((0, 0), field.points)
    for low in product((0, 20), (0, 24)):
        read.clear()
        part = tuple(slice(l, l + n) for l, n in zip(low, (20, 24), strict=True))
        np.testing.assert_array_equal(
            reader.read(low, [s.stop for s in part]), all_at_once[part], strict=True
        )
        assert len(read) <= 4
        assert sum(read) < 0.32 * values.size


def test_interpolation_is_of_second_order(tmp_path: Path) -> None:
    """The error of averages of a sine falls by a factor of four if the resolution of the source doubles."""
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
