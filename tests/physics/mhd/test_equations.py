"""Magnetohydrodynamics compared with NumPy: mhd_reference.py, which shares no code with the language."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import halocline as hc
import mhd_reference as reference
from halocline.compile.compiler import arranged
from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.grid import AXES
from halocline.lang.program import Program
from halocline.physics.mhd import MHD, Physics
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.run.measurements.ulps import greatest_ulps
from loops import some
from mhd_programs import (
    OPTIONS,
    PARAMETERS,
    Array,
    benchmark,
    box,
    name_of,
    random_state,
    reference_parameters,
    used_parameters,
)
from suites import cases


def smooth_state(mhd: MHD, seed: int) -> dict[str, Array]:
    draw, state = np.random.default_rng(seed), {}
    for f in mhd.fields:
        phase = sum(
            np.multiply.outer(np.ones(mhd.grid.shape[:a]), 2 * np.pi * np.arange(n) / n).reshape(
                (*mhd.grid.shape[:a], n, *(1,) * (mhd.grid.ndim - a - 1))
            )
            * draw.integers(1, 3)
            for a, n in enumerate(mhd.grid.shape)
        )
        state[name_of(f)] = 0.4 * np.sin(phase + draw.random() * 6)
    return state


CASES = {
    "all terms": (Physics(), (10, 9, 12), 6),
    "all options": (OPTIONS, (12, 14), 6),
    "all options on three axes": (OPTIONS, (13, 11, 12), 6),
    "second order": (OPTIONS, (10, 8), 2),
    "fourth order": (replace(OPTIONS, conductivity="diffusivity"), (11, 10), 4),
    "eighth order": (replace(OPTIONS, magnetic=False, imposed=False), (14, 13), 8),
    "isothermal": (Physics(entropy=False), (9, 10), 6),
    "isothermal with options": (
        Physics(entropy=False, upwind=True, hyperdiffusion=True, shock=True, gravity=True), (24,), 6,
    ),
    "gas alone": (Physics(magnetic=False), (16,), 6),
}  # fmt: skip

LONG = {
    "all options", "all options on three axes", "with options", "with a shock", "fourth order",
    "second order on three axes", "fourth order on three axes", "eighth order on three axes",
    "eighth order", "second order with options",
    "fourth order with options", "sixth order with options", "eighth order with options",
}  # fmt: skip


def cases_of(table: dict[str, Any]) -> list[Any]:
    """Return the names of the cases; slow compilations belong to the extended suite."""
    return [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in table]


@pytest.mark.parametrize("case", cases_of(CASES))
def test_every_term_agrees_with_numpy(case: str):
    physics, shape, order = CASES[case]
    grid = box(shape)
    mhd = MHD(grid, physics)
    force = grid.vector("force", components=3)
    probes: dict[tuple[str, str], hc.Field] = {}

    @hc.program
    def look() -> None:
        for f, terms in mhd.terms(force).items():
            for name, term in terms.items():
                probe = grid.field(f"probe{len(probes)}")
                probes[name_of(f), name] = probe
                probe.set(term)

    sim = hc.Simulation(grid, look, parameters=used_parameters(PARAMETERS, mhd), order=order, threads=1)
    for make in (random_state, smooth_state):
        state = make(mhd, 3)
        for f in mhd.fields:
            sim[f] = state[name_of(f)]
        forcing = np.random.default_rng(4).random((3, *grid.shape))
        for component, values in zip(force, forcing, strict=True):
            sim[component] = values
        sim.run(steps=1)
        p = replace(reference_parameters(physics, order), forcing=forcing)
        expected = reference.terms(state, grid.spacing, p)
        idle = {"gravity": not physics.gravity}
        assert {(f, name) for f, terms in expected.items() for name in terms if not idle.get(name)} == set(
            probes
        )
        for f, terms in expected.items():
            size = sum(np.abs(term) for term in terms.values())
            for name, term in terms.items():
                if not idle.get(name):
                    assert np.abs(sim[probes[f, name]] - term).max() <= 1e-13 * size.max(), (f, name)


def ulps(result: Array, expected: Array) -> float:
    """Return the maximum difference, in units of the last place of the maximum magnitude."""
    return float(np.abs(result - expected).max() / np.spacing(np.abs(expected).max()))


STEPS: dict[str, tuple[Physics, tuple[int, ...], int]] = {
    "sixth order": (Physics(), (12, 10, 14), 6),
    "second order on three axes": (Physics(), (9, 11, 10), 2),
    "fourth order on three axes": (Physics(), (10, 9, 12), 4),
    "eighth order on three axes": (Physics(), (11, 12, 9), 8),
    "second order with options": (OPTIONS, (13, 11, 12), 2),
    "fourth order with options": (OPTIONS, (12, 13, 11), 4),
    "sixth order with options": (OPTIONS, (12, 13, 11), 6),
    "eighth order with options": (OPTIONS, (13, 14, 15), 8),
    "second order": (Physics(), (9, 8), 2),
    "fourth order": (Physics(conductivity="diffusivity"), (9, 10), 4),
    "eighth order": (Physics(), (10, 12), 8),
    "with options": (replace(OPTIONS, shock=False), (12, 11), 6),
    "with a shock": (Physics(entropy=False, shock=True, upwind=True), (24,), 6),
}
MADE = {"random": random_state, "smooth": smooth_state}


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("case", cases_of(STEPS))
def test_steps_agree_with_numpy(case: str, make: str):
    """Short steps (2⁻²³, as in the paper) and a long one, which exposes errors of terms, agree with NumPy."""
    physics, shape, order = STEPS[case]
    grid = box(shape)
    mhd = MHD(grid, physics)
    p = reference_parameters(physics, order)
    parameters = {**used_parameters(PARAMETERS, mhd), "length": 0.0}
    sim = hc.Simulation(
        grid, mhd.equations, parameters=parameters, scheme=hc.RK3(), dt=lambda length: length, order=order,
        threads=1,
    )  # fmt: skip
    for dt, steps in ((2.0**-23, 4), (1e-3, 1)):
        state = MADE[make](mhd, 5)
        for f in mhd.fields:
            sim[f] = state[name_of(f)]
        sim.parameters["length"] = dt
        sim.run(steps=steps)
        for _ in range(steps):
            state = reference.step(
                state, lambda stage_state: reference.time_derivative(stage_state, grid.spacing, p), dt
            )
        for f in some(mhd.fields):
            assert ulps(sim[f], state[name_of(f)]) <= 4 * steps, (f.name, dt)


def test_a_step_of_the_paper_is_accurate_to_few_ulps():
    """The error is at most 2, as on one core in Pekkilä et al. 2022, Section 5, Eqs. 15 and 16."""
    grid = hc.Grid((16, 16, 16), extent=(2 * np.pi,) * 3, periodic=True)
    mhd, dt = MHD(grid), 2.0**-23
    p, state = reference_parameters(mhd.physics, 6), random_state(mhd, 5)
    sim = hc.Simulation(
        grid,
        mhd.equations,
        parameters=used_parameters(PARAMETERS, mhd),
        scheme=hc.RK3(),
        dt=dt,
        order=6,
        threads=1,
    )
    for f in mhd.fields:
        sim[f] = state[name_of(f)]
    sim.run(steps=1)
    state = reference.step(
        state, lambda stage_state: reference.time_derivative(stage_state, grid.spacing, p), dt
    )
    assert max(greatest_ulps(state[name_of(f)], np.asarray(sim[f])) for f in some(mhd.fields)) <= 2


BETWEEN_WALLS = Physics(conductivity="power", upwind=True, hyperdiffusion=True)


@pytest.mark.parametrize(
    ("physics", "order", "make"),
    [
        (BETWEEN_WALLS, 6, "random"),
        pytest.param(Physics(magnetic=False, shock=True), 6, "random", marks=pytest.mark.long),
        pytest.param(BETWEEN_WALLS, 2, "smooth", marks=pytest.mark.long),
        pytest.param(replace(BETWEEN_WALLS, shock=True), 6, "smooth", marks=pytest.mark.long),
        pytest.param(replace(BETWEEN_WALLS, shock=True), 8, "random", marks=pytest.mark.long),
    ],
    ids=["6", "6-shock", "2-smooth", "6-shock-smooth", "8-shock"],
)
def test_steps_with_mirror_walls_agree_with_numpy(physics: Physics, order: int, make: str):
    """Reflecting walls are equivalent to a periodic box of twice the length with the mirror image."""
    # shock viscosity reads the velocity up to 13 layers beyond a wall, and in its corners
    shape, across = (13, 14) if physics.shock else (9, 10), 1
    grid = hc.Grid(shape, extent=(2.2, 1.8), periodic=(True, False))
    polar = [hc.Antisymmetric() if a == across else hc.Symmetric() for a in range(3)]
    walls = {"lnrho": hc.Symmetric(), "u": polar, "s": hc.Symmetric(), "A": polar}
    mhd = MHD(grid, physics, boundary=walls)
    sim = hc.Simulation(
        grid, mhd.equations, parameters=used_parameters(PARAMETERS, mhd), scheme=hc.RK3(), dt=1e-3,
        order=order, threads=1,
    )  # fmt: skip
    state = MADE[make](mhd, 2)
    for f in mhd.fields:
        sim[f] = state[name_of(f)]
    sim.run(steps=1)
    signs = {name: -1.0 if name in ("uy", "Ay") else 1.0 for name in state}
    whole = {name: np.concatenate([v, signs[name] * v[:, ::-1]], axis=1) for name, v in state.items()}
    p = reference_parameters(physics, order)
    whole = reference.step(
        whole, lambda stage_state: reference.time_derivative(stage_state, grid.spacing, p), 1e-3
    )
    for f in some(mhd.fields):
        assert ulps(sim[f], whole[name_of(f)][:, : shape[across]]) <= 4, f.name


def test_user_heating_and_cooling_are_added():
    """H and C as expressions of the fields and of position act in addition to the uniform heating."""
    grid = box((12, 14))
    mhd = MHD(grid)
    rates = {f: grid.field(f"rate_{f.name}") for f in mhd.fields}

    @hc.program
    def look() -> None:
        gain, loss = 0.3 * hc.exp(mhd.lnrho) * hc.cos(grid.x), 0.2 * mhd.gas.T**2
        for f, rate in mhd.equations(heat_gain=gain, heat_loss=loss).items():
            rates[f].set(rate)

    sim = hc.Simulation(grid, look, parameters=used_parameters(PARAMETERS, mhd), order=6, threads=1)
    state = random_state(mhd, 4)
    for f in mhd.fields:
        sim[f] = state[name_of(f)]
    sim.run(steps=1)
    p = reference_parameters(mhd.physics, 6)
    x = ((np.arange(12) + 0.5) * grid.spacing[0]).reshape(-1, 1)
    _, T = reference.thermal(state, p)
    heat = p.heating + 0.3 * np.exp(state["lnrho"]) * np.cos(x) - 0.2 * T**2
    expected = reference.time_derivative(state, grid.spacing, replace(p, heating=heat))
    without = reference.time_derivative(state, grid.spacing, p)
    assert np.abs(expected["s"] - without["s"]).max() > 0.1
    for f in mhd.fields:
        scale = np.abs(expected[name_of(f)]).max()
        assert np.abs(sim[rates[f]] - expected[name_of(f)]).max() <= 1e-13 * scale, f.name


@pytest.mark.parametrize("name", ["heat_gain", "heat_loss"])
def test_an_isothermal_gas_rejects_heating(name: str):
    mhd = MHD(hc.Grid((8,), periodic=True), Physics(entropy=False))
    with pytest.raises(InputError, match=f"{name.replace('_', ' ')} requires an entropy equation"):
        mhd.equations(**{name: 1.0})


SEEN = {  # the name in the reference, by diagnostic
    "u_rms": "u rms", "u_max": "u max", "rho_min": "rho min", "rho_max": "rho max",
    "E_kin": "kinetic energy", "kinetic_helicity": "kinetic helicity", "s_rms": "s rms",
    "E_th": "thermal energy", "E_mag": "magnetic energy", "magnetic_helicity": "magnetic helicity",
    "current_helicity": "current helicity",
}  # fmt: skip


@cases(
    "physics, shape",
    [(Physics(), (12, 10, 14)), (Physics(), (14, 12)), (Physics(entropy=False, magnetic=False), (20,))],
    lambda case: len(case[1]) < 3,
    ids=["3d", "2d", "isothermal"],
)
def test_diagnostics_agree_with_numpy(physics: Physics, shape: tuple[int, ...]):
    grid = box(shape)
    mhd = MHD(grid, physics)

    @hc.program
    def look() -> None:
        for name, value in diagnostics(mhd).items():
            hc.scalar(name).set(value)

    sim = hc.Simulation(grid, look, parameters=used_parameters(PARAMETERS, mhd), order=6, threads=1)
    state = random_state(mhd, 8)
    for f in mhd.fields:
        sim[f] = state[name_of(f)]
    sim.run(steps=1)
    p = reference_parameters(physics, 6)
    expected = reference.diagnostics(state, grid.spacing, p)
    for name, reference_name in SEEN.items():
        if reference_name in expected:
            assert sim.values[name] == pytest.approx(expected[reference_name], rel=1e-12), name
    assert sim.values["mass"] * np.prod(grid.extent) == pytest.approx(expected["mass"], rel=1e-12)
    d = reference.Differences(grid.spacing, 6)
    gradients = d.gradient(np.stack([state[n] for n in reference.VELOCITY]))
    divu = sum(gradients[i, i] for i in range(3))
    assert sim.values["divu_rms"] == pytest.approx(np.sqrt(np.mean(divu**2)), rel=1e-12)
    known_names = {*SEEN, "mass", "divu_rms"}
    if physics.entropy:
        T = reference.thermal(state, p)[1]
        assert [sim.values[n] for n in ("T_min", "T_max")] == pytest.approx([T.min(), T.max()], rel=1e-12)
        known_names |= {"T_min", "T_max"}
    if physics.magnetic:
        A = np.stack([state[name] for name in reference.POTENTIAL])
        B = reference.curl(d.gradient(A))
        j = (d.gradient_of_divergence(A) - d.laplacian(A)) / p.mu0
        of = {"B_rms": np.sqrt(np.mean((B**2).sum(axis=0))), "B_max": np.sqrt((B**2).sum(axis=0).max())}
        of["j_rms"] = np.sqrt(np.mean((j**2).sum(axis=0)))
        assert {n: sim.values[n] for n in of} == pytest.approx(of, rel=1e-12)
        # ∇·∇× vanishes except for rounding of differences divided by the minimum spacing
        assert sim.values["divB_max"] < 1e-14 * of["B_max"] / min(grid.spacing)
        known_names |= {*of, "divB_max"}
    with trace.tracing(Program("names")), trace.order(6):
        assert diagnostics(mhd).keys() <= known_names


def planes_of_mixed(name: str) -> set[frozenset[int]]:
    """Return the planes of component i of grad(div v), which reads v_j across planes that contain axis j."""
    if name in ("lnrho", "s"):
        return set()
    component = AXES.index(name[-1])
    return {frozenset((component, other)) for other in range(3) if other != component}


@pytest.mark.parametrize("order", [6, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4, 8))])
@pytest.mark.parametrize(
    "physics",
    [
        Physics(),
        Physics(upwind=True),
        Physics(hyperdiffusion=True),
        Physics(conductivity="power", cooling=True, gravity=True),
        Physics(entropy=False),
        Physics(magnetic=False),
        Physics(shock=True),
        Physics(imposed=True, conductivity="diffusivity"),
    ],
    ids=["all terms", "upwind", "hyperdiffusion", "power", "isothermal", "gas", "shock", "imposed"],
)
def test_the_exchange_has_only_the_required_edges(physics: Physics, order: int):
    """The exchange has no corners, no edges for lnρ and s, and 8 of 12 edges for each component of u and A.

    The test derives the halos from the equations by hand, and the compiler derives them too.
    """
    mhd = MHD(hc.Grid((32, 32, 32), periodic=True), physics)
    force = mhd.grid.vector("force", components=3)
    program = Program("right_hand_side")
    with trace.tracing(program), trace.order(order):
        for f, slope in mhd.equations(force).items():
            f.set(f + slope)
    (halo,) = arranged(program, mhd.grid).halos.values()
    # no component of the force
    assert {f for f, footprint in halo.exchange.items() if footprint} == set(mhd.fields)
    radius = order // 2
    for f in mhd.fields:
        reach = max(3, radius) if physics.hyperdiffusion else radius
        expected = {}
        for direction in itertools.product((-1, 0, 1), repeat=3):
            axes = frozenset(axis for axis in range(3) if direction[axis])
            if axes and physics.shock and f.name[0] == "u":
                # u_x is differentiated along x, spread by 2 and smoothed by 3 along all axes in turn, and
                # differentiated again along any axis
                component = AXES.index(f.name[-1])
                expected[direction] = tuple(
                    (2 + 3 + radius * (1 + (a == component))) * (a in axes) for a in range(3)
                )
            elif len(axes) == 1:
                expected[direction] = tuple(reach * (a in axes) for a in range(3))
            elif axes in planes_of_mixed(f.name):
                expected[direction] = tuple(radius * (a in axes) for a in range(3))
        assert dict(halo.exchange[f]) == expected, f.name


WAYS: list[dict[str, Any]] = [
    {"decomposition": "1d-x"},
    {"decomposition": "1d-z", "threads": 2, "patch": 5, "overlap": True},
    {"decomposition": "bisection", "patch": (16, 4, 16), "methods": "mpi", "overlap": False},
    {"subdomains_per_rank": 2, "threads": 2, "methods": "self,peer,rma,mpi", "schedule": "dynamic"},
    {"halo": "uniform", "patch": (4, 16, 8)},
]


@pytest.mark.ranks(2, 4, long=(2,))
def test_mhd_has_the_same_bits_on_any_layout():
    from mpi4py import MPI

    # four ranks with two threads each share the cores
    ways = WAYS if MPI.COMM_WORLD.size == 2 else WAYS[:1] + WAYS[2:3]
    actual = [benchmark(**way) for way in ways]
    expected = benchmark(communicator=MPI.COMM_SELF, threads=1)
    assert len(set(expected.values())) == 8
    for way, result in zip(ways, actual, strict=True):
        assert result == expected, way
