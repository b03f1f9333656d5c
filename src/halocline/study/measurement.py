"""Measurements: records of runs, with the command, the machine and the environment of each run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Measurement = dict[str, Any]

# conditions of a run, in contrast to its results
PROBLEM_CONDITIONS = (
    *("study", "case", "settings", "dim", "order", "scheme", "method", "rtol", "max_iterations"),
    *("steps", "warm_up", "growth", "scaling", "fields", "dtype", "radius", "corners"),
    *("panel", "line", "expected_order", "automatic", "watts"),
)
EXECUTION_CONDITIONS = (
    *("decomposition", "patch", "schedule", "methods", "methods_asked", "overlap", "packing"),
    *(
        "communication",
        "gpudirect",
        "subdomains_per_rank",
        "balance",
        "ranks_active",
        "placement",
        "mailboxes",
        "kernels",
        "device",
    ),
    *("io_ranks", "environment", "python"),
)
TABLE_CONDITIONS = (  # conditions that may differ between the rows and columns of a table
    *("n", "shape", "ranks", "threads", "nodes", "ranks_per_node", "hosts", "parts", "methods_used"),
    *("cores_or_devices", "only", "halo"),
)
CONDITIONS = (*PROBLEM_CONDITIONS, *EXECUTION_CONDITIONS, *TABLE_CONDITIONS)
SOLVE_RESULTS = ("steps", "overlap")  # conditions of a run of steps, but results of a linear solve
# results proportional to the time of a run, and results inversely proportional to it
TIME_RESULTS = ("ns_per_cell_step", "seconds_per_iteration")
RATE_RESULTS = ("ssspnt", "share_of_bound", "share_of_peak", "bandwidth_share", "rate")
SOLVE_CONDITIONS = (
    "dim",
    "method",
    "rtol",
    "max_iterations",
)  # conditions of whole solves, but not of the timed parts of a solve


def is_solve(measurement: Measurement) -> bool:
    """Return True for a linear solve, which is timed as a whole instead of per step."""
    return "dof" in measurement


def ranks_of_node(measurement: Measurement) -> int:
    """Return the maximum number of ranks on a node: the observed number, or else the requested number."""
    rank_count = measurement.get("ranks_of_node") or measurement.get("ranks_per_node")
    return int(rank_count or -(-measurement["ranks"] // int(measurement.get("nodes") or 1)))


def mpi_library(measurement: Measurement) -> str:
    """Return the MPI library of a run, such as "MPICH Version: 5.0"."""
    version = str(measurement["machine"]["mpi_version"] or "no MPI")
    return version.partition(",")[0].partition("\n")[0].strip()


def source(measurement: Measurement) -> str:
    """Return the source of a measurement as text.

    The text contains the label of the file, the processor or device, the MPI library, and the commit or
    version. It does not contain the host, because jobs on one cluster may run on different hosts.
    """
    machine = measurement["machine"]
    processor = measurement["devices"][0]["name"] if measurement["devices"] else machine["cpu"]
    version = machine.get("version") or "unknown"
    code = f"commit {machine['commit']}" if machine["commit"] else f"Halocline {version}"
    return ", ".join(filter(None, (measurement.get("label"), processor, mpi_library(measurement), code)))


def conditions(
    measurement: Measurement, without: Collection[str] = (), instead: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return the conditions of a measurement, as texts by name.

    Parameters
    ----------
    measurement : dict
    without : collection of str
        Names of conditions to omit.
    instead : mapping of str to value, optional
        Values of conditions that replace the values of the measurement.
    """
    values = {name: measurement.get(name) for name in CONDITIONS}
    replacements = {name: value for name, value in (instead or {}).items() if name in values}
    if is_solve(measurement):
        values |= dict.fromkeys(SOLVE_RESULTS)
    values |= replacements
    set_variables = {
        name: value for name, value in (values["environment"] or {}).items() if value is not None
    }
    values["environment"] = set_variables
    values["dtype"] = values["dtype"] or "float64"  # records of earlier versions lack it
    values["settings"] = " ".join(sorted(str(values["settings"] or "").split()))
    values["axes"] = len(measurement["shape"])
    values["ranks_per_node"] = ranks_of_node(measurement)  # observed, even if no number was requested
    return {name: _text(value) for name, value in values.items() if name not in without}


def group_by(
    measurements: Iterable[Measurement], key: Callable[[Measurement], Any]
) -> dict[Any, list[Measurement]]:
    """Return the measurements, grouped by the value of a key. Groups are in the order of first occurrence."""
    groups: dict[Any, list[Measurement]] = {}
    for m in measurements:
        groups.setdefault(key(m), []).append(m)
    return groups


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def join_repeats(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Join measurements with the same conditions, source and checksum into one record.

    The time of the joint record is the median time. The entry `times` contains the times of all runs in
    seconds, and the entry `repeats` contains the number of measurements.
    """
    groups = group_by(measurements, lambda m: (source(m), m.get("checksum"), *conditions(m).items()))
    return [group[0] if len(group) == 1 else _merge_repeats(group) for group in groups.values()]


def _merge_repeats(repeats: Sequence[Measurement]) -> Measurement:
    times = [time for m in repeats for time in m["times"]]
    count = sum(m.get("repeats", 1) for m in repeats)
    return {**median_record(repeats, times), "times": times, "repeats": count}


def median_record(records: Sequence[dict[str, Any]], times: Sequence[float]) -> dict[str, Any]:
    """Return the record whose time is nearest to the median time, scaled to the median time.

    Results that are proportional or inversely proportional to the time are scaled accordingly.
    """
    median_time = median(times)
    nearest = min(records, key=lambda record: abs(record["seconds"] - median_time))
    if nearest["seconds"] == median_time:
        return nearest
    ratio = median_time / nearest["seconds"]
    record = {**nearest, "seconds": median_time}
    for names, factor in ((TIME_RESULTS, ratio), (RATE_RESULTS, 1.0 / ratio)):
        record |= {name: factor * nearest[name] for name in names if nearest.get(name) is not None}
    return record
