"""Measurements: each a fresh `halocline solve` or `halocline run` with --json, so that a result is what the
command gives."""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol

from halocline.errors import InputError, RunError
from halocline.run.devices.devices import OnDevice, summary
from halocline.run.domain.execution import chosen_devices
from halocline.run.host.machine import this_machine
from halocline.study.table import as_rows, where

Measurement = dict[str, Any]

MACHINE = (
    *("host", "system", "cpu", "cores", "hardware_threads", "numa_nodes", "simd_bits"),
    *("compiler", "compiler_version", "mpi_library", "mpi_version", "commit"),
)
ENVIRONMENT = ("OMP_PROC_BIND", "OMP_PLACES")
NESTED = (  # of a measurement, which a table leaves out
    *("machine", "environment", "times", "devices", "shape", "joules_of"),
    *("parameters", "series", "diagnostics", "checksums", "events"),
)


class Problem(Protocol):
    """What is measured, but size, ranks and threads: the words of a command."""

    verb: ClassVar[str]

    @property
    def name(self) -> str:
        """What follows the verb."""

    @property
    def device(self) -> str | None:
        """What `halocline.Execution` takes; None: what the environment says."""

    @property
    def settings(self) -> tuple[str, ...]:
        """What --set takes, each."""

    def options(self) -> dict[str, str]:
        """As options of the command; those at their defaults are left out."""

    def facts(self) -> dict[str, Any]:
        """For the record, beside what the command reports."""


@dataclass(frozen=True)
class Solve:
    """A case of `halocline solve`: what all measurements of a study have in common.

    Parameters
    ----------
    name : str
        As in `halocline solve NAME`.
    dim : int
    method : str
    rtol : float
    max_iterations : int or None
    decomposition : str
    patch : str or None
        As on the command line: "64" or "64,128".
    device : str or None
        What `halocline.Execution` takes; None: what the environment says.
    """

    verb: ClassVar[str] = "solve"
    settings: ClassVar[tuple[str, ...]] = ()

    name: str
    dim: int = 2
    method: str = "cg-fused"
    rtol: float = 1e-6
    max_iterations: int | None = None
    decomposition: str = "optimal"
    patch: str | None = None
    device: str | None = None

    def options(self) -> dict[str, str]:
        return _options(self, ("dim", "method", "rtol", "max_iterations", "decomposition", "patch"))

    def facts(self) -> dict[str, Any]:
        names = ("dim", "method", "rtol", "max_iterations", "decomposition", "patch")
        return {"case": self.name, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Steps:
    """Steps of a case of `halocline run`.

    Parameters
    ----------
    name : str
    order : int or None
    scheme : str or None
        Both None for a case that is a program.
    steps : int or None
        None: those of the case.
    warm_up : int
    settings : tuple of str
        As --set takes them: "nu=0.1".
    dim : int or None
        Axes; None: those of the case.
    only : {"compute", "exchange"} or None
    halo : {"read", "uniform"}
    decomposition, patch, device
        As for `Solve`.
    """

    verb: ClassVar[str] = "run"

    name: str
    order: int | None = 6
    scheme: str | None = "rk3"
    steps: int | None = None
    warm_up: int = 0
    settings: tuple[str, ...] = ()
    only: str | None = None
    halo: str = "read"
    decomposition: str = "optimal"
    patch: str | None = None
    device: str | None = None
    dim: int | None = None

    def options(self) -> dict[str, str]:
        names = ("dim", "order", "scheme", "steps", "warm_up", "only", "halo", "decomposition", "patch")
        return _options(self, names)

    def facts(self) -> dict[str, Any]:
        return {"decomposition": self.decomposition, "patch": self.patch, "settings": " ".join(self.settings)}


@dataclass(frozen=True)
class FileRun:
    """A run of a user's file.

    Parameters
    ----------
    name : str
        Its path.
    settings : tuple of str
        As --set takes them.
    device
        As for `Solve`.
    """

    verb: ClassVar[str] = "run"
    # what the file itself decides
    order: ClassVar[int | None] = None
    scheme: ClassVar[str | None] = None
    dim: ClassVar[int | None] = None
    only: ClassVar[str | None] = None
    halo: ClassVar[str] = "read"
    decomposition: ClassVar[str] = "optimal"

    name: str
    settings: tuple[str, ...] = ()
    device: str | None = None

    def options(self) -> dict[str, str]:
        return _options(self, ())

    def facts(self) -> dict[str, Any]:
        return {"settings": " ".join(self.settings)}


def _options(problem: Any, names: Iterable[str]) -> dict[str, str]:
    """The fields of a problem that are not at their defaults, and where it runs."""
    given = {}
    for name in (*names, "device"):
        value = getattr(problem, name)
        if value is not None and value != getattr(type(problem), name):
            given["--" + name.replace("_", "-")] = f"{value}"
    if problem.device is None and (found := str(chosen_devices(None))) != "cpu":
        given["--device"] = found  # whoever repeats the command may have another environment
    return given


def measure(
    case: Problem,
    n: int | Sequence[int] | None,
    *,
    ranks: int,
    threads: int,
    repeat: int = 1,
    extra: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Measurement:
    """Run the command, once or several times, and return the record of the run of median time.

    Parameters
    ----------
    case : Problem
    n : int, sequence of int or None
        Along each axis; None for a file that has a size of its own.
    ranks, threads : int
    repeat : int
        How often; all runs must give the same bits.
    extra : mapping of str to str
        Further options of the command, for the first run alone.
    report : callable
        Takes a line of text before the first run and after each.

    Returns
    -------
    dict
        The keys of the record, then the facts of the problem, `device` (what was chosen), `command`,
        `started` (UTC), `times` (seconds of all runs), `machine` (halocline.run.host.machine.Machine) and
        `environment`.

    Raises
    ------
    InputError, RunError
        What the command ended with.
    """
    size = {} if n is None else {"--n": f"{n}" if isinstance(n, int) else ",".join(map(str, n))}
    options = {**size, **case.options(), "--ranks": f"{ranks}", "--threads": f"{threads}"}
    settings = [word for each in case.settings for word in ("--set", each)]
    words = [case.verb, case.name, *(word for item in options.items() for word in item), *settings]
    command = shlex.join(["halocline", *words])
    started = datetime.now(UTC).isoformat(timespec="seconds")
    report(command)
    records = []
    for number in range(repeat):
        more = [w for item in (extra or {}).items() for w in item] if number == 0 else []
        records.append(_run([*words, *more]))
        if {r["checksum"] for r in records} != {records[0]["checksum"]}:
            raise RunError(f"{command}: two runs gave different bits; please report this as a bug")
    times = [r["seconds"] for r in records]
    record = min(records, key=lambda r: abs(r["seconds"] - statistics.median_low(times)))
    return {
        **record,
        **case.facts(),
        "device": str(chosen_devices(case.device)),
        "command": command,
        "started": started,
        "times": times,
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
        "machine": this_machine().as_dict(),
    }


def _run(words: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="halocline-") as folder:
        file = Path(folder, "record.json")
        command = [sys.executable, "-m", "halocline.cli", *words, "--json", str(file)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            record: dict[str, Any] = json.loads(file.read_text())
            if "run" not in record:
                return record
            if record["run"] is None:
                raise InputError(f"{shlex.join(['halocline', *words])}: the file has run no problem")
            return {**record, **record.pop("run")}
    if done.returncode in (130, -2):
        raise KeyboardInterrupt
    said = (done.stderr.strip() or f"exit status {done.returncode}").removeprefix("halocline: error: ")
    kind = InputError if done.returncode == 2 else RunError
    raise kind(f"{shlex.join(['halocline', *words])}:\n{said}")


def as_csv(measurements: Iterable[Measurement]) -> str:
    """Measurements as a table of comma-separated values, one line each, with the facts of the machine."""
    return as_rows([flat(m) for m in measurements])


def devices_of(measurement: Measurement) -> str:
    """The devices that a measurement ran on, in words; "" on the CPU."""
    places = _places(measurement)
    return summary(places) if places else ""


def ran_on(measurement: Measurement) -> str:
    """Where a measurement ran, in words."""
    return where(measurement["ranks"], measurement["threads"], _places(measurement))


def _places(measurement: Measurement) -> list[OnDevice]:
    return [OnDevice(**place) for place in measurement["devices"]]


def flat(measurement: Measurement) -> dict[str, Any]:
    """A measurement without nesting; only the facts of the machine that matter beside a time are kept."""
    row = {key: value for key, value in measurement.items() if key not in NESTED}
    if "shape" in measurement:
        row["shape"] = "x".join(map(str, measurement["shape"]))
    row["devices"] = devices_of(measurement)
    row["runs"] = len(measurement["times"])
    row |= {name.lower(): value for name, value in measurement["environment"].items()}
    machine = measurement["machine"]
    return row | {name: machine[name] for name in MACHINE}
