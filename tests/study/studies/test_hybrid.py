"""Cores that are shared out among ranks and threads."""

from __future__ import annotations

from halocline.study.studies.hybrid import factors


def test_cores_are_shared_out_in_every_way() -> None:
    assert factors([2], [2]) == [(1, 4), (2, 2), (4, 1)]
    assert factors([1], [6]) == [(1, 6), (2, 3), (3, 2), (6, 1)]
