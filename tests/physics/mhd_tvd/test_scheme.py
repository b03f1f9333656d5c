"""Ideal magnetohydrodynamics with shocks: problems with known solutions, symmetries, identical bits."""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.cli.app import run as command
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.physics.mhd_tvd import IdealMHD, checks
from halocline.physics.mhd_tvd.converged import incompatible_grids
from halocline.physics.mhd_tvd.tubes import NARROWEST, plateaux, reference
from halocline.problems.problem import Problem
from loops import some
from shock_runs import SMALL, checksum_of_run, passed_checks, passed_checks_until, run, wave_error
from suites import cases

CARRIED = ("entropy", "shear_y", "shear_z", "entropy_hydro")
WAVES = ("fast", "alfven", "slow", "sound", *CARRIED)


# -- waves -------------------------------------------------------------------------------------------------


@cases(
    "wave",
    ["fast", "alfven", "slow", "entropy", "sound", "shear_y", "entropy_hydro"],
    default=["fast", "sound"],
)
def test_waves_converge_at_second_order(wave: str) -> None:
    coarse, fine = (wave_error((n,), {"wave": wave}) for n in (128, 256))
    assert 1.8 < math.log2(coarse / fine) < 2.3  # limiters begin to preserve extrema at this size


def test_the_command_checks_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["run", "linear-wave", "--n", "64", "--set", "flux=hlld", "--check", "--json", "-"]
    assert command(line) == 0
    result = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert all(check["passed"] for check in result.values())
    assert 0.0 < result["error"]["value"] <= result["error"]["most"]


@pytest.mark.parametrize("v", [-0.5, 0.5])
def test_a_polarised_wave_moves_with_the_gas(v: float) -> None:
    """The wave completes a period at the time 1/(1 + v)."""
    ready = Problem("cp-alfven", (32,), {"v": v}, dim=1)
    result = {c.name: c for c in ready.run(threads=1).check()}
    assert result["error"].passed
    assert result["error"].value < 0.1


@cases("wave", ["fast", "alfven", "slow"], default=["fast"])
def test_waves_in_both_directions_are_mirror_images(wave: str) -> None:
    """Data mirrored bit by bit give mirrored waves: velocity and field along the axis change sign."""
    ready = Problem("linear-wave", (64,), {"wave": wave})
    result = ready.run(steps=40, threads=1)
    forward = {f.name: result.simulation.gather(f) for f in result.fields}
    result = ready.run(steps=0, threads=1)
    sim = result.simulation
    for f in some(result.fields):
        sign = -1.0 if f.name in ("m_x", "b_x") else 1.0
        start = sim.gather(f)
        assert start is not None
        # faces mirror about the middle of the box: the face below a cell becomes the face above it
        sim[f] = sign * (np.roll(start[::-1], 1) if f.name == "b_x" else start[::-1])
    sim.run(steps=40)
    for f in some(result.fields):
        sign, expected = (-1.0 if f.name in ("m_x", "b_x") else 1.0), forward[f.name]
        assert expected is not None
        mirrored = np.roll(expected[::-1], 1) if f.name == "b_x" else expected[::-1]
        assert np.array_equal(sim.gather(f), sign * mirrored), f.name


@cases("wave", ["fast", "alfven", "slow", "sound"], default=["alfven"])
def test_waves_in_both_directions_have_the_same_error(wave: str) -> None:
    # the default direction is 1
    left, right = (wave_error((128,), {"wave": wave} | options) for options in ({"direction": -1}, {}))
    assert abs(left - right) < 1e-6 * right


OF_EVERY_CHANGE = {("fast", -1), ("alfven", 1), ("entropy", 1)}


@pytest.mark.parametrize(("wave", "direction"), [
    pytest.param(w, d, marks=() if (w, d) in OF_EVERY_CHANGE else pytest.mark.long)
    for w in WAVES for d in ((1,) if w in CARRIED else (1, -1))
])  # fmt: skip
def test_waves_have_the_exact_position_at_any_time(wave: str, direction: int) -> None:
    """The exact solution is known at any time, so that the error is checked also after partial periods."""
    ready = Problem("linear-wave", (64,), {"wave": wave, "direction": direction})
    result = {check.name: check for check in ready.run(until=0.3, threads=1).check()}
    assert result["error"].passed, result["error"]


@cases("periods", [2, 5], default=[2])
@pytest.mark.parametrize("wave", ["slow", "sound", *(
    pytest.param(w, marks=pytest.mark.long) for w in WAVES if w not in ("slow", "sound")
)])  # fmt: skip
def test_waves_have_the_exact_position_after_periods(wave: str, periods: int) -> None:
    """The phase error grows with time, and so does its bound."""
    ready = Problem("linear-wave", (64,), {"wave": wave})
    until = ready.known.until
    assert until is not None
    once, often = (
        {c.name: c for c in ready.run(until=until * n, threads=1).check()}["error"] for n in (1, periods)
    )
    assert often.passed, often
    assert once.maximum is not None
    assert often.maximum == pytest.approx(periods * once.maximum)
    assert often.value > once.maximum or wave != "slow"


@pytest.mark.parametrize("v", [0.5, *(pytest.param(v, marks=pytest.mark.long) for v in (0.0, -0.5))])
def test_a_polarised_wave_has_the_exact_position_at_any_time(v: float) -> None:
    ready = Problem("cp-alfven", (64,), {"v": v}, dim=1)
    result = {check.name: check for check in ready.run(until=0.3, threads=1).check()}
    assert result["error"].passed, result["error"]


# -- shocks ------------------------------------------------------------------------------------------------


@cases(
    "name, n, count",
    [("rj2a", 512, 5), ("rj4a", 512, 4), ("brio-wu", 400, 4)],
    lambda case: case[0] != "rj4a",
)
def test_tubes_reach_the_converged_profiles(name: str, n: int, count: int) -> None:
    """The profiles agree with the converged ones; plateaux with an initial state do not count."""
    result = passed_checks(name, (n,))
    assert sum(key.startswith("plateau at") for key in result) == count


@pytest.mark.parametrize(
    ("settings", "until", "words"),
    [
        ({"gamma": 1.4}, 0.02, "no converged solution for gamma = 1.4"),
        ({}, 0.21, "after t = 0.2 waves may reach the ends of the tube"),
    ],
)
def test_a_tube_without_a_reference_is_reported(settings: dict[str, float], until: float, words: str) -> None:
    result = passed_checks_until("rj2a", (64,), until, settings)
    for name in ("profiles", "plateaux"):
        assert not result[name].compared
        assert words in result[name].about


def test_a_coarse_tube_has_no_plateau() -> None:
    assert "no plateau has 10 or more cells" in passed_checks("rj4a", (64,))["plateaux"].about


def test_plateaux_lie_between_waves() -> None:
    for name, count in (("rj2a", 5), ("rj4a", 4), ("brio-wu", 4)):
        x, exact = reference(name)
        for centre in (centres := plateaux(x, exact, NARROWEST / 512)):
            assert abs(np.interp(centre, x, exact["rho"]) - exact["rho"][0]) > 1e-3
            assert abs(np.interp(centre, x, exact["rho"]) - exact["rho"][-1]) > 1e-3
        assert len(centres) == count, name
    x, exact = reference("rj2a")
    # plateaux that 128 cells across the grid resolve, at a distance of h/√3
    assert len(plateaux(x, exact, NARROWEST / 64)) == 2


# -- the plane and space -----------------------------------------------------------------------------------


def test_mismatched_grids_are_rejected() -> None:
    assert incompatible_grids((64, 64), (200, 200)).startswith("64 x 64 cells and the 200 x 200 cells of the")
    assert not incompatible_grids((50, 50), (200, 200))
    assert not incompatible_grids((400, 400), (200, 200))


@pytest.mark.parametrize(
    "flux", ["mhdtvd", *(pytest.param(flux, marks=pytest.mark.long) for flux in ("hlld", "roe"))]
)
def test_a_flow_along_a_loop_generates_no_field_along_it(flux: str) -> None:
    sim = run("field-loop", (64, 32), {"v_z": 1.0, "flux": flux}, steps=60).simulation
    b = [np.abs(sim["b_" + a]).max() for a in "xyz"]
    assert b[0] > 1e-4
    assert b[2] < 1e-14 * max(b)


def test_a_blast_in_two_dimensions_passes_its_checks() -> None:
    result = passed_checks("blast", (50, 75))
    assert result["kinetic energy"].value > 0.15


def test_floors_affect_only_the_conservation_of_their_quantity() -> None:
    """The pressure floor heats gas and moves none; a floor that has not yet acted fails a check."""
    ready = Problem("orszag-tang", (24, 24), {"pressure_floor": 0.2})
    result = {check.name: check for check in ready.run(steps=2, threads=1).check()}
    assert result["energy conservation"].about == "not compared: the pressure floor was active"
    for name in ("mass conservation", "momentum_x conservation", "flux_y conservation"):
        assert result[name].compared
        assert result[name].passed
    assert result["rho_min"].passed
    assert not result["p_min"].passed
    ready = Problem("orszag-tang", (24, 24), {"density_floor": 0.3})
    result = {check.name: check for check in ready.run(steps=2, threads=1).check()}
    assert not result["mass conservation"].compared
    assert not result["energy conservation"].compared
    assert result["flux_x conservation"].passed


def test_a_three_dimensional_loop_is_only_advected() -> None:
    with pytest.raises(InputError, match="v_z is 1; in 3D the gas moves along"):
        _ = Problem("field-loop", (12, 12, 18), {"v_z": 1.0}).program


def test_low_floors_cause_no_events_at_the_start() -> None:
    events = run("orszag-tang", (24, 24), steps=3).record.events
    assert [event["count"] for event in events.values()] == [0] * 4
    assert [event["first_cell"] for event in events.values()] == [None] * 4


def test_floors_act_and_are_counted() -> None:
    record = run("orszag-tang", (24, 24), {"pressure_floor": 0.2}, steps=2).record
    result = record.events["pressure floor"]
    assert 24 * 24 <= result["count"] < 2 * 24 * 24  # all cells in the first step, not all in the second
    assert (result["first_cell"], result["first_step"]) == ([0, 0], 0)


# -- identical bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    pytest.param("rj2a", marks=pytest.mark.ranks(2, 4, long=(2, 4))),
    pytest.param("orszag-tang", marks=pytest.mark.ranks(2, 4, long=(2,))),
    pytest.param("field-loop", marks=pytest.mark.ranks(2, 4, long=(2, 4))),
    pytest.param("blast", marks=pytest.mark.ranks(2, 4, long=(2, 4))),
])  # fmt: skip
def test_bits_do_not_depend_on_ranks(name: str) -> None:
    options: dict[str, Any] = {"decomposition": "1d-x"} if name == "field-loop" else {}
    from mpi4py import MPI

    record = Problem(name, SMALL[name]).run(steps=4, threads=1, **options).record
    single_rank = Problem(name, SMALL[name]).run(steps=4, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum == single_rank.checksum
    assert record.events == single_rank.events


@functools.cache
def by_itself(name: str) -> str:
    """Return the checksum that each rank computes alone."""
    from mpi4py import MPI

    record = Problem(name, SMALL[name]).run(steps=4, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum is not None
    return record.checksum


@pytest.mark.ranks(2)
@pytest.mark.parametrize("options", [
    {"methods": "rma", "decomposition": "1d-y"},
    pytest.param({"methods": "mpi", "threads": 2, "schedule": "dynamic"}, marks=pytest.mark.long),
    pytest.param({"methods": "colocated"}, marks=pytest.mark.long),
    pytest.param({"halo": "uniform"}, marks=pytest.mark.long),
    pytest.param({"overlap": False}, marks=pytest.mark.long),
], ids=str)  # fmt: skip
def test_bits_do_not_depend_on_transfer_methods(options: dict[str, Any]) -> None:
    result = Problem("orszag-tang", SMALL["orszag-tang"]).run(steps=4, **{"threads": 1} | options)
    assert result.record.checksum == by_itself("orszag-tang")


@cases(
    "options",
    [{"threads": 2, "schedule": "static"}, {"patch": (7, 5)}, {"patch": 64}, {"subdomains_per_rank": 2}],
    default=[{"threads": 2, "schedule": "static"}, {"patch": (7, 5)}],
    ids=str,
)
def test_bits_of_a_vortex_do_not_depend_on_the_layout(options: dict[str, Any]) -> None:
    result = run("orszag-tang", SMALL["orszag-tang"], steps=4, **options)
    assert result.record.checksum == checksum_of_run("orszag-tang")


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("name", ["rj2a", pytest.param("orszag-tang", marks=pytest.mark.long)])
def test_bits_do_not_depend_on_the_device(name: str) -> None:
    assert run(name, SMALL[name], steps=4, device="opencl:0").record.checksum == checksum_of_run(name)


# -- one exchange per step ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n", "settings", "wide"), [
    ("brio-wu", (64,), {}, 3),
    pytest.param("brio-wu", (64,), {"flux": "hlld"}, 3, marks=pytest.mark.long),
    ("orszag-tang", (20, 20), {}, 5),
    pytest.param("orszag-tang", (20, 20), {"flux": "roe"}, 5, marks=pytest.mark.long),
    pytest.param("blast", (16, 16, 16), {}, 5, marks=pytest.mark.long),
    pytest.param("blast", (16, 16, 16), {"flux": "hlld"}, 5, marks=pytest.mark.long),
])  # fmt: skip
def test_a_step_exchanges_once_five_cells_wide(
    name: str, n: tuple[int, ...], settings: dict[str, Any], wide: int
) -> None:
    """Exchanges are five cells wide on each side; the face field has one more face, above the last cell."""
    ready = Problem(name, n, settings)
    schedule = compile_program(ready.program, ready.grid)
    sweep, *mixing = schedule.pass_sweeps()
    for mixing_sweep in some(mixing):  # only in steps that leave cells without mass or heat
        layers = [abs(w) for f in mixing_sweep.exchange.values() for _, width in f.segments for w in width]
        assert max(layers) <= 2
    widths = {
        schedule.fields[number].name: footprint.segments for number, footprint in sweep.exchange.items()
    }
    assert set(widths) == {f.name for f in ready.fields}
    for field, segments in widths.items():
        for axis, a in enumerate("xyz"[: len(n)]):
            sides = {d[axis]: width[axis] for d, width in segments if d.count(0) == len(d) - 1 and d[axis]}
            assert sides == {-1: wide, 1: wide + 1 if field == f"b_{a}" else wide}, field


def test_cases_share_their_kernels() -> None:
    """Kernels of a case are compiled once for any cells, numbers of cells and Courant numbers."""
    sources = {
        compile_program((ready := Problem(name, n, {"courant": c})).program, ready.grid).source
        for name, n, c in (
            ("orszag-tang", (20, 18), 0.5),
            ("rotor", (24, 30), 0.3),
            ("field-loop", (40, 20), 0.8),
        )
    }
    assert len(sources) == 1


# -- wrong input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("rj2a", {"gamma": 1.0}, "gamma is 1; expected a number above 1"),
        ("rj2a", {"epsilon_fast": 0.5}, "epsilon_fast is 0.5; expected a number from 0, below 0.5"),
        ("rj2a", {"epsilon_fast": 0.2, "flux": "hlld"}, "flux hlld has no numerical viscosity"),
        ("linear-wave", {"direction": 0}, "direction is 0; expected 1 (along the wave vector) or -1"),
        ("linear-wave", {"direction": -1, "wave": "entropy"}, "direction is -1, but wave entropy moves with"),
        ("rj2a", {"limiter": 3.0}, "limiter is 3; expected a number from 1"),
        ("rj2a", {"flux": "hlle"}, "flux is 'hlle'"),
        ("rj2a", {"courant": 1.0}, "courant is 1; expected less than 1"),
        ("blast", {"courant": 0.5}, "courant is 0.5; expected less than 0.5"),
        ("blast", {"pressure": 0.0}, "pressure is 0; expected a number above 0"),
    ],
)
def test_invalid_parameters_of_the_scheme_are_rejected(
    name: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as raised:
        _ = Problem(name, SMALL.get(name), settings).program
    assert words in str(raised.value)


def test_an_initial_state_without_pressure_is_rejected_with_its_cell() -> None:
    ready = Problem("linear-wave", (16,), {"amplitude": 2.0})
    with pytest.raises(InputError, match=r"pressure at the start is -\d[\d.]* at cell \(\d+,\)") as refused:
        ready.run(threads=1)
    value, cell = map(float, re.findall(r"is (\S+) at cell \((\d+)", str(refused.value))[0])
    fast = ready.script.top["wave"]("fast", True, 5 / 3)
    p = 0.6 + 2.0 * fast.mode[6] * math.cos(2 * math.pi * ((cell + 0.5) / 16 - 0.5))
    assert value == pytest.approx(p, rel=1e-4)


# -- conserved quantities ----------------------------------------------------------------------------------


STILL = {
    "mass": 1.0, "energy": 1e4, "E_mag": 0.5e-6,
    **{f"{v}_{a}": 0.0 for v in ("momentum", "flux") for a in "xyz"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"), [("mass", 1e-10), ("energy", 1e-6), ("momentum_y", 1e-8), ("flux_z", 1e-13)]
)
def test_a_small_loss_of_each_quantity_is_detected(name: str, change: float) -> None:
    """A change by 1e-10 of each quantity, on its own scale, is detected next to a larger energy."""
    result = checks.conservation(STILL, STILL | {name: STILL[name] + change})
    assert [check.name for check in result if not check.passed] == [f"{name} conservation"]


def test_unsupported_options_of_the_scheme_are_rejected() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    with pytest.raises(InputError, match="flux"):
        IdealMHD(grid, flux="hlle")
    with pytest.raises(InputError, match="limiting"):
        IdealMHD(grid, limiting="superbee")
    with pytest.raises(InputError, match="boundary has 'B'"):
        IdealMHD(grid, boundary={"B": hc.Symmetric()})
    assert Problem("orszag-tang").shape == (192, 192)
