"""Conjugate gradients without a matrix (Hestenes and Stiefel 1952), as programs that the engine runs as a
whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from halocline.lang.grid import Field, unknown
from halocline.lang.program import ProgramFunction, Scalar, loop, own_scalars, program, stage, stop
from halocline.lang.reductions import dot

Operator = Callable[[Any], Any]

BREAKDOWN = "the operator is not positive definite: p.Ap is not positive"
NOT_FINITE = "the residual is not finite"
BAD_START = "the residual of the initial guess is not finite, or too large to be squared"


@program
def cg(A: Operator, x: Field, b: Any, rtol: Scalar, max_iterations: Scalar) -> None:
    """Conjugate gradients as UMBC HPCF-2018-10, Section 2.2, has them: four vectors x, r, p, q.

    The vector updates and inner products next to each other share a sweep; eleven streams of memory an
    iteration.
    """
    r, p, q = x.like("r p q", homogeneous=True)
    rho, next_rho, alpha, beta, curvature = own_scalars("rho next_rho alpha beta curvature")
    r.set(b - A(x))
    p.set(r)
    rho.set(dot(r, r))
    goal = _goal(rho, rtol)
    with loop(until=rho <= goal, limit=max_iterations, record=rho):
        q.set(A(p))
        curvature.set(dot(p, q))
        _check(curvature)
        alpha.set(rho / curvature)
        x.set(x + alpha * p)
        r.set(r - alpha * q)
        next_rho.set(dot(r, r))
        beta.set(next_rho / rho)
        rho.set(next_rho)
        p.set(r + beta * p)


@program
def cg_fused(A: Operator, x: Field, b: Any, rtol: Scalar, max_iterations: Scalar) -> None:
    """Conjugate gradients in two sweeps an iteration and four vectors: x, r, p and its next value.

    The first sweep forms the new p, in the halo too, and its product with A for the inner product; the
    second forms that product again instead of reading it back, and updates x and r. Only r is exchanged.
    Eight streams of memory an iteration (r, p read, p' written; p', x, r read, x, r written) instead of the
    fifteen of separate operations.
    """
    r, p = x.like("r p", homogeneous=True)
    rho, old, alpha, curvature = own_scalars("rho old alpha curvature")
    r.set(b - A(x))
    p.set(0.0)
    old.set(1.0)
    rho.set(dot(r, r))
    goal = _goal(rho, rtol)
    with loop(until=rho <= goal, limit=max_iterations, record=rho):
        new = stage(r + (rho / old) * p, "new_p", storage="inline")
        curvature.set(dot(new, A(new)))
        p.set(new)
        old.set(rho)
        _check(curvature)
        alpha.set(rho / curvature)
        x.set(x + alpha * p)
        r.set(r - alpha * A(p))
        rho.set(dot(r, r))


def _goal(rho: Scalar, rtol: Scalar) -> Scalar:
    """The squared residual norm at which the iteration ends."""
    stop(~(rho < float("inf")), BAD_START)
    first, goal = own_scalars("first goal")
    first.set(rho)
    goal.set(rtol * rtol * rho)
    return goal


def _check(curvature: Scalar) -> None:
    stop(~(abs(curvature) < float("inf")), NOT_FINITE)
    stop(curvature <= 0.0, BREAKDOWN)


METHODS = {"cg": cg, "cg-fused": cg_fused}


def method_named(name: str) -> ProgramFunction:
    """One of METHODS; raises InputError where there is none of this name."""
    if name not in METHODS:
        raise unknown("method", name, sorted(METHODS))
    return METHODS[name]
