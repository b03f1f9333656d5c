"""Large expressions: number of visits per node, and the generated code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.printers import spelling
from halocline.lang import trace
from halocline.lang.program import Program
from halocline.run.fields import pointwise as pointwise_module
from suites import cases

SHAPE = (8, 6)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Force the compilation of pointwise programs."""
    monkeypatch.setattr(pointwise_module, "MOST_WORK", -1)


# -- large expressions ---------------------------------------------------------------------------------------


def cosines(n: int) -> Callable[..., Any]:
    return lambda x, y: sum(0.1 * np.cos(float(k) * x + float(k % 7) * y + 0.5) for k in range(1, n + 1))


def products(n: int) -> Callable[..., Any]:
    return lambda x, y: sum(np.exp(-float(k) * x * x) * np.sin(float(k) * y) for k in range(1, n + 1))


def nested(n: int) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        value = x
        for k in range(n):
            value = np.where(value > 0.1 * k, value * y, value + 1.0 / (2.0 + x * k))
        return value

    return function


def horner(n: int) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        value = y
        for k in range(n):
            value = value * x + 1.0 / (k + 1.5)
        return value

    return function


FAMILIES = {f.__name__: f for f in (cosines, products, nested, horner)}


def schedule(function: Callable[..., Any]) -> Any:
    """Return the schedule of a program that sets a field to a function of the coordinates."""
    grid = hc.Grid(SHAPE)
    field = grid.field("u")
    program = Program("initial_values")
    with trace.tracing(program):
        field.set(trace.trace_function(function, field.coordinates, "the function"))
    return compile_program(program, grid)


def operations_of(function: Callable[[], Any]) -> int:
    """Return the number of calls of Python and C functions during a call.

    The collection of garbage is off, since it also calls functions: finalizers and callbacks.
    """
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls


@cases("family", FAMILIES, default=list(FAMILIES)[:2])
def test_tracing_and_compiling_visit_each_node_a_bounded_number_of_times(family: str) -> None:
    make = FAMILIES[family]
    schedule(make(4))  # fills caches and imports modules
    few, some, many = (operations_of(lambda n=n: schedule(make(n))) for n in (25, 50, 100))  # type: ignore[misc]
    assert some > few
    assert many - some < 1.25 * 2.0 * (some - few)


@pytest.mark.parametrize("family", ["cosines", "products"])
def test_code_of_many_elementary_functions_is_linear_and_calls_them(family: str) -> None:
    sources = {n: schedule(FAMILIES[family](n)).source for n in (4, 50, 100, 200)}
    assert "hc_called" not in sources[4]
    few, some, many = (len(sources[n]) for n in (50, 100, 200))
    assert many - some < 1.1 * 2.0 * (some - few)
    for name in ("cos", "sin", "exp"):
        for n in (50, 100, 200):
            inline = sources[n].count(f"hc_{name}(") + sources[n].count(f"hc_{name}_small(")
            assert inline <= 2 * 2  # in the called functions, for small and large angles, of two kernels


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
def test_called_functions_have_the_bits_of_inline_ones(
    dtype: str, monkeypatch: pytest.MonkeyPatch, compiled: None
) -> None:
    """Bits are equal for small and large angles, rows of any length, and every elementary function."""
    grid = hc.Grid((3, 37), extent=(1.0, 3.0))
    u, v = grid.field("u", dtype=dtype), grid.field("v", dtype=dtype)
    sim = hc.Simulation(grid, lambda u, v: {u: -u, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)
    x = np.random.default_rng(3).uniform(0.1, 4.0, (3, 37))
    checksums: dict[int, list[str]] = {}
    for most in (0, 1000):
        monkeypatch.setattr(spelling, "MAX_INLINE", most)
        sim._forget_programs()
        assert ("hc_called" in schedule(FAMILIES["cosines"](4)).source) == (most == 0)
        checksums[most] = []
        for scale in (1.0, 1e14):
            sim[v] = x * scale
            sim[u] = hc.sin(v) + hc.cos(2.0 * v) + hc.exp(-v) + hc.log(v) + v**0.3 * hc.sin(grid.x * v)
            checksums[most].append(sim.checksum(u))
            sim[u] = hc.random(7, index=grid.cell_number()) + hc.cos(grid.y * v) * hc.exp(grid.x)
            checksums[most].append(sim.checksum(u))
    assert len(set(checksums[0])) == 4
    assert checksums[0] == checksums[1000]
