"""Handing a plan to the engine: three axes, storages for fields, numbers for names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import Loop, Operation, Scalars, Schedule, Stop, Sweep
from halocline.plan.box import Box
from halocline.plan.exchange import Message
from halocline.plan.rank import RankPlan, SweepPlan
from halocline.run.mpi import Communicator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How often a thread that waits looks again at once, before it sleeps in between: see native/src/team.hpp.
SPINS = {"passive": 20, "usual": 1000, "active": 2**32 - 1}


def three(values: Sequence[int], fill: int = 0) -> list[int]:
    """Per-axis numbers of a grid of one to three axes as three: missing axes come first."""
    return [fill] * (3 - len(values)) + [int(v) for v in values]


def _box(box: Box) -> tuple[list[int], list[int]]:
    return three(box.lo), three(box.hi, 1)


def patch_table(plan: RankPlan) -> NDArray[np.int64]:
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
    storages: Mapping[str, Any],
    scalars: NDArray[np.float64],
    comm: Communicator,
    spins: int = SPINS["usual"],
) -> Any:
    """An engine that executes `schedule` as `plan` says.

    Parameters
    ----------
    storages : mapping of field name to native Storage
    scalars : array of float64
        One per scalar of the schedule; the engine reads and writes it.
    spins : int
        How often a thread that waits looks again at once, before it sleeps in between.
    """
    engine = native.Engine(
        str(library),
        [storages[f.name] for f in schedule.fields],
        scalars,
        three(plan.box.lo),
        three(plan.decomposition.shape, 1),
        plan.threads,
        spins,
        comm.handle,
        patch_table(plan),
        plan.patches.owners,
    )
    _append(native, engine, schedule.operations, iter(plan.sweeps))
    return engine


def _append(
    native: ModuleType, engine: Any, operations: tuple[Operation, ...], plans: Iterator[SweepPlan]
) -> None:
    """Append operations to an engine. No closure: one that calls itself would keep the engine, and the memory
    of its fields, until Python looks for cycles."""
    for operation in operations:
        if isinstance(operation, Sweep):
            _sweep(native, engine, operation, next(plans))
        elif isinstance(operation, Scalars):
            engine.scalars(operation.function)
        elif isinstance(operation, Stop):
            engine.stop(operation.condition, operation.reason)
        elif isinstance(operation, Loop):
            engine.loop(operation.until, operation.limit, operation.count, list(operation.record))
            _append(native, engine, operation.body, plans)
            engine.end()


def _messages(native: ModuleType, messages: tuple[Message, ...]) -> list[Any]:
    return [native.Message(m.peer, m.tag, [(field, *_box(box)) for field, box in m.parts]) for m in messages]


def _sweep(native: ModuleType, engine: Any, sweep: Sweep, todo: SweepPlan) -> None:
    import numpy as np

    fills, rims = [], []
    for boxes in todo.fills:
        fill = sweep.fills[boxes.fill]
        if boxes.core:
            fills.append(native.Fill(fill.kernel, list(fill.operands), *_box(boxes.core), fill.axis))
        rims += [
            native.Fill(fill.kernel, list(fill.operands), *_box(rim.box), fill.axis) for rim in boxes.rims
        ]
    halos = [[*three(h.box.lo), *three(h.box.hi, 1), *three(h.top)] for h in todo.halos]
    # a halo box that reads rims must wait for every message that they wait for
    halo_needs = [h.needs | (todo.rim_needs if h.rims else 0) for h in todo.halos]
    engine.sweep(
        kernel=sweep.kernel,
        operands=list(sweep.operands),
        reductions=[(r.kind, r.scalar) for r in sweep.reductions],
        sends=_messages(native, todo.sends),
        receives=_messages(native, todo.receives),
        copies=[
            (c.field, three(c.source.lo), three(c.target.lo), three(c.source.shape, 1)) for c in todo.copies
        ],
        fills=fills,
        rims=rims,
        needs=np.ascontiguousarray(todo.patch_needs, dtype=np.uint32),
        needs_rims=np.ascontiguousarray(todo.patch_rims, dtype=np.bool_),
        halo_kernel=sweep.halo_kernel if halos else None,
        halo_boxes=np.asarray(halos, dtype=np.int64).reshape(-1, 9),
        halo_needs=np.asarray(halo_needs, dtype=np.uint32),
        swaps=list(sweep.swaps),
        scratch_bytes=todo.scratch_bytes,
        backward=todo.backward,
    )
