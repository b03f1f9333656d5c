"""Exchange next to cells without mass or heat: conservative, and sufficient in strong fields."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import halocline as hc
from halocline.physics.mhd_tvd import IdealMHD, MHDSimulation
from loops import some
from mixed_cells import BELOW, kept_without_floors, mixed, random_fields
from shock_runs import run
from suites import examples


def least(fields: dict[str, Any]) -> tuple[float, float]:
    """Return the minimum density and the minimum heat."""
    motion = sum(fields[f"m_{a}"] ** 2 for a in "xyz") / fields["rho"]
    magnetic = sum(fields[f"b_{a}"].flat[0] ** 2 for a in "xyz")  # uniform
    return fields["rho"].min(), (fields["E"] - 0.5 * (motion + magnetic)).min()


@settings(max_examples=examples(4, 12), deadline=None)
@given(
    shape=st.sampled_from([(24,), (9, 8), (6, 5, 7)]),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.02, 0.1]),
    walls=st.sampled_from([None, hc.Symmetric(), hc.Extrapolate(2), hc.Value(-5.0)]),
)
def test_mixing_fills_deficient_cells_and_conserves_sums(
    shape: tuple[int, ...], seed: int, share: float, walls: Any
) -> None:
    """Cells next to walls receive their missing mass and heat too, for any boundary condition."""
    before = random_fields(shape, seed, share)
    if walls is not None:  # the field on faces has one more point
        shape_of = {a: tuple(n + (axis == "xyz".index(a)) for axis, n in enumerate(shape)) for a in "xyz"}
        before |= {f"b_{a}": np.full(shape_of[a], before[f"b_{a}"].flat[0]) for a in "xyz"}
    after = mixed(shape, before, walls)
    density, heat = least(after)
    assert density > 0
    assert heat > 0
    for name, old in before.items():
        assert np.abs(old).sum() * 1e-14 >= abs(after[name].sum() - old.sum()), name


@pytest.mark.parametrize("end", [0, -1])
def test_nothing_passes_through_walls_in_single_precision(end: int) -> None:
    """A cell beside a wall lacks mass. It receives mass from its neighbour, but not from ghost cells."""
    n = 12
    fields = {"rho": np.ones(n), **{f"m_{a}": np.zeros(n) for a in "xyz"}, "E": np.ones(n)}
    fields |= {"b_x": np.zeros(n + 1), "b_y": np.zeros(n), "b_z": np.zeros(n)}
    fields["rho"][end] = -0.25
    after = mixed((n,), fields, hc.Value(-5.0), dtype="float32")
    assert after["rho"].dtype == np.float32
    assert after["rho"].min() > 0
    assert after["rho"].sum(dtype=np.float64) == pytest.approx(fields["rho"].sum(), rel=1e-6)


def test_a_cell_becomes_the_mean_of_its_neighbours() -> None:
    """A cell that lacks heat only exchanges heat only; distant cells do not change."""
    shape, middle = (5, 5), (2, 2)
    fields = {"rho": np.ones(shape), **{f"m_{a}": np.zeros(shape) for a in "xyz"}}
    fields |= {f"b_{a}": np.zeros(shape) for a in "xyz"} | {"E": np.ones(shape)}
    fields["m_x"][middle], fields["E"][middle] = 2.0, 1.5  # motion alone has an energy of 2
    after = mixed(shape, fields)
    assert after["E"][middle] == pytest.approx(2.0 + (4 * 1.0 - 0.5) / 5)
    assert after["E"][2, 1] == pytest.approx(1.0 - 1.5 / 5)
    assert after["E"][1, 1] == 1.0
    for name in ("rho", "m_x"):
        assert (after[name] == fields[name]).all()
    fields["rho"][middle] = -0.5
    after = mixed(shape, fields)
    assert after["rho"][middle] == pytest.approx((4 * 1.0 - 0.5) / 5)
    assert after["m_x"][middle] == pytest.approx(2.0 / 5)
    assert after["m_x"][2, 1] == pytest.approx(2.0 / 5)


@pytest.mark.ranks(2, 4, long=(4,))
def test_bits_do_not_depend_on_ranks() -> None:
    from mpi4py import MPI

    fields = random_fields((18, 16), 7, 0.1)
    together = mixed((18, 16), fields)
    single_rank = mixed((18, 16), fields, communicator=MPI.COMM_SELF)
    if MPI.COMM_WORLD.rank == 0:
        for name, values in some(single_rank.items()):
            assert (together[name] == values).all(), name


@pytest.mark.parametrize(("n", "field", "until", "acts"), [
    ((32, 48), 30.0, 0.02, True),
    pytest.param((32, 48), 10.0, 0.02, False, marks=pytest.mark.long),
    pytest.param((64, 96), 10.0, 0.02, False, marks=pytest.mark.long),
    pytest.param((64, 96), 30.0, 0.02, True, marks=pytest.mark.long),
    pytest.param((64, 96), 100.0, 0.02, True, marks=pytest.mark.long),
    pytest.param((20, 30, 20), 10.0, 0.02, False, marks=pytest.mark.long),
    pytest.param((20, 30, 20), 30.0, 0.02, False, marks=pytest.mark.long),
    pytest.param((20, 30, 20), 100.0, 0.02, True, marks=pytest.mark.long),
])  # fmt: skip
def test_a_blast_in_a_strong_field_needs_no_floor(
    n: tuple[int, ...], field: float, until: float, acts: bool
) -> None:
    """Fluxes fall back in all these blasts; if this is insufficient, cells exchange heat."""
    record = run("blast", n, {"field": field}, until=until).record
    kept_without_floors(record)
    assert (record.events["mixing"]["count"] > 0) == acts


U = 1 / math.sqrt(4 * math.pi)
# Ryu and Jones 1995, ApJ 442, 228, Figures 1a to 5b: density, velocity, field across the tube and pressure on
# the left and on the right, the field along the tube, and the time.
TUBES: dict[str, tuple[tuple[float, ...], tuple[float, ...], float, float]] = {
    "1a": ((1, 10, 0, 0, 5 * U, 0, 20), (1, -10, 0, 0, 5 * U, 0, 1), 5 * U, 0.08),
    "1b": ((1, 0, 0, 0, 5 * U, 0, 1), (0.1, 0, 0, 0, 2 * U, 0, 10), 3 * U, 0.03),
    "2a": ((1.08, 1.2, 0.01, 0.5, 3.6 * U, 2 * U, 0.95), (1, 0, 0, 0, 4 * U, 2 * U, 1), 2 * U, 0.2),
    "2b": ((1, 0, 0, 0, 6 * U, 0, 1), (0.1, 0, 2, 1, U, 0, 10), 3 * U, 0.035),
    "3a": ((0.1, 50, 0, 0, -U, -2 * U, 0.4), (0.1, 0, 0, 0, U, 2 * U, 0.2), 0, 0.01),
    "3b": ((1, -1, 0, 0, 1, 0, 1), (1, 1, 0, 0, 1, 0, 1), 0, 0.1),
    "4a": ((1, 0, 0, 0, 1, 0, 1), (0.2, 0, 0, 0, 0, 0, 0.1), 1, 0.15),
    "4b": ((0.4, -0.66991, 0.98263, 0, 0.0025293, 0, 0.52467), (1, 0, 0, 0, 1, 0, 1), 1.3, 0.15),
    "4c": ((0.65, 0.667, -0.257, 0, 0.55, 0, 0.5), (1, 0.4, -0.94, 0, 0, 0, 0.75), 0.75, 0.15),
    "4d": ((1, 0, 0, 0, 0, 0, 1), (0.3, 0, 0, 1, 1, 0, 0.2), 0.7, 0.16),
    "5a": ((1, 0, 0, 0, 1, 0, 1), (0.125, 0, 0, 0, -1, 0, 0.1), 0.75, 0.1),
    "5b": ((1, 0, 0, 0, 1, 0, 1), (0.4, 0, 0, 0, -1, 0, 0.4), 1.3, 0.16),
}


def brought(state: tuple[float, ...], along: float) -> NDArray[np.float64]:
    """Return the mass and energy that a uniform state carries through a face per unit time."""
    rho, u, v, w, y, z, p = state
    magnetic = along * along + y * y + z * z
    energy = p / (5 / 3 - 1) + 0.5 * rho * (u * u + v * v + w * w) + 0.5 * magnetic
    work = (energy + p + 0.5 * magnetic) * u - along * (along * u + y * v + z * w)
    return np.array([rho * u, work])


@pytest.mark.parametrize("name", [
    "3a", *(pytest.param(name, marks=pytest.mark.long) for name in TUBES if name != "3a"),
])  # fmt: skip
def test_tubes_need_no_floor(name: str) -> None:
    """At the default Courant number, 0.8, mass and energy change only by the flux through the ends."""
    left, right, along, until = TUBES[name]
    grid = hc.Grid(512, extent=1.0, origin=-0.5)
    walls = {field_name: hc.Symmetric() for field_name in ("rho", "m", "E", "b")}
    sim = MHDSimulation(IdealMHD(grid, boundary=walls), threads=1)
    rho, vx, vy, vz, by, bz, p = (hc.where(grid.x < 0.0, a, b) for a, b in zip(left, right, strict=True))
    sim.set_state(rho=rho, v=(vx, vy, vz), p=p, b=(along, by, bz))
    before = np.array(sim.evaluate(hc.sum(sim.mhd.rho), hc.sum(sim.mhd.E))) / grid.size
    sim.run(until=until)
    assert [sim.events[event]["count"] for event in BELOW] == [0, 0]
    after = np.array(sim.evaluate(hc.sum(sim.mhd.rho), hc.sum(sim.mhd.E))) / grid.size
    change = until * (brought(left, along) - brought(right, along))
    assert after - before == pytest.approx(change, abs=1e-12 * before.max())


@pytest.mark.parametrize("shape", [(200,), pytest.param((40, 24), marks=pytest.mark.long)])
def test_a_jump_of_a_thousand_needs_no_floor(shape: tuple[int, ...]) -> None:
    """Density and pressure fall to a thousandth, in a transverse field; a periodic grid keeps all sums."""
    grid = hc.Grid(shape, extent=1.0, origin=-0.5, periodic=True)
    sim = MHDSimulation(IdealMHD(grid), threads=1)
    dense = abs(grid.x) < 0.25
    sim.set_state(rho=hc.where(dense, 1.0, 1e-3), p=hc.where(dense, 1.0, 1e-3), b=(0.1, 0.3, 0.0))
    before = sim.evaluate(hc.sum(sim.mhd.rho), hc.sum(sim.mhd.E))
    sim.run(until=0.1)
    assert [sim.events[name]["count"] for name in BELOW] == [0, 0]
    assert sim.evaluate(hc.sum(sim.mhd.rho), hc.sum(sim.mhd.E)) == pytest.approx(before, rel=1e-13)
