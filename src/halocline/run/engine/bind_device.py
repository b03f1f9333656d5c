"""Handing a plan to the engine where subdomains lie on devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import Loop, Schedule, Sweep
from halocline.plan.box import three
from halocline.plan.exchange import Message
from halocline.plan.launches import Item, Launch, SweepLaunches, sweep_launches
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan
from halocline.run.devices.devices import device_errors
from halocline.run.devices.links import Ends
from halocline.run.domain.threads import SPINS
from halocline.run.engine.bind import Binder, append
from halocline.run.ranks.communicator import Communicator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def build_device_engine(
    native: ModuleType,
    library: Path,
    schedule: Schedule,
    plan: RankPlan,
    storages: Mapping[str, Sequence[Any]],
    scalars: NDArray[np.float64],
    comm: Communicator,
    devices: Sequence[Any],
    modules: Sequence[Any],
    spins: int = SPINS["usual"],
    name: str = "",
) -> Any:
    """An engine that executes `schedule` as `plan` says, on devices. All ranks call this, and outside an
    agreement: they wait for each other here.

    Parameters
    ----------
    storages : mapping of field name to native DeviceStorages
        One for each subdomain of the plan.
    scalars : array of float64
        One per scalar of the schedule; the engine reads and writes it.
    devices, modules : sequence
        The native Device of each subdomain, and the kernels compiled for it.
    name : str
        Of the program, for messages.

    Raises
    ------
    RunError
        What a device of some rank says, on all ranks.
    """

    @contextmanager
    def together() -> Iterator[None]:
        with comm.agreement(f"prepare {name!r} for devices"), device_errors(f"program {name!r}"):
            yield

    names = [f.name for f in schedule.fields]
    colocated = "colocated" in plan.transfers.methods
    with device_errors(f"program {name!r}"):
        ends = Ends(native, comm, plan, devices) if colocated else None
    with together():
        subdomains = [
            native.DeviceSubdomain(
                devices[n], modules[n], [storages[each][n] for each in names], len(schedule.scalars)
            )
            for n in range(len(plan.subdomains))
        ]
    # duplicates the communicator: no rank may be missing
    with device_errors(f"program {name!r}"):
        engine = native.Engine.on_devices(
            str(library), subdomains, scalars, three(plan.decomposition.shape, 1), spins, comm.handle
        )
    with together():
        append(engine, schedule.operations, _DeviceBinder(native, schedule, plan, ends))
    return engine


class _DeviceBinder(Binder):
    """Turns sweeps of a plan into what native code takes for devices."""

    def __init__(self, native: ModuleType, schedule: Schedule, plan: RankPlan, ends: Ends | None) -> None:
        super().__init__(native, plan, {})
        assert schedule.device is not None
        self.schedule, self.ends, self.loops = schedule, ends, iter(schedule.device.loops)

    def loop(self, engine: Any, loop: Loop) -> None:
        engine.loop(loop.until, loop.limit, loop.count, list(loop.record), next(self.loops))

    def sweep(self, engine: Any, sweep: Sweep, number: int) -> None:
        todo = [own.sweeps[number] for own in self.plan.subdomains]
        shares = [self._share(sweep, own, each) for own, each in zip(self.plan.subdomains, todo, strict=True)]
        engine.device_sweep(
            sweep.kernel,
            shares,
            [(r.kind, r.scalar) for r in sweep.reductions],
            list(sweep.swaps),
            max(each.scratch_bytes for each in todo),
        )

    def _share(self, sweep: Sweep, own: SubdomainPlan, todo: SweepPlan) -> Any:
        planned = sweep_launches(self.schedule, sweep, own, todo)
        return self.native.DeviceShare(
            [self._message(m, own.number, m.peer) for m in todo.sends],
            [self._message(m, m.peer, own.number) for m in todo.receives],
            self.copies(todo),
            [self._launch(launch, own, planned) for launch in planned.fills],
            [self._launch(launch, own, planned) for launch in planned.rims],
            [self._item(item, own, planned) for item in planned.items],
            [(kernel.name, list(kernel.reductions), groups) for kernel, groups in planned.partials],
        )

    def _message(self, message: Message, sender: int, receiver: int) -> Any:
        """A message between two subdomains, one of which is this rank's."""
        home = self.plan.layout.home
        peer, tag = home(message.peer)[0], home(receiver)[1] * self.tags + message.tag
        parts = [(number, three(box.lo), three(box.hi, 1)) for number, box in message.parts]
        if message.method == "colocated":
            assert self.ends is not None
            return self.ends[sender, receiver, message.tag].message(peer, tag, parts)
        make = self.native.Message.gpu_aware if message.method == "gpu_aware" else self.native.Message
        return make(peer, tag, parts, packed=message.packed)

    def _item(self, item: Item, own: SubdomainPlan, planned: SweepLaunches) -> Any:
        launches = [self._launch(launch, own, planned) for launch in item.launches]
        return self.native.Item(item.needs, item.rims, launches)

    def _launch(self, launch: Launch, own: SubdomainPlan, planned: SweepLaunches) -> Any:
        kernel = launch.kernel
        groups = dict(planned.partials).get(kernel, 0)
        frame = [
            *three(launch.cells.lo),
            *three(launch.cells.hi, 1),
            *three(launch.patch.lo),
            *three(launch.patch.hi, 1),
            *three(launch.top),
            *three(own.box.lo),
            *three(own.decomposition.shape, 1),
            launch.first_group,
            groups,
            launch.march,
        ]
        return self.native.Launch(
            kernel.name,
            list(kernel.operands),
            frame,
            launch.groups,
            launch.group,
            kernel.scratch,
            bool(kernel.reductions),
            kernel.layouts,
        )
