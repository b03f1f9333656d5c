"""Figures that notebooks show."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.io import plot as module


def simulation(*shape: int) -> tuple[hc.Simulation, hc.Field, hc.Vector]:
    grid = hc.Grid(shape, periodic=True)
    T, u = grid.field("T"), grid.vector("u")
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1)
    sim[T] = lambda *at: np.sin(2 * np.pi * at[0])
    sim[u] = 1.0
    return sim, T, u


def titles(figure: Any) -> list[str]:
    """Return the titles of the axes of a figure, without colour bars."""
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def test_a_field_of_one_axis_is_a_line() -> None:
    sim, T, u = simulation(16)
    (ax,) = sim.plot(T, title="heat", label="T [K]", unit="m").axes
    assert (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) == ("heat", "x [m]", "T [K]")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), sim.gather(T))
    assert titles(sim.plot(u)) == ["u_x"]


def test_a_field_of_two_axes_is_a_colour_map() -> None:
    sim, T, u = simulation(8, 6)
    figure = sim.plot(T, limits=(-2, 2))
    (image,) = figure.axes[0].images
    np.testing.assert_allclose(image.get_array(), sim.gather(T).T)
    assert image.get_clim() == (-2.0, 2.0)
    assert titles(sim.plot(u)) == ["u_x", "u_y"]
    assert titles(hc.plot(sim, 2 * T, title="doubled")) == ["doubled"]


def test_notebooks_show_figures_as_pictures() -> None:
    sim, T, _ = simulation(8, 6)
    data, metadata = sim.plot(T)._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert 100 < metadata["width"] < 1000


def test_a_field_of_three_axes_is_three_planes_with_common_colours() -> None:
    sim, T, u = simulation(8, 6, 4)
    figure = sim.plot(T, renderer="matplotlib", title="heat")
    assert titles(figure) == ["T, x = 0.4375", "T, y = 0.4167", "T, z = 0.375"]
    assert len({image.get_clim() for ax in figure.axes for image in ax.images}) == 1
    assert len(titles(sim.plot(u))) == 9


def test_one_plane_is_selected_by_axis_and_coordinate() -> None:
    sim, T, _ = simulation(8, 6, 4)
    figure = sim.plot(T, axis="x", at=0.2)
    assert titles(figure) == ["T, x = 0.1875"]
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), sim.gather(T)[1].T)


def test_pyvista_draws_three_planes_in_space() -> None:
    pyvista = pytest.importorskip("pyvista")
    sim, T, _ = simulation(8, 6, 4)
    plotter = sim.plot(T, label="T [K]", unit="m")
    assert isinstance(plotter, pyvista.Plotter)
    assert "T [K]" in str(plotter.scalar_bars)
    assert len(plotter.actors) >= 3
    assert plotter.renderer.cube_axes_actor.x_title == "x [m]"
    plotter.close()


def test_planes_are_drawn_without_pyvista(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    sim, T, _ = simulation(8, 6, 4)
    assert len(titles(sim.plot(T))) == 3
    with pytest.raises(InputError, match=r"pyvista, which is not installed\. Use renderer='matplotlib', or"):
        sim.plot(T, renderer="pyvista")


def test_a_pyvista_without_its_libraries_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_library(name: str) -> None:
        raise ImportError("libGL.so.1: cannot open shared object file")

    monkeypatch.setattr(module, "find_spec", lambda name: name)
    monkeypatch.setattr(module, "import_module", without_library)
    sim, T, _ = simulation(8, 6, 4)
    assert len(titles(sim.plot(T))) == 3
    with pytest.raises(InputError, match=r"which cannot be imported: libGL\.so\.1: cannot open"):
        sim.plot(T, renderer="pyvista")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"renderer": "povray"}, r"renderer 'povray' is unknown; known: auto, matplotlib, pyvista"),
        ({"renderer": "pyvista"}, r"renderer 'pyvista' draws one value per point of a 3D grid"),
        ({"axis": "x"}, r"axis= and at= select a plane of a 3D grid, but this grid is 2D"),
        ({"colour": "red"}, r"unexpected keyword argument 'colour'"),
    ],
)
def test_wrong_options_are_rejected(options: dict[str, Any], message: str) -> None:
    sim, T, _ = simulation(8, 6)
    with pytest.raises((InputError, TypeError), match=message):
        sim.plot(T, **options)
    with pytest.raises(InputError, match="field 'v' is unknown; known: T, u"):
        sim.plot("v")
    assert importlib.util.find_spec("halocline.io.plot")


@pytest.mark.ranks(2)
def test_the_first_rank_returns_the_figure() -> None:
    sim, T, _ = simulation(8, 6)
    figure = sim.plot(T)
    assert (figure is None) == (sim.domain.comm.rank > 0)
    with pytest.raises(InputError, match="is unknown; known: auto"):
        sim.plot(T, renderer="povray")
