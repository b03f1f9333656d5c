"""Elementary functions of generated code: accuracy against mpmath, special values, equal bits everywhere.

The reference is mpmath at 120 bits, and for special values the C library (C99 annex F) or Python.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from elementary_accuracy import REFERENCE, SUBNORMAL, check_accuracy, libraries, library, maximum_error
from elementary_functions import (
    DOUBLE,
    DRIVER,
    FEATURES,
    FLOAT,
    INCLUDE,
    ONE,
    TWO,
    Array,
    Library,
    any_bits,
    around,
    bits,
    many,
    special,
)
from suites import cases

__all__ = ["libraries", "library"]  # fixtures


# ---- accuracy --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@pytest.mark.parametrize("name", list(REFERENCE))
def test_elementary_functions_are_accurate(library: Library, name: str, dtype: type) -> None:
    check_accuracy(library, name, dtype, 2000)


# Hardest to round: V. Lefevre and J.-M. Muller, Worst cases for correct rounding of the elementary functions
# in double precision, ARITH 15, 2001. The double closest to a multiple of pi/2: 6381956970095103 * 2^797
# (J.-M. Muller, Elementary Functions, ch. 11).
HARD = {
    "exp": ["0x1.9e9cbbfd6080bp-31", "0x1.83d4bcdebb3f4p+2", "0x1.62e42fefa39efp+9", "-0x1.74910d52d3051p+9"],
    "log": ["0x1.62a88613629b6p+678", "0x1.6a09e667f3bcdp+0", "0x1.6a09e667f3bcdp-1", "0x1p-1022"],
    "sin": ["0x1.e0000000001c2p-20", "0x1.598bae9e632f6p-7", "0x1.6ac5b262ca1ffp+849", "0x1p40", "0x1p1023"],
    "cos": ["0x1.8000000000009p-23", "0x1.6ac5b262ca1ffp+849", "0x1.921fb54442d18p+0", "0x1p40", "0x1p1023"],
}


@pytest.mark.parametrize("name", list(HARD))
def test_elementary_functions_are_accurate_at_hard_arguments(library: Library, name: str) -> None:
    x = around([float.fromhex(text) for text in HARD[name]], DOUBLE)
    largest, argument = maximum_error(library, name, (x,))
    assert largest <= SUBNORMAL, f"{largest} ulp at {argument}"


def test_exactly_representable_powers_are_exact(library: Library) -> None:
    whole = [(float(b), float(e)) for b in range(-40, 41) for e in range(0, 40) if abs(b) ** e < 2**53]
    roots = [(float(b) ** 2, e + 0.5) for b in range(1, 200) for e in range(5) if b ** (2 * e + 1) < 2**53]
    inverse = [(2.0**b, -float(e)) for b in range(-20, 21) for e in range(30)]
    pairs = whole + roots + inverse
    exact = [float(b) ** int(e) for b, e in whole]
    exact += [math.isqrt(int(b)) ** (2 * int(e - 0.5) + 1) for b, e in roots]
    exact += [math.ldexp(1.0, -round(math.log2(b)) * round(-e)) for b, e in inverse]
    result = library("pow", *(np.array(column) for column in zip(*pairs, strict=True)))
    assert result.tolist() == exact


# ---- special values --------------------------------------------------------------------------


def nan(dtype: type) -> int:
    """Return the bits of the canonical NaN."""
    return 0x7FF8000000000000 if dtype == DOUBLE else 0x7FC00000


def assert_same(result: Array, expected: Array, *arguments: Array) -> None:
    """Assert equal bits; NaNs of `expected` represent the canonical NaN."""
    expected_bits = np.where(
        np.isnan(expected), bits(expected).dtype.type(nan(expected.dtype.type)), bits(expected)
    )
    wrong = np.flatnonzero(bits(result) != expected_bits)
    assert not wrong.size, [(*(a[i] for a in arguments), result[i], expected[i]) for i in wrong[:5]]


SPECIAL = {
    "exp": [
        (-np.inf, 0.0),
        (-800, 0.0),
        (-0.0, 1.0),
        (0.0, 1.0),
        (800, np.inf),
        (np.inf, np.inf),
        (np.nan, np.nan),
    ],
    "log": [
        (-np.inf, np.nan),
        (-1, np.nan),
        (-1e-45, np.nan),
        (-0.0, -np.inf),
        (0.0, -np.inf),
        (1, 0.0),
        (np.inf, np.inf),
        (np.nan, np.nan),
    ],
    "sin": [(-np.inf, np.nan), (-0.0, -0.0), (0.0, 0.0), (1e-45, 1e-45), (np.inf, np.nan), (np.nan, np.nan)],
    "cos": [(-np.inf, np.nan), (-0.0, 1.0), (0.0, 1.0), (1e-45, 1.0), (np.inf, np.nan), (np.nan, np.nan)],
    "sign": [
        (-np.inf, -1),
        (-1e-45, -1),
        (-0.0, -0.0),
        (0.0, 0.0),
        (1e-45, 1),
        (np.inf, 1),
        (np.nan, np.nan),
    ],
    "abs": [(-np.inf, np.inf), (-1e-45, 1e-45), (-0.0, 0.0), (0.0, 0.0), (3, 3), (-np.nan, np.nan)],
}


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@pytest.mark.parametrize("name", list(SPECIAL))
def test_special_values_are_exact(library: Library, name: str, dtype: type) -> None:
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    assert_same(library(name, x), expected, x)


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
def test_pow_agrees_with_the_c_library(library: Library, dtype: type) -> None:
    """Special values agree bit for bit (C99, F.9.4.4), others to 2 units in the last place."""
    rng = np.random.default_rng(5)
    c_library = ctypes.CDLL("libm.so.6")
    pow_ = c_library.pow if dtype == DOUBLE else c_library.powf
    c_type = ctypes.c_double if dtype == DOUBLE else ctypes.c_float
    pow_.argtypes, pow_.restype = [c_type, c_type], c_type
    values = special(dtype)
    pairs = np.array(list(product(values, values)), dtype)
    x = np.concatenate([pairs[:, 0], any_bits(rng, dtype, 20_000)])
    y = np.concatenate([pairs[:, 1], any_bits(rng, dtype, 20_000)])
    result, expected = library("pow", x, y), np.array([pow_(a, b) for a, b in zip(x, y, strict=True)], dtype)
    plain = np.isfinite(expected) & (expected != 0) & (np.abs(expected) != 1) & np.isfinite(result)
    assert_same(result[~plain], expected[~plain], x[~plain], y[~plain])
    assert np.count_nonzero(plain) > 500
    steps = bits(result[plain]).astype(np.int64) - bits(expected[plain]).astype(np.int64)
    assert np.all(np.abs(steps) <= 2)


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_do_not_depend_on_the_order(library: Library, name: str, dtype: type) -> None:
    """NaN precedes the order of numbers, which precedes the sign of zero, so that the order has no effect."""
    choose = min if name == "min" else max

    def reference(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return math.nan
        return choose(a, b, key=lambda v: (v, math.copysign(1, v)))

    rng = np.random.default_rng(6)
    values = np.concatenate([special(dtype), any_bits(rng, dtype, 60)])
    a, b = (column.copy() for column in np.array(list(product(values, values)), dtype).T)
    result = library(name, a, b)
    assert_same(
        result, np.array([reference(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)], dtype), a, b
    )
    assert_same(library(name, b, a), result, a, b)
    c = rng.permutation(a)
    assert_same(library(name, library(name, a, b), c), library(name, a, library(name, b, c)), a, b, c)


# ---- the same bits ---------------------------------------------------------------------------


@functools.cache
def a_million(dtype: type) -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    return many(rng, dtype, 1_000_003), many(rng, dtype, 1_000_003)


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@cases("name", ONE + TWO, default=["exp", "sin", "sign", "pow"])
def test_every_build_gives_the_same_bits(libraries: dict[str, Library], name: str, dtype: type) -> None:
    arguments = list(a_million(dtype)[: 2 if name in TWO else 1])
    if name.endswith("_small"):
        arguments = [np.where(np.abs(a) <= 2.0**40, a, dtype(1)) for a in arguments]
    results = {build: library(name, *arguments) for build, library in libraries.items()}
    for result in results.values():
        assert_same(result, results["vector"], *arguments)
    assert len(np.unique(bits(results["vector"])[:300_000])) > (1 if name == "sign" else 30_000)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
def test_functions_of_small_arguments_have_the_general_bits(library: Library, name: str, dtype: type) -> None:
    """The vector loop for near arguments has the bits of the general function; far arguments are detected."""
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.uniform(-(2.0**40), 2.0**40, 100_000).astype(dtype), around([2.0**40], dtype)])
    near_arguments = x[np.abs(x) <= 2.0**40]
    assert not library.has_large_angle(near_arguments)
    assert_same(library(name + "_small", near_arguments), library(name, near_arguments), near_arguments)
    for value in (np.nextafter(dtype(2.0**40), dtype(np.inf)), np.inf, np.nan):
        assert library.has_large_angle(np.array([1, value, 2], dtype))
        assert library.has_large_angle(np.array([1, 2, -value], dtype))


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
def test_functions_of_mirrored_arguments_are_symmetric(library: Library, dtype: type) -> None:
    x = many(np.random.default_rng(9), dtype, 100_000)
    assert_same(library("sin", -x), -library("sin", x), x)
    assert_same(library("cos", -x), library("cos", x), x)


def test_loops_become_vector_code(libraries: dict[str, Library]) -> None:
    text = DRIVER.read_text().splitlines()
    lines = {number for number, line in enumerate(text, 1) if re.match(r"(ONE|TWO|ANY)\(", line)}
    assert len(lines) == 20
    if platform.machine() == "x86_64":
        expected = {"vector": (" avx2 ", 32), "wide": (" avx512f ", 64)}
    else:
        expected = {"vector": ("", 16)}
    for build, (feature, width) in expected.items():
        if feature in FEATURES:
            pattern = rf"{DRIVER.name}:(\d+):.*loop vectorized using {width} byte"
            assert lines <= set(map(int, re.findall(pattern, libraries[build].messages))), build


# ---- the text --------------------------------------------------------------------------------


OPENCL = """
#pragma OPENCL FP_CONTRACT OFF
#define HC_FUNCTION static inline
#define HC_RARE static
#define HC_TABLE __constant
typedef uint hc_uint32;
typedef ulong hc_uint64;
typedef long hc_int64;
#define hc_bits(x) as_ulong((double)(x))
#define hc_from_bits(b) as_double((ulong)(b))
#define hc_bitsf(x) as_uint((float)(x))
#define hc_from_bitsf(b) as_float((uint)(b))
#define hc_fma(a, b, c) fma((double)(a), (double)(b), (double)(c))
#define hc_fmaf(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define hc_multiply_high(a, b) mul_hi((ulong)(a), (ulong)(b))
#include "halocline/elementary.hpp"
kernel void all(global double *x, global float *y) {
  x[0] = hc_exp(x[0]) + hc_log(x[0]) + hc_sin(x[0]) + hc_cos(x[0]) + hc_pow(x[0], x[1]) + hc_min(x[0], x[1]);
  y[0] = hc_expf(y[0]) + hc_logf(y[0]) + hc_sinf(y[0]) + hc_cosf(y[0]) + hc_powf(y[0], y[1]);
  y[1] = hc_maxf(y[0], y[1]) + hc_minf(y[0], y[1]) + hc_absf(y[0]) + hc_signf(y[0]);
}
"""


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang reads OpenCL C")
def test_the_header_compiles_as_opencl(tmp_path: Path) -> None:
    source = tmp_path / "all.cl"
    source.write_text(OPENCL)
    options = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only", "-Werror"]
    done = subprocess.run(["clang", *options, f"-I{INCLUDE}", str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
