"""The peak of a core."""

from __future__ import annotations

import time

import numpy as np

from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator


def matrix_product_rate(n: int = 512) -> float:
    """Return the operations a second of a product of matrices by NumPy, on one thread (see conftest.py)."""
    a, seconds = np.ones((n, n)), []
    for _ in range(5):
        begin = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - begin)
    return 2 * n**3 / min(seconds)


def test_the_peak_of_a_core():
    """A product of matrices comes near it; less so on a busy machine."""
    one = multiply_add_peak(Communicator(), 1)
    assert one is not None
    assert 0.2 < matrix_product_rate() / one < 2
    assert multiply_add_peak(Communicator(), 4) > 1.5 * one  # of four threads; other work slows it
