"""Figures of cases: what they hold, beside what it should be, and how they are drawn; derived quantities as
arrays.

Most runs are stand-ins: the fields of a case in a simulation that does nothing, so that no step is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.io.figure import Curve, Figure, Lines, Map, _canvas, draw
from halocline.io.section import Section, cut
from halocline.io.style import styled
from halocline.physics.mhd_tvd import MHDSimulation, conserved, tubes
from halocline.physics.mhd_tvd.converged import DATA
from halocline.physics.mhd_tvd.observed import primitives, restricted
from halocline.problems.files import CASES
from halocline.problems.problem import Problem
from halocline.run.ranks.mpi import world

Array = NDArray[np.float64]


class Standing(NamedTuple):
    """Stand-in for a finished run of a case.

    Attributes
    ----------
    problem : Problem
    simulation : Simulation
        Simulation without a step, with the attributes that the figures of a case read.
    """

    problem: Problem
    simulation: Any

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the file."""
        return self.problem.script.top[function](*arguments)


def standing(
    name: str, n: tuple[int, ...], time: float, given: Mapping[str, Any] | None = None, *, start: bool = False
) -> Standing:
    """Return a case as if it had run to a time: with the fields of its start, or others in each cell."""
    problem = Problem(name, n, given, dim=len(n))
    grid, values = problem.grid, problem.values
    fields = problem.fields
    still = {f: 0.0 * f for f in fields}
    read = {"quantities": problem.known.pictures(), "numbers": values, "set_state": MHDSimulation.set_state}
    read["mhd"] = problem.script.top["gas"]
    kind = type("Still", (hc.Simulation,), read)
    gamma = {"gamma": values["gamma"]}
    sim = kind(grid, lambda: still, parameters=gamma, scheme=hc.Euler(), dt=1.0, threads=1)
    random = np.random.default_rng(1)
    if start and problem.known.exact is not None:
        for f, value in problem.known.exact(0.0).items():
            sim[f] = value
    elif start:
        state = problem.script.top["tube"].state(problem.script.top["gas"])
        for f, value in conserved(
            problem.script.top["gas"], *(state[x] for x in ("rho", "v", "p", "b"))
        ).items():
            sim[f] = value
    else:
        for f in fields:
            sim[f] = (20.0 if f.name == "E" else 1.0) + random.random(f.points)  # the pressure is positive
    sim.restart(time=time)
    return Standing(problem, sim)


def state_of(done: Standing) -> dict[str, Array]:
    found = primitives(done.simulation, done.problem.values["gamma"])
    assert found is not None
    return found


def figure_of(done: Standing, name: str, figure: str) -> Figure:
    found = done.problem.known.figures[figure](done.simulation)
    assert found is not None
    return found


# -- sections and arrays -------------------------------------------------------------------------------------


def numbered(shape: tuple[int, ...]) -> tuple[hc.Simulation, Any, Array]:
    """A simulation whose field has another number in each cell."""
    grid = hc.Grid(shape, extent=tuple(map(float, shape)), origin=tuple(-n / 2 for n in shape), periodic=True)
    f = grid.field("f")
    sim = hc.Simulation(grid, lambda f: {f: 0.0 * f}, scheme=hc.Euler(), dt=1.0, threads=1)
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    sim[f] = values
    return sim, f, values


@pytest.mark.ranks(2)
def test_a_cut_holds_some_axes() -> None:
    sim, f, values = numbered((6, 5))
    solid, g, whole = numbered((6, 5, 4))
    for found, expected, axes, at in (
        (cut(sim, f, {"y": 1.2}), values[:, 3], ("x",), (("y", 1.0),)),
        (cut(sim, 2.0 * f, {"x": 0.0}), 2.0 * values[2], ("y",), (("x", -0.5),)),  # the lower of two
        (cut(solid, g, {"z": 1.4, "x": None}), whole[2, :, 3], ("y",), (("x", -0.5), ("z", 1.5))),
        (
            cut(solid, g, {"y": -2.0}),
            whole[:, 0],
            ("x", "z"),
            (("y", -2.0),),
        ),
    ):
        if world().rank:
            assert found is None
            continue
        assert found is not None
        assert np.array_equal(found.values, expected)
        assert (found.axes, found.at) == (axes, at)


def test_cuts_that_cannot_be() -> None:
    sim, f, _ = numbered((6, 5))
    for at, words in (
        ({"z": 0.0}, "axis 'z' is unknown; expected 0, 1 or 'x', 'y'"),
        ({"x": 0.0, "y": 0.0}, "a section has one or two axes"),
        ({"y": 99.0}, "axis y has points from -2 to 2"),
    ):
        with pytest.raises(InputError, match=words):
            cut(sim, f, at)
    with pytest.raises(InputError, match="a section has one or two axes; that of 3 axes holds 0 of them"):
        cut(*numbered((4, 4, 4))[:2], {})


@pytest.mark.ranks(2)
def test_an_expression_is_gathered() -> None:
    sim, f, values = numbered((6, 5))
    before = set(sim.grid.fields)
    for _ in range(2):
        found = sim.gather(f[1, 0] - 2.0 * f)
        if found is not None:
            assert np.array_equal(found, np.roll(values, -1, 0) - 2.0 * values)
        assert (found is None) == (world().rank > 0)
    sim[f] = 3.0  # counts at once
    found = sim.gather(f**2)
    assert found is None or np.array_equal(found, np.full((6, 5), 9.0))
    assert set(sim.grid.fields) == before
    other = hc.Grid((4,), periodic=True)
    for what, words in (
        (2.0, "expected a field of"),
        (other.field("g") + 1.0, "expected a field of"),
        ("g", "'g' is unknown"),
    ):
        with pytest.raises(InputError, match=words):
            sim.gather(what)


# -- figures as they are drawn -------------------------------------------------------------------------------


def plane(values: Array, at: tuple[tuple[str, float], ...] = ()) -> Section:
    lines = tuple((np.arange(n) + 0.5) / n for n in values.shape)
    return Section("f", values, ("x", "y"), lines, ((0.0, 1.0), (0.0, 1.0)), at)


def some_figure() -> Figure:
    """Two maps of the same colours above two panels of curves, one of them of next to nothing."""
    x = np.linspace(0.0, 1.0, 11)
    values = np.arange(12.0).reshape(4, 3)
    curves = [Curve(x, x, "cells", points=True), Curve(x * 2.0, x * 50.0, "exact")]
    return Figure(
        [
            Map(plane(values), "before", (0.0, 11.0)),
            Map(plane(2.0 * values, (("z", 0.25),)), "after", (0.0, 11.0)),
            Lines(curves, "steep", "x", (0.0, 1.0)),
            Lines([Curve(x, 1e-17 * x, "cells", points=True)], "flat", "x", (0.0, 1.0), least_range=0.5),
        ],
        columns=2,
    )


def test_panels_share_what_they_have_in_common() -> None:
    with styled():
        canvas = _canvas(some_figure(), "a title")
        canvas.draw_without_rendering()
    before, after, steep, flat = canvas.axes
    assert [ax.get_title("left") for ax in (before, after, steep, flat)] == [
        "before",
        "after, z = 0.25",
        "steep",
        "flat",
    ]
    assert (len(before.child_axes), len(after.child_axes)) == (0, 1)  # one colour bar
    assert (before.get_ylabel(), after.get_ylabel()) == ("y", "")
    assert all(ax.get_xlabel() == "x" for ax in (before, after, steep, flat))  # maps and curves share no axis
    assert [image.get_clim() for ax in (before, after) for image in ax.images] == [(0.0, 11.0)] * 2
    # what lies outside the span does not set the range, and rounding is not magnified
    assert steep.get_ylim()[1] < 30.0
    low, high = flat.get_ylim()
    assert (high - low, low + high) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-12))
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cells", "exact"]


def test_the_plane_of_all_maps_is_named_once() -> None:
    section = plane(np.ones((3, 3)), (("z", 0.25),))
    with styled():
        canvas = _canvas(Figure([Map(section, "one"), Map(section, "two")], columns=2), "a title")
    assert canvas.get_suptitle() == "a title, z = 0.25"
    assert [ax.get_title("left") for ax in canvas.axes] == ["one", "two"]


def test_a_place_without_a_panel_has_the_legend() -> None:
    figure = some_figure()
    canvas = _canvas(Figure(figure.panels[2:3] * 3, columns=2), "")
    assert canvas.legends == []
    axes = canvas.axes
    assert [ax.get_legend() is not None for ax in axes] == [False, False, False, True]
    assert axes[0].get_xlabel() == ""  # said below
    assert axes[1].get_xlabel() == axes[2].get_xlabel() == "x"


def test_a_figure_is_a_file(tmp_path: Path) -> None:
    from matplotlib.image import imread

    draw(some_figure(), tmp_path / "new" / "a.png", title="both")
    image = imread(tmp_path / "new" / "a.png")
    assert image.shape[0] > 600
    assert image.shape[1] > 600
    draw(some_figure(), tmp_path / "a.svg", title="both")
    assert "after, z = 0.25" in (tmp_path / "a.svg").read_text()


def test_figures_that_cannot_be(tmp_path: Path) -> None:
    line = replace(plane(np.ones((3, 3))), axes=("x",))
    for make, words in (
        (lambda: Figure([], 1), "a figure without panels"),
        (lambda: Figure(some_figure().panels, 0), "columns is 0; expected a whole number from 1"),
        (lambda: Figure([Map(line, "one")], 1), "map 'one': expected a section of two axes; this one has 1"),
        (lambda: draw(some_figure(), tmp_path / "a.jpeg"), "expected a name that ends in .png"),
    ):
        with pytest.raises(InputError, match=words):
            make()


# -- the figures of cases ------------------------------------------------------------------------------------


def test_profiles_of_a_tube() -> None:
    """Halfway: waves have gone half as far."""
    done = standing("rj2a", (40,), time=0.1, start=True)
    found = figure_of(done, "rj2a", "profiles")
    state, sim = state_of(done), done.simulation
    expected = [
        state["rho"],
        state["p"],
        sim.gather("E"),
        *(state[f"v_{a}"] for a in "xyz"),
        state["B_y"],
        state["B_z"],
    ]
    x, exact = tubes.reference("rj2a")
    converged = [exact["rho"], exact["p"], None, *(exact[q] for q in ("u", "v", "w", "By", "Bz"))]
    assert len(found.panels) == len(expected) == 8
    for panel, values, profile in zip(found.panels, expected, converged, strict=True):
        assert isinstance(panel, Lines)
        run, line = panel.curves
        assert (run.points, run.label, line.points, line.label) == (
            True,
            "40 cells",
            False,
            "converged solution",
        )
        assert np.array_equal(run.x, sim.grid.positions()[0])
        assert np.allclose(run.y, values, rtol=1e-13, atol=1e-15)
        if profile is not None:
            at = np.linspace(-0.24, 0.24, 97)
            assert np.allclose(np.interp(at, line.x, line.y), np.interp(2.0 * at, x, profile), atol=1e-12)
            assert (line.x[0], line.x[-1]) == (-0.5, 0.5)  # on to where the state is that of the start
            assert (line.y[0], line.y[-1]) == (profile[0], profile[-1])
    energy = found.panels[2]
    assert isinstance(energy, Lines)
    left = energy.curves[1].y[0]
    assert left == pytest.approx(energy.curves[0].y[0], rel=1e-6)  # the energy of the left state, in float32
    other = figure_of(standing("rj2a", (40,), 0.1, {"gamma": 1.4}), "rj2a", "profiles")
    assert all(len(panel.curves) == 1 for panel in other.panels if isinstance(panel, Lines))


def test_the_energy_of_the_tube_of_brio_and_wu_is_that_of_heat() -> None:
    found = figure_of(standing("brio-wu", (40,), time=0.08, start=True), "brio-wu", "profiles")
    rho, p, heat = (panel.curves for panel in found.panels[:3] if isinstance(panel, Lines))
    for k in range(2):
        assert np.allclose(heat[k].y, p[k].y / rho[k].y, rtol=1e-13)  # γ is 2
    assert found.panels[2].title == "P / ((γ - 1) ρ)"


def test_profiles_of_a_tube_across_the_grid() -> None:
    """A cell of every layer, three times as many as on the diagonal."""
    done = standing("rj4a", (12, 12, 12), time=0.15)
    done.simulation["rho"] = np.indices((12, 12, 12)).sum(0) + 1.0  # the number of the layer
    rho = figure_of(done, "rj4a", "profiles").panels[0]
    assert isinstance(rho, Lines)
    s, values = rho.curves[0].x, rho.curves[0].y
    assert np.array_equal(values, np.arange(34) + 1.0)
    assert np.allclose(s, (np.arange(34) - 16.5) * 2.0 / 12)
    on_diagonal = tubes.profile(done.simulation)
    assert on_diagonal is not None
    assert np.array_equal(on_diagonal[0], s[::3])
    assert np.array_equal(on_diagonal[1]["rho"], values[::3])
    assert rho.coordinate == "$x_1$, along the normal"
    assert rho.span == tubes.LOOKED_AT


def test_maps_and_cuts_of_the_vortex() -> None:
    """On half the cells that the converged solution is kept on: each row lies between two of its rows."""
    n = 96
    done = standing("orszag-tang", (n, n), time=0.5)
    found = figure_of(done, "orszag-tang", "maps")
    state = state_of(done)
    kinetic = 0.5 * sum(state[f"v_{a}"] ** 2 for a in "xyz")
    magnetic = 0.5 * sum(state[f"B_{a}"] ** 2 for a in "xyz")
    titles = ["density", "gas pressure", "specific kinetic energy", "magnetic pressure"]
    for panel, title, values in zip(
        found.panels, titles, (state["rho"], state["p"], kinetic, magnetic), strict=False
    ):
        assert isinstance(panel, Map)
        assert panel.title == title
        assert np.allclose(panel.section.values, values, rtol=1e-13)
    with np.load(DATA / "orszag-tang.npz") as kept:
        converged = restricted(kept["p"].astype(np.float64), (2 * n, n))
    # the rows beside y = -0.0723 and -0.1875: of the latter, which is a face, the cell below
    for panel, row, at in zip(found.panels[4:], (41, 29), ("-0.06771", "-0.1927"), strict=True):
        assert isinstance(panel, Lines)
        run, line = panel.curves
        assert panel.title == f"gas pressure at $y = {at}$"
        assert np.allclose(run.y, state["p"][:, row], rtol=1e-13)
        assert np.allclose(line.y, converged[:, row], rtol=1e-12)
        assert np.allclose(line.x[::2] / 2 + line.x[1::2] / 2, run.x)
    done.simulation.restart(time=0.4)
    early = figure_of(done, "orszag-tang", "maps")
    assert [len(panel.curves) for panel in early.panels if isinstance(panel, Lines)] == [1, 1]


def test_a_converged_row_is_the_same_row_where_the_grids_are_the_same() -> None:
    done = standing("orszag-tang", (192, 192), time=0.5)
    with np.load(DATA / "orszag-tang.npz") as kept:
        for panel, row in zip(figure_of(done, "orszag-tang", "maps").panels[4:], (82, 59), strict=True):
            assert isinstance(panel, Lines)
            assert np.allclose(panel.curves[1].y, kept["p"][:, row], rtol=1e-9)


def test_maps_and_cuts_of_the_rotor() -> None:
    done = standing("rotor", (20, 20), time=0.15)
    found = figure_of(done, "rotor", "maps")
    state = state_of(done)
    mach = found.panels[2]
    assert isinstance(mach, Map)
    speed = np.sqrt(sum(state[f"v_{a}"] ** 2 for a in "xyz"))
    assert np.allclose(mach.section.values, speed / np.sqrt(1.4 * state["p"] / state["rho"]), rtol=1e-12)
    B_y, B_x = found.panels[4:]
    assert isinstance(B_y, Lines)
    assert isinstance(B_x, Lines)
    assert (B_y.coordinate, B_x.coordinate) == ("x", "y")
    assert np.allclose(B_y.curves[0].y, state["B_y"][:, 9])
    assert np.allclose(B_x.curves[0].y, state["B_x"][9])


def test_a_loop_is_drawn_as_it_was_at_the_start_too() -> None:
    done = standing("field-loop", (24, 12), time=2.0, start=True)
    state = state_of(done)
    for a in "xy":
        done.simulation[f"b_{a}"] = 0.0
    before, after = figure_of(done, "field-loop", "maps").panels
    assert isinstance(before, Map)
    assert isinstance(after, Map)
    assert np.allclose(before.section.values, state["B_x"] ** 2 + state["B_y"] ** 2, rtol=1e-12, atol=1e-20)
    assert before.section.values.max() > 5e-7
    assert not after.section.values.any()
    assert before.limits == after.limits == (0.0, pytest.approx(1e-6))
    assert after.title == "$B^2$ at t = 2"


def test_a_blast_in_space_is_drawn_in_its_middle_plane() -> None:
    done = standing("blast", (8, 12, 8), time=0.02)
    found = figure_of(done, "blast", "maps")
    state, titles = state_of(done), ("density", "specific kinetic energy", "magnetic energy")
    squares = [0.5 * sum(state[f"{v}_{a}"] ** 2 for a in "xyz") for v in "vB"]
    for panel, title, values in zip(found.panels, titles, (state["rho"], *squares), strict=True):
        assert isinstance(panel, Map)
        assert panel.title == title
        assert panel.section.at == (("z", -0.0625),)
        assert np.allclose(panel.section.values, values[:, :, 3], rtol=1e-13)


@pytest.mark.parametrize("n", [(32,), (24, 12), (12, 8), pytest.param((12, 6, 6), marks=pytest.mark.long)])
def test_a_polarised_wave_along_itself(n: tuple[int, ...]) -> None:
    """At its start the field of all cells lies on the exact curve, but for means over faces."""
    done = standing("cp-alfven", n, time=0.0, start=True)
    (panel,) = figure_of(done, "cp-alfven", "wave").panels
    assert isinstance(panel, Lines)
    cells, exact = panel.curves
    assert len(cells.x) == np.prod(n)
    assert np.abs(cells.x).max() < panel.span[1]
    most = 0.1 * (2 * math.pi / min(n)) ** 2
    assert np.abs(cells.y - np.interp(cells.x, exact.x, exact.y)).max() < most
    found = done.call("profile", done.simulation)
    assert found is not None
    assert done.call("scatter", n, found[1]) < 1e-14
    off = found[1].copy()
    off.flat[5] += 1e-3
    if len(n) > 1:
        assert done.call("scatter", n, off) == pytest.approx(1e-3)


def test_the_exact_wave_has_gone_on_against_the_mean_field() -> None:
    for v, phase in ((0.0, 0.25), (0.5, 0.375)):
        done = standing("cp-alfven", (16, 8), time=0.25, given={"v": v})
        (panel,) = figure_of(done, "cp-alfven", "wave").panels
        assert isinstance(panel, Lines)
        exact = panel.curves[1]
        assert np.allclose(exact.y, 0.1 * np.sin(2 * math.pi * (exact.x + phase)))


@pytest.mark.ranks(2)
def test_the_first_of_two_ranks_has_the_figure() -> None:
    done = standing("rotor", (20, 20), time=0.15)
    found = done.problem.known.figures["maps"](done.simulation)
    state = primitives(done.simulation, done.problem.values["gamma"])
    assert (found is None) == (state is None) == (world().rank > 0)
    if found is not None and state is not None:
        cut_of = found.panels[4]
        assert isinstance(cut_of, Lines)
        assert np.allclose(cut_of.curves[0].y, state["B_y"][:, 9])
        assert isinstance(found.panels[0], Map)
        assert np.array_equal(found.panels[0].section.values, state["rho"])


# -- from the command, and from Python -----------------------------------------------------------------------


DECAY = '''"""Decay.

Source: this test.
"""

import halocline as hc
from halocline.io.figure import Curve, Figure, Lines

steps = 2
grid = hc.Grid(hc.cells(8, 4), periodic=True)
u = grid.field("u")


def pictures():
    return {"square": u**2}


def over_x(sim):
    values = sim.gather("u")
    if values is None:
        return None
    curve = Curve(grid.positions()[0], values[:, 0], "cells", points=True)
    return Figure([Lines([curve], "u", "x", (0.0, 1.0))], columns=1)


figures = {"over_x": over_x}
sim = hc.Simulation(grid, lambda: {u: -1.0 * u}, scheme=hc.RK3(), dt=0.125, order=6)
sim[u] = grid.x
sim.run(steps=steps)
'''


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of cases with one more case, "decay"."""
    folder = tmp_path_factory.mktemp("cases")
    for path in CASES.glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    (folder / "decay.py").write_text(DECAY)
    monkeypatch.setattr("halocline.problems.files.CASES", folder)
    return folder


@pytest.mark.ranks(1, 2, long=(1,))
def test_the_command_draws_and_names_them(shared_tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", "decay", "--pictures", f"{shared_tmp_path}"]) == 0
    told = capsys.readouterr().err
    world().barrier()
    names = sorted(path.name for path in shared_tmp_path.iterdir())
    assert names == ["over_x.png", "square.png"]
    if world().rank == 0:
        assert f"wrote {shared_tmp_path / 'square.png'}, {shared_tmp_path / 'over_x.png'}" in told


def test_a_figure_and_a_quantity_of_one_name(folder: Path, tmp_path: Path) -> None:
    (folder / "decay.py").write_text(DECAY.replace('"over_x"', '"square"'))
    with pytest.raises(InputError, match=r"square.png is to hold two things"):
        command(["run", "decay", "--pictures", f"{tmp_path}"])


def test_figures_and_derived_quantities_from_python() -> None:
    ready = Problem("decay")
    result = ready.run(threads=1)
    (panel,) = ready.figures(result)["over_x"].panels  # type: ignore[union-attr]
    u, square = result.simulation.gather("u"), result.simulation.gather(ready.pictures(result)["square"])
    assert isinstance(panel, Lines)
    assert u is not None
    assert np.array_equal(panel.curves[0].y, u[:, 0])
    assert square is not None
    assert np.array_equal(square, u**2)
    assert square.max() > 0.1
    with pytest.raises(InputError, match=r"a run of compute alone .* nothing to check or draw"):
        ready.figures(ready.run(only="compute", steps=2, threads=1))
