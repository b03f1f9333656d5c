"""A program prepared to run on a grid any number of times."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import Schedule
from halocline.errors import RunError
from halocline.lang.program import Program
from halocline.native import native
from halocline.plan.rank import RankPlan
from halocline.run.devices.devices import device_errors
from halocline.run.domain.domain import Domain
from halocline.run.engine.binding import Binding
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.planning import check_scalars, compiled, has_loop, planned
from halocline.run.engine.watch import interruption, watching
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.overlap import OverlapTrial
from halocline.run.tuning.patches import Tuned

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("halocline")


def prepare(store: FieldStore, program: Program, given: Iterable[str]) -> Prepared:
    """Compile and plan a program; all ranks call this with the same program.

    Parameters
    ----------
    store : FieldStore
        Takes the fields of the program that it does not have yet.
    program : Program
    given : names
        The scalars that have a value when it runs. InputError for one that is used and has none.
    """
    schedule = compiled(store, program, Prepared)
    check_scalars(schedule.scalars, program, store.domain.grid.scalar_values(), given)
    return Prepared(store, schedule, program.name)


class Prepared:
    """A program compiled, planned and bound to the engine, ready to run any number of times.

    Parameters
    ----------
    store : FieldStore
    schedule : Schedule
    name : str
    patch : sequence of int, or {"caches"}, optional
        Instead of what `Execution.patch` says.
    """

    def __init__(
        self, store: FieldStore, schedule: Schedule, name: str, patch: Sequence[int] | str | None = None
    ) -> None:
        self.store, self.schedule, self.name = store, schedule, name
        self._planned = planned(store, schedule, name, Prepared, patch)
        self.binding = Binding(store, schedule, self._planned, name)
        self._errors = {stop.reason for stop in schedule.stops() if stop.error}
        self._overlap = OverlapTrial(self.domain.how.overlap, _needs_no_choice(schedule, self.domain.comm))
        self.allocate()

    def allocate(self) -> None:
        """Make the memory of fields that have none; all ranks call this."""
        self.store.allocate(self.schedule.fields, self.plan, self.name)

    def release(self) -> None:
        """Give up the engine, and the memory of fields that only the engine holds; a run makes another."""
        self.binding.made = None

    @property
    def domain(self) -> Domain:
        """This rank's share of the grid."""
        return self.store.domain

    @property
    def plan(self) -> RankPlan:
        """Of this rank."""
        return self._planned.plan

    @property
    def library(self) -> Path:
        """Of its kernels."""
        return self._planned.library

    @property
    def tuned(self) -> Tuned | None:
        """What is known of the speed of patches, where that decided."""
        return self._planned.tuned

    @property
    def values(self) -> NDArray[np.float64]:
        """Of each scalar of the schedule; the engine reads and writes it."""
        return self.binding.values

    @property
    def running(self) -> Any:
        """The native engine where it is made already; any thread may ask."""
        return self.binding.made

    @property
    def engine(self) -> Any:
        """The native engine, made anew where storages have changed."""
        return self.binding.engine

    def _guarded(self) -> AbstractContextManager[None]:
        """Around what runs: an error of a device is a RunError, and so is a lack of memory for mailboxes."""
        transfers = self.domain.transfers
        guarded = self.domain.devices or (transfers is not None and "rma" in transfers.methods)
        return device_errors(f"program {self.name!r}") if guarded else nullcontext()

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
        for number, name in enumerate(self.schedule.scalars):
            if name in given:
                self.values[number] = given[name]
        engine = self.engine
        timeline = self.domain.timeline if has_loop(self.schedule) else None
        if timeline is not None and all(self.domain.comm.allgather(timeline.full)):
            timeline = None
        outcomes: list[Outcome] = []
        undecided = self._overlap.open
        with watching(engine, on_progress), self._guarded():
            for report in self._overlap.run(engine, traced=timeline is not None):
                outcomes.append(self._outcome(report))
                if timeline is not None:
                    timeline.add(self.domain.comm.rank, self.schedule, report)
        if undecided and not self._overlap.open and self.domain.comm.rank == 0:
            log.info("overlap in program %r: %s", self.name, self._overlap.choice)
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

    def timed(
        self,
        values: Mapping[str, float],
        *,
        messages: bool = True,
        kernels: bool = True,
        overlap: bool = True,
    ) -> float:
        """Seconds that the outermost loops take on the slowest rank, perhaps without messages or kernels:
        fields then hold nonsense. All ranks call this.

        Raises
        ------
        KeyboardInterrupt
        """
        for number, name in enumerate(self.schedule.scalars):
            if name in values:
                self.values[number] = values[name]
        with watching(self.engine), self._guarded():
            report = self.engine.run(messages=messages, kernels=kernels, overlap=overlap)
        if report["stopped"]:
            raise interruption()
        return float(report["loop_seconds"])

    def _outcome(self, report: Mapping[str, Any]) -> Outcome:
        import numpy as np

        return Outcome(
            reason=report["reason"],
            loops=tuple(ended or "" for ended in report["loops"]),
            history=np.asarray(report["history"]),
            scalars=dict(zip(self.schedule.scalars, self.values.tolist(), strict=True)),
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
