"""Time integration schemes: tableaus, stability, kernels, and equal bits in all configurations.

Their orders are measured in run/simulation/test_simulation.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.compile.strategy import Strategy
from halocline.problems.problem import Problem
from halocline.solvers.schemes import SCHEMES

# --- against the tableaus of textbooks (Williamson 1980, Table 1; Shu and Osher 1988) ---

TABLEAUS: dict[str, tuple[list[list[F]], list[F]]] = {
    "euler": ([[]], [F(1)]),
    "rk2": ([[], [F(1, 2)]], [F(0), F(1)]),
    "rk3": ([[], [F(1, 3)], [F(-3, 16), F(15, 16)]], [F(1, 6), F(3, 10), F(8, 15)]),
    "rk3-previous": ([[], [F(1, 3)], [F(-3, 16), F(15, 16)]], [F(1, 6), F(3, 10), F(8, 15)]),
    "rk4": (
        [[], [F(1, 2)], [F(0), F(1, 2)], [F(0), F(0), F(1)]],
        [F(1, 6), F(1, 3), F(1, 3), F(1, 6)],
    ),
    "ssprk3": ([[], [F(1)], [F(1, 4), F(1, 4)]], [F(1, 6), F(1, 6), F(2, 3)]),
}


def reference(scheme: str, u: np.ndarray, v: np.ndarray, dt: float, steps: int) -> tuple[np.ndarray, ...]:
    rows, weights = TABLEAUS[scheme]
    state, t = np.array([u, v]), 0.0

    def slope(state: np.ndarray, t: float) -> np.ndarray:
        u, v = state
        rate = (np.roll(u, -1) - 2 * u + np.roll(u, 1)) * u.size**2
        drift = u * v - np.roll(u * v, -1)
        return np.array(
            [0.02 * rate - u * v + np.sin(7 * t) + drift, u * u - v * np.cos(3 * t) + 0.3 * u.max()]
        )

    def combined(row: Sequence[F], slopes: list[np.ndarray]) -> np.ndarray:
        return dt * sum((float(a) * k for a, k in zip(row, slopes, strict=True)), np.zeros_like(state))

    for _ in range(steps):
        slopes: list[np.ndarray] = []
        for row in rows:
            slopes.append(slope(state + combined(row, slopes), t + float(sum(row, F(0))) * dt))
        state = state + combined(weights, slopes)
        t += dt
    return tuple(state)


def coupled(u: Any, v: Any, t: Any) -> Any:
    """Return equations of two fields coupled by a stage and a reduction, which depend on time."""
    p = hc.stage(u * v)
    return {
        u: 0.02 * hc.laplacian(u) - p + hc.sin(7 * t) + (p - p[1]),
        v: u * u - v * hc.cos(3 * t) + 0.3 * hc.max(u),
    }


@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_agree_with_the_tableau(scheme: str) -> None:
    grid = hc.Grid(20, periodic=True)
    u, v = grid.field("u"), grid.field("v")
    sim = hc.Simulation(grid, coupled, scheme=SCHEMES[scheme], dt=0.02)
    random = np.random.default_rng(4)
    start = random.uniform(-1, 1, 20), random.uniform(-1, 1, 20)
    sim[u], sim[v] = start
    sim.run(steps=1)
    sim.run(steps=6)  # the second run starts without the register of the first
    for values, expected in zip((sim[u], sim[v]), reference(scheme, *start, 0.02, 7), strict=True):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_zero_time_derivatives_do_not_change_bits(scheme: str, dtype: str) -> None:
    grid = hc.Grid(500)
    u = grid.field("u", dtype=dtype)
    sim = hc.Simulation(grid, lambda u: {u: 0.0 * u}, scheme=SCHEMES[scheme], dt=0.1)
    sim[u] = np.random.default_rng(2).uniform(-1, 1, 500)
    before = sim.checksum(u)
    sim.run(steps=3)
    assert sim.checksum(u) == before


def test_strong_stability_of_euler_steps_is_preserved() -> None:
    """Total variation and extrema of upwind advection grow only above CFL 1, the limit of Euler steps."""
    grid = hc.Grid(64, periodic=True)
    u = grid.field("u")
    sims = {
        cfl: hc.Simulation(grid, lambda u: {u: (u[-1] - u) / u.grid.h(0)}, scheme=hc.SSPRK3(), dt=cfl / 64)
        for cfl in (0.5, 1.0, 1.25)
    }
    start = np.where(np.arange(64) % 32 < 9, 1.0, 0.0)
    start[50] = 3.0
    for cfl, sim in sims.items():
        sim[u] = start
        growth, beyond, last = 0.0, 0.0, float(np.abs(start - np.roll(start, 1)).sum())
        for _ in range(40):
            sim.run(steps=1)
            values = np.asarray(sim[u])
            variation = float(np.abs(values - np.roll(values, 1)).sum())
            growth, last = max(growth, variation - last), variation
            beyond = max(beyond, -values.min(), values.max() - 3.0)
        assert last < 0.9 * float(np.abs(start - np.roll(start, 1)).sum()) or cfl > 1
        assert (growth < 1e-14 and beyond < 1e-15) == (cfl <= 1), (cfl, growth, beyond)


# --- kernels ---


def kernels(schedule: Schedule) -> list[str]:
    return [sweep.kernel for sweep in schedule.pass_sweeps()]


@pytest.mark.parametrize(
    ("scheme", "numbers"),
    [
        ("euler", [0]),
        ("rk2", [0, 1]),
        ("rk3", [0, 1, 2]),
        ("rk3-previous", [0, 1, 1]),
        ("rk4", [0, 1, 2, 2]),
        ("ssprk3", [0, 1, 1]),
    ],
)
def test_stages_that_differ_only_in_constants_share_a_kernel(scheme: str, numbers: list[int]) -> None:
    case = Problem("heat", [16, 16], scheme=scheme, order=6)
    program = case.program
    schedule = compile_program(program, case.grid)
    assert kernels(schedule) == [f"sweep_{n}" for n in numbers]
    for name in set(kernels(schedule)):  # for fields in the cache, and for larger fields
        assert schedule.source.count(f"void {name}(") == 2
    device = compile_program(program, case.grid, device=Strategy())
    assert kernels(device) == kernels(schedule)
    assert device.device is not None
    assert list(device.device.kernels) == list(dict.fromkeys(kernels(device)))
    for name in set(kernels(device)):
        assert device.device.source.count(f" {name}_0(") == 1


@pytest.mark.parametrize("storage", ["patch", "inline", "array"])
def test_stages_and_reductions_may_occur_in_every_stage_of_a_scheme(storage: str) -> None:
    """Stages without a name and reductions are separate in each stage; a stage in an array uses one array."""
    grid = hc.Grid((12, 10), periodic=True)
    u = grid.field("u")

    def equation(u: Any) -> Any:
        flux = hc.stage(u * u, storage=storage)
        return {u: flux - flux[1, 0]}

    sim = hc.Simulation(grid, equation, scheme=hc.RK3(), dt=1e-3)
    if storage == "array":
        # its next values are written to the second buffer, in the sweep of the previous stage
        assert len(kernels(sim.schedule)) == 4
        assert sorted(f.name for f in sim.schedule.fields) == ["stage1", "stage1'", "u", "u_w"]
    else:
        assert kernels(sim.schedule) == ["sweep_0", "sweep_1", "sweep_2"]

    def mean(u: Any) -> Any:
        return {u: hc.sum(u) / 120.0 - u[1, 0]}

    sim = hc.Simulation(grid, mean, scheme=hc.RK4(), dt=1e-3)
    sim[u] = 1.0
    sim.run(steps=2)
    summed = {s.reductions[0].scalar for s in sim.schedule.sweeps() if s.reductions}
    assert len(summed) == 4  # each stage of the scheme waits for its own
    np.testing.assert_array_equal(sim[u], np.ones((12, 10)))


@pytest.mark.parametrize(
    ("scheme", "most"), [("euler", 2), ("rk3", 3), ("rk3-previous", 2), ("rk4", 4), ("ssprk3", 3)]
)
def test_schemes_store_few_values_per_point(scheme: str, most: int) -> None:
    """The count includes the second buffer of the field, whose neighbours are read while it is written."""
    case = Problem("heat", [16, 16], scheme=scheme, order=2)
    assert len(compile_program(case.program, case.grid).fields) == most


@pytest.mark.parametrize("device", [None, Strategy()], ids=["cpu", "device"])
def test_equal_sweeps_share_a_kernel(device: Strategy | None) -> None:
    """Equal sweeps share a kernel inside and outside loops, for any scalars of results.

    Sweeps with another field, cell or number have their own kernel.
    """
    grid = hc.Grid((9, 8), periodic=(True, False))
    u, v = (grid.field(n, boundary=hc.Derivative(0.0)) for n in "uv")

    def turn(f: Any, by: float = 0.1) -> None:
        f.set(f + by * (f[1, 0] - f[0, -1]))

    def step() -> None:
        first, second, value_at_2, value_at_3 = hc.scalars("first second here there")
        turn(u)
        first.set(hc.sum(u))
        with hc.loop(limit=2):
            turn(u)
            second.set(hc.sum(u))
        turn(u)
        value_at_2.set(hc.value(u, (1, 2)))
        turn(u)
        value_at_3.set(hc.value(u, (1, 3)))
        turn(u, 0.2)
        for _ in range(2):
            with hc.loop(limit=2):
                turn(v)

    schedule = compile_program(hc.program(step).trace(), grid, device=device)
    kernels_and_names = [(s.kernel, s.names) for s in schedule.sweeps()]
    assert kernels_and_names == [
        ("sweep_0", ("u", "sum")), ("sweep_0", ("u", "sum")),
        ("sweep_1", ("u", "value")), ("sweep_2", ("u", "value")), ("sweep_3", ("u",)),
        ("sweep_4", ("v",)), ("sweep_4", ("v",)),
    ]  # fmt: skip
    summed = [schedule.scalars[r.scalar] for s in schedule.sweeps() for r in s.reductions if r.kind == "sum"]
    assert len(set(summed)) == 2
    assert {f.kernel for s in schedule.sweeps() for f in s.fills} == {"wall_u_y_lower_0", "wall_v_y_lower_0"}


def test_equal_halo_kernels_are_generated_once() -> None:
    """Two iterations per pass compute p in the halo with one kernel.

    The halo of p is exchanged before the first pass.
    """
    grid = hc.Grid((9, 8), periodic=True)
    r, p = grid.field("r"), grid.field("p")

    def step() -> None:
        curvature = hc.scalar("curvature")
        with hc.loop(limit=5):
            for _ in range(2):
                new = hc.stage(r + 0.5 * p, "new", storage="inline")
                curvature.set(hc.dot(new, hc.laplacian(new)))
                p.set(new)
                r.set(r - 0.1 * curvature * hc.laplacian(p))

    schedule = compile_program(hc.program(step).trace(), grid)
    assert [s.kernel for s in schedule.sweeps()] == ["exchange_0"] + ["sweep_0", "sweep_1"] * 2
    assert [s.halo_kernel for s in schedule.sweeps()] == [None] + ["halo_0", None] * 2
    assert schedule.source.count("void halo_0(") == 1


# --- the same bits anywhere ---


def checksums(scheme: str, dtype: str, **options: Any) -> list[Any]:
    grid = hc.Grid((19, 14), periodic=(True, False))
    u = grid.field("u", dtype=dtype, boundary=hc.Value(0.3))
    v = grid.field("v", dtype=dtype, boundary=hc.Derivative(0.0))

    def equations(u: Any, v: Any, t: Any) -> Any:
        return {u: 1e-3 * hc.laplacian(u) - u * v + hc.sin(t), v: hc.max(u) * u * u - v * v[1, 1]}

    sim = hc.Simulation(grid, equations, scheme=SCHEMES[scheme], dt=0.05, order=4, **options)
    sim[u] = lambda x, y: hc.sin(6 * x) * hc.cos(3 * y)
    sim[v] = lambda x, y: 0.5 + x * y
    sim.run(until=0.28)
    return [sim.checksum(u), sim.checksum(v), sim.time, sim.steps]


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_schemes_give_the_same_bits_on_ranks_and_threads() -> None:
    from mpi4py import MPI

    for scheme in ("rk3", "rk3-previous", "rk4", "ssprk3"):
        for dtype in ("float64", "float32"):
            threads = checksums(scheme, dtype, threads=2, patch=4)
            subdomains = checksums(scheme, dtype, subdomains_per_rank=2, overlap=False)
            expected = checksums(scheme, dtype, communicator=MPI.COMM_SELF, threads=1)
            assert threads == expected, (scheme, dtype)
            assert subdomains == expected, (scheme, dtype)


@pytest.mark.parametrize(
    "scheme",
    ["rk3", "rk3-previous", *(pytest.param(name, marks=pytest.mark.long) for name in ("rk4", "ssprk3"))],
)
@pytest.mark.usefixtures("opencl")
def test_schemes_give_the_same_bits_on_devices(scheme: str) -> None:
    expected = checksums(scheme, "float64", threads=1)
    for device in ("opencl:0", "opencl:0,1"):
        assert checksums(scheme, "float64", device=device) == expected


def test_the_low_storage_register_has_minimal_traffic() -> None:
    """The register is neither read in the first stage, where it has no value, nor written in the last.

    Each stage reads and writes the field. The previous state takes over a buffer and is never written.
    """
    for scheme, arrays in (("rk2", [3, 3]), ("rk3", [3, 4, 3]), ("rk3-previous", [2, 3, 3])):
        case = Problem("heat", [16, 16], scheme=scheme, order=6)
        sweeps = compile_program(case.program, case.grid).pass_sweeps()
        assert [sweep.bytes / 8 for sweep in sweeps] == arrays


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=str)
def test_all_equations_see_the_same_time_at_walls_that_read_other_fields(scheme: Any) -> None:
    """The equation of u reads ghosts of the values before the stage, for any order of the equations.

    The ghosts of u are values of v.
    """

    def run(names: str) -> tuple[str, str]:
        grid = hc.Grid(8, extent=8.0)
        v = grid.field("v", boundary=hc.Symmetric())
        u = grid.field("u", boundary=hc.BoundaryKernel(lambda inward: 2 * inward.of(v)[0] - inward[0]))

        def equations(u: Any, v: Any) -> Any:
            slopes = {"u": (u, hc.derivative(u, 0) + v), "v": (v, hc.laplacian(v) - u)}
            return dict(slopes[name] for name in names)

        sim = hc.Simulation(grid, equations, scheme=scheme, dt=0.1, order=2, threads=1)
        sim[u], sim[v] = np.sin(np.arange(8.0)), np.cos(np.arange(8.0))
        sim.run(steps=3)
        return sim.checksum(u), sim.checksum(v)

    assert run("uv") == run("vu")
