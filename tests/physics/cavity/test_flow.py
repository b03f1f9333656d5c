"""The buoyancy-driven cavity: published solutions, order, symmetry, identical bits."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import halocline as hc
from cavity_runs import GATHERED, PLANAR, SMALL, alone, richardson, run, steady, steady_diagnostic
from halocline.cli.app import run as command
from halocline.physics.cavity import Cavity
from halocline.physics.cavity.equations import stable_steps
from halocline.problems.problem import Problem
from loops import some
from suites import cases

# --- published solutions ---


@pytest.mark.parametrize("rayleigh", [1e3, *(pytest.param(Ra, marks=pytest.mark.long) for Ra in (1e4, 1e5))])
def test_a_square_has_the_published_heat_flux_and_velocities(rayleigh: float) -> None:
    """The extrapolated values have second order and agree within 1 and 2 % with de Vahl Davis."""
    sizes = [31, 63, 127] if rayleigh > 1e4 else [15, 31, 63]
    for quantity, published in PLANAR[rayleigh].items():
        values = [steady_diagnostic("cavity-2d", n, rayleigh, quantity) for n in sizes]
        limit = richardson(values, sizes)[1]
        assert abs(limit / published - 1) < (0.01 if "nusselt" in quantity else 0.02), quantity
    halfway = [steady_diagnostic("cavity-2d", n, rayleigh, "nusselt_mid") for n in sizes]
    assert abs(richardson(halfway, sizes)[0] - 2) < 0.35  # 0.2 on the finer grids below


@cases("name", ["cavity", "cavity-2d"], default=["cavity-2d"])
def test_a_case_checks_itself(name: str) -> None:
    ready = Problem(name, (20,), {"Ra": 1e4})
    result = ready.run(steps=100_000, threads=1)
    checks = {c.name: c for c in result.check()}
    assert all(c.passed for c in checks.values()), checks
    early_checks = {c.name: c for c in ready.run(steps=200, threads=1).check()}
    assert not early_checks["residual"].passed


# --- properties of the flow -------


def test_the_flow_is_symmetric() -> None:
    """A rotation by 180° with hot and cold exchanged leaves the flow unchanged."""
    sim = steady("cavity-2d", 31, 1e5).simulation
    T, u, v, p = (sim.gather(name) for name in ("T", "V_x", "V_y", "p"))
    for field, sign in ((T, -1), (u, -1), (v, -1)):
        assert np.abs(field - sign * field[::-1, ::-1]).max() < 1e-6 * np.abs(field).max()
    assert np.ptp(p - p[::-1, ::-1]) < 1e-6 * np.ptp(p)


def test_a_cube_is_symmetric_about_its_middle_plane() -> None:
    sim = steady("cavity", 11, 1e4).simulation
    T, w = sim.gather("T"), sim.gather("V_y")
    assert np.abs(T - T[:, ::-1]).max() < 1e-6
    assert np.abs(w + w[:, ::-1]).max() < 1e-6 * np.abs(w).max()
    assert np.abs(w).max() > 0.1


def test_the_pressure_is_pinned_in_the_middle() -> None:
    sim = steady("cavity-2d", 31, 1e5).simulation
    p = sim.gather("p")
    assert abs(p[15, 15]) < 1e-5 * np.ptp(p)


def a_flow_that_is_known(n: int, gathered: float) -> dict[str, float]:
    """Return the errors of numbers of a known flow in a square: integrals, derivatives and maxima.

    T = ½ - sin(πx/2) + sin(πx) cos²(πy) / 5 has no slope at the walls y = 0 and 1; u = sin(πx) y (1-y) (2-y).
    """
    ready = Problem("cavity-2d", (n,), {"gathered": gathered})
    grid = ready.grid
    T, u = grid.fields["T"], grid.fields["V_x"]
    sim = hc.Simulation(
        grid,
        lambda T: {T: 0.0 * T},
        parameters=ready.script.top["flow"].parameters,
        scheme=hc.Euler(),
        dt=1.0,
    )
    x, y = T.coordinates
    sim[T] = 0.5 - hc.sin(0.5 * math.pi * x) + 0.2 * hc.sin(math.pi * x) * hc.cos(math.pi * y) ** 2
    sim[u] = hc.sin(math.pi * x) * y * (1.0 - y) * (2.0 - y)
    quantities = ready.known.diagnostics()
    hot, mid, most = sim.evaluate(*(quantities[name] for name in ("nusselt_hot", "nusselt_mid", "u_max")))
    carried = 0.25 * (0.5 - math.sqrt(0.5)) + 0.1 * (0.25 - 3.0 / (4.0 * math.pi**2))
    conducted = 0.5 * math.pi * math.sqrt(0.5)
    return {
        "nusselt_hot": abs(hot - 0.4 * math.pi),
        "nusselt_mid": abs(mid - (carried + conducted)),
        "u_max": abs(most - 2.0 / (3.0 * math.sqrt(3.0))),
    }


@cases("gathered", [0.0, 0.6], default=[0.6])
@pytest.mark.parametrize("count", [(16, 32, 64), (15, 31, 63)], ids=["beside the middle", "in the middle"])
def test_diagnostics_of_a_known_flow_are_of_second_order(
    gathered: float, count: tuple[int, int, int]
) -> None:
    errors = [a_flow_that_is_known(n, gathered) for n in count]
    for name in some(errors[0]):
        for coarse, fine in some(pairwise(errors)):
            assert fine[name] < coarse[name] / 3.2, (
                name,
                [errors_of_grid[name] for errors_of_grid in errors],
            )


def test_results_do_not_depend_on_units() -> None:
    """A cavity of 5 cm, in metres, seconds, kilograms and kelvins, has the same numbers."""
    in_si_units = {"L": 0.05, "alpha": 2.2e-5, "rho": 1.2, "T_hot": 300.0, "T_cold": 290.0}
    reference_run, si_run = steady("cavity-2d", 15, 1e4), steady("cavity-2d", 15, 1e4, **in_si_units)
    for quantity, value in some(reference_run.record.diagnostics.items()):
        if not quantity.startswith("residual"):
            assert si_run.record.diagnostics[quantity] == pytest.approx(value, rel=1e-5), quantity


def test_heat_is_conducted_in_a_fluid_at_rest() -> None:
    result = steady("cavity-2d", 15, 1e-3).record.diagnostics
    for quantity in ("nusselt_hot", "nusselt_mid", "nusselt_max", "nusselt_min"):
        assert result[quantity] == pytest.approx(1.0, rel=1e-6)


# --- identical bits -------------


def on(*of_every_change: int) -> pytest.MarkDecorator:
    """Return the marks for two and four ranks; other counts belong to the extended suite."""
    return pytest.mark.ranks(2, 4, long=tuple({2, 4} - {*of_every_change}))


@pytest.mark.parametrize(("name", "stages", "settings"), [
    pytest.param("cavity", 1, {}, marks=on()),
    pytest.param("cavity", 2, {}, marks=on()),
    pytest.param("cavity", 3, {}, marks=on()),
    pytest.param("cavity-2d", 1, {}, marks=on()),
    pytest.param("cavity-2d", 2, {}, marks=on()),
    pytest.param("cavity-2d", 3, {}, marks=on()),
    pytest.param("cavity-2d", 1, GATHERED, marks=on()),
    pytest.param("cavity-2d", 3, GATHERED, marks=on()),
])  # fmt: skip
def test_bits_do_not_depend_on_ranks(name: str, stages: int, settings: dict[str, Any]) -> None:
    ways: list[dict[str, Any]] = [{"threads": 2, "patch": 7}]
    if name == "cavity-2d":  # mpi/test_communication.py has all cuts of a cube
        ways += [{}, {"decomposition": "1d-y"}]
    for options in ways:
        all_given = {"stages": stages, "watch": 5, **settings}
        record = Problem(name, SMALL[name], all_given).run(steps=12, **{"threads": 1, **options}).record
        assert record.checksum == alone(name, stages, **settings), options


@pytest.mark.usefixtures("opencl")
@cases("stages, settings", [(1, {}), (3, {}), (3, GATHERED)], default=[(3, GATHERED)])
def test_bits_do_not_depend_on_the_device(stages: int, settings: dict[str, Any]) -> None:
    all_given = {"stages": stages, "watch": 5, **settings}
    result = run("cavity-2d", SMALL["cavity-2d"], all_given, steps=12, device="opencl:0")
    assert result.record.checksum == alone("cavity-2d", stages, **settings)


def test_an_iteration_is_one_sweep_with_minimal_exchange() -> None:
    """The only sweep exchanges two cells of the pressure and one cell of all other fields."""
    from halocline.compile.compiler import compile_program

    ready = Problem("cavity", SMALL["cavity"], {"stages": 1})
    schedule = compile_program(ready.program, ready.grid)
    full_sweeps = [sweep for sweep in schedule.pass_sweeps() if sweep.share == 1.0]
    assert len(full_sweeps) == 1
    widths = {schedule.fields[f].name: p.layers(3) for f, p in full_sweeps[0].reads.items()}
    assert widths.pop("p") == ((2, 2),) * 3
    assert set(widths.values()) == {((1, 1),) * 3}


# --- rejected input ---


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"T_hot": -1.0}, "T_hot is -1 and T_cold -0.5; expected T_hot above T_cold"),
        ({"Ra": -1.0}, "Ra is -1; expected a number above 0"),
        ({"stages": 99}, "stages is 99; expected a whole number from 0 to 16"),
        ({"courant": 0.0}, "courant is 0; expected a number above 0 to 100"),
        ({"gathered": 1.0}, "gathered is 1; expected a number from 0 to 0.9"),
    ],
)
def test_invalid_parameters_are_rejected(settings: dict[str, float], words: str) -> None:
    with pytest.raises(hc.InputError) as raised:
        _ = Problem("cavity-2d", (16,), settings).program
    assert words in str(raised.value)


def test_time_steps_have_the_limits_of_their_formulas() -> None:
    """Advection, diffusion and artificial sound limit the step in turn, as their formulas state."""
    for nu, speed2, beta2, squares, nearest in (
        (10.0, 1e4, 1e4, 10.0, 0),
        (1.0, 1.0, 1.0, 1e3, 1),
        (0.5, 1.0, 1e4, 1e3, 2),
    ):
        steps = stable_steps(min(nu, 1.0), max(nu, 1.0), nu, speed2, beta2, squares, 1)
        assert steps[0] == pytest.approx(2.0 * min(nu, 1.0) / speed2)
        assert steps[1] == pytest.approx(0.5 / (max(nu, 1.0) * squares))
        s = math.sqrt(speed2 + 4.0 * beta2)
        assert steps[2] == pytest.approx(4.0 * nu / (s * (math.sqrt(speed2) + s)))
        assert steps.index(min(steps)) == nearest


def test_the_json_of_a_run_has_the_expected_keys(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--n", "12", "--set", "Ra=1e3", "--steps", "400", "--threads", "1", "--json", "-"]
    assert command(["run", "cavity-2d", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    for name in ("nusselt_hot", "nusselt_mid", "u_max", "v_max"):
        assert record[name] == record["diagnostics"][name]
    assert record["iterations"] == record["steps"]
    assert record["residuals"] == {
        f: record["diagnostics"][f"residual_{f}"] for f in ("p", "V_x", "V_y", "T")
    }
    # 1e-7 cells steps / (np s) on one core
    assert record["ssspnt"] * record["ns_per_cell_step"] == pytest.approx(100.0)
    assert {"seconds", "share_of_bound", "checksum"} <= record.keys()


def test_residuals_are_shown_during_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Residuals appear as rows at the given steps, and next to the count of steps."""
    rows: list[int] = []
    messages: list[str] = []

    def look(row: dict[str, Any]) -> None:
        rows.append(row["step"])
        assert rows == list(range(0, 100 * len(rows), 100))

    case = Problem("cavity-2d", (12,), {"Ra": 1e3, "watch": 50, "tolerance": 0})
    case.run(
        steps=300,
        every=100,
        threads=1,
        on_row=look,
        on_progress=lambda step, message: messages.append(message),
    )
    assert rows == [0, 100, 200, 300]
    assert all(re.match(r"residuals p \S+, V_x \S+, V_y \S+, T \S+", message) for message in messages)
    last = case.run(steps=300, threads=1).record.diagnostics
    assert last is not None
    assert f"T {last['residual_T']:.1e}" in messages[-1]
    settings = ["--set", "Ra=1e3", "--set", "watch=50", "--set", "tolerance=0"]
    options = ["--n", "12", *settings, "--steps", "300", "--every", "100", "--threads", "1"]
    assert command(["run", "cavity-2d", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = lines[2].split()
    assert heads[:3] == ["step", "time", "time_step"]
    assert [line.split()[0] for line in lines[4:8]] == ["0", "100", "200", "300"]
    assert len({len(line) for line in lines[2:8]}) == 1
    assert float(lines[7].split()[heads.index("residual_T")]) == pytest.approx(last["residual_T"], rel=1e-3)


def test_the_end_time_is_reached_exactly() -> None:
    assert run("cavity-2d", (12,), {"Ra": 1e3}, until=0.05).record.time == 0.05


def test_units_beyond_the_range_of_numbers_are_rejected() -> None:
    with pytest.raises(hc.InputError, match=r"expected positive finite numbers\. Use other units"):
        _ = Problem("cavity-2d", (12,), {"alpha": 1e-300}).program


def test_a_mesh_too_coarse_for_the_damping_is_rejected() -> None:
    with pytest.raises(hc.InputError, match="axis y has 3 points between its walls; expected at least 4"):
        Cavity(hc.Grid((8, 3), walls="node"))
