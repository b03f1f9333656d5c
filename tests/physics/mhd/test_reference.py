"""Tests of the NumPy reference of magnetohydrodynamics: closed forms, spectra and conservation.

The terms are compared with other forms of the same equations: stresses and fluxes that are differentiated as
a whole, by Fourier transforms. An error would have to occur in both forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mhd_reference as mhd
from loops import some
from mhd_reference import Array, Differences, Parameters, State

ORDERS = (2, 4, 6, 8)
LENGTHS = (2 * math.pi, 1.5 * math.pi, 3.0)  # lengths of the box, unequal

FULL = Parameters(
    gamma=1.4,
    c_p=1.3,
    c_s0=0.9,
    lnrho0=0.2,
    lnT0=-0.3,
    mu0=1.7,
    nu=0.3,
    zeta=0.23,
    eta=0.4,
    K0=0.6,
    K_rho=0.7,
    K_T=-1.2,
    heating=0.35,
    tau_cool=2.5,
    T_cool=0.8,
    gravity=(0.1, -0.2, 0.3),
)


def close(result: Array, expected: Array | float, scale: Array | float, ulp: float = 200) -> None:
    """Assert equality up to rounding errors of numbers of the given scale."""
    difference = np.max(np.abs(result - expected))
    assert difference <= ulp * 2.0**-53 * np.max(np.abs(scale)), f"{difference} of {np.max(np.abs(scale))}"


def sizes(shape: Sequence[int]) -> tuple[float, ...]:
    return tuple(length / n for length, n in zip(LENGTHS, shape, strict=False))


def random_state(shape: Sequence[int], p: Parameters, seed: int = 0) -> State:
    random = np.random.default_rng(seed)
    return {name: random.uniform(-1, 1, shape) for name in p.fields}


def waves(shape: Sequence[int], seed: int, amplitude: float = 0.2) -> Array:
    """Return a field of the longest waves only, the same function on every grid."""
    random = np.random.default_rng(seed)
    x = np.meshgrid(*(2 * math.pi * np.arange(n) / n for n in shape), indexing="ij")
    f = np.zeros(shape)
    for _ in range(4):
        phase = sum(int(random.integers(-1, 2)) * x[axis] for axis in range(len(shape)))
        f += amplitude / 4 * random.uniform(0.5, 1) * np.sin(phase + random.uniform(0, 2 * math.pi))
    return f + amplitude * random.uniform(-1, 1)


def smooth_state(shape: Sequence[int], p: Parameters) -> State:
    return {name: waves(shape, seed) for seed, name in enumerate(p.fields)}


def vector(of: dict[str, Any], names: Sequence[str] = mhd.VELOCITY) -> Array:
    return np.stack([of[name] for name in names])


class Spectral:
    """Derivatives by Fourier transforms, exact for all waves that the grid resolves."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.axes = len(shape)
        self.wavenumbers = []
        for axis, n in enumerate(shape):
            k = np.fft.fftfreq(n, LENGTHS[axis] / n / (2 * math.pi))
            k[n // 2] *= n % 2  # the shortest wave of an even number of cells has no slope
            self.wavenumbers.append(k.reshape([-1 if i == axis else 1 for i in range(len(shape))]))

    def by(self, f: Array, axis: int, times: int = 1) -> Array:
        if axis >= self.axes:
            return np.zeros_like(f)
        return np.fft.ifft((1j * self.wavenumbers[axis]) ** times * np.fft.fft(f, axis=axis), axis=axis).real

    def grad(self, f: Array) -> Array:
        return np.stack([self.by(f, axis) for axis in range(3)])

    def div(self, v: Sequence[Array] | Array) -> Array:
        return sum(self.by(v[axis], axis) for axis in range(3))

    def curl(self, v: Array) -> Array:
        return np.stack(
            [
                self.by(v[2], 1) - self.by(v[1], 2),
                self.by(v[0], 2) - self.by(v[2], 0),
                self.by(v[1], 0) - self.by(v[0], 1),
            ]
        )


# --- differences ---


def test_sixth_order_coefficients_are_the_published_ones():
    first, second = mhd.central(6, 1), mhd.central(6, 2)
    assert [w * 60 for w in first.values()] == [-1, 9, -45, 0, 45, -9, 1]
    assert [w * 180 for w in second.values()] == [2, -27, 270, -490, 270, -27, 2]
    assert [second[k] / 4 * 720 for k in (1, 2, 3)] == [270, -27, 2]


@pytest.mark.parametrize("order", [*ORDERS, 10, 12])
def test_coefficients_of_any_order_have_their_closed_form(order):
    r, factorial = order // 2, math.factorial
    for k in range(1, r + 1):
        share = Fraction((-1) ** (k + 1) * factorial(r) ** 2, factorial(r - k) * factorial(r + k))
        first, second = mhd.central(order, 1), mhd.central(order, 2)
        assert first[k] == -first[-k] == share / k
        assert second[k] == second[-k] == 2 * share / k**2
    assert sum(mhd.central(order, 2).values()) == mhd.central(order, 1)[0] == 0
    assert [*mhd.compact(order).values()] == [(-1) ** k * math.comb(order, k) for k in range(order + 1)]


@pytest.mark.parametrize("order", ORDERS)
def test_a_plane_wave_is_multiplied_by_the_symbol_of_its_difference(order):
    shape, modes = (16, 18, 20), (2, -1, 3)
    spacing = sizes(shape)
    d = Differences(spacing, order)
    k = [2 * math.pi * m / length for m, length in zip(modes, LENGTHS, strict=True)]
    x = np.meshgrid(*(h * np.arange(n) for h, n in zip(spacing, shape, strict=True)), indexing="ij")
    phase = sum(k[axis] * x[axis] for axis in range(3)) + 0.3
    f, slope = np.sin(phase), np.cos(phase)
    c1, c2 = mhd.central(order, 1), mhd.central(order, 2)
    radius = range(1, order // 2 + 1)
    for i in range(3):
        h, kh = spacing[i], k[i] * spacing[i]
        close(d.first(f, i), slope * sum(2 * float(c1[r]) * math.sin(r * kh) for r in radius) / h, 1 / h)
        symbol = sum(2 * float(c2[r]) * (math.cos(r * kh) - 1) for r in radius) / h**2
        close(d.second(f, i), f * symbol, 1 / h**2)
        symbol = -((4 * math.sin(kh / 2) ** 2) ** 3) / h**6
        close(d.even(f, i, 6), f * symbol, 64 / h**6)
        j = (i + 1) % 3
        area, kj = h * spacing[j], k[j] * spacing[j]
        symbol = -sum(float(c2[r]) * math.sin(r * kh) * math.sin(r * kj) for r in radius) / area
        close(d.mixed(f, i, j), f * symbol, 1 / area)
        close(d.mixed(f, j, i), f * symbol, 1 / area)


OPERATORS: dict[str, tuple[Callable[[Differences, Array], Array], Callable[[Spectral, Array], Array]]] = {
    "gradient": (lambda d, v: d.gradient(v[0]), lambda e, v: e.grad(v[0])),
    "divergence": (lambda d, v: sum(d.first(v[i], i) for i in range(3)), lambda e, v: e.div(v)),
    "curl": (lambda d, v: mhd.curl(d.gradient(v)), lambda e, v: e.curl(v)),
    "laplacian": (lambda d, v: d.laplacian(v), lambda e, v: np.stack([e.div(e.grad(f)) for f in v])),
    "gradient of divergence": (lambda d, v: d.gradient_of_divergence(v), lambda e, v: e.grad(e.div(v))),
    "mixed": (lambda d, v: d.mixed(v[0], 0, 2), lambda e, v: e.by(e.by(v[0], 2), 0)),
    "sixth": (lambda d, v: d.sixth(v[1]), lambda e, v: sum(e.by(v[1], i, 6) for i in range(3))),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("order", ORDERS)
def test_operators_have_their_order(name, order):
    actual, expected = OPERATORS[name]
    errors = []
    for shape in ((10, 12, 14), (20, 24, 28)):
        v = np.stack([waves(shape, seed) for seed in (0, 1, 2)])
        errors.append(
            np.max(np.abs(actual(Differences(sizes(shape), order), v) - expected(Spectral(shape), v)))
        )
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2 if name == "sixth" else order, abs=0.35)


@pytest.mark.parametrize("order", ORDERS)
def test_upwinding_is_the_stencil_shifted_up_the_wind(order):
    """Upwind advection reads points from k/2 upwind to k/2 - 1 downwind, with order k - 1."""
    f, u = random_state((40,), Parameters(), seed=4)["lnrho"], np.full((3, 40), 0.7)
    u[0, 20:] = -1.3
    (h,) = spacing = sizes((40,))
    d = Differences(spacing, order)
    result = -u[0] * d.first(f, 0) + d.upwinding(f, u)
    from_below = range(-(order // 2), order // 2)
    weights = mhd.weights(from_below, 1)
    for x in range(40):
        side = 1 if u[0, x] > 0 else -1
        slope = sum(float(w) * f[(x + side * o) % 40] for o, w in zip(from_below, weights, strict=True)) / h
        assert result[x] == pytest.approx(-u[0, x] * side * slope, abs=1e-12)


# --- terms ---


def other_form(state: State, p: Parameters, zeta_s: Array) -> dict[str, dict[str, Array]]:
    """Return the terms from stresses and fluxes differentiated as a whole; vector terms under "u" and "A"."""
    e = Spectral(state["lnrho"].shape)
    u, A = vector(state), vector(state, mhd.POTENTIAL)
    rho, s = np.exp(state["lnrho"]), state["s"]
    c_v = p.c_p / p.gamma
    # from the polytrope of each entropy: p = ρ c_s²/γ, T by the ratio of squared sound speeds
    squared = p.c_s0**2 * (rho / math.exp(p.lnrho0)) ** (p.gamma - 1) * np.exp(s / c_v)
    pressure, T = rho * squared / p.gamma, math.exp(p.lnT0) * squared / p.c_s0**2
    K = p.K0 * (rho / math.exp(p.lnrho0)) ** p.K_rho * (T / math.exp(p.lnT0)) ** p.K_T
    gradients = np.stack([e.grad(component) for component in u])
    div_u = e.div(u)
    S = (gradients + gradients.transpose(1, 0, 2, 3, 4)) / 2 - np.eye(3)[:, :, None, None, None] * div_u / 3
    B = e.curl(A)
    j = e.curl(B) / p.mu0

    def along(f: Array) -> Array:
        """Return u·∇f = ∇·(u f) - f ∇·u."""
        return e.div(u * f) - f * div_u

    tension = np.stack([e.div(B * B[i]) for i in range(3)])
    return {
        "lnrho": {
            "advection": -along(state["lnrho"]),
            "compression": -div_u,
        },
        "u": {
            "advection": -np.stack([along(component) for component in u]),
            "pressure": -e.grad(pressure) / rho,
            "lorentz": (tension - e.grad((B * B).sum(axis=0) / 2)) / p.mu0 / rho,
            "viscosity": np.stack([e.div(2 * rho * p.nu * S[i]) for i in range(3)]) / rho,
            "bulk viscosity": p.zeta * e.grad(div_u),
            "shock viscosity": e.grad(rho * zeta_s * div_u) / rho,
            "gravity": np.array(p.gravity)[:, None, None, None] * np.ones_like(u),
            "forcing": p.forcing,
        },
        "s": {
            "advection": -along(s),
            "heating": p.heating / (rho * T),
            "cooling": -c_v * (T - p.T_cool) / p.tau_cool / T,
            "conduction": e.div(K * e.grad(T)) / (rho * T),
            "ohmic heating": p.eta * p.mu0 * np.einsum("ixyz,ixyz->xyz", j, j) / (rho * T),
            "viscous heating": 2 * p.nu * np.einsum("ijxyz,ijxyz->xyz", S, gradients) / T,
            "bulk heating": p.zeta * div_u**2 / T,
            "shock heating": zeta_s * div_u**2 / T,
        },
        "A": {
            "induction": np.cross(u, B, axis=0),
            "resistivity": p.eta * (e.grad(e.div(A)) - p.mu0 * j),
        },
    }


ALGEBRAIC = {"gravity", "forcing", "heating", "cooling"}


@pytest.mark.parametrize("order", ORDERS)
def test_every_term_converges_to_an_equivalent_form(order, monkeypatch):
    errors = []
    for shape in ((14, 16, 18), (28, 32, 36)):
        zeta_s, f = waves(shape, 20), np.stack([waves(shape, seed) for seed in (21, 22, 23)])
        # input of the terms of a shock viscosity; its maximum is not smooth
        monkeypatch.setattr(mhd, "shock_viscosity", lambda *_, zeta_s=zeta_s: zeta_s)
        p = replace(FULL, order=order, forcing=f, nu_shock=1.0)
        state = smooth_state(shape, p)
        actual, expected = mhd.terms(state, sizes(shape), p), other_form(state, p, zeta_s)
        of_field = {name: [name] for name in ("lnrho", "s")} | {"u": mhd.VELOCITY, "A": mhd.POTENTIAL}
        error = {}
        for field, names in some(of_field.items()):
            for name in some(names):
                assert actual[name].keys() == expected[field].keys()
            for term, value in expected[field].items():
                difference = np.squeeze(vector({n: actual[n][term] for n in names}, names)) - value
                error[field, term] = np.max(np.abs(difference)) / np.max(np.abs(value))
        errors.append(error)
    for name, coarse in some(errors[0].items()):
        if name[1] in ALGEBRAIC:
            assert coarse < 1e-14, name
        else:
            assert errors[1][name] < coarse < 0.3, name
            rate = math.log2(coarse / errors[1][name])
            assert rate == pytest.approx(order, abs=0.5), f"{name}: {coarse} of order {rate}"


@pytest.mark.parametrize("order", ORDERS)
def test_terms_of_a_beltrami_flow_and_field_are_exact(order):
    """∇×v = k v gives no Lorentz force, j = k² A/μ₀, u×B = 0 for parallel u and A, and known decay rates."""
    n, p = 20, replace(FULL, order=order)
    h = 2 * math.pi / n
    x, y, z = np.meshgrid(*(h * np.arange(n),) * 3, indexing="ij")
    v = np.stack(
        [
            0.5 * np.sin(z) + 0.2 * np.cos(y),
            0.3 * np.sin(x) + 0.5 * np.cos(z),
            0.2 * np.sin(y) + 0.3 * np.cos(x),
        ]
    )
    state = dict(zip((*mhd.VELOCITY, *mhd.POTENTIAL), (*v, *(2 * v)), strict=True))
    state |= {"lnrho": np.full((n,) * 3, 0.4), "s": np.full((n,) * 3, -0.2)}
    result = mhd.terms(state, (h,) * 3, p)
    # each component is a sum of waves along single axes: symbols in place of k and k²
    of_first, of_second = (mhd.central(order, derivative) for derivative in (1, 2))
    radius = range(1, order // 2 + 1)
    k = float(sum(2 * float(of_first[r]) * math.sin(r * h) for r in radius)) / h
    square = -sum(2 * float(of_second[r]) * (math.cos(r * h) - 1) for r in radius) / h**2
    assert k == pytest.approx(1, rel=h**order)
    assert square == pytest.approx(1, rel=h**order)
    for i, (u, A) in enumerate(zip(mhd.VELOCITY, mhd.POTENTIAL, strict=True)):
        close(result[u]["viscosity"], -p.nu * square * v[i], 1 / h)
        close(result[A]["resistivity"], -2 * p.eta * square * v[i], 1 / h)
        for name, term in ((u, "lorentz"), (u, "pressure"), (u, "bulk viscosity"), (A, "induction")):
            close(result[name][term], 0, 1 / h)
        # (u·∇)u = ∇u²/2 for a flow parallel to its curl; of order k, the order up to which the terms above
        # are exact
        slope = Spectral((n,) * 3).by((v * v).sum(axis=0) / 2, i) * LENGTHS[i] / (2 * math.pi)
        assert np.max(np.abs(result[u]["advection"] + slope)) < h**order
    rho, T = math.exp(0.4), mhd.thermal(state, p)[1]
    heat = p.eta * (2 * square) ** 2 * (v * v).sum(axis=0) / p.mu0
    close(result["s"]["ohmic heating"], heat / (rho * T), 1 / h)
    diagnostics = mhd.diagnostics(state, (h,) * 3, p)
    mean = 0.5**2 + 0.2**2 + 0.3**2  # mean of v²
    assert diagnostics["u rms"] == pytest.approx(math.sqrt(mean))
    assert diagnostics["kinetic energy"] == pytest.approx(rho * mean / 2)
    assert diagnostics["kinetic helicity"] == pytest.approx(k * mean)
    assert diagnostics["magnetic energy"] == pytest.approx(4 * k**2 * mean / (2 * p.mu0))
    assert diagnostics["magnetic helicity"] == pytest.approx(4 * k * mean)
    assert diagnostics["current helicity"] == pytest.approx(4 * k * square * mean / p.mu0)
    assert diagnostics["thermal energy"] == pytest.approx(rho * p.c_p / p.gamma * T[0, 0, 0])
    assert diagnostics["mass"] == pytest.approx(rho * (2 * math.pi) ** 3)
    assert diagnostics["max |div B|"] < 1e-13
    assert (diagnostics["s min"], diagnostics["s max"], diagnostics["s rms"]) == (
        -0.2,
        -0.2,
        pytest.approx(0.2),
    )
    assert diagnostics["ux max"] == np.max(v[0])
    assert diagnostics["uz min"] == np.min(v[2])


def test_a_sound_wave_travels_at_the_speed_of_sound():
    """A small wave to the right has ∂/∂t = -c_s ∂/∂x, with c_s0 if isothermal, else c_s of the mean state."""
    n, a = 32, 1e-7
    x = LENGTHS[0] * np.arange(n) / n
    wave = a * np.sin(2 * x)
    zero = np.zeros(n)
    for p in (replace(FULL, isothermal=True, magnetic=False), replace(FULL, magnetic=False)):
        p = replace(p, nu=0.0, zeta=0.0, K0=0.0, heating=0.0, tau_cool=None, gravity=(0, 0, 0), order=8)
        mean = {"lnrho": 0.5, "s": 0.0 if p.isothermal else 0.3}
        h = p.gamma * mean["s"] / p.c_p + (p.gamma - 1) * (mean["lnrho"] - p.lnrho0)
        speed = p.c_s0 if p.isothermal else p.c_s0 * math.exp(h / 2)
        state = {"lnrho": mean["lnrho"] + wave, "ux": speed * wave, "uy": zero, "uz": zero}
        state |= {} if p.isothermal else {"s": zero + mean["s"]}
        change = mhd.time_derivative(state, sizes((n,)), p)
        assert change["lnrho"] == pytest.approx(-speed * 2 * a * np.cos(2 * x), abs=1e-4 * a)
        assert change["ux"] == pytest.approx(-(speed**2) * 2 * a * np.cos(2 * x), abs=1e-4 * a)
        assert all(np.max(np.abs(change[f])) < 1e-14 for f in p.fields if f not in ("lnrho", "ux"))


def test_shock_viscosity_is_the_smoothed_maximum_of_the_convergence():
    shape = (9, 8, 7)
    div = random_state(shape, Parameters(), seed=6)["ux"]
    cells = list(np.ndindex(shape))
    largest = np.empty(shape)
    for cell in cells:
        cube = [np.arange(c - 2, c + 3) % n for c, n in zip(cell, shape, strict=True)]
        largest[cell] = max(0.0, -div[np.ix_(*cube)].min())
    bell = np.array([1, 6, 15, 20, 15, 6, 1]) / 64
    weights = bell[:, None, None] * bell[:, None] * bell
    result = mhd.shock_viscosity(div, (0.3, 0.2, 0.5), 1.5)
    for cell in cells:
        cube = [np.arange(c - 3, c + 4) % n for c, n in zip(cell, shape, strict=True)]
        mean = (weights * largest[np.ix_(*cube)]).sum()
        assert result[cell] == pytest.approx(1.5 * 0.2**2 * mean, rel=1e-13)
    # a single converging cell has an effect up to five cells away
    div = np.zeros((32,))
    div[10] = -1.0
    touched = np.flatnonzero(mhd.shock_viscosity(div, (1.0,), 1.0))
    assert [*touched] == [*range(5, 16)]
    assert not mhd.shock_viscosity(-div, (1.0,), 1.0).any(), "expansion is no shock"


def test_hyperdiffusion_and_upwinding_apply_to_the_selected_fields():
    shape, spacing = (8, 9, 10), sizes((8, 9, 10))
    p = replace(FULL, order=4)
    state = random_state(shape, p)
    d = Differences(spacing, 4)
    options = replace(p, nu3=0.1, eta3=0.2, D3=0.3, chi3=0.4, upwind=True)
    coefficient = (
        {"lnrho": 0.3, "s": 0.4} | dict.fromkeys(mhd.VELOCITY, 0.1) | dict.fromkeys(mhd.POTENTIAL, 0.2)
    )
    before, result = mhd.terms(state, spacing, p), mhd.terms(state, spacing, options)
    for field in p.fields:
        added = {"hyperdiffusion"} | ({"upwinding"} if field in ("lnrho", "s") else set())
        assert result[field].keys() - before[field].keys() == added
        assert all(np.array_equal(result[field][term], value) for term, value in before[field].items())
        np.testing.assert_array_equal(
            result[field]["hyperdiffusion"], coefficient[field] * d.sixth(state[field])
        )
        if field in ("lnrho", "s"):
            np.testing.assert_array_equal(
                result[field]["upwinding"], d.upwinding(state[field], vector(state))
            )
    # each term damps: the mean of f times its change is negative
    for field in ("lnrho", "s"):
        for term in ("hyperdiffusion", "upwinding"):
            uniform = state | {"ux": 0 * state["ux"] + 1.0, "uy": 0 * state["uy"] - 2.0}
            change = mhd.terms(uniform, spacing, options)[field][term]
            assert np.mean(state[field] * change) < 0, (field, term)


# --- conservation --------------

parameters = st.builds(
    replace,
    st.just(FULL),
    order=st.sampled_from(ORDERS),
    isothermal=st.booleans(),
    magnetic=st.booleans(),
    upwind=st.booleans(),
    tau_cool=st.sampled_from([None, 2.0]),
    nu3=st.sampled_from([0.0, 0.1]),
    eta3=st.sampled_from([0.0, 0.1]),
    D3=st.sampled_from([0.0, 0.1]),
    chi3=st.sampled_from([0.0, 0.1]),
    nu_shock=st.sampled_from([0.0, 1.0]),
)
seeds = st.integers(0, 2**32 - 1)


def same_terms(result: dict[str, Array], expected: dict[str, Array], field: str) -> None:
    """Assert equality up to rounding errors of the summands; sixth differences cancel the most."""
    assert result.keys() == expected.keys()
    for term, value in expected.items():
        error, scale = np.max(np.abs(result[term] - value)), np.max(np.abs(value))
        assert error <= 1e-12 * scale, f"{field}, {term}: {error} of {scale}"


@settings(max_examples=8)
@given(p=parameters, seed=seeds)
def test_rotating_the_axes_rotates_the_terms(p, seed):
    """The permutation x to y to z to x permutes the terms: no axis is special."""

    def turned(f: Array) -> Array:
        return np.transpose(f, (2, 0, 1))

    def source(name: str) -> str:
        """Return the component that becomes this component."""
        return name[0] + {"x": "z", "y": "x", "z": "y"}[name[1]] if name[1:] in ("x", "y", "z") else name

    shape, spacing = (6, 5, 7), (0.5, 0.4, 0.3)
    p = replace(p, forcing=np.random.default_rng(seed).normal(size=(3, *shape)))
    state = random_state(shape, p, seed)
    gravity, forcing = p.gravity, p.forcing
    after = replace(
        p,
        gravity=(gravity[2], gravity[0], gravity[1]),
        forcing=np.stack([turned(forcing[i]) for i in (2, 0, 1)]),
    )
    expected = mhd.terms(state, spacing, p)
    actual = mhd.terms(
        {name: turned(state[source(name)]) for name in state}, (spacing[2], spacing[0], spacing[1]), after
    )
    for name in state:
        turned_terms = {term: turned(value) for term, value in expected[source(name)].items()}
        same_terms(actual[name], turned_terms, name)


@settings(max_examples=8)
@given(p=parameters, seed=seeds, axis=st.integers(0, 2))
def test_the_terms_of_a_mirrored_state_are_mirrored(p, seed, axis):
    """u and A are true vectors and B is not: a wrong sign in a curl or a cross product changes the result."""
    shape, spacing = (6, 5, 7), (0.5, 0.4, 0.3)
    state = random_state(shape, p, seed)

    def mirrored(name: str, f: Array) -> Array:
        return np.flip(f, axis) * (-1 if name[1:] == "xyz"[axis] else 1)

    gravity = tuple(-g if i == axis else g for i, g in enumerate(p.gravity))
    expected = mhd.terms(state, spacing, p)
    actual = mhd.terms({n: mirrored(n, f) for n, f in state.items()}, spacing, replace(p, gravity=gravity))
    for name in state:
        same_terms(actual[name], {term: mirrored(name, f) for term, f in expected[name].items()}, name)


@settings(max_examples=6)
@given(p=parameters, seed=seeds, axes=st.integers(1, 2))
def test_fewer_axes_agree_with_uniform_fields_along_the_missing_axes(p, seed, axes):
    shape, spacing = (6, 5, 4)[:axes], (0.3, 0.4, 0.5)
    state = random_state(shape, p, seed)
    expected = mhd.terms(state, spacing[:axes], p)

    def thick(f: Array) -> Array:
        return np.broadcast_to(f.reshape(shape + (1,) * (3 - axes)), (*shape, 4, 3)[:3])

    actual = mhd.terms({name: thick(f).copy() for name, f in state.items()}, spacing, p)
    for name in state:
        same_terms(actual[name], {term: thick(f) for term, f in expected[name].items()}, name)


@settings(max_examples=6)
@given(p=parameters, seed=seeds)
def test_a_uniform_state_is_steady(p, seed):
    """Only the body force and the local sources remain, for any uniform flow and field."""
    values = np.random.default_rng(seed).uniform(-1, 1, len(p.fields))
    state = {name: np.full((6, 5, 4), value) for name, value in zip(p.fields, values, strict=True)}
    for field, of_field in some(mhd.terms(state, (0.3, 0.4, 0.5), p).items()):
        for term, value in some(of_field.items()):
            if term in ("gravity", "heating", "cooling"):
                assert np.ptp(value) == 0
                assert value.any()
            else:
                assert not value.any(), f"{field}, {term}: {value.flat[0]}"


@settings(max_examples=6)
@given(p=parameters, seed=seeds)
def test_a_uniform_flow_only_advects(p, seed):
    """Galilei: a uniform U added to u changes only the advection, by -U·∇f, and u×B, by U×B."""
    p = replace(p, upwind=False)
    U, spacing = (0.7, -0.4, 1.1), (0.5, 0.4, 0.3)
    state = random_state((6, 5, 7), p, seed)
    moving = state | {name: state[name] + value for name, value in zip(mhd.VELOCITY, U, strict=True)}
    at_rest, actual = mhd.terms(state, spacing, p), mhd.terms(moving, spacing, p)
    d = Differences(spacing, p.order)
    for field in p.fields:
        expected = dict(at_rest[field])
        if field in mhd.POTENTIAL:
            B = mhd.curl(d.gradient(vector(state, mhd.POTENTIAL)))
            flow = np.broadcast_to(np.reshape(U, (3, 1, 1, 1)), B.shape)
            expected["induction"] = expected["induction"] + np.cross(flow, B, axis=0)["xyz".index(field[1])]
        else:
            drift = sum(U[i] * d.first(state[field], i) for i in range(3))
            expected["advection"] = expected["advection"] - drift
        same_terms(actual[field], expected, field)


def test_mass_momentum_and_energy_are_conserved():
    """The rates are means of divergences, except for gravity, heating and cooling.

    This holds to the order of the scheme.

    Energy is that of a gas with consistent c_s0 and T₀: c_s0² = (γ - 1) c_p T₀. Induction and the Lorentz
    force must match for it, as must friction and its heat. Bulk viscosity as printed keeps neither momentum
    nor energy where the density varies: it lacks ζ (∇·u) ∇ln ρ.
    """
    lnT0 = math.log(FULL.c_s0**2 / ((FULL.gamma - 1) * FULL.c_p))
    p = replace(FULL, order=8, lnT0=lnT0, zeta=0.0)
    off = {"mass": [], "momentum": [], "energy": []}
    for n in (14, 28):
        state, spacing = smooth_state((n,) * 3, p), sizes((n,) * 3)
        change = mhd.time_derivative(state, spacing, p)
        u, rho = vector(state), np.exp(state["lnrho"])
        force = np.reshape(p.gravity, (3, 1, 1, 1))
        off["mass"].append(np.mean(rho * change["lnrho"]))
        of_momentum = rho * (vector(change) + u * change["lnrho"])
        off["momentum"].append(np.max(np.abs(np.mean(of_momentum - rho * force, axis=(1, 2, 3)))))
        T = mhd.thermal(state, p)[1]
        of_T = T * (p.gamma * change["s"] / p.c_p + (p.gamma - 1) * change["lnrho"])
        heat = (p.c_p / p.gamma) * rho * (of_T + T * change["lnrho"])
        motion = rho * ((u * u).sum(axis=0) / 2 * change["lnrho"] + (u * vector(change)).sum(axis=0))
        e = Spectral((n,) * 3)
        A = vector(state, mhd.POTENTIAL)
        field = (e.curl(A) * e.curl(vector(change, mhd.POTENTIAL))).sum(axis=0) / p.mu0
        source = p.heating - rho * (p.c_p / p.gamma) * (T - p.T_cool) / p.tau_cool
        work = rho * (force * u).sum(axis=0)
        assert min(np.mean(np.abs(rate)) for rate in (heat, motion, field, source)) > 1e-3
        off["energy"].append(np.mean(heat + motion + field - source - work))
    for name, (coarse, fine) in off.items():
        assert abs(coarse) < 1e-5, name
        assert abs(fine) < max(abs(coarse) / 2**7, 1e-13), name


def test_div_b_vanishes_to_round_off_on_random_data():
    p = Parameters()
    for order in ORDERS:
        diagnostics = mhd.diagnostics(random_state((8, 9, 10), p), (0.1, 0.2, 0.3), replace(p, order=order))
        assert 0 < diagnostics["max |div B|"] < 1e-15 * 8 * (2 / 0.1) ** 2
        assert diagnostics["magnetic energy"] > 1


def test_longer_floating_point_types_are_kept():
    p = replace(FULL, nu3=0.1, chi3=0.1, upwind=True, nu_shock=1.0, eta3=0.1)
    state = random_state((8, 6, 5), p)
    wide = {name: value.astype(np.longdouble) for name, value in state.items()}
    result, sharp = mhd.terms(state, (0.3, 0.4, 0.5), p), mhd.terms(wide, (0.3, 0.4, 0.5), p)
    for name in p.fields:
        assert all(value.dtype == np.longdouble for value in sharp[name].values())
        same_terms(result[name], sharp[name], name)
    stepped = mhd.step(wide, lambda f: mhd.time_derivative(f, (0.3, 0.4, 0.5), p), 1e-3)
    assert all(value.dtype == np.longdouble for value in stepped.values())


# --- steps ---

ORDER_OF = {"euler": 1, "rk2": 2, "rk3": 3, "rk4": 4, "ssp-rk3": 3}


def pendulum(f: State) -> State:
    """Return the rates of x'' = -sin x with friction, a nonlinear system that tests all order conditions."""
    return {"x": f["v"], "v": -np.sin(f["x"]) - 0.3 * f["v"] * np.abs(f["v"]) ** 2}


@pytest.mark.parametrize("scheme", mhd.SCHEMES)
def test_schemes_have_their_order(scheme):
    start = {"x": np.array([1.2], np.longdouble), "v": np.array([0.4], np.longdouble)}

    def after(steps: int, scheme: str) -> np.longdouble:
        f = start
        for _ in range(steps):
            f = mhd.step(f, pendulum, 1 / steps, scheme)
        return f["x"][0]

    exact = after(512, "rk4")
    errors = [abs(after(steps, scheme) - exact) for steps in (32, 64)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDER_OF[scheme], abs=0.15)
    assert start["x"][0] == np.longdouble(1.2), "a step leaves its start as it was"


@pytest.mark.parametrize("scheme", mhd.SCHEMES)
def test_schemes_multiply_a_linear_equation_by_their_polynomial(scheme):
    z = np.linspace(-2, 2, 9)
    actual = mhd.step({"f": np.ones(9)}, lambda f: {"f": 2 * z * f["f"]}, 0.5, scheme)["f"]
    expected = sum(z**k / math.factorial(k) for k in range(ORDER_OF[scheme] + 1))
    assert actual == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_inconsistent_options_are_reported():
    p = Parameters(magnetic=False)
    state = random_state((5,), p)
    with pytest.raises(ValueError, match=r"order: expected an even number of at least 2, got 5"):
        mhd.terms(state, (0.1,), replace(p, order=5))
    with pytest.raises(ValueError, match=r"state: expected the fields .*'s'"):
        mhd.terms({name: f for name, f in state.items() if name != "s"}, (0.1,), p)
    with pytest.raises(ValueError, match=r"a spacing per axis"):
        mhd.terms(state, (0.1, 0.1), p)
    with pytest.raises(ValueError, match=r"scheme: expected one of euler, .*got 'rk5'"):
        mhd.step(state, lambda f: f, 0.1, "rk5")
