"""Accuracy of differences next to walls: the order with each condition, at faces, edges and corners."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import halocline as hc
from loops import some
from suites import cases

Array = NDArray[np.float64]

EXTENT = (1.0, 1.2, 0.9)
WAVE, PHASE = (3.1, 2.3, -2.7), 0.4  # of a plane wave, which has no symmetry about any wall


def phase(*at: Any) -> Any:
    return sum((k * x for k, x in zip(WAVE, at, strict=False)), PHASE)


def sloped(grid: hc.Grid, order: int) -> dict[str, hc.Derivative]:
    """Return conditions with the slopes of the wave on all walls."""
    slopes = [k * hc.cos(phase(*grid.coordinates())) for k in WAVE[: grid.ndim]]
    return {
        f"{a}{side}": hc.Derivative(f, order) for a, f in zip("xyz", slopes, strict=False) for side in "-+"
    }


def conditions(grid: hc.Grid, order: int) -> dict[str, tuple[Any, str, int]]:
    """Return by name the condition, the function that obeys it, and the power of h of the ghosts' error."""
    level = hc.sin(phase(*grid.coordinates()))
    exact = order + 2  # ghosts of an even or odd function are exact
    return {
        "symmetric": (hc.Symmetric(), "even", exact),
        "antisymmetric": (hc.Antisymmetric(), "odd", exact),
        "value": (hc.Value(level), "wave", 2),
        "value_of_order": (hc.Value(level, order=order + 1), "wave", order + 2),
        "derivative": (sloped(grid, 2), "wave", 3),
        "derivative_of_order": (sloped(grid, order + 1), "wave", order + 2),
        "extrapolate": (hc.Extrapolate(), "wave", 2),
        "extrapolate_of_order": (hc.Extrapolate(order + 2), "wave", order + 2),
    }


def functions(at: list[Array]) -> dict[str, dict[str, Array]]:
    """Return by name the values, and the sums of first, second and mixed derivatives."""
    axes = range(len(at))
    k, wave = WAVE[: len(at)], phase(*at)
    crossed = sum(k[a] * k[b] for a, b in itertools.combinations(axes, 2))
    derivatives = {
        "wave": {
            "f": np.sin(wave),
            "first": sum(k) * np.cos(wave),
            "second": -sum(wavenumber**2 for wavenumber in k) * np.sin(wave),
            "mixed": -crossed * np.sin(wave),
        }
    }
    half = [math.pi / EXTENT[a] for a in axes]
    for name, f, slope in (("even", np.cos, lambda x: -np.sin(x)), ("odd", np.sin, np.cos)):
        plain = [f(half[a] * at[a]) for a in axes]
        steep = [half[a] * slope(half[a] * at[a]) for a in axes]

        def product(*along: int, plain: list[Array] = plain, steep: list[Array] = steep) -> Array:
            """Return the product, differentiated along these axes."""
            return np.prod([(steep if a in along else plain)[a] for a in axes], axis=0)

        derivatives[name] = {
            "f": product(),
            "first": sum(product(a) for a in axes),
            "second": -sum(wavenumber**2 for wavenumber in half) * product(),
            "mixed": sum(product(*pair) for pair in itertools.combinations(axes, 2)),
        }
    return derivatives


def errors(order: int, ndim: int, n: int) -> dict[tuple[str, str, int], float]:
    """Return the maximum error by condition, derivative and number of walls next to a cell."""
    grid = hc.Grid((n,) * ndim, extent=EXTENT[:ndim])
    known = functions(
        np.meshgrid(*((np.arange(n) + 0.5) * length / n for length in grid.extent), indexing="ij")
    )
    exact, probes_of_fields = {}, {}
    for name, (condition, function, _) in conditions(grid, order).items():
        exact[grid.field(name, boundary=condition)] = known[function]
    for f in exact:
        probes_of_fields[f] = {d: grid.field(f"{d}_of_{f.name}") for d in ("first", "second", "mixed")}

    @hc.program
    def look() -> None:
        for f, probes in probes_of_fields.items():
            probes["first"].set(sum(hc.derivative(f, a) for a in range(ndim)))
            probes["second"].set(hc.laplacian(f))
            pairs = itertools.combinations(range(ndim), 2)
            probes["mixed"].set(sum(hc.mixed(f, *pair) for pair in pairs))

    sim = hc.Simulation(grid, look, order=order, threads=1)
    for f, values in exact.items():
        sim[f] = values["f"]
    sim.run()
    cells = np.indices(grid.shape)
    walls = ((cells == 0) | (cells == n - 1)).sum(axis=0)
    return {
        (f.name, d, count): float(np.abs(sim[probe] - exact[f][d])[walls == count].max())
        for f, probes in probes_of_fields.items()
        for d, probe in probes.items()
        for count in range(1, ndim + 1)
    }


# The sizes are large enough that errors follow their leading term. They are small enough to avoid round-off,
# which ghosts of corners from ten cells along each axis make a billion times larger.
SIZES = {2: (20, 40), 4: (16, 32), 6: (16, 32), 8: (10, 16)}


@cases("order, ndim", itertools.product((2, 4, 6, 8), (2, 3)), default=[(4, 2)])
def test_each_derivative_of_ghosts_loses_a_power_of_h(order: int, ndim: int):
    """Ghosts with an error of h^p leave order p - 1 for a first derivative and p - 2 for a second one."""
    few, many = SIZES[order]
    coarse, fine = errors(order, ndim, few), errors(order, ndim, many)
    powers = {name: power for name, (*_, power) in conditions(hc.Grid((few,) * ndim), order).items()}
    for key, error in some(fine.items()):
        name, derivative, _ = key
        rate = math.log(coarse[key] / error, many / few)
        remaining_order = powers[name] - (1 if derivative == "first" else 2)
        assert rate > min(remaining_order, order) - 0.35, (key, rate)
        if remaining_order < order and derivative != "mixed":  # the order is no higher
            assert rate < remaining_order + 0.35, (key, rate)
