"""NVRTC compiles kernels without a device."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from halocline import _native as native
from halocline.compile import nvrtc
from halocline.errors import CompileError
from hang import HANG

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) scale(double *x, double a, double b, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * a + b;
}

// more values at once than a thread of so large a block has registers for
extern "C" __global__ void __launch_bounds__(1024) crowded(double *x, int k) {
  __shared__ double shared[64];
  double t[100];
  for (int i = 0; i < 100; i++) t[i] = x[i * k];
  shared[threadIdx.x & 63] = t[k];
  __syncthreads();
  double q = 0;
  for (int i = 0; i < 100; i++) for (int j = 0; j < 100; j += 3) q += t[i] * t[j];
  x[0] = q + shared[k];
}
"""


def machine(code: bytes) -> tuple[bytes, int]:
    """Return the first bytes of an ELF file and its machine number."""
    return code[:4], struct.unpack_from("<H", code, 18)[0]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# sm_70 is the oldest supported architecture; NVRTC 12.9 is the last version that compiles for it
@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_90"])
def test_kernels_become_cubins_whose_resources_are_known(architecture):
    code = nvrtc.compile_cuda(SOURCE, architecture)
    assert code.suffix == ".cubin"
    assert machine(code.read_bytes()) == (b"\x7fELF", 190)  # EM_CUDA
    assert b"scale" in code.read_bytes()
    resources = nvrtc.resources(code)
    assert set(resources) == {"scale", "crowded"}
    assert 8 <= resources["scale"].registers <= 64
    scale = resources["scale"]
    assert scale == nvrtc.Resources(scale.instructions, scale.registers, 0, 0, 0)
    assert 8 <= scale.instructions < resources["crowded"].instructions
    assert resources["crowded"].registers <= 64  # of 65536 for 1024 threads
    assert resources["crowded"].stack >= 800
    assert resources["crowded"].shared == 512


def test_spilled_registers_are_reported():
    assert nvrtc.resources(nvrtc.compile_cuda(SOURCE, "sm_70"))["crowded"].spilled > 0


def test_multiply_adds_are_not_contracted():
    compiler = nvrtc.find_nvrtc()
    options = ["--gpu-architecture=compute_80", *nvrtc.OPTIONS]
    code, error, _ = compiler.compile(SOURCE, "scale.cu", options)
    assert error == ""
    assert b"mul.rn.f64" in code
    assert b"fma" not in code
    contracted, _, _ = compiler.compile(SOURCE, "scale.cu", ["--gpu-architecture=compute_80"])
    assert b"fma.rn.f64" in contracted  # otherwise this test proves nothing


def test_compiled_code_is_cached(cache):
    first = nvrtc.compile_cuda(SOURCE, "sm_80")
    before = {file: file.stat().st_mtime_ns for file in cache.iterdir()}
    assert nvrtc.compile_cuda(SOURCE, "sm_80") == first
    assert {file: file.stat().st_mtime_ns for file in cache.iterdir()} == before
    assert sorted(file.suffix for file in before) == [".cu", ".cubin", ".log", ".sha256"]
    assert first.with_suffix(".cu").read_text() == SOURCE
    assert nvrtc.compile_cuda(SOURCE, "sm_90") != first
    assert nvrtc.compile_cuda(SOURCE + "\n", "sm_80") != first


def test_a_newer_device_gets_ptx_of_the_newest_known():
    newest = max(nvrtc.find_nvrtc().architectures)
    code = nvrtc.compile_cuda(SOURCE, "sm_990")
    assert code.suffix == ".ptx"
    assert f".target sm_{newest}" in code.read_text()
    assert nvrtc.resources(code.with_name("other.ptx")) == {}


def test_a_too_old_device_is_reported():
    with pytest.raises(CompileError, match=r"NVRTC [\d.]+ does not compile for sm_20. Its oldest"):
        nvrtc.compile_cuda(SOURCE, "sm_20")


def test_an_invalid_architecture_is_rejected():
    with pytest.raises(
        CompileError,
        match="architecture 'gfx90a' is not valid; expected an architecture of a CUDA device",
    ):
        nvrtc.compile_cuda(SOURCE, "gfx90a")


def test_rejected_source_is_kept_and_its_log_shown(cache):
    wrong = 'extern "C" __global__ void wrong(double *x) { x[0] = nothing; }'
    with pytest.raises(CompileError, match='identifier "nothing" is undefined') as raised:
        nvrtc.compile_cuda(wrong, "sm_80")
    (source_file,) = cache.glob("*.failed.cu")
    assert str(source_file) in str(raised.value)
    assert source_file.read_text() == wrong
    assert [file for file in cache.iterdir() if file != source_file] == []


def test_an_unwritable_cache_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path / "file"))
    with pytest.raises(CompileError, match="HALOCLINE_CACHE"):
        nvrtc.compile_cuda(SOURCE, "sm_80")


def test_a_missing_nvrtc_is_reported_with_the_package(monkeypatch):
    monkeypatch.setenv("HALOCLINE_NVRTC", "/nowhere/libnvrtc.so.12")
    with pytest.raises(CompileError, match=r"/nowhere/libnvrtc\.so\.12.*nvidia-cuda-nvrtc-cu12"):
        nvrtc.compile_cuda(SOURCE, "sm_80")


def test_an_invalid_nvrtc_library_is_reported(monkeypatch):
    monkeypatch.setenv("HALOCLINE_NVRTC", "libm.so.6")
    with pytest.raises(CompileError, match=r"libm\.so\.6 lacks nvrtcVersion"):
        nvrtc.compile_cuda(SOURCE, "sm_80")


def test_nvrtc_is_loaded_only_on_demand():
    code = "import halocline, os; assert 'nvrtc' not in open(f'/proc/{os.getpid()}/maps').read()"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ), timeout=HANG)


def test_an_invalid_path_of_nvrtc_is_reported():
    with pytest.raises(RuntimeError, match="NVRTC cannot be loaded: /nowhere"):
        native.Nvrtc("/nowhere", [])


def test_truncated_code_is_compiled_again(cache, caplog):
    code = nvrtc.compile_cuda(SOURCE, "sm_80")
    whole = code.read_bytes()
    code.write_bytes(whole[: len(whole) // 2])
    assert nvrtc.compile_cuda(SOURCE, "sm_80") == code
    assert code.read_bytes() == whole
    assert f"{code} in the cache was invalid and has been rebuilt" in caplog.text
