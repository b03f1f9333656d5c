"""The Courant step: limits of schemes, rates computed by hand, and stability below the limits only."""

from __future__ import annotations

import pytest

from halocline.errors import RunError
from halocline.problems.problem import Problem


# separate compilation of the terms takes half of the time
def test_a_nonfinite_rate_is_reported_with_its_terms():
    with pytest.raises(
        RunError,
        match=r"rate of fast magnetosonic waves is not finite, after step 0 .*\n"
        r"terms that are not finite now: lorentz of u_x.*\n"
        r"lorentz of u_x is not finite at cell \(0,\), where lnrho = 0,",
    ):
        Problem("alfven-decay", [16], {"mu0": 1e-320}).run(steps=2, threads=1)
