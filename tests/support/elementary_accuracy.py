"""Accuracy of elementary functions, compared with mpmath."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mpmath import libmp

from elementary_functions import (
    DOUBLE,
    DRIVER,
    INCLUDE,
    STRICT,
    Array,
    Library,
    builds,
    typical,
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    folder = tmp_path_factory.mktemp("elementary")

    def build(name: str, command: list[str]) -> Library:
        path = folder / f"{name.replace(' ', '_')}.so"
        options = [*STRICT, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-o", str(path)]
        process = subprocess.run([*command, *options, str(DRIVER)], capture_output=True, text=True)
        assert process.returncode == 0, f"{name}: {process.stderr}"
        return Library(path, process.stderr)

    with ThreadPoolExecutor(2) as pool:
        pending = {name: pool.submit(build, name, command) for name, command in builds()}
    return {name: future.result() for name, future in pending.items()}


@pytest.fixture(scope="module")
def library(libraries: dict[str, Library]) -> Library:
    return libraries["vector"]


# ---- accuracy --------------------------------------------------------------------------------


PRECISION = 120
Exact = tuple[int, int, int, int]  # sign, mantissa, exponent, bits of the mantissa
REFERENCE: dict[str, Callable[..., Exact]] = {
    "exp": libmp.mpf_exp,
    "log": libmp.mpf_log,
    "sin": libmp.mpf_sin,
    "cos": libmp.mpf_cos,
    "pow": libmp.mpf_pow,
}

# Maximum errors in units in the last place: the limit is 1, and 2 for pow.
NORMAL = {"exp": 0.61, "log": 0.61, "sin": 0.63, "cos": 0.63, "pow": 0.70}
SUBNORMAL = 0.80
SINGLE = 0.51


def error(result: float, exact: Exact, dtype: type) -> float:
    """Return the distance from the exact value in units in its last place."""
    bits, least, most = (53, -1074, 1024) if dtype == DOUBLE else (24, -149, 128)
    if math.isinf(result):  # correct if the exact value rounds to infinity
        limit = libmp.from_man_exp((2 << bits) - 1, most - bits - 1)
        signed = libmp.mpf_neg(exact) if result < 0 else exact
        return 0.0 if libmp.mpf_ge(signed, limit) else math.inf
    _, mantissa, exponent, size = exact
    unit = max(exponent + size - bits, least) if mantissa else least
    difference = libmp.mpf_sub(libmp.from_float(result), exact, PRECISION, "n")
    return abs(libmp.to_float(libmp.mpf_shift(difference, -unit)))


def maximum_error(library: Library, name: str, arguments: tuple[Array, ...]) -> tuple[float, str]:
    """Return the maximum error over finite arguments (positive ones for log), and its call as text."""
    dtype = arguments[0].dtype.type
    keep = np.logical_and.reduce([np.isfinite(a) for a in arguments])
    if name == "log":
        keep &= arguments[0] > 0
    arguments = tuple(a[keep] for a in arguments)
    results = library(name, *arguments)
    largest, location = -1.0, "nowhere"
    for result, *numbers in zip(results.tolist(), *(a.tolist() for a in arguments), strict=True):
        ulps = error(result, REFERENCE[name](*map(libmp.from_float, numbers), PRECISION, "n"), dtype)
        if not ulps <= largest:
            largest, location = ulps, f"{name}({', '.join(map(float.hex, numbers))}) = {result.hex()}"
    assert largest >= 0, "no argument was tested"
    return largest, location


def check_accuracy(library: Library, name: str, dtype: type, count: int) -> None:
    """Check the errors of a function over its typical arguments."""
    rng = np.random.default_rng([*name.encode(), count, dtype == DOUBLE])
    for label, arguments in typical(rng, name, dtype, count).items():
        largest, location = maximum_error(library, name, arguments)
        print(f"{name if dtype == DOUBLE else name + 'f':5} {label:32} {largest:.4f}  {location}")
        double = SUBNORMAL if "subnormal" in label else NORMAL[name]
        assert largest <= (double if dtype == DOUBLE else SINGLE), f"{label}: {largest} ulp at {location}"
