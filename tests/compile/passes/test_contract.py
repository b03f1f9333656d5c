"""Contraction of products and sums to multiply-adds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import halocline as hc
from compiled_programs import fields
from kernels import kernel_of
from kernels import ops as kernel_ops


def test_a_product_that_is_used_once_is_fused_into_its_sum() -> None:
    _, (u, v, w) = fields("u", "v", "w")
    assert kernel_ops(kernel_of(u * v + w)) == ["fma"]
    assert kernel_ops(kernel_of(w - u * v)) == ["neg", "fma"]
    assert kernel_ops(kernel_of(u * v - w)) == ["neg", "fma"]
    assert kernel_ops(kernel_of((u * v) / 2 + w)) == ["mul", "fma"]  # division by a power of two is a product
    assert kernel_ops(kernel_of(u * v + u * w)) == ["mul", "fma"]
    product = u * v
    assert kernel_ops(kernel_of(product * product + product)) == ["mul", "fma"]  # used twice: stays a product
    assert kernel_ops(kernel_of((u + v) * w)) == ["add", "mul"]
    assert kernel_ops(kernel_of(hc.symmetric_sum(u * v, w))) == ["mul", "sum2"]


def test_products_of_scalars_are_computed_once_outside_loops() -> None:
    _, (u,) = fields("u")
    a, b = hc.parameter("a"), hc.parameter("b")
    assert kernel_ops(kernel_of(a * b + u)) == ["mul", "add"]


def test_a_product_of_another_precision_is_rounded_by_itself() -> None:
    """Coordinates are computed in float64, products of float32 in float32, for any precision of the sum."""
    grid = hc.Grid((8, 8))
    u, v, w = (grid.field(n, dtype=d) for n, d in zip("uvw", ("float32", "float32", "float64"), strict=True))
    product = (grid.x + grid.y) * (grid.x - grid.y)
    assert kernel_ops(kernel_of(u + product))[-3:] == ["sub", "mul", "add"]
    assert kernel_ops(kernel_of(w + product))[-2:] == ["sub", "fma"]
    assert kernel_ops(kernel_of(u * v + w)) == ["mul", "add"]
    assert kernel_ops(kernel_of(u * v + u)) == ["fma"]


def fma(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_the_choice_of_the_fused_product_depends_only_on_the_formula() -> None:
    grid, _ = fields("a", "b", "c", "d", "p", "q", "r")

    def program(a: Any, b: Any, c: Any, d: Any, p: Any, q: Any, r: Any) -> None:
        p.set(a * b + c * d)
        q.set(d * c + b * a)
        r.set(c * d + a * b)

    sim = hc.Simulation(grid, hc.program(program))
    values = dict(zip("abcd", np.random.default_rng(1).uniform(-1, 1, (4, 8, 8)), strict=True))
    for name, array in values.items():
        sim[name] = array
    sim.run()
    np.testing.assert_array_equal(sim["p"], sim["q"])
    np.testing.assert_array_equal(sim["p"], sim["r"])
    a, b, c, d = (values[n].ravel() for n in "abcd")
    first = [fma(*x) for x in zip(a, b, c * d, strict=True)]
    second = [fma(*x) for x in zip(c, d, a * b, strict=True)]
    assert first != second
    assert sim["p"].ravel().tolist() in (first, second)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_compiler_fuses_no_other_products(dtype: str) -> None:
    """A product that the program also stores is rounded, even if the sum follows immediately."""
    grid = hc.Grid(1000, periodic=True)
    a, b, p, s = (grid.field(n, dtype=dtype) for n in "abps")

    @hc.program
    def program() -> None:
        product = a * b
        p.set(product)
        s.set(product - b)

    sim = hc.Simulation(grid, program)
    x, y = np.random.default_rng(2).uniform(0.5, 2, (2, 1000)).astype(dtype)
    sim[a], sim[b] = x, y
    sim.run()
    np.testing.assert_array_equal(sim[p], x * y)
    np.testing.assert_array_equal(sim[s], x * y - y)
