"""What is derived from measurements, and how it is written: times, speed-up, efficiency, where they ran."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from halocline.study.measurement import Measurement, is_solve
from halocline.words import counted, joined, method

Key = Callable[[Measurement], Any]

WIDTH = 92  # of notes


def by(measurements: Iterable[Measurement], key: Key) -> Iterator[tuple[Any, list[Measurement]]]:
    """Those of each value of `key`, in its order."""
    found: dict[Any, list[Measurement]] = {}
    for m in measurements:
        found.setdefault(key(m), []).append(m)
    yield from sorted(found.items())


def units(measurement: Measurement) -> int:
    """What a time is plotted over: devices where there are some, else cores."""
    return int(measurement["cores_or_devices"])


def unit(measurement: Measurement) -> str:
    """What `units` counts, one of them."""
    return "device" if measurement["devices"] else "core"


def nodes(measurement: Measurement) -> int:
    """Return the number of nodes of a run; 1 for a record of an older Halocline."""
    return int(measurement.get("nodes") or 1)


def grid(measurement: Measurement) -> tuple[int, tuple[int, ...]]:
    """Return the key of the grid: its number of cells, then its shape."""
    return measurement["cells"], tuple(measurement["shape"])


def subdomains(measurement: Measurement) -> int:
    """Into how many the grid was cut."""
    return len(measurement["devices"]) or int(measurement["ranks"])


def layout(measurement: Measurement) -> str:
    """Where it ran, in a few words."""
    ranks, count = counted(measurement["ranks"], "rank"), nodes(measurement)
    on_nodes = f" on {counted(count, 'node')}" if count > 1 else ""
    if measurement["devices"]:
        return f"{ranks}, {counted(units(measurement), 'device')}{on_nodes}"
    return f"{ranks} of {counted(measurement['threads'], 'thread')}{on_nodes}"


def ns(measurement: Measurement) -> float:
    """Nanoseconds of a cell and step, all devices or cores together."""
    return float(measurement["ns_per_cell_step"])


def of_a_rank(measurement: Measurement) -> float:
    """Return the nanoseconds of a step and a cell of one rank, which are constant in ideal weak scaling."""
    return ns(measurement) * subdomains(measurement)


def pace(measurement: Measurement) -> float:
    """What is compared: the seconds of a whole solve, or the nanoseconds of a cell and step."""
    return float(measurement["seconds"]) if is_solve(measurement) else ns(measurement)


def baseline(measurements: Sequence[Measurement]) -> Measurement:
    """What speed-ups are relative to: the run on the fewest devices or cores, the fastest of them."""
    return min(measurements, key=lambda m: (units(m), pace(m)))


def speedup(measurement: Measurement, base: Measurement) -> float:
    """T_1 / T_p; where the base has more than one core or device it counts as that many times faster than
    one."""
    return units(base) * pace(base) / pace(measurement)


def efficiency(measurement: Measurement, base: Measurement) -> float:
    """Parallel: how much of the devices or cores that were added shows in the time."""
    return speedup(measurement, base) / units(measurement)


def size(measurement: Measurement) -> str:
    """Of the grid: 64³, or 64 x 32."""
    shape = measurement["shape"]
    if len(set(shape)) == 1:
        return f"{shape[0]}{('', '', '²', '³')[len(shape)]}"
    return " x ".join(map(str, shape))


def named(measurement: Measurement) -> str:
    """Return the case, the order and the scheme, for a heading."""
    return joined(measurement["case"], method(measurement["order"], measurement["scheme"]))


def heading(measurement: Measurement) -> str:
    """Return the heading of the tables of one size."""
    return f"{size(measurement)}: {measurement['cells']:,} cells, {named(measurement)}"


def updates(measurement: Measurement) -> str:
    """Cells and steps a joule, in millions; empty where energy is not known."""
    joules = measurement["joules_per_cell_step"]
    return f"{1e-6 / joules:.3g}" if joules else ""


def same_bits(measurements: Iterable[Measurement]) -> list[str]:
    """Whether runs of the same problem gave the same result, a sentence for each problem."""
    said = []

    def problem(m: Measurement) -> tuple[Any, ...]:
        names = ("case", "settings", "scheme", "method")
        return (*m["shape"], m["order"] or 0, m["steps"], *(str(m.get(name) or "") for name in names))

    found = [m for m in measurements if m["checksum"] is not None]
    for _, own in by(found, problem):
        one, sums = own[0], {m["checksum"] for m in own}
        problem_of = joined(size(one), method(one["order"], None), counted(one["steps"], "step"))
        what = f"{problem_of}: {counted(len(own), 'run')}"
        if len(sums) > 1:
            said.append(f"{what} gave {len(sums)} different results; please report this as a bug.")
        elif len(own) > 1:
            said.append(f"{what}, all with the same bits: checksum {sums.pop()}.")
    return said


def wrapped(*sentences: str) -> str:
    """Notes below a table, each on lines of its own that fit a terminal."""
    return "\n".join(textwrap.fill(each, WIDTH) for each in sentences)


def percent(share: float | None) -> str:
    """A share as a table has it; empty where there is none."""
    return "" if share is None else f"{share:.0%}" if share >= 0.005 else f"{share:.1%}"


def nanoseconds(value: float) -> str:
    """A number of three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
