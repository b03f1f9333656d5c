"""The buoyancy-driven cavity: published solutions, order, symmetry, the same bits everywhere."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.physics.cavity import Cavity
from halocline.physics.cavity.equations import stable_steps
from halocline.problems.problem import Problem
from halocline.problems.result import Result
from halocline.run.simulation.checks import Check
from loops import some


def published(name: str) -> dict[float, dict[str, float]]:
    """Return the published numbers in the file of a case, by Rayleigh number."""
    problem = Problem(name)
    assert problem.program
    numbers: dict[float, dict[str, float]] = problem.script.top["KNOWN"]
    return numbers


PLANAR, CUBIC = published("cavity-2d"), published("cavity")


def run(name: str, n: tuple[int, ...], given: dict[str, Any] | None = None, **how: Any) -> Result:
    return Problem(name, n, given).run(**{"threads": 1, **how})


@functools.cache
def steady(name: str, n: int, rayleigh: float, **given: float | str) -> Result:
    result = run(name, (n,), {"Ra": rayleigh, **given}, steps=200_000)
    assert result.record.steps < 200_000
    return result


def number(name: str, n: int, rayleigh: float, what: str, **given: float | str) -> float:
    found = steady(name, n, rayleigh, **given).record.diagnostics
    assert found is not None
    return float(found[what] or math.nan)


def richardson(values: list[float], sizes: list[int]) -> tuple[float, float]:
    """The order of three meshes whose spacings have one ratio, and what the last two lead to with order 2."""
    ratio = (sizes[-1] + 1) / (sizes[-2] + 1)
    order = math.log((values[0] - values[1]) / (values[1] - values[2])) / math.log(ratio)
    return order, values[2] + (values[2] - values[1]) / (ratio**2 - 1)


def order_of(values: Sequence[float], sizes: Sequence[int]) -> float:
    """The power of the spacing that falls as three values do, whatever the ratios of their spacings."""
    h = [1.0 / (n + 1) for n in sizes]
    wanted = (values[0] - values[1]) / (values[1] - values[2])
    low, high = 0.1, 8.0
    for _ in range(60):
        order = 0.5 * (low + high)
        steeper = (h[0] ** order - h[1] ** order) / (h[1] ** order - h[2] ** order) > wanted
        low, high = (low, order) if steeper else (order, high)
    return 0.5 * (low + high)


# --- published solutions ---


@pytest.mark.parametrize("rayleigh", [1e3, *(pytest.param(Ra, marks=pytest.mark.long) for Ra in (1e4, 1e5))])
def test_a_square_has_the_published_heat_flux_and_velocities(rayleigh: float) -> None:
    """Of second order, and within 1 and 2 % of de Vahl Davis where the meshes lead to."""
    sizes = [31, 63, 127] if rayleigh > 1e4 else [15, 31, 63]
    for what, published in PLANAR[rayleigh].items():
        values = [number("cavity-2d", n, rayleigh, what) for n in sizes]
        limit = richardson(values, sizes)[1]
        assert abs(limit / published - 1) < (0.01 if "nusselt" in what else 0.02), what
    halfway = [number("cavity-2d", n, rayleigh, "nusselt_mid") for n in sizes]
    assert abs(richardson(halfway, sizes)[0] - 2) < 0.35  # 0.2 on finer meshes, below


@pytest.mark.long
@pytest.mark.parametrize("rayleigh", [1e3, 1e4, 1e5, 1e6])
def test_a_square_converges_at_second_order(rayleigh: float) -> None:
    sizes = [63, 127, 255] if rayleigh > 1e4 else [31, 63, 127]
    order, middle = richardson([number("cavity-2d", n, rayleigh, "nusselt_mid") for n in sizes], sizes)
    assert abs(order - 2) < 0.2
    hot = richardson([number("cavity-2d", n, rayleigh, "nusselt_hot") for n in sizes], sizes)[1]
    assert abs(hot / PLANAR[rayleigh]["nusselt_hot"] - 1) < 0.01
    assert abs(middle / hot - 1) < 0.002  # what goes in at one wall comes out at the other


@pytest.mark.long
@pytest.mark.parametrize("rayleigh", [1e3, 1e4, 1e5])
def test_a_cube_has_the_published_heat_flux(rayleigh: float) -> None:
    """Within 1 % where meshes of 39 and 79 points lead to, and on the finer one alone."""
    for what in ("nusselt_hot", "nusselt_mid"):
        coarse, fine = (number("cavity", n, rayleigh, what) for n in (39, 79))
        for found in (fine + (fine - coarse) / 3, fine):
            assert abs(found / CUBIC[rayleigh]["nusselt_hot"] - 1) < 0.01


@pytest.mark.long
@pytest.mark.parametrize(
    ("rayleigh", "sizes", "gathered"),
    [(1e3, (19, 39, 79), 0.5), (1e4, (19, 39, 79), 0.0), (1e5, (39, 55, 79), 0.5)],
)
def test_a_cube_converges_at_second_order(rayleigh: float, sizes: tuple[int, ...], gathered: float) -> None:
    """Where layers are thin against the spacing, points gather at the walls."""
    given = {"gathered": gathered} if gathered else {}
    values = [number("cavity", n, rayleigh, "nusselt_mid", **given) for n in sizes]
    assert (values[0] - values[1]) * (values[1] - values[2]) > 0
    order = order_of(values, sizes)
    assert abs(order - 2) < 0.2
    ratio = ((sizes[2] + 1) / (sizes[1] + 1)) ** 2
    limit = values[2] + (values[2] - values[1]) / (ratio - 1)
    assert abs(limit / CUBIC[rayleigh]["nusselt_hot"] - 1) < 0.002


@pytest.mark.parametrize("name", ["cavity", "cavity-2d"])
def test_a_case_checks_itself(name: str) -> None:
    ready = Problem(name, (20,), {"Ra": 1e4})
    result = ready.run(steps=100_000, threads=1)
    found = {c.name: c for c in ready.check(result)}
    assert all(c.passed for c in found.values()), found
    early = {c.name: c for c in ready.check(ready.run(steps=200, threads=1))}
    assert not early["residual"].passed


@pytest.mark.long
@pytest.mark.parametrize(("n", "rayleigh"), [((12,), 2e3), ((8, 12), 1e4)])
def test_nothing_is_compared_where_nothing_is_known(n: tuple[int, ...], rayleigh: float) -> None:
    ready = Problem("cavity-2d", n, {"Ra": rayleigh})
    (last,) = [c for c in ready.check(ready.run(steps=100_000, threads=1)) if c.name == "nusselt_hot"]
    assert last == Check.not_compared("nusselt_hot", "nothing is known of this Ra, Pr and shape")


# --- what must hold of the flow ---


def test_the_flow_is_symmetric() -> None:
    """Turned by 180° the cavity is itself with hot and cold exchanged."""
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


@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 3, 6])
def test_several_stages_lead_to_the_same_flow_sooner(stages: int) -> None:
    one, more = (steady("cavity-2d", 63, 1e4, stages=each) for each in (1, stages))
    assert more.record.steps * stages < one.record.steps
    for what in ("nusselt_hot", "u_max"):
        assert more.record.diagnostics[what] == pytest.approx(one.record.diagnostics[what], rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("rayleigh", [1e4, 1e5])
def test_points_that_gather_at_walls_are_worth_more(rayleigh: float) -> None:
    """Three meshes lead to what is published, and one is nearer to it than as many even points."""
    sizes, at_walls = [15, 31, 63], {"gathered": 0.6}
    for what, published in PLANAR[rayleigh].items():
        found = [number("cavity-2d", n, rayleigh, what, **at_walls) for n in sizes]
        assert abs(richardson(found, sizes)[1] / published - 1) < 0.01, what
    even, gathered = (number("cavity-2d", 31, rayleigh, "nusselt_hot", **how) for how in ({}, at_walls))
    known = PLANAR[rayleigh]["nusselt_hot"]
    assert abs(gathered - known) < 0.5 * abs(even - known)


def a_flow_that_is_known(n: int, gathered: float) -> dict[str, float]:
    """How far numbers of a flow in a square are from its integrals, derivatives and greatest values.

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
    shown = ready.known.diagnostics()
    hot, mid, most = sim.evaluate(*(shown[name] for name in ("nusselt_hot", "nusselt_mid", "u_max")))
    carried = 0.25 * (0.5 - math.sqrt(0.5)) + 0.1 * (0.25 - 3.0 / (4.0 * math.pi**2))
    conducted = 0.5 * math.pi * math.sqrt(0.5)
    return {
        "nusselt_hot": abs(hot - 0.4 * math.pi),
        "nusselt_mid": abs(mid - (carried + conducted)),
        "u_max": abs(most - 2.0 / (3.0 * math.sqrt(3.0))),
    }


@pytest.mark.parametrize("gathered", [0.0, 0.6])
@pytest.mark.parametrize("count", [(16, 32, 64), (15, 31, 63)], ids=["beside the middle", "in the middle"])
def test_numbers_of_a_flow_that_is_known_are_of_second_order(
    gathered: float, count: tuple[int, int, int]
) -> None:
    errors = [a_flow_that_is_known(n, gathered) for n in count]
    for name in some(errors[0]):
        for coarse, fine in some(pairwise(errors)):
            assert fine[name] < coarse[name] / 3.2, (name, [each[name] for each in errors])


def test_units_do_not_matter() -> None:
    """A cavity of 5 cm, in metres, seconds, kilograms and kelvins, has the same numbers."""
    own = {"L": 0.05, "alpha": 2.2e-5, "rho": 1.2, "T_hot": 300.0, "T_cold": 290.0}
    here, there = steady("cavity-2d", 15, 1e4), steady("cavity-2d", 15, 1e4, **own)
    for what, value in some(here.record.diagnostics.items()):
        if not what.startswith("residual"):
            assert there.record.diagnostics[what] == pytest.approx(value, rel=1e-5), what


def test_heat_is_conducted_where_nothing_moves() -> None:
    found = steady("cavity-2d", 15, 1e-3).record.diagnostics
    for what in ("nusselt_hot", "nusselt_mid", "nusselt_max", "nusselt_min"):
        assert found[what] == pytest.approx(1.0, rel=1e-6)


# --- the same bits everywhere ---


SMALL = {"cavity": (12, 12, 11), "cavity-2d": (20, 18)}


@functools.cache
def alone(name: str, stages: int, **given: Any) -> str:
    from mpi4py import MPI

    every = {"stages": stages, "watch": 5, **given}
    record = Problem(name, SMALL[name], every).run(steps=12, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum is not None
    return record.checksum


GATHERED = {"gathered": 0.5}


def on(*of_every_change: int) -> pytest.MarkDecorator:
    """Two ranks and four; on those not given it is one of the long tests."""
    return pytest.mark.ranks(2, 4, long=tuple({2, 4} - {*of_every_change}))


@pytest.mark.parametrize(("name", "stages", "given"), [
    pytest.param("cavity", 1, {}, marks=on()),
    pytest.param("cavity", 2, {}, marks=on()),
    pytest.param("cavity", 3, {}, marks=on()),
    pytest.param("cavity-2d", 1, {}, marks=on()),
    pytest.param("cavity-2d", 2, {}, marks=on(4)),
    pytest.param("cavity-2d", 3, {}, marks=on()),
    pytest.param("cavity-2d", 1, GATHERED, marks=on()),
    pytest.param("cavity-2d", 3, GATHERED, marks=on(4)),
])  # fmt: skip
def test_no_bit_depends_on_ranks(name: str, stages: int, given: dict[str, Any]) -> None:
    ways: list[dict[str, Any]] = [{"threads": 2, "patch": 7}]
    if name == "cavity-2d":  # a cube is cut in all ways in mpi/test_communication.py
        ways += [{}, {"decomposition": "1d-y"}]
    for how in ways:
        all_given = {"stages": stages, "watch": 5, **given}
        record = Problem(name, SMALL[name], all_given).run(steps=12, **{"threads": 1, **how}).record
        assert record.checksum == alone(name, stages, **given), how


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("stages", "given"),
    [(1, {}), *(pytest.param(3, given, marks=pytest.mark.long) for given in ({}, GATHERED))],
)
def test_no_bit_depends_on_the_device(stages: int, given: dict[str, Any]) -> None:
    all_given = {"stages": stages, "watch": 5, **given}
    found = run("cavity-2d", SMALL["cavity-2d"], all_given, steps=12, device="opencl:0")
    assert found.record.checksum == alone("cavity-2d", stages, **given)


def test_an_iteration_is_one_sweep_that_exchanges_what_is_read() -> None:
    """The pressure two cells wide, all other fields one; nothing else is swept."""
    from halocline.compile.compiler import compile_program

    ready = Problem("cavity", SMALL["cavity"], {"stages": 1})
    schedule = compile_program(ready.program, ready.grid)
    always = [sweep for sweep in schedule.pass_sweeps() if sweep.share == 1.0]
    assert len(always) == 1
    widths = {schedule.fields[f].name: p.layers(3) for f, p in always[0].reads.items()}
    assert widths.pop("p") == ((2, 2),) * 3
    assert set(widths.values()) == {((1, 1),) * 3}


# --- what cannot be ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"T_hot": -1.0}, "T_hot is -1 and T_cold -0.5; expected T_hot above T_cold"),
        ({"Ra": -1.0}, "Ra is -1; expected a number above 0"),
        ({"stages": 99}, "stages is 99; expected a whole number from 0 to 16"),
        ({"courant": 0.0}, "courant is 0; expected a number above 0 to 100"),
        ({"gathered": 1.0}, "gathered is 1; expected a number from 0 to 0.9"),
    ],
)
def test_numbers_that_cannot_be(given: dict[str, float], words: str) -> None:
    with pytest.raises(hc.InputError) as told:
        _ = Problem("cavity-2d", (16,), given).program
    assert words in str(told.value)


AWAY = r"three times that of free fall over the height, after step \d+ \(time \S+\)\n"
FREE_FALL = "in free fall the largest stable step is 5.528e-0[67], the limit of artificial sound"


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "given", "words"),
    [
        # steps become shorter as the flow becomes faster, so that nothing would ever be infinite
        (20, {"Ra": 1e6}, f"{AWAY}{FREE_FALL}: take more points"),
        (24, {"Ra": 1e4, "courant": 3}, f"{AWAY}courant is 3: .*, at first 0.0004, the limit of diffusion; "),
        (40, {"Ra": 1e3, "courant": 8, "stages": 6}, f"{AWAY}courant is 8: .* 0.003123, the limit of diff"),
        (24, {"courant": 50, "stages": 1}, f"{AWAY}courant is 50: .*, the limit of artificial sound; take"),
        (24, {"V_ref": 0.5}, f"field 'p' is nan at .*\nV_ref is 0.5.* 266.5: {FREE_FALL}; leave V_ref out"),
    ],
)
def test_a_flow_that_runs_away_says_which_limit_it_broke(n: int, given: dict[str, float], words: str) -> None:
    with pytest.raises(hc.RunError, match=words) as told:
        run("cavity-2d", (n,), given, steps=100_000)
    assert (told.value.place is not None) == words.startswith("field")


def test_steps_have_the_limits_that_their_formulas_say() -> None:
    """Advection, diffusion and artificial sound are the nearest in turn."""
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


def test_the_json_of_a_run_has_what_one_looks_for(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--n", "12", "--set", "Ra=1e3", "--steps", "400", "--threads", "1", "--json", "-"]
    assert command(["run", "cavity-2d", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    for name in ("nusselt_hot", "nusselt_mid", "u_max", "v_max"):
        assert told[name] == told["diagnostics"][name]
    assert told["iterations"] == told["steps"]
    assert told["residuals"] == {f: told["diagnostics"][f"residual_{f}"] for f in ("p", "V_x", "V_y", "T")}
    # 1e-7 cells steps / (np s), of which one core was
    assert told["ssspnt"] * told["ns_per_cell_step"] == pytest.approx(100.0)
    assert {"seconds", "share_of_bound", "checksum"} <= told.keys()


def test_residuals_are_shown_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As rows at each of some steps, and beside the count of steps."""
    rows: list[int] = []
    seen: list[str] = []

    def look(row: dict[str, Any]) -> None:
        rows.append(row["step"])
        assert rows == list(range(0, 100 * len(rows), 100))

    case = Problem("cavity-2d", (12,), {"Ra": 1e3, "watch": 50, "tolerance": 0})
    case.run(steps=300, every=100, threads=1, on_look=look, on_progress=lambda step, said: seen.append(said))
    assert rows == [0, 100, 200, 300]
    assert all(re.match(r"residuals p \S+, V_x \S+, V_y \S+, T \S+", said) for said in seen)
    last = case.run(steps=300, threads=1).record.diagnostics
    assert last is not None
    assert f"T {last['residual_T']:.1e}" in seen[-1]
    given = ["--set", "Ra=1e3", "--set", "watch=50", "--set", "tolerance=0"]
    options = ["--n", "12", *given, "--steps", "300", "--every", "100", "--threads", "1"]
    assert command(["run", "cavity-2d", *options]) == 0
    told = capsys.readouterr().out.splitlines()
    heads = told[2].split()
    assert heads[:3] == ["step", "time", "time_step"]
    assert [line.split()[0] for line in told[4:8]] == ["0", "100", "200", "300"]
    assert len({len(line) for line in told[2:8]}) == 1
    assert float(told[7].split()[heads.index("residual_T")]) == pytest.approx(last["residual_T"], rel=1e-3)


@pytest.mark.long
@pytest.mark.ranks(2)
def test_the_speed_is_that_of_each_core() -> None:
    record = run("cavity-2d", (16,), {"Ra": 1e3}, steps=20, threads=2).record
    assert record.ssspnt is not None
    assert record.ns_per_cell_step is not None
    assert record.cores_or_devices == 4
    assert record.ssspnt * record.ns_per_cell_step == pytest.approx(100.0 / 4)
    case = Problem("cavity-2d", (16,), {"Ra": 1e3})
    assert case.run(only="exchange", steps=5, threads=1).record.ssspnt is None


@pytest.mark.usefixtures("opencl")
def test_the_speed_is_that_of_each_device() -> None:
    given = {"stages": 1, "watch": 5}
    record = run("cavity-2d", (20, 18), given, steps=4, device="opencl:0", subdomains_per_rank=2).record
    assert record.ssspnt is not None
    assert record.ns_per_cell_step is not None
    assert record.ssspnt * record.ns_per_cell_step == pytest.approx(100.0)


@pytest.mark.ranks(2)
@pytest.mark.usefixtures("opencl")
def test_devices_are_counted_once() -> None:
    """One that two ranks of a node share; devices of the same name on two nodes are two."""
    for options, count in (({"ranks_per_node": 2}, 1), ({"ranks_per_node": 1}, 2)):
        given = {"stages": 1, "watch": 5}
        record = run("cavity-2d", (20, 18), given, steps=4, device="opencl:0", **options).record
        assert record.cores_or_devices == count


def test_a_time_is_reached_exactly() -> None:
    assert run("cavity-2d", (12,), {"Ra": 1e3}, until=0.05).record.time == 0.05


def test_units_that_numbers_cannot_hold_are_refused() -> None:
    with pytest.raises(hc.InputError, match="expected positive numbers: take other units"):
        _ = Problem("cavity-2d", (12,), {"alpha": 1e-300}).program


def test_a_mesh_too_coarse_for_the_damping_is_refused() -> None:
    with pytest.raises(hc.InputError, match="axis y has 3 points between its walls; expected at least 4"):
        Cavity(hc.Grid((8, 3), walls="node"))
