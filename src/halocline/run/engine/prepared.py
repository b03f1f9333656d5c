"""Runs of a program that is bound to the engine."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from halocline.compile.schedule import Schedule
from halocline.errors import RunError
from halocline.native import native
from halocline.run.devices.devices import device_errors
from halocline.run.engine.binding import Binding
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.planning import Planned, has_loop
from halocline.run.engine.watch import interruption, watching
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.overlap import OverlapTrial

log = logging.getLogger("halocline")


class Prepared(Binding):
    """Program bound to the engine, ready to run any number of times; all ranks make it and call its methods.

    Parameters
    ----------
    store : FieldStore
        Memory of the fields; fields of the program that have none take it here.
    schedule : Schedule
    planned : Planned
    name : str
        Name of the program.

    Attributes
    ----------
    domain : Domain
        This rank's share of the grid.
    plan : RankPlan
        Plan of this rank.
    library : path
        Library of the kernels.
    tuned : Tuned or None
        Measured speed of patches, where the measurement chose the shape of the patches.
    """

    def __init__(self, store: FieldStore, schedule: Schedule, planned: Planned, name: str) -> None:
        super().__init__(store, schedule, planned, name)
        self.domain = store.domain
        self.plan, self.library, self.tuned = planned.plan, planned.library, planned.tuned
        self._errors = {stop.reason for stop in schedule.stops() if stop.error}
        self._overlap = OverlapTrial(self.domain.how.overlap, _needs_no_choice(schedule, self.domain.comm))
        self.allocate()

    def allocate(self) -> None:
        """Allocate the fields that have no memory; all ranks call this."""
        self.store.allocate(self.schedule.fields, self.plan, self.name)

    def release(self) -> None:
        """Free the engine, and the memory of fields that only the engine holds; a run makes another."""
        self.made = None

    def scalars(self) -> dict[str, float]:
        """Return all scalars of the program; another thread may call this during a run."""
        return dict(zip(self.schedule.scalars, self.values.tolist(), strict=True))

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set those scalars of the program that have a value here."""
        for number, name in enumerate(self.schedule.scalars):
            if name in values:
                self.values[number] = values[name]

    def guarded(self) -> AbstractContextManager[None]:
        """Return the context of a run: errors of devices, and lack of memory for mailboxes, are RunErrors."""
        transfers = self.domain.transfers
        has_errors = self.domain.devices or (transfers is not None and "rma" in transfers.methods)
        return device_errors(f"program {self.name!r}") if has_errors else nullcontext()

    @property
    def bytes_per_pass(self) -> float:
        """Bytes per cell that must cross memory in one pass of the outermost loop, or in one run without a
        loop; inner loops count once, and what runs every few steps by its share."""
        return sum(sweep.bytes * sweep.share for sweep in self.schedule.pass_sweeps())

    def run(
        self, values: Mapping[str, float] | None = None, on_progress: Callable[[int], None] | None = None
    ) -> Outcome:
        """Run the program.

        Parameters
        ----------
        values : mapping of str to float
            Scalars to set before: parameters, and the initial values of others.
        on_progress : callable, optional
            Called a few times a second with the passes of the outermost loop so far, from another thread.

        Returns
        -------
        Outcome
            Its reason is "interrupted" where a signal asked to stop, also after the last pass: the caller
            knows how far the loops went, and ends. It is "paused" where the engine alone was asked to.

        Raises
        ------
        RunError
            A loop cannot end, since its condition compares NaN.
        KeyboardInterrupt
            The same for a program without a loop, which has been run as a whole.
        """
        given = {**self.domain.grid.scalar_values(), **(values or {})}
        self.domain.comm.check_same(
            f"the parameters of program {self.name!r} are",
            sorted(given.items()),
            "all ranks must give the same values",
        )
        self.set_scalars(given)
        timeline = self.domain.timeline if has_loop(self.schedule) else None
        if timeline is not None and all(self.domain.comm.allgather(timeline.full)):
            timeline = None
        outcomes: list[Outcome] = []
        trial, was_open = self._overlap, self._overlap.open
        engine = self.engine
        with watching(engine, on_progress), self.guarded():
            is_cut = True
            while is_cut:
                overlap, passes = trial.piece()
                report = engine.run(
                    traced=timeline is not None, overlap=overlap, passes=passes, resumed=bool(outcomes)
                )
                outcomes.append(self._outcome(report))
                if timeline is not None:
                    timeline.add(self.domain.comm.rank, self.schedule, report)
                is_cut = passes > 0 and report["reason"] == "paused" and not report["stopped"]
                sweeps = sum(report["sweep_counts"])
                # the end of a run may cut a piece, which counts too: times are compared by the sweep
                if passes and sweeps and report["reason"] in ("paused", "completed"):
                    trial.note(report["loop_seconds"], sweeps)
        if was_open and not trial.open and self.domain.comm.rank == 0:
            log.info("overlap in program %r: %s", self.name, trial.choice)
        if timeline is not None:
            timeline.write(self.domain.comm)
        # where ranks must agree, a signal that came after the run's last word is the next run's
        late = self.domain.comm.size == 1 and native().forget_stop()
        if report["reason"] in self._errors:
            raise RunError(report["reason"])
        interrupted = report["stopped_process"] or late
        if interrupted and not report["loops"]:
            raise interruption()
        whole = functools.reduce(Outcome.followed_by, outcomes)
        if interrupted and whole.reason in ("completed", "paused"):
            whole = replace(whole, reason="interrupted")
        elif whole.reason == "interrupted" and not interrupted:
            whole = replace(whole, reason="paused")
        return whole

    def _outcome(self, report: Mapping[str, Any]) -> Outcome:
        import numpy as np

        return Outcome(
            reason=report["reason"],
            loops=tuple(ended or "" for ended in report["loops"]),
            history=np.asarray(report["history"]),
            scalars=self.scalars(),
            seconds=report["seconds"],
            compute=report["compute"],
            exchange=report["exchange"],
            reduction=report["reduction"],
            loop_seconds=report["loop_seconds"],
            overlap=self._overlap.choice,
        )


def _needs_no_choice(schedule: Schedule, comm: Communicator) -> str:
    """Why it need not be measured whether overlap pays; empty where it must be."""
    if comm.size == 1:
        return "since there is one rank"
    if not has_loop(schedule):
        return "since there is no loop"
    if not any(sweep.exchange for sweep in schedule.pass_sweeps()):
        return "since nothing is exchanged"
    return ""
