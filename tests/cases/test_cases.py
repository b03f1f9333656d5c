"""The cases compared with known results: exact solutions, linear theory, conservation and thresholds."""

from __future__ import annotations

import functools
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from case_runs import layer, run
from halocline.cli.texts import cells_of
from halocline.errors import InputError, RunError
from halocline.physics.mhd import MHD, Physics, parameters
from halocline.physics.mhd.forcing import Forcing
from halocline.problems.files import CASES
from halocline.problems.problem import Problem
from halocline.run.simulation.replay import FailureReplay
from suites import cases

Array = NDArray[np.float64]


def amplitude(values: Array, k: float = 1.0) -> complex:
    """Return the complex amplitude a of Re{a exp(i k x)} on a box of length 2π."""
    x = (np.arange(len(values)) + 0.5) * 2 * np.pi / len(values)
    return complex(2 * np.mean(values * np.exp(-1j * k * x)))


# -- waves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "waves"), [(1.3, 1.0), (-0.7, 2.0)])
def test_an_alfven_wave_decays_and_rotates_like_the_exact_solution(field: float, waves: float):
    settings = {
        "nu": 0.03,
        "eta": 0.03,
        "B_x": field,
        "mu0": 1.5,
        "amplitude": 0.4,
        "waves": waves,
        "dt": 0.01,
    }
    ready = Problem("alfven-decay", [48], settings)
    start, end = (ready.run(steps=steps, threads=1).simulation for steps in (0, 300))
    omega = waves * abs(field) / math.sqrt(1.5)  # ρ = 1
    for name in ("u_y", "u_z", "A_y", "A_z"):
        grown = amplitude(end[name], waves) / amplitude(start[name], waves)
        # the wave travels along the field, up or down the axis
        expected = np.exp((-0.03 * waves**2 - 1j * math.copysign(omega, field)) * 3.0)
        assert abs(grown - expected) < 2e-5, name
    assert np.abs(end["u_x"]).max() < 1e-12  # the wave moves no gas along its direction
    assert np.abs(end["lnrho"]).max() < 1e-12


def sound(settings: dict[str, float]) -> complex:
    """Return the rate of a sound wave that travels upward, for a wave number of one.

    It is a root of the cubic equation of Landau and Lifshitz, Section 79, Problem 1.
    """
    gamma, rho = settings["gamma"], math.exp(settings["lnrho0"])
    damping = 4 / 3 * settings["nu"] + settings["zeta"]
    heat = gamma * settings["K"] / (rho * settings["cp"])
    c2 = settings["cs0"] ** 2
    roots = np.roots([1, damping + heat, c2 + damping * heat, c2 * heat / gamma])
    return complex(roots[np.argmin(roots.imag)])


@cases(
    "damped",
    [
        {"nu": 0.02, "zeta": 0.0, "K": 0.0},
        {"nu": 0.0, "zeta": 0.03, "K": 0.0},
        {"nu": 0.0, "zeta": 0.0, "K": 0.05},
        {"nu": 0.05, "zeta": 0.1, "K": 0.4},
    ],
    lambda damped: damped["zeta"] > 0,
    ids=["viscosity", "bulk viscosity", "conduction", "all"],
)
def test_a_sound_wave_decays_as_linear_theory_predicts(damped: dict[str, float]):
    settings = {**damped, "gamma": 1.5, "cp": 1.3, "cs0": 1.2, "lnrho0": 0.2, "dt": 0.01}
    ready = Problem("sound-wave", [48], settings)
    start, end = (ready.run(steps=steps, threads=1).simulation for steps in (0, 200))
    rate = sound(settings)
    for name in ("lnrho", "u_x", *(["s"] if settings["K"] else [])):
        grown = amplitude(end[name]) / amplitude(start[name])
        assert abs(grown - np.exp(rate * 2.0)) < 2e-5, name
    if settings["K"] < 0.1:  # weak damping: Stokes and Kirchhoff
        heat = settings["K"] / (math.exp(0.2) * 1.3)
        weak = (4 / 3 * settings["nu"] + settings["zeta"] + 0.5 * heat) / 2
        assert -rate.real == pytest.approx(weak, rel=0.02)


# -- forced turbulence ---------------------------------------------------------------------------------


def forced(helicity: float, steps: range) -> list[Array]:
    """Return the forcing of some steps, with c_s = 2, f₀ = 0.07, δt = 0.1."""
    grid = hc.Grid((12, 12, 12), extent=(2 * np.pi,) * 3, periodic=True)
    f = grid.vector("f")

    @hc.program
    def look(number: Any, sigma: Any) -> None:
        f.set(Forcing(2.1, 3.0)(grid, seed=5, step=number, dt=0.1, strength=0.07, speed=2.0, helicity=sigma))

    sim = hc.Simulation(grid, look, parameters={"number": 0.0, "sigma": helicity}, threads=1)
    results = []
    for step in steps:
        sim.parameters["number"] = float(step)
        sim.run(steps=1)
        results.append(np.array([sim[c] for c in f]))
    return results


@pytest.mark.parametrize("helicity", [1.0, -1.0, 0.0, 0.5])
def test_the_forcing_is_one_wave_of_given_amplitude_and_helicity(helicity: float):
    met = set()
    for f in forced(helicity, range(24)):
        modes = np.fft.fftn(f, axes=(1, 2, 3)) / 12**3
        strong = np.argwhere(np.abs(modes).max(axis=0) > 1e-12)
        assert len(strong) == 2  # k and -k
        at = tuple(strong[0])
        k = np.array([n - 12 if n > 6 else n for n in at], dtype=float)
        length = np.linalg.norm(k)
        assert 2.1 <= length < 3.0
        met.add(tuple(abs(k)) + tuple(np.sign(k * np.sign(k[np.flatnonzero(k)[0]]))))
        wave = modes[(slice(None), *at)]
        assert abs(k @ wave) < 1e-14  # no divergence
        N = 0.07 * 2.0 * math.sqrt(length * 2.0 / 0.1)
        assert np.mean((f**2).sum(axis=0)) == pytest.approx(N**2 / 2, rel=1e-12)
        # mean of f·∇×f is 2 σ / (1 + σ²) k times the mean square
        curl = 1j * np.cross(k, wave)
        twisted = 2 * np.real(np.vdot(wave, curl))
        assert twisted == pytest.approx(2 * helicity / (1 + helicity**2) * length * N**2 / 2, abs=1e-12)
    assert len(met) > 10  # of 30


def test_the_forcing_is_a_function_of_the_step():
    repeated, other = forced(1.0, range(3, 4))[0], forced(1.0, range(4))
    assert np.array_equal(repeated, other[3])
    assert not np.allclose(other[2], other[3])


def test_the_wave_vectors_are_all_those_in_the_shell():
    cube = hc.Grid((8, 8, 8), extent=2 * np.pi, periodic=True)
    result = Forcing(2.1, 3.0).vectors(cube)
    whole = itertools.product(range(-3, 4), repeat=3)
    assert {tuple(round(c) for c in k) for k in result} == {k for k in whole if 4.41 <= np.dot(k, k) < 9}
    # the number and length of vectors in the Pencil Code's sample
    assert len(result) == 60
    assert np.mean([math.hypot(*k) for k in result]) == pytest.approx(2.43991, abs=1e-5)
    with pytest.raises(InputError, match=r"no wave vector of the box has 1.1 <= \|k\| < 1.2"):
        Forcing(1.1, 1.2).vectors(cube)
    with pytest.raises(InputError, match=r"kmax is 4.5; expected at most 4, the Nyquist limit"):
        Forcing(2.1, 4.5).vectors(cube)
    with pytest.raises(InputError, match=r"kmax is 30.5, which gives 226,981 wave vectors"):
        Forcing(2.1, 30.5).vectors(hc.Grid((64, 64, 64), periodic=True))


# -- convection ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rayleigh", "sets_in"), [(300.0, False), (3000.0, True)])
def test_convection_sets_in_above_the_critical_rayleigh_number(rayleigh: float, sets_in: bool):
    series = layer([24, 12], 24.0, amplitude=0.01, rayleigh=rayleigh)
    early, late = (min(series, key=lambda row: abs(row["time"] - t))["u_rms"] for t in (12.0, 24.0))
    assert (late > 1.3 * early) if sets_in else (late < 0.8 * early)


# -- bits ----------------------------------------------------------------------------------------------


SMALL: dict[str, tuple[list[int], dict[str, float]]] = {
    "heat": ([20, 16], {}),
    "wave": ([14, 12], {}),
    "alfven-decay": ([24], {}),
    "sound-wave": ([24], {}),
    "helical-turbulence": ([12, 16], {"seed_field": 0.1}),
    "orszag-tang-resistive": ([16], {}),
    "convection": ([16, 12], {"amplitude": 0.1}),
}


@functools.cache
def alone(name: str) -> str:
    from mpi4py import MPI

    n, settings = SMALL[name]
    return run(name, n, settings, steps=4, communicator=MPI.COMM_SELF).record.checksum


@cases("name", SMALL, default=["heat", "wave", "alfven-decay", "helical-turbulence"])
@pytest.mark.ranks(1, 2, 4, long=(1, 4))
def test_bits_do_not_depend_on_ranks(name: str):
    n, settings = SMALL[name]
    result = run(name, n, settings, steps=4, every=2, patch=5).record
    assert result.checksum == alone(name)
    assert all(value is not None for value in result.diagnostics.values())


# the compilation of kernels takes the time: two devices have other thread blocks than one
@cases(
    "name, device",
    itertools.product(SMALL, ("opencl:0,1", "opencl:0")),
    default=[("alfven-decay", "opencl:0")],
)
@pytest.mark.usefixtures("opencl")
def test_bits_do_not_depend_on_the_device(name: str, device: str):
    n, settings = SMALL[name]
    assert run(name, n, settings, steps=4, device=device).record.checksum == alone(name)


@cases(
    "name, n, settings, options",
    [
        ("heat", [8], {}, {"dim": 1, "order": 2}),
        ("heat", [12], {"kappa": 0.3}, {"dim": 2}),
        ("heat", [16, 12, 8], {}, {"order": 4}),
        ("wave", [16], {"courant": 0.05}, {"dim": 1}),
        ("wave", [16, 24], {"courant": 0.99}, {}),
        ("wave", [16], {}, {"dim": 3}),
    ],
    lambda case: len(case[1]) == 2 or case[2] == {"kappa": 0.3},
)
def test_heat_and_sound_waves_reach_their_documented_accuracy(
    name: str, n: list[int], settings: dict[str, float], options: dict[str, int]
) -> None:
    ready = Problem(name, n, settings, **options)
    checks = ready.run(threads=1).check()
    assert [check.name for check in checks] == [
        "error",
        {"heat": "heat conservation", "wave": "air conservation"}[name],
    ]
    assert all(check.passed for check in checks), checks


# -- failures ------------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2, long=(1,))
def test_a_nonfinite_value_is_reported_with_the_terms_of_its_equation():
    with pytest.raises(RunError) as raised:
        run("sound-wave", [24], {"dt": 5.0, "amplitude": 0.5}, steps=200)
    text = str(raised.value)
    assert re.search(r"field '\w+' is -?(nan|inf) at cell \(\d+,\) after step \d+", text)
    step = int(re.search(r"after step (\d+)", text)[1])
    assert step < 64  # the first value, not that of the first check
    named = re.search(rf"(?:terms that are not finite|largest terms) before step {step}: (.+)", text)[1]
    # the terms that lead to it, not all of the 14 terms that contain NaN
    assert 1 <= len(re.findall(r" of \w+", named)) <= 8


@pytest.mark.ranks(1, 2, long=(1,))
def test_extreme_densities_are_reported():
    with pytest.raises(RunError, match="the rate of conduction is not finite, after step 0") as raised:
        run("sound-wave", [24], {"amplitude": 1e3}, steps=2)
    assert "conduction of s" in str(raised.value)
    assert re.search(r"at cell \(\d+,\), where lnrho = -\d{3}", str(raised.value))


def test_a_case_writes_no_copy_of_its_initial_state(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FailureReplay, "_write", lambda *_: pytest.fail("it can be begun anew"))
    assert run("sound-wave", [24], steps=8, every=2).record.steps == 8


def test_a_nonfinite_initial_value_is_reported_with_its_terms(tmp_path: Path):
    text, wrong = (CASES / "sound_wave.py").read_text(), "hc.log(grid.x - 3.0)"  # of a negative density
    (tmp_path / "wrong.py").write_text(text.replace('values["lnrho0"] + lnrho', wrong))
    ready = Problem(str(tmp_path / "wrong.py"), [16])
    with pytest.raises(
        InputError, match=r"field 'lnrho' is nan at cell \(0,\) at the start.*\n.*pressure of"
    ):
        ready.run(steps=1, threads=1)


def test_a_time_step_below_its_minimum_names_the_limiter():
    with pytest.raises(RunError, match=r"below 0.1, limited by conduction, after step 0"):
        run("sound-wave", [24], {"K": 2.0, "floor": 0.1}, steps=2)


def wrong(name: str, **settings: float) -> Any:
    return pytest.param(name, settings, id=f"{name} {settings}")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(
            wrong("alfven-decay", **{key: value})
            for key, value in (("mu0", 0.0), ("mu0", -1.0), ("nu", -1.0))
        ),
        *(wrong("alfven-decay", waves=waves) for waves in (0.0, 0.5, -1.0, math.nan)),
        *(wrong("sound-wave", **{key: 0.0}) for key in ("cp", "cs0", "waves")),
        *(wrong("sound-wave", gamma=gamma) for gamma in (1.0, 0.9)),
        *(wrong("sound-wave", **{key: -0.1}) for key in ("nu", "zeta", "K")),
        wrong("sound-wave", lnrho0=math.inf),
        wrong("mhd-benchmark", gamma=1.0),
        wrong("mhd-benchmark", dt=0.0),
        wrong("orszag-tang-resistive", mu0=0.0),
        *(wrong("helical-turbulence", seed=seed) for seed in (-1.0, 0.5, 1e300)),
        *(wrong("convection", **{key: 0.0}) for key in ("rayleigh", "prandtl", "contrast", "width", "cp")),
        wrong("convection", index=-1.0),
    ],
)
def test_parameter_values_outside_their_range_are_rejected(name: str, settings: dict[str, float]):
    ((key, value),) = settings.items()
    parameter = Problem(name).declared[key]
    unit = "" if parameter.unit == "1" else f", in {parameter.unit}"
    with pytest.raises(InputError) as raised:
        _ = Problem(name, None, settings).program
    assert str(raised.value) == f"{key} is {value:g}; expected {parameter.range}{unit}: {parameter.about}"
    assert "number" in parameter.range


def test_invalid_numbers_of_a_case_are_rejected():
    for name, n, settings, message in (
        ("alfven-decay", [8, 8], {}, "n is 8,8; expected one number, or as many numbers as axes: 1"),
        ("convection", [8], {"rayleigh": -1.0}, "rayleigh is -1; expected a number above 0"),
        ("convection", [8], {"index": 2.0}, "index is 2; expected a number below 1"),
        ("sound-wave", [8], {"floor": -1.0}, r"floor is -1; expected a number from 0 on"),
        ("sound-wave", [8], {"gama": 1.0}, r"'gama' is unknown \(did you mean 'gamma'\?\)"),
        ("sound-wave", [8], {"mu": 1.0}, r"parameter 'mu' is unknown.*nu \[length²/time\]"),
        ("sound-waves", [8], {}, "did you mean 'sound-wave'"),
    ):
        with pytest.raises(InputError, match=message):
            _ = Problem(name, n, settings).program


def test_a_missing_parameter_is_named_with_its_unit():
    with pytest.raises(
        InputError, match=r"parameter 'eta' is missing: magnetic diffusivity, in length²/time"
    ):
        parameters.complete(Physics(entropy=False), {"nu": 1.0, "zeta": 0.0, "cs0": 1.0, "mu0": 1.0})


def test_invalid_parameters_are_rejected():
    good = {name: parameter.default for name, parameter in parameters.ALL.items()}
    for wrong, message in (
        ({"nu": -1.0}, r"nu is -1; expected a number from 0 on, in length²/time: kinematic viscosity"),
        ({"gamma": 0.5}, r"gamma is 0\.5; expected a number above 1: ratio of specific heats"),
        ({"nu": "x"}, r"nu is 'x'; expected a number from 0 on: kinematic viscosity"),
    ):
        with pytest.raises(InputError, match=message):
            parameters.complete(Physics(), {**good, **wrong})
        with pytest.raises(InputError, match=message):
            parameters.settings(Physics(), **wrong)
    with pytest.raises(InputError, match=r"no parameter 'nuu' \(did you mean 'nu'\?\)"):
        parameters.settings(Physics(), nuu=1.0)


def test_wall_conditions_of_missing_fields_are_rejected():
    grid = hc.Grid(8)
    for name in ("u_x", "rho"):
        with pytest.raises(
            InputError, match=f"boundary has '{name}'; expected names of fields: lnrho, u, s, A"
        ):
            MHD(grid, boundary={name: hc.Symmetric()})


def test_a_missing_parameter_of_user_equations_is_named_with_its_unit():
    grid = hc.Grid(8, periodic=True)
    mhd = MHD(grid, Physics(cooling=True))
    settings = parameters.complete(
        Physics(), {name: parameter.default for name, parameter in parameters.ALL.items()}
    )
    with pytest.raises(
        InputError, match="parameter 'T_cool' is missing: target temperature of the cooling, in temperature; "
    ):
        hc.Simulation(
            grid, lambda: mhd.equations(), parameters=settings | {"tau_cool": 1.0}, scheme=hc.RK3(), dt=0.1
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"entropy": False, "cooling": True}, "cooling acts on the entropy, but entropy is False"),
        ({"entropy": False, "conductivity": "power"}, "conductivity 'power' acts on the entropy"),
        ({"magnetic": False, "imposed": True}, "imposed is True, but magnetic is False"),
    ],
)
def test_options_without_effect_are_rejected(options: dict[str, Any], words: str):
    with pytest.raises(InputError, match=words):
        Physics(**options)


def test_invalid_numbers_of_cells_are_rejected():
    for text in ("²", "8,²", "0", "8,", "-8"):
        with pytest.raises(InputError, match=f"--n {text}: expected positive whole numbers"):
            cells_of(text)
