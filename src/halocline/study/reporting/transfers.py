"""Reports of exchanges with several placements and transfer methods (Pearson et al. 2020, Figs. 11 to 13)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from halocline.io.table import Table
from halocline.plan.transfer import AWARE_SETS, SETS, UNFIT_ON_HOST
from halocline.study.measurement import Measurement
from halocline.study.measuring.exchange import received_text
from halocline.study.reporting import quantities as q
from halocline.study.reporting.report import (
    Axis,
    Column,
    Group,
    by_layout,
    ordered_rows,
    pivot_table,
    row_table,
)
from halocline.words import counted, duration

NAMES = {methods: name for sets in (SETS, AWARE_SETS) for name, methods in sets.items()}
# reasons why MPI does not read device memory in any run, by the interface of the devices
UNUSED_REASONS = {
    "opencl": "MPI libraries cannot read the memory of OpenCL devices",
    "cuda": "no run has a set of methods with gpu_aware",
}


def set_name(measurement: Measurement) -> str:
    """Return the name of the requested set of transfer methods, or the methods if the set has no name."""
    methods = str(measurement["methods_asked"])
    return NAMES.get(methods, methods)


def is_aware(measurement: Measurement) -> bool:
    """Return True if a run requested MPI messages from device memory."""
    return "gpu_aware" in str(measurement["methods_asked"])


def configuration(measurement: Measurement) -> str:
    """Return the configuration in the notation of Section IV.C, such as "1n/6r/6g/1363/ca".

    The numbers are those of nodes, ranks per node, subdomains per node (one for each device), and cells per
    axis. "ca" means that the run requested MPI messages from device memory. If there are fewer hosts than
    nodes, the text ends with the number of hosts.
    """
    nodes, cells = q.nodes(measurement), "x".join(map(str, measurement["shape"]))
    cells = cells if len(set(measurement["shape"])) > 1 else str(measurement["shape"][0])
    node_text = f"{measurement['ranks'] // nodes}r/{q.subdomains(measurement) // nodes}g"
    return f"{nodes}n/{node_text}/{cells}" + "/ca" * is_aware(measurement) + q.host_text(measurement)


def _hosts(m: Measurement) -> int:
    """Return the number of hosts of a run, or the number of nodes if an earlier version wrote the record."""
    return int(m.get("hosts") or q.nodes(m))


def _row(m: Measurement) -> tuple[int, int, int, bool, int]:
    return q.nodes(m), _hosts(m), m["ranks"], is_aware(m), m["cells"]


def _column(m: Measurement) -> tuple[int, str]:
    name = set_name(m)
    return (list(SETS).index(name) if name in SETS else len(SETS)), name


def _is_unavailable(m: Measurement) -> bool:
    """Return True if a run requested MPI messages from device memory, but could not use them."""
    return is_aware(m) and "gpu_aware" not in m["methods"]


def _speedup(m: Measurement, group: Group) -> float | None:
    """Return the speed-up over the set +remote in the same configuration; None if it was not measured."""
    mpi_only = group.select(lambda other: _row(other) == _row(m) and set_name(other) == "+remote").members
    return mpi_only[0]["seconds"] / m["seconds"] if mpi_only else None


def _cell(m: Measurement, group: Group) -> str:
    if _is_unavailable(m):
        return "unavailable"
    ratio = _speedup(m, group)
    return duration(m["seconds"]) + ("" if ratio is None else f" ({ratio:.2f})")


def tables(group: Group) -> Iterator[Table]:
    """Yield tables of times and of bytes for each size, with the sets of methods in columns."""
    for size in group.split(lambda m: m["n"]):
        first = size.first
        exchange_text = f"{counted(first['fields'], first['dtype'] + ' field')}, radius {first['radius']}"
        pivot = partial(
            pivot_table,
            rows=Axis(_row, configuration),
            columns=Axis(_column, set_name),
            head="nodes/ranks/devices",
        )
        note = q.wrap_notes("In brackets: speed-up over +remote, which uses MPI only.", *notes(size))
        yield pivot(
            "Time of an exchange",
            group=size,
            cell=_cell,
            note=note,
            heading=f"{exchange_text}, n = {first['n']}",
        )
        available = size.select(lambda m: not _is_unavailable(m))
        yield pivot("Bytes into the busiest rank", group=available, cell=lambda m, g: received_text(m))


def notes(group: Group) -> list[str]:
    """Return sentences on unavailable methods, and on cores that several threads share."""
    sentences, first = dict[str, None](), group.first
    for m in group.members:
        for method, reason in m.get("unavailable", {}).items():
            sentences[f"{configuration(m)}: {method} is unavailable: {reason}."] = None
    if not any(map(is_aware, group.members)):
        interface = first["devices"][0]["device"].partition(":")[0] if first["devices"] else "cpu"
        reason = UNUSED_REASONS.get(interface, UNFIT_ON_HOST["gpu_aware"])
        sentences[f"CUDA-aware MPI (ca) is not measured: {reason}."] = None
    for m in group.members:
        cores, threads = m["machine"]["cores"], -(-m["ranks"] * m["threads"] // _hosts(m))
        if threads > cores:
            shared_cores = f"{threads} threads of a host share its {counted(cores, 'core')}"
            sentences[f"{configuration(m)}: {shared_cores}."] = None
    return list(sentences)


def sentences(group: Group) -> Iterator[str]:
    """Yield a sentence for each configuration on the speed-up with all methods."""
    for size in group.split(lambda m: m["n"]):
        for m in sorted(
            size.select(lambda m: set_name(m) == "+kernel" and not _is_unavailable(m)).members, key=_row
        ):
            if (ratio := _speedup(m, size)) is not None:
                yield (
                    f"{configuration(m)}: with all methods, an exchange is {ratio:.2f} times as fast as with "
                    "MPI alone."
                )


def placement_tables(group: Group) -> Iterator[Table]:
    """Yield a table of placements for each grid and layout."""

    def speedup(m: Measurement, same_layout: Group) -> str:
        base = same_layout.select(lambda other: other["placement"] == "trivial").members
        return f"{base[0]['seconds'] / m['seconds']:.2f}" if base else ""

    columns = (
        Column("placement", lambda m, g: m["placement"]),
        Column("", lambda m, g: q.layout(m)),
        Column("link time /\ntrivial", lambda m, g: q.text(m["link_time"]) or "1"),
        Column("time per\nexchange", lambda m, g: duration(m["seconds"])),
        Column("speed-up over\ntrivial", speedup),
    )
    for same_layout in group.split(lambda m: (q.grid(m), by_layout(m))):
        rows = ordered_rows(same_layout, lambda m: m["placement"] != "trivial")
        note = _link_note(same_layout.first)
        yield row_table("Placement", columns, rows, left=2, note=note, heading=q.heading(same_layout.first))


def _link_note(m: Measurement) -> str:
    """Return the note on the distances between devices, which determine the placement."""
    if m["link_time"] is not None:
        return q.wrap_notes(
            "Link time: time of the messages of a node on its links, Σ w d, relative to trivial placement."
        )
    reason = m["links"] or "the subdomains are on ranks, not on devices"
    return q.wrap_notes(
        f"{reason[0].upper()}{reason[1:]}. Both placements assign the subdomains in order, so the speed-up "
        "is 1 except for noise."
    )
