"""Expressions: captured values, NumPy's functions, precision."""

from __future__ import annotations

import logging
import math
import traceback
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from small_programs import keep, run, square

# --- values before and after ---


def test_an_expression_keeps_the_value_that_it_was_formed_with() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        before = u + 1.0
        u.set(u * 10.0)
        v.set(before)

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x})
    np.testing.assert_array_equal(sim[v], x + 1.0)
    np.testing.assert_array_equal(sim[u], x * 10.0)


@pytest.mark.parametrize("kind", ["expression", "stage", "neighbour", "loop", "scalar"])
def test_an_expression_of_an_overwritten_value_is_an_error_at_its_line(kind: str) -> None:
    grid, _, _ = square()

    def program(u: Any, v: Any) -> None:
        before = hc.stage(u + 1.0) if kind == "stage" else u[1, 0] if kind == "neighbour" else u + 1.0
        s = hc.scalar("s")
        s.set(1.0)
        if kind == "loop":
            with hc.loop(limit=2):
                v.set(before)
                u.set(v * 2.0)
        elif kind == "scalar":
            old = s * 2.0
            s.set(s + hc.sum(u))
            v.set(u * s)
            v.set(v + old)
        else:
            u.set(u * 10.0)
            v.set(u[0, 1])  # reads neighbours of u, which must be complete
            v.set(v + before)

    name = "scalar 's'" if kind == "scalar" else "field 'u'"
    message = (
        rf"test_expression.py:\d+: an expression uses the value that {name} had before it was set again\. "
        "Store that value in another "
    )
    with pytest.raises(InputError, match=message):
        hc.Simulation(grid, hc.program(program))


def test_loop_invariant_expressions_may_be_defined_before_the_loop() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        double = 2.0 * u[1, 0]
        s = hc.scalar("s")
        s.set(3.0)
        triple = s * 1.0
        with hc.loop(limit=2):
            v.set(v + double * triple)

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x, v: 0.0})
    np.testing.assert_allclose(sim[v], 12 * np.roll(x, -1, 0), rtol=1e-15)


# --- NumPy ---


def test_numpy_functions_are_traced() -> None:
    grid, u, v = square()

    def program(u: Any, v: Any) -> None:
        v.set(
            np.exp(-(u**2)) + np.float64(2.0) * u - np.float32(0.5)
            + np.where(np.logical_and(u > 0.25, np.less(u, 0.75)), np.sqrt(u), np.maximum(u, 0.5))
            + np.sin(u) * np.cos(u) / np.log(2 + np.abs(u)) + np.square(u)
            + np.tanh(u) + np.cosh(u) - np.sinh(u) + np.power(u, 3)
            + np.reciprocal(1 + u) + np.sign(u - 0.5) + np.tan(u) + np.log10(1 + u)
            + np.int64(3) * u
        )  # fmt: skip

    x = np.random.default_rng(1).uniform(size=grid.shape)
    sim = run(grid, program, {u: x})
    want = (
        np.exp(-(x**2)) + 2 * x - 0.5 + np.where((x > 0.25) & (x < 0.75), np.sqrt(x), np.maximum(x, 0.5))
        + np.sin(x) * np.cos(x) / np.log(2 + x) + x**2 + np.tanh(x) + np.cosh(x) - np.sinh(x)
        + x**3 + 1 / (1 + x) + np.sign(x - 0.5) + np.tan(x) + np.log10(1 + x) + 3 * x
    )  # fmt: skip
    np.testing.assert_allclose(sim[v], want, rtol=1e-14)


def test_selecting_functions_follow_their_rules() -> None:
    """min and max give NaN if any operand is NaN, and -0 is below +0; where ignores the other side."""
    grid = hc.Grid(6)
    a, b, low, high, chosen, signs = (grid.field(n) for n in ("a", "b", "low", "high", "chosen", "signs"))

    def program() -> None:
        low.set(hc.minimum(a, b))
        high.set(hc.maximum(b, a))
        chosen.set(hc.where(a > 0, 1.0 / a, hc.sqrt(-a)))
        signs.set(hc.sign(a))

    sim = hc.Simulation(grid, hc.program(program))
    x = np.array([1.0, -0.0, 0.0, -4.0, 2.0, -1.0])
    y = np.array([2.0, 0.0, -0.0, -5.0, 2.0, 0.5])
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[low], [1, -0.0, -0.0, -5, 2, -1])
    assert np.signbit(sim[low][1:3]).all()
    assert not np.signbit(sim[high][1:3]).any()
    np.testing.assert_array_equal(sim[chosen], [1, 0, 0, 2, 0.5, 1])
    np.testing.assert_array_equal(sim[signs], np.sign(x))
    assert np.signbit(sim[signs][1])


@pytest.mark.ranks(1, 3, long=(1,))
def test_a_function_that_cannot_be_traced_runs_in_numpy_with_the_same_bits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from mpi4py import MPI

    def steps(x: Any, y: Any) -> Any:
        return np.interp(y, [0.0, 0.4, 1.0], [0.0, 1.0, 0.5]) * x + np.hypot(x, y)

    def make(**options: Any) -> hc.Simulation:
        grid = hc.Grid((9, 6), periodic=True)
        u = grid.field("u", location="face-y")
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(u * 1.0 + 0.0 * u[1, 0])), **options)
        sim[u] = steps
        return sim

    with caplog.at_level(logging.WARNING, logger="halocline"):
        alone = make(communicator=MPI.COMM_SELF)
    assert (
        "field u: its function cannot be traced (NumPy's interp cannot be traced into a kernel: "
        in caplog.text
    )
    x, y = np.meshgrid((np.arange(9) + 0.5) / 9, np.arange(6) / 6, indexing="ij")
    np.testing.assert_allclose(alone["u"], steps(x, y), rtol=1e-14)
    for decomposition in ("1d-x", "1d-y"):
        assert make(decomposition=decomposition).checksum("u") == alone.checksum("u")


def test_functions_of_module_math_run_row_by_row(caplog: pytest.LogCaptureFixture) -> None:
    """`math.sin` does not accept arrays: the error is the user's, with a traceback to the line."""
    grid, u, _ = square()
    sim = hc.Simulation(grid, hc.program(keep))
    with pytest.raises(InputError, match=r"function '<lambda>' raised TypeError.*only") as caught:
        sim[u] = lambda x, y: math.sin(x) * y
    assert "math.sin(x) * y" in str(traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].line)
    assert "cannot be traced" in caplog.text


# --- float32 ---


def test_a_value_is_rounded_when_it_is_stored() -> None:
    """A value is rounded when it is stored, even if the statement that reads it shares the sweep."""
    grid = hc.Grid(64)
    u, v, w = grid.field("u", dtype="float32"), grid.field("v"), grid.field("w")

    def program() -> None:
        u.set(v * 0.1)
        w.set(u - v * 0.1)

    x = np.random.default_rng(1).uniform(1, 2, 64)
    sim = run(grid, program, {v: x})
    np.testing.assert_array_equal(sim[u], (x * 0.1).astype(np.float32))
    # the product may be fused into the difference, which omits its rounding
    assert np.count_nonzero(sim[w]) > 60
    np.testing.assert_allclose(sim[w], (x * 0.1).astype(np.float32) - x * 0.1, rtol=1e-6)


def test_arithmetic_has_the_precision_of_its_fields() -> None:
    grid = hc.Grid(64)
    a, b, p, q, r = (grid.field(n, dtype="float32") for n in "abpqr")
    c, d = grid.field("c"), grid.field("d")

    def program() -> None:
        p.set(a * b)
        q.set(a * 0.1)  # the literal is rounded too
        r.set(a / hc.parameter("third"))
        c.set(a * b)  # a product of float32, stored as float64
        d.set(a * c)  # float64, like c

    random = np.random.default_rng(1)
    x, y = random.uniform(1, 2, (2, 64)).astype(np.float32)
    sim = hc.Simulation(grid, hc.program(program), parameters={"third": 1 / 3})
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[p], x * y)
    np.testing.assert_array_equal(sim[q], x * np.float32(0.1))
    np.testing.assert_array_equal(sim[r], x / np.float32(1 / 3))
    np.testing.assert_array_equal(sim[c], (x * y).astype(np.float64))
    np.testing.assert_array_equal(sim[d], x.astype(np.float64) * (x * y).astype(np.float64))


# --- operators ---


def test_vectors_support_arithmetic() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    v, w = grid.vector("v"), grid.vector("w")
    assert [e is f.expr for e, f in zip(v + hc.Vector((0.0, 0.0)), v, strict=True)] == [True, True]
    assert (2.0 * v - v / 4.0)[0] is 2.0 * v[0] - v[0] / 4.0
    assert (np.float64(2.0) * v)[1] is 2.0 * v[1]
    assert hc.dot(v, w) is v[0] * w[0] + v[1] * w[1]
    assert hc.cross(v, w)[2] is v[0] * w[1] - v[1] * w[0]
    assert len(hc.cross(v, w)) == 3
    with pytest.raises(InputError, match=r"the product of two vectors is ambiguous: use hc.dot or hc.cross"):
        v * w
    with pytest.raises(InputError, match=r"vector 'v' has 2 components; got"):
        hc.program(lambda: v.set([1.0])).trace()


SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, -2.5)
FOLDED = {
    "0 * u": (0.0,) * 6,
    "u * -0.0": (0.0,) * 6,
    "0 / u": (0.0,) * 6,
    "u + 0": SPECIAL,
    "0.0 + u": SPECIAL,
    "u - 0": SPECIAL,
    "u - (-0.0)": SPECIAL,
    "0 - u": (math.nan, -math.inf, math.inf, -0.0, 0.0, 2.5),
    "1 * u": SPECIAL,
    "u / 1": SPECIAL,
    "-1 * u": (math.nan, -math.inf, math.inf, -0.0, 0.0, 2.5),
    "-(-u)": SPECIAL,
    "u / 4": (math.nan, math.inf, -math.inf, 0.0, -0.0, -0.625),
    "u**0": (1.0,) * 6,
    "u**0.5": (math.nan, math.inf, math.nan, 0.0, -0.0, math.nan),
    "hc.where(u > 0, u, u)": SPECIAL,
}
COMPUTED = {
    "off * u": (math.nan, math.nan, math.nan, 0.0, -0.0, -0.0),
    "u + off": (math.nan, math.inf, -math.inf, 0.0, 0.0, -2.5),
    "off / u": (math.nan, 0.0, -0.0, math.nan, math.nan, -0.0),
    "u - u": (math.nan, math.nan, math.nan, 0.0, 0.0, 0.0),
    "u / u": (math.nan, math.nan, math.nan, math.nan, math.nan, 1.0),
    "hc.where(u == u, 1.0, 0.0)": (0.0, 1.0, 1.0, 1.0, 1.0, 1.0),
}


def test_literal_zeros_are_folded_and_parameters_are_not() -> None:
    """Simplification follows docs/reference/language.md, section "What is simplified"."""
    grid = hc.Grid(len(SPECIAL), periodic=True)
    u = grid.field("u")
    results = {formula: grid.field(f"v{n}") for n, formula in enumerate({**FOLDED, **COMPUTED})}
    sim = hc.Simulation(grid, lambda u: {u: 0.0 * u}, scheme=hc.Euler(), dt=1.0, parameters={"off": 0.0})
    sim[u] = np.array(SPECIAL)
    names = {"u": u, "off": hc.parameter("off"), "hc": hc}
    for formula, field in results.items():
        sim[field] = eval(formula, names)
    for formula, field in results.items():
        expected, results_of_formula = np.array({**FOLDED, **COMPUTED}[formula]), sim[field]
        np.testing.assert_array_equal(results_of_formula, expected, err_msg=formula)
        signs = ~np.isnan(expected)
        assert np.array_equal(np.signbit(results_of_formula)[signs], np.signbit(expected)[signs]), formula
