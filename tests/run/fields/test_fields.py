"""Values of fields from NumPy files and from functions of coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from sine_field import simulation


@pytest.mark.ranks(1, 2, long=(1,))
def test_a_field_is_set_from_a_file_of_numpy(shared_tmp_path: Path) -> None:
    sim = simulation()
    values = np.random.default_rng(3).uniform(size=(8, 6)).astype("float32")
    comm = sim.domain.comm
    if comm.rank == 0:
        np.save(shared_tmp_path / "c.npy", values)
        np.savez(shared_tmp_path / "all.npz", c=values, other=np.ones(3))
        np.savez(shared_tmp_path / "one.npz", first=values)
    comm.barrier()
    for name in ("c.npy", "all.npz", "one.npz"):
        sim["c"] = 0.0
        sim["c"] = shared_tmp_path / name
        gathered = sim.gather("c")
        assert (gathered is None) == (comm.rank > 0)
        assert gathered is None or np.array_equal(gathered, values)


def test_a_vector_is_set_from_a_file_of_numpy(tmp_path: Path) -> None:
    sim = simulation()
    w = sim.grid.vector("w")
    values = np.random.default_rng(3).uniform(size=(2, 8, 6))
    np.save(tmp_path / "w.npy", values)
    np.savez(tmp_path / "components.npz", w_x=values[0], w_y=values[1], other=values)
    np.savez(tmp_path / "named.npz", w=values, other=np.ones(3))
    np.savez(tmp_path / "one.npz", first=values)
    for name in ("w.npy", "components.npz", "named.npz", "one.npz"):
        sim[w] = 0.0
        sim[w] = tmp_path / name
        np.testing.assert_array_equal(sim.gather(w), values)
    np.savez(tmp_path / "two.npz", a=values, b=values)
    with pytest.raises(InputError, match="one named 'w' or 'w_x' and 'w_y', or a single array"):
        sim[w] = tmp_path / "two.npz"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x - x.max(),
        lambda x, y: np.roll(x, 1),
        lambda x, y: x - np.mean(y),
        lambda x, y: np.sum(x * y) + x,
        lambda x, y: np.gradient(x),
        lambda x, y: np.cumsum(x),
    ],
)
def test_a_function_that_combines_points_is_an_error(function: Any) -> None:
    """A function that combines points is rejected, since row by row it would give the maximum of a row."""
    with pytest.raises(InputError, match="combines values of several points"):
        simulation()["c"] = function


COMBINING = {
    "reduction": lambda x, y: np.arctan2(y, x) / np.arctan2(y, x).max(),
    "mean": lambda x, y: np.floor(8 * x) - np.mean(np.floor(8 * x)),
    "shift": lambda x, y: np.roll((8 * x) % 3 + (8 * y) % 3, 1, axis=0),
    "gradient": lambda x, y: np.gradient(np.floor(8 * x + 8 * y), axis=0),
    "point": lambda x, y: np.floor(y) + y - y[0],
    "cumulative": lambda x, y: np.floor(x) + y.cumsum(),
    "transform": lambda x, y: np.fft.fft(y).real + np.floor(x),
    "plain": lambda x, y: np.floor(x) + np.asarray(y).max(),
}


@pytest.mark.parametrize("function", COMBINING.values(), ids=list(COMBINING))
def test_a_function_that_runs_by_rows_combines_no_points(function: Any) -> None:
    """A function that combines points is rejected, since results for rows and for the grid differ."""
    with pytest.raises(InputError, match="combines values of several points"):
        simulation()["c"] = function


def _with_conditions(x: Any, y: Any) -> Any:
    values = np.floor(8 * x) + y
    values[y > 0.5] = 7.0
    values[x < 0.3] += y[x < 0.3]
    return values


ALONE = {
    "ufunc": lambda x, y: np.arctan2(y, x),
    "table": lambda x, y: np.interp(x + y, [0.0, 1.0], [1.0, 2.0]),
    "conditions": _with_conditions,
    "pieces": lambda x, y: np.piecewise(y, [y < 0.5, y >= 0.5], [lambda v: v * v, 1.0]) + np.floor(x),
    "select": lambda x, y: np.select([y < 0.2, y < 0.5], [x, y], 0.0) + np.floor(y),
    "shape": lambda x, y: np.full(x.shape, 3.0),
    "loop": lambda x, y: sum(np.floor(k * y) for k in range(3)),
}


@pytest.mark.parametrize("function", ALONE.values(), ids=list(ALONE))
def test_a_function_that_runs_by_rows_has_the_values_of_numpy(function: Any) -> None:
    sim = simulation()
    c = sim.grid.fields["c"]
    sim[c] = function
    places = np.meshgrid(*map(np.asarray, c.positions), indexing="ij")
    expected = np.asarray(function(*places), dtype=c.dtype)
    np.testing.assert_array_equal(sim.gather(c), expected)


@pytest.mark.ranks(2)
def test_a_file_of_a_vector_that_one_rank_lacks_is_an_error_on_all(shared_tmp_path: Path) -> None:
    grid = hc.Grid((8, 6))
    u, w = grid.field("u"), grid.vector("w")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[u] = 1.0
    rank = sim.domain.comm.rank
    if rank == 0:
        np.save(shared_tmp_path / "0.npy", np.ones((2, 8, 6)))
    with pytest.raises(InputError, match=r"there is no file .*1\.npy"):
        sim[w] = shared_tmp_path / f"{rank}.npy"
    assert sim.evaluate(hc.max(u)) == 1.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.npy", r"there is no file none\.npy"),
        ("text.npy", r"text\.npy cannot be read"),
        ("short.npz", r"short\.npz cannot be read"),
        ("shape.npy", r"has shape \(8, 6\), but the array of shape\.npy has shape \(6, 8\)"),
        ("complex.npy", r"complex\.npy holds an array of dtype complex128; expected real numbers"),
        ("object.npy", r"object\.npy cannot be read"),
        ("number.npy", r"has shape \(8, 6\), but the array of number\.npy has shape \(\)"),
        ("number.npz", r"has shape \(8, 6\), but the array of number\.npz has shape \(\)"),
        ("two.npz", r"two\.npz holds the arrays a, b; expected one named 'c', or a single array"),
    ],
)
def test_a_mismatched_numpy_file_is_rejected(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.npy").write_text("no array")
    Path("short.npz").write_bytes(b"PK\x03\x04 and no more")
    np.save("shape.npy", np.ones((6, 8)))
    np.save("complex.npy", np.ones((8, 6), complex))
    np.save("number.npy", 3.0)
    np.savez("number.npz", c=3.0)
    np.save("object.npy", np.full((8, 6), None), allow_pickle=True)
    np.savez("two.npz", a=np.ones((8, 6)), b=np.ones((8, 6)))
    sim = simulation()
    sim["c"] = 2.0
    with pytest.raises(InputError, match=words):
        sim["c"] = name
    assert np.all(sim.gather("c") == 2.0)
