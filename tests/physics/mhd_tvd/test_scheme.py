"""Ideal magnetohydrodynamics with shocks: problems with known answers, symmetries, equal bits everywhere."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.cli.app import run as command
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.physics.mhd_tvd import FLUXES, IdealMHD, MHDSimulation, Source, State, checks, conserved
from halocline.physics.mhd_tvd.converged import unmatched
from halocline.physics.mhd_tvd.observed import primitives
from halocline.physics.mhd_tvd.parameters import ALL, of_program
from halocline.physics.mhd_tvd.tubes import NARROWEST, plateaux, reference
from halocline.problems.problem import Problem
from halocline.problems.result import Result
from halocline.run.simulation.checks import Check
from loops import some

Array = NDArray[np.float64]
CARRIED = ("entropy", "shear_y", "shear_z", "entropy_hydro")
WAVES = ("fast", "alfven", "slow", "sound", *CARRIED)
SMALL = {
    "rj2a": (40,),
    "orszag-tang": (20, 18),
    "field-loop": (24, 12),
    "blast": (12, 14, 16),
}  # as few cells as halos of five allow


def run(name: str, n: tuple[int, ...], given: dict[str, Any] | None = None, **how: Any) -> Result:
    return Problem(name, n, given).run(**{"threads": 1, **how})


def checked(name: str, n: tuple[int, ...], given: dict[str, Any] | None = None) -> dict[str, Check]:
    """What a case checks of itself, all of which must pass."""
    ready = Problem(name, n, given)
    found = {check.name: check for check in ready.check(ready.run(threads=1))}
    assert all(check.passed for check in found.values()), [c for c in found.values() if not c.passed]
    return found


def checked_until(
    name: str, n: tuple[int, ...], until: float, given: dict[str, Any] | None = None
) -> dict[str, Check]:
    """The same at another time than the case's own."""
    ready = Problem(name, n, given)
    found = {check.name: check for check in ready.check(ready.run(until=until, threads=1))}
    assert all(check.passed for check in found.values()), [c for c in found.values() if not c.passed]
    return found


def wave_error(n: tuple[int, ...], given: dict[str, Any]) -> float:
    """The error of a wave after one period."""
    return known_wave_error(n, **given)


@functools.cache
def known_wave_error(n: tuple[int, ...], **given: Any) -> float:
    ready = Problem("linear-wave", n, given)
    return next(c.value for c in ready.check(ready.run(threads=1)) if c.name == "error")


# -- waves -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wave", ["fast", "alfven", "slow", "entropy", "sound", "shear_y", "entropy_hydro"])
def test_waves_converge_at_second_order(wave: str) -> None:
    coarse, fine = (wave_error((n,), {"wave": wave}) for n in (128, 256))
    assert 1.8 < math.log2(coarse / fine) < 2.3  # where limiters begin to let go of extrema


@pytest.mark.long
@pytest.mark.parametrize(
    ("wave", "courant"),
    # of a wave that moves by about half a cell a step the leading error nearly vanishes, and the order is up
    # to 2.22: each wave is tested at a step where it does not
    [
        ("fast", 0.9), ("sound", 0.9), ("slow", 0.8), ("entropy", 0.8),
        ("alfven", 0.4), ("shear_y", 0.4), ("shear_z", 0.4), ("entropy_hydro", 0.4),
    ],
)  # fmt: skip
def test_waves_converge_at_second_order_up_to_1024_cells(wave: str, courant: float) -> None:
    """With an amplitude of a tenth of the paper's: the sound wave of 1e-6 steepens by 8e-12 in a period, as
    much as its error on 1024 cells."""
    given = {"wave": wave, "courant": courant, "amplitude": 1e-7}
    coarse, fine = (wave_error((n,), given) for n in (512, 1024))
    assert abs(math.log2(coarse / fine) - 2.0) < 0.1


@pytest.mark.long
@pytest.mark.parametrize("flux", ["mhdtvd", "roe", "hlld"])
def test_other_fluxes_are_of_second_order_too(flux: str) -> None:
    coarse, fine = (wave_error((n,), {"flux": flux}) for n in (64, 128))
    assert abs(math.log2(coarse / fine) - 2.0) < 0.3


def test_the_command_checks_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["run", "linear-wave", "--n", "64", "--set", "flux=hlld", "--check", "--json", "-"]
    assert command(line) == 0
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert all(check["passed"] for check in found.values())
    assert 0.0 < found["error"]["value"] <= found["error"]["most"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("wave", "least", "most"),
    # on 16 cells limiters still flatten the crests of slow and entropy waves, which travel longest, and
    # damp the Alfvén wave more than on finer grids
    [
        ("fast", (1.8, 1.8), (2.2, 2.2)), ("alfven", (1.8, 1.8), (2.4, 2.2)),
        ("slow", (1.4, 1.8), (2.2, 2.2)), ("entropy", (1.5, 1.8), (2.2, 2.2)),
    ],
)  # fmt: skip
def test_a_wave_across_the_grid_converges(
    wave: str, least: tuple[float, float], most: tuple[float, float]
) -> None:
    """At second order within 0.2, which some waves reach only on the finer grids: measured are 2.14 and 2.11,
    2.32 and 1.92, 1.49 and 1.88, 1.58 and 1.85."""
    errors = [wave_error((2 * n, n, n), {"wave": wave}) for n in (16, 32, 64)]
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(a < order < b for a, order, b in zip(least, orders, most, strict=True)), orders


@pytest.mark.long
@pytest.mark.parametrize("axes", [2, 3])
def test_a_polarised_wave_of_any_amplitude_converges(axes: int) -> None:
    def error(n: int) -> float:
        ready = Problem("cp-alfven", (2 * n, *(n,) * (axes - 1)))
        return next(c.value for c in ready.check(ready.run(threads=1)) if c.name == "error")

    coarse, fine = error(32), error(64)
    assert abs(math.log2(coarse / fine) - 2.0) < 0.3


@pytest.mark.long
@pytest.mark.parametrize("periods", [1.0, 5.0])
def test_a_polarised_wave_keeps_its_fronts_and_its_order_for_periods(periods: float) -> None:
    """Cells of one phase are told apart by rounding only."""
    errors = []
    for n in (16, 32, 64):
        ready = Problem("cp-alfven", (2 * n, n))
        found = {c.name: c for c in ready.check(ready.run(until=periods, threads=1))}
        errors.append(found["error"].value)
        assert found["error"].passed, found["error"]
        assert found["scatter"].value < 1e-13
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(order - 2.0) < 0.15 for order in orders), orders


@pytest.mark.long
def test_a_polarised_wave_keeps_its_fronts_in_space() -> None:
    ready = Problem("cp-alfven", (32, 16, 16))
    found = {c.name: c.value for c in ready.check(ready.run(until=5.0, threads=1))}
    assert found["scatter"] < 1e-13


@pytest.mark.long
def test_a_polarised_wave_in_the_plane() -> None:
    assert checked("cp-alfven", (32, 16))["scatter"].value < 1e-13


@pytest.mark.parametrize("v", [-0.5, 0.5])
def test_a_polarised_wave_moves_with_the_gas(v: float) -> None:
    """It has come round by the time 1/(1 + v)."""
    ready = Problem("cp-alfven", (32,), {"v": v}, dim=1)
    found = {c.name: c for c in ready.check(ready.run(threads=1))}
    assert found["error"].passed
    assert found["error"].value < 0.1


@pytest.mark.parametrize("wave", ["fast", "alfven", "slow"])
def test_waves_in_both_directions_are_mirror_images(wave: str) -> None:
    """On data mirrored bit by bit: velocity and field along the axis change sign, and so do the wave's."""
    ready = Problem("linear-wave", (64,), {"wave": wave})
    result = ready.run(steps=40, threads=1)
    forward = {f.name: result.simulation.gather(f) for f in result.fields}
    result = ready.run(steps=0, threads=1)
    sim = result.simulation
    for f in some(result.fields):
        sign = -1.0 if f.name in ("m_x", "b_x") else 1.0
        start = sim.gather(f)
        assert start is not None
        # faces mirror about the middle of the box: that below a cell becomes that above it
        sim[f] = sign * (np.roll(start[::-1], 1) if f.name == "b_x" else start[::-1])
    sim.run(steps=40)
    for f in some(result.fields):
        sign, expected = (-1.0 if f.name in ("m_x", "b_x") else 1.0), forward[f.name]
        assert expected is not None
        mirrored = np.roll(expected[::-1], 1) if f.name == "b_x" else expected[::-1]
        assert np.array_equal(sim.gather(f), sign * mirrored), f.name


@pytest.mark.parametrize("wave", ["fast", "alfven", "slow", "sound"])
def test_waves_in_both_directions_have_the_same_error(wave: str) -> None:
    left, right = (wave_error((128,), {"wave": wave} | how) for how in ({"direction": -1}, {}))  # or 1
    assert abs(left - right) < 1e-6 * right


OF_EVERY_CHANGE = {("fast", -1), ("alfven", 1), ("entropy", 1)}


@pytest.mark.parametrize(("wave", "direction"), [
    pytest.param(w, d, marks=() if (w, d) in OF_EVERY_CHANGE else pytest.mark.long)
    for w in WAVES for d in ((1,) if w in CARRIED else (1, -1))
])  # fmt: skip
def test_waves_are_where_they_must_be_at_any_time(wave: str, direction: int) -> None:
    """So that the check of the error holds where a run does not end after whole periods."""
    ready = Problem("linear-wave", (64,), {"wave": wave, "direction": direction})
    found = {check.name: check for check in ready.check(ready.run(until=0.3, threads=1))}
    assert found["error"].passed, found["error"]


@pytest.mark.parametrize("periods", [2, 5])
@pytest.mark.parametrize("wave", ["slow", "sound", *(
    pytest.param(w, marks=pytest.mark.long) for w in WAVES if w not in ("slow", "sound")
)])  # fmt: skip
def test_waves_are_where_they_must_be_after_periods(wave: str, periods: int) -> None:
    """Their error of phase grows with time, and so does its bound."""
    ready = Problem("linear-wave", (64,), {"wave": wave})
    until = ready.known.until
    assert until is not None
    once, often = (
        {c.name: c for c in ready.check(ready.run(until=until * n, threads=1))}["error"] for n in (1, periods)
    )
    assert often.passed, often
    assert once.most is not None
    assert often.most == pytest.approx(periods * once.most)
    assert often.value > once.most or wave != "slow"


@pytest.mark.parametrize("v", [0.5, *(pytest.param(v, marks=pytest.mark.long) for v in (0.0, -0.5))])
def test_a_polarised_wave_is_where_it_must_be_at_any_time(v: float) -> None:
    ready = Problem("cp-alfven", (64,), {"v": v}, dim=1)
    found = {check.name: check for check in ready.check(ready.run(until=0.3, threads=1))}
    assert found["error"].passed, found["error"]


# -- shocks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n", "count"), [("rj2a", 512, 5), ("rj4a", 512, 4), ("brio-wu", 400, 4)])
def test_tubes_reach_the_converged_profiles(name: str, n: int, count: int) -> None:
    """Beside the two states of the start, whose plateaux are not counted."""
    found = checked(name, (n,))
    assert sum(key.startswith("plateau at") for key in found) == count


@pytest.mark.long
@pytest.mark.parametrize("flux", ["hlld", "roe"])
def test_tubes_by_other_fluxes(flux: str) -> None:
    checked("rj2a", (512,), {"flux": flux})


@pytest.mark.long
def test_a_tube_is_compared_at_earlier_times_too() -> None:
    found = checked_until("rj2a", (128,), 0.1)
    assert sum(key.startswith("plateau at") for key in found) == 2


@pytest.mark.parametrize(
    ("given", "until", "words"),
    [
        ({"gamma": 1.4}, 0.02, "no converged solution for gamma = 1.4"),
        ({}, 0.21, "after t = 0.2 waves may have reached the ends"),
    ],
)
def test_a_tube_without_a_reference_says_so(given: dict[str, float], until: float, words: str) -> None:
    found = checked_until("rj2a", (64,), until, given)
    for name in ("profiles", "plateaux"):
        assert not found[name].compared
        assert words in found[name].about


def test_a_coarse_tube_has_no_plateau() -> None:
    assert "no plateau is wide enough, 10 cells" in checked("rj4a", (64,))["plateaux"].about


def test_plateaux_are_those_between_waves() -> None:
    for name, count in (("rj2a", 5), ("rj4a", 4), ("brio-wu", 4)):
        x, exact = reference(name)
        for centre in (centres := plateaux(x, exact, NARROWEST / 512)):
            assert abs(np.interp(centre, x, exact["rho"]) - exact["rho"][0]) > 1e-3
            assert abs(np.interp(centre, x, exact["rho"]) - exact["rho"][-1]) > 1e-3
        assert len(centres) == count, name
    x, exact = reference("rj2a")
    # those that 128 cells across the grid resolve, which lie h/√3 apart
    assert len(plateaux(x, exact, NARROWEST / 64)) == 2


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), [("rj2a", 2), ("rj4a", 0)])
def test_tubes_across_the_grid(name: str, count: int) -> None:
    """No plateau of rj4a is ten layers of cells wide."""
    found = checked(name, (128, 128, 128))
    assert sum(key.startswith("plateau at") for key in found) == count
    assert found["plateaux"].compared is False if count == 0 else "plateaux" not in found


def tube_along(axis: int) -> tuple[Array, int]:
    """All fields of a tube along an axis of a periodic box, as seen from that axis, and the steps."""
    shape = [6, 6, 6]
    shape[axis] = 64
    grid = hc.Grid(shape, extent=[n / 64 for n in shape], periodic=True)
    mhd = IdealMHD(grid)
    x = grid.coordinates()[axis]
    left = (x > 0.25) & (x < 0.75)
    problem = Problem("rj2a")
    assert problem.program
    tube = problem.script.top["tube"]
    rho, u, v, w, By, Bz, p = (hc.where(left, *pair) for pair in zip(tube.left, tube.right, strict=True))

    def seen(*vector: Any) -> list[Any]:  # components along the axis and the next two
        return [vector[(a - axis) % 3] for a in range(3)]

    sim = MHDSimulation(mhd, threads=1)
    sim.set_state(rho=rho, v=seen(u, v, w), p=p, b=seen(tube.across, By, Bz))
    sim.run(until=0.05)
    turned = [mhd.rho, mhd.E, *(vector[(axis + k) % 3] for vector in (mhd.m, mhd.b) for k in range(3))]
    found = [np.moveaxis(sim.gather(f), axis, 0)[:, 0, 0] for f in turned]
    return np.array(found), sim.steps


@pytest.mark.long
def test_a_tube_has_the_same_bits_along_every_axis() -> None:
    along_x, steps = tube_along(0)
    for axis in (1, 2):
        profile, count = tube_along(axis)
        assert count == steps
        assert np.array_equal(profile, along_x), axis


# -- the plane and space -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_vortex_of_orszag_and_tang() -> None:
    """On a coarser grid than the paper's, whose bounds grow as the cells do."""
    checked("orszag-tang", (96, 96))


@pytest.mark.long
def test_the_vortex_of_orszag_and_tang_as_the_paper_has_it() -> None:
    checked("orszag-tang", (192, 192))


@pytest.mark.long
def test_a_vortex_without_a_reference_says_so() -> None:
    for n, given, until, words in (
        ((50, 50), {}, 0.02, "no converged solution at t = 0.02"),
        ((50, 50), {"gamma": 1.5}, 0.02, "no converged solution for gamma = 1.5"),
    ):
        found = checked_until("rotor", n, until, given)
        assert not found["rho converged"].compared
        assert words in found["rho converged"].about


def test_grids_that_do_not_match() -> None:
    assert unmatched((64, 64), (200, 200)).startswith("64 x 64 cells and the 200 x 200 of the converged")
    assert not unmatched((50, 50), (200, 200))
    assert not unmatched((400, 400), (200, 200))


def test_the_rotor() -> None:
    """So coarse that gas behind it is thinned out until the pressure floor acts in some cells."""
    found = checked("rotor", (50, 50))
    assert found["rho converged"].value < 0.2


@pytest.mark.long
def test_the_rotor_as_the_paper_has_it() -> None:
    checked("rotor", (400, 400))


@pytest.mark.long
def test_a_loop_of_field_goes_round() -> None:
    found = checked("field-loop", (100, 50))
    assert 0.7 < found["magnetic energy kept"].value < 1.0
    assert found["loop carried"].value < 0.4


def test_a_loop_that_stays_behind_fails() -> None:
    """A loop at its start passes for none that has gone part of the way, or round."""
    ready = Problem("field-loop", (100, 50))
    result = ready.run(steps=1, threads=1)
    sim, names = result.simulation, result.names
    for f, value in names.exact(0.0).items():
        sim[f] = value
    for time in (0.3, 2.0):
        sim.restart(time=time)
        found = {c.name: c for c in names.check(sim, result.record)}
        assert not found["loop carried"].passed, time


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"v_z": 1.0}, {"v_z": 1.0, "flux": "hlld"}], ids=str)
def test_a_loop_of_field_keeps_its_energy(given: dict[str, Any]) -> None:
    checked("field-loop", (256, 128), given)


@pytest.mark.long
def test_a_loop_of_field_keeps_its_energy_in_space() -> None:
    """On a fifth of the paper's cells along each axis, where bounds are wider."""
    checked("field-loop", (40, 40, 60))


@pytest.mark.parametrize(
    "flux", ["mhdtvd", *(pytest.param(flux, marks=pytest.mark.long) for flux in ("hlld", "roe"))]
)
def test_a_flow_along_a_loop_makes_no_field_along_it(flux: str) -> None:
    sim = run("field-loop", (64, 32), {"v_z": 1.0, "flux": flux}, steps=60).simulation
    b = [np.abs(sim["b_" + a]).max() for a in "xyz"]
    assert b[0] > 1e-4
    assert b[2] < 1e-14 * max(b)


def test_a_blast_in_the_plane() -> None:
    found = checked("blast", (50, 75))
    assert found["kinetic energy"].value > 0.15


@pytest.mark.long
def test_gas_that_stays_is_no_blast() -> None:
    ready = Problem("blast", (50, 75))
    result = ready.run(steps=1, threads=1)
    result.simulation.restart(time=0.02)
    found = {c.name: c for c in ready.check(result)}
    assert not found["kinetic energy"].passed


@pytest.mark.long
def test_a_larger_blast() -> None:
    """On half of the paper's 200 x 300 x 200 cells along each axis, a sixteenth of the work. What the paper's
    cells gave is in docs/verification.md."""
    checked("blast", (100, 150, 100))


@pytest.mark.long
def test_a_blast_counts_what_falls_back() -> None:
    """Gas with a fiftieth of the field's pressure needs help where hot gas bursts out."""
    found = checked("blast", (24, 36, 24))
    assert found["steps"].value > 5
    record = run("blast", (24, 36, 24)).record
    fallback = record.events["HLL fall-back"]
    assert fallback["count"] > 0
    assert fallback["first_step"] == 0
    assert fallback["share"] == fallback["count"] / (record.cells * record.steps)
    first = [
        (c + 0.5) / n * e - e / 2
        for c, n, e in zip(fallback["first_cell"], record.shape, (1, 1.5, 1), strict=True)
    ]
    assert 0.08 < math.hypot(*first) < 0.2  # beside the hot sphere


@pytest.mark.long
@pytest.mark.parametrize(("name", "n", "given"), [
    ("linear-wave", (32,), {"limiting": "sweby"}), ("linear-wave", (32,), {"limiter": 1.0}),
    ("orszag-tang", (48, 48), {"limiting": "sweby"}), ("orszag-tang", (48, 48), {"flux": "hll"}),
    ("orszag-tang", (48, 48), {"epsilon_fast": 0.3}),
])  # fmt: skip
def test_what_smears_more_has_no_bound(name: str, n: tuple[int, ...], given: dict[str, Any]) -> None:
    """The paper's limiter among it: everything else of the run is checked."""
    found = checked(name, n, given)
    apart = {each for each, check in found.items() if not check.compared}
    assert apart == ({"error"} if name == "linear-wave" else {"rho converged", "p converged"})
    assert f"no bound for {next(iter(given))}" in found[min(apart)].about
    assert {"mass kept", "energy kept", "p_min"} < set(found)


@pytest.mark.long
def test_a_blast_of_less_pressure_has_no_bound() -> None:
    weak = checked_until("blast", (40, 60), 0.002, {"pressure": 2.0})["kinetic energy"]
    assert weak.about == "not compared: no bound for pressure = 2, below 100"
    assert checked_until("blast", (40, 60), 0.002, {"field": 5.0})["kinetic energy"].compared


def test_floors_take_from_what_is_kept_what_they_change_and_no_more() -> None:
    """The pressure floor heats gas, and moves none; a floor that has yet to act fails a check."""
    ready = Problem("orszag-tang", (24, 24), {"pressure_floor": 0.2})
    found = {check.name: check for check in ready.check(ready.run(steps=2, threads=1))}
    assert found["energy kept"].about == "not compared: the pressure floor has acted"
    for name in ("mass kept", "momentum_x kept", "flux_y kept"):
        assert found[name].compared
        assert found[name].passed
    assert found["rho_min"].passed
    assert not found["p_min"].passed
    ready = Problem("orszag-tang", (24, 24), {"density_floor": 0.3})
    found = {check.name: check for check in ready.check(ready.run(steps=2, threads=1))}
    assert not found["mass kept"].compared
    assert not found["energy kept"].compared
    assert found["flux_x kept"].passed


def test_a_loop_in_space_moves_with_the_gas_alone() -> None:
    with pytest.raises(InputError, match="v_z is 1; in space the gas moves along"):
        _ = Problem("field-loop", (12, 12, 18), {"v_z": 1.0}).program


def test_a_start_with_floors_far_below_counts_nothing() -> None:
    events = run("orszag-tang", (24, 24), steps=3).record.events
    assert [event["count"] for event in events.values()] == [0, 0, 0]
    assert [event["first_cell"] for event in events.values()] == [None] * 3


def test_floors_act_and_are_counted() -> None:
    record = run("orszag-tang", (24, 24), {"pressure_floor": 0.2}, steps=2).record
    found = record.events["pressure floor"]
    assert 24 * 24 <= found["count"] < 2 * 24 * 24  # all cells in the first step, not all in the next one
    assert (found["first_cell"], found["first_step"]) == ([0, 0], 0)


# -- sources -----------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("shape", [(12,), (12, 12)])
def test_gravity_moves_gas_as_it_must(shape: tuple[int, ...]) -> None:
    """A uniform acceleration: all gas falls alike, of second order in time, which is exact here."""
    grid = hc.Grid(shape, periodic=True)
    g = -0.5

    def gravity(w: State) -> Source:
        return Source(m=(0.0, w.rho * g, 0.0), E=w.rho * w.v[1] * g)

    mhd = IdealMHD(grid, source=gravity)

    @hc.program
    def step(dt: Any, step: Any) -> None:
        mhd.step(dt, step)

    values = {name: own.default for name, own in ALL.items()}
    sim = hc.Simulation(grid, step, parameters=of_program(values), dt=0.02, threads=1)
    for f, value in conserved(mhd, 2.0, (0.0, 0.0, 0.0), 1.0, (0.1, 0.2, 0.3)).items():
        sim[f] = value
    sim.run(steps=20)
    state = primitives(sim, values["gamma"])
    assert state is not None
    assert np.allclose(state["v_y"], g * 0.4, rtol=1e-13)
    assert np.allclose(state["p"], 1.0, rtol=1e-12)
    assert np.abs(state["v_x"]).max() < 1e-15


def pushed(n: int) -> Array:
    """Density, momentum and energy of gas that a force has pushed together, in 32 parts of the grid."""
    grid = hc.Grid((n,), periodic=True)

    def force(w: State) -> Source:
        push = w.rho * 0.5 * hc.sin(2 * math.pi * grid.x)
        return Source(m=(push, 0.0, 0.0), E=push * w.v[0])

    mhd = IdealMHD(grid, source=force, flux="hlld")

    @hc.program
    def step(dt: Any, step: Any) -> None:
        mhd.step(dt, step)

    values = {name: own.default for name, own in ALL.items()} | {"flux": "hlld"}
    sim = hc.Simulation(grid, step, parameters=of_program(values), dt=0.3 / n, threads=1)
    for f, value in conserved(mhd, 1.0, (0.0, 0.0, 0.0), 1.0, (0.3, 0.2, 0.1)).items():
        sim[f] = value
    sim.run(until=0.3)
    return np.array([sim[f].reshape(32, -1).mean(1) for f in (mhd.rho, mhd.m[0], mhd.E)])


@pytest.mark.long
def test_sources_are_of_second_order_in_time() -> None:
    coarse, middle, fine = (pushed(n) for n in (64, 128, 256))
    order = math.log2(np.abs(coarse - middle).mean() / np.abs(middle - fine).mean())
    assert 1.8 < order < 2.6


# -- the same bits everywhere ------------------------------------------------------------------------------


@functools.cache
def alone(name: str, **given: Any) -> str:
    checksum = run(name, SMALL[name], given, steps=4).record.checksum
    assert checksum is not None
    return checksum


@pytest.mark.parametrize("name", [
    pytest.param("rj2a", marks=pytest.mark.ranks(2, 4, long=(4,))),
    pytest.param("orszag-tang", marks=pytest.mark.ranks(2, 4, long=(2,))),
    pytest.param("field-loop", marks=pytest.mark.ranks(2, 4, long=(4,))),
    pytest.param("blast", marks=pytest.mark.ranks(2, 4, long=(2, 4))),
])  # fmt: skip
def test_no_bit_depends_on_ranks(name: str) -> None:
    how: dict[str, Any] = {"decomposition": "1d-x"} if name == "field-loop" else {}
    from mpi4py import MPI

    record = Problem(name, SMALL[name]).run(steps=4, threads=1, **how).record
    own = Problem(name, SMALL[name]).run(steps=4, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum == own.checksum
    assert record.events == own.events


@functools.cache
def by_itself(name: str) -> str:
    """The checksum that each rank finds alone."""
    from mpi4py import MPI

    record = Problem(name, SMALL[name]).run(steps=4, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum is not None
    return record.checksum


@pytest.mark.ranks(2)
@pytest.mark.parametrize("how", [
    {"methods": "rma", "decomposition": "1d-y"}, {"methods": "mpi", "threads": 2, "schedule": "dynamic"},
    pytest.param({"methods": "colocated"}, marks=pytest.mark.long),
    pytest.param({"halo": "uniform"}, marks=pytest.mark.long),
    pytest.param({"overlap": False}, marks=pytest.mark.long),
], ids=str)  # fmt: skip
def test_no_bit_depends_on_how_halos_travel(how: dict[str, Any]) -> None:
    found = Problem("orszag-tang", SMALL["orszag-tang"]).run(steps=4, **{"threads": 1} | how)
    assert found.record.checksum == by_itself("orszag-tang")


@pytest.mark.long
@pytest.mark.ranks(8)
@pytest.mark.parametrize("decomposition", ["optimal", "1d-x", "2d", "morton"])
def test_no_bit_depends_on_eight_ranks(decomposition: str) -> None:
    from mpi4py import MPI

    n = (48, 16, 16)
    record = Problem("blast", n).run(steps=4, threads=1, decomposition=decomposition).record
    own = Problem("blast", n).run(steps=4, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum == own.checksum


@pytest.mark.long
@pytest.mark.ranks(4)
@pytest.mark.parametrize(
    "how",
    [{"methods": m} for m in ("mpi", "rma", "colocated")]
    + [{"halo": "uniform"}, {"overlap": False, "threads": 2}, {"subdomains_per_rank": 2}],
    ids=str,
)
def test_no_bit_of_a_blast_depends_on_how_halos_travel(how: dict[str, Any]) -> None:
    found = Problem("blast", (28, 26, 24)).run(steps=3, **{"threads": 1} | how).record
    assert found.checksum == larger_by_itself()


@functools.cache
def larger_by_itself() -> str:
    from mpi4py import MPI

    record = Problem("blast", (28, 26, 24)).run(steps=3, threads=1, communicator=MPI.COMM_SELF).record
    assert record.checksum is not None
    return record.checksum


@functools.cache
def on_a_larger_grid(patch: int | None) -> str:
    record = run("blast", (70, 72, 66), steps=3, patch=patch).record
    assert record.checksum is not None
    return record.checksum


@pytest.mark.long
@pytest.mark.parametrize("patch", [8, 16, 32, 64])
def test_no_bit_depends_on_patches_smaller_than_the_grid(patch: int) -> None:
    assert on_a_larger_grid(patch) == on_a_larger_grid(None)


@pytest.mark.long
@pytest.mark.parametrize("how", [
    {"threads": 2}, {"patch": (8, 8, 8)}, {"patch": (5, 7, 16)}, {"patch": (64, 64, 64)},
    {"threads": 2, "schedule": "static"}, {"threads": 2, "schedule": "dynamic"}, {"subdomains_per_rank": 2},
    {"overlap": False},
], ids=str)  # fmt: skip
def test_no_bit_depends_on_how_a_blast_runs(how: dict[str, Any]) -> None:
    assert run("blast", SMALL["blast"], steps=4, **how).record.checksum == alone("blast")


@pytest.mark.parametrize(
    "how",
    [{"threads": 2, "schedule": "static"}, {"patch": (7, 5)}, {"patch": 64}, {"subdomains_per_rank": 2}],
    ids=str,
)
def test_no_bit_depends_on_how_a_vortex_runs(how: dict[str, Any]) -> None:
    found = run("orszag-tang", SMALL["orszag-tang"], steps=4, **how)
    assert found.record.checksum == alone("orszag-tang")


@pytest.mark.long
@pytest.mark.parametrize("name", ["orszag-tang", "blast"])
@pytest.mark.parametrize("flux", [name for name in FLUXES if name != "mhdtvd"])
def test_no_bit_of_other_fluxes_depends_on_patches(flux: str, name: str) -> None:
    found = run(name, SMALL[name], {"flux": flux}, steps=4, threads=2, patch=6)
    assert found.record.checksum == alone(name, flux=flux)


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("name", ["rj2a", pytest.param("orszag-tang", marks=pytest.mark.long)])
def test_no_bit_depends_on_the_device(name: str) -> None:
    assert run(name, SMALL[name], steps=4, device="opencl:0").record.checksum == alone(name)


@pytest.mark.long
@pytest.mark.usefixtures("opencl")
def test_no_bit_of_a_blast_depends_on_the_device() -> None:
    assert (
        run("blast", SMALL["blast"], steps=2, device="opencl:0").record.checksum
        == run("blast", SMALL["blast"], steps=2).record.checksum
    )


# -- one exchange a step -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n", "given", "wide"), [
    ("brio-wu", (64,), {}, 3),
    ("brio-wu", (64,), {"flux": "hlld"}, 3),
    ("orszag-tang", (20, 20), {}, 5),
    ("orszag-tang", (20, 20), {"flux": "roe"}, 5),
    ("blast", (16, 16, 16), {}, 5),
    ("blast", (16, 16, 16), {"flux": "hlld"}, 5),
])  # fmt: skip
def test_a_step_exchanges_once_five_cells_wide(
    name: str, n: tuple[int, ...], given: dict[str, Any], wide: int
) -> None:
    """So many cells to each side; the field on faces one face more, that above the last cell."""
    ready = Problem(name, n, given)
    schedule = compile_program(ready.program, ready.grid)
    (sweep,) = schedule.pass_sweeps()
    widths = {
        schedule.fields[number].name: footprint.segments for number, footprint in sweep.exchange.items()
    }
    assert set(widths) == {f.name for f in ready.fields}
    for field, segments in widths.items():
        for axis, a in enumerate("xyz"[: len(n)]):
            sides = {d[axis]: width[axis] for d, width in segments if d.count(0) == len(d) - 1 and d[axis]}
            assert sides == {-1: wide, 1: wide + 1 if field == f"b_{a}" else wide}, field


def test_cases_share_their_kernels() -> None:
    """Whatever their cells, and how many, and their Courant numbers: they are compiled once."""
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
    ("name", "given", "words"),
    [
        ("rj2a", {"gamma": 1.0}, "gamma is 1; expected a number above 1"),
        ("rj2a", {"epsilon_fast": 0.5}, "epsilon_fast is 0.5; expected a number from 0, below 0.5"),
        ("rj2a", {"epsilon_fast": 0.2, "flux": "hlld"}, "flux hlld has no numerical viscosity"),
        ("linear-wave", {"direction": 0}, "direction is 0; expected 1, along the wave vector, or -1"),
        ("linear-wave", {"direction": -1, "wave": "entropy"}, "direction is -1, but wave entropy is carried"),
        ("rj2a", {"limiter": 3.0}, "limiter is 3; expected a number from 1"),
        ("rj2a", {"flux": "hlle"}, "flux is 'hlle'"),
        ("rj2a", {"courant": 1.0}, "courant is 1; expected less than 1"),
        ("blast", {"courant": 0.5}, "courant is 0.5; expected less than 0.5"),
        ("blast", {"pressure": 0.0}, "pressure is 0; expected a number above 0"),
    ],
)
def test_numbers_that_the_scheme_cannot_have(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as told:
        _ = Problem(name, SMALL.get(name), given).program
    assert words in str(told.value)


def test_a_start_without_pressure_is_refused_with_its_cell() -> None:
    ready = Problem("linear-wave", (16,), {"amplitude": 2.0})
    with pytest.raises(InputError, match=r"pressure at the start is -\d[\d.]* at cell \(\d+,\)") as refused:
        ready.run(threads=1)
    value, cell = map(float, re.findall(r"is (\S+) at cell \((\d+)", str(refused.value))[0])
    fast = ready.script.top["wave"]("fast", True, 5 / 3)
    p = 0.6 + 2.0 * fast.mode[6] * math.cos(2 * math.pi * ((cell + 0.5) / 16 - 0.5))
    assert value == pytest.approx(p, rel=1e-4)


# -- what is kept ------------------------------------------------------------------------------------------


STILL = {
    "mass": 1.0, "energy": 1e4, "E_mag": 0.5e-6,
    **{f"{v}_{a}": 0.0 for v in ("momentum", "flux") for a in "xyz"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"), [("mass", 1e-10), ("energy", 1e-6), ("momentum_y", 1e-8), ("flux_z", 1e-13)]
)
def test_a_small_share_of_each_quantity_is_noticed(name: str, change: float) -> None:
    """Beside an energy that is greater than all of them: 1e-10 of each on its own scale."""
    found = checks.kept(STILL, STILL | {name: STILL[name] + change})
    assert [check.name for check in found if not check.passed] == [f"{name} kept"]


def test_what_a_scheme_does_not_have() -> None:
    grid = hc.Grid((8, 8), periodic=True)
    with pytest.raises(InputError, match="flux"):
        IdealMHD(grid, flux="hlle")
    with pytest.raises(InputError, match="limiting"):
        IdealMHD(grid, limiting="superbee")
    with pytest.raises(InputError, match="boundary has 'B'"):
        IdealMHD(grid, boundary={"B": hc.Symmetric()})
    assert Problem("orszag-tang").shape == (192, 192)
