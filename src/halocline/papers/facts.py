"""Properties of this machine and of its runs, in the form of the set-up tables of papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from halocline.compile.compiler import compile_program
from halocline.compile.cxx import find_compiler
from halocline.errors import CompileError
from halocline.io.table import Table
from halocline.native import native
from halocline.papers.paper import Paper, Row
from halocline.plan.layout import lay_out
from halocline.plan.machine import Machine as Node
from halocline.plan.machine import load_machine
from halocline.plan.rank import plan_rank
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import Transfers
from halocline.problems.problem import problem_of
from halocline.run.devices.devices import label, present_devices
from halocline.run.host.machine import Machine, clock_hertz, interconnects, os_release, this_machine
from halocline.study.reporting.quantities import wrap_notes
from halocline.study.reporting.report import Report
from halocline.words import counted, joined

THIS_MACHINE = "this machine"
UNKNOWN = "not known"


def rows_below(rows: Callable[[], Sequence[Row]], *sentences: Callable[[], str]) -> Callable[[Paper], Report]:
    """Return a function that reports the rows of a paper, followed by rows of this machine.

    Parameters
    ----------
    rows : callable
        Function that returns the rows of this machine.
    *sentences : callable
        Functions that return the sentences of the report.
    """

    def report(paper: Paper) -> Report:
        local_rows = list(rows())
        return Report(
            [paper.published_table(local_rows)],
            [sentence() for sentence in sentences],
            facts={"here": local_rows},
        )

    return report


# -- this machine --------------------------------------------------------------------------------------------


def system_row() -> list[Row]:
    """Return the properties of this machine, as a row of Table 2 of Mendygral et al. 2017."""
    machine, hertz = this_machine(), clock_hertz()
    return [
        {
            "machine": THIS_MACHINE,
            "architecture": machine.system,
            "network": joined(*interconnects()) or "no adapter found",
            "topology": "one node",
            "processor": machine.cpu or UNKNOWN,
            "ghz": None if hertz is None else round(1e-9 * hertz, 2),
            "vector_bits": machine.simd_bits,
            "cores_per_node": machine.cores,
        }
    ]


def memory_in_words() -> str:
    """Return a sentence on caches and NUMA nodes, as in Section 3 of Mendygral et al. 2017."""
    machine = this_machine()
    nodes = UNKNOWN if machine.numa_nodes is None else counted(machine.numa_nodes, "NUMA node")
    return f"This machine: {nodes}; {_caches(machine)}."


def _caches(machine: Machine) -> str:
    """Return the caches of a machine as text, such as "L1 of 32 KiB for 2 threads"."""
    return joined(
        *(
            f"L{cache.level} of {cache.bytes / 2**10:,.0f} KiB"
            + (f" for {counted(cache.shared_by, 'thread')}" if cache.shared_by > 1 else "")
            for cache in machine.caches
        )
    )


def flags_row() -> list[Row]:
    """Return the compiler flags and the thread placement, as a row of Table 3 of Mendygral et al. 2017."""
    machine = this_machine()
    flags = " ".join(flag for flag in _flags() if flag.startswith(("-O", "-m")))
    per_core = machine.hardware_threads // machine.cores
    placement = f"one thread per core; a core has {counted(per_core, 'hardware thread')}"
    return [{"processor": machine.cpu or UNKNOWN, "flags": flags or UNKNOWN, "placement": placement}]


def _flags() -> tuple[str, ...]:
    try:
        return find_compiler().flags()
    except CompileError:
        return ()


def software_in_words() -> str:
    """Return sentences on the compiler and on MPI, as in Section 3 of Mendygral et al. 2017."""
    machine = this_machine()
    compiler, mpi = machine.compiler_version or "no compiler", machine.mpi_version or "no MPI"
    flags = " ".join(_flags()) or UNKNOWN
    return f"This machine: {compiler}; {mpi}. Compiler flags of kernels: {flags}."


def hardware_and_software(paper: Paper) -> Report:
    """Return Table I of Pearson et al. 2020, with a further column for this machine."""
    local_facts = dict(_node_facts())
    published = [(row["quantity"], f"{row['value']}") for row in paper.data.rows]
    rows = tuple((name, value, local_facts[name]) for name, value in published)
    table = Table(
        "Published values, and values of this machine",
        ("", "Summit", THIS_MACHINE),
        rows,
        left=3,
        note=paper.note,
    )
    return Report([table], [], facts={"here": local_facts})


def _node_facts() -> Iterator[tuple[str, str]]:
    """Yield the rows of Table I for this machine."""
    machine = this_machine()
    yield "CPU", f"{machine.cpu or UNKNOWN}, {counted(machine.cores, 'core')}"
    yield "OS", os_release() or UNKNOWN
    yield "kernel", machine.system
    devices = [device for interface in ("cuda", "opencl") for device in _devices(interface)]
    yield "GPUs", joined(*dict.fromkeys(f"{label(device)}: {device.name}" for device in devices)) or "none"
    yield "CUDA driver", joined(*{device.driver for device in _devices("cuda")}) or _why_none("cuda")
    yield "MPI", machine.mpi_version or "none"
    yield "nvcc", _nvrtc()
    yield "cc", machine.compiler_version or "none"


def _devices(interface: str) -> list[Any]:
    try:
        return present_devices(interface)
    except RuntimeError:
        return []


def _why_none(interface: str) -> str:
    return native().why_no_devices(interface) or "no devices"


def _nvrtc() -> str:
    """Return the version of NVRTC, which compiles kernels instead of nvcc."""
    from halocline.compile.nvrtc import find_nvrtc

    try:
        return f"NVRTC {'.'.join(map(str, find_nvrtc().version))}"
    except CompileError:
        return "no NVRTC"


# -- links of a node -----------------------------------------------------------------------------------------


def links_of_node(name: str) -> Callable[[Paper], Report]:
    """Return a function that reports the links between devices in a machine file and on this machine."""

    def report(paper: Paper) -> Report:
        node, local_links = load_machine(name), links_here()
        tables = [_links(node), bandwidth_table(node.devices, _rates(node), node.title)]
        return (
            Report([*tables, local_links], [])
            if isinstance(local_links, Table)
            else Report(tables, [local_links])
        )

    return report


def _rates(node: Node) -> list[list[float]]:
    devices = range(node.device.count)
    return [[node.bandwidth(a, b) for b in devices] for a in devices]


def _links(node: Node) -> Table:
    rows = tuple(
        (
            ", ".join(f"{a}-{b}" for a, b in link.ends),
            f"{1e-9 * link.bandwidth:g}",
            "yes" if link.duplex else "no",
        )
        for link in node.links
    )
    heads = ("links", "GB/s in one\ndirection", "both directions\nat once")
    return Table(
        f"Links in the machine file of {node.title}",
        heads,
        rows,
        note=wrap_notes(f"Sources: {' '.join(node.source.split())}"),
    )


def bandwidth_table(names: Sequence[str], rates: Sequence[Sequence[float]], title: str) -> Table:
    """Return the table of bandwidths between devices.

    Parameters
    ----------
    names : sequence of str
        Names of the devices.
    rates : sequence of sequence of float
        Bandwidths in bytes per second: `rates[a][b]` from device a to device b.
    title : str
        Name of the machine.
    """
    rows = tuple(
        (name, *("" if a == b else f"{1e-9 * rate:.1f}" for b, rate in enumerate(row)))
        for a, (name, row) in enumerate(zip(names, rates, strict=True))
    )
    heading = f"Bandwidth in one direction if all devices send at once, in GB/s: {title}"
    return Table(heading, ("", *names), rows)


def links_here() -> Table | str:
    """Return the table of bandwidths between devices of this machine, or a sentence with the reason."""
    from halocline.run.devices.topology import bandwidths, read_topology

    devices = _devices("cuda")
    if len(devices) < 2:
        count = counted(len(devices), "CUDA device") if devices else f"no CUDA device ({_why_none('cuda')})"
        return f"This machine has {count}, and therefore no links between devices."
    topology, reason = read_topology([device.identity for device in devices])
    if topology is None:
        return f"The links between the devices of this machine are not known: {reason}."
    return bandwidth_table([label(device) for device in devices], bandwidths(topology), THIS_MACHINE)


# -- patches of runs on this machine -------------------------------------------------------------------------


def patches_here(measured: Paper) -> tuple[int, ...]:
    """Return the numbers of patches along the axes, for the first subdomain of a run on this machine."""
    (_, options), *_ = measured.measured_studies
    dim, n = options["dim"], int(options["n"])
    ready = problem_of(measured.problem, (n,) * dim, dim=dim)
    schedule = compile_program(ready.program, ready.grid)
    traffic = Traffic.of_schedule(schedule)
    layout = lay_out(ready.shape, 1, traffic=traffic, periodic=tuple(ready.grid.periodic))
    plan = plan_rank(schedule, Transfers(layout), 0, patch=int(measured.options["patch"]))
    return tuple(len(edges) - 1 for edges in plan.subdomains[0].patches.edges)


def patch_rows(measured: Paper, **further_columns: int) -> Callable[[], list[Row]]:
    """Return a function that returns the set-up of a run on this machine, as a row of Tables 5 to 7."""

    def rows() -> list[Row]:
        counts = dict(zip(("patches_1", "patches_2", "patches_3"), patches_here(measured), strict=True))
        return [
            {"machine": THIS_MACHINE, **further_columns, **counts, "patch": int(measured.options["patch"])}
        ]

    return rows
