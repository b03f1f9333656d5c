"""The native reductions as a separate library, and summands for them."""

from __future__ import annotations

import ctypes
import math
import struct
import subprocess
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SUM, MIN, MAX, COUNT, VALUE = range(5)
CHUNK = 512  # HC_CHUNK
FLAGS = ["-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
STRICT = ["-Wall", "-Wextra", "-Werror"]


class Library:
    """The driver, compiled with given flags."""

    def __init__(self, compiler: str, flags: Sequence[str], folder: Path) -> None:
        path = folder / f"{'_'.join([compiler, *flags])}.so"
        source = Path(__file__).with_name("reduce_driver.cpp")
        include = ROOT / "native" / "include"
        subprocess.run(
            [
                compiler,
                *FLAGS,
                *STRICT,
                *flags,
                f"-I{include}",
                "-shared",
                "-fPIC",
                str(source),
                "-o",
                str(path),
            ],
            check=True,
        )
        self.c = ctypes.CDLL(str(path))
        self.c.result.restype = ctypes.c_double
        self.c.accumulator_bytes.restype = ctypes.c_int64
        self.c.deposit_products.restype = ctypes.c_bool

    def __call__(self, kind: int) -> Accumulator:
        return Accumulator(self.c, kind)


class Accumulator:
    """One hc_accumulator in aligned memory."""

    def __init__(self, c: ctypes.CDLL, kind: int) -> None:
        self.c, self.kind = c, kind
        size = c.accumulator_bytes()
        self.memory = (ctypes.c_char * (size + 64))()
        self.offset = -ctypes.addressof(self.memory) % 64
        self.address = ctypes.c_void_p(ctypes.addressof(self.memory) + self.offset)
        self.size = size
        c.reset(self.address, kind)

    def deposit(self, x: Iterable[float]) -> Accumulator:
        x = np.ascontiguousarray(np.fromiter(x, float) if not isinstance(x, np.ndarray) else x)
        self.c.deposit(self.address, ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(x.size))
        return self

    def deposit_products(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Return True if all products fit the existing bins."""
        assert x.size == y.size <= CHUNK
        return bool(
            self.c.deposit_products(
                self.address,
                ctypes.c_void_p(x.ctypes.data),
                ctypes.c_void_p(y.ctypes.data),
                ctypes.c_int64(x.size),
            )
        )

    def add(self, amount: int) -> Accumulator:
        self.c.count_add(self.address, ctypes.c_int64(amount))
        return self

    def merge(self, other: Accumulator) -> Accumulator:
        self.c.merge(self.address, other.address)
        return self

    def copy(self) -> Accumulator:
        other = Accumulator(self.c, self.kind)
        ctypes.memmove(other.address, self.address, self.size)
        return other

    @property
    def top(self) -> int:
        return int(self.c.accumulator_top(self.address))

    @property
    def result(self) -> float:
        return float(self.c.result(self.address))

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.address, self.size)


def bits(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def from_bits(w: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", w))[0])


# ------------------------------------------------------------------------------------------- summands
def boundary(j: int, offset: int, sign: int) -> float:
    """Return a double close to the largest that bin j accepts."""
    limit = Fraction(2) ** (40 * j - 1074) * (2**38 + Fraction(1, 2))
    return sign * from_bits(bits(float(limit)) + offset)


def tie(j: int, k: int) -> float:
    """Return k + 1/2 quanta of bin j."""
    return float(Fraction(2 * k + 1, 2) * Fraction(2) ** (40 * j - 1074))


finite = st.floats(allow_nan=False, allow_infinity=False)
summands = st.one_of(
    finite,
    st.floats(-1, 1),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-1e-300, 1e-300),
    st.builds(math.ldexp, st.floats(-1, 1, exclude_min=True, exclude_max=True), st.integers(-1074, 1024)),
    st.builds(boundary, st.integers(1, 51), st.integers(-2, 2), st.sampled_from([-1, 1])),
    st.builds(tie, st.integers(1, 51), st.integers(-(2**38), 2**38)),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e308, -1e308, 1.7976931348623157e308]),
)
specials = st.sampled_from([math.inf, -math.inf, math.nan])


def wide(n: int, exponents: tuple[int, int], seed: int) -> np.ndarray:
    """Return random doubles of both signs with uniform exponents."""
    rng = np.random.default_rng(seed)
    return np.ldexp(rng.uniform(-1, 1, n), rng.integers(*exponents, n))


CASES = {
    "even": np.random.default_rng(1).uniform(-1, 1, 20_003),
    "moderate": wide(20_003, (-30, 30), 2),
    "wide": wide(20_003, (-1000, 1000), 3),
    "subnormal": wide(20_003, (-1074, -1000), 4),
    "huge": wide(20_003, (990, 1000), 5),
    "float32": wide(20_003, (-30, 30), 6).astype(np.float32).astype(float),
    "rising": np.ldexp(1.0 + np.random.default_rng(7).random(1_900), np.arange(-950, 950)),
    "cancelling": (lambda x: np.concatenate([x, -x, [1e-9]]))(wide(10_001, (-10, 3), 8)),
}

# ------------------------------------------------------------------------------------ min, max, count
nans = st.sampled_from([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF]).map(
    from_bits
)
