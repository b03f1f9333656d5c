"""The peak of a core."""

from __future__ import annotations

from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator


def test_the_peak_of_a_core():
    one = multiply_add_peak(Communicator(), 1)
    assert one is not None
    assert 1e9 < one < 1e12
    assert multiply_add_peak(Communicator(), 4) > 1.5 * one  # of four threads; other work slows it
