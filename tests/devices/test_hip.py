"""Clang compiles kernels as HIP for AMD GPUs, with the rounding of the host. No test runs this code.

The GPUs have wavefronts of 64 threads (gfx90a) and of 32 threads (gfx1100).
"""

from __future__ import annotations

import itertools
import subprocess
from typing import Any

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import Strategy
from halocline.compile.targets.source import HIP_OPTIONS, device_headers
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from hip_kernels import (
    ARCHITECTURES,
    DEVICE_ONLY,
    OLDEST,
    Code,
    Resources,
    check,
    check_rounding,
    compile_hip,
    compiler,
    expansions,
    resources,
    unwritten_fused,
)
from nvrtc_kernels import LITERALS
from suites import cases

architectures = pytest.mark.parametrize("architecture", ARCHITECTURES)

# Heat with stencils of two widths, fields with many derivatives, and conjugate gradients with reductions.
NAMES = ["heat-euler-2-3", "heat-rk3-6-3", "case-mhd-benchmark", "poisson-cg-fused-3", "gray_scott-float32"]

KERNELS = """
HC_KERNEL scale(HC_GLOBAL double* x, double a, double b) {
  const hc_int64 i = hc_block(0) * hc_block_size(0) + hc_thread(0);
  x[i] = x[i] * a + b;
}
HC_KERNEL fused(HC_GLOBAL double* x, double a, double b) { x[0] = hc_fma(x[0], a, b) / b; }
HC_KERNEL_FIXED_BLOCK(16, 4, 1) mirror(HC_GLOBAL float* x) {
  HC_SHARED float row[64];
  const hc_int64 n = hc_thread_number();
  row[n] = x[n];
  HC_BARRIER();
  x[n] = row[63 - n] * row[n] + x[n];
}
"""


def small_code(architecture: str, *options: str) -> Code:
    return compile_hip(device_headers() + KERNELS, architecture, *options)


# the extended test suite compiles all programs for both architectures
@cases(
    "name, architecture",
    itertools.product(NAMES, ARCHITECTURES),
    lambda case: case[0].startswith("heat") or case == ("poisson-cg-fused-3", "gfx1100"),
)
def test_programs_compile_for_amd_gpus(name: str, architecture: str, record_property: Any) -> None:
    check(name, ["default", LITERALS], architecture, record_property)


@architectures
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_random_numbers_and_tables_compile_for_amd_gpus(dtype: str, architecture: str) -> None:
    grid = hc.Grid((20, 20, 20), periodic=True, dtype=dtype)
    u, v = grid.field("u"), grid.field("v")
    program = Program("functions")
    with tracing(program):
        noise = hc.random(1, 2, grid.cell_number())
        v.set(hc.sin(u) * hc.exp(u) + hc.log(hc.sqrt(u)) ** noise + hc.lookup([1.0, 2.5, 3.0], u))
        program.scalar("total").set(hc.sum(u * v) + hc.max(v))
    device = compile_program(program, grid, device=Strategy()).device
    assert device is not None
    for name in ("hc_sin", "hc_exp", "hc_log", "hc_pow", "hc_random", "hc_entry", "hc_block_reduce"):
        assert f"{name}(" in device.source
    check_rounding(compile_hip(device.source, architecture), architecture)


# -- the checks --------------------------------------------------------------------------------------


@architectures
def test_contracted_operations_are_found(architecture: str) -> None:
    check_rounding(small_code(architecture), architecture)
    contracted = small_code(architecture, "-ffp-contract=fast")
    assert unwritten_fused(contracted, architecture) == {"scale": 1, "mirror": 1}
    # the pragma of the header suffices without the option, which HIP sets to fast-honor-pragmas
    check_rounding(small_code(architecture, "-ffp-contract=fast-honor-pragmas"), architecture)


@pytest.mark.parametrize(
    "option", ["-ffast-math", "-fno-hip-fp32-correctly-rounded-divide-sqrt", "-fgpu-flush-denormals-to-zero"]
)
def test_other_arithmetic_is_found(option: str) -> None:
    source = (
        device_headers() + "HC_KERNEL divide(HC_GLOBAL float* x) { x[0] = x[1] / x[2] + hc_sqrtf(x[3]); }\n"
    )
    check_rounding(compile_hip(source, "gfx90a"), "gfx90a")
    with pytest.raises(AssertionError):
        check_rounding(compile_hip(source, "gfx90a", option), "gfx90a")


@architectures
def test_divisions_and_roots_are_more_than_the_approximate_instruction(architecture: str) -> None:
    fused = expansions(architecture)
    for kind in ("double", "float"):
        assert fused[f"divide_{kind}"] >= 2
        assert fused[f"root_{kind}"] >= 2


@architectures
def test_resources_are_read_from_the_metadata(architecture: str) -> None:
    result = resources(small_code(architecture))
    assert result.keys() == {"scale", "fused", "mirror"}
    registers = result["mirror"].registers
    assert result["mirror"] == Resources(registers, 0, 64 * 4, ARCHITECTURES[architecture])
    assert 0 < registers <= 32


def test_an_old_compiler_is_rejected(tmp_path: Any) -> None:
    """Compilers before Clang 18 use the approximate instruction for square roots."""
    source = tmp_path / "kernels.hip"
    source.write_text(device_headers())
    command = [compiler(), *DEVICE_ONLY, *HIP_OPTIONS]
    command += ["-Wno-builtin-macro-redefined", f"-D__clang_major__={OLDEST - 1}", "-fsyntax-only"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode != 0
    assert "do not round square roots correctly; use LLVM 18" in done.stderr
