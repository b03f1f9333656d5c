"""Bind a plan to the engine where subdomains lie on devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import Loop, Schedule, Sweep
from halocline.native import native
from halocline.plan.box import three
from halocline.plan.launches import Launch, SweepLaunches, sweep_launches
from halocline.plan.rank import RankPlan, SubdomainPlan, SweepPlan
from halocline.run.devices.devices import device_errors
from halocline.run.devices.links import Ends
from halocline.run.engine.bind import Binder
from halocline.run.memory.store import FieldStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

    All ranks call this, and outside an agreement: they wait for each other here.

    Parameters
    ----------
    store, schedule, plan, library, scalars
        As for `halocline.run.engine.bind.build_engine`.
    modules : sequence
        The kernels compiled for the device of each subdomain.
    name : str
        Name of the program, for messages.

    Raises
    ------
    RunError
        On all ranks, where a device of some rank fails.
    """
    domain, code = store.domain, native()

    @contextmanager
    def together() -> Iterator[None]:
        with domain.comm.agreement(f"prepare {name!r} for devices"), device_errors(f"program {name!r}"):
            yield

    devices = [domain.device_of(n) for n in range(len(plan.subdomains))]
    colocated = "colocated" in plan.transfers.methods
    with device_errors(f"program {name!r}"):
        ends = Ends(code, domain.comm, plan, devices) if colocated else None
    with together():
        subdomains = [
            code.DeviceSubdomain(
                device, module, [store.storages[f.name][n] for f in schedule.fields], len(schedule.scalars)
            )
            for n, (device, module) in enumerate(zip(devices, modules, strict=True))
        ]
    # duplicates the communicator: no rank may be missing
    with device_errors(f"program {name!r}"):
        engine = code.Engine.on_devices(
            str(library),
            subdomains,
            scalars,
            three(plan.decomposition.shape, 1),
            domain.spins,
            domain.comm.handle,
        )
    with together():
        DeviceBinder(code, schedule, plan, ends).append(engine, schedule.operations)
    return engine


class DeviceBinder(Binder):
    """Conversion for an engine whose devices compute."""

    def __init__(self, native: ModuleType, schedule: Schedule, plan: RankPlan, ends: Ends | None) -> None:
        super().__init__(native, plan, {}, ends)
        assert schedule.device is not None
        self.schedule, self.loops = schedule, iter(schedule.device.loops)

    def loop(self, engine: Any, loop: Loop) -> None:
        engine.loop(loop.until, loop.limit, loop.count, list(loop.record), next(self.loops))

    def sweep(self, engine: Any, sweep: Sweep, plans: tuple[SweepPlan, ...], shares: list[Any]) -> None:
        engine.device_sweep(
            sweep.kernel,
            shares,
            [(r.kind, r.scalar) for r in sweep.reductions],
            list(sweep.swaps),
            max(plan.scratch_bytes for plan in plans),
        )

    def share(self, sweep: Sweep, subdomain: SubdomainPlan, plan: SweepPlan) -> Any:
        planned = sweep_launches(self.schedule, sweep, subdomain, plan)

        def launches(of: Sequence[Launch]) -> list[Any]:
            return [self._launch(launch, subdomain, planned) for launch in of]

        return self.native.DeviceShare(
            *self.exchange(subdomain, plan),
            launches(planned.fills),
            launches(planned.rims),
            [self.native.Item(item.needs, item.rims, launches(item.launches)) for item in planned.items],
            [(kernel.name, list(kernel.reductions), groups) for kernel, groups in planned.partials],
        )

    def _launch(self, launch: Launch, subdomain: SubdomainPlan, planned: SweepLaunches) -> Any:
        kernel = launch.kernel
        frame = [
            *chain(*launch.cells.on_three_axes, *launch.patch.on_three_axes),
            *three(launch.top),
            *three(subdomain.box.lo),
            *three(subdomain.decomposition.shape, 1),
            launch.first_group,
            dict(planned.partials).get(kernel, 0),
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
