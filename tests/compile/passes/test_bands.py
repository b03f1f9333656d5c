"""Values that vary only along rows: one computation per band of rows gives the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import halocline as hc
from loops import some
from suites import cases


def wavy(y: Any) -> Any:
    return y - 0.6 / (2 * np.pi) * np.sin(2 * np.pi * y)


def run(shape: tuple[int, ...], dtype: str = "float64", **options: Any) -> tuple[list[Any], str]:
    """Return the bits of the fields and numbers after three steps, and the generated code.

    The equations have a stretched last axis, forces along it, a stage and all reductions.
    """
    last = "xyz"[len(shape) - 1]
    grid = hc.Grid(shape, stretch={last: wavy}, walls="node")
    u, v = (grid.field(name, dtype=dtype, boundary=hc.Value(0.0)) for name in "uv")

    def step(u: Any, v: Any) -> None:
        along = u.coordinates[-1]
        force = hc.sin(5.0 * along) / (1.0 + along * along) + 0.25 * along
        bent = hc.stage(hc.exp(-along) * u, name="bent")
        hc.assign({
            u: u + 1e-4 * hc.laplacian(u) + 1e-3 * force * v,
            v: v + 1e-5 * hc.shift(bent, 0) + hc.where(hc.cos(along) > 0.3, hc.sqrt(along), 0.0) * u,
        })  # fmt: skip
        hc.scalar("total").set(hc.sum(u * force))
        hc.scalar("most").set(hc.max(v / (2.0 + along)))
        hc.scalar("least").set(hc.min(u))

    sim = hc.Simulation(grid, hc.program(step), threads=1, **options)
    random = np.random.default_rng(7)
    sim[u], sim[v] = random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    sim.run(steps=3)
    numbers = [sim.values[name].hex() for name in ("total", "most", "least")]
    return [sim.checksum(u), sim.checksum(v), *numbers], sim.schedule.source


@pytest.mark.parametrize("streaming", [False, True])
@cases(
    "shape, dtype",
    [((9, 41), "float64"), ((5, 7, 30), "float64"), ((5, 7, 33), "float32"), ((4, 1100), "float64")],
    default=[((5, 7, 33), "float32"), ((4, 1100), "float64")],
)
def test_bands_do_not_change_bits(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: str, streaming: bool
) -> None:
    """Bits are equal for one loop and groups, bands that end within rows, and patches that begin there."""
    monkeypatch.setattr("halocline.run.engine.prepare.exceeds_cache", lambda *_: streaming)
    results = []
    for width, loads in ((512, 64), (16, 64), (512, 4), (16, 4)):
        monkeypatch.setattr("halocline.compile.passes.bands.WIDTH", width)
        monkeypatch.setattr("halocline.compile.passes.split.LOADS", loads)
        bits, source = run(shape, dtype, patch=None if width == 512 else 19)
        assert "band0[" in source
        results.append(bits)
    monkeypatch.setattr("halocline.compile.targets.cpu.bands", lambda kernel: kernel)
    bits, source = run(shape, dtype)
    assert "band" not in source
    assert all(result == bits for result in results)


def test_values_from_bands_are_correct() -> None:
    grid = hc.Grid((6, 700), extent=(1.0, 2.0))
    u = grid.field("u")
    sim = hc.Simulation(
        grid, hc.program(lambda u: u.set(u + hc.sin(3.0 * u.coordinates[1]) / u.coordinates[1]))
    )
    sim.run(steps=1)
    y = (np.arange(700) + 0.5) * (2.0 / 700)
    np.testing.assert_allclose(sim.gather(u), np.tile(np.sin(3.0 * y) / y, (6, 1)), rtol=1e-14)
    assert "band0" in sim.schedule.source


def source_of(shape: tuple[int, ...], change: Any, **options: Any) -> str:
    grid = hc.Grid(shape, periodic=True, **options)
    grid.field("u")
    return str(hc.Simulation(grid, hc.program(lambda u: u.set(change(u)))).schedule.source)


def test_a_map_is_computed_once_for_all_rows() -> None:
    """The generated code computes the map, which needs three sines, before the loops over rows."""
    grid = hc.Grid((8, 8, 8), stretch={"z": wavy})
    grid.field("u", boundary=hc.Value(0.0))
    source = hc.Simulation(grid, hc.program(lambda u: u.set(u + hc.laplacian(u)))).schedule.source
    (sweep, *_) = re.findall(r'extern "C" void sweep_0.*?^}', source, flags=re.DOTALL | re.MULTILINE)
    assert "hc_sin" in sweep
    rows = sweep[sweep.rindex("for (int64_t i =") :]
    assert "hc_sin" not in rows
    assert "/" not in rows.replace("//", "")


def test_operands_of_a_condition_are_computed_once() -> None:
    source = source_of((8, 8), lambda u: u + hc.where(hc.sin(u.coordinates[1]) > 0.3, 1.0, 0.0))
    for sweep in some(re.findall(r'extern "C" void sweep_0.*?^}', source, flags=re.DOTALL | re.MULTILINE)):
        assert "hc_sin" in sweep
        assert "hc_sin" not in sweep[sweep.rindex("for (int64_t i =") :]


@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ((16,), lambda u: u + hc.sin(u.coordinates[0])),  # a single row
        ((8, 8), lambda u: u + hc.sin(u.coordinates[0])),  # already computed once per row
        ((8, 8), lambda u: u * (2.0 * u.coordinates[1] + 1.0)),  # little work
        ((8, 8), lambda u: u + hc.sin(u.coordinates[0] + u.coordinates[1])),
        ((8, 8), lambda u: u + hc.sin(u * u.coordinates[1])),
    ],
)
def test_these_values_are_not_moved_into_bands(shape: tuple[int, ...], change: Any) -> None:
    assert "band" not in source_of(shape, change)
