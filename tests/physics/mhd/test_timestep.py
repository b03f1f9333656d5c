"""The Courant step: limits of schemes, rates computed by hand, and stability below the limits only."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.errors import InputError
from halocline.lang.operators import first_coefficients, second_coefficients
from halocline.physics.mhd import MHD, Physics, parameters
from halocline.physics.mhd.timestep import LIMITS, Courant, first_symbol, second_symbol
from halocline.problems.problem import Problem
from halocline.solvers.schemes import SCHEMES, stable_until
from suites import cases

Array = NDArray[np.float64]

ORDERS = (2, 4, 6, 8)
GAS = {"nu": 0.0, "zeta": 0.0, "cs0": 1.0}
FIELD = {"eta": 0.0, "mu0": 1.0}


# -- schemes -------------------------------------------------------------------------------------------


# along the imaginary and the real axis (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.2)
KNOWN = {
    "euler": (0.0, 2.0),
    "rk2": (0.0, 2.0),
    "rk3": (math.sqrt(3), 2.512745),
    "rk4": (math.sqrt(8), 2.785294),
    "rk3-previous": (math.sqrt(3), 2.512745),
    "ssprk3": (math.sqrt(3), 2.512745),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_stability_limits_of_schemes_are_computed(name: str):
    result = stable_until(SCHEMES[name], 1j), stable_until(SCHEMES[name], -1)
    assert result == pytest.approx(KNOWN[name], abs=1e-6)


class Implicit(hc.Euler):
    """Scheme with the amplification factor of backward Euler."""

    def amplification(self, z: complex) -> complex:
        return 1 / (1 - z)


class HalfImplicit(Implicit):
    """Scheme that is explicit for waves and backward Euler for damped modes."""

    def amplification(self, z: complex) -> complex:
        return super().amplification(z.real) * hc.RK3().amplification(1j * z.imag)


def test_unconditionally_stable_terms_set_no_limit():
    assert stable_until(Implicit(), 1j) == stable_until(Implicit(), -1) == math.inf
    travel, damping = Courant(scheme=HalfImplicit()).numbers()
    assert travel == pytest.approx(0.8 * math.sqrt(3), abs=1e-6)
    assert damping == math.inf
    sim = still(scheme=HalfImplicit(), parameters={**GAS, "nu": 1e9})
    sim.run(steps=1)
    assert Courant().limit(sim.values) == "advection"
    with pytest.raises(InputError, match=r"stable for any time step.*Set a fixed time step"):
        still(scheme=Implicit())


@pytest.mark.parametrize("name", SCHEMES)
def test_a_step_has_the_amplification_of_its_scheme(name: str):
    grid = hc.Grid((4,), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    a, b = -0.7, 0.9
    sim = hc.Simulation(
        grid, lambda: {u: a * u - b * v, v: a * v + b * u}, scheme=SCHEMES[name], dt=1.0, threads=1
    )
    sim["u"], sim["v"] = 1.0, 0.0
    sim.run(steps=1)
    result = complex(sim["u"][0], sim["v"][0])
    assert abs(result - SCHEMES[name].amplification(complex(a, b))) < 1e-14


@pytest.mark.parametrize("name", SCHEMES)
def test_advection_and_diffusion_at_both_limits_are_stable(name: str):
    travel, damping = Courant(scheme=SCHEMES[name]).numbers()
    most = max(
        abs(SCHEMES[name].amplification(complex(-x, y)))
        for x in np.linspace(0, damping, 60)
        for y in np.linspace(0, travel, 60)
    )
    assert most <= (1.001 if name in ("euler", "rk2") else 1.0) + 1e-8


# -- symbols -------------------------------------------------------------------------------------------


def second_of(weights: list[float], theta: Array) -> Array:
    """Return the negative symbol of the second derivative."""
    return -weights[0] - 2 * sum(d * np.cos(k * theta) for k, d in enumerate(weights[1:], 1))


@pytest.mark.parametrize("order", ORDERS)
def test_no_wave_of_the_grid_has_a_greater_rate(order: int):
    theta = np.linspace(-np.pi, np.pi, 721)
    first = 2 * sum(float(c) * np.sin(k * theta) for k, c in enumerate(first_coefficients(order), 1))
    weights = [float(d) for d in second_coefficients(order)]
    assert first_symbol(order) == pytest.approx(first.max(), rel=1e-4)
    assert first_symbol(order) >= first.max() - 1e-9
    assert second_symbol(order) == pytest.approx(second_of(weights, theta).max(), rel=1e-12)

    # ∇∇· and -∇² of a vector in three dimensions, with mixed derivatives along the diagonals only
    h = np.array([1.0, 0.7, 1.6])
    angles = np.array(np.meshgrid(*[np.linspace(-np.pi, np.pi, 25)] * 3)).reshape(3, -1)
    graddiv = np.zeros((angles.shape[1], 3, 3))
    for i in range(3):
        graddiv[:, i, i] = second_of(weights, angles[i]) / h[i] ** 2
        for j in set(range(3)) - {i}:
            mixed = (
                second_of(weights, angles[i] + angles[j]) - second_of(weights, angles[i] - angles[j])
            ) / 4
            graddiv[:, i, j] = mixed / (h[i] * h[j])
    laplacian = np.trace(graddiv, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    most = second_symbol(order) * (1 / h**2).sum() * (1 + 1e-12)
    assert np.linalg.eigvalsh(laplacian - graddiv).max() <= most  # the current of Alfvén waves
    assert np.linalg.eigvalsh(laplacian + graddiv / 3).max() <= 4 / 3 * most  # viscosity
    assert np.linalg.eigvalsh(graddiv).max() <= most  # bulk viscosity


# -- rates ---------------------------------------------------------------------------------------------


EVERYTHING = Physics(imposed=True, cooling=True, upwind=True, hyperdiffusion=True, shock=True)
ALL = {
    "nu": 0.01, "zeta": 0.02, "cs0": 1.1, "eta": 0.03, "mu0": 1.3, "gamma": 1.5, "cp": 1.2, "lnrho0": 0.1,
    "lnT0": 0.2, "K": 0.04, "nu3": 1e-7, "eta3": 2e-7, "D3": 3e-7, "chi3": 1e-7, "nu_shock": 0.1,
    "B_x": 0.3, "B_y": -0.2, "B_z": 0.1, "heating": -0.05, "tau_cool": 30.0, "T_cool": 0.7,
}  # fmt: skip
SHAPE, H = (12, 10), (0.5, 0.4)


@cache
def looked(order: int, physics: Physics) -> tuple[hc.Simulation, dict[str, Array]]:
    """Return a simulation that computes the Courant step, and its fields."""
    grid = hc.Grid(SHAPE, extent=tuple(n * h for n, h in zip(SHAPE, H, strict=True)), periodic=True)
    mhd = MHD(grid, physics)

    @hc.program
    def look() -> None:
        Courant().step(mhd)

    names = [name for name in ALL if name in read(physics)]
    sim = hc.Simulation(grid, look, parameters={name: ALL[name] for name in names}, order=order, threads=1)
    draw = np.random.default_rng(3)
    fields = {f.name: draw.uniform(-0.3, 0.5, SHAPE) for f in mhd.fields}
    for name, values in fields.items():
        sim[name] = values
    return sim, fields


def read(physics: Physics) -> set[str]:
    return {*parameters.read_by(physics), *(["lnT0"] if physics.entropy else [])}


def by_hand(fields: Mapping[str, Array], p: Mapping[str, float]) -> dict[str, float]:
    """Return the rates at sixth order."""

    def d(f: Array, axis: int) -> Array:
        return sum(
            c * (np.roll(f, -k, axis) - np.roll(f, k, axis)) for k, c in ((1, 45), (2, -9), (3, 1))
        ) / (60 * H[axis])

    squares, sixths = sum(h**-2 for h in H), sum(h**-6 for h in H)
    rho = np.exp(fields["lnrho"])
    cs2 = p["cs0"] ** 2 * np.exp(
        p["gamma"] / p["cp"] * fields["s"] + (p["gamma"] - 1) * (fields["lnrho"] - p["lnrho0"])
    )
    B = [
        p["B_x"] + d(fields["A_z"], 1),
        p["B_y"] - d(fields["A_z"], 0),
        p["B_z"] + d(fields["A_y"], 0) - d(fields["A_x"], 1),
    ]
    alfven2 = sum(b**2 for b in B) / (p["mu0"] * rho)
    T = math.exp(p["lnT0"]) * cs2 / p["cs0"] ** 2
    flow = (abs(fields["u_x"]) / H[0] + abs(fields["u_y"]) / H[1]).max()
    profile = np.maximum(-d(fields["u_x"], 0) - d(fields["u_y"], 1), 0)
    for axis in (0, 1):
        profile = np.max([np.roll(profile, k, axis) for k in range(-2, 3)], axis=0)
    for axis in (0, 1):
        profile = sum(w / 64 * np.roll(profile, k - 3, axis) for k, w in enumerate((1, 6, 15, 20, 15, 6, 1)))
    first, second = 1.5859784, 272 / 45
    return {
        "advection": first * flow,
        "fast magnetosonic waves": np.sqrt((first**2 * cs2 + second * alfven2).max() * squares),
        "viscosity": second * (4 / 3 * p["nu"] + p["zeta"]) * squares,
        "shock viscosity": second * p["nu_shock"] * profile.max() * min(H) ** 2 * squares,
        "resistivity": second * p["eta"] * squares,
        "conduction": second * (p["gamma"] * p["K"] / (p["cp"] * rho)).max() * squares,
        "heating": (p["gamma"] / p["cp"] * abs(p["heating"]) / (rho * T)).max(),
        "cooling": (p["T_cool"] / T).max() / p["tau_cool"],
        "upwinding": 64 / 60 * flow,
        "hyperdiffusion": 64 * max(p["nu3"], p["eta3"], p["D3"], p["chi3"]) * sixths,
    }


@pytest.mark.parametrize(
    ("limit", "changed", "speed"),
    [
        ("advection", {}, 10.0),
        ("fast magnetosonic waves", {}, 1.0),
        ("fast magnetosonic waves", {"B_z": 20.0}, 1.0),
        ("viscosity", {"nu": 2.0}, 1.0),
        ("viscosity", {"zeta": 2.0}, 1.0),
        ("shock viscosity", {"nu_shock": 100.0}, 1.0),
        ("resistivity", {"eta": 3.0}, 1.0),
        ("conduction", {"K": 2.0}, 1.0),
        ("heating", {"heating": 300.0}, 1.0),
        ("cooling", {"tau_cool": 1e-3}, 1.0),
        ("hyperdiffusion", {"nu3": 0.01}, 1.0),
        ("hyperdiffusion", {"D3": 0.01}, 1.0),
        ("hyperdiffusion", {"chi3": 0.01}, 1.0),
        ("hyperdiffusion", {"eta3": 0.01}, 1.0),
    ],
)
def test_rates_and_time_step_agree_with_hand_calculations(
    limit: str, changed: dict[str, float], speed: float
):
    sim, fields = looked(6, EVERYTHING)
    scaled = {name: values * (speed if name[0] == "u" else 1.0) for name, values in fields.items()}
    for axis in "xyz":
        sim[f"u_{axis}"] = scaled[f"u_{axis}"]
    p = {**ALL, **changed}
    for name in ALL.keys() & read(EVERYTHING):
        sim.parameters[name] = p[name]
    sim.run(steps=1)
    expected = by_hand(scaled, p)
    actual = {name: sim.values[LIMITS[name]] for name in LIMITS}
    assert actual == pytest.approx(expected, rel=1e-7)
    r = expected
    damped = (
        max(
            r["viscosity"] + r["shock viscosity"],
            r["resistivity"],
            r["conduction"] + r["heating"] + r["cooling"] + r["upwinding"],
        )
        + r["hyperdiffusion"]
    )
    travel = r["advection"] + r["fast magnetosonic waves"]
    step_length = 1 / max(travel / (0.8 * math.sqrt(3)), damped / (0.6 * 2.5127453))
    assert sim.values["dt_courant"] == pytest.approx(step_length, rel=1e-6)
    # the limits of a step of this length, and of a shortened step
    assert Courant().limit({**sim.values, "dt": sim.values["dt_courant"]}) == limit
    assert Courant().limit({**sim.values, "dt": 0.9 * sim.values["dt_courant"]}) == "until"


def test_first_order_upwinding_limits_the_step():
    sim, fields = looked(2, Physics(entropy=False, magnetic=False, upwind=True))
    for axis in "xyz":
        sim[f"u_{axis}"] = 20.0 * fields[f"u_{axis}"]
    sim.run(steps=1)
    flow = 20 * (abs(fields["u_x"]) / H[0] + abs(fields["u_y"]) / H[1]).max()
    assert sim.values["dt_courant"] == pytest.approx(0.6 * 2.5127453 / (2 * flow), rel=1e-6)
    assert Courant().limit({**sim.values, "dt": sim.values["dt_courant"]}) == "upwinding"


# -- runs ----------------------------------------------------------------------------------------------


def test_alfven_waves_that_are_faster_than_sound_are_stable():
    record = Problem("alfven-decay", [64], {"B_x": 10.0}).run(until=1.5, every=100, threads=1).record
    # the field 0.1 B_x over √(μ₀ ρ) decays as exp(-ν t)
    assert record.diagnostics["u_rms"] == pytest.approx(math.exp(-0.02 * 1.5), abs=1e-2)
    assert record.limiter == "until"
    assert {row["limiter"] for row in record.series[1:-1]} == {"fast magnetosonic waves"}


@cases(
    "settings",
    [{"nu3": 1e-4, "D3": 1e-4}, {"nu_shock": 5.0}, {"nu_shock": 50.0, "nu": 0.05}],
    default=[{"nu3": 1e-4, "D3": 1e-4}],
)
def test_hyperdiffusion_and_shock_viscosity_are_stable(settings: dict[str, float]):
    grid = hc.Grid((32,), extent=2 * np.pi, periodic=True)
    mhd = MHD(grid, Physics(entropy=False, magnetic=False, hyperdiffusion=True, shock=True))
    p = {**GAS, "nu": 0.01, "nu3": 0.0, "D3": 0.0, "nu_shock": 0.0, **settings}
    sim = hc.Simulation(
        grid, mhd.equations, parameters=p, scheme=hc.RK3(), dt=lambda: Courant().step(mhd), order=6, threads=1
    )
    draw = np.random.default_rng(1)
    x = (np.arange(32) + 0.5) * 2 * np.pi / 32
    sim["u_x"] = np.sin(x) + 0.1 * draw.uniform(-1, 1, 32)
    sim["u_y"] = 0.1 * draw.uniform(-1, 1, 32)
    sim.run(steps=300)
    assert np.abs(sim["u_x"]).max() < 1.2
    assert np.abs(sim["u_y"]).max() < 0.1
    assert np.abs(sim["lnrho"]).max() < 2


# of waves of two cells: B along x, the direction of travel, and their damping
MODES = {
    "alfven": {"B_x": 1.0, "cs0": 1e-3},
    "viscosity": {"nu": 1.0, "cs0": 1e-3},
    "resistivity": {"eta": 1.0, "cs0": 1e-3},
}


@cases("scheme, order, steps", [("rk3", 6, 400), ("rk4", 2, 150)], default=[("rk4", 2, 150)])
def test_steps_are_stable_below_the_limit_and_not_above(scheme: str, order: int, steps: int):
    grid = hc.Grid((16,), extent=2 * np.pi, periodic=True)
    mhd = MHD(grid, Physics(entropy=False, imposed=True))
    none = {**GAS, **FIELD, "B_x": 0.0, "B_y": 0.0, "B_z": 0.0}
    sim = hc.Simulation(
        grid,
        mhd.equations,
        parameters={**none, "length": 0.0},
        scheme=SCHEMES[scheme],
        dt=lambda length: length + 0.0,
        order=order,
        threads=1,
    )
    h = 2 * np.pi / 16
    limits = stable_until(SCHEMES[scheme], 1j), stable_until(SCHEMES[scheme], -1)
    second = second_symbol(order) / h**2
    longest = {
        "alfven": limits[0] / math.sqrt(second),
        "viscosity": limits[1] / (4 / 3 * second),
        "resistivity": limits[1] / second,
    }
    draw = np.random.default_rng(5)  # so small that growing modes remain linear
    noise = {f.name: 1e-20 * draw.uniform(-1, 1, 16) for f in mhd.fields}
    for mode, settings in MODES.items():
        grown = []
        for share in (0.98, 1.02):
            for name, values in {**none, **settings, "length": share * longest[mode]}.items():
                sim.parameters[name] = values
            for name, values in noise.items():
                sim[name] = values
            sim.run(steps=steps)
            grown.append(max(np.abs(sim[name]).max() for name in ("u_x", "u_y", "A_y")) / 1e-20)
        assert grown[0] < 20, mode  # a wave of A is also one of u, with another amplitude
        assert grown[1] > 200, mode


# -- end of a run --------------------------------------------------------------------------------------


def still(**options: Any) -> hc.Simulation:
    """Return a simulation of a gas on which no equation acts."""
    grid = hc.Grid((8,), extent=1.0, periodic=True)
    mhd = MHD(grid, Physics(entropy=False, magnetic=False))
    floor = options.pop("floor", 0.0)
    sim = hc.Simulation(
        grid,
        lambda lnrho: {lnrho: 0.0 * lnrho},
        dt=lambda: Courant(floor=floor).step(mhd),
        threads=1,
        **{"scheme": hc.RK3(), "parameters": GAS, **options},
    )
    sim["u_x"] = 1.0
    return sim


def test_a_step_that_collapses_ends_the_run_with_the_limit():
    sim = still(after_step=lambda u: u.set(1000.0 * u))
    outcome = sim.run(steps=40)
    assert outcome.reason == "the time step is below 1e-12 of the first, limited by advection"
    assert 4 <= sim.steps <= 6
    # the same with a given floor, and no end above it
    assert still(floor=0.5).run(steps=4).reason == "the time step is below 0.5, limited by advection"
    assert still(floor=1e-3).run(steps=4).reason == "completed"
    # a rate that is not finite has no step
    sim = still()
    sim["u_x"] = 1e308
    assert sim.run(steps=1).reason == "the rate of advection is not finite"


@cases("lost", [False, True], default=[True])
def test_fast_heat_conduction_limits_the_step(lost: bool):
    """Fast cooling to one temperature, or equivalent heating by the user, limits the step."""
    grid = hc.Grid((8,), extent=8.0, periodic=True)
    mhd = MHD(grid, Physics(magnetic=False, cooling=not lost))
    p = parameters.settings(mhd.physics)
    p |= {"cp": 2.5, "tau_cool": 0.01, "T_cool": 0.3} if not lost else {"cp": 2.5}

    def loss() -> dict[str, Any]:
        rate = 100.0 * hc.exp(mhd.lnrho)
        return {"heat_gain": 0.3 * rate, "heat_loss": rate * mhd.gas.T} if lost else {}

    sim = hc.Simulation(
        grid,
        lambda: mhd.equations(**loss()),
        parameters=parameters.complete(mhd.physics, p),
        scheme=hc.RK3(),
        dt=lambda: Courant().step(mhd, **loss()),
        order=6,
        threads=1,
    )
    sim["s"] = 0.0  # T = 1 / ((γ - 1) c_p) = 0.6
    sim.run(steps=200)
    assert Courant().limit(sim.values) == ("heating" if lost else "cooling")
    T = math.log(0.3 / 0.6) * 2.5 / (5 / 3)
    assert sim["s"] == pytest.approx(np.full(8, T), abs=1e-3)


@pytest.mark.parametrize("name", SCHEMES)
def test_unstable_schemes_give_a_warning(name: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="halocline"):
        still(scheme=SCHEMES[name])
    warnings = [record.getMessage() for record in caplog.records if "waves" in record.getMessage()]
    assert len(warnings) == (name in ("euler", "rk2"))
    assert all(
        f"in scheme {name} waves and advection grow at any time step" in warning for warning in warnings
    )


def test_a_scheme_with_unknown_limits_is_rejected():
    class Own:
        def step(self, rhs: Any, dt: Any, make: Any) -> None:
            hc.Euler().step(rhs, dt, make)

    with pytest.raises(InputError, match="has no method 'amplification'"):
        still(scheme=Own())
