"""Energy of runs. RAPL measures processors, and NVML measures NVIDIA GPUs, if the host supports this."""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from halocline.errors import RunError
from halocline.run.devices.topology import nvml_running
from halocline.run.engine.prepared import call_repeatedly
from halocline.run.ranks.communicator import Communicator

POWERCAP = Path("/sys/class/powercap")
ZONE = re.compile(r"intel-rapl:\d+")  # zone of an Intel or AMD processor; its energy includes its subzones
MOST_POWER = 1000.0  # maximum power of a processor in watts: determines after which time its counter may wrap


@dataclass(frozen=True)
class Energy:
    """Energy consumption of a run, identical on all ranks.

    Attributes
    ----------
    joules : float
        Energy of the measured components.
    of : tuple of str
        Measured components: "processors", "devices" or both.
    """

    joules: float
    of: tuple[str, ...]


@dataclass(frozen=True)
class Counter:
    """Reading of an energy counter in microjoules. The counter wraps to 0 after the value `most`."""

    microjoules: int
    most: int

    def until(self, later: Counter, seconds: float) -> float | None:
        """Return the joules between two readings, or None if the counter may have wrapped more than once."""
        if seconds * MOST_POWER * 1e6 > self.most:
            return None
        spent = later.microjoules - self.microjoules
        return 1e-6 * (spent if spent >= 0 else spent + self.most)


class EnergyMeter:
    """Meter for the energy of all nodes of a run. Creation and all methods are collective.

    Parameters
    ----------
    comm : Communicator
    devices : sequence of native Device
        Devices of this rank.
    nvml : module, optional
        Replacement for the module `pynvml`.
    """

    def __init__(self, comm: Communicator, devices: Sequence[Any] = (), nvml: Any = None) -> None:
        self.comm, self.nvml, self.on_devices = comm, nvml, bool(devices)
        identities = [device.identity for device in devices if device.interface == "cuda"]
        reports = comm.allgather((platform.node(), identities))
        ranks_of_node = [rank for rank, (host, _) in enumerate(reports) if host == platform.node()]
        self.reads = comm.rank == ranks_of_node[0]  # one process per node reads the counters
        driven = {identity for rank in ranks_of_node for identity in reports[rank][1]}
        self.identities = sorted(driven) if self.reads else []
        self._parts: dict[str, list[float | None]] = {"processors": [], "devices": []}

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Measure the energy during the with block."""
        counters = partial(gpus, self.identities, self.nvml)
        with (
            _counting(processors if self.reads else list) as of_processors,
            _counting(counters if self.identities else list) as of_devices,
        ):
            yield
        for part, joules in zip(self._parts, (of_processors, of_devices), strict=True):
            self._parts[part].append(_sum(joules))

    @property
    def total(self) -> Energy | None:
        """Total energy measured so far in all `with` blocks, or None if it is unknown.

        If the run uses devices, all nodes must report the energy of devices. Otherwise, all nodes must report
        the energy of processors.
        """
        node_sums = {part: _sum(entry) for part, entry in self._parts.items()}
        nodes = [entry for entry in self.comm.allgather(node_sums if self.reads else {}) if entry]
        sums = {part: _sum([node[part] for node in nodes]) for part in self._parts}
        computing_part = "devices" if self.on_devices else "processors"
        if sums[computing_part] is None:
            return None
        known_parts = {part: joules for part, joules in sums.items() if joules is not None}
        return Energy(sum(known_parts.values()), tuple(known_parts))


@contextlib.contextmanager
def _counting(read: Callable[[], list[Counter]]) -> Iterator[list[float | None]]:
    """Yield a list to which energies in joules are added during the with block and at its end.

    Each entry is the energy since the previous entry. The intervals are so short that a counter cannot wrap
    twice. An entry is None if there are no counters, or if a counter was not read in time.
    """
    parts: list[float | None] = []
    start, last = perf_counter(), read()

    def add() -> None:
        nonlocal start, last
        before, previous_start = last, start
        last, start = read(), perf_counter()
        parts.append(_spent(before, last, start - previous_start))

    interval = min((counter.most for counter in last), default=0) / (MOST_POWER * 1e6) / 4
    try:
        with (
            call_repeatedly(add, "halocline-energy", min(interval, 3600.0))
            if last
            else contextlib.nullcontext()
        ):
            yield parts
    finally:
        add()


def processors(folder: Path = POWERCAP) -> list[Counter]:
    """Return the counters of all processors of this node, or an empty list if a counter cannot be read."""
    counters = []
    try:
        for zone in sorted(entry for entry in folder.iterdir() if ZONE.fullmatch(entry.name)):
            if (zone / "name").read_text().startswith("package"):
                read = (int((zone / name).read_text()) for name in ("energy_uj", "max_energy_range_uj"))
                counters.append(Counter(*read))
    except (OSError, ValueError):
        return []
    return counters


def gpus(identities: Sequence[str], nvml: Any = None) -> list[Counter]:
    """Return the counters of all given GPUs, or an empty list if a GPU does not report its energy."""
    try:
        with nvml_running(nvml) as running:
            handles = [running.nvmlDeviceGetHandleByUUID(identity) for identity in identities]
            millijoules = [running.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in handles]
    except RunError:
        return []
    return [Counter(1000 * energy, 2**63) for energy in millijoules]


def _spent(before: Sequence[Counter], after: Sequence[Counter], seconds: float) -> float | None:
    """Return the total joules between two readings of counters, or None if a counter gives no result."""
    if not before or len(before) != len(after):
        return None
    return _sum([first.until(last, seconds) for first, last in zip(before, after, strict=True)])


def _sum(joules: Sequence[float | None]) -> float | None:
    known = [energy for energy in joules if energy is not None]
    return sum(known) if joules and len(known) == len(joules) else None
