"""Mixing of cells: devices, failed runs and vortices."""

from __future__ import annotations

import pytest

import halocline as hc
from halocline.errors import RunError
from halocline.physics.mhd_tvd import IdealMHD, MHDSimulation, Source
from loops import some
from mixed_cells import kept_without_floors, mixed, random_fields
from shock_runs import run


@pytest.mark.usefixtures("opencl")
def test_bits_do_not_depend_on_the_device() -> None:
    fields = random_fields((12, 10), 3, 0.1)
    on_host = mixed((12, 10), fields, threads=2, subdomains_per_rank=2)
    on_device = mixed((12, 10), fields, device="opencl:0")
    for name, values in some(on_host.items()):
        assert (on_device[name] == values).all(), name


@pytest.mark.parametrize("n", [(32, 32), (128, 128)])
def test_a_vortex_needs_no_floor(n: tuple[int, ...]) -> None:
    """The run is twice as long as the case, so that shocks have met."""
    kept_without_floors(run("orszag-tang", n, until=1.0).record)


def test_a_failed_run_reports_the_events() -> None:
    grid = hc.Grid(16, periodic=True)
    mhd = IdealMHD(grid, source=lambda w: Source(E=1e200 * w.p))
    sim = MHDSimulation(mhd, threads=1, warn_above=0)
    sim.set_state(rho=1.0, p=1.0)
    with pytest.raises(RunError, match=r"so far: HLL fallback in \d+ cells, first at \(0,\) in step 0"):
        sim.run(steps=10)
