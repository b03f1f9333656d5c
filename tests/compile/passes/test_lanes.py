"""Vector loops: a value that is a shift of another along a row is computed once, with the same bits."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import halocline as hc
from halocline.compile.cxx import find_compiler
from halocline.compile.ir.kernel import Kernel, Table
from halocline.compile.ir.statements import Lanes, flat, roots
from halocline.compile.passes.lanes import Columns, columns, lanes
from halocline.compile.passes.loops import loops
from halocline.compile.targets.cpu import include_folder
from halocline.lang import trace
from halocline.lang.expression import Expr
from kernels import in_nest, kernel_of, loads, results
from suites import cases

# -- vectors -----------------------------------------------------------------------------------------

DRIVER = """
#include <cmath>
#include <cstdio>
#include "halocline/lanes.hpp"

template <int Step, class T, class V>
int shifted(const T* row, int lanes) {
  T found[64];
  hc_lanes_store(found, hc_lanes_shifted<Step>(hc_lanes_load(row), hc_lanes_load(row + lanes),
                                               hc_lanes_load(row + 2 * lanes)));
  int wrong = 0;
  for (int n = 0; n < lanes; ++n) wrong += found[n] != row[lanes + n + Step];
  return wrong;
}

template <class T>
int check() {
  typedef typename hc_lanes_of<T>::type V;
  const int lanes = sizeof(V) / sizeof(T);
  T row[64], other[64], third[64], found[64];
  for (int n = 0; n < 64; ++n) {
    row[n] = std::sin(T(n));
    other[n] = 1 / (T(n) + 3);
    third[n] = -row[n] * other[n];  // so that one rounding and two differ
  }
  int wrong = shifted<1, T, V>(row, lanes) + shifted<2, T, V>(row, lanes) + shifted<3, T, V>(row, lanes) +
              shifted<4, T, V>(row, lanes) + shifted<-1, T, V>(row, lanes) + shifted<-2, T, V>(row, lanes) +
              shifted<-3, T, V>(row, lanes) + shifted<-4, T, V>(row, lanes);
  hc_lanes_store(found, hc_lanes_fma(hc_lanes_load(row), hc_lanes_load(other), hc_lanes_load(third)));
  for (int n = 0; n < lanes; ++n) wrong += found[n] != std::fma(row[n], other[n], third[n]);
  const T values[] = {0, -T(0), T(0.1)};
  for (T value : values) {
    hc_lanes_store(found, hc_lanes_all(value));
    for (int n = 0; n < lanes; ++n)
      wrong += found[n] != value || std::signbit(found[n]) != std::signbit(value);
  }
  return wrong;
}

int main() {
  const int wrong = check<double>() + check<float>();
  std::printf("%d\\n", wrong);
}
"""
COMPILER = find_compiler().command[0]
BUILDS = [(COMPILER, "-march=native")]
if platform.machine() == "x86_64":
    BUILDS.append((COMPILER, "-march=x86-64"))
    if {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()):
        BUILDS.append((COMPILER, "-march=x86-64-v3"))
if clang := shutil.which("clang++"):
    BUILDS.append((clang, "-march=native"))


@pytest.mark.parametrize(("compiler", "machine"), BUILDS)
def test_vector_operations_agree_with_scalar_ones(compiler: str, machine: str, tmp_path: Path):
    """Vector operations give the results of scalar ones, with and without instructions of this machine."""
    source, program = tmp_path / "lanes.cpp", tmp_path / "lanes"
    source.write_text(DRIVER)
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-Wall", "-Wno-psabi", f"-I{include_folder()}"]
    subprocess.run([compiler, *flags, machine, source, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "0\n"


# -- shifts ------------------------------------------------------------------------------------------

GRID = hc.Grid((8, 8, 8), periodic=True)
F = GRID.field("f")


def kernel_and_columns(*values: Expr) -> tuple[Kernel, Columns]:
    """Return a kernel of the values, and its columns."""
    with trace.order(6):
        kernel = kernel_of(*values)
    table = Table(kernel.grid, kernel.arrays, kernel.values)
    shared = columns(table, results(kernel))
    assert shared is not None
    return replace(kernel, values=tuple(table.values)), shared


def test_a_difference_along_the_row_loads_the_row_once():
    kernel, shared = kernel_and_columns(hc.derivative(F, 2, order=6))
    assert loads(kernel, shared.bases) == [("f", (0, 0, 0))]
    assert sorted(step for _, step in shared.shifted.values()) == [-3, -2, -1, 1, 2, 3]
    assert shared.first == 2


def test_a_mixed_difference_reuses_columns_of_the_other_difference():
    kernel, shared = kernel_and_columns(hc.mixed(F, 0, 2, order=6), hc.derivative(F, 0, order=6))
    base_loads = [sorted(loads(kernel, (base,))) for base in shared.bases]
    for k in (1, 2, 3):
        assert [("f", (-k, 0, 0)), ("f", (k, 0, 0))] in base_loads
    assert len(shared.bases) == 4  # the fourth is the derivative itself, whose rows are already loaded
    assert len(loads(kernel, shared.bases)) == 6
    assert all(offset[2] == 0 for _, offset in loads(kernel, shared.bases))


def test_values_without_shifts_are_not_loaded_ahead():
    kernel, shared = kernel_and_columns(hc.derivative(F, 2, order=2), hc.derivative(F, 1, order=2))
    assert loads(kernel, shared.bases) == [("f", (0, 0, 0))]
    assert kernel_and_columns(F[0, 0, 1] - F)[1].first == 1
    assert kernel_and_columns(hc.laplacian(F) - hc.second(F, 2))[1].bases != []
    assert kernel_and_columns(hc.derivative(F, 0))[1] == Columns([], {}, 0)


def test_loops_without_vector_form_are_left_to_the_compiler():
    def none(*values: Expr) -> bool:
        kernel = kernel_of(*values)
        return columns(Table(kernel.grid, kernel.arrays, kernel.values), results(kernel)) is None

    assert none(hc.exp(F[0, 0, 1]) - F)
    assert none(F[0, 0, 5] - F)  # longer than a vector of any machine
    assert none(F * hc.where(F > 0, F, 1.0))
    assert none(F[0, 0, 1] + GRID.field("g", dtype="float32"))
    assert not none(F[0, 0, 1] - F)


def test_a_forward_difference_has_one_column_and_two_shifts():
    """A forward difference has one column, which is computed one vector ahead, and two shifts of it."""
    kernel = loops(in_nest(kernel_of(F[0, 0, 1] - F)))
    arrays = tuple(
        replace(array, kind="intermediate") if array.name == "r0" else array for array in kernel.arrays
    )
    kernel = lanes(replace(kernel, arrays=arrays))
    (loop,) = (s for s in flat(kernel.body) if isinstance(s, Lanes))
    assert (loop.first, loop.dtype) == (1, "float64")
    assert loads(kernel, loop.columns) == [("f", (0, 0, 0))]
    values = [kernel.values[n] for n in kernel.below(roots(loop.body))]
    assert sorted(value.attribute for value in values if value.op == "shifted") == [(0, 0), (0, 1)]


# -- bits --------------------------------------------------------------------------------------------


def some_expression(draw: np.random.Generator, field: hc.Field, terms: int) -> Expr:
    """Return sums, differences and products of a field at random places; some are shifts of others."""
    ndim = field.grid.ndim
    value: Expr = field * 0.5
    for _ in range(terms):
        at = draw.integers(-2, 3, ndim)
        step = tuple(int(s) for s in draw.integers(-2, 3, 2))
        places = [int(at[-1]) + s for s in step]
        column = [field[(*at[:-1], k)] - 0.3 * field[(*-at[:-1], k)] for k in places]
        if draw.random() < 0.3:
            column[0] = -column[0] * column[0]
        if draw.random() < 0.8:
            value = value + float(draw.random()) * (column[0] - column[1])
        else:
            value = column[0] - value
    return value


@cases(
    "ndim, dtype, streaming",
    [
        (1, "float64", False),
        (1, "float32", True),
        (2, "float64", True),
        (3, "float64", False),
        (3, "float64", True),
        (3, "float32", False),
    ],
    default=[(1, "float32", True), (2, "float64", True), (3, "float64", False)],
)
def test_vector_loops_do_not_change_bits_of_random_programs(
    monkeypatch: pytest.MonkeyPatch, ndim: int, dtype: str, streaming: bool
):
    """The bits are equal for rows of any length, for short pieces, and for loops that read stored values."""
    seed = 10 * ndim + streaming
    draw = np.random.default_rng(seed)
    monkeypatch.setattr("halocline.run.engine.prepare.exceeds_cache", lambda *_: streaming)
    monkeypatch.setattr("halocline.compile.passes.split.LOADS", 4)
    monkeypatch.setattr("halocline.compile.passes.split.ROWS", 2)
    shape = tuple(int(n) for n in (*draw.integers(5, 8, ndim - 1), draw.integers(65, 150)))
    grid = hc.Grid(shape, periodic=[bool(draw.integers(2)) for _ in shape])
    walls = None if all(grid.periodic) else hc.Symmetric()
    u, v, a, b = (grid.field(name, dtype=dtype, boundary=walls) for name in "uvab")
    pieces = [some_expression(draw, f, 4) for f in (u, v, u, v)]

    def results(*, grouped: bool) -> list[str]:
        def change(u, v, a, b):
            return hc.assign({a: pieces[0] * pieces[1] + u, b: pieces[2] - hc.sin(pieces[3])})

        sim = hc.Simulation(grid, hc.program(change), threads=1)
        assert ("hc_lanes_shifted<" in sim.schedule.source) == grouped
        values = np.random.default_rng(seed)
        for field in (u, v):
            sim[field] = values.random(shape) - 0.5
        sim.run(steps=1)
        return [sim.checksum(field) for field in (a, b)]

    grouped = results(grouped=True)
    monkeypatch.setattr("halocline.compile.passes.split.groups", lambda kernel, values: [])
    assert results(grouped=False) == grouped
