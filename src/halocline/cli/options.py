"""Options of commands: how their texts are read, and those that several commands take.

An option is a `typer.Option`, which the parameter of a command names: ``n: Annotated[int, N] = 64``. Options
that several commands take together are the fields of a class, see `halocline.cli.commands.command`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from halocline import ranges
from halocline.errors import InputError
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.transfer import METHODS as TRANSFERS
from halocline.ranges import Range, is_whole
from halocline.run.output.every import Every

# -- texts of options ----------------------------------------------------------------------------------------


def one_of(*values: str) -> Callable[[Any], Any]:
    """Return a reader of one of some words or numbers."""

    def read(text: Any) -> Any:
        if str(text) not in values:
            raise typer.BadParameter(f"{text}; expected {' or '.join(values)}")
        return int(text) if is_whole(str(text)) else text

    return read


def whole(numbers: Range) -> Callable[[Any], int]:
    """Return a reader of a whole number of a range."""

    def read(text: Any) -> int:
        try:
            return numbers.check("", int(text) if is_whole(str(text)) else text)
        except InputError:
            raise typer.BadParameter(f"{text}; expected {numbers}") from None

    return read


def step_interval(numbers: Range) -> Callable[[Any], int]:
    """Return a reader of a whole number of steps, also with the unit: "5" or "5 steps"."""

    def read(text: Any) -> int:
        try:
            interval = Every.parse("", text if "step" in str(text) else f"{text} steps")
            return numbers.check("", interval.steps)
        except InputError:
            raise typer.BadParameter(f"{text}; expected {numbers}, or a text such as '5 steps'") from None

    return read


def place(noun: str, kind: Callable[[str], Any] = Path) -> Callable[[str], Any]:
    """Return a reader of the name of a file or folder, which is not empty."""

    def read(text: str) -> Any:
        if not text or "\0" in text:
            raise typer.BadParameter(f"it is empty; expected the name of a {noun}")
        return kind(text)

    return read


def finite(expected: str, accepts: Callable[[float], bool]) -> Callable[[Any], float]:
    """Return a reader of a finite number that fulfils a condition."""

    def read(text: Any) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and accepts(number)):
            raise typer.BadParameter(f"{text}; expected {expected}")
        return number

    return read


def taken(group: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that are fields of a class from the values of all options, and return them."""
    return {each.name: values.pop(each.name) for each in fields(group) if each.name in values}


def keyword(form: str) -> str:
    """Return the name of a parameter for an option such as "--orders O,O,..."."""
    return form.partition(" ")[0].lstrip("-").replace("-", "_")


def panel(title: str | None) -> Callable[..., Any]:
    """Return a function that makes options of a panel of help texts.

    It takes the form of an option, such as "--n N", the help text and, if the value is no plain text, its
    reader. A form without a metavar is a flag.
    """

    def option(form: str, help: str, read: Callable[[Any], Any] | None = None) -> Any:
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

CELLS_OF_CASE = problem(
    "--n N[,M[,K]]",
    "Cells along the first axis, the others in the case's own proportion; or along each axis.",
)
CELLS_OF_RANK = problem("--n N", "Cells along an axis for each rank.", whole(ranges.POINTS))
DIM = problem("--dim 1|2|3", "Axes of the problem.", whole(ranges.AXES))
DIM_OF_CASE = problem(
    "--dim 1|2|3",
    "Axes, where a case can have several numbers of them; see `halocline cases NAME`.",
    whole(ranges.AXES),
)
SETTINGS = problem("--set NAME=VALUE", "A parameter that is not as by default; may be given several times.")
RADIUS = problem("--radius R", "Layers of halo.", whole(ranges.RADIUS))
FIELDS = problem("--fields F", "Fields.", whole(ranges.FIELDS))
DTYPE = problem("--dtype float32|float64", "Their precision.")

# -- how it is solved ----------------------------------------------------------------------------------------

METHODS_OF_LINEAR = (
    "[bold]cg[/]: conjugate gradients as in UMBC HPCF-2018-10, 11 streams of memory an iteration. "
    "[bold]cg-fused[/]: the same in two sweeps and 8 streams"
)
METHOD_OF_CASE = how("--method cg|cg-fused", f"{METHODS_OF_LINEAR}. Of a linear problem.")
TOLERANCE = "Stop where the residual norm is at most X times that of the right-hand side."
POSITIVE = finite("a positive number", lambda number: number > 0)
MOST_ITERATIONS = "Stop after K iterations at the latest: a result too, not converged."
SCHEME_OF_CASE = how(
    "--scheme euler|rk2|rk3|rk4|ssprk3",
    "How time is integrated, rk3 by default. Some cases have a scheme of their own.",
)
ORDER_OF_CASE = how(
    "--order 2|4|6|...",
    "Order of accuracy of differences in space, 6 by default. Cases with a scheme of their own take none.",
    whole(ranges.ORDER),
)


@dataclass
class OfCase:
    """Options of a problem that is planned, and not run."""

    n: Annotated[str | None, CELLS_OF_CASE] = None
    dim: Annotated[int | None, DIM_OF_CASE] = None
    settings: Annotated[list[str], SETTINGS] = NO_TEXTS
    order: Annotated[int | None, ORDER_OF_CASE] = None
    scheme: Annotated[str | None, SCHEME_OF_CASE] = None
    method: Annotated[str | None, METHOD_OF_CASE] = None


# -- where it runs -------------------------------------------------------------------------------------------

RANKS = where(
    "--ranks R",
    "Processes; more than one are started with mpiexec. Under mpiexec it may be left out.",
    whole(ranges.RANKS),
)
REPEAT = where("--repeat K", "Runs of each measurement; the median counts.", whole(ranges.REPEATS))
THREADS = where(
    "--threads T",
    "Threads of each rank; by default OMP_NUM_THREADS, else the cores shared out among the ranks. With "
    "devices one, which looks after these.",
    whole(ranges.THREADS),
)
DEVICE = where(
    "--device cpu|cuda[:i,j]|opencl[:i,j]",
    "What computes: the processor, or devices with memory of their own, all that there are or those whose "
    "numbers follow, as in cuda:0,1; a subdomain on each, shared out among the ranks of a node. By default "
    "HALOCLINE_DEVICE, else cpu.",
)
DECOMPOSITION = where(
    "--decomposition HOW",
    "How the grid is cut over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, 2d, 3d, or "
    "the parts along each axis, such as 4x2.",
)
PATCH = where(
    "--patch B[,B[,B]]|tune|caches",
    "Edges in cells of the patches that threads work on. [bold]tune[/]: measure some before the first run, "
    "and remember the fastest for later ones; [bold]caches[/]: to suit the caches. By default what is "
    "remembered, else to suit the caches.",
)
SUBDOMAINS_PER_RANK = where(
    "--subdomains-per-rank K",
    "Subdomains of each rank; with devices, of each of them.",
    whole(ranges.SUBDOMAINS),
)
RANKS_PER_NODE = where(
    "--ranks-per-node R",
    "Take every R ranks for a node, whatever they run on; by default nodes are what MPI says.",
    whole(ranges.RANKS_PER_NODE),
)
METHODS = where(
    "--methods M,M,...",
    "The transfer methods that may be taken between subdomains, the first that applies: "
    f"{', '.join(TRANSFERS)}; all but rma by default. One process alone copies: self and peer.",
)
MAILBOXES = where("--mailboxes M", "Mailboxes for each message of method rma.", whole(ranges.MAILBOXES))
SCHEDULE = where(
    "--schedule guided|static|dynamic",
    "Which thread of a rank runs which patch: [bold]static[/], the one that it was given to; "
    "[bold]dynamic[/], whichever comes first; [bold]guided[/], the one that it was given to, or one that has "
    "run all of its own.",
)
KERNELS = where(
    "--kernels auto|tune|direct|queue|planes",
    "How threads of a device read the cells around theirs: [bold]direct[/], from memory; [bold]queue[/], "
    "those along the slowest axis from registers; [bold]planes[/], those beside them from memory that a "
    "group shares; [bold]tune[/]: measured before the first run, and remembered; [bold]auto[/]: what is "
    "remembered, else queue.",
)
OVERLAP = where(
    "--overlap auto|on|off",
    "Whether patches that need no message run before all messages have come; [bold]auto[/]: as the first "
    "passes show, some of which run so and some not.",
)
HALO = where(
    "--halo read|uniform",
    "Which halos are exchanged: [bold]read[/], only what is read; [bold]uniform[/], to compare, those of all "
    "fields that are exchanged at all, as wide as the widest, with all edges and corners.",
)
PACKING = where(
    "--packing all|last|none",
    "Which messages by MPI are packed: all; [bold]last[/], those along the last axis; [bold]none[/], to "
    "compare. Others MPI takes out of the fields, and devices copy row by row.",
)
COMMUNICATION = where(
    "--communication " + "|".join(COMMUNICATIONS),
    "A way of communicating, to compare; all messages go by MPI: "
    + "; ".join(f"[bold]{name}[/], {each.about}" for name, each in COMMUNICATIONS.items())
    + ".",
)
GPUDIRECT = where(
    "--gpudirect", "With --communication on devices: MPI takes messages out of their memory, not the host's."
)
MACHINES = (
    "[bold]host[/] is this one; blue-waters-xe, dgx-h100, dgx-h200, lumi-g, puhti, stampede2-skx, summit, or "
    "a TOML file."
)
TRACE = results(
    "--trace FILE", "Write what each thread and message did, for Perfetto or chrome://tracing.", place("file")
)


@dataclass
class Execution:
    """Options of the execution of a program, by the names of `halocline.run.domain.execution.Execution`."""

    threads: Annotated[int | None, THREADS] = None
    device: Annotated[str | None, DEVICE] = None
    decomposition: Annotated[str, DECOMPOSITION] = "optimal"
    patch: Annotated[str | None, PATCH] = None
    subdomains_per_rank: Annotated[int, SUBDOMAINS_PER_RANK] = 1
    ranks_per_node: Annotated[int | None, RANKS_PER_NODE] = None
    methods: Annotated[str | None, METHODS] = None
    mailboxes: Annotated[int, MAILBOXES] = 2
    schedule: Annotated[str, SCHEDULE] = "guided"
    kernels: Annotated[str, KERNELS] = "auto"
    overlap: Annotated[str, OVERLAP] = "auto"
    halo: Annotated[str, HALO] = "read"
    packing: Annotated[str, PACKING] = "all"
    communication: Annotated[str | None, COMMUNICATION] = None
    gpudirect: Annotated[bool, GPUDIRECT] = False
    trace: Annotated[Path | None, TRACE] = None


TO_COMPARE = ("halo", "packing", "communication", "gpudirect")  # options of Execution to compare with others

# -- output and checkpoints ----------------------------------------------------------------------------------

OUTPUT = keeping(
    "--output STORE.zarr",
    "Write all fields into that store as the run goes on; xarray.open_zarr opens it.",
    place("store.zarr"),
)
OUTPUT_EVERY = keeping(
    "--output-every 'K steps'|T|'30 min'",
    "How often, as for --checkpoint-every; by default at the start and at the end.",
)
CHECKPOINT = keeping(
    "--checkpoint FOLDER",
    "Leave checkpoints there: as often as --checkpoint-every says, at the end, and where the run is "
    "asked to stop: by SIGTERM, SIGUSR1 or Ctrl-C, by a file named stop in FOLDER, or shortly before "
    "its time is up.",
    place("folder"),
)
CHECKPOINT_EVERY = keeping(
    "--checkpoint-every 'K steps'|T|'30 min'",
    "How often: a number of steps or iterations ('50 steps'), simulated time (0.5), or wall-clock "
    "time ('30 min'; s, min, h, d).",
)
KEEP = keeping("--keep K", "How many remain, the newest ones; 2 by default.", whole(ranges.CHECKPOINTS))
RESUME = keeping(
    "--resume FOLDER",
    "Go on from the newest checkpoint there, or from the one with that name, on any number of ranks, "
    "with the bits of a run that never stopped. Its end counts from the very start.",
    place("folder"),
)
OVERWRITE = keeping("--overwrite", "Remove what another run left under the same name.")
TIME_LIMIT = keeping(
    "--time-limit '11 h 50 min'",
    "How long the run may take; shortly before it leaves a checkpoint and ends with status 75. By "
    "default the end of the job, where Slurm has one.",
)
IO_THREADS = keeping(
    "--io-threads K",
    "Threads of each rank that compress and write output and checkpoints while it computes; 1 by default.",
    whole(ranges.IO_THREADS),
)
IO_RANKS = keeping(
    "--io-ranks K",
    "I/O ranks: they run beside those that compute, and write output and checkpoints.",
    whole(ranges.IO_RANKS),
)


@dataclass
class Keeping:
    """Options of output and checkpoints, which `halocline.cli.keeping.kept` takes."""

    output: Annotated[Path | None, OUTPUT] = None
    output_every: Annotated[str | None, OUTPUT_EVERY] = None
    checkpoint: Annotated[Path | None, CHECKPOINT] = None
    checkpoint_every: Annotated[str | None, CHECKPOINT_EVERY] = None
    keep: Annotated[int | None, KEEP] = None
    resume: Annotated[Path | None, RESUME] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    time_limit: Annotated[str | None, TIME_LIMIT] = None
    io_threads: Annotated[int | None, IO_THREADS] = None
    io_ranks: Annotated[int, IO_RANKS] = 0


# -- results -------------------------------------------------------------------------------------------------

JSON = results("--json FILE", "Write the results as JSON; - prints them, and them alone.", place("file", str))
CSV = results("--csv FILE", "Write one line per run.", place("file"))
HTML = results("--html FILE", "Write a page with tables and plots, complete in itself.", place("file"))
