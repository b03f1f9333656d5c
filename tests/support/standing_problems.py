"""Problems with given states, for tests of figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import halocline as hc
from halocline.io.figure import Figure
from halocline.physics.mhd_tvd import MHDSimulation, conserved
from halocline.physics.mhd_tvd.checks import primitives
from halocline.problems.problem import Problem

Array = NDArray[np.float64]


class Standing(NamedTuple):
    """Stand-in for a finished run of a case.

    Attributes
    ----------
    problem : Problem
    simulation : Simulation
        Simulation without a step, with the attributes that the figures of a case read.
    """

    problem: Problem
    simulation: Any

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the file."""
        return self.problem.script.top[function](*arguments)


def standing(
    name: str,
    n: tuple[int, ...],
    time: float,
    settings: Mapping[str, Any] | None = None,
    *,
    start: bool = False,
) -> Standing:
    """Return a case as after a run to a time, with its initial fields or other values in each cell."""
    problem = Problem(name, n, settings, dim=len(n))
    grid, values = problem.grid, problem.values
    fields = problem.fields
    zero_fields = {f: 0.0 * f for f in fields}
    read = {"quantities": problem.known.pictures(), "numbers": values, "set_state": MHDSimulation.set_state}
    read["mhd"] = problem.script.top["gas"]
    kind = type("Still", (hc.Simulation,), read)
    gamma = {"gamma": values["gamma"]}
    sim = kind(grid, lambda: zero_fields, parameters=gamma, scheme=hc.Euler(), dt=1.0, threads=1)
    random = np.random.default_rng(1)
    if start and problem.known.exact is not None:
        for f, value in problem.known.exact(0.0).items():
            sim[f] = value
    elif start:
        state = problem.script.top["tube"].state(problem.script.top["gas"])
        for f, value in conserved(
            problem.script.top["gas"], *(state[x] for x in ("rho", "v", "p", "b"))
        ).items():
            sim[f] = value
    else:
        for f in fields:
            sim[f] = (20.0 if f.name == "E" else 1.0) + random.random(f.points)  # keeps the pressure positive
    sim.start_new_run(time=time)
    return Standing(problem, sim)


def state_of(done: Standing) -> dict[str, Array]:
    result = primitives(done.simulation, done.problem.values["gamma"])
    assert result is not None
    return result


def figure_of(done: Standing, name: str, figure: str) -> Figure:
    result = done.problem.known.figures[figure](done.simulation)
    assert result is not None
    return result
