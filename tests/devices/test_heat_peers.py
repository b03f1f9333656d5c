"""Programs that benchmarks/gpu_heat.py compares with Halocline, as far as they need no device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from halocline.compile import nvrtc
from hang import HANG
from loops import some
from suites import cases

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import cuda_launch  # noqa: E402
import gpu_heat  # noqa: E402
import heat_device  # noqa: E402
import heat_python  # noqa: E402
import heat_reference  # noqa: E402

ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
CASES = [
    (variant, architecture)
    for variant in heat_device.VARIANTS
    for architecture in ARCHITECTURES
    if not heat_device.why_not(variant, architecture)
]
TUNED = {("naive", 2), ("queue", 3), ("cp.async", 3), ("tma", 3)}  # variants and their numbers of shapes


def device(interface: str, architecture: str) -> Any:
    """Return a device of some interface and architecture."""
    return SimpleNamespace(interface=interface, architecture=architecture)


# -- hand-written kernels ----------------------------------------------------------------------------


def test_every_variant_has_cases() -> None:
    assert {variant for variant, _ in CASES} == set(heat_device.VARIANTS)
    assert {(name, len(variant.shapes)) for name, variant in heat_device.VARIANTS.items()} == TUNED
    assert ("cp.async", "sm_70") not in CASES
    assert ("tma", "sm_80") not in CASES


@cases("dtype", ["float64", "float32"], default=["float64"])
@cases(
    "variant, architecture",
    CASES,
    default=[("naive", "sm_70"), ("queue", "sm_80"), ("cp.async", "sm_80"), ("tma", "sm_90")],
)
def test_kernels_compile_without_spills(variant: str, architecture: str, dtype: str) -> None:
    for order in (2, 6):
        for program in some(heat_device.programs(variant, 512, order, dtype)):
            resources = nvrtc.resources(nvrtc.compile_cuda(program.source, architecture))["heat_step"]
            assert (resources.spilled, resources.stack) == (0, 0), program
            assert resources.registers * np.prod(program.shape.threads) <= 65536, program
            assert resources.shared <= heat_device.STATIC_BYTES, program
            # dynamic shared memory is not part of the code
            assert (resources.shared >= program.shared) == (not program.dynamic or program.shared == 0)
            assert program.shared <= 163 * 1024, program  # of sm_80


def test_the_instructions_are_those_of_the_variant() -> None:
    options = ["--gpu-architecture=compute_90", *nvrtc.OPTIONS]
    for variant, instruction in (("cp.async", b"cp.async.cg.shared"), ("tma", b"cp.async.bulk.tensor.3d")):
        (program, *_) = heat_device.programs(variant, 512, 6, "float64")
        code, error, log = nvrtc.find_nvrtc().compile(program.source, "heat.cu", options)
        assert error == "", log
        assert instruction in code
        assert b"fma.rn.f64" in code
    assert program.shared == 6 * (64 + 2 * 4) * (8 + 2 * 3) * 8  # six slots


def test_variants_name_the_architecture_that_they_need() -> None:
    assert heat_device.why_not("naive", "sm_70") == ""
    assert heat_device.why_not("cp.async", "sm_70") == "needs sm_80 or newer, not sm_70"
    assert heat_device.why_not("tma", "sm_100") == ""


def test_a_missing_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_launch, "LIBRARY", "libnone.so.1")
    with pytest.raises(cuda_launch.CudaError, match=r"no CUDA driver: libnone\.so\.1"):
        cuda_launch.Driver(0)


def test_words_are_aligned() -> None:
    words = cuda_launch.aligned_words(16, 64)
    assert cuda_launch.ctypes.addressof(words) % 64 == 0
    assert list(words) == [0] * 16


# -- the stencil -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_weights_differentiate_polynomials(order: int) -> None:
    weights = heat_reference.weights(order)
    for power in range(2, order + 1, 2):
        derivative = sum(2 * weight * r**power for r, weight in enumerate(weights, 1))
        assert derivative == pytest.approx(2 if power == 2 else 0, abs=1e-12)
    assert heat_reference.centre(order) == pytest.approx(-6 * sum(weights))


def test_a_step_of_the_reference_damps_a_wave() -> None:
    n = 32
    x = 2 * np.pi * np.arange(n) / n
    wave = np.sin(x)[:, None, None] * np.sin(x)[:, None] * np.sin(x)
    damping = 1 - heat_reference.FACTOR * 3 * (2 * np.pi / n) ** 2
    np.testing.assert_allclose(heat_reference.step(wave, 8), damping * wave, atol=1e-12)


# -- libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 6])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["torch", "jax", "triton"])
def test_libraries_agree_with_numpy(name: str, dtype: str, order: int) -> None:
    for module in heat_python.NEEDED[name]:
        pytest.importorskip(module)
    command = [sys.executable, str(BENCHMARKS / "heat_python.py"), name, "16", str(order), dtype, "cpu"]
    done = subprocess.run(command, input="\n", capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    ready, speed = done.stdout.split()
    assert ready == "ready"
    assert float(speed) > 0


def test_a_halo_is_filled_on_all_sides() -> None:
    n, radius = 5, 2
    cells = np.arange(n**3, dtype=float).reshape(n, n, n)
    field = heat_python.padded(cells, radius)
    for halo, source in some(heat_python.halo_copies(n, radius)):
        field[halo] = field[source]
    expected = np.pad(cells, radius, mode="wrap")
    sides = np.isfinite(field)
    assert sides.sum() == n**3 + 6 * radius * n**2  # no edges, no corners
    np.testing.assert_array_equal(field[sides], expected[sides])
    cell, *neighbours = heat_python.views(field, n, radius)
    np.testing.assert_array_equal(cell, cells)
    shifts = [(axis, shift) for r in (1, 2) for axis in range(3) for shift in (r, -r)]
    for view, (axis, shift) in zip(neighbours, shifts, strict=True):
        np.testing.assert_array_equal(view, np.roll(cells, shift, axis))


def test_a_library_that_fails_ends_with_one_line() -> None:
    command = [sys.executable, str(BENCHMARKS / "heat_python.py"), "cupy", "16", "2", "float64", "cuda:97"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("cupy, float64, order 2: ")


# -- the options -------------------------------------------------------------------------------------


def test_programs_are_selected_by_name() -> None:
    assert gpu_heat.selected("none") == []
    assert gpu_heat.selected("all") == ["naive", "queue", "cp.async", "tma", "triton", "cupy", "torch", "jax"]
    assert gpu_heat.selected("jax,naive") == ["naive", "jax"]
    with pytest.raises(SystemExit, match=r"--peers naive,numba: 'numba' is not known\. Select all,"):
        gpu_heat.selected("naive,numba")


def test_missing_programs_have_reasons() -> None:
    names = gpu_heat.selected("all")
    installed = {"jax": "0.7", "torch": "2.9"}
    assert gpu_heat.missing(names, device("cuda", "sm_80"), installed) == {
        "tma": "needs sm_90 or newer, not sm_80",
        "triton": "not installed",
        "cupy": "not installed",
    }
    reasons = gpu_heat.missing(names, device("opencl", ""), installed)
    assert reasons == dict.fromkeys(names, "needs a CUDA device, not opencl")


def test_versions_are_those_of_installed_libraries() -> None:
    versions = gpu_heat.library_versions(sys.executable)
    assert set(versions) <= set(heat_python.SOLVERS)
    with pytest.raises(SystemExit, match="--peer-python /nowhere/python"):
        gpu_heat.library_versions("/nowhere/python")
