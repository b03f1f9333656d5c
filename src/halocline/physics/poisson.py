"""The elliptic problem -Δu = f on the unit interval, square or cube, u = 0 on its boundary.

The problem, its discretisation and its numbers are those of K. Arora, C. Barajas and M. K. Gobbert,
Parallel Performance Studies for an Elliptic Test Problem on the Stampede2 Cluster, UMBC HPCF-2018-10,
Sections 2 and 3; here in one to three dimensions. The exact solution is u = Π sin²(π x_i), so that
f = -2 π² Σ_i cos(2 π x_i) Π_(j≠i) sin²(π x_j).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.lang.boundary import Value
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.program import Program, Scalar
from halocline.lang.reductions import max as largest
from halocline.run.bandwidth import triad_bandwidth
from halocline.solvers.cg import METHODS
from halocline.solvers.linear import LinearProblem, Solution, check_limits

VECTORS = 4  # that conjugate gradients keep: x, r, p, and q or the next p


@dataclass(frozen=True)
class Poisson:
    """The equations on n points an axis, h = 1 / (n + 1) apart; walls lie h beyond the outer ones."""

    grid: Grid
    u: Field

    @classmethod
    def on(cls, n: int, dim: int = 2) -> Poisson:
        """The problem with n interior points along each of `dim` axes.

        Raises
        ------
        InputError
            `n` is below one, or `dim` is none of 1, 2, 3.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"n is {n!r}; expected the number of interior points along an axis, from 1")
        if isinstance(dim, bool) or dim not in (1, 2, 3):
            raise InputError(f"dim is {dim!r}; expected 1, 2 or 3")
        grid = Grid((n,) * dim, walls="node")
        return cls(grid, grid.field("u", boundary=Value(0)))

    def operator(self, v: Any) -> Expr:
        """h² times the negative Laplacian: 2 dim v less the sum of the neighbours (Eqs. 2.2 and 2.3)."""
        axes = range(self.grid.ndim)
        steps = [tuple(side * (a == axis) for a in axes) for axis in axes for side in (-1, 1)]
        around: Expr = v[steps[0]]
        for step in steps[1:]:
            around = around + v[step]
        return as_expr(2 * self.grid.ndim * v - around)

    @property
    def rhs(self) -> Expr:
        """h² f (Eq. 3.1)."""
        x = self.u.coordinates
        terms = [cos(2 * math.pi * x[i]) * _product(x[:i] + x[i + 1 :]) for i in range(len(x))]
        return self.grid.h(0) ** 2 * (-2 * math.pi**2 * sum(terms[1:], start=terms[0]))

    @property
    def exact(self) -> Expr:
        """The solution of the differential equation at the points."""
        return _product(self.u.coordinates)

    @property
    def error(self) -> Expr:
        """The computed solution less the exact one."""
        return self.u - self.exact

    def program(self, method: str) -> Program:
        """What is compiled for a method, without any memory or rank: for `halocline explain`."""
        check_method(method)
        limits = Scalar("rtol", own=True), Scalar("max_iterations", own=True)
        return METHODS[method].trace(self.operator, self.u, self.rhs, *limits)


def _product(coordinates: Sequence[Expr]) -> Expr:
    """Π sin²(π x) over some coordinates."""
    return math.prod((sin(math.pi * x) ** 2 for x in coordinates), start=as_expr(1.0))


def check_method(method: str) -> None:
    """Raise InputError where there is no such method."""
    if method not in METHODS:
        raise unknown("method", method, sorted(METHODS))


@dataclass(frozen=True)
class Record:
    """What one solve did, the same on all ranks; the keys of ``halocline solve poisson --json``.

    Attributes
    ----------
    n, dof : int
        Points along an axis, and in all.
    iterations : int
    converged : bool
    error_max : float
        The greatest difference from the exact solution.
    seconds : float
        Wall clock of the whole solve, from barrier to barrier.
    seconds_per_iteration : float or None
        Of the iterations alone, without the first residual; None where there was no iteration.
    residual_relative : float
        The last residual norm over the first.
    checksum : str
        A hash of the solution's bits in global order: 32 hexadecimal digits.
    ranks, threads : int
        Threads are those of one rank.
    memory_bytes : int
        Resident memory after the solve (VmRSS), summed over the ranks.
    bytes_per_iteration : float
        That must cross memory in one iteration, all ranks together.
    bandwidth_share : float or None
        Their rate, over that of a += s * b on the same threads in the same run.
    """

    n: int
    dof: int
    iterations: int
    converged: bool
    error_max: float
    seconds: float
    seconds_per_iteration: float | None
    residual_relative: float
    checksum: str
    ranks: int
    threads: int
    memory_bytes: int
    bytes_per_iteration: float
    bandwidth_share: float | None


@dataclass(frozen=True)
class Result:
    """A record, and what it is a record of.

    Attributes
    ----------
    record : Record
    bandwidth : float
        Bytes a second of a += s * b on all ranks at once.
    solution : Solution
    equations : Poisson
    """

    record: Record
    bandwidth: float
    solution: Solution = field(repr=False)
    equations: Poisson = field(repr=False)


def solve(
    n: int,
    dim: int = 2,
    *,
    method: str = "cg-fused",
    rtol: float = 1e-6,
    max_iterations: int | None = None,
    threads: int | None = None,
    decomposition: str | Sequence[int] = "optimal",
    patch: int | Sequence[int] | None = None,
    communicator: Any = None,
    on_progress: Callable[[int], None] | None = None,
) -> Result:
    """Solve the problem from a zero initial guess, and compare with the exact solution; all ranks call this.

    Parameters
    ----------
    n : int
        Interior points along each axis.
    dim : {1, 2, 3}
    method : str
        One of halocline.solvers.cg.METHODS.
    rtol : float
        Iterations end where the residual norm is at most `rtol` times the first.
    max_iterations : int, optional
        The run ends there too, not converged.
    threads, decomposition, patch, communicator
        See halocline.LinearProblem; the result's bits do not depend on them.
    on_progress : callable, optional
        Called with the iterations done, a few times a second.

    Returns
    -------
    Result

    Raises
    ------
    InputError
    KeyboardInterrupt
        SIGINT or SIGTERM came, and all ranks have agreed to end; it says after how many iterations.

    Examples
    --------
    >>> from halocline.physics import poisson
    >>> poisson.solve(64).record.converged
    True
    """
    check_method(method)
    check_limits(rtol, max_iterations)
    equations = Poisson.on(n, dim)
    problem = LinearProblem(
        equations.operator,
        equations.u,
        equations.rhs,
        method=method,
        communicator=communicator,
        threads=threads,
        decomposition=decomposition,
        patch=patch,
    )
    solution = problem.solve(rtol=rtol, max_iterations=max_iterations, on_progress=on_progress)
    if solution.reason == "interrupted":
        raise KeyboardInterrupt(f"interrupted after {solution.iterations} iterations")
    domain = problem.fields.domain
    memory = sum(domain.comm.allgather(resident_bytes()))
    bandwidth = triad_bandwidth(domain.comm, problem.plan.threads, problem.plan.memory)
    each = solution.seconds_per_iteration
    record = Record(
        n=n,
        dof=n**dim,
        iterations=solution.iterations,
        converged=solution.converged,
        error_max=solution.fields.evaluate(largest(magnitude(equations.error))),
        seconds=solution.seconds,
        seconds_per_iteration=each,
        residual_relative=solution.residual_relative,
        checksum=solution.fields.checksum(equations.u),
        ranks=domain.comm.size,
        threads=problem.plan.threads,
        memory_bytes=memory,
        bytes_per_iteration=solution.bytes_per_iteration,
        bandwidth_share=solution.bytes_per_iteration / each / bandwidth if each else None,
    )
    return Result(record, bandwidth, solution, equations)


def predicted_bytes(n: int, dim: int) -> int:
    """Memory that the vectors of conjugate gradients take: 4 n^dim numbers of 8 bytes (Section 3)."""
    return VECTORS * 8 * int(n**dim)


def resident_bytes() -> int:
    """Resident memory of this process, as the kernel counts it (VmRSS)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise InputError("/proc/self/status names no VmRSS")
