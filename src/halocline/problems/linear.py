"""A case that is a linear problem, solved once and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.archive.reader import Store
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Program
from halocline.lang.reductions import max as largest
from halocline.physics.case import LinearSetup
from halocline.physics.cases import case_named
from halocline.problems.case import CaseRun
from halocline.problems.record import Timing, checksums
from halocline.problems.result import Result
from halocline.run.engine.prepared import interruption
from halocline.run.fields.fields import Fields
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved, newest
from halocline.solvers.cg import solve_program
from halocline.solvers.linear import LinearProblem, Solution, check_limits
from halocline.words import counted


class LinearCase(CaseRun):
    """A case that is a linear problem, ready to be solved.

    Parameters
    ----------
    name, n, given, dim
        As for `CaseRun`.
    order : None
        Operators have their own.
    scheme : str, optional
        The method, as the parameter of that name.

    Raises
    ------
    InputError
        What `CaseRun` raises.
    """

    unit, one_pass = "iteration", "an iteration"
    is_program = True
    until = None
    columns = ("residual_relative", "true_residual_relative")
    ends = ()
    linear: LinearSetup

    def __init__(
        self,
        name: str,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        *,
        dim: int | None = None,
        order: int | None = None,
        scheme: str | None = None,
    ) -> None:
        self.name, self.case = name, case_named(name)
        self.values = self.case.values({**(given or {}), **({} if scheme is None else {"method": scheme})})
        self.shape = self.case.shape_of(n, dim)
        made = self.case.setup(self.shape, self.values)
        assert isinstance(made, LinearSetup)
        self.linear, self.scheme, self.order = made, made.method, self.case.order
        self._refuse("order", order)

    @classmethod
    def of_checkpoint(
        cls,
        name: str,
        path: str | Path,
        n: Sequence[int] | None = None,
        given: Mapping[str, float | str] | None = None,
        **options: Any,
    ) -> LinearCase:
        """The case that left a checkpoint, with its points, axes and method where others are not given.

        Raises
        ------
        InputError
            There is no checkpoint, or that of something else than is given here.
        """
        size = None if n is None or len(set(n)) > 1 else n[0]
        chosen = options.pop("scheme", None) or (given or {}).get("method")
        asked = None if chosen is None else str(chosen)
        points, dim, method = goes_on(path, size, options.pop("dim", None), asked)
        return cls(name, [points], {**(given or {}), "method": method}, dim=dim, **options)

    @property
    def grid(self) -> Grid:
        return self.linear.grid

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.linear.unknown,)

    @property
    def title(self) -> str:
        dof = self.grid.size
        what = f"{self.linear.title} in {len(self.shape)}D, N = {self.shape[0]}: {counted(dof, 'unknown')}"
        return f"{what}, {self.scheme}"

    @property
    def error(self) -> Expr | None:
        """The computed solution less the exact one."""
        exact = self.linear.exact
        return None if exact is None else self.linear.unknown - exact

    @property
    def shown(self) -> dict[str, Any]:
        error = self.error
        return {"solution": self.linear.unknown} | ({} if error is None else {"error": error})

    @property
    def program(self) -> Program:
        own = self.linear
        return solve_program(own.method, own.operator, own.unknown, own.rhs)

    def problem(self, communicator: Any = None, **execution: Any) -> LinearProblem:
        """Compiled and planned; all ranks call this."""
        own = self.linear
        return LinearProblem(
            own.operator, own.unknown, own.rhs, method=own.method, communicator=communicator, **execution
        )

    def _prepared(
        self, communicator: Any, execution: Mapping[str, Any]
    ) -> tuple[Fields, Program, Schedule, float]:
        made = self.problem(communicator, **execution)
        return made.fields, made.program, made.schedule, made.prepared.bytes_per_pass * self.grid.active_cells

    def run(
        self,
        *,
        steps: int | None = None,
        communicator: Any = None,
        output: Output | Sequence[Output] = (),
        checkpoint: Checkpoint | None = None,
        resume: str | Path | None = None,
        on_progress: Callable[..., None] | None = None,
        **execution: Any,
    ) -> Result:
        """Solve it from a zero initial guess, and compare with the exact solution; all ranks call this.

        Parameters
        ----------
        steps : int, optional
            Iterations at most.
        output, checkpoint, resume, on_progress
            See halocline.LinearProblem.solve.
        communicator, **execution
            See halocline.LinearProblem; the result's bits do not depend on them.

        Raises
        ------
        InputError
            What a solve does not take: a time, steps between diagnostics.
        KeyboardInterrupt
            SIGINT or SIGTERM came, and all ranks have agreed to end; it says after how many iterations.
        """
        for name in ("until", "every", "warm_up"):
            if execution.pop(name, None):
                raise InputError(f"{name}: {self.name} is a linear problem, whose iterations have no time")
        for name in ("series", "change", "share", "on_look"):
            execution.pop(name, None)
        rtol = self.linear.rtol
        check_limits(rtol, steps)
        problem = self.problem(communicator, **execution)
        solution = problem.solve(
            rtol=rtol, max_iterations=steps, output=output, checkpoint=checkpoint, resume=resume,
            on_progress=on_progress,
        )  # fmt: skip
        if solution.reason == "interrupted":
            raise interruption(f"interrupted after {solution.iterations} iterations")
        return replace(self._solved(problem, solution), tuned=problem.prepared.tuned, most=steps)

    def _solved(self, problem: LinearProblem, solution: Solution) -> Result:
        fields, error = problem.fields, self.error
        greatest = None if error is None else fields.evaluate(largest(magnitude(error)))
        each, iterations = solution.seconds_per_iteration, solution.iterations
        timing = Timing(solution.seconds, (each or 0.0) * iterations, iterations, None)
        facts = {
            "steps": iterations,
            "warm_up": 0,
            "only": None,
            **dict.fromkeys(("time", "time_step", "limiter")),
            "diagnostics": {
                "residual_relative": solution.residual_relative,
                "true_residual_relative": solution.true_residual_relative,
            },
            "series": [],
            "error": greatest,
            "events": {},
            "checksum": fields.checksum(self.linear.unknown),
            "checksums": checksums(fields, self.fields)["checksums"],
        }
        moved, writing = solution.bytes_per_iteration, solution.writing
        return self._result(fields, timing, solution, facts, problem.schedule, moved, writing)

    def findings(self, result: Result) -> dict[str, Any]:
        """What a solve came to, by the names of halocline.Solution where it has them."""
        solution = result.outcome
        if not isinstance(solution, Solution):
            return {}
        how = {"dim": len(self.shape), "method": self.scheme, "rtol": self.linear.rtol}
        how |= {"max_iterations": result.most}
        names = "iterations", "converged", "reason", "residual_relative", "true_residual_relative"
        more = "seconds_per_iteration", "bytes_per_iteration"
        return {
            **{"n": self.shape[0], "dof": result.record.cells, **how},
            **{name: getattr(solution, name) for name in (*names, *more)},
            "error_max": result.record.error,
            "bandwidth_share": result.record.share_of_bound,
            "overlap": solution.overlap.on,
            "overlap_why": solution.overlap.why,
            "sweep_seconds_overlap": solution.overlap.seconds_on,
            "sweep_seconds_no_overlap": solution.overlap.seconds_off,
        }


def goes_on(path: str | Path, n: int | None, dim: int | None, method: str | None) -> tuple[int, int, str]:
    """Points along an axis, axes and method of the solve that left a checkpoint.

    Parameters
    ----------
    n, dim, method : optional
        As they are given here.

    Raises
    ------
    InputError
        There is no checkpoint, or that of something else than is given here.
    """
    saved = Saved(newest(Path(path)))
    u = Store(saved.folder).variables.get("u")
    if u is None or "method" not in saved.facts:
        raise InputError(f"checkpoint {saved.folder} is of another problem")
    left = u.shape[0], len(u.shape), str(saved.facts["method"])
    for name, value, given in zip(("n", "dim", "method"), left, (n, dim, method), strict=True):
        if given not in (None, value):
            raise InputError(
                f"{name} is {given}, but checkpoint {saved.folder} is of a solve with {value}: leave it out"
            )
    return left
