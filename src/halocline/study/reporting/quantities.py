"""Quantities that are derived from measurements, such as times, speed-up and efficiency, and their texts."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from math import prod
from typing import Any

from halocline.study.measurement import Measurement, is_solve
from halocline.words import counted, joined, method

Key = Callable[[Measurement], Any]

WIDTH = 92  # maximum length of a line of a note, in characters


def units(measurement: Measurement) -> int:
    """Return the number of devices of a run; without devices, the number of cores."""
    return int(measurement["cores_or_devices"])


def unit(measurement: Measurement) -> str:
    """Return the noun for `units`: "device" or "core"."""
    return "device" if measurement["devices"] else "core"


def nodes(measurement: Measurement) -> int:
    """Return the number of nodes of a run; 1 if the record of an earlier version lacks it."""
    return int(measurement.get("nodes") or 1)


def host_text(measurement: Measurement, before: str = " ") -> str:
    """Return the number of hosts as text; empty if each node of the run is a separate host."""
    hosts = measurement.get("hosts")
    return f"{before}(on {counted(hosts, 'host')})" if hosts and hosts < nodes(measurement) else ""


def grid(measurement: Measurement) -> tuple[int, tuple[int, ...]]:
    """Return the sort key of the grid: its number of cells and its shape."""
    return measurement["cells"], tuple(measurement["shape"])


def subdomains(measurement: Measurement) -> int:
    """Return the number of subdomains of the grid."""
    return prod(measurement.get("parts") or (_workers(measurement),))


def _workers(measurement: Measurement) -> int:
    """Return the number of devices of a run; without devices, the number of ranks."""
    return len(measurement["devices"]) or int(measurement["ranks"])


def layout(measurement: Measurement) -> str:
    """Return a short text on the ranks, threads, devices and nodes of a run."""
    ranks, count = counted(measurement["ranks"], "rank"), nodes(measurement)
    on_nodes = f" on {counted(count, 'node')}{host_text(measurement)}" if count > 1 else ""
    if measurement["devices"]:
        return f"{ranks}, {counted(units(measurement), 'device')}{on_nodes}"
    return f"{ranks} of {counted(measurement['threads'], 'thread')}{on_nodes}"


def ns(measurement: Measurement) -> float:
    """Return the wall-clock time per cell of the grid and step, in nanoseconds."""
    return float(measurement["ns_per_cell_step"])


def update_seconds(measurement: Measurement) -> float:
    """Return the time of a step of the whole grid, in seconds."""
    return 1e-9 * ns(measurement) * float(measurement["cells"])


def node_rate(measurement: Measurement) -> float:
    """Return the millions of cells that a node updates in a second."""
    return 1e3 / (ns(measurement) * nodes(measurement))


def rank_ns(measurement: Measurement) -> float:
    """Return the time per step and cell of one rank or device, in nanoseconds.

    This time is constant in ideal weak scaling.
    """
    return ns(measurement) * _workers(measurement)


def pace(measurement: Measurement) -> float:
    """Return the time for comparisons: seconds for a whole solve, or else nanoseconds per cell and step."""
    return float(measurement["seconds"]) if is_solve(measurement) else ns(measurement)


def speedup(measurement: Measurement, base: Measurement) -> float:
    """Return T_1 / T_p, where T_1 is the time of the base times its number of cores or devices."""
    return units(base) * pace(base) / pace(measurement)


def efficiency(measurement: Measurement, base: Measurement) -> float:
    """Return the parallel efficiency: the speed-up divided by the number of devices or cores."""
    return speedup(measurement, base) / units(measurement)


def size(measurement: Measurement) -> str:
    """Return the size of the grid as text, such as 64³ or 64 x 32."""
    shape = measurement["shape"]
    if len(set(shape)) == 1:
        return f"{shape[0]}{('', '', '²', '³')[len(shape)]}"
    return " x ".join(map(str, shape))


def case_text(measurement: Measurement) -> str:
    """Return the case, the order, the scheme, and a precision other than float64, as text for a heading."""
    method_text = method(measurement["order"], measurement["scheme"], measurement.get("dtype"))
    return joined(measurement["case"], method_text)


def heading(measurement: Measurement) -> str:
    """Return the heading of the tables for one grid."""
    return f"{size(measurement)}: {measurement['cells']:,} cells, {case_text(measurement)}"


def wrap_notes(*sentences: str) -> str:
    """Return sentences as lines of at most WIDTH characters. Each argument begins a new line."""
    return "\n".join(textwrap.fill(sentence, WIDTH) for sentence in sentences)


def text(value: float | None, form: str = ".3g") -> str:
    """Return a number as text; empty for None."""
    return "" if value is None else format(value, form)


def percent(share: float | None) -> str:
    """Return a share in percent as text; empty for None."""
    return "" if share is None else f"{share:.0%}" if share >= 0.005 else f"{share:.1%}"


def nanoseconds(value: float | None) -> str:
    """Return a number as text with three digits and without an exponent; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
