"""Bulk copies of rows to shared memory have the bits of the CPU: on the stand-in for the CUDA driver.

The stand-in checks the alignment of each copy, and that a group is complete when threads wait for it.
The tests in test_nvrtc_programs.py compile the instructions.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import cuda_standin
import halocline as hc
from halocline.compile.strategy import Strategy, block_splits
from halocline.run.devices.checked import VARIABLE
from halocline.run.engine import prepare, prepared

pytestmark = pytest.mark.ranks(1, alone="file")


@pytest.fixture(scope="module")
def standin() -> ctypes.CDLL:
    if cuda_standin.real_devices():
        pytest.skip("`make gpu-check` compares the bits of copies on real devices")
    return cuda_standin.load(1)


@pytest.fixture
def sources(standin: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the sources that are compiled, and select bulk copies."""
    compiled: list[str] = []
    compile_for = prepared.compile_for

    def recorded(device: Any, source: str) -> Any:
        compiled.append(source)
        return compile_for(device, source)

    monkeypatch.setattr(prepared, "compile_for", recorded)
    monkeypatch.setenv(VARIABLE, "1")
    return compiled


def checksums(shape: tuple[int, ...], dtype: str, **options: Any) -> list[str]:
    grid = hc.Grid(shape, periodic=[True] * (len(shape) - 1) + [False])
    u, v = (grid.field(name, dtype=dtype, boundary=hc.Derivative(0.0)) for name in "uv")
    sim = hc.Simulation(
        grid,
        lambda u, v: {u: hc.laplacian(u) - v, v: hc.laplacian(v) + u},
        scheme=hc.Euler(),
        dt=1e-4,
        order=4,
        **options,
    )
    sim[u] = lambda *x: hc.sin(7 * x[0]) * hc.cos(5 * x[-1])
    sim[v] = lambda *x: x[0] - x[-1]
    sim.run(steps=2)
    return [sim.checksum(u), sim.checksum(v)]


@pytest.mark.parametrize(
    ("shape", "dtype", "rows", "cells", "planes"),
    [
        ((9, 13, 70), "float64", 1, 2, 4),
        ((9, 13, 70), "float64", 3, 2, 0),
        ((9, 13, 71), "float32", 2, 4, 3),
        ((21, 131), "float64", 1, 2, 5),
        ((3, 5, 7), "float64", 2, 2, 0),
    ],
)
def test_bulk_copies_have_the_bits_of_the_cpu(
    shape: tuple[int, ...],
    dtype: str,
    rows: int,
    cells: int,
    planes: int,
    sources: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = checksums(shape, dtype)
    splits = block_splits(len(shape), (8, 4), rows=rows, cells=cells, planes=planes)
    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy("planes", splits))
    assert checksums(shape, dtype, device="cuda:0") == expected
    assert any("HC_BULK_ROW(&" in source for source in sources)


def test_rows_that_are_no_whole_vectors_are_not_copied_in_bulk(
    sources: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = checksums((9, 13, 70), "float64")
    monkeypatch.setattr(prepare, "Strategy", lambda *_: Strategy("planes", block_splits(3, (8, 4))))
    assert checksums((9, 13, 70), "float64", device="cuda:0") == expected
    assert any("HC_COPY(double, &" in source for source in sources)
    assert not any("HC_BULK_ROW(&" in source for source in sources)
