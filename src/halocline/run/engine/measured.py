"""Choices that are measured before the first run, where a user asks for it, and remembered for later ones:
the shape of patches, and how kernels of devices go through cells."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from halocline.compile.schedule import AROUND, Loop, Schedule
from halocline.compile.strategy import Strategy
from halocline.compile.targets.source import loop_kernel
from halocline.errors import RunError
from halocline.lang.trace import OWN
from halocline.plan.candidates import candidates
from halocline.run.engine.outcome import Outcome
from halocline.run.engine.watch import interruption
from halocline.run.memory.store import FieldStore
from halocline.run.tuning import kernels, patches
from halocline.run.tuning.patches import BY_CACHES, TUNE, Tuned, largest

if TYPE_CHECKING:
    from halocline.plan.transfer import Transfers

log = logging.getLogger("halocline")

PASSES = f"{OWN}limit"  # of a loop that is timed


class Runnable(Protocol):
    """What a program is once it is prepared."""

    @property
    def engine(self) -> Any:
        """The native engine."""

    def run(self, values: dict[str, float]) -> Outcome:
        """Run it."""


Make = Callable[[FieldStore, Schedule, str, Sequence[int] | str], Runnable]  # as `Prepared` takes it


def strategy(
    store: FieldStore, name: str, compiled: Callable[[Strategy], Schedule], make: Make
) -> Strategy | None:
    """How kernels go through cells, on devices: as the user says, or as was measured, which is done here
    where the user asks for it. All ranks call this."""
    domain = store.domain
    if not domain.devices:
        return None
    if domain.how.kernels not in (kernels.AUTO, TUNE):
        return Strategy(domain.how.kernels)
    default = compiled(Strategy())
    loops = any(isinstance(operation, Loop) for operation in default.operations)
    if default.device is None or not loops:
        return Strategy()
    names = [device.name for device in domain.devices]
    key = kernels.key(default.device.source, names, domain.grid.shape, domain.comm.size)
    known = domain.comm.bcast(kernels.recall(key) if domain.comm.rank == 0 else None)
    if known is None and domain.how.kernels == TUNE:
        known = _tuned_kernels(store, name, default, compiled, make)
        if domain.comm.rank == 0 and known is not None:
            try:
                kernels.remember(key, known, name)
            except RunError as error:
                log.warning("%s", error)
    return (known and known.strategy) or Strategy()


def _tuned_kernels(
    store: FieldStore, name: str, default: Schedule, compiled: Callable[[Strategy], Schedule], make: Make
) -> kernels.TunedKernels | None:
    scratch, comm, begun = store.scratch(), store.domain.comm, time.monotonic()
    staged = any(sweep.scratch for sweep in default.sweeps())

    def timer(strategy: Strategy | None) -> Callable[[int], float]:
        schedule = default if strategy is None else compiled(strategy)
        return _Passes(scratch, schedule, name, make)(None)

    try:
        found = kernels.fastest(kernels.strategies(store.domain.grid.ndim, staged), timer)
    except RunError as error:
        if comm.rank == 0:
            log.warning("kernels of %s are not tuned: %s", name, error)
        return None
    if comm.rank == 0:
        log.info("kernels of %s: %s (%.1f s)", name, found, time.monotonic() - begun)
    return found


def tuned_patches(
    store: FieldStore, schedule: Schedule, name: str, library: str, transfers: Transfers, make: Make
) -> Tuned | None:
    """What is remembered of the speed of patches; measured where the user asks for it. All ranks call this.

    Parameters
    ----------
    library : str
        The key of the compiled kernels.
    transfers : Transfers
        Of the plan.
    """
    domain, comm = store.domain, store.domain.comm
    key = patches.key(
        library, transfers, domain.threads, comm.ranks_of_node, domain.how.schedule, schedule.blocks
    )
    known = comm.bcast(patches.recall(key, schedule.ndim) if comm.rank == 0 else None)
    if known is not None or domain.how.patch != TUNE:
        return known
    begun, cut = time.monotonic(), transfers.layout.decomposition
    try:
        found = patches.fastest(
            candidates(largest(cut), domain.threads), _Passes(store.scratch(), schedule, name, make)
        )
    except RunError as error:
        if comm.rank == 0:
            log.warning("patches of %s are not tuned: %s", name, error)
        return None
    if comm.rank == 0:
        log.info("patches of %s: %s (%.1f s)", name, found, time.monotonic() - begun)
        try:
            patches.remember(key, found, name)
        except RunError as error:
            log.warning("%s", error)
    return found


class _Passes:
    """Times passes of a program's loop with patches of any shape, on fields that hold ones.

    Its statements about scalars and its conditions are left out: scalars keep the value 1, and nothing ends
    a run before its time.
    """

    def __init__(self, scratch: FieldStore, schedule: Schedule, name: str, make: Make) -> None:
        body, size = tuple(schedule.pass_sweeps()), len(schedule.scalars)
        loop = Loop(until=None, limit=size, count=size + 1, record=(), body=body)
        own = {*scratch.domain.grid.scalar_values(), AROUND}
        self.values = {scalar: 1.0 for scalar in schedule.scalars if scalar not in own}
        device = schedule.device
        if device is not None:
            test = loop_kernel("passes")
            device = replace(device, source=f"{device.source}\n{test}", loops=("passes",))
        self.schedule = replace(
            schedule,
            operations=(loop,),
            scalars=(*schedule.scalars, PASSES, f"{OWN}passes"),
            device=device,
        )
        self.store, self.name, self.make, self.filled = scratch, name, make, False

    def __call__(self, patch: Sequence[int] | None) -> Callable[[int], float]:
        """The seconds of a number of passes, on the slowest rank."""
        prepared = self.make(self.store, self.schedule, self.name, BY_CACHES if patch is None else patch)
        _ = prepared.engine  # each thread touches its memory first
        if not self.filled:
            self.store.fill(1.0)
            self.filled = True

        def seconds(passes: int) -> float:
            outcome = prepared.run({**self.values, PASSES: float(passes)})
            if outcome.reason == "interrupted":
                raise interruption()
            return outcome.loop_seconds

        return seconds
