"""Names in the kernels of devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc


@pytest.mark.usefixtures("opencl")
def test_parameters_on_devices_may_have_the_names_of_locals_keywords_and_macros() -> None:
    names = (
        "f n k lo0 shared control half kernel global constant restrict image2d_t double2 NAN INFINITY M_PI"
    )
    grid = hc.Grid(9, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        weighted = sum(hc.parameter(name) * 2.0**n for n, name in enumerate(names.split()))
        u.set(u[1] + weighted)
        hc.scalar("total").set(hc.sum(u))

    values = {name: 1.0 + n for n, name in enumerate(names.split())}
    sim = hc.Simulation(grid, step, parameters=values, device="opencl:0")
    sim[u] = 0.0
    sim.run()
    weighted = sum((1.0 + n) * 2.0**n for n in range(len(values)))
    np.testing.assert_array_equal(sim[u], weighted)
    assert sim.values["total"] == 9 * weighted
