"""Closed formula with measured constants, for comparison with measurements.

The constant 1/π is the time per cell, measured on the fewest devices. The constant 1/β is the time per byte
of halo, measured in an exchange alone. Each subdomain counts as a separate node. This assumption is exact if
messages between ranks share no resources; see `halocline.model.formula`.
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
class StepExchanges:
    """Exchanges of a step, for any size of the grid.

    Attributes
    ----------
    traffic : Traffic
    thickness : tuple of int
        Minimum thickness of a subdomain along each axis.
    periodic : tuple of bool
    """

    traffic: Traffic
    thickness: tuple[int, ...]
    periodic: tuple[bool, ...]


def step_exchanges(problem: Problem) -> StepExchanges:
    """Return the exchanges of a step. The function allocates no fields."""
    grid = problem.grid
    schedule = compile_program(problem.program, grid)
    return StepExchanges(
        Traffic.of_schedule(schedule), tuple(least_thickness(schedule)), tuple(grid.periodic)
    )


@dataclass(frozen=True)
class Theory:
    """Closed formula with its constants.

    Attributes
    ----------
    exchanges : mapping of int or None to StepExchanges
        Exchanges by the order of differences. The order is None for a case that is a program.
    per_byte : float or None
        1/β in seconds per byte; None if no exchange was measured.
    measured_on : int
        Number of subdomains in the measured exchange; 0 if no exchange was measured.
    """

    exchanges: Mapping[int | None, StepExchanges]
    per_byte: float | None
    measured_on: int = 0

    @classmethod
    def from_measurements(
        cls, exchanges: Mapping[int | None, StepExchanges], measurements: Sequence[Measurement]
    ) -> Theory:
        """Return the formula with 1/β from the exchange of the largest grid on the fewest subdomains."""
        exchange_runs = [m for m in measurements if (m["only"], m["halo"]) == ("exchange", "read")]
        parallel_runs = [m for m in exchange_runs if subdomains(m) > 1 and m["order"] in exchanges]
        if not parallel_runs:
            return cls(exchanges, None)
        smallest = min(parallel_runs, key=lambda m: (subdomains(m), -m["cells"], m["threads"]))
        halo_bytes = _formula(exchanges[smallest["order"]], smallest, per_cell=0.0, per_byte=1.0).between
        return cls(
            exchanges,
            1e-9 * ns(smallest) * smallest["cells"] / halo_bytes if halo_bytes else None,
            subdomains(smallest),
        )

    def ns(self, measurement: Measurement, base: Measurement) -> float | None:
        """Return the time of a step in nanoseconds per cell.

        The result is None if the exchange or a required 1/β is unknown.

        Parameters
        ----------
        measurement : dict
            Measurement with the shape, the subdomains and the order.
        base : dict
            Measurement from which 1/π follows, the time per cell on one subdomain.
        """
        exchanges = self.exchanges.get(measurement["order"])
        if exchanges is None or (self.per_byte is None and subdomains(measurement) > 1):
            return None
        per_cell = 1e-9 * ns(base) * subdomains(base)
        step = _formula(exchanges, measurement, per_cell=per_cell, per_byte=self.per_byte or 0.0)
        return 1e9 * step.seconds / float(measurement["cells"])


def _formula(
    exchanges: StepExchanges, measurement: Measurement, *, per_cell: float, per_byte: float
) -> StepTime:
    return step_time(
        measurement["shape"],
        subdomains(measurement),
        traffic=exchanges.traffic,
        per_cell=per_cell,
        per_halo_cell=per_byte,
        periodic=exchanges.periodic,
        strategy=measurement.get("decomposition") or "optimal",
    )
