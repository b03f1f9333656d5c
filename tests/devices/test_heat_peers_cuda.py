"""Hand-written kernels of benchmarks/gpu_heat.py on the CUDA devices of this machine, or on a stand-in.

The stand-in for the driver runs the kernels on the host. It has neither cp.async nor TMA, so that plain loops
replace these instructions. The order of the copies, the slots and the indices are those of a device.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import cuda_standin
from halocline import _native as native
from loops import some

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import gpu
import gpu_heat
import heat_device
import heat_reference
from cuda_launch import CudaError

from suites import cases

pytestmark = pytest.mark.ranks(1, alone="file")  # only the process of these tests uses the stand-in

ALL = -1

# Takes the place of heat_python.py. Here, JAX takes 0.1 ms per step on 32^3 cells, and torch fails.
LIBRARIES = """
import json, sys
if len(sys.argv) == 1:
    print(json.dumps({"jax": "1.2", "torch": "3.4"}))
elif sys.argv[1] == "torch":
    sys.exit("torch: no device")
else:
    assert sys.argv[2:5] == ["32", "2", "float64"], sys.argv
    print("ready", flush=True)
    for _ in sys.stdin:
        print(32**3 / 1e-4 / 1e6, flush=True)
"""


@pytest.fixture(scope="module")
def cuda() -> native.Device:
    """Return a CUDA device; with the stand-in, plain loops replace cp.async and TMA."""
    if not cuda_standin.real_devices():
        cuda_standin.load(1, memory=512 << 20, shared=256 << 10)
        heat_device.PLAIN_COPIES = True
    (first, *_) = native.devices("cuda")
    return first


def shapes_of(variant: str, number: int) -> list[heat_device.Shape]:
    """Return all shapes of a variant, or one of them."""
    shapes = heat_device.VARIANTS[variant].shapes
    return list(shapes) if number == ALL else [shapes[number % len(shapes)]]


CASES = [(2, 40, "float64"), (2, 40, "float32"), (6, 33, "float64"), (6, 33, "float32")]


@cases(
    "number, order, n, dtype",
    [*((number, *case) for number, case in enumerate(CASES[1:3])), *((ALL, *case) for case in CASES)],
    lambda case: case[0] == 0,
)
def test_variants_agree_with_numpy(cuda: native.Device, number: int, order: int, n: int, dtype: str) -> None:
    """Sizes are no multiples of tiles, and several thread blocks stream along the slowest axis."""
    heat = heat_device.HandWritten(cuda.index, cuda.architecture, n, order, dtype)
    cells = np.random.default_rng(order).random((n, n, n)).astype(dtype)
    expected = cells.astype("float64")
    for _ in range(3):
        expected = heat_reference.step(expected, order)
    for variant in some(heat_device.VARIANTS):
        if heat_device.why_not(variant, cuda.architecture):
            continue
        for shape in some(shapes_of(variant, number)):
            shape = dataclasses.replace(shape, streamed=1 if variant == "naive" else 16)
            program = dataclasses.replace(heat.naive.program, variant=variant, shape=shape)
            loaded = heat.load(program)
            assert heat.differences(loaded) == 0, program
            heat.set(cells)
            assert heat.run(loaded, 3) > 0
            error = np.abs(heat.get() - expected).max()
            assert error <= 3 * heat_reference.tolerance(dtype), (program, error)


def test_different_cells_are_counted(cuda: native.Device) -> None:
    heat = heat_device.HandWritten(cuda.index, cuda.architecture, 16, 2, "float64")
    loaded = heat.load(heat.naive.program)
    assert heat.differences(loaded) == 0
    loaded.factor = type(loaded.factor)(0.5)
    assert heat.differences(loaded) == 16**3
    assert heat.run_fill(2) > 0


def test_only_the_halo_of_the_sides_is_read(cuda: native.Device) -> None:
    """All other numbers around the cells are NaN."""
    heat = heat_device.HandWritten(cuda.index, cuda.architecture, 16, 6, "float64")
    heat.set(np.ones((16, 16, 16)))
    heat.run(heat.naive, 2)
    np.testing.assert_allclose(heat.get(), 1, rtol=1e-14)


def test_a_wrong_kernel_ends_the_benchmark(cuda: native.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    heat = heat_device.HandWritten(cuda.index, cuda.architecture, 16, 2, "float64")
    monkeypatch.setattr(heat, "differences", lambda loaded: 3)
    with pytest.raises(SystemExit, match="queue, 64x4 threads, 16 planes: 3 cells differ from the naive"):
        heat.best("queue")


def test_too_much_shared_memory_is_reported(cuda: native.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    heat = heat_device.HandWritten(cuda.index, cuda.architecture, 16, 2, "float64")
    monkeypatch.setattr(heat.driver, "shared_bytes", lambda: 1024)
    with pytest.raises(CudaError, match=r"cp.async does not run: .* bytes of shared memory, of 1024"):
        heat.best("cp.async")


def test_the_benchmark_prints_and_records_the_variants(
    cuda: native.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, variant in list(heat_device.VARIANTS.items()):
        monkeypatch.setitem(
            heat_device.VARIANTS, name, dataclasses.replace(variant, shapes=variant.shapes[:1])
        )
    monkeypatch.setattr(gpu, "PASSES", 0.001)  # seconds
    libraries = tmp_path / "libraries.py"
    libraries.write_text(LIBRARIES)
    monkeypatch.setattr(gpu_heat, "LIBRARIES", libraries)
    record = tmp_path / "record.json"
    options = ["--n", "32", "--orders", "2", "--dtypes", "float64", "--passes", "2", "--repeats", "2"]
    options += ["--copy", "4", "--json", str(record)]
    monkeypatch.setattr(sys, "argv", ["gpu_heat.py", "--device", f"cuda:{cuda.index}", *options])
    gpu_heat.main()
    text = capsys.readouterr().out
    content = json.loads(record.read_text())
    (row,) = content["rows"]
    assert content["libraries"] == {"jax": "1.2", "torch": "3.4"}
    can_run = [name for name in heat_device.VARIANTS if not heat_device.why_not(name, cuda.architecture)]
    assert list(row["peers"]) == [*can_run, gpu_heat.FILL, "jax"]
    assert row["peers"]["jax"]["ms"] == pytest.approx(0.1)
    assert "cupy: not installed\n" in text
    assert "torch: does not run, see the message above\n" in text
    for name in some(can_run):
        peer = row["peers"][name]
        assert peer["ms"] > 0
        assert peer["ratio"] > 0
        assert f"({peer['shape']})" in text
        assert f"  {name:9} {peer['ms']:8.3f} ms" in text
