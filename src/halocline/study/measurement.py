"""Measurements: records of runs with the command, the machine and the environment; their conditions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Measurement = dict[str, Any]

# keys that say what was run, as opposed to its results: measurements that agree in all of them are repeats
PROBLEM = (
    *("study", "case", "settings", "dim", "order", "scheme", "method", "rtol", "max_iterations"),
    *("steps", "warm_up", "growth", "scaling", "fields", "dtype", "radius", "corners"),
    *("panel", "line", "expected_order", "automatic"),
)
EXECUTION = (
    *("decomposition", "patch", "schedule", "methods", "methods_asked", "overlap", "packing"),
    *("communication", "subdomains_per_rank", "ranks_per_node", "mailboxes", "kernels", "device", "io_ranks"),
    "environment",
)
PLACE = ("n", "shape", "ranks", "threads", "nodes", "cores_or_devices", "only", "halo")  # axes of all tables
CONDITIONS = (*PROBLEM, *EXECUTION, *PLACE)
OUTCOMES_OF_SOLVES = ("steps", "overlap")  # a solve ends by itself and says whether overlap paid
# results that a longer time makes larger, and smaller, in proportion
AS_TIME = ("seconds", "ns_per_cell_step", "seconds_per_iteration")
AS_SPEED = ("ssspnt", "share_of_bound", "share_of_peak", "bandwidth_share", "rate")
ONLY_OF_SOLVES = ("dim", "method", "rtol", "max_iterations")  # not of their parts


def is_solve(measurement: Measurement) -> bool:
    """Return whether a measurement is of a linear solve, whose whole time counts, and not of steps."""
    return "dof" in measurement


def source(measurement: Measurement) -> str:
    """Return the processor or device, MPI and commit; jobs of one cluster may run on different hosts."""
    machine = measurement["machine"]
    mpi = str(machine["mpi_version"] or "no MPI").partition(",")[0].partition("\n")[0].strip()
    what = measurement["devices"][0]["name"] if measurement["devices"] else machine["cpu"]
    return f"{what}, {mpi}, commit {(machine['commit'] or 'unknown')[:12]}"


def conditions(
    measurement: Measurement, without: Collection[str] = (), instead: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return what a measurement was run with, as texts by name.

    Parameters
    ----------
    measurement : dict
    without : collection of str
        Names that are left out.
    instead : mapping of str to value, optional
        Values that take the place of those of the measurement.
    """
    own = {name: measurement.get(name) for name in CONDITIONS}
    given = {name: value for name, value in (instead or {}).items() if name in own}
    if is_solve(measurement):
        own |= dict.fromkeys(OUTCOMES_OF_SOLVES)
    own |= given
    own["settings"] = " ".join(sorted(str(own["settings"] or "").split()))
    own["axes"] = len(measurement["shape"])
    return {name: _text(value) for name, value in own.items() if name not in without}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def joined_repeats(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Join measurements of the same conditions, source and checksum into one each, at their median time.

    Its `times` are the seconds of all runs, and its `repeats` is the number of measurements.
    """
    alike: dict[Any, list[Measurement]] = {}
    for m in measurements:
        key = (source(m), m.get("checksum"), tuple(conditions(m).items()))
        alike.setdefault(key, []).append(m)
    return [own[0] if len(own) == 1 else _joined(own) for own in alike.values()]


def _joined(alike: Sequence[Measurement]) -> Measurement:
    times = [time for m in alike for time in m["times"]]
    repeats = sum(m.get("repeats", 1) for m in alike)
    return {**at_median(alike, times), "times": times, "repeats": repeats}


def at_median(records: Sequence[dict[str, Any]], times: Sequence[float]) -> dict[str, Any]:
    """Return the record whose seconds are nearest to the median of the times, with the median instead.

    Results that follow from the seconds are changed in proportion.
    """
    middle = median(times)
    nearest = min(records, key=lambda record: abs(record["seconds"] - middle))
    if nearest["seconds"] == middle:
        return nearest
    ratio = middle / nearest["seconds"]
    found = {**nearest, "seconds": middle}
    for names, factor in ((AS_TIME[1:], ratio), (AS_SPEED, 1.0 / ratio)):
        found |= {name: factor * nearest[name] for name in names if nearest.get(name) is not None}
    return found
