"""Headers of device kernels give the host's bits: arithmetic, elementary functions, reductions.

The same text runs on an OpenCL device, and is compiled for CUDA and HIP.
"""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import hip_kernels
from elementary_functions import (
    DOUBLE,
    DRIVER,
    FLOAT,
    INCLUDE,
    ONE,
    STRICT,
    TWO,
    VECTOR,
    Array,
    Library,
    around,
    in_float,
    many,
    near_quarters,
    special,
    typical,
)
from elementary_functions import bits as bits_of
from halocline.compile import nvrtc
from halocline.compile.targets.source import OPENCL_OPTIONS, device_headers
from reductions import CASES, COUNT, MAX, MIN, SUM, VALUE, Accumulator, nans, specials, summands
from reductions import Library as Reductions
from suites import cases, examples

KINDS = (SUM, MIN, MAX, COUNT, VALUE)
C = {DOUBLE: "double", FLOAT: "float"}


@dataclass
class Program:
    """Compiled kernels on a device."""

    device: Any
    source: str
    module: Any = field(init=False)

    def __post_init__(self) -> None:
        self.module = self.device.load(self.source, " ".join(OPENCL_OPTIONS))

    def __call__(
        self, kernel: str, block_counts: tuple[int, ...], block_shape: tuple[int, ...], *arguments: object
    ) -> None:
        """Run a kernel and update its argument arrays in place."""
        queue = self.device.queue()
        parameters: list[object] = []
        arrays = []
        for a in arguments:
            if isinstance(a, np.ndarray):
                buffer = self.device.allocate(max(a.nbytes, 8))
                if a.nbytes:
                    queue.upload(buffer, a)
                    arrays.append((buffer, a))
                parameters.append(buffer)
            else:
                parameters.append(a)
        queue.launch(self.module, kernel, [*block_counts, 1, 1][:3], [*block_shape, 1, 1][:3], parameters)
        for buffer, a in arrays:
            queue.download(buffer, a)
        queue.finish()


@pytest.fixture(scope="module")
def device(opencl: list[Any]) -> Any:
    return opencl[0]


def build(folder: Path, *options: str) -> ctypes.CDLL:
    """Return the shared library of C++ text, compiled with the options of generated code."""
    path = folder / "host.so"
    command = [*VECTOR, *STRICT, f"-I{INCLUDE}", "-o", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def assert_equal(name: str, result: Array, expected: Array, *arguments: Array) -> None:
    """Assert equal bits; any NaN equals any other NaN."""
    wrong = np.flatnonzero((bits_of(result) != bits_of(expected)) & ~(np.isnan(result) & np.isnan(expected)))
    assert not wrong.size, (name, [(*(a[i] for a in arguments), result[i], expected[i]) for i in wrong[:5]])


# ---- arithmetic ------------------------------------------------------------------------------

# Expressions of a, b and c; host and device share the text of each expression.
DOUBLES = {
    "sum": "a + b",
    "difference": "a - b",
    "product": "a * b",
    "quotient": "a / b",
    "root": "hc_sqrt(a)",
    "fused": "hc_fma(a, b, c)",
    "apart": "a * b + c",
    "apart_minus": "c - a * b",
    "cross": "a * b - b * c",
    "length": "hc_sqrt(a * a + b * b) / c",
    "to_float": "(double)(float)a",
    # Compared as bits: without traps, GCC converts there and back as trunc(), which can give -0.
    "to_integer": "hc_from_bits((hc_uint64)(hc_int64)(a > -0x1p62 && a < 0x1p62 ? a : 0.0))",
    "from_integer": "(double)(hc_int64)hc_bits(a)",
    "from_unsigned": "(double)hc_bits(a)",
    "high": "hc_from_bits(hc_multiply_high(hc_bits(a), hc_bits(b)) >> 12)",
    "zeros": "(double)hc_leading_zeros(hc_bits(a) >> (hc_bits(b) & 63) | 1)",
    "around": "hc_around((hc_int32)hc_bits(a), 1 + (hc_int64)(hc_bits(b) >> 40))",
    "least": "(double)hc_min_index((hc_int64)hc_bits(a), (hc_int64)hc_bits(b))",
    "greatest": "(double)hc_max_index((hc_int64)hc_bits(a), (hc_int64)hc_bits(b))",
}
FLOATS = {
    "sum": "a + b",
    "difference": "a - b",
    "product": "a * b",
    "quotient": "a / b",
    "root": "hc_sqrtf(a)",
    "fused": "hc_fmaf(a, b, c)",
    "apart": "a * b + c",
    "cross": "a * b - b * c",
    "length": "hc_sqrtf(a * a + b * b) / c",
    "through_double": "(float)((double)a * (double)b / (double)c)",
    "from_integer": "(float)(hc_int32)hc_bitsf(a)",
    "from_unsigned": "(float)hc_bitsf(a)",
    "from_long": "(float)(((hc_int64)hc_bitsf(a) << 32) | hc_bitsf(b))",
    "bits": "hc_from_bitsf(hc_bitsf(a) ^ (hc_bitsf(b) & 0x807fffffu))",
}


# One body for host and device: the values of all expressions at index `i` of x, y and z, one after the other.
def body(dtype: type) -> str:
    t = C[dtype]
    texts = (DOUBLES if dtype == DOUBLE else FLOATS).values()
    return f"{t} a = x[i], b = y[i], c = z[i];\n" + "\n".join(
        f"out[{number} * n + i] = {text};" for number, text in enumerate(texts)
    )


@pytest.fixture(scope="module")
def host_arithmetic(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    lines = [f'#include "halocline/{name}"' for name in ("abi.h", "host.h", "rows.hpp")]
    for dtype, t in C.items():
        lines.append(
            f'extern "C" void run_{t}(const {t}* x, const {t}* y, const {t}* z, {t}* out, long n) {{\n'
            f"for (long i = 0; i < n; ++i) {{\n{body(dtype)}\n}}\n}}"
        )
    folder = tmp_path_factory.mktemp("arithmetic")
    (folder / "host.cpp").write_text("\n".join(lines))
    return build(folder, str(folder / "host.cpp"))


def arithmetic_source() -> str:
    parts = [device_headers()]
    for dtype, t in C.items():
        parts.append(
            f"HC_KERNEL run_{t}(HC_GLOBAL const {t}* x, HC_GLOBAL const {t}* y, HC_GLOBAL const {t}* z,"
            f" HC_GLOBAL {t}* out, hc_int64 n) {{\n"
            f"const hc_int64 i = hc_block(0) * 64 + hc_thread(0);\nif (i < n) {{\n{body(dtype)}\n}}\n}}"
        )
    return "\n".join(parts)


@pytest.fixture(scope="module")
def arithmetic(device: Any) -> Program:
    return Program(device, arithmetic_source())


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
def test_arithmetic_has_the_bits_of_the_host(
    arithmetic: Program, host_arithmetic: ctypes.CDLL, dtype: type
) -> None:
    rng = np.random.default_rng(1)
    some = special(dtype)
    pairs = np.array([(a, b) for a in some for b in some], dtype).T
    a, b = (np.concatenate([many(rng, dtype, 200_000), p]) for p in pairs)
    c = rng.permutation(a)
    # sums that cancel, so that a contracted product changes the result
    b[:1000], c[:1000] = rng.uniform(0.5, 2, 1000), rng.uniform(0.5, 2, 1000)
    a[:1000] = rng.uniform(0.5, 2, 1000)
    c[:500] = -(a[:500] * b[:500])
    names = list(DOUBLES if dtype == DOUBLE else FLOATS)
    expected, result = np.empty((2, len(names), a.size), dtype)
    addresses = (ctypes.c_void_p(array.ctypes.data) for array in (a, b, c, expected))
    getattr(host_arithmetic, f"run_{C[dtype]}")(*addresses, ctypes.c_long(a.size))
    arithmetic(f"run_{C[dtype]}", (-(-a.size // 64),), (64,), a, b, c, result, a.size)
    for n, name in enumerate(names):
        assert_equal(name, result[n], expected[n], a, b, c)
        assert np.unique(bits_of(result[n])).size > (60 if name == "zeros" else 1000)
    fused, separate = result[names.index("fused")], result[names.index("apart")]
    assert np.count_nonzero(fused[:1000] != separate[:1000]) > 400


# ---- elementary functions --------------------------------------------------------------------


def arguments_of(name: str, dtype: type) -> tuple[Array, ...]:
    rng = np.random.default_rng(2)
    some = special(dtype)
    if name in TWO:
        first, second = np.array([(a, b) for a in some for b in some], dtype).T
        columns = [(many(rng, dtype, 150_000), many(rng, dtype, 150_000)), (first, second)]
    else:
        columns = [(many(rng, dtype, 150_000),), (some,), (around([0.5, 1.0, 2.0**40], dtype, 200),)]
        if name.startswith(("sin", "cos")):
            columns.append((near_quarters(dtype),))
    if name in ("exp", "log", "sin", "cos", "pow"):
        columns += typical(rng, name, dtype, 20_000).values()
    result = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    if name.endswith("_small"):
        result = tuple(np.where(np.abs(a) <= 2.0**40, a, dtype(1)) for a in result)
    return result


@pytest.fixture(scope="module")
def host_elementary(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("elementary")
    build(folder, str(DRIVER))
    return Library(folder / "host.so", "")


def elementary_source() -> str:
    parts = [device_headers(["elementary.hpp"])]
    for dtype in (DOUBLE, FLOAT):
        t = C[dtype]
        for name in (*ONE, *TWO):
            function = name if dtype == DOUBLE else in_float(name)
            second = f"HC_GLOBAL const {t}* y, " if name in TWO else ""
            parts.append(
                f"HC_KERNEL run_{function}(HC_GLOBAL const {t}* x, {second}HC_GLOBAL {t}* z, hc_int64 n) {{\n"
                "  for (hc_int64 i = hc_block(0) * hc_block_size(0) + hc_thread(0); i < n;"
                " i += hc_blocks(0) * hc_block_size(0))\n"
                f"    z[i] = hc_{function}(x[i]{', y[i]' if name in TWO else ''});\n}}"
            )
    return "\n".join(parts)


@pytest.fixture(scope="module")
def elementary(device: Any) -> Program:
    return Program(device, elementary_source())


@cases("dtype", [DOUBLE, FLOAT], default=[DOUBLE])
@pytest.mark.parametrize("name", ONE + TWO)
def test_elementary_functions_have_the_bits_of_the_host(
    elementary: Program, host_elementary: Library, name: str, dtype: type
) -> None:
    inputs = arguments_of(name, dtype)
    assert inputs[0].size > 100_000
    result = np.empty_like(inputs[0])
    elementary(
        f"run_{name if dtype == DOUBLE else in_float(name)}", (40,), (64,), *inputs, result, result.size
    )
    expected = host_elementary(name, *inputs)
    wrong = np.flatnonzero(bits_of(result) != bits_of(expected))  # NaNs too: they are canonical
    assert not wrong.size, [(*(a[i] for a in inputs), result[i], expected[i]) for i in wrong[:5]]
    assert np.unique(bits_of(result)).size > (1 if name == "sign" else 10_000)


# ---- launches and frames ---------------------------------------------------------------------

LAUNCH = """
HC_KERNEL numbers(HC_GLOBAL hc_int64* out) {
  hc_int64 i = hc_block_number() * hc_block_threads() + hc_thread_number();
  for (int d = 0; d < 3; ++d) {
    out[12 * i + d] = hc_block(d);
    out[12 * i + 3 + d] = hc_blocks(d);
    out[12 * i + 6 + d] = hc_thread(d);
    out[12 * i + 9 + d] = hc_block_size(d);
  }
}

HC_KERNEL_FIXED_BLOCK(1, 1, 1)
frames(hc_layout before, hc_frame f, hc_layout after, HC_GLOBAL hc_int64* out) {
  for (int a = 0; a < 3; ++a) {
    out[a] = f.lo[a];
    out[3 + a] = f.hi[a];
    out[6 + a] = f.box_lo[a];
    out[9 + a] = f.box_hi[a];
    out[12 + a] = f.box_top[a];
    out[15 + a] = f.origin[a];
    out[18 + a] = f.shape[a];
  }
  out[21] = f.first_block;
  out[22] = f.stride;
  for (int axis = 0; axis < 3; ++axis) out[23 + axis] = f.block_cells[axis];
  out[26] = before.at + before.s0 * 10 + before.s1 * 100;
  out[27] = after.at + after.s0 * 10 + after.s1 * 100;
}
"""

# Each thread reads a value that another thread of its thread block has written.
SHARED = """
HC_KERNEL mirror(HC_GLOBAL const double* HC_RESTRICT x, HC_GLOBAL double* HC_RESTRICT y) {
  HC_SHARED double row[64];
  HC_LOCAL double* to = row;
  to[hc_thread(0)] = x[hc_block(0) * 64 + hc_thread(0)];
  HC_BARRIER();
  y[hc_block(0) * 64 + hc_thread(0)] = row[63 - hc_thread(0)];
}
"""


@pytest.fixture(scope="module")
def launches(device: Any) -> Program:
    return Program(device, device_headers(["frame.h"]) + LAUNCH + SHARED)


@pytest.mark.parametrize(
    ("block_counts", "block_shape"), [((1, 1, 1), (1, 1, 1)), ((2, 3, 4), (5, 2, 3)), ((7, 1, 2), (1, 8, 2))]
)
def test_threads_and_blocks_are_numbered(
    launches: Program, block_counts: tuple[int, ...], block_shape: tuple[int, ...]
) -> None:
    out = np.full((prod(block_counts) * prod(block_shape), 12), -1, np.int64)
    launches("numbers", block_counts, block_shape, out)
    expected = [
        [*g[::-1], *block_counts, *t[::-1], *block_shape]
        for g in np.ndindex(block_counts[::-1])
        for t in np.ndindex(block_shape[::-1])
    ]
    assert np.array_equal(out, expected)


def test_frames_have_the_layout_of_the_host(launches: Program, tmp_path: Path) -> None:
    names = ["lo", "hi", "box_lo", "box_hi", "box_top", "origin", "shape"]
    text = '#include "halocline/frame.h"\nextern "C" long size() { return sizeof(hc_frame); }\n'
    text += 'extern "C" void fill(hc_frame* f, hc_layout* l) {\n  long n = -1;\n'
    text += "\n".join(f"  for (long& each : f->{name}) each = n++ * 0x100000001;" for name in names)
    text += "\n  *l = {1, 2, 3};\n  f->first_block = n++;\n  f->stride = n++;\n"
    text += "  for (long& each : f->block_cells) each = n++;\n}\n"
    (tmp_path / "frame.cpp").write_text(text)
    host = build(tmp_path, str(tmp_path / "frame.cpp"))
    frame, layout = np.zeros(26, np.int64), np.zeros(3, np.int64)
    assert host.size() == frame.nbytes
    host.fill(ctypes.c_void_p(frame.ctypes.data), ctypes.c_void_p(layout.ctypes.data))
    out = np.zeros(28, np.int64)
    launches("frames", (1,), (1,), layout.tobytes(), frame.tobytes(), (layout + 1).tobytes(), out)
    assert out[:21].tolist() == [n * 0x100000001 for n in range(-1, 20)]
    assert out[21:].tolist() == [20, 21, 22, 23, 24, 321, 432]


def test_threads_of_a_block_share_memory(launches: Program) -> None:
    x = np.random.default_rng(3).random(640)
    y = np.zeros_like(x)
    launches("mirror", (10,), (64,), x, y)
    assert np.array_equal(y.reshape(10, 64), x.reshape(10, 64)[:, ::-1])


# ---- reductions ------------------------------------------------------------------------------

# All kinds of reductions at once, of x[i % length] for i < n; the single value is that at i = at.
REDUCE = """
#define REDUCED(kind, partial)                                         \\
  hc_block_reduce(kind, &partial, scratch, thread, hc_block_threads()); \\
  if (thread == 0) partials[kind * stride + first + hc_block_number()] = partial;

HC_KERNEL reduce(HC_GLOBAL const double* HC_RESTRICT x, hc_int64 length, hc_int64 n, hc_int64 at,
                 HC_GLOBAL hc_partial* HC_RESTRICT partials, hc_int64 stride, hc_int64 first) {
  HC_SHARED hc_partial scratch[HC_SCRATCH(1024)];
  const hc_int64 thread = hc_thread_number(), step = hc_blocks(0) * hc_block_threads();
  hc_partial sum, least, greatest, count, value;
  hc_partial_reset(&sum, HC_SUM);
  hc_partial_reset(&least, HC_MIN);
  hc_partial_reset(&greatest, HC_MAX);
  hc_partial_reset(&count, HC_COUNT);
  hc_partial_reset(&value, HC_VALUE);
  hc_sum_state state = hc_sum_begin(&sum);
  for (hc_int64 i = hc_block_number() * hc_block_threads() + thread; i < n; i += step) {
    const double each = x[i % length];
    hc_sum_put(&sum, &state, each);
    hc_min_put(&least, each);
    hc_max_put(&greatest, each);
    hc_count_put(&count, each != 0);
    if (i == at) hc_value_put(&value, each);
  }
  REDUCED(HC_SUM, sum)
  REDUCED(HC_MIN, least)
  REDUCED(HC_MAX, greatest)
  REDUCED(HC_COUNT, count)
  REDUCED(HC_VALUE, value)
}
"""


def reduce_source() -> str:
    return device_headers(["device_finish.h"]) + REDUCE


@pytest.fixture(scope="module")
def reductions(device: Any) -> Program:
    return Program(device, reduce_source())


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Reductions:
    return Reductions("g++", ["-O2"], tmp_path_factory.mktemp("reduce"))


@dataclass(frozen=True)
class Launch:
    blocks: int
    block_shape: tuple[int, int, int]


def partial_results(
    program: Program, pieces: list[tuple[Launch, NDArray[np.float64], int, int]]
) -> NDArray[np.int64]:
    """Return the partial results of each kind and thread block.

    Pieces are pairs of a launch and its values, with the number of the values and the place of the single
    value.
    """
    total = sum(launch.blocks for launch, *_ in pieces)
    partials = np.full((len(KINDS), total, 5), -99, np.int64)
    first = 0
    for launch, x, n, at in pieces:
        program("reduce", (launch.blocks,), launch.block_shape, x, x.size, n, at, partials, total, first)
        first += launch.blocks
    return partials


def finish(
    program: Program,
    partials: NDArray[np.int64],
    launch: Launch = Launch(1, (256, 1, 1)),
    kinds: Collection[int] = KINDS,
    write: bool = True,
) -> tuple[list[bytes], NDArray[np.float64]]:
    """Return accumulators and scalars by kind; scalars that are not written remain 0.5."""
    count, total, _ = partials.shape
    order = np.array([COUNT, SUM, VALUE, MIN, MAX], np.int32)
    targets = np.array([kind if kind in kinds else -1 for kind in order], np.int32)
    accumulators = np.full((count, 64), 0xEE, np.uint8)
    scalars = np.full(count, 0.5)
    arguments = (total, total, count, order, targets, accumulators, scalars, int(write))
    running = np.zeros(2, np.int64)  # hc_control: kernels are not skipped
    program("hc_finish", (launch.blocks,), launch.block_shape, running, partials[order], *arguments)
    return [accumulators[list(order).index(kind)].tobytes() for kind in KINDS], scalars


def check(
    results: tuple[list[bytes], NDArray[np.float64]],
    expected: list[Accumulator],
    written: Collection[int] = KINDS,
) -> None:
    accumulators, scalars = results
    for kind in KINDS:
        assert accumulators[kind] == bytes(expected[kind]), kind
        result = np.float64(expected[kind].result if kind in written else 0.5)
        assert scalars[kind].tobytes() == result.tobytes(), kind


# Few sizes, since PoCL compiles a kernel again for each size of a thread block.
launch = st.builds(Launch, st.integers(1, 4), st.sampled_from([(1, 1, 1), (3, 1, 1), (8, 4, 2)]))
last_launch = st.builds(Launch, st.integers(1, 6), st.sampled_from([(1, 1, 1), (5, 3, 1)]))
numbers = st.one_of(summands, specials, nans, st.floats())


@settings(max_examples=examples(50, 150))
@given(
    x=st.lists(numbers, max_size=60),
    repeats=st.integers(1, 9),
    cut=st.integers(0, 60),
    first=launch,
    second=launch,
    last=last_launch,
    kinds=st.sets(st.sampled_from(KINDS)),
    write=st.booleans(),
    random=st.randoms(use_true_random=False),
)
def test_reductions_have_the_bytes_of_the_host(
    reductions: Program,
    host: Reductions,
    x: list[float],
    repeats: int,
    cut: int,
    first: Launch,
    second: Launch,
    last: Launch,
    kinds: set[int],
    write: bool,
    random: Random,
) -> None:
    values = x * repeats
    expected = [host(kind).deposit(values[:1] if kind == VALUE else values) for kind in KINDS]
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = np.array([values[i] for i in order], float)
    place = order.index(0) if order else -1
    cut = min(cut, shuffled.size)
    pieces = [(first, shuffled[:cut], cut, place), (second, shuffled[cut:], shuffled.size - cut, place - cut)]
    partials = partial_results(reductions, pieces)
    check(finish(reductions, partials, last, kinds, write), expected, kinds if write else ())


@pytest.mark.parametrize("case", CASES)
def test_long_reductions_have_the_bytes_of_the_host(reductions: Program, host: Reductions, case: str) -> None:
    x = CASES[case]
    expected = [host(kind).deposit(x[:1] if kind == VALUE else x) for kind in KINDS]
    order = np.random.default_rng(4).permutation(x.size)
    for n, block_shape in enumerate([(256, 1, 1), (8, 4, 2), (3, 1, 1)]):
        values = np.ascontiguousarray(np.roll(x[order], n))
        place = int((np.flatnonzero(order == 0)[0] + n) % x.size)
        partials = partial_results(reductions, [(Launch(17, block_shape), values, x.size, place)])
        check(finish(reductions, partials), expected)


@pytest.mark.parametrize("top", [2, 27, 51, 52])
def test_a_block_reduces_its_maximum_number_of_summands(
    reductions: Program, host: Reductions, top: int
) -> None:
    """2^24 - 1 summands with the maximum contribution to a bin have an exact sum in 1024 threads."""
    quantum = math.ldexp(1, 40 * top - 1074)  # of the top bin
    unit = [quantum, *[quantum / 2] * 7] if top < 52 else [2.0**1023, *[-quantum / 2] * 7]
    x = np.array([v for v in unit for _ in range(2)])
    n = 2**24 - 1
    expected = []
    for kind in KINDS:
        accumulator = host(kind)
        if kind == VALUE:
            accumulator.deposit(x[:1])
        else:
            tiled = np.tile(x, 2**12)
            for at in range(0, n, tiled.size):
                accumulator.deposit(tiled[: n - at])
        expected.append(accumulator)
    assert expected[SUM].top == top
    partials = partial_results(reductions, [(Launch(1, (1024, 1, 1)), x, n, 0)])
    check(finish(reductions, partials), expected)
    # many thread blocks: bins that need more than 63 bits
    for kind in (SUM, COUNT):
        for _ in range(6):
            expected[kind].merge(expected[kind].copy())
    check(finish(reductions, np.repeat(partials, 64, axis=1)), expected)
    if top < 52:
        assert int(np.abs(partials[SUM, 0, 1:4]).max()) * 64 > 2**63


# ---- the text --------------------------------------------------------------------------------


def test_headers_are_included_once_in_the_order_of_dependences() -> None:
    text = device_headers(["device_finish.h", "elementary.hpp", "device_reduce.h", "device_finish.h"])
    assert text.startswith(device_headers())
    assert not re.search(r"# *include|pragma once", text)
    marks = [
        "#define HC_KERNEL_FIXED_BLOCK",
        "hc_pow(",
        "} hc_accumulator;",
        "} hc_partial;",
        "HC_KERNEL hc_finish(",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.count("} hc_partial;") == text.count("} hc_accumulator;") == 1
    assert "hc_frame" not in device_headers(["elementary.hpp", "device_reduce.h"])
    with pytest.raises(ValueError, match=r"'reduce.hpp' does not compile on devices"):
        device_headers(["reduce.hpp"])


def every_source() -> dict[str, str]:
    return {
        "arithmetic": arithmetic_source(),
        "elementary": elementary_source(),
        "launches": device_headers(["frame.h"]) + LAUNCH + SHARED,
        "reductions": reduce_source(),
        "search": device_headers(["device_find.h"]),
        "copies": device_headers(["device_copy.h"]),
    }


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang reads OpenCL C")
@pytest.mark.parametrize("source", every_source())
def test_the_headers_are_strict_opencl(tmp_path: Path, source: str) -> None:
    path = tmp_path / "kernels.cl"
    path.write_text(every_source()[source])
    options = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only"]
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    done = subprocess.run(["clang", *options, *strict, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@cases("architecture", ["sm_80", "sm_90"], default=["sm_80"])
@pytest.mark.parametrize("source", every_source())
def test_the_headers_are_valid_cuda(source: str, architecture: str) -> None:
    """The text compiles without other headers and warnings, and threads keep partial results in registers."""
    package = pytest.importorskip("nvidia.cuda_nvrtc", reason="without NVRTC")
    library = ctypes.CDLL(str(next((Path(package.__path__[0]) / "lib").glob("libnvrtc.so*"))))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = every_source()[source].encode()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    options = [*nvrtc.OPTIONS, f"--gpu-architecture={architecture}"]
    arguments = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = library.nvrtcCompileProgram(program, len(options), arguments)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, buffer)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    log = buffer.value.decode()
    assert status == 0, log
    assert "warning" not in log, log
    if source == "reductions":
        assert re.search(r"for reduce\n[^\n]* 0 bytes stack frame, 0 bytes spill", log), log


@cases("architecture", hip_kernels.ARCHITECTURES, default=["gfx90a"])
@pytest.mark.parametrize("source", every_source())
def test_the_headers_are_valid_hip(source: str, architecture: str) -> None:
    """The text compiles without other headers and warnings, with the rounding of the host."""
    code = hip_kernels.compile_hip(every_source()[source], architecture)
    hip_kernels.check_rounding(code, architecture)
    if source == "reductions":
        assert hip_kernels.resources(code)["reduce"].spilled == 0


def test_headers_compile_alone_on_the_host(tmp_path: Path) -> None:
    """frame.h and accumulator.h compile in C++ separately and together."""
    names = ["accumulator.h", "frame.h", "reduce.hpp", "elementary.hpp", "abi.h"]
    for n, order in enumerate([names, names[::-1], names[:1], names[1:2]]):
        path = tmp_path / f"host{n}.cpp"
        path.write_text("".join(f'#include "halocline/{name}"\n' for name in order))
        done = subprocess.run(
            ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", str(path)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
