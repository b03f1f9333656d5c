"""The buoyancy-driven cavity: published solutions, order, symmetry, identical bits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import halocline as hc
from cavity_runs import CUBIC, PLANAR, richardson, run, steady, steady_diagnostic
from halocline.problems.problem import Problem
from halocline.run.simulation.checks import Check


def order_of(values: Sequence[float], sizes: Sequence[int]) -> float:
    """Return the order of three values, for any ratios of their spacings."""
    h = [1.0 / (n + 1) for n in sizes]
    expected = (values[0] - values[1]) / (values[1] - values[2])
    low, high = 0.1, 8.0
    for _ in range(60):
        order = 0.5 * (low + high)
        steeper = (h[0] ** order - h[1] ** order) / (h[1] ** order - h[2] ** order) > expected
        low, high = (low, order) if steeper else (order, high)
    return 0.5 * (low + high)


# --- published solutions ---


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("rayleigh", [1e3, 1e4, 1e5, 1e6])
def test_a_square_converges_at_second_order(rayleigh: float) -> None:
    sizes = [63, 127, 255] if rayleigh > 1e4 else [31, 63, 127]
    order, middle = richardson(
        [steady_diagnostic("cavity-2d", n, rayleigh, "nusselt_mid") for n in sizes], sizes
    )
    assert abs(order - 2) < 0.2
    hot = richardson([steady_diagnostic("cavity-2d", n, rayleigh, "nusselt_hot") for n in sizes], sizes)[1]
    assert abs(hot / PLANAR[rayleigh]["nusselt_hot"] - 1) < 0.01
    assert abs(middle / hot - 1) < 0.002  # the heat that enters at one wall leaves at the other


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("rayleigh", [1e3, 1e4, 1e5])
def test_a_cube_has_the_published_heat_flux(rayleigh: float) -> None:
    """The extrapolation of meshes of 39 and 79 points, and the finer mesh alone, agree within 1 %."""
    for quantity in ("nusselt_hot", "nusselt_mid"):
        coarse, fine = (steady_diagnostic("cavity", n, rayleigh, quantity) for n in (39, 79))
        for result in (fine + (fine - coarse) / 3, fine):
            assert abs(result / CUBIC[rayleigh]["nusselt_hot"] - 1) < 0.01


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize(
    ("rayleigh", "sizes", "gathered"),
    [(1e3, (19, 29, 39), 0.5), (1e4, (19, 39, 79), 0.0), (1e5, (39, 55, 79), 0.5)],
)
def test_a_cube_converges_at_second_order(rayleigh: float, sizes: tuple[int, ...], gathered: float) -> None:
    """The order is two; for layers that are thin compared with the spacing, the grid is stretched."""
    settings = {"gathered": gathered} if gathered else {}
    values = [steady_diagnostic("cavity", n, rayleigh, "nusselt_mid", **settings) for n in sizes]
    assert (values[0] - values[1]) * (values[1] - values[2]) > 0
    order = order_of(values, sizes)
    assert abs(order - 2) < 0.2
    ratio = ((sizes[2] + 1) / (sizes[1] + 1)) ** 2
    limit = values[2] + (values[2] - values[1]) / (ratio - 1)
    assert abs(limit / CUBIC[rayleigh]["nusselt_hot"] - 1) < 0.002


@pytest.mark.parametrize(("n", "rayleigh"), [((12,), 2e3), ((8, 12), 1e4)])
def test_results_without_reference_are_not_compared(n: tuple[int, ...], rayleigh: float) -> None:
    ready = Problem("cavity-2d", n, {"Ra": rayleigh})
    (last,) = [c for c in ready.run(steps=100_000, threads=1).check() if c.name == "nusselt_hot"]
    assert last == Check.not_compared("nusselt_hot", "no published results for this Ra, Pr and shape")


# --- properties of the flow -------


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("stages", [2, 3, 6])
def test_several_stages_reach_the_same_flow_in_fewer_steps(stages: int) -> None:
    one, more = (steady("cavity-2d", 63, 1e4, stages=stage_count) for stage_count in (1, stages))
    assert more.record.steps * stages < one.record.steps
    for quantity in ("nusselt_hot", "u_max"):
        assert more.record.diagnostics[quantity] == pytest.approx(one.record.diagnostics[quantity], rel=1e-5)


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("rayleigh", [1e4, 1e5])
def test_stretched_points_are_more_accurate(rayleigh: float) -> None:
    """The extrapolated value is the published one, and stretched points are more accurate than even ones."""
    sizes, at_walls = [15, 31, 63], {"gathered": 0.6}
    for quantity, published in PLANAR[rayleigh].items():
        result = [steady_diagnostic("cavity-2d", n, rayleigh, quantity, **at_walls) for n in sizes]
        assert abs(richardson(result, sizes)[1] / published - 1) < 0.01, quantity
    even, gathered = (
        steady_diagnostic("cavity-2d", 31, rayleigh, "nusselt_hot", **options) for options in ({}, at_walls)
    )
    known = PLANAR[rayleigh]["nusselt_hot"]
    assert abs(gathered - known) < 0.5 * abs(even - known)


# --- rejected input ---


AWAY = r"three times the free-fall velocity over the height, after step \d+ \(time \S+\)\n"
FREE_FALL = (
    "at the free-fall velocity the largest stable time step is 5.528e-0[67], limited by artificial sound"
)


@pytest.mark.parametrize(
    ("n", "settings", "words"),
    [
        # steps become shorter as the flow becomes faster, so that no value would become infinite
        (20, {"Ra": 1e6}, f"{AWAY}{FREE_FALL}: use more points"),
        (24, {"Ra": 1e4, "courant": 3}, f"{AWAY}courant is 3, .*at first 0.0004, limited by diffusion\\)"),
        (40, {"Ra": 1e3, "courant": 8, "stages": 6}, f"{AWAY}courant is 8, .* 0.003123, limited by diff"),
        (
            24,
            {"courant": 50, "stages": 1},
            f"{AWAY}courant is 50, .*, limited by artificial sound\\); expected",
        ),
        (24, {"V_ref": 0.5}, f"field 'p' is nan at .*\nV_ref is 0.5.* 266.5: {FREE_FALL}; leave V_ref out"),
    ],
)
def test_a_divergent_flow_reports_the_exceeded_limit(n: int, settings: dict[str, float], words: str) -> None:
    with pytest.raises(hc.RunError, match=words) as raised:
        run("cavity-2d", (n,), settings, steps=100_000)
    assert (raised.value.place is not None) == words.startswith("field")


@pytest.mark.ranks(2)
def test_the_speed_is_reported_per_core() -> None:
    record = run("cavity-2d", (16,), {"Ra": 1e3}, steps=20, threads=2).record
    assert record.ssspnt is not None
    assert record.ns_per_cell_step is not None
    assert record.cores_or_devices == 4
    assert record.ssspnt * record.ns_per_cell_step == pytest.approx(100.0 / 4)
    case = Problem("cavity-2d", (16,), {"Ra": 1e3})
    assert case.run(only="exchange", steps=5, threads=1).record.ssspnt is None


@pytest.mark.ranks(2)
@pytest.mark.usefixtures("opencl")
def test_devices_are_counted_once() -> None:
    """A device that two ranks of a node share counts once; equal names on two nodes are two devices."""
    for options, count in (({"ranks_per_node": 2}, 1), ({"ranks_per_node": 1}, 2)):
        settings = {"stages": 1, "watch": 5}
        record = run("cavity-2d", (20, 18), settings, steps=4, device="opencl:0", **options).record
        assert record.cores_or_devices == count


@pytest.mark.usefixtures("opencl")
def test_the_speed_is_reported_per_device() -> None:
    settings = {"stages": 1, "watch": 5}
    record = run("cavity-2d", (20, 18), settings, steps=4, device="opencl:0", subdomains_per_rank=2).record
    assert record.ssspnt is not None
    assert record.ns_per_cell_step is not None
    assert record.ssspnt * record.ns_per_cell_step == pytest.approx(100.0)
