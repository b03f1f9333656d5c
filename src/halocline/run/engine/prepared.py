"""A program prepared to run on a grid: compiled, planned, bound to the engine."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.schedule import AROUND, Loop, Schedule
from halocline.compile.strategy import Strategy
from halocline.errors import InputError, RunError
from halocline.lang.grid import unknown
from halocline.lang.program import Program
from halocline.lang.trace import OWN
from halocline.native import native
from halocline.plan.rank import plan_rank, wraps_rows
from halocline.run.devices.devices import compile_for, device_errors
from halocline.run.domain.domain import Domain
from halocline.run.engine import measured
from halocline.run.engine.bind import build_engine
from halocline.run.engine.bind_device import build_device_engine
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.watch import watching
from halocline.run.host.caches import caches, exceeds_cache
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.overlap import OverlapTrial
from halocline.run.tuning.patches import TUNE

if TYPE_CHECKING:
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
    compiled = functools.partial(_compiled, store, program)
    schedule = compiled(measured.strategy(store, program.name, compiled, Prepared))
    known = {*given, *store.domain.grid.scalar_values(), *program.scalars_set()}
    for name in schedule.scalars:
        if name not in known and OWN not in name:
            raise _missing(name, program.meanings.get(name), sorted(n for n in given if OWN not in n))
    return Prepared(store, schedule, program.name)


def _missing(name: str, meaning: str | None, given: Sequence[str]) -> InputError:
    """The error for a parameter that is read and has no value."""
    if meaning is None:  # one of the user's own; its name may be misspelt
        return unknown("parameter", name, given)
    return InputError(f"parameter {name!r} is missing: {meaning}; given: {', '.join(given)}")


def _compiled(store: FieldStore, program: Program, strategy: Strategy | None) -> Schedule:
    domain = store.domain
    compiled = compile_program(
        program, domain.grid, halo=domain.how.halo, device=strategy, shared=domain.shared_bytes
    )
    return replace(compiled, blocks=store.blocks)


class Prepared:
    """A program compiled, planned and bound to the engine, ready to run any number of times.

    Parameters
    ----------
    store : FieldStore
    schedule : Schedule
    name : str
    patch : sequence of int, or {"caches"}, optional
        Instead of what `Execution.patch` says.

    Attributes
    ----------
    tuned : Tuned or None
        What is known of the speed of patches, where that decided.
    """

    def __init__(
        self, store: FieldStore, schedule: Schedule, name: str, patch: Sequence[int] | str | None = None
    ) -> None:
        import numpy as np

        self.store, self.schedule, self.name = store, schedule, name
        domain = store.domain
        comm = domain.comm
        comm.check_same(
            f"program {name!r} is",
            (schedule, domain.grid.shape, domain.how, domain.transfers),
            "all ranks must build the same equations on the same grid",
        )
        store.check_room(schedule.fields)
        if domain.transfers is None:
            domain.adopt(schedule)  # before anything is compiled: wrong cuts and patches are found here
            comm.check_same(
                f"the decomposition for program {name!r} is",
                domain.transfers,
                "all ranks must run the same version of Halocline on the same kind of machine",
            )
        assert domain.transfers is not None
        how = domain.how if patch is None else replace(domain.how, patch=patch)
        planned = functools.partial(
            plan_rank, schedule, domain.transfers, comm.rank, threads=domain.threads, caches=caches()
        )
        self.plan = planned(patch=how.patch_shape)
        # one library for all ranks, also where those of another node hold less
        streaming = any(comm.allgather(exceeds_cache(self.plan, comm.ranks_of_node)))
        self.library = compile_once(schedule.source, comm, streaming=streaming)
        self._loops = any(isinstance(operation, Loop) for operation in schedule.operations)
        tunable = self._loops and how.patch in (None, TUNE) and not domain.devices
        self.tuned = None
        if tunable:
            library = self.library.stem
            self.tuned = measured.tuned_patches(store, schedule, name, library, self.plan.transfers, Prepared)
        if self.tuned is not None and self.tuned.patch is not None:
            self.plan = planned(patch=self.tuned.patch)
        self._errors = {stop.reason for stop in schedule.stops() if stop.error}
        self._overlap = OverlapTrial(domain.how.overlap, _needs_no_choice(schedule, comm))
        self.values: NDArray[np.float64] = np.zeros(len(schedule.scalars))
        if AROUND in schedule.scalars and wraps_rows(domain.transfers):
            self.values[schedule.scalars.index(AROUND)] = domain.grid.shape[-1]
        self._engine: Any = None
        self._modules: dict[Any, Any] = {}  # kernels by device
        self._generation = -1
        store.allocate(schedule.fields, self.plan, name)

    @property
    def domain(self) -> Domain:
        """This rank's share of the grid."""
        return self.store.domain

    @property
    def running(self) -> Any:
        """The native engine where it is made already; any thread may ask."""
        return self._engine

    @property
    def engine(self) -> Any:
        """The native engine, made anew where storages have changed."""
        if self._engine is None or self._generation != self.store.generation:
            if self.domain.devices:
                self._engine = None  # what it takes of the devices' memory goes first
                self._engine = self._on_devices()
                self._generation = self.store.generation
                return self._engine
            self._engine = build_engine(
                native(),
                self.library,
                self.schedule,
                self.plan,
                self.store.storages,
                self.values,
                self.domain.comm,
                self.domain.spins,
                self.domain.peers,
                self.store.peer_storages,
                self.domain.how,
            )
            self._generation = self.store.generation
        return self._engine

    def _on_devices(self) -> Any:
        domain, device = self.domain, self.schedule.device
        assert device is not None
        with domain.comm.agreement(f"compile kernels of {self.name!r} for devices"):
            if not self._modules:
                own = list(dict.fromkeys(domain.devices))
                self._modules = {each: compile_for(each, device.source) for each in own}
        devices = [domain.device_of(n) for n in range(len(self.plan.subdomains))]
        return build_device_engine(
            native(),
            self.library,
            self.schedule,
            self.plan,
            self.store.storages,
            self.values,
            domain.comm,
            devices,
            [self._modules[each] for each in devices],
            domain.spins,
            self.name,
        )

    def _minded(self) -> AbstractContextManager[None]:
        """Around what runs: what a device says is a RunError, and so is memory that mailboxes lack."""
        transfers = self.domain.transfers
        minded = self.domain.devices or (transfers is not None and "rma" in transfers.methods)
        return device_errors(f"program {self.name!r}") if minded else nullcontext()

    @property
    def bytes_per_pass(self) -> float:
        """Bytes per cell that must cross memory in one pass of the outermost loop, or in one run without a
        loop; loops within count once, what runs every so many steps as often."""
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
        timeline = self.domain.timeline if self._loops else None
        if timeline is not None and all(self.domain.comm.allgather(timeline.full)):
            timeline = None
        outcomes: list[Outcome] = []
        undecided = self._overlap.open
        with watching(engine, on_progress), self._minded():
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
            raise KeyboardInterrupt
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
        with watching(self.engine), self._minded():
            report = self.engine.run(messages=messages, kernels=kernels, overlap=overlap)
        if report["stopped"]:
            raise KeyboardInterrupt
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
    if not any(isinstance(operation, Loop) for operation in schedule.operations):
        return "since there is no loop"
    if not any(sweep.exchange for sweep in schedule.pass_sweeps()):
        return "since nothing travels"
    return ""


def compile_once(source: str, comm: Communicator, *, streaming: bool) -> Any:
    """The kernel library: rank 0 compiles, the others find it in the cache or, without a shared one, compile
    too."""
    path = None
    with comm.agreement("compile kernels"):
        if comm.rank == 0:
            path = compile_library(source, streaming=streaming)
    with comm.agreement("compile kernels"):
        if comm.rank != 0:
            path = compile_library(source, streaming=streaming)
    return path
