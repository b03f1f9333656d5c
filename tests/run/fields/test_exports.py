"""Views of fields in host memory; see tests/devices/test_cuda_arrays.py for views in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import halocline as hc
from array_libraries import library
from halocline.errors import InputError
from vector_problem import problem

if TYPE_CHECKING:
    from halocline import _native

BITS = np.array([0x7FF8000000000123, 0x8000000000000000, 1, 0x7FEFFFFFFFFFFFFF], np.uint64)  # NaN, -0, ...


def filled(dtype: str = "float64", **execution: Any) -> tuple[hc.Simulation, hc.Field]:
    """Return a simulation without steps, and its field with distinct values."""
    grid = hc.Grid((6, 5), periodic=True, dtype=dtype)
    u = grid.field("u")
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.25, threads=1, **execution)
    sim[u] = np.arange(30.0).reshape(6, 5)
    return sim, u


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numpy_imports_the_memory_of_a_field(dtype: str) -> None:
    sim, u = filled(dtype)
    array = np.from_dlpack(sim.views[u])
    assert array.dtype == dtype
    assert np.shares_memory(array, sim[u])
    assert not array.flags.c_contiguous  # rows are padded
    array[2, 3] = 100.0
    assert sim[u][2, 3] == 100.0
    sim.step()
    assert sim[u][2, 3] == 75.0
    assert sim.steps == 1


def test_a_round_trip_by_dlpack_keeps_all_bits() -> None:
    sim, u = filled()
    sim.views[u].view(np.uint64)[0, :4] = BITS
    other, v = filled()
    other[v] = np.from_dlpack(sim.views["u"])
    assert other[v].view(np.uint64).tolist() == sim[u].view(np.uint64).tolist()


def test_pytorch_shares_the_memory_of_a_field() -> None:
    torch = library("torch")
    sim, u = filled()
    tensor = torch.from_dlpack(sim.views[u])
    assert tensor.data_ptr() == sim[u].ctypes.data
    assert tensor.stride() == tuple(step // 8 for step in sim[u].strides)
    tensor.mul_(2)
    assert sim[u][5].tolist() == [50.0, 52.0, 54.0, 56.0, 58.0]
    del sim
    assert tensor[5, 4] == 58.0  # the tensor keeps the memory alive


def test_jax_imports_a_copy() -> None:
    jax = library("jax")
    sim, u = filled("float32")
    array = jax.numpy.from_dlpack(sim.views[u].copy())
    sim[u] = 0.0
    assert array.tolist() == np.arange(30.0).reshape(6, 5).tolist()


def test_a_view_of_a_vector_is_a_tuple() -> None:
    sim, _, w = problem()
    sim[w] = (1.0, 2.0)
    x, y = sim.views[w]
    assert (x[0, 0], y[0, 0]) == (1.0, 2.0)
    assert [offset for offset, _ in sim.views(w)[0]] == [(0, 0)]


@pytest.mark.ranks(2)
def test_a_view_has_the_points_of_its_rank() -> None:
    sim, u = filled()
    view = np.from_dlpack(sim.views[u])
    assert view.shape == sim[u].shape != u.points
    view += 1.0
    assert sim.evaluate(hc.sum(u)) == 30 * 29 / 2 + 30


def test_operators_with_assignment_change_a_field() -> None:
    sim, u = filled()
    expected = 2.0 * sim.gather(u)
    sim.views[u] *= 2.0
    assert np.array_equal(sim.gather(u), expected)
    with pytest.raises(InputError, match=r"views\[u\] cannot be set"):
        sim.views[u] = sim.views[u] * 2.0


def test_views_that_would_be_copies_are_rejected() -> None:
    sim, u = filled(subdomains_per_rank=2)
    with pytest.raises(InputError, match=r"has 2 subdomains on rank 0; .*or sim.views\(u\)"):
        sim.views[u]
    grid = hc.Grid((8, 8), active=[[True, True], [True, False]])
    u = grid.field("u", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.25, threads=1)
    with pytest.raises(InputError, match=r"inactive blocks.*sim\[u\]"):
        sim.views[u]
    with pytest.raises(InputError, match=r"Set the whole field by sim\[u\] = values"):
        sim.views[u] = 1.0


def test_views_in_opencl_memory_are_rejected(opencl: list[_native.Device]) -> None:
    sim, u = filled(device="opencl:0")
    with pytest.raises(InputError, match=r"is on device opencl:0, .*Use sim\[u\], which returns a copy"):
        sim.views[u]
    assert sim.views(u)[0][1].tolist() == sim[u].tolist()
