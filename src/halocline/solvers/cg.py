"""Conjugate gradients without a matrix (Hestenes and Stiefel 1952), as programs that the engine runs as a
whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from halocline.lang import trace
from halocline.lang.boundary import with_wall_values
from halocline.lang.expression import Expr, Operand, placed, where
from halocline.lang.functions import maximum
from halocline.lang.grid import Field, chosen
from halocline.lang.program import (
    Program,
    ProgramFunction,
    Scalar,
    labelled,
    loop,
    own_scalars,
    program,
    stage,
    stop,
)
from halocline.lang.reductions import dot
from halocline.lang.reductions import sum as total_of

Operator = Callable[[Any], Any]

BREAKDOWN = "the operator is not positive definite: p.Ap is not positive"
NOT_FINITE = "the residual is not finite"
BAD_START = "the residual of the initial guess is not finite, or too large to be squared"
INCOMPATIBLE = "the right-hand side has a mean, which the operator cannot give"


def _set(words: str, target: Field | Scalar, value: Any) -> None:
    """Assign a field or scalar, with words as the label of the statement."""
    with labelled(f"conjugate gradients: {words}"):
        target.set(value)


class NullSpace(NamedTuple):
    """Scalars of a solve whose symmetric operator takes constants to zero for some or all parameter values.

    Attributes
    ----------
    share : Scalar
        One over the number of points, or 0 where the parameter values of a solve give no null space.
    allowed : Scalar
        Largest ratio of the squared sum of the right-hand side to its squared norm that is accepted.
    """

    share: Scalar
    allowed: Scalar


@program
def cg(
    A: Operator,
    x: Field,
    b: Any,
    rtol: Scalar,
    max_iterations: Scalar,
    least: Operand = 0.0,
    null_space: NullSpace | None = None,
) -> None:
    """Solve A x = b from the values of x by conjugate gradients with the four vectors x, r, p and q.

    The method is that of UMBC HPCF-2018-10, Section 2. The vector updates and inner products next to each
    other share a sweep; an iteration takes eleven streams of memory. The iteration ends where the squared
    residual norm is at most `least`, or rtol² times the first.
    """
    r, p, q = x.like("r p q", homogeneous=True)
    rho, next_rho, alpha, beta, curvature = own_scalars("rho next_rho alpha beta curvature")
    _set("first residual r = b - A(x)", r, b - A(x))
    _project(r, null_space)
    _set("first search direction p = r", p, r)
    _set("rho = dot(r, r)", rho, dot(r, r))
    goal = _goal(rho, rtol, least)
    with loop(until=rho <= goal, limit=max_iterations, record=rho):
        _set("q = A(p)", q, A(p))
        _set("curvature = dot(p, q)", curvature, dot(p, q))
        _check(curvature)
        alpha.set(rho / curvature)
        _set("solution x + alpha p", x, x + alpha * p)
        _set("residual r - alpha q", r, r - alpha * q)
        _set("next rho = dot(r, r)", next_rho, dot(r, r))
        beta.set(next_rho / rho)
        rho.set(next_rho)
        _set("search direction p = r + beta p", p, r + beta * p)


@program
def cg_fused(
    A: Operator,
    x: Field,
    b: Any,
    rtol: Scalar,
    max_iterations: Scalar,
    least: Operand = 0.0,
    null_space: NullSpace | None = None,
) -> None:
    """Solve A x = b as `cg` does, with two sweeps an iteration and the vectors x, r, p and the next p.

    The first sweep forms the new p, in the halo too, and its product with A for the inner product; the
    second forms that product again instead of reading it back, and updates x and r. Only r is exchanged.
    Eight streams of memory an iteration (r, p read, p' written; p', x, r read, x, r written) instead of the
    fifteen of separate operations.
    """
    r, p = x.like("r p", homogeneous=True)
    rho, old, alpha, curvature = own_scalars("rho old alpha curvature")
    _set("first residual r = b - A(x)", r, b - A(x))
    _project(r, null_space)
    _set("no search direction yet, p = 0", p, 0.0)
    old.set(1.0)
    _set("rho = dot(r, r)", rho, dot(r, r))
    goal = _goal(rho, rtol, least)
    with loop(until=rho <= goal, limit=max_iterations, record=rho):
        new = stage(r + (rho / old) * p, "new_p", storage="inline")
        _set("curvature = dot(p, A(p))", curvature, dot(new, A(new)))
        _set("search direction p = r + (rho / old) p", p, new)
        old.set(rho)
        _check(curvature)
        alpha.set(rho / curvature)
        _set("solution x + alpha p", x, x + alpha * p)
        _set("residual r - alpha A(p)", r, r - alpha * A(p))
        _set("rho = dot(r, r)", rho, dot(r, r))


def _project(r: Field, null_space: NullSpace | None) -> None:
    """Remove the mean of r where there is a null space, and stop where the mean is larger than allowed."""
    if null_space is None:
        return
    total, square = own_scalars("total square")
    _set("sum of the right-hand side", total, total_of(r))
    _set("square = dot(r, r)", square, dot(r, r))
    stop(~(square < float("inf")), BAD_START)
    stop(total * total > null_space.allowed * square, INCOMPATIBLE)
    _set("residual without its mean", r, r - null_space.share * total)


def _goal(rho: Scalar, rtol: Scalar, least: Operand) -> Scalar:
    """Return the squared residual norm at which the iteration ends."""
    stop(~(rho < float("inf")), BAD_START)
    first, goal = own_scalars("first goal")
    first.set(rho)
    goal.set(maximum(rtol * rtol * rho, least))
    return goal


def _check(curvature: Scalar) -> None:
    stop(~(abs(curvature) < float("inf")), NOT_FINITE)
    stop(curvature <= 0.0, BREAKDOWN)


METHODS = {"cg": cg, "cg-fused": cg_fused}


def method_named(name: str) -> ProgramFunction:
    """One of METHODS; raises InputError where there is none of this name."""
    return METHODS[chosen("method", name, sorted(METHODS))]


def solve_program(method: str, A: Operator, x: Field, b: Any, *, null_space: bool = False) -> Program:
    """Return the program of a linear solve.

    Each run of the program needs values of its own scalars `warm` (0: start from zero, 1: from the values of
    x), `rtol`, `least` and `max_iterations`. With a null space it needs `share` and `allowed` too.

    Parameters
    ----------
    method : str
        A key of METHODS.
    A : callable
    x : Field
    b : field or expression
        It must not read x.
    null_space : bool
        True where A is symmetric and may take constants to zero; see NullSpace.
    """
    function = method_named(method)
    warm, rtol, least, most = _scalars("warm rtol least max_iterations")
    constants = NullSpace(*_scalars("share allowed")) if null_space else None
    scalars = _by_name(warm, rtol, least, most, *(constants or ()))
    with trace.tracing(Program(function.name)) as traced:
        traced.parameters.update(scalars)
        _set("start from zero, or from the values of x", x, where(warm > 0.0, x, 0.0))
        function(A, x, b, rtol, most, least, constants)
    return traced


def reference_program(A: Operator, x: Field, b: Any, *, null_space: bool = False) -> Program:
    """Return the program that forms the squared norm of the right-hand side, b - A(0), in scalar `norm`.

    The norm has the bits of the first residual of a start from zero. x keeps its values. With a null space
    the program removes the mean of x, because the solution has zero mean. Parameters are those of
    `solve_program`.
    """
    constants = NullSpace(*_scalars("share allowed")) if null_space else None
    with trace.tracing(Program("reference")) as traced:
        traced.parameters.update(_by_name(*(constants or ())))
        r, p = x.like("r p", homogeneous=True)
        (norm,) = own_scalars("norm")
        _set("copy of x", p, x)
        _set("start from zero", x, 0.0)
        _set("right-hand side r = b - A(0)", r, b - A(x))
        if constants is None:
            _set("restore x", x, p)
        else:
            (mean,) = own_scalars("mean")
            _set("mean of x", mean, constants.share * total_of(p))
            _set("restore x, without its mean", x, p - mean)
        _project(r, constants)  # may stop the program, after the values of x are restored
        _set("squared norm of the right-hand side, dot(r, r)", norm, dot(r, r))
    return traced


def _scalars(names: str) -> list[Scalar]:
    return [Scalar(name, own=True) for name in names.split()]


def _by_name(*scalars: Scalar) -> dict[str, Scalar]:
    return {scalar.name: scalar for scalar in scalars}


@program
def true_residual(A: Callable[[Any], Expr], x: Field, b: Any) -> None:
    """Form the squared norm of b - A x: a sum that no order changes, without a vector in memory.

    Conjugate gradients update their residual by a recursion. In exact arithmetic it equals b - A x. In
    floating point every iteration adds a rounding error to the difference that no later iteration removes.
    The recursion therefore falls without end, while the true residual stays near eps ||A|| max ||x_k||
    (Greenbaum, SIAM J. Matrix Anal. Appl. 18, 1997, 535-551).

    Parameters
    ----------
    A : callable
        The operator.
    x : Field
        The unknown.
    b : field or expression
        The right-hand side. It must not read the unknown.
    """
    (square,) = own_scalars("square")
    correction = {side: condition.homogeneous() for side, condition in x.boundary.items()}
    remainder = placed(with_wall_values(x, b - A(x), correction), x.staggered)
    with labelled("squared norm of the true residual b - A(x)"):
        square.set(dot(remainder, remainder))
