"""The native engine, with plans and kernels written by hand."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halocline import _native as native
from halocline.run.host.mpi_library import packaged_library
from halocline.run.ranks.library import initialised_mpi
from hang import HANG
from loops import some

INCLUDE = Path(__file__).parents[2] / "native" / "include"
PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
KINDS = ["sum", "min", "max", "count", "value"]
WEIGHTS = {offset: 3 + 2 * n for n, offset in enumerate(itertools.product((-1, 0, 1), repeat=3))}
MODULUS = 1021  # limit of the values in the shift test, so that all sums are exact integers

KERNELS = r"""
#include <math.h>
#include <pthread.h>
#include <stdexcept>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <xmmintrin.h>
#include "halocline/abi.h"
#include "halocline/reduce.hpp"

#define CELLS(b) \
  for (int64_t i = b->lo[0]; i < b->hi[0]; ++i) \
    for (int64_t j = b->lo[1]; j < b->hi[1]; ++j) \
      for (int64_t k = b->lo[2]; k < b->hi[2]; ++k)

template <typename T = double>
static T &at(const hc_arguments *a, int n, int64_t i, int64_t j, int64_t k) {
  return static_cast<T *>(a->fields[n])[i * a->strides[2 * n] + j * a->strides[2 * n + 1] + k];
}

static int64_t wrap(int64_t i, int64_t n) { return ((i % n) + n) % n; }

static int64_t place(const hc_arguments *a, int64_t i, int64_t j, int64_t k) {
  const int64_t *o = a->origin, *s = a->shape;
  return (wrap(o[0] + i, s[0]) * s[1] + wrap(o[1] + j, s[1])) * s[2] + wrap(o[2] + k, s[2]);
}

extern "C" {

void nothing(const hc_arguments *, const hc_box *) {}
void nothing_to_do(double *) {}

// operands: float64, float32
void number_cells(const hc_arguments *a, const hc_box *b) {
  CELLS(b) at(a, 0, i, j, k) = 1 + place(a, i, j, k);
  CELLS(b) at<float>(a, 1, i, j, k) = 1 + place(a, i, j, k) % 65521;
}

// operands: new, old; one sum
void shift(const hc_arguments *a, const hc_box *b) {
  double row[HC_CHUNK];
  for (int64_t i = b->lo[0]; i < b->hi[0]; ++i)
    for (int64_t j = b->lo[1]; j < b->hi[1]; ++j) {
      for (int64_t k = b->lo[2]; k < b->hi[2]; ++k) {
        double sum = 0, weight = 3;
        for (int x = -1; x <= 1; ++x)
          for (int y = -1; y <= 1; ++y)
            for (int z = -1; z <= 1; ++z, weight += 2)
              if (a->shape[0] > 1 || x == 0) sum += weight * at(a, 1, i + x, j + y, k + z);
        at(a, 0, i, j, k) = fmod(sum, 1021);
        row[k - b->lo[2]] = at(a, 0, i, j, k);
      }
      hc_sum_deposit(&a->reductions[0], row, b->hi[2] - b->lo[2]);
    }
}

// operand: a field; all kinds of reductions; the value is that of the global cell in scalar 8
void reduce(const hc_arguments *a, const hc_box *b) {
  CELLS(b) {
    const double x = at(a, 0, i, j, k);
    hc_sum_deposit(&a->reductions[0], &x, 1);
    hc_min_deposit(&a->reductions[1], &x, 1);
    hc_max_deposit(&a->reductions[2], &x, 1);
    hc_count_add(&a->reductions[3], x > 0);
    if (place(a, i, j, k) == (int64_t)a->scalars[8]) hc_value_deposit(&a->reductions[4], &x, 1);
  }
}

void count_visits(const hc_arguments *a, const hc_box *b) { CELLS(b) at(a, 0, i, j, k) += 1; }
void set_step(const hc_arguments *a, const hc_box *b) { CELLS(b) at(a, 0, i, j, k) = a->scalars[0]; }
void negate(const hc_arguments *a, const hc_box *b) { CELLS(b) at(a, 0, i, j, k) = -at(a, 0, i, j, k); }

// The first patches are slow; every cell names its thread.
void uneven(const hc_arguments *a, const hc_box *b) {
  const timespec pause = {0, b->lo[1] < 4 ? 30000000 : 10000};
  nanosleep(&pause, nullptr);
  CELLS(b) at(a, 0, i, j, k) = (double)((uintptr_t)pthread_self() % 1000000007);
}

// scratch: writes, waits, and finds what it wrote
void use_scratch(const hc_arguments *a, const hc_box *b) {
  const double mine = 1 + b->lo[1];
  double *scratch = static_cast<double *>(a->scratch);
  bool good = (uintptr_t)scratch % 64 == 0;
  for (int n = 0; n < 1024; ++n) scratch[n] = mine + n;
  const timespec pause = {0, 100000};
  nanosleep(&pause, nullptr);
  for (int n = 0; n < 1024; ++n) good = good && scratch[n] == mine + n;
  CELLS(b) at(a, 0, i, j, k) = good;
}

// Boundary conditions on axis 2, then 1: each ghost takes its inner neighbour's value times ten plus one.
void ghost_low_2(const hc_arguments *a, const hc_box *b) {
  CELLS(b) at(a, 0, i, j, k) = 10 * at(a, 0, i, j, k + 1) + 1;
}
void ghost_low_1(const hc_arguments *a, const hc_box *b) {
  CELLS(b) at(a, 0, i, j, k) = 10 * at(a, 0, i, j + 1, k) + 1;
}
// operands: new, old
void corner_sum(const hc_arguments *a, const hc_box *b) {
  CELLS(b) at(a, 0, i, j, k) = at(a, 1, i, j - 1, k - 1) + at(a, 1, i, j - 1, k) + at(a, 1, i, j, k - 1);
}

void slow(const hc_arguments *, const hc_box *) {
  const timespec pause = {0, 2000000};
  nanosleep(&pause, nullptr);
}
void throws(const hc_arguments *, const hc_box *b) {
  if (b->lo[1] == 0) throw std::runtime_error("kernel says no");
}
void kill_rank(const hc_arguments *a, const hc_box *) {
  if (a->origin[1] > 0 && a->scalars[0] > 10) abort();
}

void sleep_long(double *) {
  const timespec pause = {20, 0};
  nanosleep(&pause, nullptr);
}
void halve(double *s) { s[1] /= 2; }
int small(const double *s) { return s[1] < 0.01; }
int third_pass(const double *s) { return s[0] >= 3; }
int never(const double *) { return 0; }
void start(double *s) { s[1] = 1; }
void add_outer(double *s) { s[4] += 100 * s[2] + s[0]; }

void flush_to_zero(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); }
}
"""


@functools.cache
def library() -> str:
    """Return the library of kernels, compiled once for this process and for the ranks that it starts."""
    name = hashlib.sha256(KERNELS.encode() + (INCLUDE / "halocline" / "reduce.hpp").read_bytes()).hexdigest()
    result = Path(os.environ["HALOCLINE_CACHE"]) / f"{name}.so"
    if not result.exists():
        with tempfile.TemporaryDirectory(dir=result.parent) as folder:
            source, new = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            source.write_text(KERNELS)
            flags = ["-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
            subprocess.run(["g++", *flags, f"-I{INCLUDE}", "-o", new, source], check=True)
            new.replace(result)
    return str(result)


@pytest.fixture(scope="module")
def kernels() -> str:
    return library()


def blocks(shape: tuple[int, ...], size: tuple[int, ...]) -> np.ndarray:
    """Return patches of at most `size` cells that tile a subdomain."""
    rows = []
    for lo in itertools.product(*(range(0, n, b) for n, b in zip(shape, size, strict=True))):
        hi = [min(a + b, n) for a, b, n in zip(lo, size, shape, strict=True)]
        rows.append([*lo, *hi, 0, 0, 0])
    return np.array(rows, np.int64)


def owners(patches: np.ndarray, threads: int) -> np.ndarray:
    """Return the thread of each patch: consecutive ranges of equal length."""
    return (np.arange(len(patches)) * threads // len(patches)).astype(np.int32)


SPINS = 100  # number of polls of a waiting thread before it sleeps


def make(
    kernels: str,
    *,
    shape: tuple[int, int, int] = (1, 8, 8),
    patch: tuple[int, int, int] = (1, 4, 4),
    fields: int = 1,
    halo: int = 1,
    threads: int = 1,
    scalars: int = 10,
) -> tuple[Any, list[Any], np.ndarray]:
    """Return an engine on one rank with fields of float64."""
    lower = tuple(0 if n == 1 else halo for n in shape)
    storages = [native.Storage(shape, lower, lower, 8, index) for index in range(fields)]
    numbers = np.zeros(scalars)
    patches = blocks(shape, patch)
    whole = native.Subdomain(storages, (0, 0, 0), patches, owners(patches, threads))
    engine = native.Engine(kernels, [whole], numbers, shape, threads, SPINS, None)
    return engine, storages, numbers


def sweep(engine: Any, kernel: str, operands: list[int], **options: Any) -> None:
    """Append a sweep to an engine with one subdomain."""
    names = ("reductions", "swaps", "scratch_bytes", "backward", "halo_kernel", "in_place")
    whole = {name: options.pop(name) for name in names if name in options}
    engine.sweep(kernel, operands, [native.Share(**options)], **whole)
    if "reductions" in whole:
        engine.await_results()


# ---------------------------------------------------------------------------------------- storage


@pytest.mark.parametrize("itemsize", [4, 8])
def test_storage_has_the_expected_layout(itemsize: int) -> None:
    shape, lower, upper = (3, 5, 511), (1, 2, 3), (2, 1, 1)
    starts = []
    for index in range(64):
        storage = native.Storage(shape, lower, upper, itemsize, index)
        view, whole = storage.view(), storage.whole()
        assert view.shape == shape
        assert whole.shape == tuple(a + b + c for a, b, c in zip(shape, lower, upper, strict=True))
        assert view.dtype == (np.float64 if itemsize == 8 else np.float32)
        start = view.__array_interface__["data"][0]
        assert start % 64 == 0
        assert view.strides[2] == itemsize
        for stride in view.strides[:2]:
            assert stride % 64 == 0
            assert stride % 4096 != 0
        whole[...] = 7
        view[...] = 1
        assert whole.sum() == view.size + 7 * (whole.size - view.size)
        starts.append(start % 4096)
    assert len(set(starts)) == 64, "equal cells of different fields alias"


def test_storage_rows_of_a_page_are_padded() -> None:
    storage = native.Storage((4, 4, 512), (0, 0, 0), (0, 0, 0), 8, 0)
    assert storage.view().strides == (4 * 4160, 4160, 8)


def test_a_view_keeps_its_storage_alive() -> None:
    view = native.Storage((2, 3, 4), (1, 1, 1), (1, 1, 1), 8, 0).view()
    native.Storage((2, 3, 4), (1, 1, 1), (1, 1, 1), 8, 0).view()[...] = 5
    assert not view.any()
    view[...] = 3
    assert view.sum() == 72


def test_memory_is_allocated_on_first_write() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before = resident()
    storage = native.Storage((512, 512, 512), (1, 1, 1), (1, 1, 1), 8, 0)
    assert storage.bytes > 8 * 512**3
    assert resident() - before < 1 << 24


def test_too_much_memory_is_rejected() -> None:
    with pytest.raises(native.OutOfMemory, match=r"needs \d+ bytes .* only \d+ bytes .* available") as error:
        native.Storage((10**6, 10**6, 10**6), (0, 0, 0), (0, 0, 0), 8, 0)
    assert isinstance(error.value, MemoryError)
    assert 0 < native.available_memory() < 1 << 50


@pytest.mark.parametrize(("shape", "itemsize"), [((0, 1, 1), 8), ((1, -1, 1), 8), ((1, 1, 1), 2)], ids=str)
def test_invalid_storages_are_rejected(shape: tuple[int, int, int], itemsize: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        native.Storage(shape, (0, 0, 0), (0, 0, 0), itemsize, 0)


# ------------------------------------------------------------------------------------------- hash


def mix(x: int) -> int:
    mask = (1 << 64) - 1
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_checksum_agrees_with_its_definition(dtype: type) -> None:
    storage = native.Storage((2, 3, 5), (1, 1, 1), (1, 1, 1), np.dtype(dtype).itemsize, 0)
    values = np.random.default_rng(1).normal(size=(2, 3, 5)).astype(dtype)
    storage.view()[...] = values
    shape, origin = (4, 7, 9), (1, 2, 3)
    unsigned = np.uint64 if dtype is np.float64 else np.uint32
    first = second = 0
    for cell in np.ndindex(2, 3, 5):
        at = [a + b for a, b in zip(cell, origin, strict=True)]
        place = mix(((at[0] * 7 + at[1]) * 9 + at[2] + 1) * 0x9E3779B97F4A7C15 & ((1 << 64) - 1))
        word = mix(place ^ int(values[cell].view(unsigned)))
        first += word
        second += mix((word + place) & ((1 << 64) - 1))
    expected = (first & ((1 << 64) - 1), second & ((1 << 64) - 1))
    assert storage.checksum((0, 0, 0), (2, 3, 5), origin, shape) == expected
    assert storage.checksum((0, 0, 0), (2, 3, 5), origin, shape, threads=2) == expected


def test_checksum_of_parts_adds_up() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4, 6, 8))

    def part(lo: tuple[int, ...], hi: tuple[int, ...]) -> np.ndarray:
        shape = tuple(b - a for a, b in zip(lo, hi, strict=True))
        storage = native.Storage(shape, (1, 0, 2), (0, 1, 1), 8, 3)
        storage.view()[...] = values[tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))]
        return np.array(storage.checksum((0, 0, 0), shape, lo, (4, 6, 8)), np.uint64)

    whole = part((0, 0, 0), (4, 6, 8))
    parts = [part((0, 0, 0), (4, 6, 3)), part((0, 0, 3), (4, 2, 8)), part((0, 2, 3), (4, 6, 8))]
    assert (sum(parts[1:], parts[0]) == whole).all()
    values[1, 2, 3], values[1, 2, 4] = values[1, 2, 4], values[1, 2, 3]
    assert (part((0, 0, 0), (4, 6, 8)) != whole).all()


def test_checksum_distinguishes_zeros_but_not_nans() -> None:
    def of(*values: float) -> tuple[int, int]:
        storage = native.Storage((1, 1, len(values)), (0, 0, 0), (0, 0, 0), 8, 0)
        storage.view()[0, 0] = values
        return storage.checksum((0, 0, 0), (1, 1, len(values)), (0, 0, 0), (1, 1, len(values)))

    odd = np.uint64(0xFFF8000000000123).view(np.float64)
    assert of(math.nan, 1) == of(odd, 1)
    assert of(0.0, 1) != of(-0.0, 1)
    assert of(math.inf, 1) != of(math.nan, 1)


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_first_nonfinite_cell_is_found(itemsize: int, bad: float) -> None:
    storage = native.Storage((3, 4, 70), (1, 1, 1), (1, 1, 1), itemsize, 0)
    storage.whole()[...] = math.nan
    storage.view()[...] = np.finfo(np.float32).max
    box = ((0, 0, 0), (3, 4, 70))
    assert storage.first_nonfinite(*box) is None
    storage.view()[2, 3, 69] = bad
    assert storage.first_nonfinite(*box, threads=2) == (2, 3, 69)
    storage.view()[1, 2, 65] = bad
    storage.view()[1, 3, 0] = bad
    assert storage.first_nonfinite(*box, threads=2) == (1, 2, 65)
    assert storage.first_nonfinite((2, 0, 0), (3, 4, 69)) is None


@pytest.mark.parametrize("itemsize", [4, 8])
def test_any_number_of_threads_computes_the_same_checks(itemsize: int) -> None:
    """Any number of threads computes the same values, in a field that is large enough for several threads."""
    shape = (5, 97, 101)
    storage = native.Storage(shape, (1, 1, 1), (1, 1, 1), itemsize, 0)
    storage.whole()[...] = math.nan
    storage.view()[...] = np.random.default_rng(5).normal(size=shape)
    sums = {storage.checksum((0, 0, 0), shape, (0, 0, 0), shape, threads=n) for n in (1, 2, 3, 4)}
    assert len(sums) == 1
    for cell in ((4, 96, 100), (4, 3, 2), (2, 50, 7), (2, 50, 6), (0, 0, 1)):
        storage.view()[cell] = math.inf
        for threads in (1, 2, 3, 4):
            assert storage.first_nonfinite((0, 0, 0), shape, threads=threads) == cell


# ----------------------------------------------------------------------- sweeps, scalars and loops
# Scalar 0 counts passes and scalar 9 limits them, except in tests that define it differently.


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("backward", [False, True])
def test_every_cell_is_visited_once(kernels: str, threads: int, backward: bool) -> None:
    engine, (storage,), scalars = make(kernels, shape=(5, 19, 33), patch=(2, 3, 7), threads=threads)
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0], backward=backward)
    engine.end()
    scalars[9] = 17
    for run in (1, 2):
        report = engine.run()
        assert report["sweep_counts"] == [17]
        assert (storage.view() == 17 * run).all()
    assert storage.whole().sum() == 34 * storage.view().size, "a kernel ran outside its patches"


def test_loop_ends_by_condition_or_limit(kernels: str) -> None:
    engine, (storage,), scalars = make(kernels)
    engine.scalars("start")
    engine.loop("small", 9, 0, record=[0, 1])
    engine.scalars("halve")
    sweep(engine, "count_visits", [0])
    engine.end()
    scalars[9] = 100
    report = engine.run()
    assert report["reason"] == "completed"
    assert report["loops"] == ["condition"]
    assert engine.progress() == 7
    np.testing.assert_array_equal(report["history"], [(n, 2.0**-n) for n in range(1, 8)])
    assert (storage.view() == 7).all()
    assert 0 < report["loop_seconds"] <= report["seconds"]
    assert report["compute"] <= report["seconds"]
    scalars[9] = 4
    report = engine.run()
    assert report["loops"] == ["limit"]
    assert report["history"].shape == (4, 2)
    scalars[9] = 0
    report = engine.run()
    assert report["history"].shape == (0, 2)
    assert report["sweep_counts"] == [0]


def test_a_paused_run_can_be_continued(kernels: str) -> None:
    engine, (storage,), scalars = make(kernels)
    with pytest.raises(ValueError, match="no run has paused"):
        engine.run(resumed=True)
    with pytest.raises(ValueError, match="-1 passes, expected at least 0"):
        engine.run(passes=-1)
    engine.scalars("start")
    engine.loop("small", 9, 0, record=[0, 1])
    engine.scalars("halve")
    sweep(engine, "count_visits", [0])
    engine.end()
    sweep(engine, "negate", [0])
    scalars[9] = 100
    reports = [engine.run(passes=2), engine.run(passes=3, resumed=True, overlap=False)]
    assert [report["reason"] for report in reports] == ["paused", "paused"]
    assert [report["sweep_counts"] for report in reports] == [[2, 0], [3, 0]]
    assert [report["loops"] for report in reports] == [[None], [None]]
    assert all(report["loop_seconds"] > 0 for report in reports)
    assert engine.progress() == 5
    assert (storage.view() == 5).all()
    # a loop that is over after the same number of passes does not pause
    reports.append(engine.run(passes=2, resumed=True))
    assert reports[-1]["reason"] == "completed"
    assert reports[-1]["loops"] == ["condition"]
    assert (storage.view() == -7).all()
    history = np.concatenate([report["history"] for report in reports])
    np.testing.assert_array_equal(history, [(n, 2.0**-n) for n in range(1, 8)])
    with pytest.raises(ValueError, match="no run has paused"):
        engine.run(resumed=True)
    assert engine.run(passes=4)["reason"] == "paused"
    engine.run()  # from the beginning
    assert (storage.view() == -(-7 + 4 + 7)).all()
    assert engine.progress() == 7


def test_loops_can_be_nested(kernels: str) -> None:
    engine, _, scalars = make(kernels)
    engine.scalars("start")
    engine.loop(None, 3, 2, record=[4])
    engine.loop("third_pass", None, 0, record=[0])
    engine.scalars("add_outer")
    engine.end()
    engine.end()
    engine.loop("never", 5, 6)
    engine.end()
    scalars[3], scalars[5] = 2, 0
    report = engine.run()
    assert report["loops"] == ["limit", "condition", "limit"]
    assert scalars[4] == 0 + 1 + 2 + 100 + 101 + 102
    np.testing.assert_array_equal(report["history"], [[3], [306]])
    assert engine.progress() == 2


def test_stop_ends_the_run_with_its_reason(kernels: str) -> None:
    engine, (storage,), scalars = make(kernels)
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0])
    engine.stop("third_pass", "breakdown: third pass")
    sweep(engine, "negate", [0])
    engine.end()
    sweep(engine, "negate", [0])
    scalars[9] = 100
    report = engine.run()
    assert report["reason"] == "breakdown: third pass"
    assert report["loops"] == [None]
    assert report["sweep_counts"] == [4, 3, 0]
    assert (storage.view() == 0).all()  # 1, -1, 0, 0, 1, -1, 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_reductions_combine_all_patches(kernels: str, threads: int) -> None:
    engine, (storage,), scalars = make(kernels, shape=(3, 20, 30), patch=(1, 3, 5), threads=threads)
    sweep(engine, "reduce", [0], reductions=[(kind, n) for n, kind in enumerate(KINDS)])
    rng = np.random.default_rng(3)
    for _ in range(3):
        values = rng.normal(size=(3, 20, 30)) * 10.0 ** rng.integers(-8, 8, size=(3, 20, 30))
        storage.view()[...] = values
        scalars[8] = rng.integers(values.size)
        engine.run()
        assert scalars[0] == pytest.approx(math.fsum(values.flat), rel=1e-13)
        assert scalars[1:5].tolist() == [
            values.min(),
            values.max(),
            np.count_nonzero(values > 0),
            values.flat[int(scalars[8])],
        ]


def test_swaps_exchange_memory(kernels: str) -> None:
    engine, (a, b), scalars = make(kernels, fields=2, threads=2)
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0], swaps=[(0, 1)])
    engine.end()
    before = a.view()
    scalars[9] = 3
    engine.run()
    assert (a.view() == 1).all()
    assert (b.view() == 2).all()
    assert (before == 2).all(), "a view stays with its memory"
    other = native.Storage((1, 8, 8), (0, 1, 1), (0, 1, 2), 8, 2)
    patches = blocks((1, 8, 8), (1, 8, 8))
    whole = native.Subdomain([a, other], (0, 0, 0), patches, owners(patches, 1))
    wrong = native.Engine(kernels, [whole], scalars, (1, 8, 8), 1, SPINS, None)
    with pytest.raises(ValueError, match="differ"):
        sweep(wrong, "count_visits", [0], swaps=[(0, 1)])


def test_idle_threads_steal_patches(kernels: str) -> None:
    engine, (storage,), _ = make(kernels, shape=(1, 32, 4), patch=(1, 1, 4), threads=2)
    sweep(engine, "uneven", [0])
    engine.run()
    threads, patches = np.unique(storage.view()[0, :, 0], return_counts=True)
    assert len(threads) == 2
    assert patches.max() > 16 + 8, f"patches per thread {patches}: nothing was taken from the slow one"
    assert storage.view()[0, 31, 0] != storage.view()[0, 0, 0]


@pytest.mark.parametrize("threads", [1, 3])
def test_each_thread_has_its_own_scratch_memory(kernels: str, threads: int) -> None:
    engine, (storage,), _ = make(kernels, shape=(1, 64, 4), patch=(1, 1, 4), threads=threads)
    sweep(engine, "use_scratch", [0], scratch_bytes=8192)
    engine.run()
    assert (storage.view() == 1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_fills_of_different_axes_keep_their_order(kernels: str, threads: int) -> None:
    engine, (new, old), _ = make(kernels, shape=(1, 8, 8), fields=2, threads=threads)
    side = native.Fill("ghost_low_2", [1], (0, 0, -1), (1, 8, 0), 2)
    corner = native.Fill("ghost_low_1", [1], (0, -1, -1), (1, 0, 8), 1)
    sweep(engine, "corner_sum", [0, 1], fills=[side, corner])
    old.view()[...] = np.arange(64.0).reshape(1, 8, 8)
    engine.run()
    padded = np.zeros((9, 9))
    padded[1:, 1:] = old.view()[0]
    padded[1:, 0] = 10 * padded[1:, 1] + 1
    padded[0] = 10 * padded[1] + 1
    expected = padded[:-1, :-1] + padded[:-1, 1:] + padded[1:, :-1]
    np.testing.assert_array_equal(new.view()[0], expected)


def test_rims_run_before_the_patches_that_need_them(kernels: str) -> None:
    engine, (new, old), _ = make(kernels, shape=(1, 8, 8), patch=(1, 8, 1), fields=2, threads=2)
    sides = [native.Fill("ghost_low_2", [1], (0, 0, -1), (1, 8, 0), 2)]
    sides += [native.Fill("ghost_low_1", [1], (0, -1, -1), (1, 0, 8), 1)]
    sweep(engine, "corner_sum", [0, 1], rims=sides, needs_rims=np.ones(8, bool))
    engine.run()
    old.view()[...] = 1
    engine.run()
    padded = np.ones((9, 9))
    padded[1:, 0] = 11
    padded[0] = 10 * padded[1] + 1
    np.testing.assert_array_equal(new.view()[0], padded[:-1, :-1] + padded[:-1, 1:] + padded[1:, :-1])


def test_halo_boxes_run_a_separate_kernel(kernels: str) -> None:
    engine, (storage,), _ = make(kernels, shape=(1, 4, 4), threads=2)
    halo = np.array([[0, -1, -1, 1, 0, 5, 0, 0, 0], [0, 4, -1, 1, 5, 5, 0, 0, 0]])
    sweep(engine, "count_visits", [0], halo_kernel="nothing", halo_boxes=halo)
    sweep(engine, "nothing", [0], halo_kernel="count_visits", halo_boxes=halo)
    engine.run()
    expected = np.zeros((1, 6, 6))
    expected[:, 1:5, 1:5] = 1
    expected[:, [0, 5], :] = 1
    np.testing.assert_array_equal(storage.whole(), expected)


def test_an_empty_sweep_takes_less_than_two_microseconds(kernels: str) -> None:
    engine, _, scalars = make(kernels)
    engine.loop(None, 9, 0)
    sweep(engine, "nothing", [0], reductions=[("sum", 1), ("max", 2)])
    engine.end()
    scalars[9] = 200
    seconds = min(engine.run()["loop_seconds"] for _ in range(50)) / scalars[9]
    assert seconds < 2e-6, f"{seconds * 1e6:.2f} us a sweep"


# ---------------------------------------------------------------------------------------- wrong use


def test_missing_libraries_and_functions_are_reported(kernels: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot be loaded: .*none\.so"):
        make(str(tmp_path / "none.so"))
    engine, _, _ = make(kernels)
    for append in (
        lambda: sweep(engine, "misspelt", [0]),
        lambda: engine.scalars("misspelt"),
        lambda: engine.stop("misspelt", "reason"),
        lambda: engine.loop("misspelt", None, 0),
    ):
        with pytest.raises(RuntimeError, match="has no function misspelt"):
            append()


def test_invalid_operations_are_rejected(kernels: str) -> None:
    engine, _, scalars = make(kernels)
    beyond = (0, (0, 0, 0), (0, 0, 2), (1, 8, 8), 0)
    wrong: list[tuple[str, Any]] = [
        ("storage 1", lambda: sweep(engine, "nothing", [1])),
        ("scalar 10", lambda: sweep(engine, "nothing", [0], reductions=[("sum", 10)])),
        ("kind 'mean'", lambda: sweep(engine, "nothing", [0], reductions=[("mean", 0)])),
        ("one entry", lambda: sweep(engine, "nothing", [0], needs=np.zeros(3, np.uint32))),
        ("not received", lambda: sweep(engine, "nothing", [0], needs=np.ones(4, np.uint32))),
        ("one rank", lambda: sweep(engine, "nothing", [0], sends=[native.Message(1, 0, [])])),
        ("method 'post', expected mpi", lambda: native.Message(0, 0, [], method="post")),
        ("0 parts and 1 sources", lambda: native.Message(0, 0, [], [(0, 0, 0)])),
        (
            "not within",
            lambda: sweep(engine, "nothing", [0], copies=[beyond]),
        ),
        ("a loop has neither a condition nor a limit", lambda: engine.loop(None, None, 0)),
        ("without a loop", engine.end),
        ("0 threads", lambda: make(kernels, threads=0)),
    ]
    for words, append in wrong:
        with pytest.raises(ValueError, match=words):
            append()
    engine.loop(None, 9, 0)
    with pytest.raises(ValueError, match="has no end"):
        engine.run()
    engine.end()
    scalars[9] = 1
    assert engine.run()["reason"] == "completed"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_kernel_that_throws_ends_the_run(kernels: str, threads: int) -> None:
    engine, (storage,), scalars = make(kernels, threads=threads)
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0])
    sweep(engine, "throws", [0])
    engine.end()
    scalars[9] = 10
    for run in (1, 2):
        with pytest.raises(RuntimeError, match="kernel says no"):
            engine.run()
        assert (storage.view() == run).all()


def test_flushing_to_zero_is_an_error(kernels: str) -> None:
    engine, _, _ = make(kernels)
    sweep(engine, "nothing", [0])
    library = ctypes.CDLL(kernels)
    library.flush_to_zero(1)
    try:
        with pytest.raises(RuntimeError, match="thread 0 flushes subnormal numbers to zero"):
            engine.run()
        with pytest.raises(RuntimeError, match="subnormal"):
            make(kernels)
    finally:
        library.flush_to_zero(0)
    engine.run()


def test_an_invalid_timeout_is_rejected(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="HALOCLINE_TIMEOUT is soon"):
        make(kernels)


# ----------------------------------------------------------------------------- progress and stopping


def endless(kernels: str, threads: int = 1) -> tuple[Any, Any, np.ndarray]:
    engine, (storage,), scalars = make(kernels, threads=threads)
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0])
    sweep(engine, "slow", [0])
    engine.end()
    scalars[9] = math.inf
    return engine, storage, scalars


@pytest.mark.parametrize("everywhere", [False, True])
def test_another_thread_can_request_a_stop(kernels: str, everywhere: bool) -> None:
    engine, storage, scalars = endless(kernels, threads=2)
    counts = []

    def watch() -> None:
        while engine.progress() < 5:
            time.sleep(0.001)
        counts.append(engine.progress())
        native.request_stop() if everywhere else engine.request_pause()

    watcher = threading.Thread(target=watch)
    watcher.start()
    report = engine.run()
    watcher.join()
    assert report["reason"] == "interrupted"
    assert report["loops"] == [None]
    assert 5 <= counts[0] <= engine.progress() == scalars[0]
    assert (storage.view() == scalars[0]).all(), "the run ended within a pass"
    scalars[9] = 3  # the request has been used
    assert engine.run()["reason"] == "completed"


def nested(kernels: str) -> tuple[Any, Any]:
    """Return an engine with a loop of slow sweeps in a loop; scalars 9 and 8 limit them."""
    engine, _, scalars = make(kernels)
    engine.loop(None, 9, 0)
    engine.loop(None, 8, 1)
    sweep(engine, "slow", [0])
    engine.end()
    engine.end()
    return engine, scalars


def test_a_stop_request_ends_nested_loops(kernels: str) -> None:
    engine, scalars = nested(kernels)
    scalars[8], scalars[9] = math.inf, 3
    timer = threading.Timer(0.1, native.request_stop)
    timer.start()
    report = engine.run()
    assert report["reason"] == "interrupted"
    assert report["loops"] == [None, None]
    assert scalars[1] > 0
    assert scalars[0] == 0
    assert 0 < report["loop_seconds"] <= report["seconds"]


def test_a_pause_comes_between_two_passes_of_the_outermost_loop(kernels: str) -> None:
    engine, scalars = nested(kernels)
    scalars[8], scalars[9] = 5, math.inf
    timer = threading.Timer(0.1, engine.request_pause)
    timer.start()
    report = engine.run()
    assert report["reason"] == "interrupted"
    assert report["stopped"]
    assert not report["stopped_process"]
    assert report["loops"] == [None, "limit"]
    assert scalars[0] >= 1
    assert scalars[1] == 5


def test_signals_are_recorded(kernels: str) -> None:
    engine, _, scalars = endless(kernels)
    scalars[9] = 3
    before = signal.getsignal(signal.SIGUSR1)
    native.note_signals([signal.SIGUSR1])
    try:
        assert native.noted_signal() == 0
        for _ in range(2):  # a second one does not end the process
            os.kill(os.getpid(), signal.SIGUSR1)
        assert native.noted_signal() == signal.SIGUSR1
        assert engine.run()["reason"] == "completed"
    finally:
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)
    native.forget_signal()
    assert native.noted_signal() == 0


def test_signals_stop_a_run(kernels: str) -> None:
    engine, _, scalars = endless(kernels)
    before = signal.getsignal(signal.SIGUSR1)
    native.stop_on_signals([signal.SIGUSR1])
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        assert engine.run()["reason"] == "interrupted"
    finally:
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)
    native.request_stop()
    assert native.forget_stop()
    assert not native.forget_stop()
    scalars[9] = 3
    assert engine.run()["reason"] == "completed"


@pytest.mark.parametrize("loop", [False, True])
def test_a_stop_request_is_reported_by_a_completed_run(kernels: str, loop: bool) -> None:
    engine, _, _ = make(kernels)
    if loop:
        engine.loop(None, 9, 0)  # a loop without passes ends before the request to stop is read
        engine.end()
    sweep(engine, "nothing", [0])
    assert not engine.run()["stopped"]
    for ask in (engine.request_pause, native.request_stop):
        ask()
        report = engine.run()
        assert report["stopped"]
        assert report["reason"] == "completed"
        assert not engine.run()["stopped"], "the request is spent"
        assert not native.forget_stop()


def test_a_stop_within_a_loop_keeps_the_time_of_the_loop(kernels: str) -> None:
    engine, _, scalars = make(kernels)
    engine.loop(None, 9, 0)
    sweep(engine, "slow", [0])
    engine.stop("third_pass", "enough")
    engine.end()
    scalars[9] = 100
    report = engine.run()
    assert report["reason"] == "enough"
    # four sweeps of four patches, 2 ms each
    assert 0.03 < report["loop_seconds"] <= report["seconds"]


def test_owners_of_patches_must_be_threads(kernels: str) -> None:
    patches = blocks((1, 8, 8), (1, 4, 4))
    storage = native.Storage((1, 8, 8), (0, 1, 1), (0, 1, 1), 8)
    for wrong, words in (
        (np.zeros(3, np.int32), "3 owners for 4 patches"),
        (np.array([0, 1, 2, 0], np.int32), "a patch of thread 2, expected 0 to 1"),
    ):
        whole = native.Subdomain([storage], (0, 0, 0), patches, wrong)
        with pytest.raises(ValueError, match=words):
            native.Engine(kernels, [whole], np.zeros(10), (1, 8, 8), 2, SPINS, None)


def test_one_run_at_a_time(kernels: str) -> None:
    engine, _, _ = endless(kernels)
    runner = threading.Thread(target=engine.run)
    runner.start()
    while engine.progress() < 1:
        time.sleep(0.001)
    with pytest.raises(RuntimeError, match="running already"):
        engine.run()
    engine.request_pause()
    runner.join()


# -------------------------------------------------------------------------------------------- ranks


def cuts(n: int, parts: int) -> list[tuple[int, int]]:
    """Return ranges of about equal, but not equal, length."""
    at = [n * p // parts + (0 < p < parts and p % 2) for p in range(parts + 1)]
    return list(itertools.pairwise(at))


class Torus:
    """A periodic grid with one box per rank, and the messages that fill the whole halo."""

    def __init__(self, shape: tuple[int, ...], dims: tuple[int, ...], rank: int) -> None:
        self.shape, self.dims, self.rank = shape, dims, rank
        self.place = np.unravel_index(rank, dims)
        ranges = [cuts(n, d)[p] for n, d, p in zip(shape, dims, self.place, strict=True)]
        self.lo, self.hi = (tuple(r[side] for r in ranges) for side in (0, 1))
        self.local = tuple(b - a for a, b in ranges)

    def engine(
        self, kernels: str, storages: list[Any], scalars: Any, threads: int, patches: np.ndarray, comm: Any
    ) -> Any:
        """Return the engine of this rank."""
        subdomain = native.Subdomain(storages, self.lo, patches, owners(patches, threads))
        return native.Engine(kernels, [subdomain], scalars, self.shape, threads, SPINS, comm.py2f())

    def box(self, direction: tuple[int, ...], halo: int, *, inner: bool) -> tuple[list[int], list[int]]:
        """Return the bounds of the cells at one side, edge or corner: inner cells, or the halo beyond."""
        lo, hi = [], []
        for d, n in zip(direction, self.local, strict=True):
            beyond = {-1: (-halo, 0), 0: (0, n), 1: (n, n + halo)}
            within = {-1: (0, halo), 0: (0, n), 1: (n - halo, n)}
            a, b = (within if inner else beyond)[d]
            lo.append(a)
            hi.append(b)
        return lo, hi

    def peer(self, direction: tuple[int, ...]) -> int:
        at = [(p + d) % n for p, d, n in zip(self.place, direction, self.dims, strict=True)]
        return int(np.ravel_multi_index(at, self.dims))

    def exchange(self, fields: list[int], halo: int, patches: np.ndarray) -> dict[str, Any]:
        """Return arguments of `sweep` that fill the whole halo from neighbours or from the other side."""
        axes = [(0,) if n == 1 else (-1, 0, 1) for n in self.shape]
        directions = [d for d in itertools.product(*axes) if any(d)]
        sends, receives, copies = [], [], []
        needs = np.zeros(len(patches), np.uint32)
        for tag, d in enumerate(directions):
            back = tuple(-x for x in d)
            within, beyond = self.box(d, halo, inner=True), self.box(back, halo, inner=False)
            size = [b - a for a, b in zip(*within, strict=True)]
            if self.peer(d) != self.rank:
                sends.append(native.Message(self.peer(d), tag, [(f, *within) for f in fields]))
            else:
                copies += [(f, within[0], beyond[0], size, 0) for f in fields]
            if self.peer(back) != self.rank:
                reads_halo = np.ones(len(patches), bool)
                for axis, x in enumerate(d):
                    if x > 0:
                        reads_halo &= patches[:, axis] < halo
                    elif x < 0:
                        reads_halo &= patches[:, 3 + axis] > self.local[axis] - halo
                needs |= reads_halo.astype(np.uint32) << len(receives)
                receives.append(native.Message(self.peer(back), tag, [(f, *beyond) for f in fields]))
        return {"sends": sends, "receives": receives, "copies": copies, "needs": needs}


def world() -> Any:
    return initialised_mpi().COMM_WORLD


DIMS = {1: [(1, 1, 1)], 2: [(1, 1, 2), (1, 2, 1), (2, 1, 1)], 4: [(1, 2, 2), (4, 1, 1), (2, 1, 2), (1, 1, 4)]}


@pytest.mark.ranks(1, 2, 4, long=(1, 2))
def test_halos_have_the_cells_of_neighbours(kernels: str) -> None:
    comm = world()
    shapes = [(9, 13, 17), (1, 20, 24)]
    for threads, dims, shape, halo in some(itertools.product((1, 2), DIMS[comm.size], shapes, (1, 2))):
        if any(n // d < halo + 1 and d > 1 for n, d in zip(shape, dims, strict=True)):
            continue
        torus = Torus(shape, dims, comm.rank)
        layers = tuple(0 if n == 1 else halo for n in shape)
        storages = [native.Storage(torus.local, layers, layers, size, n) for n, size in enumerate((8, 4))]
        patches = blocks(torus.local, (3, 4, 5))
        scalars = np.zeros(10)
        engine = torus.engine(kernels, storages, scalars, threads, patches, comm)
        sweep(engine, "number_cells", [0, 1])
        sweep(engine, "nothing", [0, 1], **torus.exchange([0, 1], halo, patches))
        for _ in range(2):
            for storage in storages:
                storage.whole()[...] = -1
            engine.run()
            ranges = [
                np.arange(a - h, b + h) % n
                for a, b, h, n in zip(torus.lo, torus.hi, layers, shape, strict=True)
            ]
            numbers = np.arange(math.prod(shape)).reshape(shape)[np.ix_(*ranges)]
            np.testing.assert_array_equal(storages[0].whole(), 1 + numbers)
            np.testing.assert_array_equal(storages[1].whole(), 1 + numbers % 65521)


def shifted(values: np.ndarray) -> np.ndarray:
    result = np.zeros_like(values)
    for offset, weight in WEIGHTS.items():
        if values.shape[0] > 1 or offset[0] == 0:
            result += weight * np.roll(values, [-o for o in offset], (0, 1, 2))
    return result % MODULUS


@pytest.mark.ranks(1, 2, 4, long=(1, 2))
def test_many_steps_agree_with_one_array(kernels: str) -> None:
    for shape in ((1, 24, 30), (8, 9, 21)):
        many_steps(kernels, shape)


def many_steps(kernels: str, shape: tuple[int, int, int]) -> None:
    comm = world()
    steps = 50
    values = np.random.default_rng(5).integers(0, MODULUS, size=shape).astype(float)
    expected, sums = values, []
    for _ in range(steps):
        expected = shifted(expected)
        sums.append(expected.sum())
    for threads, dims in itertools.product((1, 2), DIMS[comm.size]):
        if shape[0] < dims[0]:
            continue
        torus = Torus(shape, dims, comm.rank)
        layers = tuple(0 if n == 1 else 1 for n in shape)
        storages = [native.Storage(torus.local, layers, layers, 8, n) for n in range(2)]
        box = tuple(slice(a, b) for a, b in zip(torus.lo, torus.hi, strict=True))
        storages[1].view()[...] = values[box]
        patches = blocks(torus.local, (2, 3, 8))
        scalars = np.zeros(10)
        engine = torus.engine(kernels, storages, scalars, threads, patches, comm)
        engine.loop(None, 9, 0, record=[1])
        sweep(
            engine,
            "shift",
            [0, 1],
            reductions=[("sum", 1)],
            swaps=[(0, 1)],
            **torus.exchange([1], 1, patches),
        )
        engine.end()
        scalars[9] = steps
        report = engine.run()
        np.testing.assert_array_equal(report["history"], np.array(sums)[:, None])
        np.testing.assert_array_equal(storages[1].view(), expected[box])
        parts = comm.allgather(storages[1].checksum((0, 0, 0), torus.local, torus.lo, shape))
        whole = native.Storage(shape, (0, 0, 0), (0, 0, 0), 8, 0)
        whole.view()[...] = expected
        mask = (1 << 64) - 1
        assert tuple(sum(words) & mask for words in zip(*parts, strict=True)) == whole.checksum(
            (0, 0, 0), shape, (0, 0, 0), shape
        )


@pytest.mark.ranks(2, 4, long=(2,))
def test_ranks_stop_at_the_same_pass(kernels: str) -> None:
    for with_reduction in (False, True):
        stop_each(kernels, with_reduction)


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
def test_ranks_agree_on_a_stop_request_of_one_rank(kernels: str) -> None:
    comm = world()
    storage = native.Storage((1, 4, 4), (0, 0, 0), (0, 0, 0), 8, 0)
    shape, patches = (1, 4 * comm.size, 4), blocks((1, 4, 4), (1, 2, 2))
    subdomain = native.Subdomain([storage], (0, 4 * comm.rank, 0), patches, owners(patches, 1))
    engine = native.Engine(kernels, [subdomain], np.zeros(10), shape, 1, SPINS, comm.py2f())
    sweep(engine, "count_visits", [0])
    for stopper in range(comm.size):
        if comm.rank == stopper:
            engine.request_pause()
        assert engine.run()["stopped"]
        assert not engine.run()["stopped"]
    assert (storage.view() == 2 * comm.size).all()


def stop_each(kernels: str, with_reduction: bool) -> None:
    comm = world()
    storage = native.Storage((1, 4, 4), (0, 0, 0), (0, 0, 0), 8, 0)
    scalars = np.zeros(10)
    shape = (1, 4 * comm.size, 4)
    patches = blocks((1, 4, 4), (1, 2, 2))
    subdomain = native.Subdomain([storage], (0, 4 * comm.rank, 0), patches, owners(patches, 1))
    engine = native.Engine(kernels, [subdomain], scalars, shape, 1, SPINS, comm.py2f())
    engine.loop(None, 9, 0)
    sweep(engine, "count_visits", [0])
    if with_reduction:
        sweep(engine, "reduce", [0], reductions=[(kind, n + 1) for n, kind in enumerate(KINDS)])
    engine.end()
    for stopper in range(comm.size):
        scalars[9] = math.inf
        timer = threading.Timer(0.05, engine.request_pause)
        if comm.rank == stopper:
            timer.start()
        report = engine.run()
        assert report["reason"] == "interrupted"
        passes = comm.allgather(scalars[0])
        assert len(set(passes)) == 1, passes
        assert passes[0] > 0
    scalars[9] = 100
    assert engine.run()["reason"] == "completed"
    if with_reduction:
        visits = storage.view()[0, 0, 0]
        assert (storage.view() == visits).all()
        assert scalars[1] == visits * 16 * comm.size
        assert scalars[4] == 16 * comm.size


def test_one_rank_makes_no_mpi_call(kernels: str) -> None:
    """A serial run does not load an MPI library."""
    engine, _, scalars = make(kernels, threads=2)
    engine.loop(None, 9, 0)
    sweep(engine, "reduce", [0], reductions=[(kind, n + 1) for n, kind in enumerate(KINDS)])
    engine.end()
    scalars[9] = 5
    engine.run()
    assert native.mpi_library() == "" or "mpi4py.MPI" in sys.modules


# ----------------------------------------------------------------------------------------- failures


def launch(script: str, ranks: int, library: Path | None = None, **environment: str) -> tuple[int, str]:
    """Run a script on ranks of an MPI library and return the exit status and the output."""
    from halocline.run.ranks.launch import mpiexec

    prelude = f"import sys; sys.path[:0] = {PATHS!r}; from test_engine import *\n"
    command = [str(mpiexec(library)), "-n", str(ranks), sys.executable, "-c", prelude + script]
    done = subprocess.run(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG,
        check=False,
    )
    return done.returncode, done.stdout


RING = """
comm = world()
shape = (1, 8 * comm.size, 8)
torus = Torus(shape, (1, comm.size, 1), comm.rank)
storages = [native.Storage(torus.local, (0, 1, 1), (0, 1, 1), 8, n) for n in range(2)]
patches = blocks(torus.local, (1, 2, 8))
scalars = np.zeros(10)
scalars[9] = math.inf
engine = torus.engine(library(), storages, scalars, {threads}, patches, comm)
exchange = torus.exchange([1], 1, patches)
"""


def test_a_crashing_kernel_ends_all_ranks(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=1)
        + """
engine.loop(None, 9, 0)
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], swaps=[(0, 1)], **exchange)
sweep(engine, "kill_rank", [0])
engine.end()
engine.run()
print("went on")
""",
        2,
    )
    assert status != 0
    assert "went on" not in output
    assert "in vain" not in output  # the test reports the death, not the silence after it


def test_a_killed_rank_ends_all_ranks(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=2)
        + """
engine.loop(None, 9, 0)
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], swaps=[(0, 1)], **exchange)
engine.end()
def kill():
    while engine.progress() < 20:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
if comm.rank == 1:
    threading.Thread(target=kill, daemon=True).start()
engine.run()
print("went on")
""",
        3,
    )
    assert status != 0
    assert "went on" not in output
    assert "in vain" not in output  # the test reports the death, not the silence after it


def test_a_failing_kernel_names_its_rank(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=2)
        + """
engine.loop(None, 9, 0)
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], swaps=[(0, 1)], **exchange)
sweep(engine, "throws" if comm.rank == 1 else "nothing", [0])
engine.end()
engine.run()
""",
        2,
    )
    assert status != 0
    assert "halocline: rank 1: kernel says no" in output


def test_a_missing_message_is_reported(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=2)
        + """
if comm.rank == 1:
    exchange["sends"] = [m for n, m in enumerate(exchange["sends"]) if n != 2]
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], **exchange)
engine.run()
""",
        2,
        HALOCLINE_TIMEOUT="1",
    )
    assert status != 0
    assert re.search(r"halocline: rank 0: waited 1 s in vain for message \d from rank 1", output), output
    assert "while all ranks wait: a message was lost; rank 0 waits for message" in output
    assert "; rank 1 waits for " in output


def test_a_missing_reduction_is_reported(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=1)
        + """
sweep(engine, "reduce", [0], reductions=[(kind, n + 1) for n, kind in enumerate(KINDS)])
if comm.rank == 1:
    engine.scalars("sleep_long")
    sweep(engine, "reduce", [0], reductions=[(kind, n + 1) for n, kind in enumerate(KINDS)])
else:
    sweep(engine, "reduce", [0], reductions=[(kind, n + 1) for n, kind in enumerate(KINDS)])
engine.run()
""",
        2,
        HALOCLINE_TIMEOUT="1",
    )
    assert status != 0
    assert "halocline: rank 0: waited 1 s in vain for a reduction over all ranks, since rank 1 does" in output


def test_different_plans_are_detected(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=1)
        + """
message = native.Message(1 - comm.rank, 5, [(1, (0, 0, 0), (1, 1, 5 + comm.rank))])
back = native.Message(1 - comm.rank, 5, [(1, (0, 0, 0), (1, 1, 5 + comm.rank))])
sweep(engine, "nothing", [0], sends=[message], receives=[back])
engine.run()
""",
        2,
    )
    assert status != 0
    assert "halocline: rank" in output
    assert re.search("40 bytes, expected 48: the ranks have different plans|MPI_Testsome failed", output)


FIFTY = """
values = np.random.default_rng(5).integers(0, MODULUS, size=shape).astype(float)
mine = tuple(slice(a, b) for a, b in zip(torus.lo, torus.hi, strict=True))
storages[1].view()[...] = values[mine]
engine.loop(None, 9, 0)
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], swaps=[(0, 1)], **exchange)
engine.end()
scalars[9] = 50
engine.run()
for _ in range(50):
    values = shifted(values)
assert (storages[1].view() == values[mine]).all()
assert scalars[1] == values.sum()
print("good")
"""


@pytest.mark.parametrize("level", ["funneled", "serialized"])
def test_lower_thread_levels_of_mpi_suffice(kernels: str, level: str) -> None:
    status, output = launch(
        f"""
import mpi4py
mpi4py.rc.thread_level = {level!r}
from mpi4py import MPI
assert MPI.Query_thread() == MPI.THREAD_{level.upper()}
"""
        + RING.format(threads=2)
        + FIFTY,
        2,
    )
    assert status == 0, output
    assert output.count("good") == 2


def test_a_library_with_the_abi_of_the_standard_gives_the_same_values(kernels: str) -> None:
    (library,) = (str(f.locate()) for f in metadata.files("mpich") or [] if f.name == "libmpi_abi.so.1")
    code = f"""
from standard_mpi import World
standard = World({library!r})
world = lambda: standard
assert standard.size == 2
assert native.has_mailboxes(standard.py2f())
"""
    code += RING.format(threads=2) + FIFTY + "standard.finalize()\n"
    status, output = launch(code, 2, packaged_library())
    assert status == 0, output
    assert output.count("good") == 2


MIXED = """
if comm.rank == 1:
    sweep(engine, "nothing", [0])
engine.loop(None, 9, 0)
sweep(engine, "shift", [0, 1], reductions=[("sum", 1)], swaps=[(0, 1)], **exchange)
engine.end()
scalars[9] = 3
engine.run()
print("went on")
"""


def test_message_checks_detect_messages_of_other_sweeps(kernels: str) -> None:
    """Messages of equal length that belong to other sweeps are detected by the check alone."""
    status, output = launch(RING.format(threads=1) + MIXED, 2)
    assert status == 0, output
    status, output = launch(RING.format(threads=1) + MIXED, 2, HALOCLINE_CHECK="1")
    assert status != 0
    assert "went on" not in output
    assert "Received: sweep" in output
    assert "a message is not the expected one" in output


def test_invalid_messages_are_rejected(kernels: str) -> None:
    status, output = launch(
        RING.format(threads=1)
        + """
def wrong(words, **messages):
    with pytest.raises(ValueError, match=words):
        sweep(engine, "nothing", [0], **messages)
part = (0, (0, 0, 0), (1, 1, 1))
wrong("expected a peer below 2", sends=[native.Message(2, 0, [part])])
wrong("expected a tag of at most", sends=[native.Message(1, 2**31 - 1, [part])])
wrong("not within storage 0", receives=[native.Message(1, 0, [(0, (0, 0, 0), (1, 1, 10))])])
wrong("not within storage 7", receives=[native.Message(1, 0, [(7, (0, 0, 0), (1, 1, 1))])])
wrong("at most 32", receives=[native.Message(1, n, [part]) for n in range(33)])
wrong("at most 64", sends=[native.Message(1, n, [part]) for n in range(65)])
print("good")
""",
        2,
    )
    assert status == 0, output
    assert output.count("good") == 2
