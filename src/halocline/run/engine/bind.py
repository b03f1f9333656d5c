"""Binding of a plan to the native engine.

Binding extends boxes to three axes, and replaces fields by storages and names by indices.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.schedule import Await, Fill, Loop, Operation, Scalars, Schedule, Stop, Sweep
from halocline.native import native
from halocline.plan.box import Box, three
from halocline.plan.exchange import TAGS, Message
from halocline.plan.launches import Launch, constant_launches, sweep_launches
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan
from halocline.run.devices.devices import device_errors
from halocline.run.devices.links import Ends, ends_of_messages
from halocline.run.domain.domain import SharedMemoryPeers
from halocline.run.memory.store import FieldStore

AFTER_ROWS = 64  # bytes of scratch memory beyond the last row, for reads by full vectors (passes/loops.py)


def build_engine(
    store: FieldStore, schedule: Schedule, plan: RankPlan, library: Path, scalars: NDArray[np.float64]
) -> Any:
    """Return an engine that executes a schedule on the host.

    Parameters
    ----------
    store : FieldStore
        Store with a storage for each field of the schedule and each subdomain of the plan.
    schedule : Schedule
    plan : RankPlan
    library : path
        Library of the compiled kernels.
    scalars : array of float64
        One value per scalar of the schedule. The engine reads and writes this array.
    """
    domain, code = store.domain, native()
    names = [f.name for f in schedule.fields]
    peers = domain.peers or SharedMemoryPeers()
    subdomains, around = [], []
    for n, subdomain in enumerate(plan.subdomains):
        fields, patches = [store.storages[name][n] for name in names], _patch_table(subdomain)
        owners, origin = subdomain.patches.owners, three(subdomain.box.lo)
        subdomains.append(code.Subdomain(fields, origin, patches, owners, peers.counters, n))
    for number, (rank, local) in peers.homes.items():
        fields = [store.peer_storages[name][number] for name in names]
        around.append(code.Neighbour(rank, fields, peers.signals[rank], local))
    engine = code.Engine(
        str(library),
        subdomains,
        scalars,
        three(plan.decomposition.shape, 1),
        plan.threads,
        domain.spins,
        domain.comm.handle,
        around,
        domain.execution.mailboxes if "rma" in plan.transfers.methods else 0,
        domain.execution.schedule,
    )
    neighbours = {number: n for n, number in enumerate(peers.homes)}
    sweeps = sum(1 for _ in schedule.sweeps())
    HostBinder(plan, neighbours, sweeps).append(engine, schedule.operations)
    return engine


def _patch_table(plan: SubdomainPlan) -> NDArray[np.int64]:
    """Return the patches as an array (patches, 9). A row contains lo, hi and top, on three axes each."""
    table = np.zeros((len(plan.patches), 3, 3), dtype=np.int64)
    table[:, 1] = 1
    table[:, :, 3 - plan.decomposition.ndim :] = plan.patches.table
    return table.reshape(-1, 9)


class Binder(ABC):
    """Conversion of the operations of a schedule and a plan into operations of an engine.

    Parameters
    ----------
    plan : RankPlan
    neighbours : mapping of int to int
        Subdomains of other processes that this process reads, each with its index in the engine.
    sweeps : int
        Number of sweeps of the schedule.
    ends : Ends, optional
        Local ends of the colocated messages between devices.
    """

    def __init__(
        self, plan: RankPlan, neighbours: Mapping[int, int], sweeps: int, ends: Ends | None = None
    ) -> None:
        self.native, self.plan, self.neighbours, self.ends = native(), plan, neighbours, ends
        self._sweeps = itertools.count()
        self._tags = TAGS * sweeps

    def append(self, engine: Any, operations: Iterable[Operation]) -> None:
        """Append operations to the engine in program order, including operations inside loops."""
        for operation in operations:
            if isinstance(operation, Sweep):
                number = next(self._sweeps)
                plans = tuple(subdomain.sweeps[number] for subdomain in self.plan.subdomains)
                parts = zip(self.plan.subdomains, plans, strict=True)
                self.sweep(engine, operation, plans, [self.share(operation, *part) for part in parts])
            elif isinstance(operation, Scalars):
                engine.scalars(operation.function)
            elif isinstance(operation, Await):
                engine.await_results()
            elif isinstance(operation, Stop):
                engine.stop(operation.condition, operation.reason)
            elif isinstance(operation, Loop):
                self.loop(engine, operation)
                self.append(engine, operation.body)
                engine.end()

    @abstractmethod
    def sweep(self, engine: Any, sweep: Sweep, plans: tuple[SweepPlan, ...], shares: list[Any]) -> None:
        """Append a sweep. `plans` and `shares` contain its plan and its native share for each subdomain."""

    @abstractmethod
    def share(self, sweep: Sweep, subdomain: SubdomainPlan, plan: SweepPlan) -> Any:
        """Return the native share of a sweep: its work in one subdomain."""

    def loop(self, engine: Any, loop: Loop) -> None:
        """Append the beginning of a loop."""
        engine.loop(loop.until, loop.limit, loop.count, list(loop.record))

    def exchange(self, subdomain: SubdomainPlan, plan: SweepPlan) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the sends, receives and copies that a subdomain needs for a sweep."""
        home = self.plan.layout.home
        copies = [
            (c.field, three(c.source.lo), three(c.target.lo), three(c.source.shape, 1), home(c.subdomain)[1])
            for c in plan.copies
        ]
        sends = [self.message(m, subdomain.number, m.peer) for m in plan.sends]
        return sends, [self.message(m, m.peer, subdomain.number) for m in plan.receives], copies

    def message(self, message: Message, sender: int, receiver: int) -> Any:
        """Return the native form of a message. The sender or the receiver is a subdomain of this rank."""
        home = self.plan.layout.home
        peer, peer_index = home(message.peer)
        # Two subdomains of a rank may receive a message from the same peer in the same direction. Therefore
        # the tag contains the index of the receiver.
        tag = home(receiver)[1] * self._tags + message.tag
        link = None
        if message.method == "rma":
            tag = peer_index * TAGS + message.code
        elif message.method == "colocated" and self.ends is not None:
            link = self.ends[sender, receiver, message.tag]
        elif message.method == "colocated":
            peer, tag = self.neighbours[message.peer], message.code
        parts = [(number, *box.on_three_axes) for number, box in message.parts]
        sources = [three(box.lo) for box in message.sources]
        return self.native.Message(peer, tag, parts, sources, message.method, message.packed, link)


def _scratch_bytes(plans: Iterable[SweepPlan]) -> int:
    return max((plan.scratch_bytes for plan in plans), default=0)


class HostBinder(Binder):
    """Binder for an engine that computes in threads of the host."""

    def sweep(self, engine: Any, sweep: Sweep, plans: tuple[SweepPlan, ...], shares: list[Any]) -> None:
        engine.sweep(
            kernel=sweep.kernel,
            operands=list(sweep.operands),
            shares=shares,
            reductions=[(r.kind, r.scalar) for r in sweep.reductions],
            halo_kernel=sweep.halo_kernel if any(plan.halos for plan in plans) else None,
            swaps=list(sweep.swaps),
            scratch_bytes=_scratch_bytes(plans) + (AFTER_ROWS if sweep.scratch else 0),
            backward=any(plan.backward for plan in plans),  # identical in all subdomains
            in_place=any(plan.in_place for plan in plans),
        )

    def share(self, sweep: Sweep, subdomain: SubdomainPlan, plan: SweepPlan) -> Any:
        halos = [[*three(h.box.lo), *three(h.box.hi, 1), *three(h.top)] for h in plan.halos]
        return self.native.Share(
            *self.exchange(subdomain, plan),
            fills=[self._fill(sweep.fills[n], box) for n, box in plan.cores],
            rims=[self._fill(sweep.fills[n], box) for n, box in plan.rims],
            needs=np.ascontiguousarray(plan.patch_needs, dtype=np.uint32),
            needs_rims=np.ascontiguousarray(plan.patch_rims, dtype=np.bool_),
            halo_boxes=np.asarray(halos, dtype=np.int64).reshape(-1, 9),
            halo_needs=np.asarray(plan.halo_needs, dtype=np.uint32),
        )

    def _fill(self, fill: Fill, box: Box) -> Any:
        return self.native.Fill(fill.kernel, list(fill.operands), *box.on_three_axes, fill.axis)


def build_device_engine(
    store: FieldStore,
    schedule: Schedule,
    plan: RankPlan,
    library: Path,
    scalars: NDArray[np.float64],
    modules: Sequence[Any],
    name: str = "",
) -> Any:
    """Return an engine that executes a schedule on devices.

    All ranks call this function outside a block of `Communicator.agreement`, because it contains collective
    operations.

    Parameters
    ----------
    store, schedule, plan, library, scalars
        Arguments as in `halocline.run.engine.bind.build_engine`.
    modules : sequence
        Kernels compiled for the device of each subdomain.
    name : str
        Name of the program, for messages.

    Raises
    ------
    RunError
        A device of any rank fails. The error is raised on all ranks.
    """
    domain, code = store.domain, native()

    @contextmanager
    def on_all_ranks() -> Iterator[None]:
        with domain.comm.agreement(f"prepare {name!r} for devices"), device_errors(f"program {name!r}"):
            yield

    devices = [domain.device_of(n) for n in range(len(plan.subdomains))]
    colocated = "colocated" in plan.transfers.methods
    with device_errors(f"program {name!r}"):
        ends = ends_of_messages(domain.comm, plan, devices) if colocated else None
    with on_all_ranks():
        subdomains = [
            code.DeviceSubdomain(
                device, module, [store.storages[f.name][n] for f in schedule.fields], len(schedule.scalars)
            )
            for n, (device, module) in enumerate(zip(devices, modules, strict=True))
        ]
    # The engine duplicates the communicator, which is a collective operation.
    with device_errors(f"program {name!r}"):
        shape, handle = three(plan.decomposition.shape, 1), domain.comm.handle
        engine = code.Engine.on_devices(str(library), subdomains, scalars, shape, domain.spins, handle)
    with on_all_ranks():
        binder = DeviceBinder(schedule, plan, ends)
        engine.constants([binder.constants(subdomain) for subdomain in plan.subdomains])
        binder.append(engine, schedule.operations)
    return engine


class DeviceBinder(Binder):
    """Binder for an engine that computes on devices."""

    def __init__(self, schedule: Schedule, plan: RankPlan, ends: Ends | None) -> None:
        super().__init__(plan, {}, sum(1 for _ in schedule.sweeps()), ends)
        assert schedule.device is not None
        self.schedule, self.loops = schedule, iter(schedule.device.loops)

    def loop(self, engine: Any, loop: Loop) -> None:
        engine.loop(loop.until, loop.limit, loop.count, list(loop.record), next(self.loops), loop.interval)

    def sweep(self, engine: Any, sweep: Sweep, plans: tuple[SweepPlan, ...], shares: list[Any]) -> None:
        reductions = [(r.kind, r.scalar) for r in sweep.reductions]
        engine.device_sweep(sweep.kernel, shares, reductions, list(sweep.swaps), _scratch_bytes(plans))

    def share(self, sweep: Sweep, subdomain: SubdomainPlan, plan: SweepPlan) -> Any:
        planned = sweep_launches(self.schedule, sweep, subdomain, plan)

        totals = dict(planned.partials)

        def launches(of: Sequence[Launch]) -> list[Any]:
            return [self._launch(launch, subdomain, totals.get(launch.kernel, 0)) for launch in of]

        items = [
            self.native.Item(item.needs, item.rims, launches(item.launches), item.halo)
            for item in planned.items
        ]
        partials = [(kernel.name, list(kernel.reductions), total) for kernel, total in planned.partials]
        boundary = launches(planned.fills), launches(planned.rims)
        invariants = launches(planned.invariants)
        return self.native.DeviceShare(
            *self.exchange(subdomain, plan), invariants, *boundary, items, partials
        )

    def constants(self, subdomain: SubdomainPlan) -> list[Any]:
        """Return the native launches at the start of a run."""
        return [self._launch(launch, subdomain, 0) for launch in constant_launches(self.schedule)]

    def _launch(self, launch: Launch, subdomain: SubdomainPlan, total_blocks: int) -> Any:
        """Return a native launch; `total_blocks` counts the thread blocks of a kernel that reduces."""
        kernel = launch.kernel
        frame = [
            *chain(*launch.cells.on_three_axes, *launch.patch.on_three_axes),
            *three(launch.top),
            *three(subdomain.box.lo),
            *three(subdomain.decomposition.shape, 1),
            launch.first_block,
            total_blocks,
            *launch.block_cells,
        ]
        operands, reduces, scratch = list(kernel.operands), bool(kernel.reductions), kernel.scratch
        return self.native.Launch(
            kernel.name,
            operands,
            frame,
            launch.block_counts,
            launch.block_shape,
            scratch,
            reduces,
            kernel.layouts,
            kernel.invariants or ("", 0),
            [[*chain(*box.on_three_axes), end] for box, end in launch.walls],
            kernel.tile_bytes,
        )
