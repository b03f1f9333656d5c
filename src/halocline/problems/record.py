"""Record of a run and its speed: the keys of ``halocline run --json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from halocline.run.devices.devices import OnDevice
from halocline.run.measurements.energy import Energy


@dataclass(frozen=True)
class Record:
    """Record of one run, the same on all ranks; the keys of ``halocline run CASE --json``.

    Attributes
    ----------
    case : str
    shape : tuple of int
        Cells along each axis.
    cells, steps : int
    order : int or None
        Of the differences in space; None for a case that is a program, which has its own.
    scheme : str or None
        How time was integrated; None for a program that does not say.
    dtype : str
        Precision of the fields: "float64", "float32", or "float32 and float64".
    decomposition, patch, subdomains_per_rank, balance, ranks_active, ranks_per_node, placement, methods,
    mailboxes
        What was asked for, as the options of the command say it: "4x2", "32,256", "self,peer,mpi", "on"; see
        `halocline.Execution`. None: nothing.
    schedule, kernels, overlap
        The same.
    halo : {"read", "faces", "edges", "uniform"}
        Which halos were exchanged.
    packing : {"all", "last", "none"}
        Which messages by MPI were packed.
    gpudirect : {"on", "off"}
        Whether MPI was to take messages out of the memory of devices.
    communication : str or None
        The name of the way of communicating, where it was given one.
    only : {"compute", "exchange", "synchronisation"} or None
        The part of the steps that was timed alone. Fields hold nonsense then, so that time,
        checksums, diagnostics and series are None.
    warm_up : int
        Steps at the start that were not timed.
    time : float or None
        The simulated time reached.
    time_step : float or None
        The last one; None where no step was done.
    limiter : str or None
        What limited it; None where it is fixed.
    seconds : float
        Wall clock of the steps that were timed, from barrier to barrier.
    ns_per_cell_step : float or None
        Of the loop over these steps, all ranks together.
    ssspnt : float or None
        Of that loop, scaled size steps per np time: 1e-7 cells · steps / (np · seconds), where np are
        `cores_or_devices` (the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC, Eq. 6;
        its Table 3 leaves np out). None where steps were without kernels.
    flops_per_cell_step, bytes_per_cell_step : float
        Operations of the generated code (an fma is two), and bytes that must cross memory.
    share_of_bound : float or None
        The rate of these bytes, over that of a += s * b on the same threads in the same run; on devices, over
        that of copies within their memory. None where steps were without kernels.
    share_of_peak : float or None
        The rate of these operations, over that of multiply-adds on as many cores, of float32 where all
        arrays are, else of float64; an addition that no product joins is one operation, so that 1 cannot be
        reached. None on devices.
    joules_per_cell_step : float or None
        What processors and devices took; None where the host does not report it.
    joules_of : tuple of str
        Whose joules these are: "processors", "devices".
    checksum : str or None
        A hash of those of all fields: the same for any ranks, threads, devices, decomposition, patch.
    checksums : dict of str to str, or None
        A hash of each field's bits in global order.
    diagnostics : dict of str to float, or None
        At the end; None for one that is not finite.
    series : list of dict, or None
        "step", "time", "time_step", "limiter" and the diagnostics, at the start, as often as asked for, and
        at the end.
    error : float or None
        How far the result is from the exact solution. None for a case that has none, where the run
        did not end where the case does, and with `only`.
    events : dict of str to dict, or None
        What the program counted, by name: "count" of cells, "share" of all cell updates, "first_cell" and
        "first_step", None where it did not happen. All is None with `only`.
    parameters : dict of str to float or str
        Of the case, all of them.
    ranks, threads : int
        Threads are those of one rank.
    nodes : int
        Number of nodes of the run. With `ranks_per_node`, every group of that many ranks counts as a node.
    ranks_of_node : int
        Greatest number of ranks of a node.
    hosts : int
        Number of machines that the ranks are on, as MPI sees them.
    parts : tuple of int
        Parts of the grid along each axis, as it was cut.
    methods_used : tuple of str
        Transfer methods by which any rank receives.
    cores_or_devices : int
        Threads that computed, of all ranks, or devices; one that ranks of a node share counts once.
    devices : tuple of OnDevice
        Where each subdomain lies; empty on the CPU.
    memory_bytes : int
        Resident memory after the run (VmRSS), summed over the ranks.
    written_bytes : int
        Of output and checkpoints, before they were compressed, of all ranks.
    writing_seconds, waiting_seconds : float
        That the slowest rank spent on them instead of computing; and of these, waiting for buffers or disks.
    io_ranks : int
        Ranks beside these that wrote them.
    balances : dict or None
        Balances of the run: their "count", the "moved" subdomains, "bytes" and "seconds" of all, and "before"
        of the last, the work of the rank with most over the mean. None where there was none.
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
    """Timing of steps: wall clock from barrier to barrier and of the loop, number of steps, energy."""

    seconds: float
    loop_seconds: float
    steps: int
    energy: Energy | None
