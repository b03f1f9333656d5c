"""Random numbers and tables of generated code, compared with NumPy; identical bits on any ranks and devices.

The reference is written from the paper: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1,
2, 3, SC11, 2011. Its known answers are those published with Random123.
"""

from __future__ import annotations

import ctypes
import math
import platform
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import halocline as hc
from elementary_functions import FEATURES, INCLUDE, STRICT, builds
from halocline.compile import nvrtc
from halocline.compile.compiler import compile_program
from halocline.compile.passes.contract import count_flops
from halocline.compile.passes.inline import cost
from halocline.compile.strategy import Strategy
from halocline.errors import InputError
from halocline.lang.program import Program
from halocline.lang.trace import tracing
from halocline.words import short_repr
from hang import HANG
from kernels import kernel_of, results
from loops import some
from suites import cases

U32, U64 = np.uint32, np.uint64
Array = NDArray[np.float64]

# Counter, key, result.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> NDArray[U32]:
    return np.array([int(word, 16) for word in text.split()], U32)


def philox(counter: NDArray[U32], key: NDArray[U32]) -> NDArray[U32]:
    """Return ten rounds of Philox, for rows of four and two words."""
    c, k = counter.copy(), key.copy()
    for _ in range(10):
        left, right = c[:, 0].astype(U64) * U64(0xD2511F53), c[:, 2].astype(U64) * U64(0xCD9E8D57)
        high, low = (
            [(p >> U64(32)).astype(U32) for p in (left, right)],
            [p.astype(U32) for p in (left, right)],
        )
        c = np.stack([high[1] ^ c[:, 1] ^ k[:, 0], low[1], high[0] ^ c[:, 3] ^ k[:, 1], low[0]], axis=1)
        k = k + np.array([0x9E3779B9, 0xBB67AE85], U32)
    return c


def halves(numbers: Any) -> NDArray[U32]:
    """Return the low and high words of whole numbers, by row."""
    whole = np.asarray(numbers).astype(U64)
    return np.stack([whole.astype(U32), (whole >> U64(32)).astype(U32)], axis=-1)


def reference(seed: Any, step: Any, index: Any) -> Array:
    """Return the numbers that hc.random must return."""
    seed, step, index = np.broadcast_arrays(seed, step, index)
    counter = np.concatenate([halves(index), halves(step)], axis=-1).reshape(-1, 4)
    bits = philox(counter, halves(seed).reshape(-1, 2)).astype(U64)
    return (((bits[:, 1] << U64(32) | bits[:, 0]) >> U64(11)) * 2.0**-53).reshape(index.shape)


def test_the_reference_reproduces_published_values() -> None:
    for counter, key, result in KNOWN:
        assert np.array_equal(philox(words(counter)[None], words(key)[None])[0], words(result))


# ---- the header ------------------------------------------------------------------------------

DRIVER = """
#include "halocline/random.hpp"
#include "halocline/lookup.hpp"
#ifdef __cplusplus
#define EXPORT extern "C"
#else
#define EXPORT
#endif
EXPORT void loop_words(long n, const uint32_t* c, const uint32_t* k, uint32_t* out) {
  for (long i = 0; i < n; ++i) {
    hc_philox_words w = {c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3]};
    w = hc_philox(w, k[2 * i], k[2 * i + 1]);
    out[4 * i] = (uint32_t)w.word0;
    out[4 * i + 1] = (uint32_t)w.word1;
    out[4 * i + 2] = (uint32_t)w.word2;
    out[4 * i + 3] = (uint32_t)w.word3;
  }
}
EXPORT void loop_random(long n, const double* s, const double* t, const double* x, double* __restrict y) {
  _Pragma("omp simd") for (long i = 0; i < n; ++i) y[i] = hc_random(s[i], t[i], x[i]);  // vector code
}
EXPORT void loop_entry(long n, const double* x, int32_t count, double* __restrict y) {
  _Pragma("omp simd") for (long i = 0; i < n; ++i) y[i] = hc_entry(x[i], count);  // vector code
}
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[ctypes.CDLL, str]]:
    """Return the loops from every build, with the messages of the compiler."""
    folder = tmp_path_factory.mktemp("random")
    (folder / "driver.cpp").write_text(DRIVER)

    def build(name: str, command: list[str]) -> tuple[ctypes.CDLL, str]:
        path = folder / f"{name.replace(' ', '_')}.so"
        options = [*STRICT, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-o", str(path)]
        process = subprocess.run(
            [*command, *options, str(folder / "driver.cpp")], capture_output=True, text=True, timeout=HANG
        )
        assert process.returncode == 0, f"{name}: {process.stderr}"
        return ctypes.CDLL(str(path)), process.stderr

    with ThreadPoolExecutor(2) as pool:
        pending = {name: pool.submit(build, name, command) for name, command in builds()}
    return {name: future.result() for name, future in pending.items()}


def call(function: Any, n: int, *arguments: Any) -> None:
    pointers = (a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in arguments)
    function(ctypes.c_long(n), *pointers)


def test_every_build_reproduces_published_values(libraries: dict[str, tuple[ctypes.CDLL, str]]) -> None:
    random = np.random.default_rng(1)
    counters = np.concatenate([[words(c) for c, _, _ in KNOWN], random.integers(0, 2**32, (5000, 4), U32)])
    keys = np.concatenate([[words(k) for _, k, _ in KNOWN], random.integers(0, 2**32, (5000, 2), U32)])
    expected = philox(counters, keys)
    for library, _ in some(libraries.values()):
        output = np.zeros_like(counters)
        call(library.loop_words, len(output), counters, keys, output)
        assert np.array_equal(output[: len(KNOWN)], [words(r) for _, _, r in KNOWN])
        assert np.array_equal(output, expected)


EDGES = [0.0, -0.0, 1.0, 2.0**32 - 1, 2.0**32, 2.0**52 - 1, 2.0**52, 2.0**52 + 1, 2.0**53 - 1]
NOT_WHOLE = [-1.0, 0.5, 2.0**52 - 0.5, 2.0**53, 1e300, math.inf, -math.inf, math.nan, -5e-324, -(2.0**52)]


def test_every_build_gives_the_same_numbers(libraries: dict[str, tuple[ctypes.CDLL, str]]) -> None:
    random = np.random.default_rng(2)
    some = np.concatenate([EDGES, random.integers(0, 2**53, 30), random.integers(0, 1000, 30)])
    s, t, x = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(some, some[::3], some[::-1]))
    wrong = np.array(NOT_WHOLE)
    bad, fine = np.tile(wrong, 3), np.full(3 * wrong.size, 7.0)
    expected = np.concatenate([reference(s, t, x), np.full(bad.size, np.nan)])
    argument_number = np.arange(bad.size) // wrong.size
    s, t, x = (
        np.concatenate([a, np.where(argument_number == n, bad, fine)]) for n, a in enumerate((s, t, x))
    )
    for library, _ in libraries.values():
        output = np.zeros_like(x)
        call(library.loop_random, x.size, s, t, x, output)
        assert np.array_equal(output.view(U64), expected.view(U64))
    assert reference(0, 0, 0) == (0xE169C58D6627E8D5 >> 11) * 2.0**-53


def entry(index: float, count: int) -> int:
    """Return the entry that lookup must choose."""
    if index != index or index >= count:
        return count - 1
    return math.trunc(max(index, 0.0))


INDICES = [
    0.0,
    -0.0,
    -0.5,
    0.99,
    1.0,
    1.5,
    2.0,
    2.999,
    3.0,
    -7.0,
    1e300,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
]


@pytest.mark.parametrize("count", [1, 2, 3, 8192])
def test_lookups_select_table_entries(libraries: dict[str, tuple[ctypes.CDLL, str]], count: int) -> None:
    x = np.concatenate([INDICES, np.random.default_rng(3).uniform(-2, count + 2, 100)])
    for library, _ in some(libraries.values()):
        output = np.zeros_like(x)
        call(library.loop_entry, x.size, x, ctypes.c_int32(count), output)
        assert output.tolist() == [entry(float(i), count) for i in x]


def test_loops_become_vector_code(libraries: dict[str, tuple[ctypes.CDLL, str]]) -> None:
    lines = [n for n, line in enumerate(DRIVER.splitlines(), 1) if line.endswith("// vector code")]
    assert len(lines) == 2
    if platform.machine() == "x86_64":
        vector_builds = {"vector": (" avx2 ", 32), "wide": (" avx512f ", 64)}
    else:
        vector_builds = {"vector": ("", 16)}
    for build, (feature, width) in vector_builds.items():
        if feature in FEATURES:
            vectorized_lines = re.findall(
                rf"driver\.cpp:(\d+):.*loop vectorized using {width} byte", libraries[build][1]
            )
            assert set(lines) <= set(map(int, vectorized_lines)), build


# ---- fields and scalars ----------------------------------------------------------------------

VALUES = (0.1, -2.5, 1e-30, 7.0, -0.0)
SEED = 2**40 + 3


def drawn(dtype: str, shape: tuple[int, ...], periodic: bool, **options: Any) -> dict[str, Any]:
    """Return random numbers by cell and step: in fields, in stages with reads of neighbours, in scalars."""
    grid = hc.Grid(shape, periodic=periodic)
    for name in "uv":
        grid.field(name, dtype=dtype)
    grid.field("w", location="node")
    one, back = (1,) * grid.ndim, (-1,) * grid.ndim

    def program(u: Any, v: Any, w: Any, seed: Any, step: Any) -> None:
        noise = hc.stage(hc.random(seed, step, grid.cell_number()), "noise", storage="patch")
        u.set(noise)
        v.set(noise[one] - u[back] if periodic else hc.lookup(VALUES, 7 * noise - 1))
        w.set(hc.random(seed + 1, step, grid.cell_number(w.staggered)))
        hc.scalar("total").set(hc.sum(hc.maximum(w, 0.25)))
        hc.scalar("pick").set(hc.random(seed, step + 1))
        hc.scalar("chosen").set(hc.lookup(VALUES, len(VALUES) * hc.random(seed, step + 1)))

    sim = hc.Simulation(grid, hc.program(program), parameters={"seed": SEED}, **options)
    sim.run(steps=2)
    fields: dict[str, Any] = {name: sim.gather(name) for name in "uvw"}
    return fields | {name: sim.values[name] for name in ("total", "pick", "chosen")}


def expected(dtype: str, shape: tuple[int, ...], periodic: bool) -> dict[str, Any]:
    """Return the results of the second of two steps in NumPy."""
    noise = reference(SEED, 1, np.arange(math.prod(shape))).reshape(shape)
    points = shape if periodic else tuple(n + 1 for n in shape)
    pick = float(reference(SEED, 2, 0))
    if periodic:
        axes = tuple(range(len(shape)))
        ahead, behind = (np.roll(noise.astype(dtype), (by,) * len(shape), axes) for by in (-1, 1))
        other = ahead - behind
    else:
        # the kernel rounds once here, by a multiply-add; none of the values is so close to a whole number
        other = np.array([VALUES[entry(float(7 * x - 1), len(VALUES))] for x in noise.ravel()]).reshape(shape)
    nodes = reference(SEED + 1, 1, np.arange(math.prod(points))).reshape(points)
    return {
        "u": noise.astype(dtype),
        "v": other.astype(dtype),
        "w": nodes,
        "total": math.fsum(np.maximum(nodes, 0.25).ravel()),
        "pick": pick,
        "chosen": VALUES[int(pick * len(VALUES))],
    }


def assert_drawn(dtype: str, shape: tuple[int, ...], periodic: bool, **options: Any) -> None:
    from mpi4py import MPI

    computed, exact = drawn(dtype, shape, periodic, **options), expected(dtype, shape, periodic)
    for name, value in exact.items():
        if MPI.COMM_WORLD.rank == 0 or not isinstance(value, np.ndarray):
            assert np.array_equal(computed[name], value), name
            assert np.asarray(computed[name]).dtype == np.asarray(value).dtype


WAYS: list[dict[str, Any]] = [
    {},
    {"threads": 2, "patch": 3, "decomposition": "1d-y"},
    {"subdomains_per_rank": 3, "methods": "self,mpi", "decomposition": "1d-x"},
]


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.ranks(1, 2, long=(1,))
def test_numbers_agree_with_numpy_on_any_ranks(periodic: bool) -> None:
    for options in WAYS:
        assert_drawn("float64", (11, 21), periodic, **options)


@pytest.mark.parametrize(("shape", "dtype"), [((37,), "float64"), ((5, 6, 19), "float32")])
def test_numbers_agree_with_numpy_in_one_and_three_dimensions(shape: tuple[int, ...], dtype: str) -> None:
    assert_drawn(dtype, shape, True)
    assert_drawn(dtype, shape, False)


@cases(
    "dtype, shape, periodic, device",
    [
        ("float64", (11, 21), True, "opencl:0"),
        ("float64", (11, 21), True, "opencl:0,1"),
        ("float64", (11, 21), False, "opencl:0"),
        ("float64", (11, 21), False, "opencl:0,1"),
        ("float32", (4, 5, 19), True, "opencl:0"),
    ],
    default=[("float64", (11, 21), True, "opencl:0,1")],
)
def test_devices_give_the_same_bits(
    opencl: Any, dtype: str, shape: tuple[int, ...], periodic: bool, device: str
) -> None:
    assert_drawn(dtype, shape, periodic, device=device)


def test_indices_that_are_no_integers_give_nan(opencl: Any) -> None:
    for options in ({}, {"device": "opencl:0"}):
        grid = hc.Grid(len(NOT_WHOLE) + len(EDGES))
        u, v = grid.field("u"), grid.field("v")
        sim = hc.Simulation(grid, hc.program(lambda u, v: v.set(hc.random(3, 4, u))), **options)
        x = np.array(NOT_WHOLE + EDGES)
        x[~np.isfinite(x)] = 1.5  # assigned fields are finite
        sim[u] = x
        with pytest.raises(hc.RunError, match="field 'v'"):
            sim.run()
        whole = (x >= 0) & (x < 2.0**53) & (x == np.floor(x))
        exact = np.where(whole, reference(3, 4, np.where(whole, x, 0)), np.nan)
        assert np.array_equal(np.asarray(sim[v]), exact, equal_nan=True)


def test_tables_are_indexed_by_fields(opencl: Any) -> None:
    x = np.array([i for i in INDICES if math.isfinite(i)])
    for dtype in ("float64", "float32"):
        for options in ({}, {"device": "opencl:0"}):
            grid = hc.Grid(x.size)
            u, v = grid.field("u"), grid.field("v", dtype=dtype)
            grid.field("w", dtype="float32")
            # the root is NaN if u is an odd number

            def program(u: Any, v: Any, w: Any) -> None:
                v.set(hc.lookup(VALUES[:3], u))
                w.set(hc.lookup(np.array(VALUES), hc.sqrt(-abs(u) - 1)) + hc.lookup(VALUES[:3], u))

            sim = hc.Simulation(grid, hc.program(program), **options)
            sim[u] = x
            sim.run()
            chosen = np.array([VALUES[entry(float(i), 3)] for i in x])
            assert np.array_equal(np.asarray(sim[v]), chosen.astype(dtype))
            assert np.array_equal(np.asarray(sim["w"]), (VALUES[-1] + chosen).astype("float32"))


def test_a_field_and_a_wall_are_random_from_the_start() -> None:
    grid = hc.Grid((6, 9), periodic=(False, True))
    wall = hc.Value(hc.random(5, 0, grid.cell_number(axes=[1])))
    u = grid.field("u", boundary=wall)
    grid.field("v")
    sim = hc.Simulation(grid, hc.program(lambda u, v: v.set(u[-1, 0] + u)))
    sim[u] = 2 * hc.random(4, index=grid.cell_number()) - 1
    start = 2 * reference(4, 0, np.arange(54)).reshape(6, 9) - 1
    assert np.array_equal(np.asarray(sim[u]), start)
    sim.run()
    # the ghost and the first cell add up to twice the value at the wall
    assert np.allclose(np.asarray(sim["v"])[0], 2 * reference(5, 0, np.arange(9)), rtol=1e-14)


def test_cuda_compiles_random_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    grid = hc.Grid((20, 20, 20), periodic=True)
    u, v = grid.field("u"), grid.field("v", dtype="float32")
    program = Program("draw")
    with tracing(program):
        pick = program.scalar("pick")
        pick.set(hc.lookup(VALUES, 5 * hc.random(3, hc.parameter("step"))))
        u.set(pick * hc.random(4, hc.parameter("step"), grid.cell_number()))
        v.set(hc.lookup(VALUES, u) + hc.lookup(VALUES[1:], 3 * v))
    device = compile_program(program, grid, device=Strategy()).device
    assert device is not None
    assert "hc_exp(" not in device.source  # the source contains only required functions
    for architecture in ("sm_70", "sm_90"):
        code = nvrtc.compile_cuda(device.source, architecture)
        assert all(usage.spilled == 0 for usage in nvrtc.resources(code).values())


# ---- statistics ------------------------------------------------------------------------------


def sample(make: Callable[[hc.Grid], Any], shape: tuple[int, ...] = (400, 500)) -> Array:
    grid = hc.Grid(shape)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(make(grid))))
    sim.run()
    return np.asarray(sim[u]).copy()


def test_numbers_are_uniform_and_independent() -> None:
    """Means, variances, bits and correlations are within five deviations over seeds, steps, neighbours."""
    drawn = [
        sample(lambda grid, seed=seed, step=step: hc.random(seed, step, grid.cell_number()))  # type: ignore[misc]
        for seed, step in ((0, 0), (1, 0), (0, 1), (2**52, 2**33))
    ]
    n = drawn[0].size
    for u in drawn:
        assert 0 <= u.min() < 1e-4 < 1 - 1e-4 < u.max() < 1
        assert abs(u.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n)
        assert abs(u.var() - 1 / 12) < 5 * math.sqrt(1 / 180 / n)
        counts = np.bincount((u * 1024).astype(int).ravel(), minlength=1024)
        chi = ((counts - n / 1024) ** 2).sum() / (n / 1024)
        assert abs(chi - 1023) < 5 * math.sqrt(2 * 1023)
        bits = (u.ravel() * 2.0**53).astype(U64)
        for bit in range(53):
            ones = int(np.count_nonzero(bits >> U64(bit) & U64(1)))
            assert abs(ones - n / 2) < 5 * math.sqrt(n) / 2, bit
    pairs = [(a, b) for i, a in enumerate(drawn) for b in drawn[:i]]
    pairs += [(u, np.roll(u, 1, axis)) for u in drawn for axis in (0, 1)]
    for a, b in pairs:
        assert abs(((a - 0.5) * (b - 0.5)).mean()) < 5 / 12 / math.sqrt(n)


# ---- the language ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["seed", "step", "index"])
@pytest.mark.parametrize("wrong", [-1, 0.5, 2**53, 10**400, math.nan, math.inf, -(2.0**60)])
def test_noninteger_literals_are_rejected(name: str, wrong: float) -> None:
    arguments: dict[str, Any] = {"seed": 1, name: wrong}
    with pytest.raises(
        InputError, match=rf"^{name} of random is {re.escape(short_repr(wrong))}; expected a whole"
    ):
        hc.random(**arguments)


def test_invalid_arguments_of_random_are_rejected() -> None:
    u = hc.Grid(4).field("u")
    with pytest.raises(InputError, match=r"hc\.random: seed is the condition"):
        hc.random(u > 0)
    with pytest.raises(InputError, match="step is 'now'"):
        hc.random(1, "now")  # type: ignore[arg-type]
    assert hc.random(2**53 - 1, np.int64(3), 4.0).op == "random"
    with pytest.raises(InputError, match=r"step of random is -2\.0"):
        hc.random(1, np.int64(-2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((), "lookup in 0 values; expected 1 to 8192"),
        (np.zeros(8193), "lookup in 8193 values"),
        ((1.0, math.nan), "entry 1 of the values of lookup is nan; expected a finite number"),
        ((1.0, 2.0, "x"), "entry 2 of the values of lookup is 'x'"),
        (np.zeros((2, 2)), "entry 0 of the values of lookup is array"),
        ("123", "values of lookup are '123'"),
        (3.0, "values of lookup are 3.0"),
    ],
)
def test_invalid_tables_are_rejected(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        hc.lookup(values, 0)


def test_fields_in_tables_are_rejected() -> None:
    grid = hc.Grid(4)
    u, v = grid.field("u"), grid.vector("v", components=2)
    with pytest.raises(InputError, match="values of lookup are Field"):
        hc.lookup(u, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="entry 0 of the values of lookup is Field"):
        hc.lookup(v, u)
    with pytest.raises(InputError, match=r"hc\.lookup: index is the condition"):
        hc.lookup((1.0, 2.0), u > 0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5), st.floats())
@example([1.0, 2.0], math.nan)
def test_a_lookup_with_a_literal_index_is_folded(values: list[float], index: float) -> None:
    chosen = hc.lookup(values, index)
    assert chosen.op == "const"
    assert chosen.attribute == values[entry(index, len(values))]


def test_tables_with_different_bits_are_different() -> None:
    u = hc.Grid(4).field("u")
    assert hc.lookup((0.0, 1.0), u) is hc.lookup([0, 1], u)
    assert hc.lookup((0.0, 1.0), u).digest != hc.lookup((-0.0, 1.0), u).digest
    assert hc.lookup((0.0, 1.0), u)[1] is hc.lookup((0.0, 1.0), u[1])
    assert hc.random(1, 2, u)[1] is hc.random(1, 2, u[1])
    assert repr(hc.lookup((0.0, 1.0), u)) == "lookup(2 numbers, u)"
    assert repr(hc.random(1, 2, u)) == "random(1, 2, u)"


def test_random_numbers_and_lookups_have_costs() -> None:
    u = hc.Grid(4).field("u")
    assert count_flops(kernel_of(hc.random(1, 2, u) + hc.lookup((0.0, 1.0), u))) == 2
    kernel = kernel_of(hc.random(1, 2, u), hc.exp(u), hc.lookup((0.0, 1.0), u))
    random, exponential, entry = (cost(kernel, value) for value in results(kernel))
    assert random > exponential > entry


def test_a_random_summand_is_not_linear() -> None:
    for noise in (hc.random(0), hc.lookup((1.0, 2.0), hc.random(0))):
        u = hc.Grid(8).field("u", boundary=hc.Value(0))
        with pytest.raises(InputError, match="has a term that does not depend on"):
            hc.LinearProblem(lambda v, noise=noise: v + noise, u, 1.0)
        hc.LinearProblem(lambda v, noise=noise: v * (1.0 + noise), u, 1.0)


def test_invalid_cell_numbers_are_rejected() -> None:
    grid = hc.Grid((4, 5, 6))
    for axes in ((), (3,), (1, 0), (0, 0)):
        with pytest.raises(InputError, match=r"expected some of \(0, 1, 2\)"):
            grid.cell_number(axes=axes)
    u = grid.field("u", boundary=hc.Value(hc.random(1, 0, grid.cell_number())))
    grid.field("v")
    with pytest.raises(
        InputError, match="'u' uses random numbers that depend on the cell index normal to the wall"
    ):
        hc.Simulation(grid, hc.program(lambda u, v: v.set(u[1, 0, 0])))
    assert u.boundary
