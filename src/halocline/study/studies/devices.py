"""Study that compares CPUs and devices on the same problem (Pekkilä et al. 2022, Fig. 15)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.reference import references
from halocline.study.reporting.report import Column, Contents, Group, ordered_rows, row_table
from halocline.study.study import Study, StudyRequest


def device_variants(request: StudyRequest) -> list[dict[str, Any]]:
    """Return the options of a run on CPUs, and of a run on the requested or the present devices."""
    from halocline.run.devices.devices import present_interface

    requested_device = request.command.device
    names = dict.fromkeys(("cpu", present_interface() if requested_device is None else requested_device))
    return [{"device": name} for name in names if name is not None]


def interface(measurement: Measurement) -> str:
    """Return the interface of a run: "cpu", "cuda" or "opencl"."""
    return str(measurement.get("device") or "cpu").partition(":")[0]


def _speedup(measurement: Measurement, group: Group) -> str:
    times = [q.pace(m) for m in group.members if interface(m) == "cpu"]
    return f"{min(times) / q.pace(measurement):.2f}" if times else ""


def _tables(group: Group) -> Iterator[Table]:
    columns = (
        Column("", lambda m, g: interface(m)),
        c.LAYOUT,
        c.NS,
        Column("speed-up\nover cores", _speedup),
    )
    note = "The speed-up is relative to the fastest run on the cores of the same machine."
    for size in group.split(q.grid):
        rows = ordered_rows(size, lambda m: (interface(m), m["ranks"]))
        optional_columns, heading = c.optional_columns(size), q.heading(size.first)
        yield row_table("Times", (*columns, *optional_columns), rows, left=2, note=note, heading=heading)
    for reference in references("devices"):
        yield from reference.tables(group)


STUDY = Study(
    "devices",
    title="CPUs and devices",
    about="Compare the cores and the devices of this machine on one problem.",
    help="The report follows Fig. 15 of Pekkilä et al. 2022. --device selects the devices. By default, the "
    "study uses all devices of this machine.",
    examples=("halocline study devices mhd-benchmark --n 64 --ranks 1,2",),
    contents=(c.SAME_BITS, Contents(_tables, select_group=c.whole_runs)),
    variants=device_variants,
)
