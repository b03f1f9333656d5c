"""Programs bound to the engine: runs and their outcomes, signals during runs, and timed passes."""

from __future__ import annotations

import functools
import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.schedule import AROUND, Schedule
from halocline.compile.targets.source import with_literal_layouts, with_shared_layouts
from halocline.errors import RunError, Terminated
from halocline.native import native
from halocline.plan.launches import has_literal_layouts, literal_extents
from halocline.plan.rank import RankPlan, plan_rank, wraps_rows
from halocline.plan.transfer import Transfers
from halocline.run.devices.devices import compile_for, device_errors
from halocline.run.domain.domain import Domain
from halocline.run.domain.trace import Timeline
from halocline.run.engine.bind import build_device_engine, build_engine
from halocline.run.host.machine import level_2_cache
from halocline.run.host.process import restoring
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.overlap import Overlap, OverlapTrial
from halocline.run.tuning.patches import Patch, Tuned
from halocline.words import duration, joined

log = logging.getLogger("halocline")

NO_STEP = "no step"  # reason in the outcome of a run without a step


@dataclass(frozen=True, repr=False)
class Outcome:
    """Outcome of a run.

    Attributes
    ----------
    reason : str
        Reason for the end of the run: "completed", "no step" for a simulation without a step, "interrupted"
        after a signal, or the reason of a stop statement. After a signal at the end of a run, the reason is
        also "interrupted".
    loops : tuple of str
        "condition" or "limit" for each loop: its condition became true, or it reached the limit of passes.
    history : array (passes, recorded scalars)
    scalars : dict of str to float
        Values of all scalars after the run, by name.
    seconds : float
        Wall-clock time of the run in seconds: the time between barriers, maximum over all ranks.
    compute, exchange, reduction : float
        Parts of the time of the first thread in seconds. `compute` is the time in kernels, `exchange` the
        time to pack and wait for messages, and `reduction` the time in reductions.
    loop_seconds : float
        Time in the outermost loops in seconds, on the slowest rank.
    overlap : Overlap
        Decision whether computation and messages overlap, with the reason.
    """

    reason: str
    loops: tuple[str, ...]
    history: NDArray[np.float64]
    scalars: dict[str, float]
    seconds: float
    compute: float
    exchange: float
    reduction: float
    loop_seconds: float
    overlap: Overlap

    def __repr__(self) -> str:
        loops = "" if not self.loops else f", loops={self.loops!r}"
        return f"Outcome({self.reason!r}{loops}, seconds={self.seconds:.3g})"

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the run as text by name, for tables."""
        parts = {"in kernels": self.compute, "in exchanges": self.exchange, "in reductions": self.reduction}
        shares = (f"{seconds / self.seconds:.0%} {name}" for name, seconds in parts.items() if self.seconds)
        return {"end": self.reason, "time": duration(self.seconds), "of this time": joined(*shares)}

    def _repr_html_(self) -> str:
        from halocline.markup import facts_table

        return facts_table(type(self).__name__, self.facts)

    def followed_by(self, later: Outcome) -> Outcome:
        """Return the combined outcome of this run and a later run."""
        return replace(
            later,
            history=np.concatenate((self.history, later.history)),
            **{name: getattr(self, name) + getattr(later, name) for name in _CLOCKS},
        )


_CLOCKS = ("seconds", "compute", "exchange", "reduction", "loop_seconds")


INTERVAL = 0.2  # seconds between reports of progress
STOPPING = (signal.SIGINT, signal.SIGTERM)

_listening: list[signal.Signals] = []  # signals that an outer with block handles


def interruption(text: str = "") -> KeyboardInterrupt:
    """Return the exception for a run that a signal stopped. `text` is shown to the user."""
    if native().stopping_signal() == signal.SIGTERM:
        return Terminated(text)
    return KeyboardInterrupt(text)


def stop_on_signals() -> AbstractContextManager[None]:
    """Return a context manager in which SIGINT and SIGTERM stop the engines of this process.

    The engines stop when all ranks agree. Enter the context immediately, because this call already requests a
    stop if `note_signals` has noted a signal. Inside another context of this function or of `note_signals`,
    only the outer context handles signals. A signal that arrives after the last run in the block stops the
    next run, unless `forget_stop` is called before.
    """
    number = 0 if _listening else native().noted_signal()
    if number:
        native().forget_signal()
        native().request_stop(number)
    return _signal_handling(STOPPING, native().stop_on_signals)


def note_signals(signals: Sequence[signal.Signals]) -> AbstractContextManager[None]:
    """Return a context manager in which these signals are only noted and do not stop the engines.

    The caller must read `noted_signal` and pause the engines. A signal that arrives after the last read
    remains noted for the next run.
    """
    return _signal_handling(signals, native().note_signals)


@contextmanager
def _signal_handling(
    signals: Sequence[signal.Signals], handle: Callable[[list[int]], None]
) -> Iterator[None]:
    """Handle signals in native code inside the with block; see `restoring`."""
    with restoring(() if _listening else signals) as handled_signals:
        if handled_signals:
            handle([int(number) for number in handled_signals])
            _listening.extend(handled_signals)
        try:
            yield
        finally:
            if handled_signals:
                _listening.clear()


@contextmanager
def watching(engine: Any, on_progress: Callable[[int], None] | None = None) -> Iterator[None]:
    """Handle signals and progress reports during a native run.

    SIGINT and SIGTERM end the run when all ranks agree. The report of the engine states whether a stop was
    requested. A second thread calls `on_progress` with the number of completed passes.
    """
    report = None if on_progress is None else (lambda: on_progress(engine.progress()))
    with stop_on_signals():
        if report is None:
            yield
            return
        with call_repeatedly(report, "halocline-progress"):
            yield
        report()


@contextmanager
def call_repeatedly(call: Callable[[], None], name: str, interval: float = INTERVAL) -> Iterator[None]:
    """Call a function every `interval` seconds inside the with block, from a thread with the given name."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(interval):
            call()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


PatchShape = int | Sequence[int] | Mapping[str, int] | None  # None: shape by cache size


def rank_plan(domain: Domain, schedule: Schedule, transfers: Transfers, patch: PatchShape = None) -> RankPlan:
    """Return the plan of a schedule for this rank. By default, the cache size determines the patches."""
    return plan_rank(
        schedule, transfers, domain.comm.rank, threads=domain.threads, cache=level_2_cache(), patch=patch
    )


def scalars_of_run(store: FieldStore, name: str, values: Mapping[str, float]) -> dict[str, float]:
    """Return the scalars of the grid together with the scalars of a run.

    Raises
    ------
    InputError
        The scalars differ between ranks.
    """
    scalars = {**store.domain.grid.scalar_values(), **values}
    subject, advice = f"the parameters of program {name!r} are", "all ranks must give the same values"
    store.domain.comm.check_same(subject, sorted(scalars.items()), advice)
    return scalars


class Prepared:
    """Program bound to the engine, ready for any number of runs.

    Creation is collective, and so are all methods unless stated otherwise.

    Parameters
    ----------
    store : FieldStore
        Memory of the fields. If fields of the program have no memory, it is allocated in this store.
    schedule : Schedule
    plan : RankPlan
        Plan of this rank. After subdomains have moved, a new plan replaces it.
    library : path
        Library of the kernels.
    name : str
        Name of the program.
    patch : int, sequence or mapping of int, optional
        Shape of the patches of the plan; by default the shape by cache size.
    tuned : Tuned, optional
        Measured speed of patch shapes, if a measurement selected the shape.

    Attributes
    ----------
    domain : Domain
        Part of the grid on this rank.
    values : array of float64
        One value per scalar of the schedule. The engine reads and writes this array.
    modules : dict
        Compiled kernels by device, source, and index of the subdomain or 0. Only CUDA modules with constant
        memory belong to one subdomain.
    native_engine : native Engine or None
        Engine; None until it is built. Any thread may read this attribute.
    """

    def __init__(
        self,
        store: FieldStore,
        schedule: Schedule,
        plan: RankPlan,
        library: Path,
        name: str,
        patch: PatchShape = None,
        tuned: Tuned[Patch] | None = None,
    ) -> None:
        self.store, self.domain, self.schedule, self.name = store, store.domain, schedule, name
        self._plan, self.library, self.tuned = plan, library, tuned
        self._patch = patch
        self.values: NDArray[np.float64] = np.zeros(len(schedule.scalars))
        transfers = self.domain.transfers
        if transfers is not None and AROUND in schedule.scalars and wraps_rows(transfers):
            self.values[schedule.scalars.index(AROUND)] = self.domain.grid.shape[-1]
        self.modules: dict[Any, Any] = {}
        self.native_engine: Any = None
        self._generation = -1
        self._has_loop = schedule.has_loop
        self._errors = {stop.reason for stop in schedule.stops() if stop.error}
        self._overlap = OverlapTrial(
            self.domain.execution.overlap, _fixed_overlap_reason(schedule, self.domain.comm)
        )
        self.allocate()

    @property
    def plan(self) -> RankPlan:
        """Plan of this rank for its current subdomains."""
        transfers = self.domain.transfers
        if transfers is not None and self._plan.transfers is not transfers:
            self._plan = rank_plan(self.domain, self.schedule, transfers, self._patch)
        return self._plan

    def allocate(self) -> None:
        """Allocate the fields that have no memory. All ranks call this method."""
        self.store.allocate(self.schedule, self.plan, self.name)

    def release(self) -> None:
        """Free the engine, and storages that only the engine uses. The next run builds a new engine."""
        self.native_engine = None

    @property
    def engine(self) -> Any:
        """Native engine. It is built again after storages have changed."""
        if self.native_engine is None or self._generation != self.store.generation:
            parts = self.store, self.schedule, self.plan, self.library, self.values
            if self.domain.devices:
                self.native_engine = None  # frees device memory before the new engine is built
                self.native_engine = build_device_engine(*parts, self.modules_of_subdomains(), self.name)
            else:
                self.native_engine = build_engine(*parts)
            self._generation = self.store.generation
        return self.native_engine

    def modules_of_subdomains(self) -> list[Any]:
        """Return, for each subdomain, the kernels compiled for its device; collective."""
        domain, subdomains = self.domain, range(len(self.plan.subdomains))
        device = self.schedule.device
        assert device is not None
        with domain.comm.agreement(f"compile kernels of {self.name!r} for devices"):
            sources = {
                place: self._source([n for n in subdomains if domain.device_of(n) == place])
                for place in dict.fromkeys(map(domain.device_of, subdomains))
            }
            # The constant memory of a CUDA module has the values of one subdomain.
            has_symbols = device.has_invariants and domain.execution.devices.interface == "cuda"
            keys = [
                (place, sources[place], n if has_symbols else 0)
                for n, place in zip(subdomains, map(domain.device_of, subdomains), strict=True)
            ]
            self.modules = {
                key: self.modules.get(key) or compile_for(*key[:2]) for key in dict.fromkeys(keys)
            }
        return [self.modules[key] for key in keys]

    def _source(self, numbers: Sequence[int]) -> str:
        """Return the source of the kernels for some subdomains, which are on the same device."""
        device = self.schedule.device
        assert device is not None
        subdomains = [self.plan.subdomains[n] for n in numbers]
        storages = [self.store.storages[field.name] for field in self.schedule.fields]
        if not has_literal_layouts(self.schedule, subdomains):
            classes = [tuple(tuple(storage[n].layout) for n in numbers) for storage in storages]
            return with_shared_layouts(device.source, classes)
        layouts = [storage[numbers[0]].layout for storage in storages]
        return with_literal_layouts(device.source, layouts, literal_extents(subdomains))

    def scalars(self) -> dict[str, float]:
        """Return all scalars of the program. Another thread may call this method during a run."""
        return dict(zip(self.schedule.scalars, self.values.tolist(), strict=True))

    def set_scalars(self, values: Mapping[str, float]) -> None:
        """Set the scalars of the program that have an entry in `values`."""
        for number, name in enumerate(self.schedule.scalars):
            if name in values:
                self.values[number] = values[name]

    def error_context(self) -> AbstractContextManager[None]:
        """Return a context manager that converts errors of devices and mailboxes into RunError."""
        transfers = self.domain.transfers
        has_errors = self.domain.devices or (transfers is not None and "rma" in transfers.methods)
        return device_errors(f"program {self.name!r}") if has_errors else nullcontext()

    @property
    def bytes_per_pass(self) -> float:
        """Minimum memory traffic per cell in bytes, in one pass of the outermost loop.

        In a program without a loop, the pass is one run. An inner loop counts as if it had one pass. If a
        sweep runs only in a fraction of the passes, its traffic counts with this fraction.
        """
        return sum(sweep.bytes * sweep.share for sweep in self.schedule.pass_sweeps())

    def methods_used(self) -> tuple[str, ...]:
        """Return the transfer methods that the messages and copies of all ranks use; collective."""
        local_methods, transfers = dict[str, None](), self.plan.transfers
        for subdomain in self.plan.subdomains:
            for sweep in subdomain.sweeps:
                local_methods |= {message.method: None for message in sweep.receives}
                local_methods |= {
                    transfers.method(subdomain.number, copy.subdomain): None for copy in sweep.copies
                }
        return tuple(
            dict.fromkeys(
                name for methods in self.domain.comm.allgather([*local_methods]) for name in methods
            )
        )

    def run(
        self, values: Mapping[str, float] | None = None, on_progress: Callable[[int], None] | None = None
    ) -> Outcome:
        """Run the program.

        Parameters
        ----------
        values : mapping of str to float
            Scalars to set before the run: parameters, and initial values of other scalars.
        on_progress : callable, optional
            Function of the number of completed passes of the outermost loop. Another thread calls it a few
            times per second.

        Returns
        -------
        Outcome
            Outcome of the run. Its reason is "interrupted" if a signal requested a stop, even if the signal
            came after the last pass. In this case, the caller must not continue with another run. The reason
            is "paused" if a pause of the engine was requested, but no stop.

        Raises
        ------
        RunError
            A loop cannot end, because its condition compares NaN.
        KeyboardInterrupt
            A signal requested a stop, but the program has no loop. The program has then run completely.
        """
        self.set_scalars(scalars_of_run(self.store, self.name, values or {}))
        timeline = self.domain.timeline if self._has_loop else None
        if timeline is not None and all(self.domain.comm.allgather(timeline.full)):
            timeline = None
        outcomes: list[Outcome] = []
        trial, was_open = self._overlap, self._overlap.open
        engine, transfers = self.engine, self.domain.transfers
        self.store.await_other_libraries()
        # The time per subdomain is measured if balances are possible: with more subdomains than active ranks.
        active = self.domain.active_ranks
        is_measured = transfers is not None and transfers.layout.decomposition.count > active > 1
        with watching(engine, on_progress), self.error_context():
            is_cut = True
            while is_cut:
                overlap, passes = trial.piece() if trial.open else (trial.choice.on, 0)
                report = engine.run(
                    traced=timeline is not None,
                    overlap=overlap,
                    passes=passes,
                    resumed=bool(outcomes),
                    measured=is_measured,
                )
                outcomes.append(self._outcome(report))
                if is_measured:
                    self.domain.add_work(report["subdomain_seconds"])
                if timeline is not None:
                    self.add_events(timeline, report)
                is_cut = passes > 0 and report["reason"] == "paused" and not report["stopped"]
                sweeps = sum(report["sweep_counts"])
                # A piece consists of the passes of one trial of overlap. The end of a run may shorten a
                # piece. The piece is still valid, because the trial compares times per sweep.
                if passes and sweeps and report["reason"] in ("paused", "completed"):
                    trial.note(report["loop_seconds"], sweeps)
        if was_open and not trial.open and self.domain.comm.rank == 0:
            log.info("overlap in program %r: %s", self.name, trial.choice)
        if timeline is not None:
            timeline.write(self.domain.comm)
        # With several ranks, a signal after the last agreement of all ranks stops the next run.
        is_late = self.domain.comm.size == 1 and native().forget_stop()
        if report["reason"] in self._errors:
            raise RunError(report["reason"])
        is_interrupted = report["stopped_process"] or is_late
        if is_interrupted and not report["loops"]:
            raise interruption()
        outcome = functools.reduce(Outcome.followed_by, outcomes)
        if is_interrupted and outcome.reason in ("completed", "paused"):
            outcome = replace(outcome, reason="interrupted")
        elif outcome.reason == "interrupted" and not is_interrupted:
            outcome = replace(outcome, reason="paused")
        return outcome

    def add_events(self, timeline: Timeline, report: dict[str, Any]) -> None:
        """Add the events of a report of the native engine to a timeline."""
        timeline.add(self.domain.comm.rank, self.schedule, report, self.domain.places_of_subdomains)

    def _outcome(self, report: Mapping[str, Any]) -> Outcome:
        return Outcome(
            reason=report["reason"],
            loops=tuple(end or "" for end in report["loops"]),
            history=np.asarray(report["history"]),
            scalars=self.scalars(),
            overlap=self._overlap.choice,
            **{name: report[name] for name in _CLOCKS},
        )


def _fixed_overlap_reason(schedule: Schedule, comm: Communicator) -> str:
    """Return the reason why overlap need not be measured, or "" if a measurement is required."""
    if comm.size == 1:
        return "since there is one rank"
    if not schedule.has_loop:
        return "since there is no loop"
    if not any(sweep.exchange for sweep in schedule.pass_sweeps()):
        return "since nothing is exchanged"
    return ""


# Arguments of the native engine that run only a part of a pass, by the name of the part.
KINDS = {
    "step": {"overlap": True},
    "waiting": {"overlap": False},
    "compute": {"messages": False},
    "exchange": {"kernels": False},
    "neither": {"messages": False, "kernels": False},
    "synchronisation": {"messages": False, "kernels": False, "barriers": True},
}
LEAST = 0.04  # minimum duration of one measurement in seconds


class PassTimer:
    """Timer for passes of the loops of a program, on the slowest rank. All methods are collective.

    Parameters
    ----------
    prepared : Prepared
        Program to time. Its fields are set to 1. After a measurement, their values are undefined.
    limits : sequence of str
        Scalars of the program that limit the number of passes of its loops.
    values : mapping of str to float, optional
        Values of the other scalars of the program.

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
        _ = prepared.engine  # first touch: each memory page is placed by the thread that uses the page
        prepared.store.fill(1.0)

    def seconds(self, passes: int, **kind: bool) -> float:
        """Return the duration of a number of passes on the slowest rank, in seconds.

        Parameters
        ----------
        **kind
            Arguments of the native engine; see `KINDS`. By default, messages and computation overlap unless
            the user disables overlap.

        Raises
        ------
        KeyboardInterrupt
            The process received SIGINT or SIGTERM.
        """
        return float(self._report(passes, **kind)["loop_seconds"])

    def trace(self) -> None:
        """Run one measurement without timing, and write its trace, if the domain has a timeline.

        Raises
        ------
        RunError
            The file cannot be written.
        """
        if (timeline := self.prepared.domain.timeline) is None:
            return
        self.prepared.add_events(timeline, self._report(self.passes, traced=True))
        timeline.write(self.prepared.domain.comm)

    def _report(self, passes: int, **kind: bool) -> Any:
        """Run the program, and return the report of the engine."""
        kind = {"overlap": self.prepared.domain.execution.overlap is not False, **kind}
        self.prepared.set_scalars({**self.values, **dict.fromkeys(self.limits, float(passes))})
        engine = self.prepared.engine
        with watching(engine), self.prepared.error_context():
            report = engine.run(**kind)
        if report["stopped"]:
            raise interruption()
        return report

    def calibrate(self, least: float = LEAST) -> None:
        """Set the number of passes per measurement so that a measurement takes at least `least` seconds."""
        self.run()
        # One pass alone takes longer than a pass among many. Therefore two steps refine the estimate.
        self.passes = max(1, int(0.1 * least / max(self.run(), 1e-7)))
        self.passes = max(3, math.ceil(least / max(self.run(), 1e-7)))

    def run(self, **kind: bool) -> float:
        """Return the mean duration of a pass of a measurement in seconds. `kind` is an entry of `KINDS`."""
        return self.seconds(self.passes, **kind) / self.passes
