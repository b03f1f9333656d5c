"""Matrix-free conjugate gradients (Hestenes and Stiefel 1952), as programs that the engine runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from halocline.lang import trace
from halocline.lang.boundary import with_wall_values
from halocline.lang.expression import Expr, Operand, where, with_location
from halocline.lang.functions import maximum
from halocline.lang.grid import Field, checked_choice
from halocline.lang.program import (
    Program,
    ProgramFunction,
    Scalar,
    internal_scalars,
    label_statements,
    loop,
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
INCOMPATIBLE = "the mean of the right-hand side is not 0, but the operator maps constants to zero"


def _set(words: str, target: Field | Scalar, value: Any) -> None:
    """Assign a field or scalar; `words` is the label of the statement."""
    with label_statements(f"conjugate gradients: {words}"):
        target.set(value)


class NullSpace(NamedTuple):
    """Scalars of a solve whose symmetric operator may have constants in its null space.

    The parameter values of a solve decide if the operator is singular.

    Attributes
    ----------
    share : Scalar
        One over the number of points, or 0 if the operator has no null space for the parameter values of a
        solve.
    allowed : Scalar
        Maximum accepted value of the squared sum of the right-hand side, divided by its squared norm.
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
    """Solve A x = b by conjugate gradients, with the values of x as initial guess.

    The method is that of UMBC HPCF-2018-10, Section 2, with the four vectors x, r, p and q. Adjacent vector
    updates and inner products share a sweep. An iteration reads or writes eleven vectors in memory. The
    iterations end when the squared residual norm is at most the larger of two bounds: `least`, and rtol²
    times the squared norm of the first residual.
    """
    r, p, q = x.like("r p q", homogeneous=True)
    rho, next_rho, alpha, beta, curvature = internal_scalars("rho next_rho alpha beta curvature")
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
    """Solve A x = b like `cg`, with two sweeps per iteration and the vectors x, r, p and the next p.

    The first sweep reads r and p, and writes the new p. It computes the new p also in the halo, and
    multiplies it by A for the inner product. The second sweep reads the new p, x and r, and writes x and r.
    It computes the product with A again, instead of reading it from memory. Only r is exchanged. An iteration
    reads or writes eight vectors in memory. With a separate sweep for each operation, an iteration
    would read or write fifteen vectors.
    """
    r, p = x.like("r p", homogeneous=True)
    rho, old, alpha, curvature = internal_scalars("rho old alpha curvature")
    _set("first residual r = b - A(x)", r, b - A(x))
    _project(r, null_space)
    _set("no search direction yet, p = 0", p, 0.0)
    old.set(1.0)
    _set("rho = dot(r, r)", rho, dot(r, r))
    goal = _goal(rho, rtol, least)
    with loop(until=rho <= goal, limit=max_iterations, record=rho):
        new_p = stage(r + (rho / old) * p, "new_p", storage="inline")
        _set("curvature = dot(p, A(p))", curvature, dot(new_p, A(new_p)))
        _set("search direction p = r + (rho / old) p", p, new_p)
        old.set(rho)
        _check(curvature)
        alpha.set(rho / curvature)
        _set("solution x + alpha p", x, x + alpha * p)
        _set("residual r - alpha A(p)", r, r - alpha * A(p))
        _set("rho = dot(r, r)", rho, dot(r, r))


def _project(r: Field, null_space: NullSpace | None) -> None:
    """Remove the mean of r if there is a null space, and stop if the mean is larger than allowed."""
    if null_space is None:
        return
    total, square = internal_scalars("total square")
    _set("sum of the right-hand side", total, total_of(r))
    _set("square = dot(r, r)", square, dot(r, r))
    stop(~(square < float("inf")), BAD_START)
    stop(total * total > null_space.allowed * square, INCOMPATIBLE)
    _set("residual without its mean", r, r - null_space.share * total)


def _goal(rho: Scalar, rtol: Scalar, least: Operand) -> Scalar:
    """Return the squared residual norm at which the iterations end."""
    stop(~(rho < float("inf")), BAD_START)
    first, goal = internal_scalars("first goal")
    first.set(rho)
    goal.set(maximum(rtol * rtol * rho, least))
    return goal


def _check(curvature: Scalar) -> None:
    stop(~(abs(curvature) < float("inf")), NOT_FINITE)
    stop(curvature <= 0.0, BREAKDOWN)


METHODS = {"cg": cg, "cg-fused": cg_fused}


def method_named(name: str) -> ProgramFunction:
    """Return the method of this name in METHODS; raise InputError if there is none."""
    return METHODS[checked_choice("method", name, sorted(METHODS))]


def solve_program(method: str, A: Operator, x: Field, b: Any, *, null_space: bool = False) -> Program:
    """Return the program of a linear solve.

    Each run of the program requires values of its scalars `warm` (0: start from zero, 1: from the values of
    x), `rtol`, `least` and `max_iterations`. With a null space, it also requires `share` and `allowed`.

    Parameters
    ----------
    method : str
        A key of METHODS.
    A : callable
    x : Field
    b : field or expression
        Right-hand side; it must not read x.
    null_space : bool
        True if A is symmetric and may have constants in its null space; see NullSpace.
    """
    function = method_named(method)
    warm, rtol, least, max_iterations = _scalars("warm rtol least max_iterations")
    constants = NullSpace(*_scalars("share allowed")) if null_space else None
    scalars = _by_name(warm, rtol, least, max_iterations, *(constants or ()))
    with trace.tracing(Program(function.name)) as traced:
        traced.parameters.update(scalars)
        _set("start from zero, or from the values of x", x, where(warm > 0.0, x, 0.0))
        function(A, x, b, rtol, max_iterations, least, constants)
    return traced


def reference_program(A: Operator, x: Field, b: Any, *, null_space: bool = False) -> Program:
    """Return the program that computes the squared norm of the right-hand side b - A(0) as the scalar `norm`.

    The norm is bit-for-bit equal to the norm of the first residual in a solve that starts from zero. The
    values of x do not change, unless the operator has a null space. The program then removes the mean of x,
    because the solution has zero mean. For the parameters see `solve_program`.
    """
    constants = NullSpace(*_scalars("share allowed")) if null_space else None
    with trace.tracing(Program("reference")) as traced:
        traced.parameters.update(_by_name(*(constants or ())))
        r, p = x.like("r p", homogeneous=True)
        (norm,) = internal_scalars("norm")
        _set("copy of x", p, x)
        _set("start from zero", x, 0.0)
        _set("right-hand side r = b - A(0)", r, b - A(x))
        if constants is None:
            _set("restore x", x, p)
        else:
            (mean,) = internal_scalars("mean")
            _set("mean of x", mean, constants.share * total_of(p))
            _set("restore x, without its mean", x, p - mean)
        _project(r, constants)  # may stop the program, after the values of x are restored
        _set("squared norm of the right-hand side, dot(r, r)", norm, dot(r, r))
    return traced


def _scalars(names: str) -> list[Scalar]:
    return [Scalar(name, internal=True) for name in names.split()]


def _by_name(*scalars: Scalar) -> dict[str, Scalar]:
    return {scalar.name: scalar for scalar in scalars}


@program
def true_residual(A: Callable[[Any], Expr], x: Field, b: Any) -> None:
    """Compute the squared norm of the true residual b - A x, without storing the residual in memory.

    The result does not depend on the order of summation.

    Conjugate gradients update a recursive residual in each iteration. In exact arithmetic, it equals the true
    residual. In floating point, every iteration adds a rounding error to the difference of the two residuals,
    and later iterations do not remove this error. The recursive residual therefore decreases without limit.
    The true residual does not fall below about eps ||A|| max ||x_k|| (Greenbaum, SIAM J. Matrix Anal. Appl.
    18, 1997, 535-551).

    Parameters
    ----------
    A : callable
        Operator.
    x : Field
        Unknown.
    b : field or expression
        Right-hand side. It must not read the unknown.
    """
    (square,) = internal_scalars("square")
    correction = {side: condition.homogeneous() for side, condition in x.boundary.items()}
    remainder = with_location(with_wall_values(x, b - A(x), correction), x.staggered)
    with label_statements("squared norm of the true residual b - A(x)"):
        square.set(dot(remainder, remainder))
