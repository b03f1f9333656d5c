"""Elementary functions of generated code, built for several processors, and arguments for comparisons."""

from __future__ import annotations

import ctypes
import math
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpmath import mp as multiprecision
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "native" / "include"
DRIVER = Path(__file__).with_name("elementary_driver.cpp")
STRICT = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-shared", "-fPIC"]
VECTOR = ["g++", "-std=c++20", "-O3", "-march=native"]

FEATURES = Path("/proc/cpuinfo").read_text()
DOUBLE, FLOAT = np.float64, np.float32
ONE = ("exp", "log", "sin", "cos", "sin_small", "cos_small", "abs", "sign")
TWO = ("pow", "min", "max")
Array = NDArray[np.float64] | NDArray[np.float32]


def in_float(name: str) -> str:
    """Return the name of the float version."""
    return name.replace("_small", "f_small") if name.endswith("_small") else name + "f"


@dataclass(frozen=True)
class Library:
    """The driver, built with one command."""

    path: Path
    messages: str

    def __call__(self, name: str, *arguments: Array) -> Array:
        first = arguments[0]
        arrays = [*(np.ascontiguousarray(a) for a in arguments), np.empty_like(first)]
        assert all(a.dtype == first.dtype and a.shape == first.shape for a in arrays)
        loop = "loop_" + (in_float(name) if first.dtype == FLOAT else name)
        function = getattr(ctypes.CDLL(str(self.path)), loop)
        function(ctypes.c_long(first.size), *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        return arrays[-1]

    def has_large_angle(self, x: Array) -> bool:
        name = in_float("is_large_angle") if x.dtype == FLOAT else "is_large_angle"
        function = getattr(ctypes.CDLL(str(self.path)), f"loop_{name}")
        return bool(function(ctypes.c_long(x.size), ctypes.c_void_p(x.ctypes.data)))


def builds() -> Iterator[tuple[str, list[str]]]:
    """Yield name and command line of each build: the first is that of generated code."""
    yield "vector", [*VECTOR, "-fopt-info-vec-optimized"]
    yield "scalar", ["g++", "-std=c++20", "-O1", "-march=native", "-fno-tree-vectorize"]
    yield "c", ["gcc", "-std=c11", "-pedantic", "-O2", "-march=native", "-x", "c"]
    if platform.machine() == "x86_64":
        yield "wide", [*VECTOR, "-mprefer-vector-width=512", "-fopt-info-vec-optimized"]
        yield "without fma", ["g++", "-std=c++20", "-O2"]  # hc_fma calls the C library
        if " avx2 " in FEATURES:
            yield "avx2", ["g++", "-std=c++20", "-O3", "-mavx2", "-mfma"]
    if shutil.which("clang++"):
        yield "clang", ["clang++", "-std=c++20", "-O3", "-march=native"]


# ---- arguments -------------------------------------------------------------------------------


def any_bits(rng: np.random.Generator, dtype: type, count: int) -> Array:
    """Return numbers uniform in their bits: every exponent, infinities, NaNs with any payload, subnormals."""
    unsigned = np.uint64 if dtype == DOUBLE else np.uint32
    return rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(dtype)


def around(values: list[float], dtype: type, steps: int = 3) -> Array:
    """Return the values and their nearest neighbours, of both signs."""
    neighbours = []
    for value in values:
        low = high = dtype(value)
        neighbours.append(low)
        with np.errstate(over="ignore"):
            for _ in range(steps):
                low, high = np.nextafter(low, dtype(-np.inf)), np.nextafter(high, dtype(np.inf))
                neighbours += [low, high]
    array = np.array(neighbours, dtype)
    return np.concatenate([array, -array])


def special(dtype: type) -> Array:
    """Return special values and their nearest neighbours, without duplicates."""
    limits = np.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 2.0**40, np.inf, np.nan]
    values += [limits.smallest_subnormal, limits.tiny, limits.max, limits.eps, 1 / limits.eps, 2 / limits.eps]
    return np.unique(around([float(v) for v in values], dtype, 1).view(f"u{limits.bits // 8}")).view(dtype)


def near_quarters(dtype: type) -> Array:
    """Return for each exponent a number that is closest, or nearly so, to a multiple of pi/2.

    The denominators of the continued fraction of 2^e 2/pi below 2^53 are the integers m of the numbers m 2^e.
    """
    bits, top = (53, 971) if dtype == DOUBLE else (24, 104)
    with multiprecision.workprec(1400):
        scaled = int(multiprecision.floor(2 / multiprecision.pi * multiprecision.mpf(2) ** 1300))
    closest = []
    for exponent in range(-bits + 1, top + 1):
        numerator, denominator = scaled << exponent + bits, 1 << 1300 + bits
        before, current = 0, 1  # denominators of the convergents
        numerator %= denominator
        while numerator:
            quotient, rest = divmod(denominator, numerator)
            before, current = current, quotient * current + before
            if current >= 1 << bits:
                break
            numerator, denominator = rest, numerator
        closest.append(math.ldexp(before * (((1 << bits) - 1) // before), exponent))
    array = np.array(closest, dtype)
    return np.concatenate([array, -array])


def typical(rng: np.random.Generator, name: str, dtype: type, count: int) -> dict[str, tuple[Array, ...]]:
    """Return arguments by the name of their range."""
    double = dtype == DOUBLE
    least, most = (-745.2, 709.79) if double else (-103.98, 88.73)
    normal = -708.39 if double else -87.33

    def uniform(low: float, high: float) -> Array:
        return rng.uniform(low, high, count).astype(dtype)

    def spread(low: float, high: float) -> Array:
        return np.exp2(rng.uniform(low, high, count)).astype(dtype)

    if name == "exp":
        halves = (rng.integers(-1000 if double else -120, 1000 if double else 120, count) + 0.5) * math.log(2)
        return {
            "-1..1": (uniform(-1, 1),),
            "normal": (uniform(normal, most),),
            "between two multiples of ln 2": (halves.astype(dtype),),
            "small": (spread(-60, -1) * np.sign(uniform(-1, 1)),),
            "subnormal results": (uniform(least, normal),),
        }
    if name == "log":
        low = -1074 if double else -149
        return {
            "1/2..2": (uniform(0.5, 2),),
            "near 1": ((1 + spread(-52, -1) * np.sign(uniform(-1, 1))).astype(dtype),),
            "all": (spread(low, 1023 if double else 127),),
            "any bits": (np.abs(any_bits(rng, dtype, count)),),
        }
    if name in ("sin", "cos"):
        top = 1023 if double else 127
        multiples = rng.integers(0, 1 << 36, count) * (math.pi / 2)
        return {
            "first quarter": (uniform(-0.8, 0.8),),
            "some turns": (uniform(-30, 30),),
            "near": (uniform(-(2.0**40), 2.0**40),),
            "near multiples of pi/2": (multiples.astype(dtype),),
            "closest to multiples of pi/2": (near_quarters(dtype),),
            "small": (spread(-70, 0),),
            "far": (spread(40, top),),
            "any bits": (any_bits(rng, dtype, count),),
        }
    assert name == "pow"
    x = [spread(-1000 if double else -120, 1000 if double else 120), spread(-1, 1)]
    x.append((1 + spread(-30 if double else -18, -1) * np.sign(uniform(-1, 1))).astype(dtype))
    ranges = {}
    for label, base in zip(("any base", "base 1/2..2", "base near 1"), x, strict=True):
        logarithm = np.log(base.astype(DOUBLE))
        logarithm[logarithm == 0] = 1
        for kind, low, high in (("", normal, most), (", subnormal results", least, normal)):
            ranges[label + kind] = (base, (rng.uniform(low, high, count) / logarithm).astype(dtype))
    integers = rng.integers(1, 60, count).astype(dtype)
    ranges["small"] = (uniform(0, 10), uniform(-10, 10))
    ranges["integers"] = (integers * np.sign(uniform(-1, 1)), rng.integers(-20, 20, count).astype(dtype))
    ranges["halves"] = (uniform(0, 100), rng.integers(-30, 30, count).astype(dtype) / 2)
    return ranges


# ---- special values --------------------------------------------------------------------------


def bits(x: Array) -> NDArray[np.unsignedinteger]:
    return x.view(np.uint64 if x.dtype == DOUBLE else np.uint32)


# ---- identical bits --------------------------------------------------------------------------


def many(rng: np.random.Generator, dtype: type, count: int) -> Array:
    """Return numbers of which half have random bits and half have physical magnitudes."""
    size = (rng.standard_normal(count // 2) * 10.0 ** rng.integers(-6, 4, count // 2)).astype(dtype)
    return rng.permutation(np.concatenate([any_bits(rng, dtype, count - size.size), size]))
