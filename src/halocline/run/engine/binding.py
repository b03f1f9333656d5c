"""A planned program bound to the engine, which is built again where the memory of fields has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import AROUND, Schedule
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
    """Engine of a planned program.

    Parameters
    ----------
    store : FieldStore
    schedule : Schedule
    planned : Planned
    name : str
        Name of the program.

    Attributes
    ----------
    values : array of float64
        One for each scalar of the schedule; the engine reads and writes it.
    modules : dict
        Kernels by device.
    made : native Engine or None
        The engine where it is built already; any thread may read it.
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
        """The native engine, built again where storages have changed."""
        if self.made is None or self._generation != self.store.generation:
            parts = self.store, self.schedule, self.planned.plan, self.planned.library, self.values
            if self.store.domain.devices:
                self.made = None  # its memory of the devices is freed first
                self.made = build_device_engine(*parts, self._modules(), self.name)
            else:
                self.made = build_engine(*parts)
            self._generation = self.store.generation
        return self.made

    def _modules(self) -> list[Any]:
        """Return the kernels for the device of each subdomain; all ranks call this."""
        domain, device = self.store.domain, self.schedule.device
        assert device is not None
        with domain.comm.agreement(f"compile kernels of {self.name!r} for devices"):
            if not self.modules:
                distinct = dict.fromkeys(domain.devices)
                self.modules = {present: compile_for(present, device.source) for present in distinct}
        return [self.modules[domain.device_of(n)] for n in range(len(self.planned.plan.subdomains))]
