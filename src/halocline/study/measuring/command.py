"""Measurements of commands, which run as separate processes, as if a user had called them with --json."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from halocline.errors import InputError, RunError, Terminated
from halocline.io.table import as_rows
from halocline.problems.files import is_file
from halocline.run.devices.devices import OnDevice, hardware_text, summary
from halocline.run.domain.execution import Execution, chosen_devices
from halocline.run.host.machine import this_machine
from halocline.run.host.mpi_library import MPI_VARIABLE
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement, median_record

PER_RUN_OPTIONS = (
    "threads",
    "device",
    "trace",
)  # execution options that a study sets separately for each run
# options of every command that runs a problem, with their defaults
EXECUTION = {
    option.name: option.default for option in fields(Execution) if option.name not in PER_RUN_OPTIONS
}
EXECUTION["gpudirect"] = "off"
RUN: dict[str, Any] = {
    "dim": None, "order": None, "scheme": None, "dtype": None, "steps": None, "warm_up": 0, "only": None,
}  # fmt: skip
DEFAULTS = {"run": RUN | EXECUTION, "bench": EXECUTION | {"scaling": "weak"}}

MACHINE = (
    *("host", "system", "cpu", "cores", "hardware_threads", "numa_nodes", "simd_bits"),
    *("compiler", "compiler_version", "mpi_library", "mpi_version", "version", "commit"),
)
ENVIRONMENT = (  # variables for thread binding, network and code generation
    *("OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY"),
    *("FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES"),
    *("CXX", "HALOCLINE_VECTORS"),
)
NESTED_KEYS = (  # keys with nested values; a row of a CSV file omits them or contains them as text
    *("machine", "environment", "times", "devices", "shape", "parts", "methods_used", "joules_of"),
    *("parameters", "series", "diagnostics", "checksums", "events", "varied", "base"),
    *("automatic", "automatic_for", "extrapolated", "instructions"),
)


@dataclass(frozen=True)
class Command:
    """Command of the runs of a study, without size, ranks and threads.

    Parameters
    ----------
    subcommand : {"run", "bench"}
    name : str
        Name of a case, or path of a user's file.
    options : mapping of str to value
        Options of the command, by their names with underscores. All other options have the values in
        DEFAULTS.
    settings : tuple of str
        Values of the option --set, such as "nu=0.1".
    device : str or None
        Device, as in `halocline.Execution`; None for the device that the environment sets.
    environment : mapping of str to str or None
        Environment variables in addition to those of this process; None removes a variable.
    mpi : str or None
        MPI library, as in the variable HALOCLINE_MPI; None for the one that the environment selects.
    """

    subcommand: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    device: str | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    mpi: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option, or its default."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.options.get(name, DEFAULTS[self.subcommand].get(name))

    def with_options(self, **options: Any) -> Command:
        """Return a copy of the command with additional or changed options.

        The options "environment", "mpi" and "device" replace the fields with the same names.
        """
        field_values = {
            name: options.pop(name) for name in ("environment", "mpi", "device") if name in options
        }
        return replace(self, options={**self.options, **options}, **field_values)

    def check(self) -> None:
        """Raise InputError if options of communication contradict each other."""
        execution_options = {
            name: self.options[name] for name in ("communication", "halo", "packing") if name in self.options
        }
        Execution(**execution_options, gpudirect=self.gpudirect == "on")

    def arguments(self) -> dict[str, str]:
        """Return the options for the command line, without options that have their default values.

        For a problem file, the result contains all options, because the file may have other defaults.
        """
        has_own_defaults = self.subcommand == "run" and is_file(self.name)
        defaults = DEFAULTS[self.subcommand]
        explicit_options = {
            name: self.options[name] for name in (*defaults, *self.options) if name in self.options
        }
        command_options = {
            "--" + name.replace("_", "-"): f"{value}"
            for name, value in explicit_options.items()
            if value is not None and (has_own_defaults or value != defaults.get(name))
        }
        if self.device is not None:
            command_options["--device"] = self.device
        elif not has_own_defaults and (default_device := str(chosen_devices(None))) != "cpu":
            command_options["--device"] = default_device  # other machines may have another default
        return command_options

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the command."""
        library = {} if self.mpi is None else {MPI_VARIABLE: self.mpi}
        variables = {**os.environ, **library, **self.environment}
        return {name: value for name, value in variables.items() if value is not None}

    def facts(self) -> dict[str, Any]:
        """Return the entries of a record that the command itself does not report."""
        if self.subcommand == "bench":
            return {"case": self.name, "methods_asked": self.methods}
        return {"settings": " ".join(self.settings)}

    def execution(self) -> dict[str, Any]:
        """Return the execution options of a case. Records of earlier versions do not contain them."""
        if self.subcommand == "bench" or is_file(self.name):
            return {}
        names = [name for name in EXECUTION if name in ("decomposition", "patch", *self.options)]
        return {name: getattr(self, name) for name in names}


def measure(
    case: Command,
    n: int | Sequence[int] | None,
    layout: Layout,
    *,
    repeat: int = 1,
    extra: Mapping[str, str] | None = None,
) -> Measurement:
    """Run a command one or several times, and return its record, scaled to the median time.

    Parameters
    ----------
    case : Command
    n : int, sequence of int or None
        Number of points or cells along each axis; None for a file with a fixed size.
    layout : Layout
    repeat : int
        Number of runs. All runs must give the same bits.
    extra : mapping of str to str
        Further options of the command, for the first run only.

    Returns
    -------
    dict
        Entries of the record and facts of the problem, with these additional keys:

        - `device`: device of the run.
        - `command`: command line.
        - `started`: start time (UTC).
        - `times`: times of all runs, in seconds.
        - `machine`: see `halocline.run.host.machine.Machine`.
        - `environment`: values of the variables in ENVIRONMENT.

    Raises
    ------
    InputError, RunError
        The command fails. The error contains the message of the command.
    """
    size = {} if n is None else {"--n": f"{n}" if isinstance(n, int) else ",".join(map(str, n))}
    options = {**size, **case.arguments(), **layout.options}
    settings = [word for setting in case.settings for word in ("--set", setting)]
    words = [case.subcommand, case.name, *(word for item in options.items() for word in item), *settings]
    explicit_variables = {**case.environment, MPI_VARIABLE: case.mpi}
    variables = [f"{name}={value}" for name, value in explicit_variables.items() if value is not None]
    command = shlex.join([*variables, "halocline", *words])
    started = datetime.now(UTC).isoformat(timespec="seconds")
    records = []
    for number in range(repeat):
        extra_words = [w for item in (extra or {}).items() for w in item] if number == 0 else []
        records.append(_run(case, [*words, *extra_words]))
        if len({r.get("checksum") for r in records}) > 1:
            raise RunError(f"{command}: two runs gave different bits; please report this as a bug")
    times = [r["seconds"] for r in records]
    record = median_record(records, times)
    missing_options = {name: value for name, value in case.execution().items() if name not in record}
    return {
        **with_common_keys(record),
        **missing_options,
        **case.facts(),
        "device": str(chosen_devices(case.device)),
        "command": command,
        "started": started,
        "times": times,
        "environment": {name: case.variables().get(name) for name in ENVIRONMENT},
        # with another MPI library, the run itself reports the machine
        "machine": record.get("machine") or this_machine().as_dict(),
    }


def with_common_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the keys that all records have in common.

    Records of exchanges and records of earlier versions lack some of these keys.
    """
    devices = {(place["device"], place["name"]) for place in record["devices"]}
    record = {"cores_or_devices": len(devices) or record["ranks"] * record["threads"], **record}
    if "rate" not in record:
        return record
    cells = math.prod(record["shape"])
    missing_keys = ("order", "scheme", "only", "checksum", "share_of_bound", "joules_per_cell_step", "ssspnt")
    exchange_facts = {
        "cells": cells,
        "steps": 1,
        "halo": "read",
        "ns_per_cell_step": 1e9 * record["seconds"] / cells,
    }
    return {**dict.fromkeys(missing_keys), **exchange_facts, **record}


def _run(case: Command, words: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="halocline-") as folder:
        file = Path(folder, "record.json")
        command = [sys.executable, "-m", "halocline.cli", *words, "--json", str(file)]
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env=case.variables(),
        )  # fmt: skip
        if process.returncode == 0:
            record: dict[str, Any] = json.loads(file.read_text())
            if "run" not in record:
                return record
            if record["run"] is None:
                raise InputError(f"{shlex.join(['halocline', *words])}: the file did not run a problem")
            return {**record, **record.pop("run")}
    if process.returncode in (130, -2):
        raise KeyboardInterrupt
    if process.returncode in (Terminated.exit_status, -15):
        raise Terminated
    raise command_error(process, f"{shlex.join(['halocline', *words])}:")


def command_error(process: subprocess.CompletedProcess[str], label: str) -> InputError | RunError:
    """Return the error for a failed command of Halocline, with the message of the command."""
    message = (process.stderr.strip() or f"exit status {process.returncode}").removeprefix(
        "halocline: error: "
    )
    return (InputError if process.returncode == 2 else RunError)(f"{label}\n{message}")


def csv_text(measurements: Iterable[Measurement]) -> str:
    """Return the measurements as comma-separated values, one measurement per line."""
    return as_rows([flatten(m) for m in measurements])


def devices_of(measurement: Measurement) -> str:
    """Return the devices of a measurement as text; empty on the CPU."""
    places = _places(measurement)
    return summary(places) if places else ""


def layout_text(measurement: Measurement) -> str:
    """Return the ranks, threads and devices of a measurement as text."""
    return hardware_text(measurement["ranks"], measurement["threads"], _places(measurement))


def _places(measurement: Measurement) -> list[OnDevice]:
    return [OnDevice(**place) for place in measurement["devices"]]


def flatten(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as one row: nested entries are converted to text or omitted.

    The row contains the facts of the machine that influence times.
    """
    row = {key: value for key, value in measurement.items() if key not in NESTED_KEYS}
    for name in ("shape", "parts"):
        if name in measurement:
            row[name] = "x".join(map(str, measurement[name]))
    row["methods_used"] = " ".join(measurement.get("methods_used") or ())
    row["devices"] = devices_of(measurement)
    row["runs"] = len(measurement["times"])
    row |= {name.lower(): value for name, value in measurement["environment"].items()}
    machine = measurement["machine"]
    return row | {name: machine.get(name) for name in MACHINE}
