"""What came of a run of a case."""

from __future__ import annotations

from dataclasses import dataclass, field

from halocline.lang.grid import Field
from halocline.problems.record import Record
from halocline.run.engine.prepared import Outcome
from halocline.run.fields.fields import Fields
from halocline.run.tuning.patches import Tuned
from halocline.solvers.linear import Solution


@dataclass(frozen=True)
class Result:
    """A record, and what it is a record of.

    Attributes
    ----------
    record : Record
    bandwidth : float
        Bytes a second of a += s * b on all ranks at once, or of copies within their devices.
    peak : float or None
        Operations a second of multiply-adds on as many cores.
    simulation : Simulation or Fields
    outcome : Outcome, Solution or None
        Of the steps that were timed, or of the iterations; None where none was, or a part of them alone.
    fields : tuple of Field
    tuned : Tuned or None
        What is known of the speed of patches, where that decided; of a linear problem.
    most : int or None
        Iterations that a linear problem was limited to.
    """

    record: Record
    bandwidth: float | None
    peak: float | None
    simulation: Fields = field(repr=False)
    outcome: Outcome | Solution | None = field(repr=False)
    fields: tuple[Field, ...]
    tuned: Tuned | None = None
    most: int | None = None
