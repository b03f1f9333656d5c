"""Peak performance of a core."""

from __future__ import annotations

import statistics
import time

import numpy as np

from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator


def matrix_product_rate(n: int = 512) -> float:
    """Return the operations per second of a matrix product by NumPy, on one thread (see conftest.py)."""
    a, seconds = np.ones((n, n)), []
    for _ in range(5):
        begin = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - begin)
    return 2 * n**3 / min(seconds)


def test_the_peak_of_a_core_is_measured():
    """The best matrix product is close to the best peak; single measurements suffer from other load."""
    peaks, rates = [], []
    for _ in range(5):
        peaks.append(multiply_add_peak(Communicator(), 1) or 0.0)
        rates.append(matrix_product_rate())
    assert 0.2 < max(rates) / max(peaks) < 2
    four = max(multiply_add_peak(Communicator(), 4) or 0.0 for _ in range(3))
    assert four > 1.5 * statistics.median(peaks)  # four threads


def test_the_float32_peak_is_twice_the_float64_peak():
    peaks = {dtype: [] for dtype in ("float64", "float32")}
    for _ in range(5):
        for dtype, measurements in peaks.items():
            measurements.append(multiply_add_peak(Communicator(), 1, dtype=dtype) or 0.0)
    assert 1.5 * max(peaks["float64"]) < max(peaks["float32"])
