"""Kernels of programs, compiled as HIP for AMD GPUs.

Clang needs neither a GPU nor the headers and libraries of ROCm. No test runs this code.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from halocline.compile.targets.source import HIP_OPTIONS, device_headers
from hang import HANG
from nvrtc_kernels import each_source

OLDEST = 18  # see native/include/halocline/device.h
COMPILERS = (
    "/opt/rocm/llvm/bin/clang",
    "clang",
    *(f"clang-{version}" for version in range(25, OLDEST - 1, -1)),
)
ARCHITECTURES = {"gfx90a": 64, "gfx1100": 32}  # threads of a wavefront
DEVICE_ONLY = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib")
STRICT = ("-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable")


@functools.cache
def find_compiler() -> str | None:
    """Return the path of the first Clang that compiles HIP with correctly rounded square roots, or None."""
    for name in COMPILERS:
        path = shutil.which(name)
        if path is None:
            continue
        command = [path, *DEVICE_ONLY, "--offload-arch=gfx1100"]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "empty.hip")
            source.write_text(f"static_assert(__clang_major__ >= {OLDEST});\n")
            command += ["-S", "-o", os.devnull, str(source)]
            if subprocess.run(command, capture_output=True, timeout=HANG).returncode == 0:
                return path
    return None


def compiler() -> str:
    """Return the path of the compiler. Without one, skip, or fail if HALOCLINE_TEST_HIP is "required"."""
    path = find_compiler()
    if path is not None:
        return path
    reason = f"no Clang {OLDEST} or newer compiles for AMD GPUs (Debian: clang-19)"
    if os.environ.get("HALOCLINE_TEST_HIP") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Code:
    """Code of the kernels of a source.

    Attributes
    ----------
    assembly : str
        Assembly of the GPU, with metadata.
    ir : str
        Optimised LLVM IR, from which the compiler generates the assembly.
    """

    assembly: str
    ir: str


def compile_hip(source: str, architecture: str, *options: str) -> Code:
    """Return the code of a source, compiled as HIP without warnings; later options override earlier ones."""
    command = [compiler(), *DEVICE_ONLY, f"--offload-arch={architecture}", "-O3", *HIP_OPTIONS, *STRICT]
    command += [*options, "-S"]
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "kernels.hip"), Path(folder, "out")
        path.write_text(source)
        for kind in ([], ["-emit-llvm"]):
            full_command = [*command, *kind, "-o", str(out), str(path)]
            done = subprocess.run(full_command, capture_output=True, text=True, timeout=HANG)
            assert done.returncode == 0, done.stderr[:5000]
            texts.append(out.read_text())
    return Code(*texts)


# -- fused multiply-adds -----------------------------------------------------------------------------

# Fused multiply-adds of the assembly. A packed operation is two, and `fmamk` and `fmaak` have a literal.
_FUSED = re.compile(
    r"\bv_(?:dual_|pk_)?(?:fma|fmac|fmamk|fmaak|mad|mac|madmk|madak|fma_mix\w*)_f(?:16|32|64)"
)
# Integer division begins with an approximate quotient in float32, for which the compiler multiplies by 2^32.
_OF_INTEGER_DIVISION = re.compile(r"\b0x[4c]f800000\b")
# Operations of the IR that a GPU computes by fused multiply-adds, by the kernels of _EXPANDED. Their vectors
# have two elements.
_ROUNDED = {
    "divide_double": r"= fdiv (<2 x )?double",
    "divide_float": r"= fdiv (<2 x )?float",
    "root_double": r"@llvm\.sqrt\.(v2)?f64\(",
    "root_float": r"@llvm\.sqrt\.(v2)?f32\(",
    "signed_double": r"= fptosi (<2 x )?double .* to (?:<2 x )?i64",
    "unsigned_double": r"= fptoui (<2 x )?double .* to (?:<2 x )?i64",
}
_WRITTEN = r"@llvm\.fma\.(v2)?f(?:32|64)\("
_EXPANDED = """
HC_KERNEL divide_double(HC_GLOBAL double* x) { x[0] = x[1] / x[2]; }
HC_KERNEL divide_float(HC_GLOBAL float* x) { x[0] = x[1] / x[2]; }
HC_KERNEL root_double(HC_GLOBAL double* x) { x[0] = hc_sqrt(x[1]); }
HC_KERNEL root_float(HC_GLOBAL float* x) { x[0] = hc_sqrtf(x[1]); }
HC_KERNEL signed_double(HC_GLOBAL const double* x, HC_GLOBAL hc_int64* n) { n[0] = (hc_int64)x[0]; }
HC_KERNEL unsigned_double(HC_GLOBAL const double* x, HC_GLOBAL hc_uint64* n) { n[0] = (hc_uint64)x[0]; }
"""


def _bodies(code: Code) -> dict[str, tuple[str, str]]:
    """Return the assembly and the IR of each function."""
    assembly = dict(re.findall(r"^(\w+):\s+; @\1\n(.*?)^\.Lfunc_end", code.assembly, re.M | re.S))
    ir = dict(re.findall(r"^define [^\n]*?@(\w+)\([^\n]*\n(.*?)^}", code.ir, re.M | re.S))
    assert assembly.keys() == ir.keys()
    return {name: (assembly[name], ir[name]) for name in ir}


def fused_instructions(assembly: str) -> int:
    """Return the number of fused multiply-adds in an assembly, except those of integer division."""
    count = 0
    for instruction in re.split(r"\n|::", assembly):  # GPUs with wavefronts of 32 may issue two at a time
        if (match := _FUSED.search(instruction)) and not _OF_INTEGER_DIVISION.search(instruction):
            count += 2 if match[0].startswith("v_pk_") else 1
    return count


@functools.cache
def expansions(architecture: str) -> dict[str, int]:
    """Return the number of fused multiply-adds by which a GPU computes one rounded operation."""
    bodies = _bodies(compile_hip(device_headers() + _EXPANDED, architecture))
    return {name: fused_instructions(bodies[name][0]) for name in _ROUNDED}


def _operations(pattern: str, ir: str) -> int:
    """Return the number of operations in the IR. The first group of the pattern matches in vectors of two."""
    return sum(2 if vector else 1 for vector in re.findall(pattern, ir))


def unwritten_fused(code: Code, architecture: str) -> dict[str, int]:
    """Return the functions with more or fewer fused multiply-adds than the source, and the difference.

    The source contains `hc_fma` and `hc_fmaf`, which are calls in the IR. The expansions of divisions, roots
    and conversions are counted in addition.
    """
    differences = {}
    for name, (assembly, ir) in _bodies(code).items():
        expected = _operations(_WRITTEN, ir)
        for operation, fused in expansions(architecture).items():
            expected += fused * _operations(_ROUNDED[operation], ir)
        difference = fused_instructions(assembly) - expected
        if difference:
            differences[name] = difference
    return differences


# -- resources ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resources:
    """Resources of a kernel.

    Attributes
    ----------
    registers : int
        Vector registers per thread, each of 32 bits.
    spilled : int
        Vector registers that each thread spills to memory.
    shared : int
        Bytes of shared memory per thread block.
    wavefront : int
        Threads of a wavefront.
    """

    registers: int
    spilled: int
    shared: int
    wavefront: int


def resources(code: Code) -> dict[str, Resources]:
    """Return the resources of each kernel, from the metadata of the assembly."""
    (metadata,) = re.findall(r"^amdhsa\.kernels:\n(.*?)^amdhsa\.", code.assembly, re.M | re.S)
    result = {}
    for text in re.split(r"^  - ", metadata, flags=re.M)[1:]:
        number = {key: int(value) for key, value in re.findall(r"^ *\.(\w+): +(\d+)$", text, re.M)}
        (name,) = re.findall(r"^ *\.name: +(\w+)$", text, re.M)
        result[name] = Resources(
            number["vgpr_count"],
            number["vgpr_spill_count"],
            number["group_segment_fixed_size"],
            number["wavefront_size"],
        )
    return result


# -- checks ------------------------------------------------------------------------------------------

# Permission to round differently: of an operation in the IR, and of divisions and roots in float32.
_FAST = re.compile(r" (?:fast|contract|reassoc|afn|arcp) |@llvm\.fmuladd|!fpmath|denormal-fp-math")


def check_rounding(code: Code, architecture: str) -> None:
    """Check that the compiler neither contracts operations, nor approximates them, nor flushes to zero."""
    assert _FAST.findall(code.ir) == []
    assert unwritten_fused(code, architecture) == {}
    modes = Counter(re.findall(r"\.amdhsa_float_(?:denorm|round)_mode_\w+ \d", code.assembly))
    kernels = len(re.findall(r"^\t*\.amdhsa_kernel ", code.assembly, re.M))
    assert modes == {
        f".amdhsa_float_{mode}_{width} {value}": kernels
        for mode, value in (("denorm_mode", 3), ("round_mode", 0))  # all kept; to nearest
        for width in ("32", "16_64")
    }


def check(name: str, strategies: Sequence[str], architecture: str, record: Any) -> None:
    """Check that the kernels of a program compile and round as on the host, and record their resources."""
    for strategy, source in each_source(name, strategies):
        code = compile_hip(source, architecture)
        check_rounding(code, architecture)
        resources_by_kernel = resources(code)
        assert len(resources_by_kernel) == len(re.findall(r"^HC_KERNEL", source, re.MULTILINE))
        for kernel, usage in resources_by_kernel.items():
            assert usage.wavefront == ARCHITECTURES[architecture]
            label = f"{strategy} {architecture} {kernel}"
            record(label, f"{usage.registers} registers, {usage.spilled} spilled")
            print(f"{label}: {usage.registers} registers, {usage.spilled} spilled")
