"""The energy of runs, where the host reports it: that of processors by RAPL, of NVIDIA GPUs by NVML."""

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
from halocline.run.engine.prepared import repeating
from halocline.run.ranks.communicator import Communicator

POWERCAP = Path("/sys/class/powercap")
ZONE = re.compile(r"intel-rapl:\d+")  # of a processor, AMD's too; what is below it is counted in it
MOST_POWER = 1000.0  # watts of a processor: how soon its counter may have begun anew twice


@dataclass(frozen=True)
class Energy:
    """What a run took, the same on all ranks.

    Attributes
    ----------
    joules : float
    of : tuple of str
        Of what: "processors", "devices".
    """

    joules: float
    of: tuple[str, ...]


@dataclass(frozen=True)
class Counter:
    """A reading of a counter of microjoules, which begins anew beyond `most`."""

    microjoules: int
    most: int

    def until(self, later: Counter, seconds: float) -> float | None:
        """Joules from this reading to a later one; None where the counter may have begun anew twice."""
        if seconds * MOST_POWER * 1e6 > self.most:
            return None
        spent = later.microjoules - self.microjoules
        return 1e-6 * (spent if spent >= 0 else spent + self.most)


class EnergyMeter:
    """Adds up what all nodes of a run take while it is on; all ranks make it and call it together.

    Parameters
    ----------
    comm : Communicator
    devices : sequence of native Device
        That this rank drives.
    nvml : module, optional
        What answers in the place of the module `pynvml`.
    """

    def __init__(self, comm: Communicator, devices: Sequence[Any] = (), nvml: Any = None) -> None:
        self.comm, self.nvml, self.on_devices = comm, nvml, bool(devices)
        own = [device.identity for device in devices if device.interface == "cuda"]
        reports = comm.allgather((platform.node(), own))
        here = [rank for rank, (host, _) in enumerate(reports) if host == platform.node()]
        self.reads = comm.rank == here[0]  # one process for all of a node
        driven = {each for rank in here for each in reports[rank][1]}
        self.identities = sorted(driven) if self.reads else []
        self._parts: dict[str, list[float | None]] = {"processors": [], "devices": []}

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Count the energy that is taken inside the block."""
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
        """What was counted so far; None where a node does not report it for what computes."""
        own = {part: _sum(each) for part, each in self._parts.items()}
        nodes = [each for each in self.comm.allgather(own if self.reads else {}) if each]
        sums = {part: _sum([node[part] for node in nodes]) for part in self._parts}
        wanted = "devices" if self.on_devices else "processors"
        if sums[wanted] is None:
            return None
        counted = {part: joules for part, joules in sums.items() if joules is not None}
        return Energy(sum(counted.values()), tuple(counted))


@contextlib.contextmanager
def _counting(read: Callable[[], list[Counter]]) -> Iterator[list[float | None]]:
    """Yield the energies of the parts of the block, in joules, which are complete after it.

    A part ends before a counter may begin anew twice. Its energy is None where there are no counters, or
    where one was not read in time.
    """
    parts: list[float | None] = []
    at, last = perf_counter(), read()

    def add() -> None:
        nonlocal at, last
        before, began = last, at
        last, at = read(), perf_counter()
        parts.append(_spent(before, last, at - began))

    often = min((counter.most for counter in last), default=0) / (MOST_POWER * 1e6) / 4
    try:
        with repeating(add, "halocline-energy", min(often, 3600.0)) if last else contextlib.nullcontext():
            yield parts
    finally:
        add()


def processors(folder: Path = POWERCAP) -> list[Counter]:
    """The counters of the processors of this node; none where one of them cannot be read."""
    found = []
    try:
        for zone in sorted(each for each in folder.iterdir() if ZONE.fullmatch(each.name)):
            if (zone / "name").read_text().startswith("package"):
                read = (int((zone / name).read_text()) for name in ("energy_uj", "max_energy_range_uj"))
                found.append(Counter(*read))
    except (OSError, ValueError):
        return []
    return found


def gpus(identities: Sequence[str], nvml: Any = None) -> list[Counter]:
    """The counters of these GPUs; none where one of them does not report."""
    try:
        with nvml_running(nvml) as running:
            handles = [running.nvmlDeviceGetHandleByUUID(each) for each in identities]
            millijoules = [running.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in handles]
    except RunError:
        return []
    return [Counter(1000 * each, 2**63) for each in millijoules]


def _spent(before: Sequence[Counter], after: Sequence[Counter], seconds: float) -> float | None:
    """Joules of counters together; None where there are none, or they do not report."""
    if not before or len(before) != len(after):
        return None
    return _sum([first.until(last, seconds) for first, last in zip(before, after, strict=True)])


def _sum(joules: Sequence[float | None]) -> float | None:
    known = [each for each in joules if each is not None]
    return sum(known) if joules and len(known) == len(joules) else None
