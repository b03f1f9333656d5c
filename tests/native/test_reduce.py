"""Reductions do not depend on order, blocking, merge tree or vector width, and have the proven accuracy."""

from __future__ import annotations

import math
import platform
import shutil
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loops import some
from reductions import (
    CASES,
    CHUNK,
    COUNT,
    MAX,
    MIN,
    SUM,
    VALUE,
    Accumulator,
    Library,
    bits,
    boundary,
    finite,
    nans,
    specials,
    summands,
    tie,
)
from suites import cases, examples

# The same header for several vector widths and optimisation levels: their bits must agree.
BUILDS: dict[str, list[str]] = {
    "native": ["-O3", "-march=native"],
    "scalar": ["-O1", "-DHC_LANES=1", "-fno-tree-vectorize"],
    "plain": ["-O0"],
}
if platform.machine() == "x86_64":
    BUILDS["avx2"] = ["-O3", "-march=x86-64-v3"]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    folder = tmp_path_factory.mktemp("reduce")
    libraries = {name: Library("g++", flags, folder) for name, flags in BUILDS.items()}
    if shutil.which("clang++"):
        libraries["clang"] = Library("clang++", BUILDS["native"], folder)
    return libraries


@pytest.fixture(scope="session")
def native(builds: dict[str, Library]) -> Library:
    return builds["native"]


# --------------------------------------------------------------------- the definition, in exact integers
def nearest(a: int, b: int) -> int:
    """Return a / b for b > 0, rounded to nearest, ties to even."""
    quotient, rest = divmod(a, b)
    return quotient + (2 * rest > b or (2 * rest == b and quotient % 2 == 1))


def definition(x: Sequence[float]) -> tuple[int, list[int], float]:
    """Return top bin, bins from the top down and sum of finite summands (docs/decisions/0001)."""
    units = [int(Fraction(value) * 2**1074) for value in x]

    def quantum(j: int) -> int:
        return 2 ** (40 * j)

    top = 2
    while any(abs(nearest(u, quantum(top))) > 2**38 for u in units):
        top += 1
    bins = [0, 0, 0]
    for u in units:
        for k in range(3):
            q = quantum(top - k)
            bins[k] += nearest(u, q)
            u -= nearest(u, q) * q
    total = sum(b * quantum(top - k) for k, b in enumerate(bins))
    try:
        value = total / 2**1074  # Python divides integers with correct rounding
    except OverflowError:
        value = math.inf if total > 0 else -math.inf
    return top, bins, value


def check_finite(accumulator: Accumulator, x: Sequence[float]) -> None:
    top, bins, value = definition(x)
    assert accumulator.top == top
    raw = bytes(accumulator)
    low, high = struct.unpack_from("<3Q", raw, 8), struct.unpack_from("<3q", raw, 32)
    assert [h * 2**64 + w for w, h in zip(low, high, strict=True)] == bins
    assert bits(accumulator.result) == bits(value)
    if x and math.isfinite(value):
        exact = sum(map(Fraction, x))
        bound = len(x) * Fraction(max(map(abs, x))) / 2**79 + abs(Fraction(value)) / 2**53
        assert abs(Fraction(value) - exact) <= bound


rows = st.lists(summands, max_size=40)


def scattered(random: Random, make: Callable[[], Accumulator], x: Sequence[float]) -> Accumulator:
    """Deposit x in random order and in random pieces, and merge the accumulators in random order."""
    x = list(x)
    random.shuffle(x)
    parts = [make() for _ in range(random.randint(1, 5))]
    while x:
        n = random.randint(1, len(x))
        random.choice(parts).deposit(x[:n])
        del x[:n]
    while len(parts) > 1:
        random.shuffle(parts)
        parts[0].merge(parts.pop())
    return parts[0]


@settings(deadline=None, max_examples=examples(100, 400))
@given(x=rows)
def test_sum_agrees_with_its_definition(native: Library, x: list[float]) -> None:
    check_finite(native(SUM).deposit(x), x)


@settings(deadline=None, max_examples=examples(100, 400))
@given(x=st.lists(st.one_of(summands, specials), max_size=40), random=st.randoms(use_true_random=False))
def test_sum_does_not_depend_on_the_order(native: Library, x: list[float], random: Random) -> None:
    whole = native(SUM).deposit(x)
    assert bytes(scattered(random, lambda: native(SUM), x)) == bytes(whole)


@settings(deadline=None, max_examples=200)
@given(x=rows, cut=st.integers(0, 40), also=st.integers(0, 40))
def test_merge_is_associative(native: Library, x: list[float], cut: int, also: int) -> None:
    a, b = sorted((cut, also))
    pieces = [native(SUM).deposit(part) for part in (x[:a], x[a:b], x[b:])]
    left = pieces[0].copy().merge(pieces[1]).merge(pieces[2])
    right = pieces[0].copy().merge(pieces[1].copy().merge(pieces[2]))
    turned = pieces[2].copy().merge(pieces[1]).merge(pieces[0])
    assert bytes(left) == bytes(right) == bytes(turned)


@settings(deadline=None, max_examples=200)
@given(x=rows)
def test_sum_of_negated_values_is_negated(native: Library, x: list[float]) -> None:
    a, b = native(SUM).deposit(x).result, native(SUM).deposit([-v for v in x]).result
    assert bits(a) == bits(-b) if a else bits(b) == 0


@settings(deadline=None, max_examples=100)
@given(x=st.lists(st.one_of(summands, specials), max_size=40), kind=st.sampled_from([SUM, MIN, MAX, COUNT]))
def test_every_build_gives_the_same_bytes(builds: dict[str, Library], x: list[float], kind: int) -> None:
    accumulators = [library(kind).deposit(x) for library in builds.values()]
    assert len({bytes(a) for a in accumulators}) == 1
    assert len({bits(a.result) for a in accumulators}) == 1


@cases("case", CASES, default=list(CASES)[::3])
def test_long_sums_agree_for_any_cut_and_build(builds: dict[str, Library], case: str) -> None:
    x = CASES[case]
    whole = builds["native"](SUM).deposit(x)
    check_finite(whole, x.tolist())
    expected = bytes(whole)
    rng = np.random.default_rng(9)
    for n, library in enumerate(builds.values()):
        shuffled = rng.permutation(x)
        size = [CHUNK, 4096, 100, 7][n % 4]
        parts = [library(SUM) for _ in range(3)]
        for p, begin in enumerate(range(0, x.size, size)):
            parts[p % 3].deposit(shuffled[begin : begin + size])
        assert bytes(parts[2].merge(parts[0]).merge(parts[1])) == expected


@pytest.mark.parametrize("case", ["even", "moderate", "float32"])
def test_well_conditioned_sums_are_correctly_rounded(native: Library, case: str) -> None:
    x = np.abs(CASES[case])
    assert native(SUM).deposit(x).result == math.fsum(x)


def test_cancellation_is_exact(native: Library) -> None:
    assert native(SUM).deposit(CASES["cancelling"]).result == 1e-9


@pytest.mark.parametrize("build", BUILDS)
def test_the_loop_of_kernels_agrees_with_deposit(builds: dict[str, Library], build: str) -> None:
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=20_000), rng.normal(size=20_000)
    loop, row = builds[build](SUM), builds[build](SUM)
    at_once = 0
    for begin in range(0, x.size, 500):
        piece = slice(begin, begin + 500)
        at_once += loop.deposit_products(x[piece], y[piece])
        row.deposit(x[piece] * y[piece])
    assert bytes(loop) == bytes(row)
    assert at_once == 39  # the first piece selects the bins, all others fit: this covers both branches
    for special in (math.inf, math.nan, 1e300):
        piece = np.array([1.0, special, 2.0])
        loop.deposit_products(piece, np.ones(3))
        row.deposit(piece)
        assert bytes(loop) == bytes(row)


def test_bins_hold_more_than_63_bits(native: Library) -> None:
    x = [boundary(26, 0, -1), tie(25, 2**38), tie(24, -(2**38)), 3e-10]
    totals = [native(SUM).deposit(x), native(SUM).deposit([-v for v in x])]
    for total in totals:
        for _ in range(80):
            total.merge(total.copy())
    assert totals[0].result == math.ldexp(definition(x)[2], 80) < -(2.0**80)
    assert totals[0].merge(totals[1]).result == 0


def test_sum_rounds_once(native: Library) -> None:
    """A sum rounds once: halfway between two doubles, up to a summand 130 bits further down."""
    for below, expected in ((0.0, 2.0**53), (1.0, 2.0**53 + 2)):
        total = native(SUM)
        for x, doublings in ((2.0**-26, 79), (2.0**-26, 26), (below * 2.0**-104, 0)):
            part = native(SUM).deposit([x])
            for _ in range(doublings):
                part.merge(part.copy())
            total.merge(part)
        assert total.result == expected


def test_huge_sums_overflow_only_when_they_must(native: Library) -> None:
    huge = 1.7976931348623157e308
    assert native(SUM).deposit([huge, huge, -huge, -huge / 2]).result == huge / 2
    assert native(SUM).deposit([huge, huge]).result == math.inf
    assert native(SUM).deposit([-huge, math.ldexp(-1, 969)]).result == -huge  # less than half a unit above
    assert native(SUM).deposit([-huge, math.ldexp(-1, 970)]).result == -math.inf  # half a unit above


def test_small_summands_do_not_disturb_the_highest_bins(native: Library) -> None:
    rng = np.random.default_rng(11)
    huge = native(SUM).deposit([1.7e308])
    for exponent in range(-1074, 700, 7):
        x = np.ldexp(rng.uniform(-1, 1, 100), exponent)
        total = native(SUM).deposit([1.7e308])
        assert bytes(total.deposit(x)) == bytes(huge)
        assert not total.deposit_products(x, np.ones(x.size)) or bytes(total) == bytes(huge)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([], 0.0),
        ([-0.0, -0.0], 0.0),
        ([1.0, -1.0], 0.0),
        ([-0.0], 0.0),
        ([1e308, 1e308, -math.inf], -math.inf),
        ([1.0, math.inf, math.inf, -5.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([1.0, math.nan], math.nan),
        ([-math.nan, math.inf], math.nan),
        ([5e-324] * 3, 1.5e-323),
    ],
)
def test_sums_of_special_values_follow_ieee_754(
    builds: dict[str, Library], x: list[float], expected: float
) -> None:
    canonical = 0x7FF8000000000000 if math.isnan(expected) else bits(expected)
    for library in some(builds.values()):
        # in every lane of a vector, and in the part after the last whole vector
        for lead in range(9):
            accumulator = library(SUM).deposit([0.0] * lead + x)
            assert bits(accumulator.result) == canonical
        merged = library(SUM)
        for value in x:
            merged.merge(library(SUM).deposit([value]))
        assert bits(merged.result) == canonical


@settings(deadline=None, max_examples=100)
@given(x=finite)
def test_sum_of_one_value_is_the_value(native: Library, x: float) -> None:
    assert bits(native(SUM).deposit([x]).result) == bits(x + 0.0)


values = st.lists(st.one_of(st.floats(), nans, st.sampled_from([0.0, -0.0])), max_size=40)


@settings(deadline=None, max_examples=examples(100, 300))
@given(x=values, random=st.randoms(use_true_random=False))
def test_min_and_max_do_not_depend_on_the_order(native: Library, x: list[float], random: Random) -> None:
    for kind, empty in ((MIN, math.inf), (MAX, -math.inf)):
        whole = native(kind).deposit(x)
        assert bytes(scattered(random, lambda k=kind: native(k), x)) == bytes(whole)
        expected = 0x7FF8000000000000
        if not any(map(math.isnan, x)):
            order = sorted([*x, empty], key=lambda v: (v, math.copysign(1, v)))
            expected = bits(order[0] if kind == MIN else order[-1])
        assert bits(whole.result) == expected


@settings(deadline=None, max_examples=200)
@given(x=values, random=st.randoms(use_true_random=False))
def test_count_agrees_with_numpy(native: Library, x: list[float], random: Random) -> None:
    whole = scattered(random, lambda: native(COUNT), x).add(2**52)
    assert whole.result == 2**52 + sum(v != 0 for v in x)


@pytest.mark.parametrize("value", [0.0, -0.0, -3.5, math.inf, -math.inf, 5e-324, math.nan])
def test_value_is_found_at_any_position(builds: dict[str, Library], value: float) -> None:
    for library in some(builds.values()):
        parts = [library(VALUE).deposit([]) for _ in range(3)]
        assert math.isnan(parts[0].result)
        parts[1].deposit([value])
        for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
            total = parts[order[0]].copy().merge(parts[order[1]]).merge(parts[order[2]])
            assert bits(total.result) == (0x7FF8000000000000 if math.isnan(value) else bits(value))
