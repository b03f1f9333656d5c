"""Translation of expressions to kernels: operations, literals, common expressions."""

from __future__ import annotations

import re
from typing import Any

import halocline as hc
from compiled_programs import fields, schedule_of
from halocline.compile.ir import pipeline
from single_precision import float64_operations


def ops(root: hc.Expr) -> list[str]:
    """Return the operations of an expression in evaluation order."""
    from halocline.lang.expression import walk

    return [n.op for n in walk([root]) if n.args]


def test_flop_counts_match_hand_counts() -> None:
    grid, _ = fields("u", "v")

    def program(u: Any, v: Any) -> None:
        v.set(3.0 * u + hc.sqrt(u) / v)  # fma(3, u, sqrt / v): 2 + 1 + 1

    (sweep,) = schedule_of(grid, program).sweeps()
    assert sweep.flops == 4

    def heat(u: Any, v: Any) -> None:
        # (u_w + u_e) a + (u_s + u_n) b + u c: two sums, a product, two fma; weights once per sweep
        v.set(hc.laplacian(u))

    (sweep,) = schedule_of(grid, heat).sweeps()
    assert sweep.flops == 2 + 1 + 4


def test_common_subexpressions_are_computed_once() -> None:
    grid, _ = fields("u", "v", "w")

    def program(u: Any, v: Any, w: Any) -> None:
        v.set(hc.exp(u[1, 0]) * 2.0)
        w.set(hc.exp(u[1, 0]) + v)

    source = schedule_of(grid, program).source
    kernel = source.split("#pragma omp simd")[1].split("\n}\n")[0]
    assert kernel.count("hc_exp(") == 1
    assert len(re.findall(r"= u_at_\w+\[k\];", kernel)) == 1


def test_literals_are_folded_and_structural_zeros_vanish() -> None:
    _, (u,) = fields("u")
    two = hc.sqrt(4.0)
    assert two.op == "const"
    assert two.attribute == 2.0
    assert (two * 3.0 - 6.0 + u) is u.expr
    assert (u * 1.0 + 0.0) is u.expr
    assert (u * 0.0).attribute == 0.0
    assert ops(u / 4.0) == ["mul"]
    assert ops(u / 3.0) == ["div"]  # the reciprocal of 3 is not exact
    assert ops(u**2) == ["mul"]
    assert ops(u**0.5) == ["sqrt"]
    assert ops(u**-1) == ["div"]
    assert ops(u**2.5) == ["pow"]
    assert hc.derivative(u, "z").attribute == 0.0  # the grid lacks this axis
    assert (u + (-u[1, 0])) is (u - u[1, 0])
    assert -(-u) is u.expr  # noqa: B002


def test_numbers_are_selected_in_the_precision_of_their_use() -> None:
    """No operation on float32 fields or stages needs double precision."""
    grid = hc.Grid((6, 6), periodic=True, dtype="float32")
    grid.field("u")

    def program(u: Any) -> None:
        sign = hc.where(u >= 0.0, 1.0, -1.0)
        flag = hc.stage(hc.where(u > 0.1, 1.0, 0.0), "flag", storage="patch")
        u.set(0.1 * u[1, 0] * sign + flag[-1, 0] * hc.where(u > 0.2, hc.where(u > 0.3, 0.3, 0.2), 0.7))

    with pipeline.recorded() as trail:
        schedule_of(grid, program)
    (kernel,) = (kernel for name, kernel in trail if name == "translate" and kernel.ndim)
    assert {array.dtype for array in kernel.arrays} == {"float32"}
    assert not float64_operations(kernel)
