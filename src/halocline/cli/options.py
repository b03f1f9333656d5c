"""Options that several commands share, and what their text means."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from halocline.errors import InputError
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.transfer import METHODS
from halocline.ranges import (
    AXES,
    CHECKPOINTS,
    FIELDS,
    IO_RANKS,
    IO_THREADS,
    MAILBOXES,
    ORDER,
    POINTS,
    RADIUS,
    RANK,
    RANKS,
    RANKS_PER_NODE,
    REPEATS,
    SOME_STEPS,
    STEPS,
    SUBDOMAINS,
    THREADS,
    Range,
)
from halocline.run.tuning.patches import BY_CACHES, TUNE

PROBLEM, HOW, WHERE, RESULTS = "The problem", "How it is solved", "Where it runs", "Results"
KEEPING = "Output and checkpoints"


def _option(
    panel: str, *names: str, metavar: str, help: str, parser: Callable[[Any], Any] | None = None
) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, parser=parser)


def whole(panel: str, *names: str, numbers: Range, metavar: str, help: str) -> Any:
    """An option that takes one whole number of a range."""

    def parse(given: str | int) -> int:
        number = int(given) if is_whole(str(given)) else given
        try:
            return numbers.check("", number)
        except InputError:
            raise typer.BadParameter(f"{given}; expected {numbers}") from None

    return _option(panel, *names, metavar=metavar, help=help, parser=parse)


def place(panel: str, *names: str, metavar: str, help: str, kind: type = Path) -> Any:
    """An option that takes the name of a file or folder."""

    def parse(given: str | Path) -> Any:
        if not str(given) or "\0" in str(given):
            raise typer.BadParameter(f"it is empty; expected the name of a {metavar.lower()}")
        return kind(given)

    return _option(panel, *names, metavar=metavar, help=help, parser=parse)


def positive(panel: str, *names: str, metavar: str, help: str) -> Any:
    """An option that takes a positive number."""

    def parse(given: str | float) -> float:
        try:
            number = float(given)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            raise typer.BadParameter(f"{given}; expected a positive number")
        return number

    return _option(panel, *names, metavar=metavar, help=help, parser=parse)


N = Annotated[
    int, whole(PROBLEM, "--n", numbers=POINTS, metavar="N", help="Interior points along each axis.")
]
PointsOrResumed = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--n",
        numbers=POINTS,
        metavar="N",
        help="Interior points along each axis; with --resume those of the checkpoint.",
    ),
]
Cells = Annotated[int, whole(PROBLEM, "--n", numbers=POINTS, metavar="N", help="Cells along each axis.")]
Ns = Annotated[
    str, _option(PROBLEM, "--n", metavar="N,N,...", help="Interior points along each axis, for each run.")
]
CellsOfCase = Annotated[
    str | None,
    _option(
        PROBLEM,
        "--n",
        metavar="N[,M[,K]]",
        help="Cells along the first axis, the others in the case's own proportion; or along each axis.",
    ),
]
DimOfCase = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--dim",
        numbers=AXES,
        metavar="1|2|3",
        help="Axes, where a case can have several numbers of them; see `halocline cases NAME`.",
    ),
]
Steps = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--steps",
        numbers=STEPS,
        metavar="S",
        help="Steps at most. Without --steps and --until the case decides where it ends.",
    ),
]
Until = Annotated[
    float | None,
    _option(
        PROBLEM, "--until", metavar="T", help="The time to reach; the last step is shortened to end there."
    ),
]
CaseNs = Annotated[
    str | None,
    _option(
        PROBLEM,
        "--n",
        metavar="N,N,...",
        help="Cells along the first axis, the others in the case's own proportion, for each run (default: "
        "64, or what a file has).",
    ),
]
CaseNsByFamily = Annotated[
    str | None,
    _option(
        PROBLEM,
        "--n",
        metavar="N,N,...",
        help="Cells along the first axis, the others in the case's own proportion, for each run; by default "
        "a few sizes for each panel.",
    ),
]
StepsOfStudy = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--steps",
        numbers=SOME_STEPS,
        metavar="S",
        help="Steps of each run; by default those of the case.",
    ),
]
WarmUpOfStudy = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--warm-up",
        numbers=STEPS,
        metavar="K",
        help="The first K steps are not timed; by default two, where there are more.",
    ),
]
Orders = Annotated[
    str | None,
    _option(
        HOW,
        "--orders",
        metavar="2,4,6,8",
        help="The same with differences of these orders too: a table and a picture, a line for each.",
    ),
]
Parts = Annotated[
    bool,
    typer.Option(
        "--parts",
        help="Time computing alone, the exchange alone, and the exchange with all edges and corners too.",
        rich_help_panel=RESULTS,
    ),
]
WarmUp = Annotated[
    int,
    whole(
        PROBLEM,
        "--warm-up",
        numbers=STEPS,
        metavar="K",
        help="The first K steps are not timed.",
    ),
]
Only = Annotated[
    str | None,
    _option(
        RESULTS,
        "--only",
        metavar="compute|exchange",
        help="Time the steps without messages, or without kernels. The fields then hold nonsense: no "
        "diagnostics, checksum, pictures or series.",
    ),
]
Settings = Annotated[
    list[str] | None,
    _option(
        PROBLEM,
        "--set",
        metavar="NAME=VALUE",
        help="A parameter that is not as by default; may be given several times.",
    ),
]
Every = Annotated[
    int | None,
    whole(
        RESULTS,
        "--every",
        numbers=SOME_STEPS,
        metavar="K",
        help="Diagnostics each K steps: rows that come while it runs, and a series in --json and --csv.",
    ),
]
OutputPath = Annotated[
    Path | None,
    place(
        KEEPING,
        "--output",
        metavar="STORE.zarr",
        help="Write all fields into that store as the run goes on; xarray.open_zarr opens it.",
    ),
]
OutputEvery = Annotated[
    str | None,
    _option(
        KEEPING,
        "--output-every",
        metavar="K|T|'30 min'",
        help="How often, as for --checkpoint-every; by default at the start and at the end.",
    ),
]
CheckpointPath = Annotated[
    Path | None,
    place(
        KEEPING,
        "--checkpoint",
        metavar="FOLDER",
        help="Leave checkpoints there: as often as --checkpoint-every says, at the end, and where the run is "
        "asked to stop: by SIGTERM, SIGUSR1 or Ctrl-C, by a file named stop in FOLDER, or shortly before its "
        "time is up.",
    ),
]
CheckpointEvery = Annotated[
    str | None,
    _option(
        KEEPING,
        "--checkpoint-every",
        metavar="K|T|'30 min'",
        help="How often: a number of steps or iterations (50), simulated time (0.5), or wall-clock time (s, "
        "min, h, d).",
    ),
]
CheckpointKeep = Annotated[
    int | None,
    whole(
        KEEPING,
        "--keep",
        numbers=CHECKPOINTS,
        metavar="K",
        help="How many remain, the newest ones; 2 by default.",
    ),
]
Resume = Annotated[
    Path | None,
    place(
        KEEPING,
        "--resume",
        metavar="FOLDER",
        help="Go on from the newest checkpoint there, or from the one with that name, on any number of "
        "ranks, with the bits of a run that never stopped. Its end counts from the very start.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Remove what another run left under the same name.",
        rich_help_panel=KEEPING,
    ),
]
IoThreads = Annotated[
    int | None,
    whole(
        KEEPING,
        "--io-threads",
        numbers=IO_THREADS,
        metavar="K",
        help="Threads of each rank that compress and write output and checkpoints while it computes; 1 by "
        "default.",
    ),
]
IoRanks = Annotated[
    int,
    whole(
        KEEPING,
        "--io-ranks",
        numbers=IO_RANKS,
        metavar="K",
        help="I/O ranks: they run beside those that compute, and write output and checkpoints.",
    ),
]
TimeLimit = Annotated[
    str | None,
    _option(
        KEEPING,
        "--time-limit",
        metavar="'11 h 50 min'",
        help="How long the run may take; shortly before it leaves a checkpoint and ends with status 75. By "
        "default the end of the job, where Slurm has one.",
    ),
]
SeriesCsv = Annotated[
    Path | None,
    place(RESULTS, "--csv", metavar="FILE", help="Write the series of diagnostics, one line for each time."),
]
FieldPictures = Annotated[
    Path | None,
    place(
        RESULTS,
        "--pictures",
        metavar="FOLDER",
        help="Draw each field at the end in that folder, or the quantities that the case derives from them, "
        "and the figures of the case.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Compare the result with what the case must satisfy, and exit with status 1 where it does not.",
        rich_help_panel=RESULTS,
    ),
]
_DIM: Any = {"numbers": AXES, "metavar": "1|2|3"}
Dim = Annotated[int, whole(PROBLEM, "--dim", help="Axes of the problem.", **_DIM)]
DimOfSolve = Annotated[
    int | None,
    whole(
        PROBLEM,
        "--dim",
        help="Axes of the problem (default: 2, or with --resume those of the checkpoint).",
        **_DIM,
    ),
]
Radius = Annotated[int, whole(PROBLEM, "--radius", numbers=RADIUS, metavar="R", help="Layers of halo.")]
FieldCount = Annotated[int, whole(PROBLEM, "--fields", numbers=FIELDS, metavar="F", help="Fields.")]
Dtype = Annotated[str, _option(PROBLEM, "--dtype", metavar="float32|float64", help="Their precision.")]
_METHODS = (
    "[bold]cg[/]: conjugate gradients as in UMBC HPCF-2018-10, 11 streams of memory an iteration. "
    "[bold]cg-fused[/]: the same in two sweeps and 8 streams"
)
_METHOD: Any = {"metavar": "cg|cg-fused"}
Method = Annotated[str, _option(HOW, "--method", help=f"{_METHODS}.", **_METHOD)]
MethodOfSolve = Annotated[
    str | None,
    _option(
        HOW,
        "--method",
        help=f"{_METHODS} (default: cg-fused, or with --resume that of the checkpoint).",
        **_METHOD,
    ),
]
Scheme = Annotated[
    str, _option(HOW, "--scheme", metavar="euler|rk2|rk3|rk4|ssprk3", help="How time is integrated.")
]
Order = Annotated[
    int,
    whole(
        HOW, "--order", numbers=ORDER, metavar="2|4|6|...", help="Order of accuracy of differences in space."
    ),
]
SchemeOfCase = Annotated[
    str | None,
    _option(
        HOW,
        "--scheme",
        metavar="euler|rk2|rk3|rk4|ssprk3",
        help="How time is integrated, rk3 by default. Some cases have a scheme of their own.",
    ),
]
OrderOfCase = Annotated[
    int | None,
    whole(
        HOW,
        "--order",
        numbers=ORDER,
        metavar="2|4|6|...",
        help="Order of accuracy of differences in space, 6 by default. Cases with a scheme of their own take "
        "none.",
    ),
]
Rtol = Annotated[
    float,
    positive(HOW, "--rtol", metavar="X", help="Stop where the residual norm is at most X times the first."),
]
MaxIterations = Annotated[
    int | None,
    whole(
        HOW,
        "--max-iterations",
        numbers=STEPS,
        metavar="K",
        help="Stop after K iterations at the latest: a result too, not converged.",
    ),
]
Decomposition = Annotated[
    str,
    _option(
        WHERE,
        "--decomposition",
        metavar="HOW",
        help="How the grid is cut over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, 2d, "
        "3d, or the parts along each axis, such as 4x2.",
    ),
]
Patch = Annotated[
    str | None,
    _option(
        WHERE,
        "--patch",
        metavar="B[,B[,B]]|tune|caches",
        help="Edges in cells of the patches that threads work on. [bold]tune[/]: measure some before the "
        "first run, and remember the fastest for later ones; [bold]caches[/]: to suit the caches. By default "
        "what is remembered, else to suit the caches.",
    ),
]
Ranks = Annotated[
    int | None,
    whole(
        WHERE,
        "--ranks",
        numbers=RANKS,
        metavar="R",
        help="Processes; more than one are started with mpiexec. Under mpiexec it may be left out.",
    ),
]
Threads = Annotated[
    int | None,
    whole(
        WHERE,
        "--threads",
        numbers=THREADS,
        metavar="T",
        help="Threads of each rank; by default OMP_NUM_THREADS, else the cores shared out among the ranks. "
        "With devices one, which looks after these.",
    ),
]
Device = Annotated[
    str | None,
    _option(
        WHERE,
        "--device",
        metavar="cpu|cuda[:i,j]|opencl[:i,j]",
        help="What computes: the processor, or devices with memory of their own, all that there are or those "
        "whose numbers follow, as in cuda:0,1; a subdomain on each, shared out among the ranks of a node. By "
        "default HALOCLINE_DEVICE, else cpu.",
    ),
]
SubdomainsPerRank = Annotated[
    int,
    whole(
        WHERE,
        "--subdomains-per-rank",
        numbers=SUBDOMAINS,
        metavar="K",
        help="Subdomains of each rank; with devices, of each of them.",
    ),
]
RanksPerNode = Annotated[
    int | None,
    whole(
        WHERE,
        "--ranks-per-node",
        numbers=RANKS_PER_NODE,
        metavar="R",
        help="Take every R ranks for a node, whatever they run on; by default nodes are what MPI says.",
    ),
]
Methods = Annotated[
    str | None,
    _option(
        WHERE,
        "--methods",
        metavar="M,M,...",
        help="The transfer methods that may be taken between subdomains, the first that applies: "
        f"{', '.join(METHODS)}; all but rma by default. One process alone copies: self and peer.",
    ),
]
MailboxesOfMessage = Annotated[
    int,
    whole(
        WHERE, "--mailboxes", numbers=MAILBOXES, metavar="M", help="Mailboxes for each message of method rma."
    ),
]
Schedule = Annotated[
    str,
    _option(
        WHERE,
        "--schedule",
        metavar="guided|static|dynamic",
        help="Which thread of a rank runs which patch: [bold]static[/], the one that it was given to; "
        "[bold]dynamic[/], whichever comes first; [bold]guided[/], the one that it was given to, or one that "
        "has run all of its own.",
    ),
]
Kernels = Annotated[
    str,
    _option(
        WHERE,
        "--kernels",
        metavar="auto|tune|direct|queue|planes",
        help="How threads of a device read the cells around theirs: [bold]direct[/], from memory; "
        "[bold]queue[/], those along the slowest axis from registers; [bold]planes[/], those beside them "
        "from memory that a group shares; [bold]tune[/]: measured before the first run, and remembered; "
        "[bold]auto[/]: what is remembered, else queue.",
    ),
]
PlannedKernels = Annotated[
    str,
    _option(
        WHERE,
        "--kernels",
        metavar="auto|direct|queue|planes",
        help="How threads of a device read the cells around theirs, as for solve; [bold]auto[/]: queue.",
    ),
]
PlannedRanks = Annotated[
    int, whole(WHERE, "--ranks", numbers=RANKS, metavar="R", help="As many ranks are planned for.")
]
PlannedRank = Annotated[
    int | None,
    whole(
        WHERE,
        "--rank",
        numbers=RANK,
        metavar="K",
        help="Which of them is explained; by default one in the middle.",
    ),
]
PlannedThreads = Annotated[
    int, whole(WHERE, "--threads", numbers=THREADS, metavar="T", help="Threads of each rank.")
]
Code = Annotated[
    bool,
    typer.Option(
        "--code",
        help="Print the generated C++ too, with all the rest as comments.",
        rich_help_panel=RESULTS,
    ),
]
Passes = Annotated[
    bool,
    typer.Option(
        "--passes",
        help="Print what every pass of the compiler leaves of each kernel too.",
        rich_help_panel=RESULTS,
    ),
]
WhoPicture = Annotated[
    Path | None,
    place(RESULTS, "--picture", metavar="FILE", help="Draw who sends how much to whom, and how."),
]
Overlap = Annotated[
    str,
    _option(
        WHERE,
        "--overlap",
        metavar="auto|on|off",
        help="Whether patches that need no message run before all messages have come; [bold]auto[/]: as the "
        "first passes show, some of which run so and some not.",
    ),
]
ModelOverlap = Annotated[
    str,
    _option(
        WHERE,
        "--overlap",
        metavar="auto|on|off",
        help="Whether patches that need no message run before messages have come; [bold]auto[/]: whichever "
        "is faster.",
    ),
]
Halo = Annotated[
    str,
    _option(
        WHERE,
        "--halo",
        metavar="read|uniform",
        help="What travels: [bold]read[/], only what is read; [bold]uniform[/], to compare, all fields that "
        "travel at all, as wide as the widest, with all edges and corners.",
    ),
]
Packing = Annotated[
    str,
    _option(
        WHERE,
        "--packing",
        metavar="all|last|none",
        help="Which messages by MPI are packed: all; [bold]last[/], those along the last axis; "
        "[bold]none[/], to compare. Others MPI takes out of the fields, and devices copy row by row.",
    ),
]
CommunicationName = Annotated[
    str | None,
    _option(
        WHERE,
        "--communication",
        metavar="|".join(COMMUNICATIONS),
        help="A way of communicating, to compare; all messages go by MPI: "
        + "; ".join(f"[bold]{name}[/], {each.about}" for name, each in COMMUNICATIONS.items())
        + ".",
    ),
]
GpuDirect = Annotated[
    bool,
    typer.Option(
        "--gpudirect",
        help="With --communication on devices: MPI takes messages out of their memory, not the host's.",
        rich_help_panel=WHERE,
    ),
]
RanksList = Annotated[
    str, _option(WHERE, "--ranks", metavar="R,R,...", help="Processes; one run for each, and for each T.")
]
ThreadsList = Annotated[
    str, _option(WHERE, "--threads", metavar="T,T,...", help="Threads of each rank; one run for each.")
]
Repeat = Annotated[
    int,
    whole(
        WHERE, "--repeat", numbers=REPEATS, metavar="K", help="Runs of each measurement; the median counts."
    ),
]
MachineName = Annotated[
    str,
    _option(
        WHERE,
        "--machine",
        metavar="NAME|FILE",
        help="[bold]host[/] is this one; blue-waters-xe, dgx-h100, dgx-h200, lumi-g, puhti, stampede2-skx, "
        "summit, or a TOML file.",
    ),
]
Nodes = Annotated[str, _option(WHERE, "--nodes", metavar="K,K,...", help="Nodes; one prediction for each.")]
PerNode = Annotated[
    int | None,
    whole(
        WHERE,
        "--ranks-per-node",
        numbers=RANKS_PER_NODE,
        metavar="R",
        help="By default one for each device of a node; more of them share these.",
    ),
]
Measure = Annotated[
    int | None,
    whole(
        WHERE,
        "--measure",
        numbers=POINTS,
        metavar="N",
        help="Run the case with N on every rank of this host by itself, and take the pace of its sweeps from "
        "that, not from their bytes and operations; with --machine host.",
    ),
]
Scaling = Annotated[
    str,
    _option(
        WHERE,
        "--scaling",
        metavar="strong|weak",
        help="[bold]strong[/]: the same grid on all. [bold]weak[/]: N belongs to the fewest nodes; the axes "
        "double in turn with them.",
    ),
]
Placement = Annotated[
    str,
    _option(
        WHERE,
        "--placement",
        metavar="aware|trivial|random",
        help="Which device of a node takes which part of the grid: [bold]aware[/] of the links between them, "
        "in order, or as drawn.",
    ),
]
TracedRanks = Annotated[
    str | None,
    _option(
        RESULTS,
        "--traced",
        metavar="R,R,...",
        help="The ranks that --trace and --timeline show, on the last number of nodes; the first four by "
        "default.",
    ),
]
Timeline = Annotated[
    Path | None,
    place(RESULTS, "--timeline", metavar="FILE", help="Draw what these ranks and their messages would do."),
]
ScalingPicture = Annotated[
    Path | None,
    place(
        RESULTS,
        "--picture",
        metavar="FILE",
        help="Draw seconds and efficiency over nodes (PNG, SVG or PDF).",
    ),
]
ModelTrace = Annotated[
    Path | None,
    place(
        RESULTS,
        "--trace",
        metavar="FILE",
        help="Write what ranks and messages would do, for Perfetto or chrome://tracing, as runs do.",
    ),
]
Json = Annotated[
    str | None,
    place(
        RESULTS,
        "--json",
        metavar="FILE",
        kind=str,
        help="Write the results as JSON; - prints them, and them alone.",
    ),
]
Trace = Annotated[
    Path | None,
    place(
        RESULTS,
        "--trace",
        metavar="FILE",
        help="Write what each thread and message did, for Perfetto or chrome://tracing.",
    ),
]
Csv = Annotated[Path | None, place(RESULTS, "--csv", metavar="FILE", help="Write one line per run.")]
Html = Annotated[
    Path | None,
    place(RESULTS, "--html", metavar="FILE", help="Write a page with tables and plots, complete in itself."),
]
PlotPictures = Annotated[
    Path | None, place(RESULTS, "--pictures", metavar="FOLDER", help="Draw the plots in that folder.")
]
Pictures = Annotated[
    Path | None,
    place(RESULTS, "--pictures", metavar="FOLDER", help="Draw solution.png and error.png in that folder."),
]


def whole_numbers(text: str, option: str, numbers: Range) -> list[int]:
    """The numbers of a list such as "256,512", each in a range; InputError names the option and what is
    wrong."""
    found = []
    for part in map(str.strip, text.split(",")):
        if not is_whole(part):
            raise InputError(f"{option} {text}: {part!r} is no whole number; expected a list such as 1,2,4")
        found.append(numbers.check(f"{option} {text}: a number", int(part)))
    if len(set(found)) != len(found):
        raise InputError(f"{option} {text}: a number stands there twice")
    return found


def is_whole(text: str) -> bool:
    """Whether a word is a whole number, of no more digits than anybody means."""
    return re.fullmatch(r"[+-]?[0-9]{1,40}", text.strip()) is not None


def execution(
    *,
    device: str | None = None,
    threads: int | None,
    decomposition: str,
    patch: str | None = None,
    subdomains_per_rank: int,
    ranks_per_node: int | None,
    methods: str | None = None,
    overlap: str = "auto",
    mailboxes: int = 2,
    schedule: str = "guided",
    kernels: str = "auto",
    halo: str = "read",
    packing: str = "all",
    communication: str | None = None,
    gpudirect: bool = False,
) -> dict[str, Any]:
    """The options of a run, as `halocline.run.domain.execution.Execution` takes them."""
    return {
        "device": device,
        "threads": threads,
        "decomposition": decomposition,
        "patch": patch_edges(patch),
        "subdomains_per_rank": subdomains_per_rank,
        "ranks_per_node": ranks_per_node,
        "methods": methods,
        "mailboxes": mailboxes,
        "schedule": schedule,
        "kernels": kernels,
        "overlap": overlap_of(overlap),
        "halo": halo,
        "packing": packing,
        "communication": communication,
        "gpudirect": gpudirect,
    }


def overlap_of(text: str) -> bool | str:
    """The choice that --overlap names."""
    if text not in ("auto", "on", "off"):
        raise InputError(f"--overlap {text}: expected auto, on or off")
    return text if text == "auto" else text == "on"


def patch_edges(text: str | None) -> list[int] | int | str | None:
    """The patch that --patch asks for."""
    if text is None or text in (TUNE, BY_CACHES):
        return text
    parts = text.split(",")
    if not all(map(is_whole, parts)):
        expected = f"expected whole numbers of cells, such as 64 or 32,256; or {TUNE}, or {BY_CACHES}"
        raise InputError(f"--patch {text}: {expected}")
    edges = [POINTS.check(f"--patch {text}: an edge", int(part)) for part in parts]
    return edges[0] if len(edges) == 1 else edges
