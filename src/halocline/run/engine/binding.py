"""A planned program bound to the engine, which is made anew where the memory of fields has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import AROUND, Schedule
from halocline.native import native
from halocline.plan.rank import wraps_rows
from halocline.run.devices.devices import compile_for
from halocline.run.engine.bind import build_engine
from halocline.run.engine.bind_device import build_device_engine
from halocline.run.engine.planning import Planned
from halocline.run.memory.store import FieldStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Binding:
    """The engine of a planned program.

    Parameters
    ----------
    store : FieldStore
    schedule : Schedule
    planned : Planned
    name : str
        Of the program.

    Attributes
    ----------
    values : array of float64
        One for each scalar of the schedule; the engine reads and writes it.
    modules : dict
        Kernels by device.
    made : native Engine or None
        The engine where it is made already; any thread may read it.
    """

    def __init__(self, store: FieldStore, schedule: Schedule, planned: Planned, name: str) -> None:
        import numpy as np

        self.store, self.schedule, self.planned, self.name = store, schedule, planned, name
        self.values: NDArray[np.float64] = np.zeros(len(schedule.scalars))
        transfers = store.domain.transfers
        if transfers is not None and AROUND in schedule.scalars and wraps_rows(transfers):
            self.values[schedule.scalars.index(AROUND)] = store.domain.grid.shape[-1]
        self.modules: dict[Any, Any] = {}
        self.made: Any = None
        self._generation = -1

    @property
    def engine(self) -> Any:
        """The native engine, made anew where storages have changed."""
        if self.made is None or self._generation != self.store.generation:
            if self.store.domain.devices:
                self.made = None  # what it takes of the devices' memory goes first
                self.made = self._on_devices()
            else:
                self.made = self._on_host()
            self._generation = self.store.generation
        return self.made

    def _on_host(self) -> Any:
        domain = self.store.domain
        return build_engine(
            native(),
            self.planned.library,
            self.schedule,
            self.planned.plan,
            self.store.storages,
            self.values,
            domain.comm,
            domain.spins,
            domain.peers,
            self.store.peer_storages,
            domain.how,
        )

    def _on_devices(self) -> Any:
        domain, device = self.store.domain, self.schedule.device
        assert device is not None
        with domain.comm.agreement(f"compile kernels of {self.name!r} for devices"):
            if not self.modules:
                own = list(dict.fromkeys(domain.devices))
                self.modules = {each: compile_for(each, device.source) for each in own}
        devices = [domain.device_of(n) for n in range(len(self.planned.plan.subdomains))]
        return build_device_engine(
            native(),
            self.planned.library,
            self.schedule,
            self.planned.plan,
            self.store.storages,
            self.values,
            domain.comm,
            devices,
            [self.modules[each] for each in devices],
            domain.spins,
            self.name,
        )
