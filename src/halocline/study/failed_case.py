"""Where a run of a case went wrong: the first step that left a value that is not finite, and which terms of
the equations led to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halocline.errors import HaloclineError
from halocline.lang import trace
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.program import Program, own_name
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import value
from halocline.run.prepared import prepare

if TYPE_CHECKING:
    from halocline.physics.case import Setup
    from halocline.run.simulation import Simulation

MOST_REPEATED = 60.0  # seconds of a run that is repeated to see where it went wrong
LARGEST = 3  # terms that are told where all are finite


@dataclass(frozen=True)
class FailedCase:
    """A run of a case that met a value that is not finite; all ranks make it and call it together.

    Parameters
    ----------
    setup : Setup
    order : int
        Of the differences in space.
    simulation : Simulation
        As the failure left it; it begins anew, and holds another state afterwards.
    """

    setup: Setup
    order: int
    simulation: Simulation

    def explained(self, error: HaloclineError, seconds: float) -> HaloclineError:
        """The same error with the terms that led to it.

        Parameters
        ----------
        error : HaloclineError
        seconds : float
            What the run took on this rank, the part that failed too. Where that is little, the run is
            repeated step by step to find the first step that leaves such a value, and the state before it.
        """
        if error.place is None:
            return error
        sim, found, kind = self.simulation, error, type(error)
        if sim.steps == 0:
            sim.values.setdefault("dt", 1.0)  # forcing may read it
            told = self._not_finite_at(error.place[1])
        elif max(sim.domain.comm.allgather(seconds)) < MOST_REPEATED:
            found = self._first_failure(sim.steps) or error
            told = self._before(sim.steps, sim.values["dt"])
        else:
            told = ""
        assert found.place is not None
        explained = kind(f"{found}\n{told}" if told else str(found))
        explained.place = found.place
        return explained

    def _begin(self) -> None:
        """As the run began; its bits are the same when it is repeated."""
        sim = self.simulation
        for f in self.setup.grid.fields.values():  # those of the scheme too
            if f.name in sim.domain.storages:
                sim[f] = 0.0
        for f, at_start in self.setup.start.items():
            sim[f] = at_start
        sim.values |= {"t": 0.0, "step": 0.0}

    def _first_failure(self, most: int) -> HaloclineError | None:
        """The error after the first of so many steps that leaves a value that is not finite."""
        sim = self.simulation
        self._begin()
        try:
            while sim.steps < most:
                sim.run(steps=1)
        except HaloclineError as error:
            return error if error.place is not None else None
        return None

    def _before(self, step: int, dt: float) -> str:
        """The terms before a step: those that are not finite anywhere, or the largest."""
        sim = self.simulation
        self._begin()
        try:
            while sim.steps < step - 1:
                sim.run(steps=1)
            sim.check_inputs("before the step that failed")
        except HaloclineError:
            return ""
        sim.values["dt"] = dt
        sizes = self._terms(lambda e: greatest(magnitude(e)))
        bad = [term for term, size in sizes.items() if not math.isfinite(size)]
        if bad:
            return f"terms that are not finite before step {step}: {', '.join(bad)}"
        largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]
        return f"largest terms before step {step}: " + ", ".join(f"{t} ({sizes[t]:.3g})" for t in largest)

    def _not_finite_at(self, cell: tuple[int, ...]) -> str:
        """The terms that are not finite in a cell."""
        bad = [
            term for term, size in self._terms(lambda e: value(e, cell)).items() if not math.isfinite(size)
        ]
        return f"terms that are not finite in that cell: {', '.join(bad)}" if bad else ""

    def _terms(self, reduced: Callable[[Expr], Expr]) -> Mapping[str, float]:
        """The terms of time derivatives, "viscosity of u_x", each as one number."""
        sim, program = self.simulation, Program("terms")
        names: list[str] = []
        with trace.order(self.order), trace.tracing(program):
            for f, named in self.setup.terms().items():
                for term, expression in named.items():
                    e = as_expr(expression)
                    program.own(f"term{len(names)}").set(reduced(e) if e.varies else magnitude(e))
                    names.append(f"{term} of {f.name}")
        if not names:
            return {}
        found = prepare(sim.domain, program, sim.values).run(sim.values).scalars
        return {name: found[own_name(f"term{number}")] for number, name in enumerate(names)}
