"""Random exchanges: every halo that is read holds current values, and no other cell is changed."""

from __future__ import annotations

import secrets

import pytest

from exchange_fuzz import CASES, run_cases
from halocline.run.ranks.mpi import world


@pytest.mark.ranks(1, 2, 3, 4)
def test_ten_thousand_random_exchanges_fill_halos(capfd: pytest.CaptureFixture[str]) -> None:
    """New random exchanges each time, fewer if ranks share cores."""
    run_cases(world().bcast(secrets.randbelow(2**31)), CASES[world().size], capfd)
