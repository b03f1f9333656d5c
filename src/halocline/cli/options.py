"""Options of commands: readers of option values, and options that several commands share.

An option is a `typer.Option` in the annotation of a parameter: ``n: Annotated[int, N] = 64``. The fields of a
class are a group of options for several commands; see `halocline.cli.commands.command`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from halocline import ranges
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.transfer import METHODS as TRANSFERS
from halocline.ranges import Range, is_whole
from halocline.run.output.every import Every

# -- texts of options ----------------------------------------------------------------------------------------


def reader(expected: object, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a reader: a function that converts the text of an option value, and rejects invalid texts."""

    def read(text: Any) -> Any:
        try:
            return convert(text)
        except (LookupError, ValueError):  # an InputError is a ValueError
            raise typer.BadParameter(f"{text}; expected {expected}") from None

    return read


def one_of(*values: str) -> Callable[[Any], Any]:
    """Return a reader for one of several words or numbers."""
    meanings = {value: int(value) if is_whole(value) else value for value in values}
    return reader(" or ".join(values), lambda text: meanings[str(text)])


def whole_number(numbers: Range) -> Callable[[Any], int]:
    """Return a reader for whole numbers in a range."""
    return reader(numbers, lambda text: numbers.check("", int(text) if is_whole(str(text)) else text))


def step_interval(numbers: Range) -> Callable[[Any], int]:
    """Return a reader for a number of steps, with or without unit: "5" or "5 steps"."""

    def convert(text: Any) -> int:
        interval = Every.parse("", text if "step" in str(text) else f"{text} steps")
        return numbers.check("", interval.steps)

    return reader(f"{numbers}, or a text such as '5 steps'", convert)


def finite(expected: str, accepts: Callable[[float], bool]) -> Callable[[Any], float]:
    """Return a reader for finite numbers that satisfy a condition."""

    def convert(text: Any) -> float:
        if not (math.isfinite(number := float(text)) and accepts(number)):
            raise ValueError
        return number

    return reader(expected, convert)


def place(noun: str, kind: Callable[[str], Any] = Path) -> Callable[[str], Any]:
    """Return a reader for non-empty names of files or folders."""

    def read(value: Any) -> Any:  # a default is no text
        text = str(value)
        if not text:
            raise typer.BadParameter(f"the name is empty; expected the name of a {noun}")
        if "\0" in text:
            raise typer.BadParameter(f"the name contains a null character; expected the name of a {noun}")
        return kind(text)

    return read


def take_options(group: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that are fields of a class from a mapping of option values, and return them."""
    return {field.name: values.pop(field.name) for field in fields(group) if field.name in values}


def panel(title: str | None) -> Callable[..., Any]:
    """Return a function that makes the options of one panel of the help texts.

    The function takes the form of the option, such as "--n N", an optional reader of the value, and an
    optional help text. Without a help text, a docstring provides it; see
    `halocline.cli.commands.parameters`. A form without a metavar is a flag.
    """

    def option(form: str, read: Callable[[Any], Any] | None = None, help: str | None = None) -> Any:
        name, _, metavar = form.partition(" ")
        return typer.Option(name, metavar=metavar or None, help=help, rich_help_panel=title, parser=read)

    return option


NO_TEXTS: Any = ()  # default of an option that may be repeated
general_option = panel(None)
problem_option = panel("Problem")
numerics_option = panel("Numerical method")
execution_option = panel("Execution")
storage_option = panel("Output and checkpoints")
result_option = panel("Results")

# -- problem ---------------------------------------------------------------------------------------------

CELLS_OF_RANK = problem_option("--n N", whole_number(ranges.POINTS), "Cells along each axis per rank.")
DIM = problem_option("--dim 1|2|3", whole_number(ranges.AXES), "Number of axes of the grid.")
RADIUS = problem_option("--radius R", whole_number(ranges.RADIUS), "Halo width in cells.")
FIELDS = problem_option("--fields F", whole_number(ranges.FIELDS), "Number of fields.")
DTYPE = problem_option("--dtype float32|float64", help="Precision of the fields.")

# -- numerical method ----------------------------------------------------------------------------------------

METHOD_OF_CASE = numerics_option(
    "--method cg|cg-fused",
    help="Method of a linear solve. [bold]cg[/]: conjugate gradients as in the technical report UMBC "
    "HPCF-2018-10, with 11 array reads and writes per iteration. [bold]cg-fused[/] (default): the same "
    "method in two sweeps, with 8 array reads and writes.",
)
DTYPE_OF_CASE = numerics_option(
    "--dtype float64|float32",
    help="Precision of all fields whose precision the file does not set. Default: float64.",
)
RTOL = numerics_option(
    "--rtol X",
    finite("a positive number", lambda number: number > 0),
    "Stop a linear solve when the residual norm is at most X times the norm of the right-hand side.",
)
MAX_ITERATIONS = numerics_option(
    "--max-iterations K",
    whole_number(ranges.STEPS),
    "Maximum number of iterations of a linear solve. A solve that stops at this number counts as "
    "not converged.",
)


@dataclass
class CaseOptions:
    """Options of a problem.

    Attributes
    ----------
    n
        Number of cells along the first axis. The other axes keep the proportions of the case. Several
        numbers set the cells along each axis.
    dim
        Number of axes, for cases that accept several; see `halocline cases NAME`.
    settings
        Value of a parameter of the problem. The option may be repeated.
    order
        Order of accuracy of the finite differences. Default: 6. Cases with a fixed scheme reject this
        option.
    scheme
        Time integration scheme. Default: rk3. Cases with a fixed scheme reject this option.
    """

    n: Annotated[str | None, problem_option("--n N[,M[,K]]")] = None
    dim: Annotated[int | None, problem_option("--dim 1|2|3", whole_number(ranges.AXES))] = None
    settings: Annotated[list[str], problem_option("--set NAME=VALUE")] = NO_TEXTS
    order: Annotated[int | None, numerics_option("--order 2|4|6|...", whole_number(ranges.ORDER))] = None
    scheme: Annotated[str | None, numerics_option("--scheme euler|rk2|rk3|rk3-previous|rk4|ssprk3")] = None
    dtype: Annotated[str | None, DTYPE_OF_CASE] = None
    method: Annotated[str | None, METHOD_OF_CASE] = None


# -- execution -------------------------------------------------------------------------------------------

RANKS = execution_option(
    "--ranks R",
    whole_number(ranges.RANKS),
    "Number of processes (MPI ranks). For two or more, the command starts mpiexec. Leave the option out if "
    "mpiexec starts the command.",
)
REPEAT = execution_option(
    "--repeat K", whole_number(ranges.REPEATS), "Number of runs per measurement. The median is reported."
)
DECOMPOSITION = execution_option(
    "--decomposition HOW",
    help="Decomposition of the grid over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, "
    "2d, 3d, or the number of parts along each axis, such as 4x2.",
)
METHODS = execution_option(
    "--methods M,M,...",
    help=f"Allowed transfer methods between subdomains: {', '.join(TRANSFERS)}. The methods [bold]self[/] "
    "and [bold]peer[/] are copies within a rank. The method [bold]colocated[/] is a copy between ranks of a "
    "node. The other methods use MPI. Each pair of subdomains uses the first allowed and applicable method, "
    "in this order. Default: all but rma. A single process uses self and peer.",
)
COMMUNICATION = execution_option(
    "--communication " + "|".join(COMMUNICATIONS),
    help="Preset of communication options, for comparisons. All messages use MPI. "
    + "; ".join(f"[bold]{name}[/]: {preset.about}" for name, preset in COMMUNICATIONS.items())
    + ".",
)


@dataclass
class Execution:
    """Options of the execution of a program, with the names of `halocline.run.domain.execution.Execution`.

    Attributes
    ----------
    threads
        Threads per rank. Default: OMP_NUM_THREADS if it is set; otherwise the number of cores divided by the
        number of ranks. With devices, each rank has one thread.
    device
        Processor or devices for the computation. Each device computes one subdomain by default. The ranks of
        a node share the devices of the node. cuda:0,1 selects two devices; without numbers, all devices are
        used.
        Default: the environment variable HALOCLINE_DEVICE if it is set; otherwise cpu.
    patch
        Size of the patches in cells along each axis. A thread computes one patch at a time. [bold]tune[/]:
        measure several sizes before the first run and store the fastest one. [bold]caches[/]: choose a size
        that fits into the caches. Default: the stored size if there is one; otherwise caches.
    subdomains_per_rank
        Number of subdomains per rank. With devices, number of subdomains per device.
    ranks_per_node
        Treat every R ranks as a node. Default: the nodes that MPI reports.
    placement
        Placement of the subdomains of a node on its devices. [bold]aware[/]: placement with the shortest
        message time on the links between devices. [bold]trivial[/]: in the order of the subdomain numbers.
        [bold]random[/]: at random.
    mailboxes
        Number of mailboxes per message, for the transfer method rma.
    schedule
        Assignment of patches to threads. [bold]static[/]: each thread computes its assigned patches.
        [bold]dynamic[/]: each thread takes the next patch from a common list. [bold]guided[/]: like static,
        but idle threads take patches from other threads.
    kernels
        Method by which device threads read neighbouring cells. [bold]direct[/]: read all from global memory.
        [bold]queue[/]: read neighbours along the slowest axis from registers, and all others from global
        memory. [bold]planes[/]: read neighbours along the slowest axis from registers, and all others from
        shared memory. [bold]tune[/]: measure all methods before the first run and store the fastest one.
        [bold]auto[/]: the stored method if there is one; otherwise queue.
    overlap
        While messages are in transit, compute the patches that do not need them. [bold]auto[/]: time the
        first passes both with overlap (on) and without it (off), and select the faster setting.
    halo
        Extent of the exchanged halos. [bold]read[/]: only cells that kernels read. All other values are for
        comparison. [bold]uniform[/]: for all exchanged fields, the widest halo with all edges and corners.
        [bold]edges[/]: like [bold]uniform[/], but in 3D only fields whose corners kernels read are exchanged
        with corners. [bold]faces[/]: like [bold]edges[/], but only fields whose edge cells kernels read are
        exchanged with edge cells.
    packing
        MPI messages that are packed into buffers: all messages, only messages along the [bold]last[/] axis,
        or none (for comparison). MPI reads the cells of unpacked messages directly from the
        fields. Devices copy these cells row by row.
    gpudirect
        Pass device memory to MPI (on) or copy messages to host memory first (off). This option is used only
        with --communication, on devices.
    balance
        Interval at which subdomains move between ranks to balance the load: steps ('50 steps'), simulated
        time (0.5) or wall-clock time ('30 min'). Requires --subdomains-per-rank.
    ranks_active
        Number of ranks that compute subdomains; the other ranks wait. Default: all.
    trace
        Write a trace of threads and messages for Perfetto or chrome://tracing.
    """

    threads: Annotated[int | None, execution_option("--threads T", whole_number(ranges.THREADS))] = None
    device: Annotated[str | None, execution_option("--device cpu|cuda[:i,j]|opencl[:i,j]")] = None
    decomposition: Annotated[str, DECOMPOSITION] = "optimal"
    patch: Annotated[str | None, execution_option("--patch B[,B[,B]]|tune|caches")] = None
    subdomains_per_rank: Annotated[
        int, execution_option("--subdomains-per-rank K", whole_number(ranges.SUBDOMAINS))
    ] = 1
    ranks_per_node: Annotated[
        int | None, execution_option("--ranks-per-node R", whole_number(ranges.RANKS_PER_NODE))
    ] = None
    placement: Annotated[str, execution_option("--placement aware|trivial|random")] = "aware"
    methods: Annotated[str | None, METHODS] = None
    mailboxes: Annotated[int, execution_option("--mailboxes M", whole_number(ranges.MAILBOXES))] = 2
    schedule: Annotated[str, execution_option("--schedule guided|static|dynamic")] = "guided"
    kernels: Annotated[str, execution_option("--kernels auto|tune|direct|queue|planes")] = "auto"
    overlap: Annotated[str, execution_option("--overlap auto|on|off")] = "auto"
    halo: Annotated[str, execution_option("--halo read|faces|edges|uniform")] = "read"
    packing: Annotated[str, execution_option("--packing all|last|none")] = "all"
    communication: Annotated[str | None, COMMUNICATION] = None
    gpudirect: Annotated[str, execution_option("--gpudirect on|off")] = "off"
    balance: Annotated[str | None, execution_option("--balance EVERY")] = None
    ranks_active: Annotated[int | None, execution_option("--ranks-active K", whole_number(ranges.RANKS))] = (
        None
    )
    trace: Annotated[Path | None, result_option("--trace FILE", place("file"))] = None


BALANCE_OPTIONS = ("balance", "ranks_active")  # options of Execution for load balancing
COMPARISON_OPTIONS = ("halo", "packing", "communication", "gpudirect")  # options of Execution for comparisons

# -- output and checkpoints ----------------------------------------------------------------------------------

OVERWRITE = storage_option("--overwrite", help="Replace existing data of the same name.")


@dataclass
class StorageOptions:
    """Options of output and checkpoints; see `halocline.cli.texts.storage_options`.

    Attributes
    ----------
    output
        Write all fields to this store during the run. xarray.open_zarr opens the store.
    output_every
        Interval between outputs, in the same form as --checkpoint-every. Default: output at the start and
        at the end.
    checkpoint
        Write checkpoints to this folder at the interval of --checkpoint-every, at the end, and when the run
        stops early. A run stops early on SIGTERM, SIGUSR1 or Ctrl-C, at the time limit, or if the folder
        contains a file with the name stop.
    checkpoint_every
        Interval between checkpoints: steps or iterations ('50 steps'), simulated time (0.5), or wall-clock
        time ('30 min'; units s, min, h, d).
    keep
        Number of checkpoints to keep; older ones are deleted. Default: 2.
    resume
        Restart from this checkpoint, or from the newest checkpoint in this folder, on any number of ranks.
        The results are bit-for-bit identical to those of an uninterrupted run. --steps and --until count
        from the original start.
    time_limit
        Maximum wall-clock time of the run. Shortly before this limit, the run writes a checkpoint and exits
        with status 75. Default: the end of the Slurm job, if there is one.
    io_threads
        Threads per rank that compress and write output and checkpoints during the computation. Default: 1.
    io_ranks
        Number of additional ranks that write output and checkpoints.
    """

    output: Annotated[Path | None, storage_option("--output STORE.zarr", place("store.zarr"))] = None
    output_every: Annotated[str | None, storage_option("--output-every 'K steps'|T|'30 min'")] = None
    checkpoint: Annotated[Path | None, storage_option("--checkpoint FOLDER", place("folder"))] = None
    checkpoint_every: Annotated[str | None, storage_option("--checkpoint-every 'K steps'|T|'30 min'")] = None
    keep: Annotated[int | None, storage_option("--keep K", whole_number(ranges.CHECKPOINTS))] = None
    resume: Annotated[Path | None, storage_option("--resume FOLDER", place("folder"))] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    time_limit: Annotated[str | None, storage_option("--time-limit '11 h 50 min'")] = None
    io_threads: Annotated[int | None, storage_option("--io-threads K", whole_number(ranges.IO_THREADS))] = (
        None
    )
    io_ranks: Annotated[int, storage_option("--io-ranks K", whole_number(ranges.IO_RANKS))] = 0


# -- results -------------------------------------------------------------------------------------------------

JSON = result_option(
    "--json FILE", place("file", str), "Write the results as JSON. With -, print only the JSON."
)


@dataclass
class ReportFileOptions:
    """Options of the files of a report.

    Attributes
    ----------
    csv
        Write one CSV line per run.
    html
        Write a self-contained page with tables and plots.
    pictures
        Draw the plots in this folder.
    """

    json: Annotated[str | None, JSON] = None
    csv: Annotated[Path | None, result_option("--csv FILE", place("file"))] = None
    html: Annotated[Path | None, result_option("--html FILE", place("file"))] = None
    pictures: Annotated[Path | None, result_option("--pictures FOLDER", place("folder"))] = None


@dataclass
class ResultOptions:
    """Options of the results of a run.

    Attributes
    ----------
    csv
        Write the time series of diagnostics, one CSV line per time.
    pictures
        Draw pictures in this folder: the final fields, or the quantities and figures that the case defines.
        For a Python file, the pictures show its last problem.
    check
        Run the check of the case on the result. Exit with status 1 if the check fails.
    state
        Write the fields of the last problem as NumPy arrays.
    """

    json: Annotated[str | None, JSON] = None
    csv: Annotated[Path | None, result_option("--csv FILE", place("file"))] = None
    pictures: Annotated[Path | None, result_option("--pictures FOLDER", place("folder"))] = None
    check: Annotated[bool, result_option("--check")] = False
    state: Annotated[Path | None, result_option("--state FILE.npz", place("file.npz"))] = None
