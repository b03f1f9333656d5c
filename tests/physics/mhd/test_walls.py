"""Ghost cells beyond walls at all orders: faces, edges and corners, compared with NumPy's padding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import halocline as hc
from halocline.physics.mhd import MHD
from loops import some
from suites import cases

Array = NDArray[np.float64]
# arguments: lines along the first axis, the side, and the layer, counted outward
Ghosts = Callable[[Array, int, int], Array]

SHAPE, EXTENT = (9, 10, 11), (0.9, 1.1, 1.3)
SLOPE, LEVEL = 0.7, 0.4


def mirrored(sign: float, level: float = 0.0) -> Ghosts:
    def ghosts(inward: Array, side: int, count: int) -> Array:
        return 2 * level + sign * inward[:count]

    return ghosts


def sloped(inward: Array, side: int, count: int, h: float = 0.0) -> Array:
    distance = 2 * np.arange(count) + 1
    return inward[:count] + side * SLOPE * h * distance.reshape(-1, 1, 1)


def continued(order: int) -> Ghosts:
    def ghosts(inward: Array, side: int, count: int) -> Array:
        at = -1.0 - np.arange(count)
        powers = np.vander(np.arange(order, dtype=float), increasing=True)
        coefficients = np.tensordot(np.linalg.inv(powers), inward[:order], axes=1)
        return np.tensordot(np.vander(at, order, increasing=True), coefficients, axes=1)

    return ghosts


def padded(values: Array, ghosts: tuple[Any, Any, Any], count: int) -> Array:
    """Return the field with the given number of layers beyond each wall, axis after axis."""
    for axis, rule in enumerate(ghosts):
        h = EXTENT[axis] / SHAPE[axis]
        lines = np.moveaxis(values, axis, 0)
        more = {"h": h} if rule is sloped else {}
        below = rule(lines, -1, count, **more)[::-1]
        above = rule(lines[::-1], 1, count, **more)
        values = np.moveaxis(np.concatenate([below, lines, above]), 0, axis)
    return values


RULES = {
    "symmetric": (hc.Symmetric(), mirrored(1.0)),
    "antisymmetric": (hc.Antisymmetric(), mirrored(-1.0)),
    "value": (hc.Value(LEVEL), mirrored(-1.0, LEVEL)),
    "derivative": (hc.Derivative(SLOPE), sloped),
    "extrapolation": (hc.Extrapolate(3), continued(3)),
}
# by field of the equations: the condition across x, y, z
WALLS = {
    "lnrho": ("extrapolation", "extrapolation", "extrapolation"),
    "u_x": ("antisymmetric", "symmetric", "symmetric"),
    "u_y": ("symmetric", "antisymmetric", "extrapolation"),
    "u_z": ("extrapolation", "symmetric", "antisymmetric"),
    "s": ("value", "value", "value"),
    "A_x": ("derivative", "derivative", "derivative"),
    "A_y": ("derivative", "symmetric", "derivative"),
    "A_z": ("symmetric", "derivative", "extrapolation"),
}


def boundary_of(name: str) -> dict[str, Any]:
    return {f"{a}{side}": RULES[rule][0] for a, rule in zip("xyz", WALLS[name], strict=True) for side in "-+"}


def reach(r: int) -> list[tuple[int, int, int]]:
    """Return offsets to the outermost faces, edges and corners of the halo, which read every layer."""
    return [step for step in itertools.product((-r, 0, r), repeat=3) if any(step)]


@cases("order", [2, 4, 6, 8], default=[6])
@pytest.mark.ranks(1, 2, long=(1,))
def test_derivatives_beyond_walls_agree_with_numpy(order: int):
    r = order // 2
    grid = hc.Grid(SHAPE, extent=EXTENT)
    vectors = {v: [boundary_of(f"{v}_{a}") for a in "xyz"] for v in "uA"}
    mhd = MHD(grid, boundary={"lnrho": boundary_of("lnrho"), "s": boundary_of("s"), **vectors})
    offsets, pairs = reach(r), list(itertools.combinations(range(3), 2))
    draw = np.random.default_rng(order)
    values = {f.name: draw.random(SHAPE) for f in mhd.fields}
    spread = [grid.field(f"at{n}") for n in range(len(offsets))]
    crossed = [grid.field(f"mixed{n}") for n in range(3)]
    c = outer_weights(order)
    # all orders at the default order, one of each kind at others
    for f in some(mhd.fields if order == 6 else [mhd.lnrho, mhd.u[2], mhd.s, mhd.A[0]]):

        @hc.program
        def look(f: hc.Field = f) -> None:
            for probe, offset in zip(spread, offsets, strict=True):
                probe.set(f[offset])
            for probe, (a, b) in zip(crossed, pairs, strict=True):
                probe.set(hc.derivative(f, a, b))

        sim = hc.Simulation(grid, look, order=order, threads=1)
        sim[f] = values[f.name]
        sim.run(steps=1)
        whole = padded(values[f.name], tuple(RULES[rule][1] for rule in WALLS[f.name]), r)

        def shifted(offset: tuple[int, ...], whole: Array = whole) -> Array:
            return whole[tuple(slice(r + o, r + o + n) for o, n in zip(offset, SHAPE, strict=True))]

        for probe, offset in some(zip(spread, offsets, strict=True)):
            result = sim.gather(probe)
            if result is not None:
                assert np.abs(result - shifted(offset)).max() <= 1e-13 * np.abs(whole).max(), (f, offset)
        for probe, (a, b) in zip(crossed, pairs, strict=True):
            total = np.zeros(SHAPE)
            for k in range(1, r + 1):
                for p, q in itertools.product((-k, k), repeat=2):
                    offset = [0, 0, 0]
                    offset[a], offset[b] = p, q
                    total += np.sign(p * q) * c[k - 1] * shifted(tuple(offset))
            total *= SHAPE[a] * SHAPE[b] / (4 * EXTENT[a] * EXTENT[b])
            result = sim.gather(probe)
            if result is not None:
                assert np.abs(result - total).max() <= 1e-12 * np.abs(total).max(), (f, a, b)


def outer_weights(order: int) -> list[float]:
    """Return the outer weights of the second derivative."""
    m = order // 2
    # exact for even powers up to the order: sum of 2 c_k k^(2p) is 2 for p = 1, else 0
    powers = np.array([[2.0 * k ** (2 * p) for k in range(1, m + 1)] for p in range(1, m + 1)])
    return list(np.linalg.solve(powers, [2.0, *[0.0] * (m - 1)]))
