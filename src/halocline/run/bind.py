"""Handing a plan to the engine: three axes, storages for fields, numbers for names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import Await, Loop, Operation, Scalars, Schedule, Stop, Sweep
from halocline.plan.box import Box
from halocline.plan.exchange import TAGS, Message
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan
from halocline.run.execution import Execution
from halocline.run.mpi import Communicator
from halocline.run.peers import SharedMemoryPeers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How often a thread that waits looks again at once, before it sleeps in between: native/src/threads/team.hpp
SPINS = {"passive": 20, "usual": 1000, "active": 2**32 - 1}
AFTER_ROWS = 64  # bytes of scratch memory that whole vectors may read beyond the last row: passes/whole.py


def three(values: Sequence[int], fill: int = 0) -> list[int]:
    """Per-axis numbers of a grid of one to three axes as three: missing axes come first."""
    return [fill] * (3 - len(values)) + [int(v) for v in values]


def _box(box: Box) -> tuple[list[int], list[int]]:
    return three(box.lo), three(box.hi, 1)


def patch_table(plan: SubdomainPlan) -> NDArray[np.int64]:
    """Patches as rows of lo, hi, top on three axes."""
    import numpy as np

    table = np.asarray(plan.patches.table, dtype=np.int64)
    missing = 3 - table.shape[2]
    whole = np.zeros((len(table), 3, 3), dtype=np.int64)
    whole[:, 1, :missing] = 1
    whole[:, :, missing:] = table
    return whole.reshape(len(table), 9)


def build_engine(
    native: ModuleType,
    library: Path,
    schedule: Schedule,
    plan: RankPlan,
    storages: Mapping[str, Sequence[Any]],
    scalars: NDArray[np.float64],
    comm: Communicator,
    spins: int = SPINS["usual"],
    peers: SharedMemoryPeers | None = None,
    peer_storages: Mapping[str, Mapping[int, Any]] | None = None,
    how: Execution | None = None,
) -> Any:
    """An engine that executes `schedule` as `plan` says.

    Parameters
    ----------
    storages : mapping of field name to native Storages
        One for each subdomain of the plan.
    scalars : array of float64
        One per scalar of the schedule; the engine reads and writes it.
    spins : int
        How often a thread that waits looks again at once, before it sleeps in between.
    peers : SharedMemoryPeers, optional
        Where there are colocated messages.
    peer_storages : mapping of field name to mapping of int to native Storage, optional
        Views of the memory of these peers, by subdomain.
    how : Execution, optional
        Its schedule and mailboxes.
    """
    how = how or Execution()
    peers, views = peers or SharedMemoryPeers(), peer_storages or {}
    names = [f.name for f in schedule.fields]
    engine = native.Engine(
        str(library),
        [
            native.Subdomain(
                [storages[name][n] for name in names],
                three(own.box.lo),
                patch_table(own),
                own.patches.owners,
                peers.counters,
                n,
            )
            for n, own in enumerate(plan.subdomains)
        ],
        scalars,
        three(plan.decomposition.shape, 1),
        plan.threads,
        spins,
        comm.handle,
        [
            native.Neighbour(rank, [views[name][number] for name in names], peers.signals[rank], local)
            for number, (rank, local) in peers.homes.items()
        ],
        how.mailboxes if "rma" in plan.transfers.methods else 0,
        how.schedule,
    )
    append(engine, schedule.operations, Binder(native, plan, {n: i for i, n in enumerate(peers.homes)}))
    return engine


def append(
    engine: Any, operations: tuple[Operation, ...], binder: Binder, numbers: Iterator[int] | None = None
) -> None:
    """Append operations to an engine. No closure: one that calls itself would keep the engine, and the memory
    of its fields, until Python looks for cycles."""
    numbers = count() if numbers is None else numbers
    for operation in operations:
        if isinstance(operation, Sweep):
            binder.sweep(engine, operation, next(numbers))
        elif isinstance(operation, Scalars):
            engine.scalars(operation.function)
        elif isinstance(operation, Await):
            engine.await_results()
        elif isinstance(operation, Stop):
            engine.stop(operation.condition, operation.reason)
        elif isinstance(operation, Loop):
            binder.loop(engine, operation)
            append(engine, operation.body, binder, numbers)
            engine.end()


class Binder:
    """Turns sweeps of a plan into what native code takes."""

    def __init__(self, native: ModuleType, plan: RankPlan, neighbours: Mapping[int, int]) -> None:
        self.native, self.plan, self.neighbours = native, plan, neighbours
        self.local = {own.number: n for n, own in enumerate(plan.subdomains)}
        self.tags = TAGS * len(plan.subdomains[0].sweeps)

    def sweep(self, engine: Any, sweep: Sweep, number: int) -> None:
        """Append a sweep, the `number`-th of the schedule."""
        todo = [own.sweeps[number] for own in self.plan.subdomains]
        engine.sweep(
            kernel=sweep.kernel,
            operands=list(sweep.operands),
            shares=[
                self.share(sweep, own, each) for own, each in zip(self.plan.subdomains, todo, strict=True)
            ],
            reductions=[(r.kind, r.scalar) for r in sweep.reductions],
            halo_kernel=sweep.halo_kernel if any(each.halos for each in todo) else None,
            swaps=list(sweep.swaps),
            scratch_bytes=max(each.scratch_bytes for each in todo) + (AFTER_ROWS if sweep.scratch else 0),
            backward=todo[0].backward,
            in_place=todo[0].in_place,
        )

    def loop(self, engine: Any, loop: Loop) -> None:
        """Begin a loop."""
        engine.loop(loop.until, loop.limit, loop.count, list(loop.record))

    def share(self, sweep: Sweep, own: SubdomainPlan, todo: SweepPlan) -> Any:
        """What a sweep does in one subdomain."""
        import numpy as np

        fills, rims = [], []
        for boxes in todo.fills:
            fill = sweep.fills[boxes.fill]
            if boxes.core:
                fills.append(self.native.Fill(fill.kernel, list(fill.operands), *_box(boxes.core), fill.axis))
            rims += [
                self.native.Fill(fill.kernel, list(fill.operands), *_box(rim.box), fill.axis)
                for rim in boxes.rims
            ]
        halos = [[*three(h.box.lo), *three(h.box.hi, 1), *three(h.top)] for h in todo.halos]
        # a halo box that reads rims must wait for every message that they wait for
        halo_needs = [h.needs | (todo.rim_needs if h.rims else 0) for h in todo.halos]
        return self.native.Share(
            sends=[self.message(m, m.peer) for m in todo.sends],
            receives=[self.message(m, own.number) for m in todo.receives],
            copies=self.copies(todo),
            fills=fills,
            rims=rims,
            needs=np.ascontiguousarray(todo.patch_needs, dtype=np.uint32),
            needs_rims=np.ascontiguousarray(todo.patch_rims, dtype=np.bool_),
            halo_boxes=np.asarray(halos, dtype=np.int64).reshape(-1, 9),
            halo_needs=np.asarray(halo_needs, dtype=np.uint32),
        )

    def copies(self, todo: SweepPlan) -> list[tuple[Any, ...]]:
        """What a subdomain copies from those of its rank."""
        return [
            (
                c.field,
                three(c.source.lo),
                three(c.target.lo),
                three(c.source.shape, 1),
                self.local[c.subdomain],
            )
            for c in todo.copies
        ]

    def message(self, message: Message, receiver: int) -> Any:
        """A message to the subdomain `receiver`."""
        if message.method == "colocated":
            sources = message.sources or [box for _, box in message.parts]
            parts = [
                (number, *_box(box), three(source.lo))
                for (number, box), source in zip(message.parts, sources, strict=True)
            ]
            return self.native.Message.colocated(self.neighbours[message.peer], message.code, parts)
        home = self.plan.layout.home
        rank, there = home(message.peer)
        whole = [(number, *_box(box)) for number, box in message.parts]
        if message.method == "rma":
            return self.native.Message.rma(rank, there * TAGS + message.code, whole)
        # two subdomains of one rank may both have a message from there in one direction
        tag = home(receiver)[1] * self.tags + message.tag
        return self.native.Message(rank, tag, whole, packed=message.packed)
