"""Figures of a cavity: the plotted numbers, compared with the expected numbers, and the drawing.

Most runs are stand-ins: the fields of a cavity in a simulation without steps, so that no step is compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cavity_panels import NAMES, Array, Standing, figure_of, standing
from halocline.io.figure import Figure, canvas_of, draw
from halocline.io.style import styled
from halocline.physics.cavity.contours import Contours, Isolines, Planes, Streamlines
from halocline.physics.cavity.figures import no_flux, parabola, stream_function
from halocline.problems.problem import Problem
from halocline.run.ranks.mpi import world
from loops import some
from suites import cases


def at_rest(shape: tuple[int, ...]) -> Standing:
    up = "xyz"[: len(shape)]
    line = 0.5 - np.arange(1.0, shape[0] + 1) / (shape[0] + 1)
    T = np.broadcast_to(line.reshape(-1, *(1,) * (len(shape) - 1)), shape)
    return standing(shape, {"p": 0.0, "T": np.ascontiguousarray(T), **{f"V_{a}": 0.0 for a in up}})


def contours(done: Standing, name: str) -> Contours:
    (panel,) = figure_of(done, name).panels
    assert isinstance(panel, Contours)
    return panel


def planes(done: Standing) -> Planes:
    (panel,) = figure_of(done, "pressure-contours").panels
    assert isinstance(panel, Planes)
    return panel


def psi_of(done: Standing) -> tuple[Array, Isolines]:
    over = contours(done, "streamlines").over
    assert isinstance(over, Isolines)
    return over.section.values, over


def gathered(done: Standing, name: str) -> Array:
    result = done.simulation.gather(name)
    assert result is not None
    return result


# -- the stream function -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stretch", [0.0, 0.1])
def test_the_stream_function_is_of_second_order(stretch: float) -> None:
    """ψ = x² (1 - x)² y² (1 - y)³ e^y is not symmetric, so that columns have an error of the quadrature."""
    errors = []
    for n in (16, 32, 64):
        x = np.linspace(0.0, 1.0, n + 1)[:, None]
        even = np.linspace(0.0, 1.0, n + 1)
        y = even - stretch * np.sin(2 * np.pi * even)
        along = y**2 * (1 - y) ** 3 * np.exp(y)
        slope = (2 * y * (1 - y) ** 3 - 3 * y**2 * (1 - y) ** 2 + y**2 * (1 - y) ** 3) * np.exp(y)
        psi = stream_function(x**2 * (1 - x) ** 2 * slope, y)
        for wall in (psi[0], psi[-1], psi[:, 0], psi[:, -1]):
            assert np.abs(wall).max() < 1e-17
        errors.append(np.abs(psi - x**2 * (1 - x) ** 2 * along).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2.0) < 0.1), orders
    assert errors[-1] < 1e-5 < errors[0]


def test_the_correction_of_the_net_flow_has_no_slip_at_walls() -> None:
    """The correction of a net flow through each column vanishes at the walls."""
    y = np.linspace(0.0, 2.0, 201)
    psi = stream_function(np.full((3, 201), 1.0), y)
    assert np.abs(psi[:, -1]).max() < 1e-14
    rest = y - psi[0]  # the correction of the integral
    assert rest[1] < 1e-3 * y[1] * 201
    assert rest[1] / y[1] < 0.02
    assert (2.0 - rest[-2]) / y[1] < 0.02
    assert rest[100] == pytest.approx(1.0)


def test_the_stream_function_agrees_with_the_literature() -> None:
    """The midpoint at Ra = 1000 converges with second order to 1.174 (de Vahl Davis 1983)."""
    results = []
    for n in (15, 31):
        ready = Problem("cavity-2d", (n,), {"Ra": 1e3, "stages": 1})
        result = ready.run(steps=200_000, threads=1)
        assert result.record.steps < 200_000
        (panel,) = result.figures()["streamlines"].panels  # type: ignore[union-attr]
        assert isinstance(panel, Contours)
        assert isinstance(panel.over, Isolines)
        psi = panel.over.section.values
        middle = (n + 1) // 2
        assert psi[middle, middle] == psi.min() < 0.0  # warm fluid rises at the left
        assert psi.max() <= 0.0
        assert f"max |ψ| = {-psi.min():.4g} α" in panel.title
        results.append(-psi.min())
    assert abs(results[0] / 1.174 - 1) > 0.01
    assert (4 * results[1] - results[0]) / 3 == pytest.approx(1.174, rel=4e-3)


def test_the_stream_function_is_dimensionless() -> None:
    u = np.random.default_rng(2).standard_normal((7, 9))
    plain, levels = psi_of(standing((7, 9), {"V_x": u}))
    scaled, _ = psi_of(standing((7, 9), {"V_x": u * 3.0 / 0.25}, {"L": 0.25, "alpha": 3.0}))
    assert np.allclose(plain, scaled, rtol=1e-12, atol=1e-15)
    most = np.abs(plain).max()
    assert np.allclose(np.array(levels.levels) / most, np.delete(np.arange(-0.9, 0.95, 0.1), 9))


# -- values on walls -----------------------------------------------------------------------------------------


def test_formulas_on_walls_are_exact_for_parabolas() -> None:
    for distances in (np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.25, 0.7, 0.9])):
        d = distances[:, None]
        assert parabola(distances, 2.0 - 3.0 * d + 5.0 * d**2) == pytest.approx(2.0)
        assert no_flux(distances, 2.0 + 5.0 * d**2) == pytest.approx(2.0)
        assert abs(parabola(distances, d**3)[0]) > 1e-3
        assert abs(no_flux(distances, d)[0]) > 1e-2


@pytest.mark.parametrize("settings", [{}, {"L": 0.05, "T_hot": 300.0, "T_cold": 290.0, "alpha": 2e-5}])
def test_contours_extend_to_the_walls(settings: dict[str, float]) -> None:
    done = standing((6, 9), settings=settings)
    T, p = gathered(done, "T"), gathered(done, "p")
    warm, pressed = contours(done, "temperature-contours"), contours(done, "pressure-contours")
    for panel, name in ((warm, "temperature T"), (pressed, "pressure p")):
        section = panel.section
        assert panel.label == name
        assert section.axes == ("x / L", "y / L")
        assert np.allclose(section.span, ((0.0, 1.0), (0.0, 10.0 / 7.0)))
        for line, span, n in zip(section.coordinates, section.span, (6, 9), strict=True):
            assert np.allclose(line, np.linspace(*span, n + 2))
            assert (line[0], line[-1]) == span
    drawn = warm.section.values
    assert np.array_equal(drawn[1:-1, 1:-1], T)
    assert np.all(drawn[0] == done.problem.values["T_hot"])
    assert np.all(drawn[-1] == done.problem.values["T_cold"])
    assert np.allclose(drawn[1:-1, 0], (4 * T[:, 0] - T[:, 1]) / 3)
    assert np.allclose(drawn[1:-1, -1], (4 * T[:, -1] - T[:, -2]) / 3)
    levels = np.array(warm.levels)
    assert np.allclose(levels, np.linspace(done.problem.values["T_cold"], done.problem.values["T_hot"], 21))
    assert (levels[0], levels[-1]) == (done.problem.values["T_cold"], done.problem.values["T_hot"])
    drawn = pressed.section.values
    assert np.array_equal(drawn[1:-1, 1:-1], p)
    assert np.allclose(drawn[0, 1:-1], 3 * p[0] - 3 * p[1] + p[2])
    assert np.allclose(drawn[1:-1, -1], 3 * p[:, -1] - 3 * p[:, -2] + p[:, -3])
    up = 3 * p[:, -1] - 3 * p[:, -2] + p[:, -3]
    assert drawn[-1, -1] == pytest.approx(3 * up[-1] - 3 * up[-2] + up[-3])


def test_a_rotated_flow_has_the_rotated_figure() -> None:
    """With hot and cold exchanged T, u and v change their sign, and ψ and the pressure do not."""
    random, fields = np.random.default_rng(3), {}
    for name, sign in (("p", 1), ("V_x", -1), ("V_y", -1), ("T", -1)):
        values = random.standard_normal((8, 5))
        fields[name] = values + sign * values[::-1, ::-1]
    done = standing((8, 5), fields)
    T, p = (contours(done, name).section.values for name in NAMES[:2])
    psi, _ = psi_of(done)
    assert np.allclose(T + T[::-1, ::-1], 0.0, atol=1e-13)
    for values in (p, psi):
        assert np.ptp(values) > 0.1
        assert np.allclose(values, values[::-1, ::-1], atol=1e-13)


# -- in space ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 6])
def test_the_middle_plane_along_y_is_drawn(n: int) -> None:
    """The plane halfway along y between two points has their mean."""
    done = standing((7, n, 4), settings={"L": 0.05})
    T, u, w = (gathered(done, name) for name in ("T", "V_x", "V_z"))
    below, above = (n - 1) // 2, n // 2
    panel = contours(done, "temperature-contours")
    inside = 0.5 * (T[:, below] + T[:, above])
    assert np.allclose(panel.section.values[1:-1, 1:-1], inside, rtol=1e-12, atol=1e-15)
    assert panel.section.axes == ("x / L", "z / L")
    ((name, at),) = panel.section.at
    assert (name, at) == ("y / L", pytest.approx(0.5 * (n + 1) / 8))
    over = contours(done, "streamlines").over
    assert isinstance(over, Streamlines)
    for section, v in ((over.across, u), (over.up, w)):
        assert np.allclose(section.values[1:-1, 1:-1], 0.5 * (v[:, below] + v[:, above]), atol=1e-15)
        walls = (section.values[0], section.values[-1], section.values[:, 0], section.values[:, -1])
        assert not any(wall.any() for wall in walls)


def parabolic(x: Array, y: Array, z: Array) -> Array:
    return 1.0 + 2.0 * x - y + 3.0 * z + x * x - 2.0 * x * z + 0.5 * y * z


@pytest.mark.parametrize("shape", [(5, 7, 9), (7, 5, 5), (6, 5, 8)])
def test_the_pressure_is_drawn_on_planes_in_three_dimensions(shape: tuple[int, ...]) -> None:
    """Parabolas are exact on planes through points, or if the pressure is linear across the plane."""
    L, T = 2.0, 0.0
    h = L / (shape[0] + 1)
    points = np.meshgrid(*(h * np.arange(1, n + 1) for n in shape), indexing="ij")
    values = parabolic(*points)
    even = shape[0] % 2 == 0
    if even:  # no point halfway
        values = values - points[0] ** 2
    panel = planes(standing(shape, {"p": values, "T": T}, {"L": L}))
    extent = [h * (n + 1) for n in shape]
    ends = [length / L for length in extent]
    assert np.allclose(panel.spans, [(0.0, end) for end in ends])
    places = [(1.0, 0.5), (0.0, ends[1] / 2), (ends[2], ends[2] / 2)]
    expected = [("xyz"[axis] + " / L", at) for axis in range(3) for at in places[axis]]
    assert [name for section in panel.sections for name, _ in section.at] == [name for name, _ in expected]
    assert np.allclose([at for section in panel.sections for _, at in section.at], [at for _, at in expected])
    total = 0.0
    for number, section in enumerate(panel.sections):
        axis = number // 2
        coordinates: list[Any] = [L * line for line in np.meshgrid(*section.coordinates, indexing="ij")]
        coordinates.insert(axis, np.full_like(coordinates[0], L * section.at[0][1]))
        known = np.isfinite(section.values)
        exact = parabolic(*coordinates) - (coordinates[0] ** 2 if even else 0.0)
        assert np.allclose(section.values[known], exact[known], atol=1e-11)
        # beyond the middle, towards the corner with the maximum x and z and the minimum y
        beyond = [(c - 0.5 * e) * s for c, e, s in zip(coordinates, extent, (1, -1, 1), strict=True)]
        other_axes = [coordinate for a, coordinate in enumerate(beyond) if a != axis]
        inside = number % 2 == 1
        quarter = (
            (other_axes[0] > -1e-9) & (other_axes[1] > -1e-9)
            if inside
            else ~((other_axes[0] > 1e-9) & (other_axes[1] > 1e-9))
        )
        assert np.array_equal(known, quarter)
        sizes = [np.diff(line) for line in section.coordinates]
        cells = known[1:, 1:] & known[1:, :-1] & known[:-1, 1:] & known[:-1, :-1]
        share = float((sizes[0][:, None] * sizes[1] * cells).sum() / (sizes[0].sum() * sizes[1].sum()))
        assert share == pytest.approx(0.25 if inside else 0.75)
        total += share
    assert total == pytest.approx(3.0)


# -- drawing -------------------------------------------------------------------------------------------------


@cases("shape", [(6, 6), (4, 5, 6)], default=[(6, 6)])
def test_a_cavity_at_rest_has_figures(shape: tuple[int, ...], tmp_path: Path) -> None:
    done = at_rest(shape)
    for name in NAMES[1:]:
        draw(figure_of(done, name), tmp_path / f"{name}.png", title="at rest")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    assert contours(done, "streamlines").title.startswith("no streamlines, ")
    with styled():
        canvas = canvas_of(figure_of(done, "pressure-contours"), "")
    assert canvas.axes[0].get_title("left") == "isobars, without the hydrostatic pressure: 0 everywhere"


def test_a_purely_vertical_flow_has_no_stream_function() -> None:
    """A flow that only rises, as after the first step, has no stream function."""
    panel = contours(standing((6, 6), {"V_x": 0.0}), "streamlines")
    assert panel.title == "no streamlines, because ψ is 0 everywhere"
    with styled():
        assert len(canvas_of(Figure([panel], columns=1), "").axes[0].collections) == 1


# -- on ranks, and from the command --------------------------------------------------------------------------


@pytest.mark.ranks(2)
def test_the_first_of_two_ranks_draws_the_figures() -> None:
    for shape in ((7, 6), (6, 5, 4)):
        done = standing(shape)
        T = done.simulation.gather("T")
        for name in some(NAMES):
            result = done.problem.known.figures[name](done.simulation)
            assert (result is None) == (world().rank > 0)
            if result is not None and T is not None and name == NAMES[0]:
                (panel,) = result.panels
                assert isinstance(panel, Contours)
                inside = T if len(shape) == 2 else T[:, 2]
                assert np.array_equal(panel.section.values[1:-1, 1:-1], inside)
