"""Ideal MHD on a user's grid: `MHDSimulation` checks and counts as the cases do."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.physics.mhd_tvd import IdealMHD, MHDSimulation, Source, curl
from halocline.problems.problem import Problem
from suites import cases


def gas(**options: Any) -> IdealMHD:
    return IdealMHD(hc.Grid((16,), periodic=True), flux="hll", **options)


@pytest.mark.ranks(1, 2, long=(1,))
def test_a_simulation_has_the_bits_of_the_case() -> None:
    case = Problem("brio-wu", (32,)).run(steps=5, threads=1).record
    grid = hc.Grid((32,), extent=1.0, origin=-0.5)
    mhd = IdealMHD(grid, boundary={name: hc.Symmetric() for name in ("rho", "m", "E", "b")})
    sim = MHDSimulation(mhd, gamma=2.0, threads=1)

    def jump(left: float, right: float) -> Any:
        return lambda x: hc.where(x < 0.0, left, right)

    sim.set_state(rho=jump(1.0, 0.125), p=jump(1.0, 0.1), b=(0.75, jump(1.0, -1.0), 0.0))
    sim.run(steps=5)
    assert {f.name: sim.checksum(f) for f in mhd.fields} == case.checksums
    assert sim.events == case.events


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"courant": 5}, "courant is 5; expected less than 1"),
        ({"epsilon_fast": 0.9}, "epsilon_fast is 0.9; expected a number"),
        ({"epsilon_slow": 0.2}, "epsilon_slow is 0.2, but flux hll has no numerical viscosity"),
        ({"gamma": 1.0}, "gamma is 1; expected a number above 1"),
        ({"density_floor": -1.0}, "density_floor is -1; expected a number above 0"),
        ({"gama": 1.4}, "option 'gama' is unknown (did you mean 'gamma'?)"),
        ({"dt": 0.1}, "option 'dt' is unknown"),
        ({"flux": "roe"}, "flux is an option of IdealMHD"),
        (
            {"parameters": {"gamma": 1.4}},
            "the argument parameters= contains 'gamma', which belongs to the scheme. Pass gamma= as",
        ),
        ({"parameters": {"flux": 1.0}}, "Pass flux= to IdealMHD"),
    ],
)
def test_invalid_parameters_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as raised:
        MHDSimulation(gas(), **options)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("courant", 1.0, "courant is 1; expected less than 1"),
        ("courant", 0.0, "courant is 0; expected a number above 0 and below 1"),
        ("gamma", 0.9, "gamma is 0.9; expected a number above 1"),
        ("limiter", 3.0, "limiter is 3; expected"),
    ],
)
def test_constant_parameters_cannot_be_changed(name: str, value: float, words: str) -> None:
    sim = MHDSimulation(gas())
    sim.set_state(rho=1.0, p=1.0)
    sim.run(steps=1)
    sim.parameters[name] = value
    with pytest.raises(InputError) as refused:
        sim.run(steps=1)
    assert words in str(refused.value)
    assert sim.steps == 1


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            {"rho": 1.0, "p": -2.0},
            "pressure at the start is -2 at cell (0,)",
        ),
        (
            {"rho": lambda x: hc.where(x > 0.5, -1.0, 1.0), "p": 1.0},
            "density at the start is -1 at cell (8,)",
        ),
        ({"rho": 1.0, "p": 1.0, "v": (0.0, 0.0)}, "v is (0.0, 0.0); expected a list or tuple of three"),
        ({"rho": lambda x, y: x, "p": 1.0}, "rho is a function that fails on the coordinates"),
        ({"rho": 1.0, "p": lambda x: float(x)}, "p is a function that fails on the coordinates"),
        ({"rho": np.ones(16), "p": 1.0}, "rho is an array"),
    ],
)
def test_invalid_initial_states_are_rejected(state: dict[str, Any], words: str) -> None:
    sim = MHDSimulation(gas(), threads=1)

    def begin() -> None:
        sim.set_state(**state)
        sim.run(steps=1)

    with pytest.raises(InputError) as raised:
        begin()
    assert words in str(raised.value)


def test_unset_fields_are_an_invalid_initial_state() -> None:
    with pytest.raises(InputError, match="density at the start is 0 at cell"):
        MHDSimulation(gas(), threads=1).run(steps=1)


def test_floors_are_counted_and_give_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    sim = MHDSimulation(gas(), threads=1, density_floor=0.5, density_protection=0.0)
    sim.set_state(rho=0.1, p=1.0)
    with caplog.at_level(logging.WARNING, "halocline"):
        sim.run(steps=1)
        sim.run(steps=1)
    assert sim.events["density floor"] == {"count": 16, "share": 0.5, "first_cell": [0], "first_step": 0}
    assert [log_record.getMessage().split(":")[0] for log_record in caplog.records] == ["density floor"]


@pytest.mark.parametrize(("share", "warns"), [(0.4, True), (0.6, False), (0.0, False)])
def test_the_threshold_of_the_warning_can_be_set(
    share: float, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The floor acts in all cells in the first of two steps, and the warning uses the selected share."""
    sim = MHDSimulation(gas(), threads=1, density_floor=0.5, density_protection=0.0, warn_above=share)
    sim.set_state(rho=0.1, p=1.0)
    with caplog.at_level(logging.WARNING, "halocline"):
        sim.run(steps=2)
    assert sim.events["density floor"]["share"] == 0.5
    assert bool(caplog.records) == warns


@cases("axes", [1, 2, 3], default=[2])
def test_quantities_agree_with_their_definition(axes: int) -> None:
    """The quantities agree with NumPy, which is independent of expressions."""
    h = (0.25, 0.2, 0.125)
    shape = (8, 7, 6)[:axes]
    grid = hc.Grid(shape, extent=[n * d for n, d in zip(shape, h, strict=False)], periodic=True)
    mhd = IdealMHD(grid)
    sim = MHDSimulation(mhd, gamma=1.4, threads=1)
    chance = np.random.default_rng(3)
    for field in mhd.fields:
        sim[field] = 1.0 + chance.random(grid.shape)
    sim[mhd.E] = 20.0
    rho, E, m, b = (np.array([sim.gather(f) for f in fs]) for fs in ([mhd.rho], [mhd.E], mhd.m, mhd.b))

    B = b.copy()
    for a in range(axes):
        B[a] = 0.5 * (b[a] + np.roll(b[a], -1, a))
    v = m / rho
    p = 0.4 * (E[0] - 0.5 * (rho[0] * (v**2).sum(0) + (B**2).sum(0)))
    expected = {"rho": rho[0], "p": p, "kinetic": 0.5 * (v**2).sum(0), "p_magnetic": 0.5 * (B**2).sum(0)}
    expected["mach"] = np.sqrt((v**2).sum(0) / (1.4 * p / rho[0]))
    expected |= {f"v_{name}": v[a] for a, name in enumerate("xyz")}
    expected |= {f"B_{name}": B[a] for a, name in enumerate("xyz")}

    def slope(component: int, axis: int) -> Any:
        if axis >= axes:
            return 0.0
        return (np.roll(B[component], -1, axis) - np.roll(B[component], 1, axis)) / (2 * h[axis])

    for a, name in enumerate("xyz"):
        y, z = (a + 1) % 3, (a + 2) % 3
        if min(y, z) < axes:
            expected[f"j_{name}"] = slope(z, y) - slope(y, z)
    if axes > 1:
        expected["div_b"] = sum((np.roll(b[a], -1, a) - b[a]) / h[a] for a in range(axes))

    actual = {name: grid.field(f"{name}_found") for name in sim.quantities}
    assert actual.keys() == expected.keys()
    for name, field in actual.items():  # all in one kernel
        sim[field] = sim.quantities[name]
    for name, values in expected.items():
        np.testing.assert_allclose(sim[actual[name]], values, rtol=1e-12, atol=1e-12, err_msg=name)
    assert np.array_equal(sim.gather(sim.quantities["mach"]), sim[actual["mach"]])


def test_a_source_reads_a_parameter_of_its_own() -> None:
    mhd = gas(source=lambda w: Source(m=(w.rho * hc.parameter("g"), 0.0, 0.0)))
    sim = MHDSimulation(mhd, parameters={"g": 0.5}, threads=1)
    sim.set_state(rho=2.0, p=1.0)
    sim.run(until=0.1)
    assert np.allclose(sim[mhd.m[0]], 0.1, rtol=1e-12)
    sim.parameters["g"] = -0.5
    sim.run(until=0.2)
    assert np.allclose(sim[mhd.m[0]], 0.0, atol=1e-12)


@cases("by", ["potential", "sampling"], default=["sampling"])
def test_a_field_with_divergence_gives_a_warning(by: str, caplog: pytest.LogCaptureFixture) -> None:
    grid = hc.Grid((16, 16), extent=2 * np.pi, periodic=True)
    mhd = IdealMHD(grid)
    sim = MHDSimulation(mhd, threads=1)
    b = (lambda x, y: -hc.sin(x + y), lambda x, y: hc.sin(x + 2 * y), 0.0)
    if by == "potential":
        b = curl(grid, lambda x, y: (0.0, 0.0, hc.cos(x + y)))
    sim.set_state(rho=1.0, p=1.0, b=b)
    with caplog.at_level(logging.WARNING, logger="halocline"):
        sim.run(steps=1)
    assert ("has a divergence" in caplog.text) == (by == "sampling")
