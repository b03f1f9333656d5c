"""Random exchanges: each halo cell that is read has its current value, and no other cell changes."""

from __future__ import annotations

import pytest

from exchange_fuzz import run_cases


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 2, 4))
def test_random_exchanges_fill_halos(capfd: pytest.CaptureFixture[str]) -> None:
    run_cases(1, 40, capfd)
