"""Result of a run of a problem file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halocline.lang.grid import Field
from halocline.problems.files import PLACES
from halocline.problems.names import Names
from halocline.problems.record import Record
from halocline.run.engine.prepared import Outcome
from halocline.run.fields.fields import Fields
from halocline.run.tuning.patches import Patch, Tuned
from halocline.solvers.linear import Solution


@dataclass(frozen=True)
class Result:
    """Record of the last problem that a file has run, with its fields.

    Attributes
    ----------
    record : Record or None
        None where the file has run no problem; all below are None or empty then.
    bandwidth : float or None
        Bytes per second of a += s * b on all ranks at once, or of copies within their devices.
    peak : float or None
        Operations per second of multiply-adds on as many cores.
    simulation : Simulation or Fields
    outcome : Outcome, Solution or None
        Outcome of the timed steps, or of the iterations; None for a part of the steps.
    fields : tuple of Field
        Fields that the file has made.
    tuned : Tuned or None
        Known speeds of patches, where they decided; of a linear problem.
    most : int or None
        Greatest number of iterations of a linear problem.
    rtol : float or None
        Tolerance of a linear problem.
    observer : Following
        Observer of the run.
    names : Names
        Names that the file has defined at its end.
    """

    record: Record | None
    bandwidth: float | None
    peak: float | None
    simulation: Fields | None = field(repr=False)
    outcome: Outcome | Solution | None = field(repr=False)
    fields: tuple[Field, ...]
    observer: Any = field(repr=False)
    names: Names = field(repr=False)
    tuned: Tuned[Patch] | None = None
    most: int | None = None
    rtol: float | None = None

    @property
    def fields_of_problem(self) -> Fields:
        """Fields of the last problem that the file has made, also where it has not run."""
        return fields_of(self.observer.problem)

    def write_state(self, path: Path) -> None:
        """Write the fields of the last problem as arrays of their names, with the places of their points; all
        ranks call this."""
        import numpy as np

        fields = self.fields_of_problem
        found = {f.name: (fields.gather(f), np.array(f.staggered)) for f in results(fields)}
        if fields.domain.comm.rank == 0:
            arrays = {name: values for name, (values, _) in found.items()}
            places = {name + PLACES: place for name, (_, place) in found.items()}
            with path.open("wb") as file:
                np.savez(file, **arrays, **places)  # type: ignore[arg-type]


def fields_of(problem: Any) -> Fields:
    """Return the fields of a simulation or a linear problem."""
    return problem if isinstance(problem, Fields) else problem.fields


def results(fields: Fields) -> list[Field]:
    """Return the fields that the file has made and that hold values."""
    every = fields.grid.fields.values()
    return [f for f in every if not fields.grid.is_own(f) and f.name in fields.store.storages]
