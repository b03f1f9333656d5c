"""Handing a plan to the engine: three axes, storages for fields, numbers for names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

ROW_ALIGNMENT = 64


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


def scratch_bytes(sweep: Sweep, plan: RankPlan) -> int:
    """Scratch memory that the kernel of a sweep needs for the largest patch."""
    table = plan.patches.table
    extents = (table[:, 1] - table[:, 0]).max(axis=0)
    total = 0
    for item, *extra in sweep.scratch:
        points = [int(n) + e for n, e in zip(extents, extra, strict=True)]
        line = ROW_ALIGNMENT // item
        row = (points[-1] + line - 1) // line * line
        area = item * row
        for n in points[:-1]:
            area *= n
        total += area
    return total


def build_engine(
    native: ModuleType,
    library: Path,
    schedule: Schedule,
    plan: RankPlan,
    storages: Mapping[str, Any],
    scalars: NDArray[np.float64],
    comm: Communicator,
    *,
    streaming: bool,
) -> Any:
    """An engine that executes `schedule` as `plan` says.

    Parameters
    ----------
    storages : mapping of field name to native Storage
    scalars : array of float64
        One per scalar of the schedule; the engine reads and writes it.
    streaming : bool
        Whether results that a sweep does not read go past the cache.
    """
    engine = native.Engine(
        str(library),
        [storages[f.name] for f in schedule.fields],
        scalars,
        three(plan.box.lo),
        three(plan.decomposition.shape, 1),
        plan.threads,
        comm.handle,
        patch_table(plan),
    )
    plans = iter(plan.sweeps)

    def append(operations: tuple[Operation, ...]) -> None:
        # every other sweep runs backward through the patches: it begins with what is left in the cache
        backward = True
        for operation in operations:
            if isinstance(operation, Sweep):
                backward = not backward
                _sweep(native, engine, operation, next(plans), plan, streaming=streaming, backward=backward)
            elif isinstance(operation, Scalars):
                engine.scalars(operation.function)
            elif isinstance(operation, Stop):
                engine.stop(operation.condition, operation.reason)
            elif isinstance(operation, Loop):
                engine.loop(operation.until, operation.limit, operation.count, list(operation.record))
                append(operation.body)
                engine.end()

    append(schedule.operations)
    return engine


def _messages(native: ModuleType, messages: tuple[Message, ...]) -> list[Any]:
    return [native.Message(m.peer, m.tag, [(field, *_box(box)) for field, box in m.parts]) for m in messages]


def _sweep(
    native: ModuleType,
    engine: Any,
    sweep: Sweep,
    todo: SweepPlan,
    plan: RankPlan,
    *,
    streaming: bool,
    backward: bool,
) -> None:
    import numpy as np

    fills, rims = [], []
    for boxes in todo.fills:
        fill = sweep.fills[boxes.fill]
        if boxes.core:
            fills.append(
                native.Fill(fill.kernel, list(fill.operands), *_box(boxes.core), three(()), fill.axis)
            )
        rims += [
            native.Fill(fill.kernel, list(fill.operands), *_box(rim.box), three(()), fill.axis)
            for rim in boxes.rims
        ]
    halos = [[*three(h.box.lo), *three(h.box.hi, 1), *three(h.top)] for h in todo.halos]
    # a halo box that reads rims must wait for every message that they wait for
    halo_needs = [h.needs | (todo.rim_needs if h.rims else 0) for h in todo.halos]
    engine.sweep(
        kernel=sweep.streaming if streaming else sweep.kernel,
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
        scratch_bytes=scratch_bytes(sweep, plan),
        backward=backward,
    )
