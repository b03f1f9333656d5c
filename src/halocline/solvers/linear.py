"""Linear problems: a stencil operator, a right-hand side, and an iterative method."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halocline.archive.arrays import WritingCost
from halocline.archive.files import as_path
from halocline.errors import BreakdownError, InputError, RunError
from halocline.lang import trace
from halocline.lang.attributes import Sealed
from halocline.lang.callables import argument_count, check_callback
from halocline.lang.clock import Clock, VaryingStepClock
from halocline.lang.expression import Expr, Operators, as_expr, place_of, reads_of, with_location
from halocline.lang.grid import Field, check_options, unknown_name_error
from halocline.lang.location import form_at_target
from halocline.lang.program import Program, internal_name, program
from halocline.lang.reductions import first
from halocline.lang.reductions import value as value_at
from halocline.lang.stepping import Stepping
from halocline.lang.values import as_quantity, as_real
from halocline.ranges import STEPS
from halocline.run.devices.devices import OnDevice
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare
from halocline.run.engine.prepared import Outcome, Prepared
from halocline.run.fields.fields import Fields
from halocline.run.fields.session import Session
from halocline.run.measurements.bandwidth import bandwidth_share
from halocline.run.memory.store import FieldStore
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.ledger import Ledger
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved
from halocline.run.ranks.mpi import communicator_of
from halocline.run.simulation import observers
from halocline.run.simulation.course import Course
from halocline.run.simulation.observers import RunArguments
from halocline.solvers.cg import (
    BAD_START,
    BREAKDOWN,
    INCOMPATIBLE,
    method_named,
    reference_program,
    solve_program,
    true_residual,
)
from halocline.solvers.matrix import Matrix, Probe, Properties, check_linear
from halocline.words import amount, duration, short_repr

log = logging.getLogger("halocline")

STARTS = ("zero", "last")
# Assume a recursive residual within the tolerance, and a true residual above MARGIN times the tolerance. Then
# the difference of the two residuals exceeds the tolerance (triangle inequality). Rounding errors then
# dominate, and further iterations do not reduce them.
MARGIN = 2.0
# Maximum mean of the right-hand side, relative to its norm, that counts as a rounding error.
COMPATIBLE = {"float64": 1e-13, "float32": 1e-6}
REACHED = "reached"  # reason for the end of a run: the residual is within the tolerance
MOST = internal_name("max_iterations")


class Iterations(Session):
    """State of the iterations of a method: vectors, scalars and history.

    The methods of this class are collective: all ranks must call them.

    Parameters
    ----------
    problem : LinearProblem
        Problem whose program is the method: initial statements and a loop.
    values : mapping of str to float
        Scalars of the solve: parameters and the tolerance.

    Attributes
    ----------
    history : array (step, recorded scalars)
    """

    def __init__(self, problem: LinearProblem, values: Mapping[str, float]) -> None:
        stepping = Stepping(problem.program, None, None, False, frozenset())
        super().__init__(problem.fields, stepping, problem.prepared)
        self.history: NDArray[np.float64] = np.zeros((0, 1))
        self._problem, self._values = problem, dict(values)
        self._has_begun = False

    @property
    def clock(self) -> Clock:
        """Clock of the iterations, which have no time step."""
        return VaryingStepClock(self.time, self.step, self.time)

    @property
    def time(self) -> float:
        """Time, which is always 0: iterations have no time."""
        return 0.0

    @property
    def step(self) -> int:
        """Number of completed iterations."""
        return len(self.history)

    def go_on_from(self, facts: Mapping[str, Any]) -> None:
        """Set the history from the facts of a checkpoint, and continue after its iterations; see `facts`."""
        rows = [[float.fromhex(text) for text in row] for row in facts["history"]]
        if rows:
            self.history = np.array(rows, dtype=np.float64)
        self._has_begun = True
        self.use(self._problem._continued())

    def steps_until_check(self, until: float) -> float:
        """Return an infinite limit, because the program itself checks the residual."""
        return math.inf

    def inputs(self, until: float, pause: float, steps: float) -> dict[str, float]:
        """Return the values of scalars for a run; see `Session`."""
        if self._has_begun:
            self.use(self._problem._continued())
        return {**self._values, MOST: steps}

    def store_outcome(self, inputs: Mapping[str, float], outcome: Outcome) -> Outcome:
        """Append the history of a run to the stored history; see `Session`."""
        self._has_begun = True
        self.history = np.concatenate((self.history, outcome.history))
        reached = outcome.reason == "completed" and outcome.loops[0] == "condition"
        return replace(outcome, reason=REACHED) if reached else outcome

    def check(self, before: int, outcome: Outcome) -> None:
        """Raise an error if the method failed; see `Session`."""
        self._problem._raise_failure(outcome, self.step)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a checkpoint, as JSON data."""
        return {"history": [[float(value).hex() for value in row] for row in self.history]}


@dataclass(frozen=True, repr=False)
class Solution(Outcome):
    """Result of a linear solve: reason for the end, wall-clock times, residuals and final fields.

    The recursive residual is the residual that the method updates in each iteration, without a new product
    A x. The true residual is b - A x.

    Attributes
    ----------
    reason : str
        "converged", "rounding limit", "iteration limit" or "interrupted". "rounding limit": the recursive
        residual is small enough, but the true residual is more than twice the allowed norm. Further
        iterations would not reduce the true residual. "interrupted": a signal arrived, even if it arrived too
        late to have an effect.
    seconds, compute, exchange, reduction : float
        Wall-clock times in seconds. `seconds` is the time of the whole solve, without the computation of the
        true residual. The other three are the parts of this time that the first thread spent in kernels,
        halo exchange and reductions.
    overlap : Overlap
        State of the overlap of computation and messages at the end of the solve, and the reason for this
        state.
    converged : bool
        True if both residuals are small enough: the recursive residual is at most rtol times the norm of the
        right-hand side, and the true residual is at most twice this bound.
    iterations : int
        Number of iterations, including the iterations before a resumed checkpoint.
    residuals : array (iterations + 1,)
        Norms of the recursive residual: before the first iteration, and after each iteration.
    true_residual : float
        Norm of b - A x, computed from the solution after the last iteration.
    rhs_norm : float
        Norm of the right-hand side b - A(0), which includes the boundary values and boundary derivatives of
        the unknown. It equals the norm of the first residual in a solve that starts from zero.
    fields : Fields
        Solution by field: ``solution.fields[u]``, ``.gather(u)``, ``.evaluate(hc.max(abs(u)))``,
        ``.checksum(u)``.
    bytes_per_iteration : float
        Minimum memory traffic of one iteration in bytes, summed over all ranks.
    writing : WritingCost
        Cost of output and checkpoints on this rank.
    """

    converged: bool
    iterations: int
    residuals: NDArray[np.float64]
    true_residual: float
    rhs_norm: float
    fields: Fields
    bytes_per_iteration: float
    writing: WritingCost

    def __repr__(self) -> str:
        relative = f"true_residual_relative={self.true_residual_relative:.2g}"
        return f"Solution({self.reason!r}, iterations={self.iterations}, {relative})"

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the solve as text by name, for tables."""
        seconds = self.seconds_per_iteration
        speed = {}
        if seconds:
            rate = f"{amount(self.bytes_per_iteration / seconds)}/s"
            speed = {"time per iteration": duration(seconds), "memory traffic": f"at least {rate}"}
        residual = f"{self.true_residual_relative:.3g}, relative to the right-hand side"
        return {"iterations": f"{self.iterations:,}", "true residual": residual, **super().facts, **speed}

    @property
    def seconds_per_iteration(self) -> float | None:
        """Seconds per iteration, without the first residual; None if this solve had no iteration."""
        return self.loop_seconds / len(self.history) if len(self.history) else None

    @property
    def devices(self) -> tuple[OnDevice, ...]:
        """Devices of all subdomains of all ranks, with the same value on every rank; empty on CPUs."""
        return self.fields.devices

    @property
    def bandwidth_share(self) -> float | None:
        """Share of the memory bandwidth that the iterations reached; None if there was no iteration.

        This property measures the memory bandwidth, and all ranks must read it at the same time.
        """
        seconds, store = self.seconds_per_iteration, self.fields.store
        if seconds is None:
            return None
        return bandwidth_share(store.domain, store.memory_bytes, self.bytes_per_iteration / seconds)

    @property
    def residual_relative(self) -> float:
        """Last norm of the recursive residual divided by `rhs_norm`; 0 if `rhs_norm` is 0."""
        return float(self.residuals[-1]) / self.rhs_norm if self.rhs_norm else 0.0

    @property
    def true_residual_relative(self) -> float:
        """Norm of b - A x divided by `rhs_norm`; 0 if `rhs_norm` is 0."""
        return self.true_residual / self.rhs_norm if self.rhs_norm else 0.0


@program
def keep(copy: Field, b: Any) -> None:
    """Copy a right-hand side."""
    copy.set(b)


class LinearProblem(Sealed):
    """Linear problem A x = b with a stencil operator, compiled and planned once for any number of solves.

    Parameters
    ----------
    operator : callable
        Function of a field (or a stage) that returns the expression of A applied to it.
    unknown_field : Field
        Field of the solution. Its boundary conditions are part of the problem. Its values are the initial
        guess of ``solve(start="last")``.
    rhs : field, expression, number, array, or function of the coordinates
        Right-hand side. The solver evaluates an expression directly in the residual, without an array. An
        expression that reads the unknown, as in an implicit time step, uses the values before the solve. The
        solver copies such an expression to an array.
    method : {"cg", "cg-fused"}
    parameters : mapping of str to float
        Values of the parameters ``hc.parameter(...)`` in the operator or the right-hand side. Assignments
        such as ``problem.parameters["shift"] = 2.0`` change a value for the next solve, without
        recompilation.
    communicator, **execution
        See Simulation.

    Attributes
    ----------
    unknown : Field
    method : str
    fields : Fields
        Fields of the problem as arrays: ``problem.fields[u] = guess``.
    parameters : Parameters
        Parameters, which can be read and changed.
    domain : Domain
        Part of the grid that this rank owns.
    program : Program
        Statements of a solve, as data.
    prepared : Prepared
        Program bound to the engine.
    schedule, plan
        Compiled program, and plan of this rank, as data.

    Raises
    ------
    InputError
        An argument is invalid, or the formula of the operator shows that it is not linear.

    Notes
    -----
    An operator may have constants in its null space. An example is ``-hc.laplacian(u)`` if all sides are
    periodic or have conditions on the derivative. The solution then has zero mean. The right-hand side,
    including the derivatives at the walls, must also have zero mean. Both means are zero up to rounding
    errors.
    """

    advice: ClassVar[Mapping[str, str]] = {
        "parameters": 'set one of them, as in parameters["shift"] = 2.0',
        **dict.fromkeys(("rtol", "max_iterations"), "give it to solve()"),
    }

    def __init__(
        self,
        operator: Callable[[Any], Any],
        unknown_field: Field,
        rhs: Any,
        *,
        method: str = "cg-fused",
        parameters: dict[str, float] | None = None,
        communicator: Any = None,
        **execution: Any,
    ) -> None:
        check_options(execution, LinearProblem.__init__, Execution.__init__)
        method_named(method)
        argument_count(
            operator,
            "the operator",
            (1,),
            "the unknown field alone: read a parameter as hc.parameter(name), with its value in parameters=",
        )
        if not isinstance(unknown_field, Field):
            raise InputError(f"the unknown is {short_repr(unknown_field)}; expected a Field of a grid")
        execution = observers.options(None, {"communicator": communicator, **execution})
        comm = communicator_of(execution.pop("communicator"))
        self.unknown, self.method = unknown_field, method
        grid = unknown_field.grid
        settings = Execution(**execution)
        if settings.balance is not None:
            raise InputError(
                "balance applies to simulations only, because subdomains move between steps. Leave it out."
            )
        store = FieldStore(Domain(grid, comm, settings))
        self.domain = store.domain
        self.fields = Fields(store, {} if parameters is None else parameters)
        self.parameters = self.fields.parameters
        b, filling = self._right_hand_side(rhs)
        self._programs: dict[str, Prepared] = {}  # auxiliary programs
        if any(read is unknown_field for read, _ in reads_of(as_expr(b))):
            copy = self._rhs_field()
            self._auxiliary("keep", partial(keep.trace, copy, b))
            b = copy
        self._rhs = as_expr(b)

        def linear(v: Any) -> Expr:
            result = check_linear(trace.call(operator, v), v, unknown_field.name)
            return with_location(
                form_at_target(result, unknown_field.staggered, "the operator"), unknown_field.staggered
            )

        self._operator = linear
        with trace.tracing(Program("matrix")) as statements:
            formula = linear(unknown_field)
        if store.domain.comm.rank == 0:
            for notice in statements.notices:
                log.warning("%s", notice)
        self._matrix = Matrix(formula, unknown_field, statements)
        matrix = self._matrix.properties(self.fields.values)
        # a later value of a parameter may give a null space, for example a shift of 0
        self._may_be_singular = bool(self._matrix.parameters) or (
            matrix.symmetric is not False and matrix.singular is not False
        )
        self.program = solve_program(
            method, linear, unknown_field, self._rhs, null_space=self._may_be_singular
        )
        observers.notify_created(self)
        self._probe: Probe | None = None
        self._is_asymmetry_known = False
        self.prepared = prepare(store, self.program, (*self.fields.values, *self.program.parameters))
        self.schedule, self.plan = self.prepared.schedule, self.prepared.plan
        self._auxiliary("true residual", partial(true_residual.trace, linear, unknown_field, b))
        self._rhs_expression = None if filling is None else b
        if filling is not None:
            self.fields[b] = filling

    def _bad_start(self) -> str:
        """Return the error text for a right-hand side that is not finite; fields were checked before."""
        b = self._rhs
        if b.varies:
            number = self.fields.evaluate(first(~(abs(b) < math.inf)))
            if math.isfinite(number):
                points = self.unknown.grid.points(place_of(b))
                cell = tuple(int(i) for i in np.unravel_index(int(number), points))
                return f"the right-hand side is {self.fields.evaluate(value_at(b, cell)):g} at cell {cell}"
        return BAD_START

    def _right_hand_side(self, rhs: Any) -> tuple[Any, Any]:
        """Return the right-hand side as an expression, and the array or function that fills its field."""
        u = self.unknown
        if callable(rhs) and not isinstance(rhs, Operators):
            traced = self.fields.traced(u, rhs)
            if isinstance(traced, Exception):
                return self._rhs_field(), rhs
            rhs = traced
        if isinstance(rhs, Operators) or as_real(rhs) is not None:
            expression = form_at_target(as_expr(rhs), u.staggered, "the right-hand side")
            if expression.grid is not None and expression.grid is not u.grid:
                raise InputError(
                    f"the right-hand side belongs to another grid, {expression.grid!r}, than the unknown "
                    f"{u.name!r}, which belongs to {u.grid!r}"
                )
            return expression, None
        shape, points = getattr(rhs, "shape", None), u.points
        if shape is None:
            raise InputError(
                f"the right-hand side is {short_repr(rhs)}; expected a field, an expression, a number, an "
                "array or a function"
            )
        if tuple(shape) != points:
            raise InputError(
                f"the right-hand side has shape {tuple(shape)}, but the unknown {u.name!r} has shape {points}"
            )
        return self._rhs_field(), rhs

    def _rhs_field(self) -> Field:
        """Return the field of the right-hand side, which all problems with this unknown share."""
        u = self.unknown
        return u.grid.work_field("rhs", ("rhs", u.name), lambda free: u.like(free, homogeneous=True))

    def solve(
        self,
        *,
        rtol: float = 1e-6,
        max_iterations: int | None = None,
        start: str = "zero",
        output: Output | Sequence[Output] = (),
        checkpoint: Checkpoint | None = None,
        resume: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Solution:
        """Solve the problem to a residual norm of at most `rtol` times the norm of the right-hand side.

        The method updates its recursive residual in each iteration, and ends when this residual is small
        enough. The solver then computes the true residual b - A x. The log contains a warning if the norm of
        the true residual is more than twice the allowed norm.

        Parameters
        ----------
        rtol : float
            Tolerance, positive and below 1, relative to the norm of b - A(0). Here b is `rhs`, and A(0)
            contains the boundary values and boundary derivatives. The tolerance does not depend on the
            initial guess.
        max_iterations : int, optional
            Iteration limit; by default, ten times the number of unknowns. The log contains a warning if a
            solve ends at the default.
        start : {"zero", "last"}
            Initial guess. "zero" starts from zero. "last" starts from the values of the unknown: the solution
            of the last solve, or values from an assignment ``problem.fields[u] = guess``. If the right-hand
            side is zero, the solution is zero for both values of `start`. A resumed solve ignores `start`.
        output : Output, or sequence of them, optional
            Output during the solve; steps are iterations.
        checkpoint : Checkpoint, optional
            Folder of checkpoints, and their interval in iterations or wall-clock time.
        resume : str or path, optional
            Checkpoints of the same problem from which the solve restarts. The number of ranks may differ from
            that of the earlier solve, and the results are bit-for-bit identical. The iteration count
            includes the iterations of the earlier solve. The tolerance may differ too.
        on_progress : callable, optional
            Callback with the number of completed iterations. Another thread calls it a few times per second.

        Raises
        ------
        InputError
            A tolerance or limit is out of range, or a value is not finite. Output or checkpoints are not
            possible, or other files prevent them. The checkpoint to resume is damaged or belongs to another
            problem. The operator has constants in its null space, and the mean of the right-hand side exceeds
            the tolerance and rounding errors.
        RunError
            Output or a checkpoint cannot be written.
        BreakdownError
            The operator is not symmetric and positive definite. Before the first iteration, the log contains
            a warning for an operator that is not symmetric.
        Stopped
            With `checkpoint`: a signal ended the solve, and a checkpoint was written.
        """
        rtol = check_limits(rtol, max_iterations, start)
        if on_progress is not None:
            check_callback(on_progress, "on_progress", "the number of iterations")
        run_arguments = RunArguments(
            steps=max_iterations, output=output, checkpoint=checkpoint, on_progress=on_progress,
            resume=resume, rtol=rtol,
        )  # fmt: skip
        solution: Solution = observers.wrap_run(self, partial(self._solve, start))(run_arguments)
        return solution

    def _solve(self, start: str, arguments: RunArguments) -> Solution:
        """Solve the problem; see `solve`."""
        rtol, max_iterations, resume = arguments.rtol, arguments.steps, arguments.resume
        assert rtol is not None
        limit_given = max_iterations is not None
        if max_iterations is None:
            max_iterations = 10 * math.prod(self.unknown.grid.shape)
        ledger = Ledger(self.domain.comm)
        self.fields.check_inputs("before the solve")
        self._warn_of_asymmetry()
        inputs, norm_square = self._inputs(rtol), None
        if resume is None and "keep" in self._programs:
            self._programs["keep"].run(self.fields.values)
        if resume is None and start == "last":
            norm_square = self._norm_of_rhs(inputs)
            inputs |= {
                internal_name("warm"): float(norm_square > 0.0),
                internal_name("rtol"): 0.0,
                internal_name("least"): rtol * rtol * norm_square,
                internal_name("allowed"): math.inf,
            }
        iterating = Iterations(self, {**self.fields.values, **inputs})
        if resume is not None:
            norm_square = self._resume(iterating, ledger, as_path(resume, "resume"), rtol)

        def rhs_square() -> float:
            return iterating.scalars()[internal_name("first")] if norm_square is None else norm_square

        def facts() -> dict[str, Any]:
            method_facts = {"method": self.method, "rhs_square": rhs_square().hex()}
            return method_facts | iterating.facts() | observers.facts(self)

        output, checkpoint, parameters = arguments.output, arguments.checkpoint, dict(self.parameters)
        files = ledger.files(
            iterating, self.method, parameters, output=output, checkpoint=checkpoint, extra_facts=facts
        )
        with files.ready(iterating.step):
            outcome = Course(iterating, files).run(math.inf, float(max_iterations), arguments.on_progress)
        squares = np.concatenate(([outcome.scalars[internal_name("first")]], iterating.history[:, 0]))
        is_small = outcome.loops[0] == "condition"
        residual = self._programs["true residual"].run(self.fields.values)
        true_norm, rhs_norm = math.sqrt(residual.scalars[internal_name("square")]), math.sqrt(rhs_square())
        converged = is_small and true_norm <= MARGIN * rtol * rhs_norm
        reason = outcome.reason
        if reason != "interrupted":
            reason = ("converged" if converged else "rounding limit") if is_small else "iteration limit"
        solution = Solution(
            **{**vars(outcome), "reason": reason},
            converged=converged,
            iterations=iterating.step,
            residuals=np.sqrt(squares),
            true_residual=true_norm,
            rhs_norm=rhs_norm,
            fields=self.fields,
            bytes_per_iteration=self.prepared.bytes_per_pass * self.unknown.grid.active_cells,
            writing=files.writing,
        )
        if reason == "rounding limit" and self.domain.comm.rank == 0:
            log.warning("%s: %s", self.method, rounding_warning(solution, rtol))
        if reason == "iteration limit" and self.domain.comm.rank == 0:
            # the user may choose a low limit on purpose, for example in measurements
            log.log(
                logging.INFO if limit_given else logging.WARNING,
                "%s: not converged after %d iterations: the residual is %.2g times the right-hand side, "
                "above rtol=%g. Raise max_iterations or rtol, or check the operator.",
                self.method, solution.iterations, solution.residual_relative, rtol,
            )  # fmt: skip
        return solution

    def _auxiliary(self, name: str, trace_program: Callable[[], Program]) -> Prepared:
        """Return an auxiliary program, which is prepared at its first use; all ranks call this method."""
        if name not in self._programs:
            traced = trace_program()
            known = (*self.fields.values, *traced.parameters)
            self._programs[name] = prepare(self.fields.store, traced, known)
        return self._programs[name]

    def _continued(self) -> Prepared:
        """Return the program that continues the loop of a solve after a pause; all ranks call this method."""
        return self._auxiliary("continued", self.program.continuation)

    def _inputs(self, rtol: float) -> dict[str, float]:
        """Return the inputs of the program for a solve from zero."""
        inputs = {internal_name("warm"): 0.0, internal_name("rtol"): rtol, internal_name("least"): 0.0}
        if self._may_be_singular:
            share, allowed = 0.0, math.inf
            if self._takes_constants_to_zero():
                points = math.prod(self.unknown.points)
                share = 1.0 / points
                # The residual cannot become smaller than the mean of the right-hand side.
                allowed = points * max(rtol, COMPATIBLE[self.unknown.dtype]) ** 2
            inputs |= {internal_name("share"): share, internal_name("allowed"): allowed}
        return inputs

    def _norm_of_rhs(self, inputs: dict[str, float]) -> float:
        """Return the squared norm of the right-hand side.

        The values of the unknown do not change, unless the operator has a null space. The program then
        removes the mean of the unknown.
        """
        reference = partial(
            reference_program, self._operator, self.unknown, self._rhs, null_space=self._may_be_singular
        )
        outcome = self._auxiliary("reference", reference).run({**self.fields.values, **inputs})
        self._raise_failure(outcome, 0)
        return outcome.scalars[internal_name("norm")]

    def _probed_properties(self) -> Properties:
        """Return the properties of the operator, found by products with random vectors.

        All ranks call this method.
        """
        if self._probe is None:
            self._probe = Probe(self.fields, self._operator, self.unknown)
        return self._probe.properties()

    def _takes_constants_to_zero(self) -> bool:
        """Return True if the operator is symmetric with constants in its null space.

        All ranks call this method.
        """
        matrix = self._matrix.properties(self.fields.values)
        if matrix.symmetric is False or matrix.singular is False:
            return False
        if matrix.symmetric and matrix.singular:
            return True
        probed = self._probed_properties()
        symmetric = probed.symmetric if matrix.symmetric is None else matrix.symmetric
        return bool(symmetric and (probed.singular if matrix.singular is None else matrix.singular))

    def _asymmetry(self) -> str | None:
        """Return a description of an asymmetry of the operator, or None if there is none."""
        properties = self._matrix.properties(self.fields.values)
        if properties.symmetric is None:
            properties = self._probed_properties()
        return None if properties.asymmetry is None else str(properties.asymmetry)

    def _warn_of_asymmetry(self) -> None:
        """Warn once if the operator is not symmetric; all ranks call this method.

        If constants cannot be in the null space, products with the operator are computed only before the
        first solve.
        """
        matrix = self._matrix.properties(self.fields.values)
        is_probed = matrix.symmetric is None and matrix.singular is False and self._probe is not None
        if self._is_asymmetry_known or is_probed:
            return
        asymmetry = self._asymmetry()
        self._is_asymmetry_known = asymmetry is not None
        if asymmetry is not None and self.domain.comm.rank == 0:
            log.warning(
                "%s: the operator is not symmetric (%s); conjugate gradients need a symmetric operator and "
                "may not converge",
                self.method,
                asymmetry,
            )

    def _raise_failure(self, outcome: Outcome, iteration: int) -> None:
        """Raise an error if the iterations ended with an error."""
        reason = outcome.reason
        if reason in (REACHED, "completed", "paused", "interrupted"):
            return
        if reason == BAD_START:
            raise InputError(f"{self.method}: {self._bad_start()}")
        if reason == INCOMPATIBLE:
            mean = outcome.scalars[internal_name("total")] / math.prod(self.unknown.points)
            raise InputError(
                f"{self.method}: the right-hand side, including the boundary derivatives, has the mean "
                f"{mean:g}, but the operator maps constants to zero. A solution exists only for the "
                f"mean 0. Subtract {mean:g} from the right-hand side, or prescribe "
                f"{self.unknown.name!r} at a wall."
            )
        value = outcome.scalars[internal_name("curvature")]
        message = f"{self.method} broke down in iteration {iteration + 1}: {reason} ({value:g})"
        if reason == BREAKDOWN:
            raise BreakdownError(f"{message}; {self._indefiniteness_reason()}")
        raise RunError(message)

    def _indefiniteness_reason(self) -> str:
        """Return a likely reason for a curvature that is not positive, with a remedy."""
        asymmetry = self._asymmetry()
        if asymmetry is not None:
            return f"nor is it symmetric: {asymmetry}"
        if self._matrix.properties(self.fields.values).negative:
            return (
                "its diagonal is negative: change the sign of the operator and of the right-hand side, as in "
                "-hc.laplacian(u)"
            )
        return "it is indefinite or singular: check the signs of its terms"

    def _check_saved_inputs(self, saved: Saved) -> None:
        """Raise InputError if coefficients or right-hand side differ from a checkpoint."""
        used_names = {info.name for info in self.schedule.fields}
        grid, b = self.fields.grid, self._rhs_expression
        input_fields = [f for f in grid.fields.values() if f.name in used_names and not grid.is_work_field(f)]
        for f in [*input_fields, *([] if b is None else [b])]:
            checksum = saved.facts["fields"].get(f.name, {}).get("checksum")
            if f is not self.unknown and self.fields.checksum(f) != checksum:
                subject = "the right-hand side has" if f is b else f"field {f.name!r} has"
                raise InputError(
                    f"{subject} other values than in checkpoint {saved.folder}: the checkpoint belongs to "
                    "another problem"
                )

    def _resume(self, iterating: Iterations, ledger: Ledger, path: Path, rtol: float) -> float:
        """Restore a checkpoint of this problem, and return the squared norm of the right-hand side."""
        saved, _ = ledger.read(path, iterating, dict(self.parameters))
        self._check_saved_inputs(saved)
        iterating.go_on_from(saved.facts)
        restart.load_state(iterating, saved, {})
        norm_square = float.fromhex(saved.facts["rhs_square"])
        iterating.set_scalars({internal_name("goal"): rtol * rtol * norm_square})
        ledger.resume(saved)
        return norm_square


def rounding_warning(solution: Solution, rtol: float) -> str:
    """Return the warning for a solve that rounding errors limit."""
    true = solution.true_residual_relative
    return (
        f"the recursive residual reached rtol={rtol:g}, but the true residual b - A x stagnates at "
        f"{true:.2g} because of rounding errors. Use rtol={reachable(true):g} or larger."
    )


def reachable(relative: float) -> float:
    """Return a tolerance that a solve can reach if the last solve ended at this relative true residual.

    The result is the relative true residual, rounded up to one digit.

    Examples
    --------
    >>> reachable(2.1e-12)
    3e-12
    """
    power = math.floor(math.log10(relative))
    return float(f"{math.ceil(relative / 10.0**power)}e{power}")


def check_limits(rtol: float, max_iterations: int | None, start: str = "zero") -> float:
    """Check the arguments of a solve, and return the tolerance as a float.

    Raises
    ------
    InputError
        The tolerance, the limit or the start is invalid.
    """
    tolerance = as_quantity(rtol)
    if tolerance is None or not 0 < tolerance < 1:
        raise InputError(f"rtol is {short_repr(rtol)}; expected a positive number below 1, such as 1e-6")
    if max_iterations is not None:
        STEPS.check("max_iterations", max_iterations)
    if start not in STARTS:
        raise unknown_name_error("start", start, STARTS)
    return tolerance


def solve(operator: Callable[[Any], Any], unknown_field: Field, rhs: Any, **options: Any) -> Solution:
    """Solve A x = b for a linear stencil operator.

    Parameters
    ----------
    operator : callable
        ``lambda u: -hc.laplacian(u)``
    unknown_field : Field
        Field of the solution.
    rhs : field, expression, number, array, or function of the coordinates
    **options
        Options of LinearProblem.solve and LinearProblem.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((63, 63), walls="node")
    >>> u = grid.field("u", boundary=hc.Value(0))
    >>> solution = hc.solve(lambda u: -hc.laplacian(u), u, 1.0, rtol=1e-8)
    >>> solution.reason
    'converged'
    """
    check_options(options, LinearProblem.__init__, LinearProblem.solve, Execution.__init__)
    solve_options = {k: options.pop(k) for k in LinearProblem.solve.__kwdefaults__ or () if k in options}
    check_limits(
        solve_options.get("rtol", 1e-6),
        solve_options.get("max_iterations"),
        solve_options.get("start", "zero"),
    )
    return LinearProblem(operator, unknown_field, rhs, **options).solve(**solve_options)
