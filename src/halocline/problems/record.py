"""Record of a run and its speed, with the keys of ``halocline run --json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from halocline.run.devices.devices import OnDevice
from halocline.run.measurements.energy import Energy


@dataclass(frozen=True)
class Record:
    """Record of one run, equal on all ranks, with the keys of ``halocline run CASE --json``.

    Attributes
    ----------
    case : str
        Name of the case or file.
    shape : tuple of int
        Cells along each axis.
    cells, steps : int
        Number of cells, and number of steps or iterations.
    order : int or None
        Order of the differences in space; None for a program, which has no single order.
    scheme : str or None
        Time integration scheme, or method of a linear problem; None for a program without a scheme name.
    dtype : str
        Precision of the fields: "float64", "float32", or "float32 and float64".
    decomposition, patch, subdomains_per_rank, balance, ranks_active, ranks_per_node, placement, methods,
    mailboxes
        Requested values in the form of the command: "4x2", "32,256", "self,peer,mpi", "on"; None if not
        requested. See `halocline.Execution`.
    schedule, kernels, overlap
        Requested values, as above.
    halo : {"read", "faces", "edges", "uniform"}
        Extent of the exchanged halos.
    packing : {"all", "last", "none"}
        MPI messages that were packed.
    gpudirect : {"on", "off"}
        "on" if MPI was allowed to read messages from device memory.
    communication : str or None
        Name of the preset of communication options; None without a preset.
    only : {"compute", "exchange", "synchronisation"} or None
        Part of each step that was timed alone; None for whole steps. With a part, the fields are invalid, so
        that time, checksums, diagnostics and series are None.
    warm_up : int
        Number of steps at the start that were not timed.
    time : float or None
        Simulated time at the end.
    time_step : float or None
        Last time step; None for a run without a step.
    limiter : str or None
        Name of the limit that determined the last time step; None for a fixed time step.
    seconds : float
        Wall-clock time of the timed steps, from barrier to barrier.
    ns_per_cell_step : float or None
        Time of the loop over the timed steps in nanoseconds. It is divided by the number of these steps and
        by the number of cells of the whole grid.
    ssspnt : float or None
        Scaled size steps per np time of the loop: 1e-7 cells · steps / (np · seconds), where np is
        `cores_or_devices` (the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC, Eq. 6;
        its Table 3 leaves np out). None for steps without kernels.
    flops_per_cell_step, bytes_per_cell_step : float
        Operations of the generated code (an fma counts as two), and minimum memory traffic in bytes.
    share_of_bound : float or None
        Rate of the minimum memory traffic, relative to the bandwidth of a += s * b on the same threads in the
        same run. On devices, the reference is the bandwidth of copies in device memory. None for steps
        without kernels.
    share_of_peak : float or None
        Rate of the operations of the generated code, relative to the peak rate of multiply-adds on the same
        number of cores. The peak is measured in float32 if all arrays are float32, otherwise in float64. An
        addition without a product is one operation, so 1 cannot be reached. None on devices.
    joules_per_cell_step : float or None
        Energy of processors and devices per cell and step, in joules; None if the host does not report it.
    joules_of : tuple of str
        Parts with reported energy: "processors", "devices".
    checksum : str or None
        Hash of the checksums of all fields. It does not depend on ranks, threads, devices, decomposition or
        patch.
    checksums : dict of str to str, or None
        Hash of the bits of each field in global order.
    diagnostics : dict of str to float, or None
        Diagnostics at the end; None for a value that is not finite.
    series : list of dict, or None
        Rows with "step", "time", "time_step", "limiter" and the diagnostics: at the start, at each requested
        interval, and at the end.
    error : float or None
        Error of the result. None with `only`, and for a file that defines neither `error` nor `exact`. If the
        file defines `error`, also None for a run whose end differs from the end in the file.
    events : dict of str to dict, or None
        Events that the program counted, by name, with "count" of cells and "share" of all cell updates.
        "first_cell" and "first_step" are None for an event that did not occur. None with `only`.
    parameters : dict of str to float or str
        All parameters of the case.
    ranks, threads : int
        Number of ranks, and of threads per rank.
    nodes : int
        Number of nodes of the run. With `ranks_per_node`, each group of `ranks_per_node` ranks counts as a
        node.
    ranks_of_node : int
        Maximum number of ranks on a node.
    hosts : int
        Number of machines on which the ranks run, as reported by MPI.
    parts : tuple of int
        Number of parts of the grid along each axis.
    methods_used : tuple of str
        Transfer methods by which at least one rank receives messages.
    cores_or_devices : int
        Number of computing threads of all ranks, or number of devices. A device that several ranks share
        counts once.
    devices : tuple of OnDevice
        Device of each subdomain; empty on the CPU.
    memory_bytes : int
        Resident memory after the run (VmRSS), summed over the ranks.
    written_bytes : int
        Bytes of output and checkpoints of all ranks, before compression.
    writing_seconds, waiting_seconds : float
        Time that the slowest rank spent on output and checkpoints instead of computation. `waiting_seconds`
        is the part of this time in which the rank waited for buffers or disks.
    io_ranks : int
        Number of additional ranks for output and checkpoints.
    balances : dict or None
        Load balancing during the run: "count" of balances, and their total "moved" subdomains, "bytes" and
        "seconds". "before" is the maximum work of a rank divided by the mean work, before the last balance.
        None for a run without balances.
    """

    case: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    order: int | None
    scheme: str | None
    dtype: str
    decomposition: str
    patch: str | None
    subdomains_per_rank: int
    balance: str | None
    ranks_active: int | None
    ranks_per_node: int | None
    placement: str
    methods: str | None
    mailboxes: int
    schedule: str
    kernels: str
    overlap: str
    halo: str
    packing: str
    communication: str | None
    gpudirect: str
    only: str | None
    warm_up: int
    time: float | None
    time_step: float | None
    limiter: str | None
    seconds: float
    ns_per_cell_step: float | None
    ssspnt: float | None
    flops_per_cell_step: float
    bytes_per_cell_step: float
    share_of_bound: float | None
    share_of_peak: float | None
    joules_per_cell_step: float | None
    joules_of: tuple[str, ...]
    checksum: str | None
    checksums: dict[str, str] | None
    diagnostics: dict[str, float | None] | None
    series: list[dict[str, Any]] | None
    error: float | None
    events: dict[str, dict[str, Any]] | None
    parameters: dict[str, float | str]
    ranks: int
    threads: int
    nodes: int
    ranks_of_node: int
    hosts: int
    parts: tuple[int, ...]
    methods_used: tuple[str, ...]
    cores_or_devices: int
    devices: tuple[OnDevice, ...]
    memory_bytes: int
    written_bytes: int
    writing_seconds: float
    waiting_seconds: float
    io_ranks: int
    balances: dict[str, float] | None


@dataclass(frozen=True)
class Timing:
    """Timing of steps: wall-clock time between barriers, time of the loop, number of steps, and energy."""

    seconds: float
    loop_seconds: float
    steps: int
    energy: Energy | None
