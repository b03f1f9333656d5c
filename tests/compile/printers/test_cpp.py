"""Readability of the generated C++ code."""

from __future__ import annotations

from typing import Any

import halocline as hc
from compiled_programs import schedule_of


def test_the_source_is_readable() -> None:
    """The code contains the names and formulas of the user, one value per line."""
    grid = hc.Grid((8, 8), periodic=True)
    grid.field("temperature")
    grid.field("a")  # also a name in the kernel

    def program(temperature: Any, a: Any) -> None:
        kappa = hc.parameter("kappa")
        flux = hc.stage(kappa * hc.exp(temperature - temperature[-1, 0]), "flux", storage="patch")
        temperature.set(temperature + (flux[1, 0] - flux))
        a.set(a + 1.0)

    source = schedule_of(grid, program).source
    assert "// temperature = " in source
    for name in ("temperature_m1_0 =", "const double kappa =", "flux_to[k] =", "flux_p1_0 =", " a_ ="):
        assert name in source
    assert max(map(len, source.splitlines())) < 200
