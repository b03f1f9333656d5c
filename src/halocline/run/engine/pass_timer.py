"""Passes of a program's loops, timed whole and in parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from halocline.run.engine.prepared import Prepared
from halocline.run.engine.watch import interruption, watching

# parts of a pass by name: arguments of the native engine
KINDS = {
    "step": {"overlap": True},
    "waiting": {"overlap": False},
    "compute": {"messages": False},
    "exchange": {"kernels": False},
    "neither": {"messages": False, "kernels": False},
}
LEAST = 0.04  # seconds of one measurement


class PassTimer:
    """Timer of the passes of a program's loops, on the slowest rank. All ranks call its methods.

    Parameters
    ----------
    prepared : Prepared
        Program. Its fields hold ones, and nonsense after a measurement.
    limits : sequence of str
        Scalars that limit the passes of its loops.
    values : mapping of str to float, optional
        Its other scalars.

    Attributes
    ----------
    passes : int
        Number of passes of one measurement.
    """

    def __init__(
        self, prepared: Prepared, limits: Sequence[str], values: Mapping[str, float] | None = None
    ) -> None:
        self.prepared, self.limits = prepared, limits
        self.values = {**prepared.domain.grid.scalar_values(), **(values or {})}
        self.passes = 1
        _ = prepared.engine  # each of its threads touches its memory first
        prepared.store.fill(1.0)

    def seconds(self, passes: int, **kind: bool) -> float:
        """Return the seconds of some passes on the slowest rank.

        Parameters
        ----------
        **kind
            Arguments of the native engine, see `KINDS`. By default messages and computing overlap as the
            problem was asked to run.

        Raises
        ------
        KeyboardInterrupt
            SIGINT or SIGTERM came.
        """
        kind = {"overlap": self.prepared.domain.how.overlap is not False, **kind}
        self.prepared.set_scalars({**self.values, **dict.fromkeys(self.limits, float(passes))})
        engine = self.prepared.engine
        with watching(engine), self.prepared.guarded():
            report = engine.run(**kind)
        if report["stopped"]:
            raise interruption()
        return float(report["loop_seconds"])

    def calibrate(self, least: float = LEAST) -> None:
        """Choose the number of passes of a measurement that takes at least so many seconds."""
        self.run()
        # one pass alone takes longer than one of many
        self.passes = max(1, int(0.1 * least / max(self.run(), 1e-7)))
        self.passes = max(3, math.ceil(least / max(self.run(), 1e-7)))

    def run(self, **kind: bool) -> float:
        """Return the seconds of one pass, the mean of `passes`; `kind` is one of `KINDS`."""
        return self.seconds(self.passes, **kind) / self.passes
