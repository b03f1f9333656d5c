"""Cases ready to run, for what is measured beside predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from halocline.lang.program import program
from halocline.physics.heat import Heat
from halocline.physics.poisson import Poisson
from halocline.physics.wave import Wave
from halocline.run.simulation.simulation import Simulation
from halocline.solvers.linear import LinearProblem
from halocline.solvers.schemes import SCHEMES

Passes = Callable[[int], float]  # runs so many passes of a case's loop, and tells the seconds of one


def start(case: Mapping[str, Any], **how: Any) -> Passes:
    """A case by its name and options, as `halocline model` has them; all ranks call this.

    Parameters
    ----------
    case : mapping
        "case", "n", "dim" and what else `halocline.study.predict` takes for it.
    **how
        Communicator and execution; see `halocline.Simulation`.
    """
    options = dict(case)
    return CASES[options.pop("case")](how, **options)


def _poisson(how: Mapping[str, Any], n: int, dim: int = 2, method: str = "cg-fused") -> Passes:
    equations = Poisson.on(n, dim)
    problem = LinearProblem(equations.operator, equations.u, equations.rhs, method=method, **how)

    def passes(count: int) -> float:
        problem.fields[equations.u] = 0.0
        return problem.solve(rtol=1e-200, max_iterations=count).seconds_per_iteration or 0.0

    return passes


def _heat(how: Mapping[str, Any], n: int, dim: int = 3, scheme: str = "rk3", order: int = 6) -> Passes:
    equations = Heat.on(n, dim)
    sim = Simulation(
        equations.grid,
        equations.equations,
        parameters={"kappa": 0.1},
        scheme=SCHEMES[scheme],
        order=order,
        dt=0.1 / n**2,
        **how,
    )
    sim[equations.fields[0]] = 1.0
    return lambda count: sim.run(steps=count).loop_seconds / count


def _wave(how: Mapping[str, Any], n: int, dim: int = 2) -> Passes:
    equations = Wave.on(n, dim)
    sim = Simulation(equations.grid, program(equations.step), dt=0.5 / n, **how)
    sim[equations.p] = 1.0
    return lambda count: sim.run(steps=count).loop_seconds / count


CASES: dict[str, Callable[..., Passes]] = {"poisson": _poisson, "heat": _heat, "wave": _wave}
