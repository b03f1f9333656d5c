"""Fields in CUDA memory and arrays of other libraries, on the stand-in for the driver."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import cuda_standin
import halocline as hc
from halocline import _native as native
from halocline.errors import InputError
from halocline.run.devices.arrays import import_array
from halocline.run.fields.exports import DeviceView, ExportError
from loops import some

pytestmark = pytest.mark.ranks(1, alone="file")  # only the processes of these tests use the stand-in

VALUES = np.random.default_rng(5).normal(size=(6, 5, 7))


@pytest.fixture(scope="module")
def standin() -> ctypes.CDLL:
    if cuda_standin.real_devices():
        pytest.skip("the memory of a real device cannot be read here")
    return cuda_standin.load(2, memory=256 << 20, delay=200)


@pytest.fixture(autouse=True)
def _use_standin(standin: ctypes.CDLL) -> None: ...


def filled(device: str = "cuda:0", **options: Any) -> tuple[hc.Simulation, hc.Field]:
    """Return a simulation without steps, and its field with random values."""
    dtype = options.pop("dtype", "float64")
    grid = hc.Grid(VALUES.shape, periodic=True, dtype=dtype)
    u = grid.field("u")
    options = {"scheme": hc.Euler(), "dt": 1e-3, "device": device, **options}
    sim = hc.Simulation(grid, lambda u: {u: hc.laplacian(u)}, **options)
    sim[u] = VALUES.astype(dtype)
    return sim, u


class OnHost:
    """Array in memory of the stand-in, which NumPy can read as host memory."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


def read(capsule: Any) -> np.ndarray:
    """Return a copy of the elements of a capsule."""
    address, shape, strides, dtype, itemsize, owner = native.array_facts(capsule)
    size = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    data = (ctypes.c_char * (size * itemsize)).from_address(address)
    steps = [step * itemsize for step in strides]
    array = np.ndarray(shape, dtype, data, strides=steps).copy()
    assert owner is not None
    return array


class Interface:
    """Array with the CUDA array interface only, as a part of another array."""

    def __init__(self, view: Any, part: Any = ...) -> None:
        self.view = view
        facts = dict(view.__cuda_array_interface__)
        shaped = np.lib.stride_tricks.as_strided(np.empty(1), facts["shape"], facts["strides"])
        chosen = shaped[part] if not callable(part) else part(shaped)
        offset = chosen.__array_interface__["data"][0] - shaped.__array_interface__["data"][0]
        facts |= {
            "shape": chosen.shape,
            "strides": chosen.strides,
            "data": (facts["data"][0] + offset, False),
        }
        self.facts = facts

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.facts


# -- export ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("copy", [None, False, True])
def test_a_capsule_has_the_values_of_the_field(version: Any, copy: bool | None) -> None:
    sim, u = filled()
    view = sim.views[u]
    assert isinstance(view, DeviceView)
    assert (view.shape, view.ndim, view.dtype) == (VALUES.shape, 3, np.float64)
    assert view.__dlpack_device__() == (2, 0)
    capsule = view.__dlpack__(stream=2, max_version=version, dl_device=(2, 0), copy=copy)
    is_versioned = version is not None and version[0] >= 1
    assert ("dltensor_versioned" in repr(capsule)) == is_versioned
    _, _, strides, *_ = native.array_facts(capsule)
    assert (strides == [35, 7, 1]) == (copy is True)
    assert (read(view.__dlpack__(copy=copy)) == VALUES).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_interface_has_the_values_of_the_field(dtype: str) -> None:
    sim, u = filled(dtype=dtype)
    facts = sim.views[u].__cuda_array_interface__
    assert (facts["shape"], facts["typestr"]) == (VALUES.shape, np.dtype(dtype).str)
    assert (facts["version"], facts["stream"], facts["data"][1]) == (3, None, False)
    address, _, strides, *_ = native.array_facts(sim.views[u].__dlpack__())
    itemsize = np.dtype(dtype).itemsize
    assert facts["data"][0] == address
    assert facts["strides"] == tuple(step * itemsize for step in strides)


def test_a_copy_for_the_host_is_an_array_of_numpy() -> None:
    sim, u = filled()
    capsule = sim.views[u].__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert (np.from_dlpack(OnHost(capsule)) == VALUES).all()
    with pytest.raises(BufferError, match="without a copy"):
        sim.views[u].__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(InputError, match=r"NumPy cannot read this memory. Use sim\[u\]"):
        np.asarray(sim.views[u])


def test_invalid_requests_of_consumers_are_rejected() -> None:
    sim, u = filled()
    view = sim.views[u]
    for stream in some((0, -2, True, "1", 1.0)):
        with pytest.raises(InputError, match="expected None, 1 "):
            view.__dlpack__(stream=stream)
    for stream in some((None, -1, 1, 2, 12345678)):
        assert view.__dlpack__(stream=stream) is not None
    with pytest.raises(ExportError, match=r"device \(2, 1\) of DLPack; expected \(2, 0\)"):
        view.__dlpack__(dl_device=(2, 1))


def test_views_follow_the_field_and_arrays_keep_its_memory() -> None:
    sim, u = filled()
    view = sim.views[u]
    capsule = view.__dlpack__()
    first = {native.array_facts(view.__dlpack__())[0]}
    sim.step()
    assert (read(view.__dlpack__()) == np.array(sim[u])).all()
    addresses = first | {native.array_facts(view.__dlpack__())[0]}
    assert len(addresses) == 2  # the step has swapped the buffers
    expected = np.array(sim[u])
    last = view.__dlpack__()
    del sim
    gc.collect()
    assert (read(last) == expected).all()
    assert capsule is not None
    with pytest.raises(InputError, match=r"the simulation of <view of field 'u': .* no longer exists. Keep"):
        view.__dlpack__()
    with pytest.raises(InputError, match="no longer exists"):
        _ = view.__cuda_array_interface__


def test_memory_is_freed_with_the_last_array(standin: ctypes.CDLL) -> None:
    counts = (ctypes.c_size_t * 5)()

    def held() -> int:
        gc.collect()
        standin.halocline_standin_held(counts)
        return int(counts[0])

    sim, u = filled()
    sim.step()
    before = held()
    capsule, facts = sim.views[u].__dlpack__(), sim.views[u].__cuda_array_interface__
    assert facts
    assert held() == before
    del sim
    assert before > held() > 0
    remaining = held()
    del capsule
    assert held() == remaining - 1


def test_fields_in_several_subdomains_have_no_view() -> None:
    sim, u = filled("cuda:0,1")
    with pytest.raises(InputError, match="has 2 subdomains on rank 0; a view needs exactly 1"):
        sim.views[u]


def test_writes_of_another_library_are_read_by_the_next_step(standin: ctypes.CDLL) -> None:
    """The engine waits for the work of other streams before it uses an exported field."""
    standin.halocline_standin_calls.restype = ctypes.c_size_t

    def waits() -> int:
        return int(standin.halocline_standin_calls(b"cuCtxSynchronize"))

    sim, u = filled()
    expected, v = filled("cpu")
    before = waits()
    sim.step()
    expected.step()
    assert waits() == before  # no other library has memory of the field
    address, *_ = native.array_facts(sim.views[u].__dlpack__())
    ctypes.c_double.from_address(address).value = 3.0
    expected[v][0, 0, 0] = 3.0
    sim.step()
    expected.step()
    assert waits() > before
    assert (np.array(sim[u]) == expected[v]).all()
    ctypes.c_double.from_address(native.array_facts(sim.views[u].__dlpack__())[0]).value = np.nan
    with pytest.raises(InputError, match=r"field 'u' is nan at cell \(0, 0, 0\) before the run"):
        sim.step()


# -- import ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_round_trip_keeps_all_bits(dtype: str) -> None:
    sim, u = filled(dtype=dtype)
    special = np.array([np.nan, -0.0, np.inf, np.finfo(dtype).smallest_subnormal], dtype)
    values = np.array(sim[u])
    values[0, 0, :4] = special
    sim[u] = values
    for array in some((sim.views[u], Interface(sim.views[u]), sim.views[u].copy())):
        other, v = filled(dtype=dtype)
        other[v] = array
        assert np.array(other[v]).tobytes() == values.tobytes()


PARTS = {
    "reversed": np.s_[::-1, :, ::-1],
    "transposed": lambda array: array.transpose(2, 1, 0),
    "broadcast": lambda array: np.broadcast_to(array[:1, :, 2:3], array.shape),
    "part": np.s_[1:5, ::2, 1:],
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_arrays_with_any_strides_set_fields(part: str, device: str) -> None:
    sim, u = filled()
    chosen = PARTS[part]
    expected = chosen(VALUES) if callable(chosen) else VALUES[chosen]
    grid = hc.Grid(expected.shape, periodic=True)
    v = grid.field("v")
    other = hc.Simulation(grid, lambda v: {v: -v}, scheme=hc.Euler(), dt=0.5, device=device)
    if device == "cpu":
        with pytest.raises(InputError, match="is in host memory"):
            other[v] = Interface(sim.views[u], chosen)
        return
    other[v] = Interface(sim.views[u], chosen)
    assert (np.array(other[v]) == expected).all()


def test_a_field_is_set_to_a_part_of_itself() -> None:
    sim, u = filled()
    sim[u] = Interface(sim.views[u], np.s_[::-1, ::-1, ::-1])
    assert (np.array(sim[u]) == VALUES[::-1, ::-1, ::-1]).all()


def test_arrays_set_vectors() -> None:
    grid = hc.Grid((4, 5), periodic=True)
    w = grid.vector("w")
    sim = hc.Simulation(grid, lambda w: {w: -w}, scheme=hc.Euler(), dt=0.5, device="cuda:0")
    source_grid = hc.Grid((2, 4, 5), periodic=True)
    u = source_grid.field("u")
    source = hc.Simulation(source_grid, lambda u: {u: -u}, scheme=hc.Euler(), dt=0.5, device="cuda:0")
    source[u] = values = np.arange(40.0).reshape(2, 4, 5)
    sim[w] = source.views[u]
    assert (sim.gather(w) == values).all()


def test_wrong_arrays_are_rejected_with_a_remedy() -> None:
    sim, u = filled()
    single, v = filled(dtype="float32")
    with pytest.raises(InputError, match=r"'u' is float64, but .* is float32. Convert the array to float64"):
        sim[u] = single.views[v]
    with pytest.raises(InputError, match=r"has shape \(6, 5, 7\), but .* has shape \(3, 5, 7\)"):
        sim[u] = Interface(sim.views[u], np.s_[::2])
    second, v = filled("cuda:1")
    assert second.views[v].__dlpack_device__() == (2, 1)
    for array in some((second.views[v], Interface(second.views[v]))):
        with pytest.raises(
            InputError, match=r"is in memory of device cuda:1. Copy the array to device cuda:0"
        ):
            sim[u] = array
    pair, v = filled("cuda:0,1")
    with pytest.raises(InputError, match=r"is on device cuda:1 .* in memory of device cuda:0"):
        pair[v] = sim.views[u]
    stray = Interface(sim.views[u])
    stray.facts["data"] = (64, False)
    with pytest.raises(InputError, match="is in other memory"):
        sim[u] = stray
    assert (np.array(sim[u]) == VALUES).all()


def test_arrays_set_the_subdomains_of_one_device() -> None:
    sim, u = filled()
    other, v = filled(subdomains_per_rank=2)
    other[v] = 0.0
    other[v] = sim.views[u]
    assert (other.gather(v) == VALUES).all()


def test_imports_state_the_owner() -> None:
    sim, u = filled()
    array = import_array(sim.views[u], "given")
    assert array.device == 0  # type: ignore[union-attr]
    assert native.devices("cuda")[1].owner_of(array.address) == 0  # type: ignore[union-attr]
    assert native.devices("cuda")[0].owner_of(8) == -1


def test_native_copies_check_their_arguments() -> None:
    from halocline.run.devices.devices import copier

    device = native.devices("cuda")[0]
    storage = native.DeviceStorage(device, (2, 3, 4), (0, 0, 0), (0, 0, 0), 8)
    with pytest.raises(ValueError, match=r"box .* is not within storage"):
        native.assign_from_device(storage, copier(device), (0, 0, 0), (3, 3, 4), 8, (12, 4, 1))
    native.assign_from_device(storage, copier(device), (1, 1, 1), (1, 3, 4), 8, (12, 4, 1))  # no cells
    with pytest.raises(ValueError, match="1 to 3 axes"):
        native.device_view(storage, 4)
    with pytest.raises(TypeError):
        native.array_facts(object())
    with pytest.raises(ValueError, match="PyCapsule"):
        native.mark_copied(native.device_view(storage, 3).__dlpack__())
