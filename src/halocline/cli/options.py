"""Options of commands: how their texts are read, and those that several commands take.

An option is a `typer.Option`, which the parameter of a command names: ``n: Annotated[int, N] = 64``. Options
that several commands take together are the fields of a class, see `halocline.cli.commands.command`.
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
    """Return a reader of the value of an option, which rejects a text that cannot be converted."""

    def read(text: Any) -> Any:
        try:
            return convert(text)
        except (LookupError, ValueError):  # an InputError is a ValueError
            raise typer.BadParameter(f"{text}; expected {expected}") from None

    return read


def one_of(*values: str) -> Callable[[Any], Any]:
    """Return a reader of one of some words or numbers."""
    meanings = {value: int(value) if is_whole(value) else value for value in values}
    return reader(" or ".join(values), lambda text: meanings[str(text)])


def whole(numbers: Range) -> Callable[[Any], int]:
    """Return a reader of a whole number of a range."""
    return reader(numbers, lambda text: numbers.check("", int(text) if is_whole(str(text)) else text))


def step_interval(numbers: Range) -> Callable[[Any], int]:
    """Return a reader of a whole number of steps, also with the unit: "5" or "5 steps"."""

    def convert(text: Any) -> int:
        interval = Every.parse("", text if "step" in str(text) else f"{text} steps")
        return numbers.check("", interval.steps)

    return reader(f"{numbers}, or a text such as '5 steps'", convert)


def finite(expected: str, accepts: Callable[[float], bool]) -> Callable[[Any], float]:
    """Return a reader of a finite number that fulfils a condition."""

    def convert(text: Any) -> float:
        if not (math.isfinite(number := float(text)) and accepts(number)):
            raise ValueError
        return number

    return reader(expected, convert)


def place(noun: str, kind: Callable[[str], Any] = Path) -> Callable[[str], Any]:
    """Return a reader of the name of a file or folder, which is not empty."""

    def read(text: str) -> Any:
        if not text or "\0" in text:
            raise typer.BadParameter(f"it is empty; expected the name of a {noun}")
        return kind(text)

    return read


def take(group: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that are fields of a class from the values of all options, and return them."""
    return {field.name: values.pop(field.name) for field in fields(group) if field.name in values}


def panel(title: str | None) -> Callable[..., Any]:
    """Return a function that makes options of a panel of help texts.

    It takes the form of an option, such as "--n N", the reader of its value if that is no plain text, and the
    help text if no docstring has it. A form without a metavar is a flag.
    """

    def option(form: str, read: Callable[[Any], Any] | None = None, help: str | None = None) -> Any:
        name, _, metavar = form.partition(" ")
        return typer.Option(name, metavar=metavar or None, help=help, rich_help_panel=title, parser=read)

    return option


NO_TEXTS: Any = ()  # default of an option that may be given several times
general = panel(None)
problem = panel("The problem")
how = panel("How it is solved")
where = panel("Where it runs")
keeping = panel("Output and checkpoints")
results = panel("Results")

# -- the problem ---------------------------------------------------------------------------------------------

CELLS_OF_RANK = problem("--n N", whole(ranges.POINTS), "Cells along an axis for each rank.")
DIM = problem("--dim 1|2|3", whole(ranges.AXES), "Axes of the problem.")
RADIUS = problem("--radius R", whole(ranges.RADIUS), "Layers of halo.")
FIELDS = problem("--fields F", whole(ranges.FIELDS), "Fields.")
DTYPE = problem("--dtype float32|float64", help="Their precision.")

# -- how it is solved ----------------------------------------------------------------------------------------

METHOD_OF_CASE = how(
    "--method cg|cg-fused",
    help="Method of a linear solve: [bold]cg[/], conjugate gradients as in UMBC HPCF-2018-10, with 11 "
    "streams of memory an iteration; [bold]cg-fused[/], the same in two sweeps and 8 streams "
    "(default: cg-fused).",
)
DTYPE_OF_CASE = how(
    "--dtype float64|float32",
    help="Precision of the fields to which the file gives none: float64 by default.",
)
RTOL = how(
    "--rtol X",
    finite("a positive number", lambda number: number > 0),
    "Stop a linear solve where the residual norm is at most X times that of the right-hand side.",
)
MAX_ITERATIONS = how(
    "--max-iterations K",
    whole(ranges.STEPS),
    "Stop a linear solve after K iterations at the latest: a result too, not converged.",
)


@dataclass
class OfCase:
    """Options of a problem.

    Attributes
    ----------
    n
        Cells along the first axis, the others in the case's own proportion; or along each axis.
    dim
        Axes, where a case can have several numbers of them; see `halocline cases NAME`.
    settings
        A parameter that is not as by default; may be given several times.
    order
        Order of accuracy of differences in space, 6 by default. Cases with a scheme of their own take none.
    scheme
        How time is integrated, rk3 by default. Some cases have a scheme of their own.
    """

    n: Annotated[str | None, problem("--n N[,M[,K]]")] = None
    dim: Annotated[int | None, problem("--dim 1|2|3", whole(ranges.AXES))] = None
    settings: Annotated[list[str], problem("--set NAME=VALUE")] = NO_TEXTS
    order: Annotated[int | None, how("--order 2|4|6|...", whole(ranges.ORDER))] = None
    scheme: Annotated[str | None, how("--scheme euler|rk2|rk3|rk4|ssprk3")] = None
    dtype: Annotated[str | None, DTYPE_OF_CASE] = None
    method: Annotated[str | None, METHOD_OF_CASE] = None


# -- where it runs -------------------------------------------------------------------------------------------

RANKS = where(
    "--ranks R",
    whole(ranges.RANKS),
    "Processes; more than one are started with mpiexec. Under mpiexec it may be left out.",
)
REPEAT = where("--repeat K", whole(ranges.REPEATS), "Runs of each measurement; the median counts.")
DECOMPOSITION = where(
    "--decomposition HOW",
    help="How the grid is cut over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, 2d, 3d, "
    "or the parts along each axis, such as 4x2.",
)
METHODS = where(
    "--methods M,M,...",
    help="The transfer methods that may be taken between subdomains, the first that applies: "
    f"{', '.join(TRANSFERS)}; all but rma by default. One process alone copies: self and peer.",
)
COMMUNICATION = where(
    "--communication " + "|".join(COMMUNICATIONS),
    help="A way of communicating, to compare; all messages go by MPI: "
    + "; ".join(f"[bold]{name}[/], {each.about}" for name, each in COMMUNICATIONS.items())
    + ".",
)


@dataclass
class Execution:
    """Options of the execution of a program, by the names of `halocline.run.domain.execution.Execution`.

    Attributes
    ----------
    threads
        Threads of each rank; by default OMP_NUM_THREADS, else the cores shared out among the ranks. With
        devices one, which looks after these.
    device
        What computes: the processor, or devices with memory of their own, all that there are or those
        whose numbers follow, as in cuda:0,1; a subdomain on each, shared out among the ranks of a node.
        By default HALOCLINE_DEVICE, else cpu.
    patch
        Edges in cells of the patches that threads work on. [bold]tune[/]: measure some before the first
        run, and remember the fastest for later ones; [bold]caches[/]: to suit the caches. By default what
        is remembered, else to suit the caches.
    subdomains_per_rank
        Subdomains of each rank; with devices, of each of them.
    ranks_per_node
        Take every R ranks for a node, whatever they run on; by default nodes are what MPI says.
    placement
        Placement of the subdomains of a node on its devices: [bold]aware[/], by the links between
        devices; [bold]trivial[/], in order; [bold]random[/], drawn at random.
    mailboxes
        Mailboxes for each message of method rma.
    schedule
        Which thread of a rank runs which patch: [bold]static[/], the one that it was given to;
        [bold]dynamic[/], whichever comes first; [bold]guided[/], the one that it was given to, or one
        that has run all of its own.
    kernels
        How threads of a device read the cells around theirs: [bold]direct[/], from memory;
        [bold]queue[/], those along the slowest axis from registers; [bold]planes[/], those beside them
        from memory that a group shares; [bold]tune[/]: measured before the first run, and remembered;
        [bold]auto[/]: what is remembered, else queue.
    overlap
        Whether patches that need no message run before all messages have come; [bold]auto[/]: as the
        first passes show, some of which run so and some not.
    halo
        Which halos are exchanged: [bold]read[/], only what is read; [bold]uniform[/], to compare, those
        of all fields that are exchanged at all, as wide as the widest, with all edges and corners;
        [bold]edges[/], the same without the corners of three axes that no field reads; [bold]faces[/],
        without edges that no field reads too.
    packing
        Which messages by MPI are packed: all; [bold]last[/], those along the last axis; [bold]none[/], to
        compare. Others MPI takes out of the fields, and devices copy row by row.
    gpudirect
        With --communication on devices: whether MPI takes messages out of their memory, or the host's.
    balance
        How often subdomains move between ranks, so that all ranks take equally long: steps, simulated time
        or wall-clock time, as for --every; needs --subdomains-per-rank.
    ranks_active
        Ranks that hold subdomains; the others wait for them. By default all.
    trace
        Write what each thread and message did, for Perfetto or chrome://tracing.
    """

    threads: Annotated[int | None, where("--threads T", whole(ranges.THREADS))] = None
    device: Annotated[str | None, where("--device cpu|cuda[:i,j]|opencl[:i,j]")] = None
    decomposition: Annotated[str, DECOMPOSITION] = "optimal"
    patch: Annotated[str | None, where("--patch B[,B[,B]]|tune|caches")] = None
    subdomains_per_rank: Annotated[int, where("--subdomains-per-rank K", whole(ranges.SUBDOMAINS))] = 1
    ranks_per_node: Annotated[int | None, where("--ranks-per-node R", whole(ranges.RANKS_PER_NODE))] = None
    placement: Annotated[str, where("--placement aware|trivial|random")] = "aware"
    methods: Annotated[str | None, METHODS] = None
    mailboxes: Annotated[int, where("--mailboxes M", whole(ranges.MAILBOXES))] = 2
    schedule: Annotated[str, where("--schedule guided|static|dynamic")] = "guided"
    kernels: Annotated[str, where("--kernels auto|tune|direct|queue|planes")] = "auto"
    overlap: Annotated[str, where("--overlap auto|on|off")] = "auto"
    halo: Annotated[str, where("--halo read|faces|edges|uniform")] = "read"
    packing: Annotated[str, where("--packing all|last|none")] = "all"
    communication: Annotated[str | None, COMMUNICATION] = None
    gpudirect: Annotated[str, where("--gpudirect on|off")] = "off"
    balance: Annotated[str | None, where("--balance EVERY")] = None
    ranks_active: Annotated[int | None, where("--ranks-active K", whole(ranges.RANKS))] = None
    trace: Annotated[Path | None, results("--trace FILE", place("file"))] = None


OF_MOVES = ("balance", "ranks_active")  # options of Execution on subdomains that move
TO_COMPARE = ("halo", "packing", "communication", "gpudirect")  # options of Execution to compare with others

# -- output and checkpoints ----------------------------------------------------------------------------------

OVERWRITE = keeping("--overwrite", help="Remove what another run left under the same name.")


@dataclass
class Keeping:
    """Options of output and checkpoints, which `halocline.cli.texts.keeping_of` takes.

    Attributes
    ----------
    output
        Write all fields into that store as the run goes on; xarray.open_zarr opens it.
    output_every
        How often, as for --checkpoint-every; by default at the start and at the end.
    checkpoint
        Leave checkpoints there: as often as --checkpoint-every says, at the end, and where the run is
        asked to stop: by SIGTERM, SIGUSR1 or Ctrl-C, by a file named stop in FOLDER, or shortly before
        its time is up.
    checkpoint_every
        How often: a number of steps or iterations ('50 steps'), simulated time (0.5), or wall-clock time
        ('30 min'; s, min, h, d).
    keep
        How many remain, the newest ones; 2 by default.
    resume
        Go on from the newest checkpoint there, or from the one with that name, on any number of ranks,
        with the bits of a run that never stopped. Its end counts from the very start.
    time_limit
        How long the run may take; shortly before it leaves a checkpoint and ends with status 75. By
        default the end of the job, where Slurm has one.
    io_threads
        Threads of each rank that compress and write output and checkpoints while it computes; 1 by
        default.
    io_ranks
        I/O ranks: they run beside those that compute, and write output and checkpoints.
    """

    output: Annotated[Path | None, keeping("--output STORE.zarr", place("store.zarr"))] = None
    output_every: Annotated[str | None, keeping("--output-every 'K steps'|T|'30 min'")] = None
    checkpoint: Annotated[Path | None, keeping("--checkpoint FOLDER", place("folder"))] = None
    checkpoint_every: Annotated[str | None, keeping("--checkpoint-every 'K steps'|T|'30 min'")] = None
    keep: Annotated[int | None, keeping("--keep K", whole(ranges.CHECKPOINTS))] = None
    resume: Annotated[Path | None, keeping("--resume FOLDER", place("folder"))] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    time_limit: Annotated[str | None, keeping("--time-limit '11 h 50 min'")] = None
    io_threads: Annotated[int | None, keeping("--io-threads K", whole(ranges.IO_THREADS))] = None
    io_ranks: Annotated[int, keeping("--io-ranks K", whole(ranges.IO_RANKS))] = 0


# -- results -------------------------------------------------------------------------------------------------

JSON = results("--json FILE", place("file", str), "Write the results as JSON; - prints them, and them alone.")


@dataclass
class ReportFiles:
    """Options of the files of a report.

    Attributes
    ----------
    csv
        Write one line per run.
    html
        Write a page with tables and plots, complete in itself.
    pictures
        Draw the plots in that folder.
    """

    json: Annotated[str | None, JSON] = None
    csv: Annotated[Path | None, results("--csv FILE", place("file"))] = None
    html: Annotated[Path | None, results("--html FILE", place("file"))] = None
    pictures: Annotated[Path | None, results("--pictures FOLDER", place("folder"))] = None


@dataclass
class Results:
    """Options of the results of a run, beside its state.

    Attributes
    ----------
    csv
        Write the series of diagnostics, one line for each time.
    pictures
        Draw each field at the end in that folder, or the quantities that the case derives from them, and
        the figures of the case. For a file: the fields of its last problem.
    check
        Compare the result with what the case must satisfy, and exit with status 1 where it does not.
    state
        Write the fields of the last problem, as NumPy arrays.
    """

    json: Annotated[str | None, JSON] = None
    csv: Annotated[Path | None, results("--csv FILE", place("file"))] = None
    pictures: Annotated[Path | None, results("--pictures FOLDER", place("folder"))] = None
    check: Annotated[bool, results("--check")] = False
    state: Annotated[Path | None, results("--state FILE.npz", place("file.npz"))] = None
