"""Closed formula beside measurements, with constants that were measured too.

1/π is the time of a cell on the fewest devices. 1/β is the time of a byte of halo, from an exchange alone.
Each subdomain counts as a node of its own, which is exact where messages between ranks share nothing; see
`halocline.model.formula`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from halocline.compile.compiler import compile_program
from halocline.model.formula import StepTime, step_time
from halocline.plan.fit import least_thickness
from halocline.plan.traffic import Traffic
from halocline.problems.problem import Problem
from halocline.study.measurement import Measurement
from halocline.study.reporting.quantities import ns, subdomains


@dataclass(frozen=True)
class Exchanged:
    """Exchanges of a step, for any size of the grid.

    Attributes
    ----------
    traffic : Traffic
    thickness : tuple of int
        Of the thinnest subdomain along each axis.
    periodic : tuple of bool
    """

    traffic: Traffic
    thickness: tuple[int, ...]
    periodic: tuple[bool, ...]


def exchanged_by(problem: Problem) -> Exchanged:
    """Return the exchanges of a step, without memory for fields."""
    grid = problem.grid
    schedule = compile_program(problem.program, grid)
    return Exchanged(Traffic.of_schedule(schedule), tuple(least_thickness(schedule)), tuple(grid.periodic))


@dataclass(frozen=True)
class Theory:
    """Closed formula with its constants.

    Attributes
    ----------
    exchanged : mapping of int or None to Exchanged
        By the order of differences; None for a case that is a program.
    per_byte : float or None
        1/β, seconds; None where nothing was measured that is exchanged.
    measured_on : int
        The subdomains between which that was measured; 0 where it was not.
    """

    exchanged: Mapping[int | None, Exchanged]
    per_byte: float | None
    measured_on: int = 0

    @classmethod
    def of(cls, exchanged: Mapping[int | None, Exchanged], measurements: Sequence[Measurement]) -> Theory:
        """Return the theory from the exchange alone of the largest grid on the fewest subdomains."""
        exchanges = [m for m in measurements if (m["only"], m["halo"]) == ("exchange", "read")]
        several = [m for m in exchanges if subdomains(m) > 1 and m["order"] in exchanged]
        if not several:
            return cls(exchanged, None)
        one = min(several, key=lambda m: (subdomains(m), -m["cells"], m["threads"]))
        moved = _formula(exchanged[one["order"]], one, per_cell=0.0, per_byte=1.0).between
        return cls(exchanged, 1e-9 * ns(one) * one["cells"] / moved if moved else None, subdomains(one))

    def ns(self, measurement: Measurement, base: Measurement) -> float | None:
        """Return the nanoseconds of a cell and step; None if 1/β is needed but unknown, or the exchange is.

        Parameters
        ----------
        measurement : dict
            Its shape and subdomains count.
        base : dict
            1/π is the time of a cell of one of its subdomains.
        """
        own = self.exchanged.get(measurement["order"])
        if own is None or (self.per_byte is None and subdomains(measurement) > 1):
            return None
        per_cell = 1e-9 * ns(base) * subdomains(base)
        step = _formula(own, measurement, per_cell=per_cell, per_byte=self.per_byte or 0.0)
        return 1e9 * step.seconds / float(measurement["cells"])


def _formula(own: Exchanged, measurement: Measurement, *, per_cell: float, per_byte: float) -> StepTime:
    return step_time(
        measurement["shape"],
        subdomains(measurement),
        traffic=own.traffic,
        per_cell=per_cell,
        per_halo_cell=per_byte,
        periodic=own.periodic,
        strategy=measurement.get("decomposition") or "optimal",
    )
