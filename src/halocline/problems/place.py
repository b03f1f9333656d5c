"""Position within the sequence of runs of a problem file. Checkpoints store it for a restart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.run.output.restart import Saved, newest
from halocline.run.ranks.communicator import Communicator

FACTS = "file"  # key in the facts of a checkpoint under which this position is stored


@dataclass
class Place:
    """Position of the present run, or of a checkpoint, within the sequence of runs of a file.

    Attributes
    ----------
    number : int
        Number of the problem, from 1, in the order in which problems first run. Each solve is a problem.
    simulation : int
        Number of the simulation, from 1, in the same order; 0 for a solve.
    run : int
        Number of the run among the runs of this problem, from 1. It is 0 before the first run, and for a
        checkpoint that does not store this number.
    began : int
        Step at which this run began.
    step : int
        Step or iteration of the checkpoint.
    end : (int, float), optional
        Step and time at which a run reached the end that the command sets.
    """

    number: int = 0
    simulation: int = 0
    run: int = 0
    began: int = 0
    step: int = 0
    end: tuple[int, float] | None = None

    @property
    def first_run(self) -> int:
        """Number of the run that begins with the state of the checkpoint after a restart."""
        return self.run or 1


def read_resume_point(path: Path, comm: Communicator) -> Place:
    """Return the position of the newest checkpoint within the sequence of runs; all ranks call this."""
    facts: dict[str, Any] = {}
    with comm.agreement(f"read checkpoint {path}"):
        if comm.rank == 0:
            saved = Saved(newest(path)).facts
            facts = {"step": saved["step"], FACTS: saved.get(FACTS)}
    facts = comm.bcast(facts)
    match facts[FACTS]:
        case None:
            return Place(1, step=facts["step"])
        case {"problem": int(number), "run": int(run), "began": int(began)}:
            return Place(number, run=run, began=began, step=facts["step"])
    raise InputError(
        f"checkpoint {path} is damaged: {FACTS!r} is {facts[FACTS]!r}; expected problem, run and began"
    )
