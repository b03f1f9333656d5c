"""Figures of cases: the plotted data, compared with the expected data, and the drawing.

Further tests read derived quantities as arrays.
Most runs are stand-ins: the fields of a case in a simulation without steps, so that no step is compiled.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from halocline.cli.app import run as command
from halocline.errors import InputError
from halocline.io.figure import Curve, Figure, Lines, Map, canvas_of, draw
from halocline.io.section import Section
from halocline.io.style import styled
from halocline.problems.files import CASES
from halocline.problems.problem import Problem
from halocline.run.ranks.mpi import world

Array = NDArray[np.float64]

# -- drawing of figures --------------------------------------------------------------------------------------


def plane(values: Array, at: tuple[tuple[str, float], ...] = ()) -> Section:
    lines = tuple((np.arange(n) + 0.5) / n for n in values.shape)
    return Section("f", values, ("x", "y"), lines, ((0.0, 1.0), (0.0, 1.0)), at)


def some_figure() -> Figure:
    """Return two maps of the same colours above two panels of curves, one of them with almost no values."""
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


def test_panels_share_common_labels() -> None:
    with styled():
        canvas = canvas_of(some_figure(), "a title")
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
    # values outside the span do not set the range, and rounding is not magnified
    assert steep.get_ylim()[1] < 30.0
    low, high = flat.get_ylim()
    assert (high - low, low + high) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-12))
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cells", "exact"]


def test_the_plane_of_all_maps_is_named_once() -> None:
    section = plane(np.ones((3, 3)), (("z", 0.25),))
    with styled():
        canvas = canvas_of(Figure([Map(section, "one"), Map(section, "two")], columns=2), "a title")
    assert canvas.get_suptitle() == "a title, z = 0.25"
    assert [ax.get_title("left") for ax in canvas.axes] == ["one", "two"]


def test_the_legend_fills_an_empty_panel() -> None:
    figure = some_figure()
    canvas = canvas_of(Figure(figure.panels[2:3] * 3, columns=2), "")
    assert canvas.legends == []
    axes = canvas.axes
    assert [ax.get_legend() is not None for ax in axes] == [False, False, False, True]
    assert axes[0].get_xlabel() == ""  # see below
    assert axes[1].get_xlabel() == axes[2].get_xlabel() == "x"


def test_a_figure_is_saved_as_a_file(tmp_path: Path) -> None:
    from matplotlib.image import imread

    draw(some_figure(), tmp_path / "new" / "a.png", title="both")
    image = imread(tmp_path / "new" / "a.png")
    assert image.shape[0] > 600
    assert image.shape[1] > 600
    draw(some_figure(), tmp_path / "a.svg", title="both")
    assert "after, z = 0.25" in (tmp_path / "a.svg").read_text()


def test_invalid_figures_are_rejected(tmp_path: Path) -> None:
    line = replace(plane(np.ones((3, 3))), axes=("x",))
    for make, words in (
        (lambda: Figure([], 1), "the figure has no panels"),
        (lambda: Figure(some_figure().panels, 0), "columns is 0; expected a whole number from 1"),
        (lambda: Figure([Map(line, "one")], 1), "map 'one': expected a section of two axes; this one has 1"),
        (lambda: draw(some_figure(), tmp_path / "a.jpeg"), "expected a name that ends in .png"),
    ):
        with pytest.raises(InputError, match=words):
            make()


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
def test_the_command_draws_and_lists_figures(
    shared_tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["run", "decay", "--pictures", f"{shared_tmp_path}"]) == 0
    errors = capsys.readouterr().err
    world().barrier()
    names = sorted(path.name for path in shared_tmp_path.iterdir())
    assert names == ["over_x.png", "square.png"]
    if world().rank == 0:
        assert f"wrote {shared_tmp_path / 'square.png'}, {shared_tmp_path / 'over_x.png'}" in errors


def test_a_figure_and_a_quantity_may_have_one_name(folder: Path, tmp_path: Path) -> None:
    (folder / "decay.py").write_text(DECAY.replace('"over_x"', '"square"'))
    with pytest.raises(InputError, match=r"square.png is the file of a picture and of a figure"):
        command(["run", "decay", "--pictures", f"{tmp_path}"])


def test_figures_and_derived_quantities_are_available_in_python() -> None:
    ready = Problem("decay")
    result = ready.run(threads=1)
    (panel,) = result.figures()["over_x"].panels  # type: ignore[union-attr]
    u, square = result.simulation.gather("u"), result.simulation.gather(result.pictures()["square"])
    assert isinstance(panel, Lines)
    assert u is not None
    assert np.array_equal(panel.curves[0].y, u[:, 0])
    assert square is not None
    assert np.array_equal(square, u**2)
    assert square.max() > 0.1
    with pytest.raises(InputError, match=r"a run of compute alone .* nothing to check or draw"):
        ready.run(only="compute", steps=2, threads=1).figures()
