"""Arrays of other libraries as values of fields in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from array_libraries import library
from halocline.errors import InputError
from halocline.run.devices.arrays import DeviceArray, import_array
from halocline.run.fields.sources import is_external_array
from vector_problem import problem


class Exporter:
    """Array in memory of any kind, with the methods of DLPack."""

    def __init__(self, kind: int, array: Any = None) -> None:
        self.kind, self.array = kind, array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


class Interface:
    """Array with the CUDA array interface only."""

    def __init__(self, **facts: Any) -> None:
        self.__cuda_array_interface__ = {"shape": (4, 3), "typestr": "<f8", "data": (4096, False), **facts}


Interface.__cuda_array_interface__ = None  # type: ignore[attr-defined]


def test_arrays_of_numpy_are_not_external() -> None:
    assert not is_external_array(np.zeros(3))
    assert not is_external_array(np.float64(1.0))
    assert not is_external_array([1.0])
    assert is_external_array(Exporter(1))
    assert is_external_array(Interface())


def test_tensors_of_pytorch_set_fields() -> None:
    torch = library("torch")
    sim, u, w = problem()
    values = np.arange(48.0).reshape(8, 6)
    tensor = torch.tensor(values)
    for array in (tensor, tensor.to(torch.int32), torch.tensor(values.T.copy()).T, tensor.float()):
        sim[u] = 0.0
        sim[u] = array
        assert sim[u].tolist() == values.tolist()
    sim[u] = torch.tensor(2.5)
    assert sim[u].tolist() == np.full((8, 6), 2.5).tolist()
    sim[w] = torch.stack([tensor, -tensor])
    assert sim[w][1].tolist() == (-values).tolist()
    sim[w] = (tensor, 1.0)
    assert sim[w][0].tolist() == values.tolist()
    tensor[0, 0] = 7.0
    assert sim[w][0][0, 0] == 0.0  # fields have copies


def test_wrong_tensors_are_rejected_with_a_remedy() -> None:
    torch = library("torch")
    sim, u, w = problem()
    with pytest.raises(InputError, match=r"field 'u' is given a torch.Tensor .*gradient.*x.detach\(\)"):
        sim[u] = torch.zeros(8, 6, requires_grad=True)
    with pytest.raises(InputError, match=r"field 'u' is given a torch.Tensor that cannot be imported"):
        sim[u] = torch.zeros(8, 6, dtype=torch.bfloat16)
    with pytest.raises(InputError, match=r"dtype complex64; expected real numbers: take .real"):
        sim[u] = torch.zeros(8, 6, dtype=torch.complex64)
    with pytest.raises(
        InputError, match=r"has shape \(8, 6\), but the array given for it has shape \(6, 8\)"
    ):
        sim[u] = torch.zeros(6, 8)
    with pytest.raises(InputError, match="vector 'w' has 2 components; got an array of shape"):
        sim[w] = torch.zeros(3, 8, 6)


def test_arrays_of_jax_set_fields() -> None:
    jax = library("jax")
    sim, u, _ = problem()
    sim[u] = jax.numpy.arange(48.0).reshape(6, 8).T
    assert sim[u].tolist() == np.arange(48.0).reshape(6, 8).T.tolist()


def test_arrays_in_other_memory_are_rejected() -> None:
    sim, u, _ = problem()
    with pytest.raises(InputError, match=r"in memory of OPENCL; expected host or CUDA memory. Copy it"):
        sim[u] = Exporter(4)
    with pytest.raises(InputError, match=r"in memory of kind 99 of DLPack"):
        sim[u] = Exporter(99)
    with pytest.raises(InputError, match=r"field 'u' is in host memory, .* is in CUDA memory. .*x.cpu\(\)"):
        sim[u] = Exporter(2, np.zeros((8, 6)))
    sim[u] = Exporter(1, np.ones((8, 6)))
    assert sim[u].max() == 1.0


def test_facts_of_arrays_in_cuda_memory() -> None:
    array = np.arange(24.0).reshape(4, 6)[::-1, 1::2]
    result = import_array(Exporter(2, array), "given")
    assert isinstance(result, DeviceArray)
    assert (result.address, result.shape, result.strides) == (array.ctypes.data, (4, 3), (-6, 2))
    assert (result.dtype, result.itemsize, result.device) == ("float64", 8, 0)
    row = result[1]
    assert (row.address, row.shape, row.strides) == (array[1].ctypes.data, (3,), (2,))
    assert len(list(result)) == 4
    result = import_array(Interface(), "given")
    assert isinstance(result, DeviceArray)
    assert (result.address, result.strides, result.device) == (4096, (3, 1), None)
    result = import_array(Interface(strides=(-8, 32), typestr="<f4"), "given")
    assert isinstance(result, DeviceArray)
    assert (result.strides, result.dtype) == ((-2, 8), "float32")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"mask": object()}, "it has a mask"),
        ({"strides": (20, 8)}, "not multiples of 8 bytes"),
        ({"typestr": "?x"}, "cannot be imported"),
    ],
)
def test_invalid_interfaces_are_rejected(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        import_array(Interface(**facts), "field 'u' is given")
