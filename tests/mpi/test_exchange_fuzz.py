"""Random exchanges: every halo that is read holds what its owner has now, and no other cell is touched."""

from __future__ import annotations

import pytest

from exchange_fuzz import run_cases


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 2))
def test_random_exchanges(capfd: pytest.CaptureFixture[str]) -> None:
    run_cases(1, 40, capfd)
