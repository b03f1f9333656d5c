"""Ranges of numbers are checked in Python too."""

from __future__ import annotations

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.ranges import Range


def test_ranges_apply_to_python_calls() -> None:
    u = hc.Grid((8, 8), walls="node").field("u", boundary=hc.Value(0))
    for options, words in (
        ({"mailboxes": 3_000_000_000}, r"mailboxes is 3000000000; expected a whole number from 1 to 256"),
        ({"threads": True}, "threads is True; expected a whole number from 1 to 4,096"),
        ({"subdomains_per_rank": 2.0}, r"subdomains_per_rank is 2\.0; expected a whole number"),
        ({"ranks_per_node": 10**20}, "ranks_per_node is 1" + 20 * "0"),
    ):
        with pytest.raises(InputError, match=words):
            hc.solve(lambda u: -hc.laplacian(u), u, 1.0, **options)
    with pytest.raises(InputError, match=r"order 66 is not an order .* any even number up to 64"):
        hc.laplacian(u, order=66)
    assert Range(1, 4).check("n", 4) == 4
    for wrong in (0, 5, 1.0, True, "1", None):
        with pytest.raises(InputError, match=r"^n is .*; expected a whole number from 1 to 4$"):
            Range(1, 4).check("n", wrong)
